/* Paddle's fake quantizers, read from saved models as what they compute: elementwise ops over constant
 * scales. Float tensors hold the integers; n = 2^(bits - 1) - 1. May use core, proa/wire.h and public ops. */
#include "core/internal.h"
#include "core/tensor.h"

#include <proa/ops.h>
#include <proa/wire.h>

/* ---- formulas --------------------------------------------------------------------------- */

static double largest_integer(int64_t bits) { return (double)(((int64_t)1 << (bits - 1)) - 1); }

static proa_tensor *times(proa_tensor *x, double v) { return proa_scale(x, .scale = PROA_SCALAR(v)); }

/* scale, one or one an index along axis (-1: one), in a shape that broadcasts with x. */
static proa_tensor *along(proa_tensor *scale, const proa_tensor *x, int64_t axis)
{
    int64_t dims[PROA_MAX_DIMS];
    if (axis < 0) return proa_reshape(scale, PROA_SHAPE(1));
    if (axis >= x->ndim) {
        proa_fail(PROA_ERR_CORRUPT, "a quantizer's axis is %lld, but its input is %s", (long long)axis,
                  proa__tensor_text(x));
        return NULL;
    }
    for (int d = 0; d < x->ndim; d++) dims[d] = d == axis ? -1 : 1;
    proa_ints shape = {x->ndim, dims, NULL, NULL};
    return proa_reshape(scale, shape);
}

/* round(n / s · clip(x, −s, s)), halves away from zero; with `even` clip(round(n / s · x), −n − 1, n),
 * halves to even, which adding and subtracting 1.5 · 2^23 (float64: 2^52) does. A scale of 0 counts
 * as 1e-6. */
static proa_tensor *quantize(proa_tensor *x, proa_tensor *scale, int64_t bits, bool even)
{
    const double n = largest_integer(bits), middle = x->dtype == PROA_F64 ? 0x1.8p52 : 0x1.8p23;
    proa_tensor *tiny = proa_cast(proa_less_equal(scale, proa_full_like(scale, PROA_SCALAR(1e-30))),
                                  (proa_dtype)scale->dtype);
    proa_tensor *up = times(proa_reciprocal(proa_add(scale, times(tiny, 1e-6))), n);
    if (even) {
        proa_tensor *v = proa_multiply(x, up);
        v = proa_clip(v, .min = PROA_SCALAR(-n - 1), .max = PROA_SCALAR(n)); /* before: the sum stays exact */
        return proa_subtract(proa_add(v, proa_full_like(scale, PROA_SCALAR(middle))),
                             proa_full_like(scale, PROA_SCALAR(middle)));
    }
    proa_tensor *inside = proa_maximum(proa_minimum(x, scale), times(scale, -1));
    return proa_round(proa_multiply(inside, up));
}

/* q · s / n. */
static proa_tensor *dequantize(proa_tensor *q, proa_tensor *scale, double n)
{
    return proa_divide(proa_multiply(q, scale), proa_full_like(scale, PROA_SCALAR(n)));
}

/* The largest magnitude of x, or of each index along axis. */
static proa_tensor *largest(proa_tensor *x, int64_t axis)
{
    int64_t over[PROA_MAX_DIMS], n = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != axis) over[n++] = d;
    return proa_max(proa_abs(x), .axis = {n, over, NULL, NULL}, .keepdim = true);
}

/* ---- attributes ------------------------------------------------------------------------- */

static proa_status check_bits(int64_t bits)
{
    if (bits >= 2 && bits <= 16) return PROA_OK;
    return proa_fail(PROA_ERR_CORRUPT, "a quantizer of %lld bits; expected 2 to 16", (long long)bits);
}

/* Binds what x becomes to `to`. missing: round_type where the program has none. */
static proa_status finish(proa_wire_reader *r, const char *to, proa_tensor *x, proa_tensor *scale,
                          bool restores, int64_t missing)
{
    int64_t bits = proa_wire_int(r, "bit_length", 8);
    bool even = proa_wire_int(r, "round_type", missing) == 0;
    PROA_TRY(proa_error());
    PROA_TRY(check_bits(bits));
    if (!x || !scale) return proa_error();
    proa_tensor *q = quantize(x, scale, bits, even);
    return proa_wire_result(r, to, restores ? dequantize(q, scale, largest_integer(bits)) : q);
}

/* With a scale that the program holds. slot NULL: in the variable of its output OutScale. */
static proa_status read_fixed(proa_wire_reader *r, const char *slot, const char *to, int64_t axis,
                              bool restores, int64_t missing)
{
    proa_tensor *x = proa_wire_input(r, "X");
    proa_tensor *scale = !x ? NULL : slot ? proa_wire_input(r, slot) : proa_wire_output_now(r, "OutScale");
    if (!x || !scale) return proa_error();
    return finish(r, to, x, along(scale, x, axis), restores, missing);
}

