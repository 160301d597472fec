/* Shape inference and argument checks of the INT8 ops other than rnn_int8 (infer_rnn.c). May use core and
 * kernels. */
#include "core/error.h"
#include "ops/conv/geometry.h"
#include "ops/ints.h"
#include "ops/matmul/product.h"
#include "ops/pool/geometry.h"
#include "impl/int8.h"

#include "kernels/rowwise.h"

#define FAIL(op, argument, ...) \
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), argument, __VA_ARGS__)

static bool is_integer(const proa_tensor *t) { return t->dtype == PROA_I8 || t->dtype == PROA_U8; }

static proa_status check_result(const char *op, proa_dtype dtype, int64_t high)
{
    if (dtype != PROA_F32 && dtype != PROA_I8 && dtype != PROA_U8)
        return FAIL(op, "dtype", "is %s; expected F32, I8 or U8", proa_dtype_name(dtype));
    if (high >= 0 && high <= 127) return PROA_OK;
    return FAIL(op, "high", "is %lld; expected 0 to 127", (long long)high);
}

proa_status quantize_int8_infer(const proa_quantize_int8_args *a, proa_quantize_int8_metas *m)
{
    PROA_TRY(check_result("quantize_int8", a->dtype, a->high));
    int64_t least = a->dtype == PROA_U8 ? 0 : -128;
    if (a->dtype == PROA_F32) return FAIL("quantize_int8", "dtype", "is F32; expected I8 or U8");
    if (a->low > a->high || (a->low < least && a->dtype == PROA_I8))
        return FAIL("quantize_int8", "low", "is %lld; expected -128 to %lld", (long long)a->low,
                    (long long)a->high);
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->dtype;
    return PROA_OK;
}

/* A float32 number for each of n channels. */
static proa_status check_channels(const char *op, const char *argument, const proa_tensor *t, int64_t n)
{
    if (t->dtype == PROA_F32 && t->ndim == 1 && (t->shape[0] == n || n < 0 || t->shape[0] < 0))
        return PROA_OK;
    return FAIL(op, argument, "must be float32 [%lld], one number a channel of the result, got %s",
                (long long)n, proa__tensor_text(t));
}

static proa_status check_residual(const char *op, const proa_tensor *r, const proa_meta *out)
{
    if (proa__absent(r)) return PROA_OK;
    bool same = r->ndim == out->ndim && (r->dtype == PROA_F32 || is_integer(r)) &&
                proa__shapes_agree(r->shape, out->shape, r->ndim);
    if (same) return PROA_OK;
    return FAIL(op, "residual", "must be F32, I8 or U8 %s, as the result is; got %s",
                proa__shape_text(out->shape, out->ndim), proa__tensor_text(r));
}

static proa_status check_weight(const char *op, const proa_tensor *w)
{
    return w->dtype == PROA_I8 ? PROA_OK : FAIL(op, "weight", "must be I8, got %s", proa__tensor_text(w));
}

proa_status conv2d_int8_infer(const proa_conv2d_int8_args *a, proa_conv2d_int8_metas *m)
{
    const char *op = "conv2d_int8";
    conv_geometry g;
    PROA_TRY(check_weight(op, a->weight));
    PROA_TRY(check_result(op, a->dtype, a->high));
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS_MIXED(a, 2, op), &g));
    proa__conv_meta_out(&g, a->dtype, &m->out);
    PROA_TRY(check_channels(op, "scale", a->scale, g.out_channels));
    if (!proa__absent(a->bias)) PROA_TRY(check_channels(op, "bias", a->bias, g.out_channels));
    return check_residual(op, a->residual, &m->out);
}

proa_status conv2d_transpose_int8_infer(const proa_conv2d_transpose_int8_args *a,
                                        proa_conv2d_transpose_int8_metas *m)
{
    const char *op = "conv2d_transpose_int8";
    conv_geometry g;
    PROA_TRY(check_weight(op, a->weight));
    PROA_TRY(check_result(op, a->dtype, a->high));
    PROA_TRY(proa__conv_geometry(&CONV_TRANSPOSE_INT8_PARAMS(a), &g));
    proa__conv_meta_in(&g, a->dtype, &m->out);
    PROA_TRY(check_channels(op, "scale", a->scale, g.in_channels));
    if (!proa__absent(a->bias)) PROA_TRY(check_channels(op, "bias", a->bias, g.in_channels));
    if (a->activation == PROA_FUSED_ACTIVATION_NONE || a->activation == PROA_FUSED_ACTIVATION_RELU)
        return PROA_OK;
    return FAIL(op, "activation", "is another than none or relu, which are all that the op has");
}

