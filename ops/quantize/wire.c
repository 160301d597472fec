/* Quantizers whose inputs and outputs in Paddle's programs differ from ours: scales that the op reads from
 * the variable of an output, and zero points that the writer creates. May use core, kernels, proa/wire.h and
 * public ops. */
#include "ops/wire_util.h"

#include "kernels/rowwise.h"
#include "impl/create.h"
#include "impl/quantize.h"

/* ---- attributes --------------------------------------------------------------------------- */

static proa_status put_common(proa_wire_writer *w, int64_t bits, int64_t round_type)
{
    PROA_TRY(proa_wire_put_int(w, "bit_length", PROA_WIRE_INT, bits));
    return proa_wire_put_int(w, "round_type", PROA_WIRE_INT, round_type);
}

static proa_status put_flag(proa_wire_writer *w, const char *name, bool v)
{
    return proa_wire_put_int(w, name, PROA_WIRE_BOOLEAN, v);
}

static proa_status put_input(proa_wire_writer *w, const char *slot, proa_tensor *t)
{
    return proa__absent(t) ? PROA_OK : proa_wire_put_input(w, slot, t);
}

static proa_status put_output(proa_wire_writer *w, const char *slot, proa_tensor *t)
{
    return proa__absent(t) ? PROA_OK : proa_wire_put_output(w, slot, t);
}

/* Under its new name, a variable that the op changes without naming it as an input holds what it was. */
static proa_status put_changed(proa_wire_writer *w, proa_tensor *was, proa_tensor *is)
{
    if (proa__absent(was) || proa__absent(is) || was == is) return PROA_OK;
    PROA_TRY(proa_wire_op(w, "assign"));
    PROA_TRY(proa_wire_put_input(w, "X", was));
    return proa_wire_put_output(w, "Out", is);
}

/* Value of an output's variable before the op; zeros where it has none of that size yet. */
static proa_tensor *held(proa_wire_reader *r, const char *slot, int64_t count, proa_dtype dtype)
{
    proa_tensor *t = proa_wire_output_now(r, slot);
    if (!t || (!proa__absent(t) && (t->numel < 0 || t->numel == count))) return t;
    return proa_full(PROA_SHAPE(count), 0, .dtype = dtype);
}

/* ---- fake_channel_wise_quantize_abs_max: with is_test OutScale holds the scales ---------------------- */

proa_status channel_wise_quantize_read(proa_wire_reader *r)
{
    bool is_test = proa_wire_int(r, "is_test", 0);
    proa_tensor *x = proa_wire_input(r, "X");
    proa_tensor *scale = is_test ? proa_wire_output_now(r, "OutScale") : PROA_NONE;
    if (!x || !scale) return proa_error();
    proa_fake_channel_wise_quantize_abs_max_result q = proa_fake_channel_wise_quantize_abs_max(
        x, scale, .bit_length = proa_wire_int(r, "bit_length", 8),
        .round_type = rows_option(proa_wire_int(r, "round_type", 1)),
        .quant_axis = proa_wire_int(r, "quant_axis", 0), .is_test = is_test);
    PROA_TRY(proa_error());
    if (!is_test) PROA_TRY(proa_wire_result(r, "OutScale", q.out_scale));
    return proa_wire_result(r, "Out", q.out);
}

