/* Devices: the example plug-in is loaded as a program would load it; tensors there, ops, errors, what
 * reads their elements. Its memory faults when the host touches it, so that every path that forgets to
 * copy crashes here. */
#include "core/device.h"
#include "suite.h"

#include <proa.h>

#include <stdlib.h>

#define PLUGIN PROA_TEST_DEVICES "/libproa_example.so"

static void expect(proa_status code, const char *part)
{
    ck_assert_int_eq(proa_error(), code);
    ck_assert_msg(strstr(proa_error_message(), part), "no \"%s\" in: %s", part, proa_error_message());
    proa_clear_error();
}

START_TEST(what_is_no_plugin)
{
    ck_assert_int_eq(proa_load_devices(NULL), -1);
    expect(PROA_ERR_INVALID_ARGUMENT, "NULL");
    ck_assert_int_eq(proa_load_devices("/no/such/file.so"), -1);
    expect(PROA_ERR_UNAVAILABLE, "/no/such/file.so");
    ck_assert_int_eq(proa_load_devices("libm.so.6"), -1);
    expect(PROA_ERR_INVALID_ARGUMENT, "proa_plugin_entry");
    proa_set_device("gpu:7");
    expect(PROA_ERR_UNAVAILABLE, "gpu:7");
    ck_assert_ptr_null(proa_find_device("example"));
    expect(PROA_ERR_UNAVAILABLE, "only cpu");
}
END_TEST

static void load(void)
{
    ck_assert_int_eq(proa_load_devices(PLUGIN), 1);
    ck_assert_int_eq(proa_set_device("example"), PROA_OK);
}

START_TEST(tensors_there)
{
    load();
    ck_assert_int_eq(proa_load_devices(PLUGIN), 1); /* again: the same device */
    ck_assert_str_eq(proa_get_device(), "example:0");
    ck_assert_str_eq(proa_device_name(1), "example:0");
    ck_assert_ptr_null(proa_device_name(2));
    PROA_SCOPE {
        float values[6] = {1, -2, 3, -4, 5, -6}, out[6];
        proa_tensor *x = proa_from_data(values, PROA_SHAPE(2, 3), PROA_F32);
        ck_assert_str_eq(proa_device_of(x), "example:0");
        proa_tensor *y = proa_relu(proa_add(x, x)), *t = proa_transpose(x, PROA_INTS(1, 0));
        ck_assert_int_eq(proa_copy_out(y, out, sizeof out), PROA_OK);
        ck_assert(out[0] == 2 && out[1] == 0 && out[2] == 6);
        ck_assert_int_eq(proa_copy_out(t, out, sizeof out), PROA_OK);
        ck_assert(out[1] == -4 && out[5] == -6);
        ck_assert_int_eq(proa_copy_in(t, values, sizeof values), PROA_OK); /* strided */
        ck_assert_int_eq(proa_copy_out(x, out, sizeof out), PROA_OK);
        ck_assert(out[1] == 3 && out[3] == -2);
        proa_tensor *here = proa_to_device(x, "cpu");
        ck_assert_str_eq(proa_device_of(here), "cpu");
        ck_assert_ptr_eq(proa_to_device(x, "example:0"), x);
        ck_assert(((float *)proa_data(here))[1] == 3);
        FILE *nowhere = tmpfile();
        proa_print(x, nowhere);
        fclose(nowhere);
        ck_assert(proa_item(proa_full(PROA_SHAPE(1), 7.0)) == 7);
    }
    proa_device_memory m;
    const proa_device_table *table = proa_find_device("example:0");
    table->memory(table->context, &m, false);
    ck_assert_int_eq(m.live_bytes, 0);
}
END_TEST

START_TEST(what_is_refused)
{
    load();
    PROA_SCOPE {
        proa_tensor *x = proa_full(PROA_SHAPE(2, 3), 1.0), *here = proa_to_device(x, "cpu");
        ck_assert_ptr_null(proa_add(x, here));
        expect(PROA_ERR_INVALID_ARGUMENT, "one device");
        ck_assert_ptr_null(proa_matmul(x, x, .transpose_y = true));
        expect(PROA_ERR_UNSUPPORTED, "FLAGS_device_fallback");
        proa_tensor *number = proa_to_device(proa_full(PROA_SHAPE(1), 2.0), "cpu");
        ck_assert_int_eq(proa_set_flag("device_fallback", "1"), PROA_OK);
        ck_assert_str_eq(proa_device_of(proa_multiply(x, number)),
                         "example:0"); /* a number may be anywhere */
        proa_tensor *product = proa_matmul(x, x, .transpose_y = true);
        ck_assert(proa_item(proa_sum(product)) == 12);
        ck_assert_ptr_null(proa_add_(here, x));
        expect(PROA_ERR_INVALID_ARGUMENT, "one device");
        ck_assert_int_eq(proa_set_flag("check_nan_inf", "1"), PROA_OK);
        ck_assert_ptr_null(proa_log(proa_scale(x, .scale = PROA_SCALAR(-1.0))));
        expect(PROA_ERR_NUMERIC, "log");
        ck_assert_int_eq(proa_set_flag("check_nan_inf", "0"), PROA_OK);
        ck_assert_int_eq(proa_set_flag("device_fallback", "0"), PROA_OK);
    }
}
END_TEST

static double train(const char *device)
{
    proa_set_device("cpu");
    proa_seed(3);
    double last = 0;
    PROA_SCOPE {
        proa_tensor *w = proa_uniform(PROA_SHAPE(4, 2)), *x = proa_uniform(PROA_SHAPE(8, 4));
        proa_set_device(device);
        w = proa_to_device(w, device);
        x = proa_to_device(x, device);
        proa_set_stop_gradient(w, false);
        proa_optimizer *opt = proa_adamw(PROA_LIST(w), .lr = 0.1);
        for (int i = 0; i < 5; i++)
            PROA_SCOPE {
                proa_tensor *loss = proa_mean(proa_square(proa_matmul(x, w)));
                proa_backward(loss);
                proa_step(opt);
                proa_zero_grad(w);
                last = proa_item(loss);
            }
        proa_optimizer_free(opt);
    }
    ck_assert_str_eq(proa_error_message(), "");
    return last;
}

START_TEST(training)
{
    load();
    ck_assert_int_eq(proa_set_flag("device_fallback", "1"), PROA_OK);
    double there = train("example:0"), here = train("cpu");
    ck_assert(there == here && here > 0);
    ck_assert_int_eq(proa_set_flag("device_fallback", "0"), PROA_OK);
}
END_TEST

SUITE("device", what_is_no_plugin, tensors_there, what_is_refused, training)
