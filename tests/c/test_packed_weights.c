/* Weights that kernels pack are in memory once, shared by plans and clones, and read from there by whoever
 * asks for them. */
#include "lists.h"
#include "suite.h"

#include <proa.h>

#include <proa/inference.h>

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 500, ROWS = 40, CLONES = 3 }; /* no multiple of a vector's length */
static const int64_t weight_bytes = (int64_t)SIDE * SIDE * 4;

static float weights[2][SIDE * SIDE], input[ROWS * SIDE], want[ROWS * SIDE];
static char prefix[256], model[300], params[300];

static proa_tensors forward(proa_tensors in, void *context)
{
    proa_tensor **w = context;
    return one(proa_matmul(proa_relu(proa_matmul(in.at[0], w[0])), w[1]));
}

/* Saves the model; its file was written long ago, so that weights are read when they are first used. */
static void save_model(void)
{
    snprintf(prefix, sizeof prefix, "%s/%d_packed", test_folder(), (int)getpid());
    snprintf(model, sizeof model, "%s.pdmodel", prefix);
    snprintf(params, sizeof params, "%s.pdiparams", prefix);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SIDE * SIDE; i++) weights[k][i] = (float)(i * 37 % (101 + k)) / 700 - 0.07f;
    for (int i = 0; i < ROWS * SIDE; i++) input[i] = (float)(i * 29 % 97) / 50 - 1;
    PROA_SCOPE {
        proa_tensor *w[2];
        for (int k = 0; k < 2; k++) {
            w[k] = proa_from_data(weights[k], PROA_SHAPE(SIDE, SIDE), PROA_F32);
            ck_assert_int_eq(proa_set_name(w[k], k ? "second" : "first"), PROA_OK);
        }
        proa_input_spec spec = {"x", PROA_SHAPE(-1, SIDE), PROA_F32};
        proa_program *p = proa_capture(forward, &spec, 1, w);
        ck_assert_msg(p != NULL, "%s", proa_error_message());
        ck_assert_int_eq(proa_program_save(p, prefix), PROA_OK);
        proa_program_free(p);
    }
    const struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, params, old, 0), 0);
}

static int64_t live(void) { return proa_memory_get_stats().live_bytes; }

/* Runs the first n rows; false: an error. */
static bool run(proa_executor *e, int64_t n, float *out)
{
    PROA_SCOPED;
    proa_tensor *x = proa_from_data(input, PROA_SHAPE(n, SIDE), PROA_F32);
    proa_tensors results = proa_executor_run(e, one(x));
    return results.count == 1 && proa_copy_out(results.at[0], out, (size_t)n * SIDE * 4) == PROA_OK;
}

static proa_executor *executor_of(proa_program *p)
{
    return proa_executor_with(p, (proa_executor_opts){.frozen = true});
}