/* Moving averages and windows are fixed in what is saved for inference. */
static proa_status read_trained(proa_wire_reader *r, const char *slot, const char *to, int64_t axis,
                                bool restores, int64_t missing, int64_t is_test)
{
    if (proa_wire_int(r, "is_test", is_test)) return read_fixed(r, slot, to, axis, restores, missing);
    return proa_fail(PROA_ERR_UNSUPPORTED,
                     "a quantizer that still learns its scale (is_test false): save the model for inference "
                     "(save_quantized_model)");
}

static proa_status read_dynamic(proa_wire_reader *r, int64_t axis, bool restores)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (!x) return proa_error();
    proa_tensor *scale = largest(x, axis);
    PROA_TRY(finish(r, "Out", x, scale, restores, 1));
    return proa_wire_result(r, "OutScale", proa_reshape(scale, PROA_SHAPE(-1)));
}

/* ---- readers: quantize ------------------------------------------------------------------ */

proa_status quantize_linear_read(proa_wire_reader *r)
{
    if (proa_wire_int(r, "only_observer", 0)) return proa_wire_result(r, "Y", proa_wire_input(r, "X"));
    return read_trained(r, "Scale", "Y", proa_wire_int(r, "quant_axis", 0), false, 0, 1);
}

#define READ(name, call) \
    proa_status name(proa_wire_reader *r) { return call; }
READ(quantize_range_read, read_trained(r, "InScale", "Out", -1, false, 1, 0))
READ(quantize_moving_average_read, read_trained(r, "InScale", "Out", -1, false, 1, 0))
READ(quantize_dequantize_moving_average_read, read_trained(r, "InScale", "Out", -1, true, 1, 0))
READ(quantize_abs_max_read, read_dynamic(r, -1, false))
READ(quantize_dequantize_abs_max_read, read_dynamic(r, -1, true))
READ(quantize_dequantize_channels_read, read_dynamic(r, proa_wire_int(r, "quant_axis", 0), true))
READ(moving_average_scale_read, proa_wire_result(r, "Out", proa_wire_input(r, "X")))

/* A saved program holds the scales in the variable of the output. */
proa_status quantize_channels_read(proa_wire_reader *r)
{
    int64_t axis = proa_wire_int(r, "quant_axis", 0);
    if (proa_wire_int(r, "is_test", 0)) return read_fixed(r, NULL, "Out", axis, false, 1);
    return read_dynamic(r, axis, false);
}

/* ---- readers: dequantize ---------------------------------------------------------------- */

/* Integers that are stored as such become the scale's dtype. */
static proa_tensor *as_floats(proa_tensor *x, const proa_tensor *scale)
{
    return x && scale && x->dtype < PROA_F16 ? proa_cast(x, (proa_dtype)scale->dtype) : x;
}

proa_status dequantize_max_abs_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *scale = proa_wire_input(r, "Scale");
    x = as_floats(x, scale);
    if (!x || !scale) return proa_error();
    double range = proa_wire_float(r, "max_range", 127);
    return proa_wire_result(r, "Out", dequantize(x, along(scale, x, -1), range));
}

proa_status dequantize_channels_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    proa_tensors scales = proa_wire_inputs(r, "Scales");
    proa_ints bits = proa_wire_ints(r, "quant_bits");
    PROA_TRY(proa_error());
    if (scales.count < 1 || scales.count > 2)
        return proa_fail(PROA_ERR_CORRUPT,
                         "fake_channel_wise_dequantize_max_abs: %lld scales; expected 1 or 2",
                         (long long)scales.count);
    double range = 1;
    for (int64_t i = 0; i < scales.count; i++) {
        int64_t b = i < bits.count ? bits.at[i] : 8;
        PROA_TRY(check_bits(b));
        range *= largest_integer(b);
    }
    bool two = scales.count == 2; /* behind an op: channels are axis 1, or what follows its columns */
    int64_t axis = two ? proa_wire_int(r, "x_num_col_dims", 1) : proa_wire_int(r, "quant_axis", 0);
    x = as_floats(x, scales.at[0]);
    proa_tensor *scale = x ? along(scales.at[0], x, axis) : NULL;
    if (scale && two) scale = proa_multiply(scale, proa_reshape(scales.at[1], PROA_SHAPE(1)));
    return scale ? proa_wire_result(r, "Out", dequantize(x, scale, range)) : proa_error();
}

proa_status dequantize_linear_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *scale = proa_wire_input(r, "Scale");
    x = as_floats(x, scale);
    if (!x || !scale) return proa_error();
    if (proa_wire_int(r, "only_observer", 0)) return proa_wire_result(r, "Y", x);
    int64_t bits = proa_wire_int(r, "bit_length", 8), axis = proa_wire_int(r, "quant_axis", 0);
    PROA_TRY(check_bits(bits));
    return proa_wire_result(r, "Y", dequantize(x, along(scale, x, axis), largest_integer(bits)));
}
