/* Lowerings of matrix products, attention and embeddings. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/attention.h"
#include "impl/embedding.h"
#include "impl/matmul.h"
#include "impl/products.h"

#include <math.h>

static onnx_value *product(onnx_graph *g, onnx_value *x, onnx_value *y)
{
    if (!x || !y || onnx_is_float(x->dtype)) return ONNX_NODE(g, "MatMul", x, y);
    return ONNX_NODE(g, "MatMul", onnx_operand(g, x, 9), onnx_operand(g, y, 9));
}

/* x with its last two axes swapped, if it has two. */
static onnx_value *turned(onnx_graph *g, onnx_value *x, int ndim)
{
    return ndim < 2 ? x : onnx_swap_axes(g, x, ndim, ndim - 2, ndim - 1);
}

ONNX_LOWER(lower_matmul, matmul)
{
    onnx_value *x = onnx_in(g, a->x), *y = onnx_in(g, a->y);
    if (a->transpose_x) x = turned(g, x, a->x->ndim);
    if (a->transpose_y) y = turned(g, y, a->y->ndim);
    onnx_bind(g, a->out, product(g, x, y));
}

ONNX_LOWER(lower_dot, dot)
{
    const int64_t last = a->x->ndim - 1;
    onnx_value *each = onnx_mul(g, onnx_in(g, a->x), onnx_in(g, a->y));
    onnx_bind(g, a->out, onnx_reduce(g, "ReduceSum", each, 1, &last, a->out->ndim == a->x->ndim));
}

ONNX_LOWER(lower_addmm, addmm)
{
    onnx_value *xy = onnx_mul_by(g, product(g, onnx_in(g, a->x), onnx_in(g, a->y)), a->alpha);
    onnx_bind(g, a->out, onnx_add(g, onnx_mul_by(g, onnx_in(g, a->input), a->beta), xy));
}

ONNX_LOWER(lower_linear, linear)
{
    onnx_value *x = onnx_in(g, a->x), *weight = onnx_in(g, a->weight), *bias = onnx_in(g, a->bias);
    if (a->x->ndim == 2 && bias && onnx_is_float(bias->dtype)) {
        onnx_bind(g, a->out, ONNX_NODE(g, "Gemm", x, weight, bias));
        return;
    }
    onnx_value *out = product(g, x, weight);
    onnx_bind(g, a->out, bias ? onnx_add(g, out, bias) : out);
}

/* The product of each element of x with the whole of y, both reshaped so that their axes alternate. */
ONNX_LOWER(lower_kron, kron)
{
    int n = a->out->ndim, nx = a->x->ndim, ny = a->y->ndim;
    int64_t sx[2 * PROA_MAX_DIMS], sy[2 * PROA_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        sx[2 * i] = i < n - nx ? 1 : a->x->shape[i - (n - nx)];
        sy[2 * i + 1] = i < n - ny ? 1 : a->y->shape[i - (n - ny)];
        sx[2 * i + 1] = sy[2 * i] = 1;
        if (sx[2 * i] < 0 || sy[2 * i + 1] < 0) {
            onnx_refuse(g, "all dims must be known");
            return;
        }
    }
    if (2 * n > ONNX_MAX_DIMS) {
        onnx_refuse(g, "%d axes are too many", n);
        return;
    }
    onnx_value *x = onnx_reshape(g, onnx_in(g, a->x), 2 * n, sx),
               *y = onnx_reshape(g, onnx_in(g, a->y), 2 * n, sy);
    onnx_bind(g, a->out, onnx_reshape(g, onnx_mul(g, x, y), n, a->out->shape));
}

/* x₁y₂ − x₂y₁ and so on: the product with y moved by one, less the one with y moved by two. */
ONNX_LOWER(lower_cross, cross)
{
    int64_t axis = a->axis == 9 ? -1 : onnx_axis(a->axis, a->x->ndim);
    for (int i = 0; axis < 0 && i < a->x->ndim; i++)
        if (a->x->shape[i] == 3) axis = i;
    if (axis < 0) {
        onnx_refuse(g, "the axis of length 3 must be known");
        return;
    }
    onnx_value *next = ONNX_INTS(g, 1, 2, 0), *other = ONNX_INTS(g, 2, 0, 1), *x = onnx_in(g, a->x),
               *y = onnx_in(g, a->y);
    onnx_value *plus = onnx_mul(g, onnx_gather(g, x, next, axis), onnx_gather(g, y, other, axis));
    onnx_value *minus = onnx_mul(g, onnx_gather(g, x, other, axis), onnx_gather(g, y, next, axis));
    onnx_bind(g, a->out, onnx_sub(g, plus, minus));
}

/* ---- attention ----------------------------------------------------------------------------- */

