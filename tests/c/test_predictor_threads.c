/* Predictors on many threads: a run has the count of its config or of its caller, who keeps his own. */
#include "suite.h"

#include <proa.h>
#include <proa/threads.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 512, WIDTH = 256 };

static proa_tensors forward(proa_tensors in, void *weight)
{
    proa_tensors out = {1, proa_scope_alloc(sizeof *out.at)};
    out.at[0] = proa_softmax(proa_relu(proa_matmul(in.at[0], weight)));
    return out;
}

static float input[ROWS * WIDTH];

static void save_model(char prefix[256])
{
    snprintf(prefix, 256, "%s/%d_threads", test_folder(), (int)getpid());
    for (int i = 0; i < ROWS * WIDTH; i++) input[i] = (float)(i * 37 % 101) / 50 - 1;
    PROA_SCOPE {
        proa_tensor *weight = proa_from_data(input, PROA_SHAPE(WIDTH, WIDTH), PROA_F32);
        ck_assert_int_eq(proa_set_name(weight, "w"), PROA_OK);
        proa_input_spec spec = {"x", PROA_SHAPE(ROWS, WIDTH), PROA_F32};
        proa_program *p = proa_capture(forward, &spec, 1, weight);
        ck_assert_msg(p != NULL, "%s", proa_error_message());
        ck_assert_int_eq(proa_program_save(p, prefix), PROA_OK);
        proa_program_free(p);
    }
}

static proa_predictor *predictor_with(const char *prefix, int threads)
{
    char model[300], params[300];
    snprintf(model, sizeof model, "%s.pdmodel", prefix);
    snprintf(params, sizeof params, "%s.pdiparams", prefix);
    proa_config *c = proa_config_new();
    ck_assert_int_eq(proa_config_set_text(c, PROA_CONFIG_MODEL_FILE, model), PROA_OK);
    ck_assert_int_eq(proa_config_set_text(c, PROA_CONFIG_PARAMS_FILE, params), PROA_OK);
    ck_assert_int_eq(proa_config_set(c, PROA_CONFIG_CPU_THREADS, threads), PROA_OK);
    proa_predictor *p = proa_predictor_new(c);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    proa_config_free(c);
    return p;
}

static void note_threads(const char *op, const char *variable, const proa_tensor *value, void *context)
{
    (void)op, (void)variable, (void)value;
    *(int *)context = proa_threads();
}

/* Runs it and returns how many threads its ops had. */
static int run(proa_predictor *p, float *out)
{
    int threads = 0;
    ck_assert_int_eq(proa_predictor_set_hook(p, note_threads, &threads), PROA_OK);
    proa_handle *in = proa_predictor_input(p, 0);
    ck_assert_int_eq(proa_handle_reshape(in, PROA_SHAPE(ROWS, WIDTH)), PROA_OK);
    ck_assert_int_eq(proa_handle_copy_in(in, input, PROA_F32), PROA_OK);
    ck_assert_msg(proa_predictor_run(p) == PROA_OK, "%s", proa_error_message());
    ck_assert_int_eq(proa_handle_copy_out(proa_predictor_output(p, 0), out, PROA_F32), PROA_OK);
    return threads;
}

START_TEST(a_run_leaves_the_callers_count_alone)
{
    static float out[ROWS * WIDTH];
    char prefix[256];
    save_model(prefix);
    proa_predictor *three = predictor_with(prefix, 3), *callers = predictor_with(prefix, 0);
    int all = proa_threads();
    const char *reason = proa_threads_info().reason;
    ck_assert_int_eq(run(three, out), 3);
    ck_assert_int_eq(proa_threads(), all);
    ck_assert_str_eq(proa_threads_info().reason, reason);
    ck_assert_int_eq(proa_set_flag("num_threads", "5"), PROA_OK); /* still heeded by this thread */
    ck_assert_int_eq(run(callers, out), 5);
    ck_assert_int_eq(run(three, out), 3);
    ck_assert_int_eq(proa_threads(), 5);
    proa_set_threads(2);
    ck_assert_int_eq(run(callers, out), 2);
    ck_assert_int_eq(run(three, out), 3);
    ck_assert_int_eq(proa_threads(), 2);
    proa_predictor_free(three), proa_predictor_free(callers);
}
END_TEST

typedef struct user {
    proa_predictor *clone;
    int threads; /* the calling thread's */
    int wanted;  /* its runs' */
    const float *want;
    bool right;
} user;

static void *use(void *p)
{
    user *u = p;
    float *out = malloc(sizeof input);
    proa_set_threads(u->threads);
    u->right = out != NULL;
    for (int i = 0; u->right && i < 10; i++)
        u->right = run(u->clone, out) == u->wanted && proa_threads() == u->threads &&
                   memcmp(out, u->want, sizeof input) == 0;
    free(out);
    return NULL;
}

START_TEST(clones_have_counts_of_their_own)
{
    enum { USERS = 6 };
    static float want[ROWS * WIDTH];
    char prefix[256];
    save_model(prefix);
    proa_set_flag("deterministic", "1"); /* bits whatever the count */
    proa_predictor *fixed = predictor_with(prefix, 2), *callers = predictor_with(prefix, 0);
    run(fixed, want);
    user users[USERS];
    pthread_t threads[USERS];
    for (int i = 0; i < USERS; i++) {
        users[i] =
            (user){.clone = proa_predictor_clone(i % 2 ? callers : fixed), .threads = 1 + i, .want = want};
        users[i].wanted = i % 2 ? users[i].threads : 2;
    }
    proa_predictor_free(fixed), proa_predictor_free(callers); /* clones outlive them */
    for (int i = 0; i < USERS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    for (int i = 0; i < USERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(users[i].right);
        proa_predictor_free(users[i].clone);
    }
}
END_TEST

SUITE("predictors on threads", a_run_leaves_the_callers_count_alone, clones_have_counts_of_their_own)
