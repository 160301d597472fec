/* Quantizes a float model by a config's warm-up batches, when its predictor is made. May use core and jit. */
#include "runtime.h"

#include "jit/ir/program.h"

typedef struct warmup {
    const proa_program *program;
    const proa_config *config;
} warmup;

static proa_tensor *find(const proa__batch *b, const char *name)
{
    for (int64_t i = 0; i < b->count; i++)
        if (strcmp(proa_name_of(b->at[i]), name) == 0) return b->at[i];
    proa_fail(PROA_ERR_NOT_FOUND, "create_predictor: no tensor of the quantizer's samples is named '%s'",
              name);
    return NULL;
}

static proa_tensors batch(int64_t i, void *context)
{
    const warmup *w = context;
    const proa__batch *b = &w->config->samples[i];
    int64_t n = proa_program_input_count(w->program);
    if (!w->config->numbers[PROA_CONFIG_SPECIFY_INPUT_NAMES]) {
        if (b->count != n)
            proa_fail(
                PROA_ERR_INVALID_ARGUMENT,
                "create_predictor: batch %lld of the quantizer's samples has %lld tensors; the model has "
                "%lld inputs",
                (long long)i, (long long)b->count, (long long)n);
        return (proa_tensors){b->count, b->at};
    }
    proa_tensors feed = {n, proa_scope_alloc(((size_t)n + 1) * sizeof *feed.at)};
    for (int64_t k = 0; feed.at && k < n && proa_error() == PROA_OK; k++)
        feed.at[k] = find(b, proa_name_of(proa_program_input(w->program, k)));
    return feed;
}

static void say_once(const proa_config *c)
{
    static atomic_bool said;
    if (c->numbers[PROA_CONFIG_LOG] && !atomic_exchange(&said, true))
        fprintf(stderr, "proa: quantizer: the config has no warm-up data; the model runs as it is\n");
}

proa_status proa__model_quantize(proa_program *p, const proa_config *c, bool *done)
{
    *done = false;
    if (!c->numbers[PROA_CONFIG_ONEDNN_QUANTIZER] || !c->numbers[PROA_CONFIG_IR_OPTIM]) return PROA_OK;
    if (!c->n_samples) {
        say_once(c);
        return PROA_OK;
    }
    warmup w = {p, c};
    proa__op_types types = proa__config_types(c, PROA_CONFIG_QUANTIZER_OPS);
    proa_quantize_opts opts = {.algo = (proa_scale_algo)c->numbers[PROA_CONFIG_QUANTIZER_ALGO],
                               .op_types = types.at,
                               .n_op_types = types.count};
    *done = true;
    return proa_program_quantize(p, (proa_samples){c->n_samples, batch, &w}, opts, NULL);
}
