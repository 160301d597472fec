/* Shape inference and gradient rule (vjp) of attention. May use core, kernels and public ops. */
#include "impl/attention.h"

#include "kernels/rowwise.h"

static proa_status bad(const char *op, const char *argument, const proa_tensor *t, const char *what)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), argument, "is %s; expected %s",
                         proa__tensor_text(t), what);
}

static proa_status check_mask(const char *op, const proa_tensor *mask, const proa_tensor *q,
                              const proa_tensor *k)
{
    if (proa__absent(mask)) return PROA_OK;
    int64_t to[4] = {q->shape[0], q->shape[2], q->shape[1], k->shape[1]};
    bool fits = mask->ndim <= 4 && mask->dtype == q->dtype;
    for (int i = 0; fits && i < mask->ndim; i++) {
        int64_t n = mask->shape[i], want = to[4 - mask->ndim + i];
        fits = n == 1 || rows_dims_agree(n, want);
    }
    return fits ? PROA_OK : bad(op, "attn_mask", mask, "query's dtype, and to broadcast to [B, H, Sq, Sk]");
}

static proa_status check(const char *op, const proa_tensor *q, const proa_tensor *k, const proa_tensor *v,
                         const proa_tensor *mask, double p)
{
    if (q->ndim != 4) return bad(op, "query", q, "[batch, length, heads, size]");
    if (k->ndim != 4 || k->dtype != q->dtype || !rows_dims_agree(k->shape[0], q->shape[0]) ||
        !rows_dims_agree(k->shape[3], q->shape[3]))
        return bad(op, "key", k, "[batch, length, heads, size] with query's dtype, batch and size");
    if (v->ndim != 4 || v->dtype != q->dtype || !rows_dims_agree(v->shape[0], k->shape[0]) ||
        !rows_dims_agree(v->shape[1], k->shape[1]) || !rows_dims_agree(v->shape[2], k->shape[2]))
        return bad(op, "value", v, "key's dtype, batch, length and heads");
    if (q->shape[2] > 0 && k->shape[2] >= 0 && (k->shape[2] == 0 || q->shape[2] % k->shape[2]))
        return bad(op, "key", k, "a number of heads that divides query's");
    if (!(p >= 0 && p <= 1))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "dropout_p",
                             "is %g; expected 0 to 1", p);
    return check_mask(op, mask, q, k);
}

proa_status attention_infer(const proa_scaled_dot_product_attention_args *a,
                            proa_scaled_dot_product_attention_metas *m)
{
    PROA_TRY(check("scaled_dot_product_attention", a->query, a->key, a->value, a->attn_mask, a->dropout_p));
    m->out = proa_meta_of(a->query);
    m->out.shape[3] = a->value->shape[3];
    m->softmax_lse = (proa_meta){.dtype = a->query->dtype == PROA_F64 ? PROA_F64 : PROA_F32,
                                 .ndim = 3,
                                 .shape = {a->query->shape[0], a->query->shape[2], a->query->shape[1]}};
    if (a->training && a->dropout_p > 0)
        m->seed_offset = (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {2}};
    return PROA_OK;
}

proa_status attention_grad_infer(const proa_scaled_dot_product_attention_grad_args *a,
                                 proa_scaled_dot_product_attention_grad_metas *m)
{
    const char *op = "scaled_dot_product_attention_grad";
    PROA_TRY(check(op, a->query, a->key, a->value, a->attn_mask, a->dropout_p));
    if (a->out->dtype != a->query->dtype || a->out->ndim != 4 ||
        !rows_dims_agree(a->out->shape[3], a->value->shape[3]) ||
        !rows_dims_agree(a->out->shape[1], a->query->shape[1]))
        return bad(op, "out", a->out, "what the forward op returned");
    if (a->d_out->dtype != a->out->dtype || !rows_same_shape(a->d_out, a->out))
        return bad(op, "d_out", a->d_out, "the dtype and shape of out");
    if (a->softmax_lse->ndim != 3 ||
        a->softmax_lse->dtype != (a->query->dtype == PROA_F64 ? PROA_F64 : PROA_F32) ||
        !rows_dims_agree(a->softmax_lse->shape[2], a->query->shape[1]))
        return bad(op, "softmax_lse", a->softmax_lse, "[batch, heads, length] as the forward op returned it");
    if (!proa__absent(a->seed_offset) && (a->seed_offset->dtype != PROA_I64 || a->seed_offset->numel != 2))
        return bad(op, "seed_offset", a->seed_offset, "two int64");
    m->d_query = proa_meta_of(a->query);
    m->d_key = proa_meta_of(a->key);
    m->d_value = proa_meta_of(a->value);
    return PROA_OK;
}

proa_status attention_vjp(const proa_scaled_dot_product_attention_args *a,
                          proa_scaled_dot_product_attention_grads *g)
{
    if (proa__absent(g->d_out)) return PROA_OK;
    proa_scaled_dot_product_attention_grad_result d = proa_scaled_dot_product_attention_grad(
        a->query, a->key, a->value, a->attn_mask, a->out, a->softmax_lse, a->seed_offset, g->d_out,
        .dropout_p = rows_option_float(a->training ? a->dropout_p : 0), .is_causal = a->is_causal);
    if (g->want_query) g->d_query = d.d_query;
    if (g->want_key) g->d_key = d.d_key;
    if (g->want_value) g->d_value = d.d_value;
    return proa_error();
}
