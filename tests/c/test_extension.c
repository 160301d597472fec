/* Custom ops from a library in C++ (tests/extension/ops.cc): calls from C, a captured program, libraries
 * that the process opened itself, allocations that fail, and threads that load one library at once. */
#include "lists.h"
#include "suite.h"

#include <proa.h>
#include <proa/extension.h>
#include <proa/wire.h>

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static proa_tensor *numbers(void) { return proa_from_data((float[]){-1, 2, 3}, PROA_SHAPE(3), PROA_F32); }

/* ext_cube(x), eagerly or captured. */
static proa_tensor *cube(proa_tensor *x)
{
    const char *in[] = {"x"}, *out[] = {"out"};
    const proa_op_slot x_slot = {"X", 1, in}, out_slot = {"Out", 1, out};
    const proa_op_desc op = {
        .type = "ext_cube", .n_inputs = 1, .n_outputs = 1, .inputs = &x_slot, .outputs = &out_slot};
    proa_named_tensor named[] = {{"x", x}, {"out", NULL}};
    return proa_op_call(&op, named, 2) == PROA_OK ? named[1].tensor : NULL;
}

static void check_values(const proa_tensor *t, float a, float b, float c)
{
    float got[3] = {0};
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(proa_copy_out(t, got, sizeof got), PROA_OK);
    ck_assert_float_eq(got[0], a);
    ck_assert_float_eq(got[1], b);
    ck_assert_float_eq(got[2], c);
}

START_TEST(loads_and_calls)
{
    const char *const *names = proa_load_extension(EXTENSION_OPS);
    ck_assert_ptr_nonnull(names);
    ck_assert_str_eq(names[0], "ext_cube");
    size_t n = 0;
    while (names[n]) n++;
    ck_assert_uint_eq(n, 6);
    ck_assert_ptr_eq(proa_load_extension(EXTENSION_OPS), names);
    ck_assert_ptr_nonnull(proa_find_op("ext_cube_grad_grad"));
    proa_tensor *x = numbers();
    proa_set_stop_gradient(x, false);
    proa_tensor *y = cube(x);
    check_values(y, -1, 8, 27);
    proa_backward(proa_sum(y));
    check_values(proa_grad_of(x), 3, 12, 27);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(refuses_what_is_none)
{
    ck_assert_ptr_null(proa_load_extension(NULL));
    ck_assert_int_eq(proa_error(), PROA_ERR_NO_FILE);
    ck_assert_ptr_null(proa_load_extension(EXTENSION_OPS)); /* an error is set */
    proa_clear_error();
    ck_assert_ptr_null(proa_load_extension("/no/such/library.so"));
    ck_assert_int_eq(proa_error(), PROA_ERR_NO_FILE);
    proa_clear_error();
}
END_TEST

static proa_tensors doubled(proa_tensors in, void *context)
{
    (void)context;
    proa_tensors out = {1, proa_scope_alloc(sizeof(proa_tensor *))};
    if (out.at) out.at[0] = proa_add(cube(in.at[0]), in.at[0]);
    return out;
}

START_TEST(runs_in_programs)
{
    ck_assert_ptr_nonnull(proa_load_extension(EXTENSION_OPS));
    proa_input_spec spec = {.shape = PROA_SHAPE(-1)};
    proa_program *p = proa_capture(doubled, &spec, 1, NULL);
    proa_executor *e = p ? proa_executor_new(p) : NULL;
    proa_tensors out = e ? proa_executor_run(e, PROA_LIST(numbers())) : (proa_tensors){0, NULL};
    ck_assert_int_eq(out.count, 1);
    check_values(out.at[0], -2, 10, 30);
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(finds_linked_libraries)
{
    ck_assert_int_eq(proa_load_linked_extensions(), PROA_OK);
    ck_assert_ptr_null(proa_find_op("ext_cube"));
    ck_assert_ptr_nonnull(dlopen(EXTENSION_OPS, RTLD_NOW | RTLD_LOCAL));
    ck_assert_int_eq(proa_load_linked_extensions(), PROA_OK);
    check_values(cube(numbers()), -1, 8, 27);
    ck_assert_ptr_nonnull(proa_load_extension(EXTENSION_OPS));
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(survives_failed_allocations)
{
    int64_t failed = 0;
    for (int64_t n = 0;; n++) {
        proa_memory_fail_after(n);
        PROA_SCOPE {
            proa_tensor *x = numbers();
            if (x) proa_set_stop_gradient(x, false);
            proa_tensor *y = proa_load_extension(EXTENSION_OPS) ? cube(x) : NULL;
            if (y) proa_backward(proa_sum(y));
            bool whole = proa_memory_fail_after(-1) <= n;
            if (proa_error()) {
                ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
                failed++;
            } else if (whole) {
                check_values(proa_grad_of(x), 3, 12, 27);
                n = -2; /* all allocations of the call have failed once */
            }
        }
        proa_clear_error();
        if (n < -1) break;
    }
    ck_assert_int_gt(failed, 5);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static void *load_and_call(void *context)
{
    bool *good = context;
    PROA_SCOPE {
        proa_tensor *y = proa_load_extension(EXTENSION_OPS) ? cube(numbers()) : NULL;
        *good = y && proa_item(proa_sum(y)) == 34;
    }
    return NULL;
}

START_TEST(is_loaded_once_by_threads)
{
    pthread_t threads[4];
    bool good[4] = {false};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, load_and_call, &good[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) ck_assert(good[i]);
}
END_TEST

SUITE("extension", loads_and_calls, refuses_what_is_none, runs_in_programs, finds_linked_libraries,
      survives_failed_allocations, is_loaded_once_by_threads)
