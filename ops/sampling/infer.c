/* Shapes and rules of sampled losses and of trees of items. May use core, kernels and public ops. */
#include "kernels/rowwise.h"
#include "ops/ints.h"
#include "ops/sampling/sampler.h"
#include "impl/sampling.h"

static bool is_index(const proa_tensor *t) { return t->dtype == PROA_I32 || t->dtype == PROA_I64; }

/* ---- nce ---- */

/* Arguments that nce and its gradient share. */
typedef struct contrast {
    const char *op;
    const proa_tensor *input, *label, *weight, *bias, *sample_weight, *probs;
    proa_ints given;
    int64_t classes, count, sampler;
} contrast;

#define CONTRAST(a, name)                                                                             \
    ((contrast){name, (a)->input, (a)->label, (a)->weight, (a)->bias, (a)->sample_weight, (a)->probs, \
                (a)->custom_neg_classes, (a)->num_total_classes, (a)->num_neg_samples, (a)->sampler})

static proa_status check_options(const contrast *c)
{
    if (c->classes < 1 || c->count < 0 || c->count > INT32_MAX)
        return OP_FAIL(c->op, INVALID_ARGUMENT, c->classes < 1 ? "num_total_classes" : "num_neg_samples",
                       "is %lld; expected a count of classes",
                       (long long)(c->classes < 1 ? c->classes : c->count));
    if (c->sampler < SAMPLE_UNIFORM || c->sampler > SAMPLE_CUSTOM)
        return OP_FAIL(c->op, INVALID_ARGUMENT, "sampler",
                       "is %lld; expected 0 (uniform), 1 (log-uniform) or 2 (custom)", (long long)c->sampler);
    if (c->given.count && c->given.count != c->count)
        return OP_FAIL(c->op, INVALID_ARGUMENT, "custom_neg_classes",
                       "has %lld classes; expected num_neg_samples, %lld", (long long)c->given.count,
                       (long long)c->count);
    for (int64_t i = 0; i < c->given.count; i++)
        if (c->given.at[i] < 0 || c->given.at[i] >= c->classes)
            return OP_FAIL(c->op, OUT_OF_RANGE, "custom_neg_classes",
                           "has %lld; expected one of %lld classes", (long long)c->given.at[i],
                           (long long)c->classes);
    return PROA_OK;
}

static proa_status check_parameters(const contrast *c)
{
    const proa_tensor *x = c->input, *w = c->weight, *bias = c->bias;
    if (x->ndim != 2)
        return OP_FAIL(c->op, INVALID_ARGUMENT, "input", "is %s; expected [N, features]",
                       proa__tensor_text(x));
    if (w->ndim != 2 || w->dtype != x->dtype || !rows_dims_agree(w->shape[0], c->classes) ||
        !rows_dims_agree(w->shape[1], x->shape[1]))
        return OP_FAIL(c->op, INVALID_ARGUMENT, "weight", "is %s; expected [%lld, features] as input %s",
                       proa__tensor_text(w), (long long)c->classes, proa__tensor_text(x));
    if (!proa__absent(bias) && (bias->dtype != x->dtype || !rows_dims_agree(bias->numel, c->classes)))
        return OP_FAIL(c->op, INVALID_ARGUMENT, "bias", "is %s; expected one number each of %lld classes",
                       proa__tensor_text(bias), (long long)c->classes);
    return PROA_OK;
}

static proa_status check_table(const contrast *c, const char *name, const proa_tensor *t, bool integer)
{
    bool fits = t && !proa__absent(t) && rows_dims_agree(t->numel, c->classes) &&
                (integer ? is_index(t) : t->dtype == PROA_F32 || t->dtype == PROA_F64);
    if (fits) return PROA_OK;
    return OP_FAIL(c->op, INVALID_ARGUMENT, name, "is %s; expected one number each of %lld classes",
                   t && !proa__absent(t) ? proa__tensor_text(t) : "missing", (long long)c->classes);
}