proa_status channel_wise_quantize_write(const void *args, proa_wire_writer *w)
{
    const proa_fake_channel_wise_quantize_abs_max_args *a = args;
    PROA_TRY(proa_wire_op(w, "fake_channel_wise_quantize_abs_max"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_output(w, "OutScale", a->is_test ? a->scale : a->out_scale));
    PROA_TRY(put_common(w, a->bit_length, a->round_type));
    PROA_TRY(proa_wire_put_int(w, "quant_axis", PROA_WIRE_INT, a->quant_axis));
    return put_flag(w, "is_test", a->is_test);
}

/* ---- fake_quantize_range_abs_max: the window is an output alone ------------------------------------- */

proa_status quantize_range_read(proa_wire_reader *r)
{
    bool is_test = proa_wire_int(r, "is_test", 0);
    proa_tensor *x = proa_wire_input(r, "X"), *scale = proa_wire_input(r, "InScale");
    proa_tensor *iter = is_test ? PROA_NONE : proa_wire_input(r, "Iter");
    int64_t size = proa_wire_int(r, "window_size", 10000);
    if (!x || !scale || !iter) return proa_error();
    proa_tensor *window = is_test ? PROA_NONE : held(r, "OutScales", size, (proa_dtype)x->dtype);
    if (!window) return proa_error();
    proa_tensor *out = proa_fake_quantize_range_abs_max(
        x, scale, iter, window, .window_size = size, .bit_length = proa_wire_int(r, "bit_length", 8),
        .round_type = rows_option(proa_wire_int(r, "round_type", 1)), .is_test = is_test);
    PROA_TRY(proa_error());
    PROA_TRY(proa_wire_result(r, "OutScale", scale));
    if (!is_test) PROA_TRY(proa_wire_result(r, "OutScales", window));
    return proa_wire_result(r, "Out", out);
}

proa_status quantize_range_write(const void *args, proa_wire_writer *w)
{
    const proa_fake_quantize_range_abs_max_args *a = args;
    PROA_TRY(put_changed(w, a->scales, a->out_scales));
    PROA_TRY(proa_wire_op(w, "fake_quantize_range_abs_max"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "InScale", a->in_scale));
    PROA_TRY(put_input(w, "Iter", a->iter));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_output(w, "OutScale", a->out_scale));
    PROA_TRY(put_output(w, "OutScales", a->out_scales));
    PROA_TRY(put_common(w, a->bit_length, a->round_type));
    PROA_TRY(proa_wire_put_int(w, "window_size", PROA_WIRE_INT, a->window_size));
    return put_flag(w, "is_test", a->is_test);
}

/* ---- moving_average_abs_max_scale: the scale is an output alone -------------------------------------- */

proa_status moving_average_scale_read(proa_wire_reader *r)
{
    bool is_test = proa_wire_int(r, "is_test", 0);
    proa_tensor *x = proa_wire_input(r, "X"), *scale = PROA_NONE, *accum = PROA_NONE, *state = PROA_NONE;
    if (x && !is_test) {
        scale = held(r, "OutScale", 1, (proa_dtype)x->dtype);
        accum = proa_wire_input(r, "InAccum");
        state = proa_wire_input(r, "InState");
    }
    if (!x || !scale || !accum || !state) return proa_error();
    proa_tensor *out = proa_moving_average_abs_max_scale(
        x, scale, accum, state, .moving_rate = rows_option_float(proa_wire_float(r, "moving_rate", 0.9)),
        .is_test = is_test);
    PROA_TRY(proa_error());
    if (!is_test) {
        PROA_TRY(proa_wire_result(r, "OutScale", scale));
        PROA_TRY(proa_wire_result(r, "OutAccum", accum));
        PROA_TRY(proa_wire_result(r, "OutState", state));
    }
    return proa_wire_result(r, "Out", out);
}

proa_status moving_average_scale_write(const void *args, proa_wire_writer *w)
{
    const proa_moving_average_abs_max_scale_args *a = args;
    proa_tensor *scale = a->out_scale;
    if (proa__absent(scale)) { /* Paddle's op always names one */
        proa_meta one = {.dtype = a->x->dtype, .ndim = 1, .shape = {1}};
        scale = proa_wire_temporary(w, &one);
        if (!scale) return proa_error();
    }
    PROA_TRY(put_changed(w, a->scale, a->out_scale));
    PROA_TRY(proa_wire_op(w, "moving_average_abs_max_scale"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(put_input(w, "InAccum", a->in_accum));
    PROA_TRY(put_input(w, "InState", a->in_state));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_output(w, "OutScale", scale));
    PROA_TRY(put_output(w, "OutState", a->out_state));
    PROA_TRY(put_output(w, "OutAccum", a->out_accum));
    PROA_TRY(proa_wire_put_float(w, "moving_rate", a->moving_rate));
    return put_flag(w, "is_test", a->is_test);
}

/* ---- quantize_linear, dequantize_linear: the zero point is asked for ----------------------------------- */

/* A zero point of zeros where the op has none; NULL on error. */
static proa_tensor *put_zero_point(proa_wire_writer *w, proa_tensor *zero_point, const proa_tensor *scale)
{
    if (proa__is_given(zero_point)) return zero_point;
    proa_meta m = proa_meta_of(scale);
    proa_tensor *zeros = proa_wire_temporary(w, &m);
    if (!zeros || proa_wire_op(w, "fill_constant")) return NULL;
    if (proa_wire_put_output(w, "Out", zeros) || proa_wire_put_float(w, "value", 0)) return NULL;
    if (proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, (proa_ints){m.ndim, m.shape, NULL, NULL}))
        return NULL;
    return proa__wire_put_dtype(w, "dtype", (proa_dtype)m.dtype) ? NULL : zeros;
}

