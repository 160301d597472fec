/* Quantizes a float model by a config's warm-up batches, when its predictor is made. May use core and jit. */
#include "runtime.h"

#include "jit/ir/program.h"

#include <stdlib.h>

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
        fprintf(stderr,
                "proa: quantizer: the config has no warm-up data; only LSTM and GRU run on integers\n");
}

/* "op_type slot ALGO" of the config's list. */
static proa_status read_rules(const proa_config *c, proa_quantize_opts *to)
{
    const proa__names *list = &c->lists[PROA_CONFIG_QUANTIZER_SCALES];
    proa_scale_rule *rules = proa_scope_alloc(((size_t)list->count + 1) * sizeof *rules);
    if (!rules) return proa_error();
    for (int64_t i = 0; i < list->count; i++) {
        char *type = proa_scope_alloc(strlen(list->at[i]) + 1), *slot, *algo;
        if (!type) return proa_error();
        strcpy(type, list->at[i]);
        slot = strchr(type, ' ');
        algo = slot ? strchr(slot + 1, ' ') : NULL;
        if (!algo || algo[1] < '0' + PROA_SCALE_ABS_MAX || algo[1] > '0' + PROA_SCALE_CHANNELS || algo[2])
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "create_predictor: the quantizer's rule '%s' is not 'op_type slot ALGO'",
                             list->at[i]);
        *slot = *algo = 0;
        rules[i] = (proa_scale_rule){type, slot + 1, (proa_scale_algo)(algo[1] - '0')};
    }
    to->rules = rules;
    to->n_rules = list->count;
    return PROA_OK;
}

static proa_status read_excluded(const proa_config *c, proa_quantize_opts *to)
{
    const proa__names *list = &c->lists[PROA_CONFIG_QUANTIZER_EXCLUDED];
    int64_t *at = proa_scope_alloc(((size_t)list->count + 1) * sizeof *at);
    if (!at) return proa_error();
    for (int64_t i = 0; i < list->count; i++) {
        char *end;
        at[i] = strtoll(list->at[i], &end, 10);
        if (end == list->at[i] || *end)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "create_predictor: the quantizer's excluded op '%s' is not an index",
                             list->at[i]);
    }
    to->excluded = at;
    to->n_excluded = list->count;
    return PROA_OK;
}

static bool has_recurrent(const proa_program *p, const proa__op_types *types)
{
    const proa_block *root = proa__root(p);
    for (int32_t i = 0; i < root->n_ops; i++)
        if (proa__quantizable_matrices(&root->ops[i], types, NULL)) return true;
    return false;
}

proa_status proa__model_quantize(proa_program *p, const proa_config *c, bool *done)
{
    *done = false;
    if (!c->numbers[PROA_CONFIG_ONEDNN_QUANTIZER] || !c->numbers[PROA_CONFIG_IR_OPTIM]) return PROA_OK;
    proa__op_types types = proa__config_types(c, PROA_CONFIG_QUANTIZER_OPS);
    if (!c->n_samples) {
        say_once(c);
        if (!has_recurrent(p, &types)) return PROA_OK;
    }
    warmup w = {p, c};
    PROA_SCOPED;
    proa_quantize_opts opts = {.algo = (proa_scale_algo)c->numbers[PROA_CONFIG_QUANTIZER_ALGO],
                               .op_types = types.at,
                               .n_op_types = types.count};
    PROA_TRY(read_rules(c, &opts));
    PROA_TRY(read_excluded(c, &opts));
    proa_status status = proa_program_quantize(p, (proa_samples){c->n_samples, batch, &w}, opts, NULL);
    *done = status == PROA_OK;
    if (status != PROA_ERR_UNSUPPORTED) return status;
    if (c->numbers[PROA_CONFIG_LOG])
        fprintf(stderr, "proa: %s: the model runs in float\n", proa_error_message());
    proa_clear_error();
    return PROA_OK;
}