/* *drawn gets the meta of what was drawn: [N, true classes + others]. */
static proa_status check_contrast(const contrast *c, proa_meta *drawn)
{
    PROA_TRY(check_options(c));
    PROA_TRY(check_parameters(c));
    const proa_tensor *x = c->input, *label = c->label, *of = c->sample_weight;
    if (label->dtype != PROA_I64 || label->ndim < 1 || label->ndim > 2 ||
        !rows_dims_agree(label->shape[0], x->shape[0]))
        return OP_FAIL(c->op, INVALID_ARGUMENT, "label", "is %s; expected int64 [N, classes] for input %s",
                       proa__tensor_text(label), proa__tensor_text(x));
    bool few = !proa__absent(of) && of->numel >= 0 && of->numel < x->shape[0];
    if (!proa__absent(of) && (of->dtype != x->dtype || few))
        return OP_FAIL(c->op, INVALID_ARGUMENT, "sample_weight",
                       "is %s; expected a number for each row of input %s", proa__tensor_text(of),
                       proa__tensor_text(x));
    if (c->sampler == SAMPLE_CUSTOM) PROA_TRY(check_table(c, "probs", c->probs, false));
    int64_t classes = label->ndim == 2 ? label->shape[1] : 1;
    *drawn = (proa_meta){.dtype = (proa_dtype)x->dtype,
                         .ndim = 2,
                         .shape = {x->shape[0], classes < 0 ? -1 : classes + c->count}};
    return PROA_OK;
}

proa_status nce_infer(const proa_nce_args *a, proa_nce_metas *m)
{
    contrast c = CONTRAST(a, "nce");
    PROA_TRY(check_contrast(&c, &m->sample_logits));
    if (a->sampler == SAMPLE_CUSTOM && !a->custom_neg_classes.count) {
        PROA_TRY(check_table(&c, "alias", a->alias, true));
        PROA_TRY(check_table(&c, "alias_probs", a->alias_probs, false));
    }
    m->cost = m->sample_labels = m->sample_logits;
    m->cost.shape[1] = 1;
    m->sample_labels.dtype = PROA_I64;
    return PROA_OK;
}

static bool fits(const proa_tensor *t, const proa_meta *m, proa_dtype dtype)
{
    return t->dtype == dtype && t->ndim == m->ndim && proa__shapes_agree(t->shape, m->shape, m->ndim);
}

proa_status nce_grad_infer(const proa_nce_grad_args *a, proa_nce_grad_metas *m)
{
    contrast c = CONTRAST(a, "nce_grad");
    proa_meta drawn;
    PROA_TRY(check_contrast(&c, &drawn));
    if (!fits(a->sample_logits, &drawn, drawn.dtype) || !fits(a->sample_labels, &drawn, PROA_I64))
        return OP_FAIL(c.op, INVALID_ARGUMENT, "sample_logits",
                       "is %s and sample_labels %s; expected what nce of input %s makes",
                       proa__tensor_text(a->sample_logits), proa__tensor_text(a->sample_labels),
                       proa__tensor_text(a->input));
    if (a->d_cost->dtype != a->input->dtype || !rows_dims_agree(a->d_cost->numel, a->input->shape[0]))
        return OP_FAIL(c.op, INVALID_ARGUMENT, "d_cost", "is %s; expected one number a row of input %s",
                       proa__tensor_text(a->d_cost), proa__tensor_text(a->input));
    m->d_input = proa_meta_of(a->input);
    m->d_weight = proa_meta_of(a->weight);
    if (proa__absent(a->bias)) m->d_bias.ndim = -1;
    else m->d_bias = proa_meta_of(a->bias);
    return PROA_OK;
}

