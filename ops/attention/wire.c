/* Attention in Paddle's programs: read from flash_attn, written as a composition of ops that Paddle's CPU
 * kernels implement. May use core, kernels, proa/wire.h and public ops. */
#include "impl/attention.h"

#include <proa/wire.h>

#include "kernels/rowwise.h"

proa_status attention_read(proa_wire_reader *r)
{
    proa_tensor *q = proa_wire_input(r, "q"), *k = proa_wire_input(r, "k"), *v = proa_wire_input(r, "v");
    proa_tensor *mask = proa_wire_input(r, "attn_mask");
    if (!q || !k || !v || !mask) return proa_error();
    proa_scaled_dot_product_attention_result y = proa_scaled_dot_product_attention(
        q, k, v, mask, .dropout_p = proa_wire_float(r, "dropout", 0),
        .is_causal = proa_wire_int(r, "causal", 0) != 0, .no_training = proa_wire_int(r, "is_test", 0) != 0);
    PROA_TRY(proa_wire_result(r, "out", y.out));
    return proa_wire_result(r, "softmax_lse", y.softmax_lse);
}

/* An op `type` with one input and one output of the given meta; more may follow. NULL after an error. */
static proa_tensor *op(proa_wire_writer *w, const char *type, proa_tensor *x, proa_tensor *out,
                       const proa_meta *meta)
{
    if (!x) return NULL;
    if (!out) out = proa_wire_temporary(w, meta);
    if (!out || proa_wire_op(w, type) || proa_wire_put_input(w, "X", x) ||
        proa_wire_put_output(w, "Out", out))
        return NULL;
    return out;
}

/* [B, S, H, D] ↔ [B, H, S, D] */
static proa_tensor *swap(proa_wire_writer *w, proa_tensor *x, proa_tensor *out)
{
    if (!x) return NULL;
    proa_meta meta = proa_meta_of(x);
    meta.shape[1] = x->shape[2];
    meta.shape[2] = x->shape[1];
    out = op(w, "transpose2", x, out, &meta);
    return out && !proa_wire_put_ints(w, "axis", PROA_WIRE_INTS, PROA_INTS(0, 2, 1, 3)) ? out : NULL;
}

static proa_tensor *product(proa_wire_writer *w, proa_tensor *x, proa_tensor *y, bool transpose_y)
{
    if (!x || !y) return NULL;
    proa_meta meta = proa_meta_of(x);
    meta.shape[3] = y->shape[transpose_y ? 2 : 3];
    proa_tensor *out = op(w, "matmul_v2", x, NULL, &meta);
    if (!out || proa_wire_put_input(w, "Y", y) || proa_wire_put_int(w, "trans_x", PROA_WIRE_BOOLEAN, 0) ||
        proa_wire_put_int(w, "trans_y", PROA_WIRE_BOOLEAN, transpose_y))
        return NULL;
    return out;
}

static proa_tensor *sum(proa_wire_writer *w, proa_tensor *x, proa_tensor *y)
{
    if (!x || !y) return NULL;
    proa_meta meta = proa_meta_of(x);
    proa_tensor *out = op(w, "elementwise_add", x, NULL, &meta);
    return out && !proa_wire_put_input(w, "Y", y) && !proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1) ? out
                                                                                                      : NULL;
}

/* Adds a large negative number above the diagonal that ends at the last key (causal mask). */
static proa_tensor *causal(proa_wire_writer *w, proa_tensor *scores, int64_t queries, int64_t keys)
{
    if (!scores) return NULL;
    if ((queries < 0) != (keys < 0)) {
        proa_fail(PROA_ERR_UNSUPPORTED,
                  "scaled_dot_product_attention: is_causal with %lld queries and %lld keys "
                  "cannot be written: give both lengths, or neither",
                  (long long)queries, (long long)keys);
        return NULL;
    }
    proa_meta meta = proa_meta_of(scores);
    proa_tensor *low = op(w, "fill_any_like", scores, NULL, &meta);
    if (!low || proa_wire_put_float(w, "value", meta.dtype == PROA_F16 ? -3e4 : -1e30) ||
        proa_wire_put_int(w, "dtype", PROA_WIRE_INT, -1))
        return NULL;
    proa_tensor *upper = op(w, "tril_triu", low, NULL, &meta);
    if (!upper || proa_wire_put_int(w, "diagonal", PROA_WIRE_INT, queries < 0 ? 1 : 1 + keys - queries) ||
        proa_wire_put_int(w, "lower", PROA_WIRE_BOOLEAN, 0))
        return NULL;
    return sum(w, scores, upper);
}

static proa_tensor *dropped(proa_wire_writer *w, proa_tensor *x, double p)
{
    if (!x) return NULL;
    proa_meta meta = proa_meta_of(x), bits = meta;
    bits.dtype = PROA_U8;
    proa_tensor *out = op(w, "dropout", x, NULL, &meta), *mask = out ? proa_wire_temporary(w, &bits) : NULL;
    if (!mask || proa_wire_put_output(w, "Mask", mask) || proa_wire_put_float(w, "dropout_prob", p) ||
        proa_wire_put_int(w, "is_test", PROA_WIRE_BOOLEAN, 0) ||
        proa_wire_put_string(w, "dropout_implementation", "upscale_in_train"))
        return NULL;
    return out;
}

proa_status attention_write(const void *args, proa_wire_writer *w)
{
    const proa_scaled_dot_product_attention_args *a = args;
    int64_t size = a->query->shape[3];
    if (size <= 0 || a->query->shape[2] != a->key->shape[2])
        return ROWS_FAIL(scaled_dot_product_attention, UNSUPPORTED, "query",
                         "is %s beside key %s; only heads of known size and equal number can be written",
                         proa__tensor_text(a->query), proa__tensor_text(a->key));
    proa_tensor *q = swap(w, a->query, NULL), *k = swap(w, a->key, NULL), *v = swap(w, a->value, NULL);
    if (!q) return proa_error();
    proa_meta meta = proa_meta_of(q);
    q = op(w, "scale", q, NULL, &meta);
    if (!q || proa_wire_put_float(w, "scale", 1 / sqrt((double)size)) || proa_wire_put_float(w, "bias", 0) ||
        proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1))
        return proa_error();
    proa_tensor *scores = product(w, q, k, true);
    if (!proa__absent(a->attn_mask)) scores = sum(w, scores, a->attn_mask);
    if (a->is_causal) scores = causal(w, scores, a->query->shape[1], a->key->shape[1]);
    if (!scores) return proa_error();
    meta = proa_meta_of(scores);
    proa_tensor *weights = op(w, "softmax", scores, NULL, &meta);
    if (!weights) return proa_error();
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1));
    if (a->training && a->dropout_p > 0) weights = dropped(w, weights, a->dropout_p);
    return swap(w, product(w, weights, v, false), a->out) ? PROA_OK : proa_error();
}
