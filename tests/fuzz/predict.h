/* Runs whatever model a fuzzer's config holds: feeds zeros of the declared shapes, unknown dims being 2. Any
 * of it runs, or is a typed error. */
#ifndef PROA_TESTS_FUZZ_PREDICT_H
#define PROA_TESTS_FUZZ_PREDICT_H

#include <proa/inference.h>

#include <stdlib.h>
#include <string.h>

/* Bytes of a model and its parameters: 4 bytes of the model's length, the model, the parameters. */
typedef struct fuzz_model {
    const uint8_t *model, *params;
    size_t model_bytes, params_bytes;
} fuzz_model;

static inline bool fuzz_model_of(const uint8_t *data, size_t size, fuzz_model *to)
{
    uint32_t n = 0;
    if (size < sizeof n) return false;
    memcpy(&n, data, sizeof n);
    data += sizeof n, size -= sizeof n;
    if (n > size) n = (uint32_t)size;
    *to = (fuzz_model){data, data + n, n, size - n};
    return true;
}

static inline proa_status fuzz_run(proa_predictor *p)
{
    static const float numbers[1024];
    for (int64_t i = 0; i < proa_predictor_input_count(p); i++) {
        proa_handle *h = proa_predictor_input(p, i);
        int64_t dims[PROA_MAX_DIMS], n = 1;
        int ndim = h ? proa_handle_shape(h, dims) : -1;
        if (ndim < 0) return proa_error();
        for (int d = 0; d < ndim; d++) {
            if (dims[d] < 0) dims[d] = 2;
            if (dims[d] > 64) dims[d] = 64;
            n = n * dims[d] > 1024 ? 1025 : n * dims[d];
        }
        if (n > 1024) return PROA_OK; /* nothing to feed it with */
        PROA_TRY(proa_handle_reshape(h, (proa_ints){ndim, dims, NULL, NULL}));
        PROA_TRY(proa_handle_copy_in(h, numbers, PROA_F32));
    }
    return proa_predictor_run(p);
}

/* Makes and runs a predictor; ready: the config was set up without an error. Frees the config, and checks
 * that errors are said and that no memory is left. */
static inline void fuzz_predict(proa_config *c, bool ready)
{
    proa_predictor *p = c && ready ? proa_predictor_new(c) : NULL;
    if (!p && proa_error() == PROA_OK) abort();
    if (p && fuzz_run(p) != proa_error()) abort();
    proa_predictor_free(p);
    proa_config_free(c);
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
}

/* Predicts with a model from memory; `set` is switched on. */
static inline void fuzz_predict_memory(const fuzz_model *m, proa_config_number set)
{
    proa_memory_set_cap((int64_t)1 << 30);
    proa_config *c = proa_config_new();
    fuzz_predict(
        c, c && proa_config_set(c, PROA_CONFIG_LOG, 0) == PROA_OK && proa_config_set(c, set, 1) == PROA_OK &&
               proa_config_set_buffers(c, m->model, m->model_bytes, m->params, m->params_bytes) == PROA_OK);
}

#endif