proa_status nce_vjp(const proa_nce_args *a, proa_nce_grads *g)
{
    proa_nce_grad_result r = proa_nce_grad(
        a->input, a->label, a->weight, a->bias, a->sample_weight, a->probs, a->sample_logits,
        a->sample_labels, g->d_cost, a->num_total_classes, .custom_neg_classes = a->custom_neg_classes,
        .num_neg_samples = rows_option(a->num_neg_samples), .sampler = a->sampler);
    if (g->want_input) g->d_input = r.d_input;
    if (g->want_weight) g->d_weight = r.d_weight;
    if (g->want_bias && !proa__absent(a->bias)) g->d_bias = r.d_bias;
    return proa_error();
}

/* ---- sample_logits ---- */

proa_status sample_logits_infer(const proa_sample_logits_args *a, proa_sample_logits_metas *m)
{
    const char *op = "sample_logits";
    const proa_tensor *x = a->logits, *labels = a->labels;
    if (x->ndim != 2)
        return OP_FAIL(op, INVALID_ARGUMENT, "logits", "is %s; expected [N, classes]", proa__tensor_text(x));
    if (labels->ndim != 2 || labels->dtype != PROA_I64 || !rows_dims_agree(labels->shape[0], x->shape[0]))
        return OP_FAIL(op, INVALID_ARGUMENT, "labels", "is %s; expected int64 [N, T] for logits %s",
                       proa__tensor_text(labels), proa__tensor_text(x));
    int64_t classes = x->shape[1];
    if (a->num_samples < 0 ||
        (a->uniq && !a->use_customized_samples && classes >= 0 && a->num_samples > classes))
        return OP_FAIL(op, INVALID_ARGUMENT, "num_samples", "is %lld; expected at most the %lld classes",
                       (long long)a->num_samples, (long long)classes);
    proa_meta drawn = {.dtype = (proa_dtype)x->dtype,
                       .ndim = 2,
                       .shape = {x->shape[0], labels->shape[1] < 0 ? -1 : labels->shape[1] + a->num_samples}};
    const proa_tensor *own = a->customized_samples, *chance = a->customized_probabilities;
    bool given = !proa__absent(own) && !proa__absent(chance);
    if (a->use_customized_samples &&
        (!given || !fits(own, &drawn, PROA_I64) || !fits(chance, &drawn, drawn.dtype)))
        return OP_FAIL(op, INVALID_ARGUMENT, "customized_samples",
                       "is %s; expected int64 %s, and customized_probabilities as long",
                       proa__absent(own) ? "missing" : proa__tensor_text(own),
                       proa__shape_text(drawn.shape, 2));
    m->samples = m->probabilities = m->sampled_logits = drawn;
    m->samples.dtype = PROA_I64;
    m->sampled_labels = proa_meta_of(labels);
    return PROA_OK;
}

proa_status sample_logits_vjp(const proa_sample_logits_args *a, proa_sample_logits_grads *g)
{
    g->d_logits = proa_sample_logits_grad(a->logits, a->samples, g->d_sampled_logits);
    return proa_error();
}

proa_status sample_logits_grad_infer(const proa_sample_logits_grad_args *a, proa_sample_logits_grad_metas *m)
{
    const char *op = "sample_logits_grad";
    const proa_tensor *x = a->logits, *d = a->d_sampled_logits, *at = a->samples;
    if (x->ndim != 2 || at->ndim != 2 || at->dtype != PROA_I64 || !rows_dims_agree(at->shape[0], x->shape[0]))
        return OP_FAIL(op, INVALID_ARGUMENT, "samples", "is %s; expected int64 [N, samples] for logits %s",
                       proa__tensor_text(at), proa__tensor_text(x));
    if (d->dtype != x->dtype || !rows_same_shape(d, at))
        return OP_FAIL(op, INVALID_ARGUMENT, "d_sampled_logits",
                       "is %s; expected one number each of samples %s", proa__tensor_text(d),
                       proa__tensor_text(at));
    m->d_logits = proa_meta_of(x);
    return PROA_OK;
}

/* ---- trees ---- */

static proa_status check_dtype(const char *op, proa_dtype dtype)
{
    if (dtype == PROA_I32 || dtype == PROA_I64) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "dtype", "is %s; expected int32 or int64", proa_dtype_name(dtype));
}

