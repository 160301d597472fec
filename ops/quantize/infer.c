/* Shapes, checks and straight-through rules of simulated quantization. May use core, kernels and public
 * ops. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "ops/quantize/quantize.h"
#include "impl/quantize.h"

/* ---- checks ------------------------------------------------------------------------------ */

static proa_status check_bits(const char *op, int64_t bits, int64_t round_type)
{
    if (bits < 2 || bits > 16)
        return OP_FAIL(op, INVALID_ARGUMENT, "bit_length", "is %lld; expected 2 to 16", (long long)bits);
    if (round_type < 0 || round_type > 1)
        return OP_FAIL(op, INVALID_ARGUMENT, "round_type",
                       "is %lld; expected 0 (halves to even) or 1 (halves away from zero)",
                       (long long)round_type);
    return PROA_OK;
}

static proa_status check_axis(const char *op, const char *name, int64_t axis, int64_t least,
                              const proa_tensor *x)
{
    if ((axis >= 0 && axis < x->ndim) || (axis == -1 && least == -1)) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %lld; expected %s%d of x %s", (long long)axis,
                   least < 0 ? "-1, or an axis below " : "an axis below ", x->ndim, proa__tensor_text(x));
}

/* t holds `count` numbers (−1: unknown) of dtype d. */
static proa_status check_numbers(const char *op, const char *name, const proa_tensor *t, int64_t count,
                                 proa_dtype d)
{
    if (!proa__absent(t) && t->dtype == d && (t->numel < 0 || rows_dims_agree(t->numel, count)))
        return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected %lld of %s", proa__tensor_text(t),
                   (long long)count, proa_dtype_name(d));
}

/* Scales of x along axis, or one. */
static proa_status check_scale(const char *op, const char *name, const proa_tensor *t, const proa_tensor *x,
                               int64_t axis)
{
    proa_dtype d = proa__absent(t) ? PROA_F32 : (proa_dtype)t->dtype;
    if (d != PROA_F32 && d != PROA_F64)
        return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected float32 or float64",
                       proa__tensor_text(t));
    return check_numbers(op, name, t, axis < 0 ? 1 : x->shape[axis], d);
}

static proa_meta numbers(const proa_tensor *x, int64_t axis)
{
    return (proa_meta){.dtype = x->dtype, .ndim = 1, .shape = {axis < 0 ? 1 : x->shape[axis]}};
}

/* Scales that are learnt are of x's dtype. */
static proa_status check_average(const char *op, const proa_tensor *x, const proa_tensor *scale,
                                 const char *scale_name, const proa_tensor *accum, const proa_tensor *state,
                                 bool is_test)
{
    proa_dtype d = (proa_dtype)x->dtype;
    if (!is_test || !proa__absent(scale)) PROA_TRY(check_numbers(op, scale_name, scale, 1, d));
    if (is_test) return PROA_OK;
    PROA_TRY(check_numbers(op, "in_accum", accum, 1, d));
    return check_numbers(op, "in_state", state, 1, d);
}

static proa_meta optional(const proa_tensor *t)
{
    return proa__absent(t) ? (proa_meta){.ndim = -1} : proa_meta_of(t);
}

/* ---- by the tensor itself ------------------------------------------------------------------ */