proa_status linear_int8_infer(const proa_linear_int8_args *a, proa_linear_int8_metas *m)
{
    const char *op = "linear_int8";
    PROA_TRY(check_weight(op, a->weight));
    PROA_TRY(check_result(op, a->dtype, a->high));
    if (a->weight->ndim != 2)
        return FAIL(op, "weight", "must have 2 dims, got %s", proa__tensor_text(a->weight));
    if (a->x->ndim < 1) return FAIL(op, "x", "must have a dim, got %s", proa__tensor_text(a->x));
    int64_t k = a->x->shape[a->x->ndim - 1], rows = a->weight->shape[0];
    if (k != rows && k >= 0 && rows >= 0)
        return FAIL(op, "weight", "must have %lld rows, as x has columns; got %s", (long long)k,
                    proa__tensor_text(a->weight));
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->dtype;
    m->out.shape[m->out.ndim - 1] = a->weight->shape[1];
    PROA_TRY(check_channels(op, "scale", a->scale, a->weight->shape[1]));
    if (!proa__absent(a->bias)) PROA_TRY(check_channels(op, "bias", a->bias, a->weight->shape[1]));
    return check_residual(op, a->residual, &m->out);
}

proa_status matmul_int8_infer(const proa_matmul_int8_args *a, proa_matmul_int8_metas *m)
{
    const char *op = "matmul_int8";
    PROA_TRY(check_result(op, a->dtype, a->high));
    if (!is_integer(a->y)) return FAIL(op, "y", "must be I8 or U8, got %s", proa__tensor_text(a->y));
    PROA_TRY(proa__product_meta(op, a->x, a->y, a->transpose_x, a->transpose_y, &m->out));
    m->out.dtype = a->dtype;
    return PROA_OK;
}

proa_status max_pool2d_int8_infer(const proa_max_pool2d_int8_args *a, proa_max_pool2d_int8_metas *m)
{
    pool_geometry g;
    PROA_TRY(proa__pool_geometry(&MAX_INT8_PARAMS(a), &g));
    proa__pool_meta_out(&g, (proa_dtype)a->x->dtype, &m->out);
    return PROA_OK;
}

proa_status avg_pool2d_int8_infer(const proa_avg_pool2d_int8_args *a, proa_avg_pool2d_int8_metas *m)
{
    pool_geometry g;
    PROA_TRY(check_result("avg_pool2d_int8", a->dtype, a->high));
    PROA_TRY(proa__pool_geometry(&AVG_INT8_PARAMS(a), &g));
    proa__pool_meta_out(&g, a->dtype, &m->out);
    return PROA_OK;
}

proa_status add_int8_infer(const proa_add_int8_args *a, proa_add_int8_metas *m)
{
    PROA_TRY(check_result("add_int8", a->dtype, a->high));
    bool same = is_integer(a->y) && a->y->ndim == a->x->ndim &&
                proa__shapes_agree(a->x->shape, a->y->shape, a->x->ndim);
    if (!same)
        return FAIL("add_int8", "y", "must be I8 or U8 %s, as x is; got %s",
                    proa__shape_text(a->x->shape, a->x->ndim), proa__tensor_text(a->y));
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->dtype;
    return PROA_OK;
}

proa_status affine_int8_infer(const proa_affine_int8_args *a, proa_affine_int8_metas *m)
{
    const char *op = "affine_int8";
    PROA_TRY(check_result(op, a->dtype, a->high));
    if (a->x->ndim < 2) return FAIL(op, "x", "must have two dims or more, got %s", proa__tensor_text(a->x));
    int64_t n = a->x->shape[proa__channels_last(a->data_format) ? a->x->ndim - 1 : 1];
    PROA_TRY(check_channels(op, "scale", a->scale, n));
    if (!proa__absent(a->bias)) PROA_TRY(check_channels(op, "bias", a->bias, n));
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->dtype;
    if (a->activation != PROA_FUSED_ACTIVATION_NONE && a->activation != PROA_FUSED_ACTIVATION_RELU &&
        a->activation != PROA_FUSED_ACTIVATION_RELU6)
        return FAIL(op, "activation", "is another than none, relu or relu6, which are all that the op has");
    return check_residual(op, a->residual, &m->out);
}

proa_status embedding_int8_infer(const proa_embedding_int8_args *a, proa_embedding_int8_metas *m)
{
    const char *op = "embedding_int8";
    const proa_tensor *w = a->weight, *scale = a->scale;
    PROA_TRY(check_weight(op, w));
    if (w->ndim != 2)
        return FAIL(op, "weight", "is %s; expected a table [rows, length]", proa__tensor_text(w));
    bool by_row = scale->ndim == 1 && (scale->numel == 1 || scale->shape[0] == w->shape[0]);
    if (scale->dtype != PROA_F32 || !by_row)
        return FAIL(op, "scale", "must be float32 [1] or one number a row of weight %s, got %s",
                    proa__shape_text(w->shape, w->ndim), proa__tensor_text(scale));
    if (!rows_is_integer(a->x->dtype))
        return proa__operand_dtype_fail(proa_find_op(op), "x", "is %s; expected integers",
                                        proa__tensor_text(a->x));
    if (a->x->ndim == PROA_MAX_DIMS)
        return FAIL(op, "x", "is %s; expected at most %d dims", proa__tensor_text(a->x), PROA_MAX_DIMS - 1);
    if (a->padding_idx < -1 || a->padding_idx >= w->shape[0])
        return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "padding_idx",
                             "is %lld; expected a row of weight %s, or -1 for none",
                             (long long)a->padding_idx, proa__tensor_text(w));
    m->out = proa_meta_of(a->x);
    m->out.dtype = PROA_F32;
    m->out.shape[m->out.ndim++] = w->shape[1];
    return PROA_OK;
}