proa_status tdm_child_infer(const proa_tdm_child_args *a, proa_tdm_child_metas *m)
{
    const char *op = "tdm_child";
    const proa_tensor *info = a->tree_info;
    PROA_TRY(check_dtype(op, a->dtype));
    if (a->child_nums < 1 || a->child_nums > INT32_MAX)
        return OP_FAIL(op, INVALID_ARGUMENT, "child_nums", "is %lld; expected 1 or more",
                       (long long)a->child_nums);
    if (info->ndim != 2 || !is_index(info) || !rows_dims_agree(info->shape[1], a->child_nums + 3))
        return OP_FAIL(op, INVALID_ARGUMENT, "tree_info",
                       "is %s; expected int32 or int64 [nodes, %lld]: item, layer, parent and children",
                       proa__tensor_text(info), (long long)(a->child_nums + 3));
    if (a->x->ndim >= PROA_MAX_DIMS)
        return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected at most %d dims", proa__tensor_text(a->x),
                       PROA_MAX_DIMS - 1);
    m->child = proa_meta_of(a->x);
    m->child.shape[m->child.ndim++] = a->child_nums;
    m->child.dtype = a->dtype;
    m->leaf_mask = m->child;
    return PROA_OK;
}

/* The layers' numbers of nodes and of negatives; *length: samples of an item. */
static proa_status check_layers(const proa_tdm_sampler_args *a, int64_t *length)
{
    const char *op = "tdm_sampler";
    const proa_ints *counts = &a->neg_samples_num_list, *begin = &a->layer_offset_lod;
    if (counts->count < 1 || begin->count != counts->count + 1 || begin->at[0] != 0)
        return OP_FAIL(op, INVALID_ARGUMENT, "layer_offset_lod",
                       "has %lld numbers; expected 0 and where each of %lld layers ends",
                       (long long)begin->count, (long long)counts->count);
    *length = 0;
    for (int64_t i = 0; i < counts->count; i++) {
        int64_t nodes = begin->at[i + 1] < begin->at[i] ? -1 : begin->at[i + 1] - begin->at[i];
        if (counts->at[i] < 0 || counts->at[i] >= nodes)
            return OP_FAIL(op, INVALID_ARGUMENT, "neg_samples_num_list",
                           "has %lld for layer %lld of %lld nodes; expected fewer than its nodes",
                           (long long)counts->at[i], (long long)i, (long long)nodes);
        *length += counts->at[i] + a->output_positive;
    }
    return PROA_OK;
}

proa_status tdm_sampler_infer(const proa_tdm_sampler_args *a, proa_tdm_sampler_metas *m)
{
    const char *op = "tdm_sampler";
    const proa_tensor *travel = a->travel, *layer = a->layer;
    int64_t length = 0, layers = a->neg_samples_num_list.count;
    PROA_TRY(check_dtype(op, a->dtype));
    PROA_TRY(check_layers(a, &length));
    if (a->x->ndim < 1)
        return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected items, [N, 1]", proa__tensor_text(a->x));
    if (travel->ndim != 2 || !is_index(travel) || !rows_dims_agree(travel->shape[1], layers))
        return OP_FAIL(op, INVALID_ARGUMENT, "travel", "is %s; expected int32 or int64 [items, %lld]",
                       proa__tensor_text(travel), (long long)layers);
    if (layer->dtype != travel->dtype || (layer->numel >= 0 && layer->numel < a->layer_offset_lod.at[layers]))
        return OP_FAIL(op, INVALID_ARGUMENT, "layer",
                       "is %s; expected travel's dtype and the %lld nodes that layer_offset_lod counts",
                       proa__tensor_text(layer), (long long)a->layer_offset_lod.at[layers]);
    m->out = (proa_meta){.dtype = a->dtype, .ndim = 2, .shape = {a->x->shape[0], length}};
    m->labels = m->mask = m->out;
    return PROA_OK;
}
