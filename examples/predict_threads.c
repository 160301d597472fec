/* One loaded model for many threads: predictors of a pool share weights, and have memory of their own.
 * Usage: predict_threads [prefix of a saved model with one float32 input [N, D]] */
#include <proa.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, RUNS = 200 };

typedef struct worker {
    pthread_t thread;
    proa_predictor *predictor; /* one thread at a time */
    double sum;
    proa_status status;
} worker;

/* Errors are this thread's own: what went wrong here is reported by it. */
static void *work(void *context)
{
    worker *w = context;
    float x[8];
    for (int run = 0; run < RUNS && !proa_error(); run++) {
        proa_handle *in = proa_predictor_input(w->predictor, 0),
                    *out = proa_predictor_output(w->predictor, 0);
        for (int i = 0; i < 8; i++) x[i] = (float)(run + i) / RUNS;
        proa_handle_reshape(in, PROA_SHAPE(1, 8));
        proa_handle_copy_in(in, x, PROA_F32);
        if (proa_predictor_run(w->predictor) != PROA_OK) break;
        const float *y = proa_handle_data(out, PROA_F32); /* good until the next run */
        if (y) w->sum += (double)y[0];
    }
    w->status = (proa_status)proa_finish(stderr);
    return NULL;
}

static void make_model(const char *prefix)
{
    proa_seed(9);
    proa_layer *net = proa_sequential(proa_linear_layer(8, 64), proa_relu_layer(), proa_linear_layer(64, 3),
                                      proa_softmax_layer());
    proa_export(net, prefix, PROA_INPUT(-1, 8));
    proa_layer_free(net);
}

int main(int argc, char **argv)
{
    const char *prefix = argc > 1 ? argv[1] : "served";
    char path[4096];
    if (argc < 2) make_model(prefix);
    proa_config *config = proa_config_new();
    snprintf(path, sizeof path, "%s.pdmodel", prefix);
    proa_config_set_text(config, PROA_CONFIG_MODEL_FILE, path);
    snprintf(path, sizeof path, "%s.pdiparams", prefix);
    proa_config_set_text(config, PROA_CONFIG_PARAMS_FILE, path);
    proa_config_set(config, PROA_CONFIG_CPU_THREADS, 1); /* many requests: a thread each */
    proa_pool *pool = proa_pool_new(config, THREADS);
    proa_config_free(config);
    if (!pool) return proa_finish(stderr);
    worker workers[THREADS] = {{0}};
    int started = 0;
    for (; started < THREADS; started++) {
        workers[started].predictor = proa_pool_at(pool, started);
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) break;
    }
    bool same = started == THREADS;
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        same = same && workers[i].status == 0 && workers[i].sum == workers[0].sum;
    }
    printf("%d threads, %d runs each: %s\n", started, RUNS, same ? "the same results" : "DIFFERENT results");
    proa_pool_free(pool);
    return same ? proa_finish(stderr) : 1;
}
