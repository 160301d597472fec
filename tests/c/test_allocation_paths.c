/* Allocations fail in scenarios: recurrent nets, loss scaling, recomputation, branches and loops, files,
 * readers, loaders, ciphers, predictors and their clones. Each ends with OUT_OF_MEMORY or with its number,
 * leaks nothing, and gives its number afterwards. */
#include "lists.h"
#include "suite.h"

#include "core/kernel_cache.h"

#include <proa.h>

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 150 }; /* allocations of a scenario that fail, evenly spread */

typedef double (*scenario)(void);

static const char *path(const char *name)
{
    static char text[300];
    const char *folder = getenv("PROA_TEST_TMP");
    snprintf(text, sizeof text, "%s/%d_%s", folder ? folder : "/tmp", (int)getpid(), name);
    return text;
}

static double number(proa_tensor *t) { return t && proa_error() == PROA_OK ? proa_item(t) : NAN; }

/* The scenario's number; NaN if it failed, for want of memory alone. */
static double outcome(scenario run, int64_t at, int64_t *allocations)
{
    double value = NAN;
    proa_memory_fail_after(at);
    PROA_SCOPE
        value = run();
    *allocations = proa_memory_fail_after(-1);
    if (proa_error() != PROA_OK) {
        ck_assert_msg(proa_error() == PROA_ERR_OUT_OF_MEMORY, "allocation %lld: %s", (long long)at,
                      proa_error_message());
        proa_clear_error();
        value = NAN;
    }
    ck_assert(proa_recording() && proa_door_is_open(PROA_DOOR_CONVERT));
    proa__kernel_cache_clear();
    return value;
}

static void fail_each(scenario run)
{
    proa_set_threads(1);
    int64_t count = 0, ignored = 0, failed = 0, tried = 0;
    double want = outcome(run, -1, &ignored); /* what a process makes once stays */
    ck_assert_msg(want == outcome(run, -1, &count) && count > 2, "%.17g, %lld allocations", want,
                  (long long)count);
    int64_t live = proa_memory_get_stats().live_bytes, stride = count / TRIES + 1;
    for (int64_t at = 0; at < count; at += stride, tried++) {
        double got = outcome(run, at, &ignored);
        ck_assert_msg(isnan(got) || got == want, "allocation %lld of %lld: %.17g, not %.17g", (long long)at,
                      (long long)count, got, want);
        failed += isnan(got);
        int64_t more = proa_memory_get_stats().live_bytes - live;
        ck_assert_msg(more == 0, "allocation %lld of %lld: %lld bytes leak", (long long)at, (long long)count,
                      (long long)more);
        got = outcome(run, -1, &ignored);
        ck_assert_msg(got == want, "after allocation %lld of %lld failed: %.17g, not %.17g", (long long)at,
                      (long long)count, got, want);
    }
    ck_assert_int_gt(failed, tried * 3 / 4);
    ck_assert_int_eq(proa_finish(stderr), 0);
}

static proa_tensor *labels(void) { return proa_from_data((int64_t[]){0, 2}, PROA_SHAPE(2), PROA_I64); }

/* ---- training -------------------------------------------------------------------------- */

static double recurrent(void)
{
    proa_seed(2);
    proa_layer *lstm = proa_lstm_layer(4, 6, .layers = 2, .bidirectional = true),
               *out = proa_linear_layer(12, 3);
    proa_optimizer *opt = proa_adam(proa_parameters(lstm), .lr = 0.1);
    proa_tensor *x = ramp(PROA_SHAPE(2, 5, 4), 0),
                *lengths = proa_from_data((int64_t[]){5, 3}, PROA_SHAPE(2), PROA_I64);
    double value = 0;
    for (int i = 0; i < 2; i++)
        PROA_SCOPE {
            proa_rnn_output made = proa_rnn_forward(lstm, x, PROA_NONE, PROA_NONE, lengths);
            proa_tensor *loss =
                proa_cross_entropy(proa_forward(out, proa_mean(made.out, .axis = PROA_INTS(1))), labels());
            proa_backward(loss);
            proa_step(opt);
            proa_clear_grads(opt);
            value = number(loss);
        }
    proa_optimizer_free(opt);
    proa_layer_free(lstm);
    proa_layer_free(out);
    return value;
}