proa_status quantize_linear_read(proa_wire_reader *r)
{
    bool is_test = proa_wire_int(r, "is_test", 1);
    proa_tensor *x = proa_wire_input(r, "X"), *scale = proa_wire_input(r, "Scale");
    proa_tensor *zero_point = proa_wire_input(r, "ZeroPoint");
    proa_tensor *accum = is_test ? PROA_NONE : proa_wire_input(r, "InAccum");
    proa_tensor *state = is_test ? PROA_NONE : proa_wire_input(r, "InState");
    if (!x || !scale || !zero_point || !accum || !state) return proa_error();
    proa_tensor *y = proa_quantize_linear(
        x, scale, zero_point, accum, state, .quant_axis = proa_wire_int(r, "quant_axis", 0),
        .bit_length = proa_wire_int(r, "bit_length", 8), .round_type = proa_wire_int(r, "round_type", 0),
        .no_is_test = !is_test, .only_observer = proa_wire_int(r, "only_observer", 0),
        .moving_rate = rows_option_float(proa_wire_float(r, "moving_rate", 0.9)));
    PROA_TRY(proa_error());
    PROA_TRY(proa_wire_result(r, "OutScale", scale));
    if (!is_test) {
        PROA_TRY(proa_wire_result(r, "OutAccum", accum));
        PROA_TRY(proa_wire_result(r, "OutState", state));
    }
    return proa_wire_result(r, "Y", y);
}

proa_status quantize_linear_write(const void *args, proa_wire_writer *w)
{
    const proa_quantize_linear_args *a = args;
    proa_tensor *zero_point = put_zero_point(w, a->zero_point, a->scale);
    if (!zero_point) return proa_error();
    PROA_TRY(put_changed(w, a->scale, a->out_scale));
    PROA_TRY(proa_wire_op(w, "quantize_linear"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "Scale", a->scale));
    PROA_TRY(proa_wire_put_input(w, "ZeroPoint", zero_point));
    PROA_TRY(proa_wire_put_output(w, "Y", a->y));
    if (!a->is_test) {
        PROA_TRY(put_input(w, "InAccum", a->in_accum));
        PROA_TRY(put_input(w, "InState", a->in_state));
        PROA_TRY(put_output(w, "OutAccum", a->out_accum));
        PROA_TRY(put_output(w, "OutState", a->out_state));
        PROA_TRY(proa_wire_put_float(w, "moving_rate", a->moving_rate));
    }
    PROA_TRY(proa_wire_put_output(w, "OutScale", a->out_scale));
    PROA_TRY(put_common(w, a->bit_length, a->round_type));
    PROA_TRY(proa_wire_put_int(w, "quant_axis", PROA_WIRE_INT, a->quant_axis));
    PROA_TRY(put_flag(w, "is_test", a->is_test));
    return put_flag(w, "only_observer", a->only_observer);
}

proa_status dequantize_linear_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *scale = proa_wire_input(r, "Scale");
    proa_tensor *zero_point = proa_wire_input(r, "ZeroPoint");
    if (!x || !scale || !zero_point) return proa_error();
    return proa_wire_result(r, "Y",
                            proa_dequantize_linear(x, scale, zero_point,
                                                   .quant_axis = proa_wire_int(r, "quant_axis", 0),
                                                   .bit_length = proa_wire_int(r, "bit_length", 8),
                                                   .only_observer = proa_wire_int(r, "only_observer", 0)));
}

proa_status dequantize_linear_write(const void *args, proa_wire_writer *w)
{
    const proa_dequantize_linear_args *a = args;
    proa_tensor *zero_point = put_zero_point(w, a->zero_point, a->scale);
    if (!zero_point) return proa_error();
    PROA_TRY(proa_wire_op(w, "dequantize_linear"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "Scale", a->scale));
    PROA_TRY(proa_wire_put_input(w, "ZeroPoint", zero_point));
    PROA_TRY(proa_wire_put_output(w, "Y", a->y));
    PROA_TRY(put_common(w, a->bit_length, 0));
    PROA_TRY(proa_wire_put_int(w, "quant_axis", PROA_WIRE_INT, a->quant_axis));
    return put_flag(w, "only_observer", a->only_observer);
}