/* Heads of the keys repeated for each group of the query's heads: [B, H, S, D]. */
static onnx_value *spread_heads(onnx_graph *g, onnx_value *x, const proa_tensor *t, int64_t times)
{
    if (times == 1) return x;
    const int64_t two = 2, merged[] = {~0, t->shape[2] * times, ~1, ~3};
    onnx_value *parts[64];
    if (times > 64) return onnx_refuse(g, "%lld query heads a key head are too many", (long long)times);
    for (int64_t i = 0; i < times; i++) parts[i] = onnx_unsqueeze(g, x, 1, &two);
    return onnx_reshape_by(g, onnx_concat(g, times, parts, 2), t, onnx_in(g, t), 4, merged);
}

/* 0 where query i sees key j ≤ i + Sk − Sq, else −∞: [Sq, Sk]. */
static onnx_value *causal_mask(onnx_graph *g, const proa_scaled_dot_product_attention_args *a,
                               proa_dtype dtype)
{
    int64_t rows = a->query->shape[1], columns = a->key->shape[1], shape[] = {rows, columns};
    if (rows < 0 || columns < 0) return onnx_refuse(g, "is_causal needs known sequence lengths");
    float *mask = onnx_alloc(g, (size_t)(rows * columns), sizeof *mask);
    if (!mask) return NULL;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) mask[i * columns + j] = j <= i + columns - rows ? 0 : -INFINITY;
    return onnx_cast(g, onnx_data(g, PROA_F32, 2, shape, mask), dtype);
}

ONNX_LOWER(lower_attention, scaled_dot_product_attention)
{
    const int64_t heads_first[] = {0, 2, 1, 3}, keys_last[] = {0, 2, 3, 1};
    const int64_t heads = a->query->shape[2], key_heads = a->key->shape[2], depth = a->query->shape[3];
    if (heads < 1 || key_heads < 1 || depth < 1) {
        onnx_refuse(g, "the number of heads and their size must be known");
        return;
    }
    if (onnx_is_read(g, a->softmax_lse)) onnx_refuse(g, "softmax_lse is read, which only training has");
    onnx_value *q =
        onnx_transpose(g, onnx_mul_by(g, onnx_in(g, a->query), 1 / sqrt((double)depth)), 4, heads_first);
    onnx_value *k = onnx_in(g, a->key), *v = onnx_transpose(g, onnx_in(g, a->value), 4, heads_first);
    if (heads == key_heads) k = onnx_transpose(g, k, 4, keys_last);
    else
        k = onnx_swap_axes(
            g, spread_heads(g, onnx_transpose(g, k, 4, heads_first), a->key, heads / key_heads), 4, 2, 3);
    v = spread_heads(g, v, a->value, heads / key_heads);
    onnx_value *scores = ONNX_NODE(g, "MatMul", q, k), *mask = onnx_in(g, a->attn_mask);
    if (!scores) return;
    if (mask) scores = onnx_add(g, scores, onnx_cast(g, mask, scores->dtype));
    if (a->is_causal) scores = onnx_add(g, scores, causal_mask(g, a, scores->dtype));
    onnx_value *out = ONNX_NODE(g, "MatMul", onnx_softmax(g, "Softmax", scores, 4, -1), v);
    onnx_bind(g, a->out, onnx_transpose(g, out, 4, heads_first));
}

/* ---- embeddings ---------------------------------------------------------------------------- */

/* True if a row of a constant weight has only zeros, in any dtype. */
static bool is_zero_row(onnx_graph *g, const proa_tensor *weight, int64_t row)
{
    const char *data = onnx_constant(g, weight);
    if (!data || row >= weight->shape[0]) return false;
    size_t bytes = (size_t)weight->shape[1] * proa_dtype_size((proa_dtype)weight->dtype);
    for (size_t i = 0; i < bytes; i++)
        if (data[(size_t)row * bytes + i]) return false;
    return true;
}

ONNX_LOWER(lower_embedding, embedding)
{
    onnx_value *x = onnx_in(g, a->x), *out = onnx_gather(g, onnx_in(g, a->weight), x, 0);
    if (!out) return;
    if (a->padding_idx >= 0 && !is_zero_row(g, a->weight, a->padding_idx)) {
        const int64_t last = a->x->ndim;
        onnx_value *kept = onnx_not(g, onnx_equal(g, x, onnx_whole(g, x->dtype, a->padding_idx)));
        out = onnx_mul(g, out, onnx_unsqueeze(g, onnx_cast(g, kept, out->dtype), 1, &last));
    }
    onnx_bind(g, a->out, out);
}

const onnx_rule onnx_rules_matrix[] = {
    {"matmul", lower_matmul, NULL, 0, 0},
    {"bmm", onnx_lower_node, "MatMul", 0, 9},
    {"mv", onnx_lower_node, "MatMul", 0, 9},
    {"dot", lower_dot, NULL, 0, 0},
    {"addmm", lower_addmm, NULL, 0, 0},
    {"linear", lower_linear, NULL, 0, 0},
    {"kron", lower_kron, NULL, 0, 0},
    {"cross", lower_cross, NULL, 0, 0},
    {"scaled_dot_product_attention", lower_attention, NULL, 0, 0},
    {"embedding", lower_embedding, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_matrix; /* C wants a declaration in every file */
#endif