static double scaled(void)
{
    proa_seed(3);
    proa_layer *net = proa_sequential(proa_conv2d_layer(1, 4, 3), proa_batch_norm_layer(4), proa_relu_layer(),
                                      proa_flatten_layer(), proa_linear_layer(16, 3));
    proa_amp_decorate(proa_parameters(net), PROA_BF16);
    proa_optimizer *opt = proa_lamb(proa_parameters(net), .lr = 0.1);
    proa_scaler *scaler = proa_scaler_new(.init_scale = 64);
    double value = 0;
    for (int i = 0; i < 2; i++)
        PROA_SCOPE {
            proa_tensor *scores = NULL, *x = ramp(PROA_SHAPE(2, 1, 4, 4), 0);
            PROA_AUTOCAST(PROA_AMP_O2, .dtype = PROA_BF16) scores = proa_forward(net, x);
            proa_tensor *loss = proa_cross_entropy(proa_cast(scores, PROA_F32), labels());
            proa_backward(proa_scaler_scale(scaler, loss));
            proa_scaler_step(scaler, opt);
            proa_clear_grads(opt);
            value = number(loss);
        }
    proa_scaler_free(scaler);
    proa_optimizer_free(opt);
    proa_layer_free(net);
    return value;
}

static proa_tensors forward(proa_tensors in, void *net)
{
    proa_tensors out = {1, proa_scope_alloc(sizeof *out.at)};
    if (!out.at) return (proa_tensors){0, NULL};
    out.at[0] = proa_forward(net, in.at[0]);
    return out;
}

static double recomputed(void)
{
    proa_seed(4);
    proa_layer *net = proa_transformer_layer(8, 2, 16, .dropout = 0.2);
    proa_tensor *x = ramp(PROA_SHAPE(2, 3, 8), 0);
    proa_set_stop_gradient(x, false);
    proa_tensors made = proa_recompute(forward, PROA_LIST(x), net, NULL);
    proa_backward(made.count ? proa_sum(made.at[0]) : NULL);
    double value = proa_error() ? NAN : number(proa_sum(proa_grad_of(x)));
    proa_layer_free(net);
    return value;
}

/* ---- programs -------------------------------------------------------------------------- */

static proa_tensors doubled(proa_tensors in, void *x)
{
    (void)in;
    return one(proa_multiply(x, x));
}

static proa_tensors raised(proa_tensors in, void *x)
{
    (void)in;
    return one(proa_exp(x));
}

static proa_tensors is_small(proa_tensors in, void *context)
{
    (void)context;
    return one(proa_less_than(proa_max(in.at[0]), proa_full(PROA_SHAPE(1), 50)));
}

static proa_tensors grown(proa_tensors in, void *w)
{
    return one(proa_add(proa_multiply(in.at[0], w), proa_full_like(in.at[0], 1.5)));
}

static proa_tensors controlled(proa_tensors in, void *w)
{
    proa_tensor *x = proa_multiply(in.at[0], w);
    proa_tensors chosen =
        proa_cond(proa_greater_than(proa_sum(x), proa_full(PROA_SHAPE(1), 0)), doubled, raised, x);
    return chosen.count ? proa_while_loop(is_small, grown, chosen, w) : chosen;
}

static double branches(void)
{
    proa_tensor *w = proa_full(PROA_SHAPE(3), 1.7), *x = ramp(PROA_SHAPE(2, 3), 0);
    proa_set_stop_gradient(w, false);
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3)};
    proa_compiled *c = proa_compile(controlled, &spec, 1, w, true);
    proa_tensors made = proa_compiled_call(c, PROA_LIST(x));
    proa_backward(made.count ? proa_sum(made.at[0]) : NULL);
    double value = proa_error() ? NAN : number(proa_sum(proa_grad_of(w)));
    proa_compiled_free(c);
    return value;
}

static double built(void)
{
    proa_program *p = proa_program_new();
    proa_program *was = proa_program_open(p);
    proa_input_spec spec = {.name = "x", .shape = PROA_SHAPE(-1, 4)};
    proa_tensor *x = proa_program_data(p, &spec);
    proa_tensor *w = proa_program_persistable(p, "w", PROA_SHAPE(4, 2), PROA_F32);
    proa_tensor *loss = proa_mean(proa_tanh(proa_matmul(x, w)));
    proa_program_open(was);
    proa_tensors none = {0, NULL};
    proa_tensors grads = proa_program_gradients(p, one(loss), one(w), none, none);
    proa_program_bind(p, "w", ramp(PROA_SHAPE(4, 2), 0));
    proa_program *test = proa_program_clone(p, true);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.outputs = grads});
    double value = 0;
    for (int64_t rows = 2; rows < 4; rows++) {
        proa_tensors made = proa_executor_run(e, one(ramp(PROA_SHAPE(rows, 4), 0)));
        value += made.count ? number(proa_sum(made.at[0])) : NAN;
    }
    proa_executor_free(e);
    proa_program_free(test);
    proa_program_free(p);
    return value;
}

