/* Shapes of CRF decoding and log-likelihood, and the gradient rule of the latter. May use core, kernels and
 * public ops. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/crf.h"

static bool is_long(const proa_tensor *t) { return t->dtype == PROA_I64; }

/* Sequences of emissions x [batch, time, tags] with length, or [rows, tags] with offsets. */
static proa_status check_chains(const char *op, const char *name, const proa_tensor *x,
                                const proa_tensor *length, const proa_tensor *offsets)
{
    bool padded = !proa__absent(length);
    if (padded == !proa__absent(offsets))
        return OP_FAIL(op, INVALID_ARGUMENT, "length", "and offsets are %s; expected one of them",
                       padded ? "both given" : "both absent");
    if (x->ndim != (padded ? 3 : 2))
        return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected %s", proa__tensor_text(x),
                       padded ? "[batch, time, tags] with length" : "[rows, tags] with offsets");
    const proa_tensor *parts = padded ? length : offsets;
    if (!is_long(parts) || (padded && !rows_dims_agree(parts->numel, x->shape[0])) ||
        (!padded && (parts->ndim != 1 || parts->shape[0] == 0)))
        return OP_FAIL(op, INVALID_ARGUMENT, padded ? "length" : "offsets", "is %s, and %s is %s",
                       proa__tensor_text(parts), name, proa__tensor_text(x));
    return PROA_OK;
}

static proa_status check_weights(const char *op, const char *name, const proa_tensor *w, const char *of,
                                 const proa_tensor *x)
{
    if (w->ndim == 2 && w->dtype == x->dtype && rows_dims_agree(w->shape[1], x->shape[x->ndim - 1]) &&
        rows_dims_agree(w->shape[0], w->shape[1] < 0 ? -1 : w->shape[1] + 2))
        return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected [tags + 2, tags], and %s is %s",
                   proa__tensor_text(w), of, proa__tensor_text(x));
}

/* One tag for each of x's steps, whose shape without tags is `steps`. */
static proa_status check_label(const char *op, const proa_tensor *label, const proa_meta *steps,
                               const proa_tensor *x)
{
    if (is_long(label) && rows_dims_agree(label->numel, proa__meta_numel(steps))) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "label", "is %s; expected int64 with a tag for each step of %s",
                   proa__tensor_text(label), proa__tensor_text(x));
}

static proa_meta steps_of(const proa_tensor *x)
{
    return (proa_meta){.dtype = PROA_I64, .ndim = 2, .shape = {x->shape[0], x->ndim == 3 ? x->shape[1] : 1}};
}

proa_status crf_decoding_infer(const proa_crf_decoding_args *a, proa_crf_decoding_metas *m)
{
    const char *op = "crf_decoding";
    PROA_TRY(check_chains(op, "emission", a->emission, a->length, a->offsets));
    PROA_TRY(check_weights(op, "transition", a->transition, "emission", a->emission));
    m->path = steps_of(a->emission);
    return proa__absent(a->label) ? PROA_OK : check_label(op, a->label, &m->path, a->emission);
}

proa_status viterbi_decode_infer(const proa_viterbi_decode_args *a, proa_viterbi_decode_metas *m)
{
    const char *op = "viterbi_decode";
    const proa_tensor *x = a->potentials, *w = a->transition;
    PROA_TRY(check_chains(op, "potentials", x, a->length, PROA_NONE));
    if (w->ndim != 2 || w->dtype != x->dtype || !rows_dims_agree(w->shape[1], x->shape[2]) ||
        !rows_dims_agree(w->shape[0], x->shape[2]))
        return OP_FAIL(op, INVALID_ARGUMENT, "transition",
                       "is %s; expected [tags, tags], and potentials is %s", proa__tensor_text(w),
                       proa__tensor_text(x));
    int64_t least = a->include_bos_eos_tag ? 2 : 1;
    if ((w->shape[0] >= 0 && w->shape[0] < least) || x->shape[1] == 0)
        return OP_FAIL(op, INVALID_ARGUMENT, "potentials", "is %s; expected a step and at least %d tags",
                       proa__tensor_text(x), (int)least);
    m->scores = (proa_meta){.dtype = (proa_dtype)x->dtype, .ndim = 1, .shape = {x->shape[0]}};
    m->path = (proa_meta){.dtype = PROA_I64, .ndim = 2, .shape = {x->shape[0], -1}};
    return PROA_OK;
}

static int64_t sequences(const proa_tensor *x, const proa_tensor *offsets)
{
    if (proa__absent(offsets)) return x->shape[0];
    return offsets->shape[0] < 0 ? -1 : offsets->shape[0] - 1;
}

proa_status linear_chain_crf_infer(const proa_linear_chain_crf_args *a, proa_linear_chain_crf_metas *m)
{
    const char *op = "linear_chain_crf";
    const proa_tensor *x = a->emission;
    PROA_TRY(check_chains(op, "emission", x, a->length, a->offsets));
    PROA_TRY(check_weights(op, "transition", a->transition, "emission", x));
    proa_meta steps = steps_of(x);
    PROA_TRY(check_label(op, a->label, &steps, x));
    m->alpha = m->emission_exps = proa_meta_of(x);
    m->transition_exps = proa_meta_of(a->transition);
    m->log_likelihood =
        (proa_meta){.dtype = (proa_dtype)x->dtype, .ndim = 2, .shape = {sequences(x, a->offsets), 1}};
    return PROA_OK;
}

proa_status linear_chain_crf_vjp(const proa_linear_chain_crf_args *a, proa_linear_chain_crf_grads *g)
{
    proa_linear_chain_crf_grad_result d = proa_linear_chain_crf_grad(
        a->alpha, a->emission_exps, a->transition_exps, a->label, a->length, a->offsets, g->d_log_likelihood);
    g->d_emission = d.d_emission;
    g->d_transition = d.d_transition;
    return proa_error();
}

proa_status linear_chain_crf_grad_infer(const proa_linear_chain_crf_grad_args *a,
                                        proa_linear_chain_crf_grad_metas *m)
{
    const char *op = "linear_chain_crf_grad";
    const proa_tensor *x = a->emission_exps, *d = a->d_log_likelihood;
    PROA_TRY(check_chains(op, "emission_exps", x, a->length, a->offsets));
    PROA_TRY(check_weights(op, "transition_exps", a->transition_exps, "emission_exps", x));
    proa_meta steps = steps_of(x);
    PROA_TRY(check_label(op, a->label, &steps, x));
    if (a->alpha->dtype != x->dtype || !rows_same_shape(a->alpha, x))
        return OP_FAIL(op, INVALID_ARGUMENT, "alpha", "is %s; expected %s", proa__tensor_text(a->alpha),
                       proa__tensor_text(x));
    if (d->dtype != x->dtype || !rows_dims_agree(d->numel, sequences(x, a->offsets)))
        return OP_FAIL(op, INVALID_ARGUMENT, "d_log_likelihood", "is %s; expected one %s for each sequence",
                       proa__tensor_text(d), proa_dtype_name((proa_dtype)x->dtype));
    m->d_emission = proa_meta_of(x);
    m->d_transition = proa_meta_of(a->transition_exps);
    return PROA_OK;
}