START_TEST(a_packed_weight_keeps_its_bits)
{
    static float out[ROWS * SIDE];
    save_model();
    int64_t before = live();
    proa_program *p = proa_program_load(prefix);
    proa_executor *e = executor_of(p);
    ck_assert_msg(run(e, ROWS, want), "%s", proa_error_message());
    ck_assert_int_lt(2 * (live() - before), 5 * weight_bytes);
    ck_assert_int_eq(truncate(params, 0), 0); /* nothing is read from there again */
    ck_assert(run(e, 2, out));                /* another plan */
    for (int i = 0; i < 2 * SIDE; i++) ck_assert_float_eq_tol(out[i], want[i], 1e-3f);
    ck_assert_int_lt(2 * (live() - before), 5 * weight_bytes);
    for (int k = 0; k < 2; k++) {
        const proa_tensor *w = proa_program_value(p, k ? "second" : "first");
        ck_assert(memcmp(proa_data((proa_tensor *)(uintptr_t)w), weights[k], sizeof weights[k]) == 0);
    }
    ck_assert(run(e, ROWS, out));
    ck_assert(memcmp(out, want, sizeof want) == 0);
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static bool predict(proa_predictor *p, float *out)
{
    proa_handle *x = proa_predictor_input(p, 0), *y = proa_predictor_output(p, 0);
    return proa_handle_reshape(x, PROA_SHAPE(ROWS, SIDE)) == PROA_OK &&
           proa_handle_copy_in(x, input, PROA_F32) == PROA_OK && proa_predictor_run(p) == PROA_OK &&
           proa_handle_copy_out(y, out, PROA_F32) == PROA_OK;
}

static void *use(void *clone)
{
    float *out = malloc(sizeof want);
    bool right = out != NULL;
    for (int i = 0; right && i < 4; i++) right = predict(clone, out) && memcmp(out, want, sizeof want) == 0;
    free(out);
    return right ? clone : NULL;
}

static proa_predictor *predictor(void)
{
    proa_config *c = proa_config_new();
    ck_assert_int_eq(proa_config_set_text(c, PROA_CONFIG_MODEL_FILE, model), PROA_OK);
    ck_assert_int_eq(proa_config_set_text(c, PROA_CONFIG_PARAMS_FILE, params), PROA_OK);
    proa_predictor *p = proa_predictor_new(c);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    proa_config_free(c);
    return p;
}

START_TEST(clones_on_threads_share_what_is_packed)
{
    save_model();
    proa_predictor *p = predictor(), *clones[CLONES];
    ck_assert(predict(p, want));
    proa_predictor_free(p);
    int64_t before = live();
    p = predictor();
    pthread_t threads[CLONES];
    for (int i = 0; i < CLONES; i++) clones[i] = proa_predictor_clone(p);
    for (int i = 0; i < CLONES; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use, clones[i]), 0);
    const proa_program *program = proa_predictor_program(p);
    for (int k = 0; k < 2; k++) { /* meanwhile another reads the weights */
        proa_tensor *w = proa_program_value(program, k ? "second" : "first");
        if (w) ck_assert(memcmp(proa_data(w), weights[k], sizeof weights[k]) == 0);
    }
    for (int i = 0; i < CLONES; i++) {
        void *right;
        pthread_join(threads[i], &right);
        ck_assert(right != NULL);
    }
    /* once packed, and once as the reader above has it */
    ck_assert_int_lt(live() - before, 6 * weight_bytes);
    for (int i = 0; i < CLONES; i++) proa_predictor_free(clones[i]);
    proa_predictor_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(a_first_run_may_fail_at_any_allocation)
{
    static float out[ROWS * SIDE];
    save_model();
    proa_program *p = proa_program_load(prefix);
    proa_executor *e = executor_of(p);
    ck_assert(run(e, ROWS, want));
    proa_executor_free(e);
    proa_program_free(p);
    int failed = 0;
    for (int64_t n = 0, more = 1; more; n++) {
        p = proa_program_load(prefix);
        e = executor_of(p);
        ck_assert_ptr_nonnull(e);
        proa_memory_fail_after(n);
        more = !run(e, ROWS, out);
        proa_memory_fail_after(-1);
        if (more) {
            ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
            proa_clear_error();
            failed++;
            ck_assert_msg(run(e, ROWS, out), "%s", proa_error_message());
        }
        ck_assert(memcmp(out, want, sizeof want) == 0);
        proa_executor_free(e);
        proa_program_free(p);
    }
    ck_assert_int_gt(failed, 10);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static proa_tensors whole_input(int64_t i, void *context)
{
    (void)i, (void)context;
    return one(proa_from_data(input, PROA_SHAPE(ROWS, SIDE), PROA_F32));
}

START_TEST(calibration_keeps_no_floats)
{
    static float out[ROWS * SIDE];
    save_model();
    int64_t before = live();
    proa_program *p = proa_program_load(prefix);
    proa_samples samples = {1, whole_input, NULL};
    ck_assert_int_eq(proa_program_quantize(p, samples, (proa_quantize_opts){0}, NULL), PROA_OK);
    ck_assert_int_lt(live() - before, weight_bytes / 2);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.frozen = true, .passes = "all,int8"});
    ck_assert_msg(run(e, ROWS, out), "%s", proa_error_message());
#if defined(PROA_HAVE_ONEDNN) && defined(__x86_64__)
    /* Other kernels make floats of the integers, once: ops/int8/cpu/products.c. Two weights of a quarter
     * each, perhaps packed. */
    if (__builtin_cpu_supports("avx512vnni")) ck_assert_int_lt(2 * (live() - before), 3 * weight_bytes);
#endif
    const proa_tensor *w = proa_program_value(p, "first");
    ck_assert(memcmp(proa_data((proa_tensor *)(uintptr_t)w), weights[0], sizeof weights[0]) == 0);
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

SUITE("packed weights", calibration_keeps_no_floats, a_packed_weight_keeps_its_bits,
      clones_on_threads_share_what_is_packed, a_first_run_may_fail_at_any_allocation)