#if defined(PROA_HAVE_PROTOBUF_C)
/* A program with a branch and a loop as an ONNX model. */
static double converted(void)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3)};
    proa_program *p = proa_capture(controlled, &spec, 1, proa_full(PROA_SHAPE(3), 1.7));
    proa_status status = p ? proa_onnx_export(p, path("model.onnx"), 13) : proa_error();
    proa_program_free(p);
    return status == PROA_OK ? 1 : NAN;
}
#endif

/* ---- files ----------------------------------------------------------------------------- */

static double saved(void)
{
    proa_seed(5);
    proa_layer *net = proa_sequential(proa_linear_layer(4, 3), proa_relu_layer(), proa_linear_layer(3, 2));
    proa_optimizer *opt = proa_momentum(proa_parameters(net), .lr = 0.1);
    double value = NAN;
    PROA_SCOPE {
        proa_backward(proa_mean(proa_forward(net, ramp(PROA_SHAPE(2, 4), 0))));
        proa_step(opt);
        proa_status status = proa_checkpoint_save(path("state"), net, opt);
        if (!status) status = proa_checkpoint_load(path("state"), net, opt);
        if (!status) status = proa_export(net, path("model"), PROA_INPUT(-1, 4));
        proa_program *p = status ? NULL : proa_program_load(path("model"));
        proa_executor *e = proa_executor_new(p);
        proa_tensors made = proa_executor_run(e, one(ramp(PROA_SHAPE(2, 4), 0)));
        value = made.count ? number(proa_sum(made.at[0])) : NAN;
        proa_executor_free(e);
        proa_program_free(p);
    }
    proa_optimizer_free(opt);
    proa_layer_free(net);
    return value;
}

static double epoch(proa_loader *l)
{
    double sum = 0;
    proa_each (batch, l) sum += number(proa_sum(batch->x));
    double value = l && proa_error() == PROA_OK ? sum : NAN;
    proa_loader_free(l);
    return value;
}

static double table(void)
{
    static const char text[] = "a,b,c\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n9,10,2\n";
    proa_dataset *d = proa_csv_dataset_memory(text, sizeof text - 1, (proa_data_opts){.scale = 0.5});
    double sum = epoch(d ? proa_loader_new(d, .batch = 2, .shuffle = true, .seed = 3) : NULL);
    return sum +
           epoch(proa_load_csv("examples/data/digits_train.csv", .batch = 256, .prefetch = PROA_NO_PREFETCH));
}

static double pixels(void)
{
    uint8_t bytes[16 + 24] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 9, 8, 7, 6};
    double sum = number(proa_sum(proa_cast(proa_read_idx_memory(bytes, sizeof bytes), PROA_F32)));
    proa_text *text = proa_text_from_memory("to be or not to be", 18, false);
    proa_tensor *tokens = text ? proa_text_encode(text, "not") : NULL;
    sum += number(proa_sum(proa_cast(tokens, PROA_F32)));
    sum += epoch(text ? proa_load_text(text, .window = 4, .batch = 2) : NULL);
    proa_text_free(text);
    return sum;
}

static double enciphered(void)
{
    void *hidden = NULL, *shown = NULL;
    size_t n = 0, m = 0;
    proa_cipher *c = proa_cipher_new(NULL);
    proa_status status =
        c ? proa_cipher_encrypt(c, "sixteen bytes do", 16, "0123456789abcdef", 16, &hidden, &n)
          : proa_error();
    if (!status) status = proa_cipher_decrypt(c, hidden, n, "0123456789abcdef", 16, &shown, &m);
    double value = !status && m == 16 && memcmp(shown, "sixteen bytes do", 16) == 0 ? 1 : NAN;
    proa_cipher_release(hidden, n);
    proa_cipher_release(shown, m);
    proa_cipher_free(c);
    return value;
}

/* ---- predictors ------------------------------------------------------------------------ */

