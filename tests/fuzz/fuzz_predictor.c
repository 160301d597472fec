/* Fuzzes predictors from memory: 4 bytes of the model's length, the model, its parameters. Any of it runs,
 * or is a typed error; never a crash, never a leak. */
#include <proa/inference.h>

#include <stdlib.h>
#include <string.h>

static proa_status run(proa_predictor *p)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t model = 0;
    if (size < sizeof model) return 0;
    memcpy(&model, data, sizeof model);
    data += sizeof model, size -= sizeof model;
    if (model > size) model = (uint32_t)size;
    proa_memory_set_cap((int64_t)1 << 30);
    proa_config *c = proa_config_new();
    proa_predictor *p = NULL;
    if (c && proa_config_set(c, PROA_CONFIG_LOG, 0) == PROA_OK &&
        proa_config_set_buffers(c, data, model, data + model, size - model) == PROA_OK)
        p = proa_predictor_new(c);
    if (!p && proa_error() == PROA_OK) abort();
    if (p && run(p) != proa_error()) abort();
    proa_predictor_free(p);
    proa_config_free(c);
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
    return 0;
}