#define BY_ITSELF(name)                                                           \
    proa_status name##_infer(const proa_##name##_args *a, proa_##name##_metas *m) \
    {                                                                             \
        PROA_TRY(check_bits(#name, a->bit_length, a->round_type));                \
        m->out = proa_meta_of(a->x);                                              \
        m->out_scale = numbers(a->x, -1);                                         \
        return PROA_OK;                                                           \
    }
BY_ITSELF(fake_quantize_abs_max)
BY_ITSELF(fake_quantize_dequantize_abs_max)

proa_status fake_channel_wise_quantize_abs_max_infer(const proa_fake_channel_wise_quantize_abs_max_args *a,
                                                     proa_fake_channel_wise_quantize_abs_max_metas *m)
{
    const char *op = "fake_channel_wise_quantize_abs_max";
    PROA_TRY(check_bits(op, a->bit_length, a->round_type));
    PROA_TRY(check_axis(op, "quant_axis", a->quant_axis, 0, a->x));
    if (a->is_test)
        PROA_TRY(check_numbers(op, "scale", a->scale, a->x->shape[a->quant_axis], (proa_dtype)a->x->dtype));
    m->out = proa_meta_of(a->x);
    m->out_scale = a->is_test ? (proa_meta){.ndim = -1} : numbers(a->x, a->quant_axis);
    return PROA_OK;
}

proa_status fake_channel_wise_quantize_dequantize_abs_max_infer(
    const proa_fake_channel_wise_quantize_dequantize_abs_max_args *a,
    proa_fake_channel_wise_quantize_dequantize_abs_max_metas *m)
{
    const char *op = "fake_channel_wise_quantize_dequantize_abs_max";
    PROA_TRY(check_bits(op, a->bit_length, a->round_type));
    PROA_TRY(check_axis(op, "quant_axis", a->quant_axis, 0, a->x));
    m->out = proa_meta_of(a->x);
    m->out_scale = numbers(a->x, a->quant_axis);
    return PROA_OK;
}

/* ---- by what was learnt -------------------------------------------------------------------- */

proa_status fake_quantize_range_abs_max_infer(const proa_fake_quantize_range_abs_max_args *a,
                                              proa_fake_quantize_range_abs_max_metas *m)
{
    const char *op = "fake_quantize_range_abs_max";
    PROA_TRY(check_bits(op, a->bit_length, a->round_type));
    PROA_TRY(check_numbers(op, "in_scale", a->in_scale, 1, (proa_dtype)a->x->dtype));
    if (!a->is_test) {
        if (a->window_size < 1)
            return OP_FAIL(op, INVALID_ARGUMENT, "window_size", "is %lld; expected 1 or more",
                           (long long)a->window_size);
        PROA_TRY(check_numbers(op, "iter", a->iter, 1, PROA_I64));
        PROA_TRY(check_numbers(op, "scales", a->scales, a->window_size, (proa_dtype)a->x->dtype));
    }
    m->out = proa_meta_of(a->x);
    m->out_scale = proa_meta_of(a->in_scale);
    m->out_scales = optional(a->scales);
    return PROA_OK;
}

#define BY_AVERAGE(name)                                                                                     \
    proa_status name##_infer(const proa_##name##_args *a, proa_##name##_metas *m)                            \
    {                                                                                                        \
        PROA_TRY(check_bits(#name, a->bit_length, a->round_type));                                           \
        PROA_TRY(check_average(#name, a->x, a->in_scale, "in_scale", a->in_accum, a->in_state, a->is_test)); \
        m->out = proa_meta_of(a->x), m->out_scale = proa_meta_of(a->in_scale);                               \
        m->out_state = optional(a->in_state), m->out_accum = optional(a->in_accum);                          \
        return PROA_OK;                                                                                      \
    }
BY_AVERAGE(fake_quantize_moving_average_abs_max)
BY_AVERAGE(fake_quantize_dequantize_moving_average_abs_max)

proa_status moving_average_abs_max_scale_infer(const proa_moving_average_abs_max_scale_args *a,
                                               proa_moving_average_abs_max_scale_metas *m)
{
    const char *op = "moving_average_abs_max_scale";
    PROA_TRY(check_average(op, a->x, a->scale, "scale", a->in_accum, a->in_state, a->is_test));
    m->out = proa_meta_of(a->x);
    m->out_scale = optional(a->scale);
    m->out_state = optional(a->in_state);
    m->out_accum = optional(a->in_accum);
    return PROA_OK;
}

proa_status quantize_linear_infer(const proa_quantize_linear_args *a, proa_quantize_linear_metas *m)
{
    const char *op = "quantize_linear";
    PROA_TRY(check_bits(op, a->bit_length, a->round_type));
    PROA_TRY(check_axis(op, "quant_axis", a->quant_axis, -1, a->x));
    PROA_TRY(check_scale(op, "scale", a->scale, a->x, a->quant_axis));
    if (!a->is_test && a->quant_axis < 0)
        PROA_TRY(check_average(op, a->x, a->scale, "scale", a->in_accum, a->in_state, false));
    if (!a->is_test && a->scale->dtype != a->x->dtype)
        return OP_FAIL(op, INVALID_ARGUMENT, "scale", "is %s; expected x's %s to learn it",
                       proa__tensor_text(a->scale), proa_dtype_name((proa_dtype)a->x->dtype));
    m->y = proa_meta_of(a->x);
    m->out_scale = proa_meta_of(a->scale);
    m->out_state = optional(a->in_state);
    m->out_accum = optional(a->in_accum);
    return PROA_OK;
}

/* ---- dequantizers -------------------------------------------------------------------------- */

static proa_meta restored(const proa_tensor *x, const proa_tensor *scale)
{
    proa_meta m = proa_meta_of(x);
    m.dtype = scale->dtype;
    return m;
}

proa_status dequantize_linear_infer(const proa_dequantize_linear_args *a, proa_dequantize_linear_metas *m)
{
    const char *op = "dequantize_linear";
    PROA_TRY(check_bits(op, a->bit_length, 0));
    PROA_TRY(check_axis(op, "quant_axis", a->quant_axis, -1, a->x));
    PROA_TRY(check_scale(op, "scale", a->scale, a->x, a->quant_axis));
    m->y = restored(a->x, a->scale);
    return PROA_OK;
}

proa_status fake_dequantize_max_abs_infer(const proa_fake_dequantize_max_abs_args *a,
                                          proa_fake_dequantize_max_abs_metas *m)
{
    const char *op = "fake_dequantize_max_abs";
    PROA_TRY(check_scale(op, "scale", a->scale, a->x, -1));
    m->out = restored(a->x, a->scale);
    return PROA_OK;
}

proa_status fake_channel_wise_dequantize_max_abs_infer(
    const proa_fake_channel_wise_dequantize_max_abs_args *a,
    proa_fake_channel_wise_dequantize_max_abs_metas *m)
{
    const char *op = "fake_channel_wise_dequantize_max_abs";
    if (a->scales.count < 1 || a->scales.count > 2)
        return OP_FAIL(op, INVALID_ARGUMENT, "scales", "holds %lld tensors; expected 1 or 2",
                       (long long)a->scales.count);
    for (int64_t i = 0; i < a->scales.count; i++)
        PROA_TRY(check_bits(op, bits_of_scale(&a->quant_bits, i), 0));
    int64_t axis = dequantize_axis(a->scales.count, a->quant_axis, a->x_num_col_dims);
    PROA_TRY(check_axis(op, a->scales.count == 2 ? "x_num_col_dims" : "quant_axis", axis, 0, a->x));
    PROA_TRY(check_scale(op, "scales", a->scales.at[0], a->x, axis));
    if (a->scales.count == 2)
        PROA_TRY(check_numbers(op, "scales", a->scales.at[1], 1, (proa_dtype)a->scales.at[0]->dtype));
    m->out = restored(a->x, a->scales.at[0]);
    return PROA_OK;
}

/* ---- straight-through rules (Bengio, Léonard and Courville, 2013) ---------------------------- */

#define STRAIGHT_THROUGH(name)                                                  \
    proa_status name##_vjp(const proa_##name##_args *a, proa_##name##_grads *g) \
    {                                                                           \
        (void)a;                                                                \
        g->d_x = g->d_out;                                                      \
        return PROA_OK;                                                         \
    }
STRAIGHT_THROUGH(fake_quantize_dequantize_abs_max)
STRAIGHT_THROUGH(fake_channel_wise_quantize_dequantize_abs_max)
STRAIGHT_THROUGH(fake_quantize_dequantize_moving_average_abs_max)
STRAIGHT_THROUGH(moving_average_abs_max_scale)