static double predict(proa_predictor *p, int64_t rows)
{
    float in[4 * 16], out[4 * 2];
    for (int i = 0; i < 4 * 16; i++) in[i] = (float)(i % 7) - 3;
    proa_handle *x = proa_predictor_input(p, 0);
    if (!p || proa_handle_reshape(x, PROA_SHAPE(rows, 1, 4, 4)) || proa_handle_copy_in(x, in, PROA_F32) ||
        proa_predictor_run(p) || proa_handle_copy_out(proa_predictor_output(p, 0), out, PROA_F32))
        return NAN;
    return out[0] + out[2 * rows - 1];
}

static proa_config *configured(void)
{
    char model[320], params[320];
    snprintf(model, sizeof model, "%s.pdmodel", path("served"));
    snprintf(params, sizeof params, "%s.pdiparams", path("served"));
    proa_config *c = proa_config_new();
    proa_status status = c ? proa_config_set_text(c, PROA_CONFIG_MODEL_FILE, model) : proa_error();
    if (!status) status = proa_config_set_text(c, PROA_CONFIG_PARAMS_FILE, params);
    if (!status) return c;
    proa_config_free(c);
    return NULL;
}

static double served(void)
{
    proa_config *c = configured();
    proa_predictor *p = c ? proa_predictor_new(c) : NULL, *clone = p ? proa_predictor_clone(p) : NULL;
    double value = clone ? predict(p, 1) + predict(clone, 2) + predict(p, 3) : NAN;
    proa_predictor_free(p); /* the clone goes on */
    value += clone ? predict(clone, 4) : NAN;
    proa_predictor_free(clone);
    proa_config_free(c);
    return value;
}

static double pooled(void)
{
    proa_config *c = configured();
    proa_pool *pool = c ? proa_pool_new(c, 3) : NULL;
    double value = 0;
    for (int64_t i = 0; i < 3; i++) value += pool ? predict(proa_pool_at(pool, i), 1 + i) : NAN;
    proa_pool_free(pool);
    proa_config_free(c);
    return value;
}

/* A clone on a thread of its own, whose error is that thread's. */
static void *use_clone(void *p)
{
    static double value;
    proa_set_threads(1);
    value = predict(p, 2);
    ck_assert(proa_error() == PROA_OK || proa_error() == PROA_ERR_OUT_OF_MEMORY);
    proa_clear_error();
    return &value;
}

static double shared(void)
{
    proa_config *c = configured();
    proa_predictor *p = c ? proa_predictor_new(c) : NULL, *clone = p ? proa_predictor_clone(p) : NULL;
    pthread_t thread;
    void *theirs = NULL;
    double value = NAN;
    if (clone) {
        ck_assert_int_eq(pthread_create(&thread, NULL, use_clone, clone), 0);
        pthread_join(thread, &theirs);
        value = predict(p, 1) + *(double *)theirs;
    }
    proa_predictor_free(clone);
    proa_predictor_free(p);
    proa_config_free(c);
    return value;
}

static void serve_model(void)
{
    proa_seed(6);
    proa_layer *net =
        proa_sequential(proa_conv2d_layer(1, 3, 3, .padding = 1), proa_batch_norm_layer(3), proa_relu_layer(),
                        proa_max_pool2d_layer(2), proa_flatten_layer(), proa_linear_layer(12, 2));
    proa_eval(net);
    ck_assert_msg(proa_export(net, path("served"), PROA_INPUT(-1, 1, 4, 4)) == PROA_OK, "%s",
                  proa_error_message());
    proa_layer_free(net);
}

START_TEST(training)
{
    fail_each(recurrent);
    fail_each(scaled);
    fail_each(recomputed);
}
END_TEST

START_TEST(programs)
{
    fail_each(branches);
    fail_each(built);
}
END_TEST

START_TEST(files)
{
    fail_each(saved);
    fail_each(table);
    fail_each(pixels);
#if defined(PROA_HAVE_PROTOBUF_C)
    fail_each(converted);
#endif
    proa_cipher *c = proa_cipher_new(NULL);
    proa_cipher_free(c);
    if (c) fail_each(enciphered);
    else proa_clear_error(); /* built without libcrypto */
}
END_TEST

START_TEST(predictors)
{
    serve_model();
    fail_each(served);
    fail_each(pooled);
    fail_each(shared);
}
END_TEST

SUITE("allocation_paths", training, programs, files, predictors)
