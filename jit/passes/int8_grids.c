/* Finds the quantization grids (values are integers times a step) of the results of Paddle's 8-bit quantizers
 * and dequantizers, where the weight or the scale is a constant. May use core and ops. */
#include "int8.h"

#include "core/blocked.h"
#include "core/deferred.h"
#include "core/internal.h"
#include "impl/elementwise.h"
#include "impl/quantize.h"
#include "impl/shape.h"

/* The value of a positive constant scalar; 0: it is no such constant. */
static double number_of(const int8_pass *p, const proa_tensor *slot)
{
    const proa_tensor *t = proa__int8_constant(p, slot);
    if (!t || t->numel != 1 || (t->dtype != PROA_F32 && t->dtype != PROA_F64)) return 0;
    const void *data = proa__constant_data(t);
    if (!data) return 0;
    double v = t->dtype == PROA_F32 ? (double)*(const float *)data : *(const double *)data;
    return v > 1e-30 && v < 1e30 ? v : 0;
}

static void set(int8_pass *p, const proa_tensor *out, const grid *g)
{
    const proa_var *v = proa__slot_var(out);
    if (proa__use_of(&p->uses, v)) p->grids[v->index] = *g;
}

static int64_t low_of(int64_t round_type) { return round_type == 0 ? -128 : -127; }

/* ---- weights ------------------------------------------------------------------------------------------- */

proa_tensor *proa__int8_integers(proa_tensor *t)
{
    if (t->dtype != PROA_F32) return t->dtype == PROA_I8 ? t : NULL;
    PROA_SCOPED; /* frees the floats at once */
    proa_tensor *read = proa__deferred_once(t);
    const float *v = read ? proa__constant_data(read) : NULL;
    if (!v) return NULL;
    for (int64_t i = 0; i < t->numel; i++)
        if (!(v[i] >= -128 && v[i] <= 127 && v[i] == (float)(int)v[i])) return NULL;
    proa_tensor *integers = proa_return(proa_cast(read, PROA_I8));
    proa__constant_was_read(t);
    return integers;
}

static proa_status set_weight(int8_pass *p, const proa_tensor *out, proa_tensor *integers,
                              proa_tensor *largest, int64_t axis, bool as_floats)
{
    proa_tensor *weight = integers ? proa_return(proa__int8_integers(integers)) : NULL;
    PROA_TRY(proa_error());
    proa_return(largest);
    if (!weight || (largest && largest->dtype != PROA_F32)) return PROA_OK;
    set(p, out,
        &(grid){.kind = GRID_WEIGHT,
                .integers = as_floats,
                .weight = weight,
                .weight_largest = largest,
                .axis = axis < 0 ? 0 : (int)axis});
    return PROA_OK;
}

/* Weight quantizers with one scale for the tensor. */
#define WEIGHT_OF_ONE(op_name, floats)                                                             \
    static proa_status op_name##_grid(int8_pass *p, const proa_##op_name##_args *a)                \
    {                                                                                              \
        proa_tensor *x = proa__int8_constant(p, a->x);                                             \
        if (!x || a->bit_length != 8) return PROA_OK;                                              \
        proa_fake_quantize_abs_max_result q = proa_fake_quantize_abs_max(                          \
            proa__deferred_once(x), .round_type = a->round_type ? a->round_type : PROA_ZERO);      \
        proa__constant_was_read(x);                                                                \
        return proa_error() ? proa_error() : set_weight(p, a->out, q.out, q.out_scale, 0, floats); \
    }
WEIGHT_OF_ONE(fake_quantize_abs_max, true)
WEIGHT_OF_ONE(fake_quantize_dequantize_abs_max, false)

enum { PIECE = 4 << 20 }; /* bytes of a weight that are quantized at a time, where its channels are rows */

/* Quantizes rows [from, to) of x into `integers` and `largest`; false: not all are integers of 8 bits. */
static bool quantize_rows(proa_tensor *x, int64_t from, int64_t to, int64_t round_type, proa_tensor *integers,
                          proa_tensor *largest)
{
    PROA_SCOPED;
    const int64_t row = x->numel / x->shape[0];
    proa_tensor *part = proa_slice(x, PROA_INTS(0), PROA_INTS(from), PROA_INTS(to));
    proa_fake_channel_wise_quantize_abs_max_result q =
        proa_fake_channel_wise_quantize_abs_max(part, PROA_NONE, .round_type = round_type, .quant_axis = 0);
    const proa_tensor *made = q.out ? proa__int8_integers(q.out) : NULL;
    if (!made) return false;
    memcpy(integers->data + from * row, made->data, (size_t)made->numel);
    memcpy(largest->data + (size_t)from * sizeof(float), q.out_scale->data,
           (size_t)(to - from) * sizeof(float));
    return true;
}

/* The integers of a large float32 weight with a scale for each row, and the scales; NULL (or an error): not
 * all are of 8 bits. They are never in memory as floats, and the floats only while they are read. */
static proa_tensor *quantized_by_rows(proa_tensor *x, int64_t round_type, proa_tensor **largest)
{
    proa_tensor *integers = NULL;
    PROA_SCOPE {
        const int64_t rows = x->shape[0], step = 1 + PIECE / (x->numel / rows * (int64_t)sizeof(float));
        proa_tensor *read = proa__deferred_once(x);
        integers = read ? proa_empty((proa_ints){x->ndim, x->shape, NULL, NULL}, PROA_I8) : NULL;
        *largest = integers ? proa_empty(PROA_SHAPE(rows), PROA_F32) : NULL;
        bool all = *largest != NULL;
        for (int64_t at = 0; all && at < rows; at += step)
            all =
                quantize_rows(read, at, at + step < rows ? at + step : rows, round_type, integers, *largest);
        integers = all ? proa_return(integers) : NULL;
        if (all) proa_return(*largest);
    }
    proa__constant_was_read(x);
    proa_memory_trim();
    return integers;
}

static proa_status by_channel(int8_pass *p, proa_tensor *slot, proa_tensor *given, proa_tensor *out,
                              int64_t bits, int64_t round_type, int64_t axis, bool floats)
{
    proa_tensor *x = proa__int8_constant(p, slot);
    proa_tensor *scale = given ? proa__int8_constant(p, given) : PROA_NONE;
    if (!x || !scale || bits != 8) return PROA_OK;
    bool large = x->dtype == PROA_F32 && x->ndim > 1 && x->numel > PIECE / (int64_t)sizeof(float);
    if (large && axis == 0 && !given) {
        proa_tensor *largest = NULL;
        proa_tensor *integers = quantized_by_rows(x, round_type ? round_type : PROA_ZERO, &largest);
        return integers ? set_weight(p, out, integers, largest, 0, floats) : proa_error();
    }
    proa_fake_channel_wise_quantize_abs_max_result q = proa_fake_channel_wise_quantize_abs_max(
        proa__deferred_once(x), scale, .round_type = round_type ? round_type : PROA_ZERO, .quant_axis = axis,
        .is_test = given != NULL);
    PROA_TRY(proa_error());
    proa__constant_was_read(x);
    return set_weight(p, out, q.out, given ? scale : q.out_scale, axis, floats);
}

/* ---- activations --------------------------------------------------------------------------- */

static void set_activation(int8_pass *p, const proa_tensor *x, const proa_tensor *scale,
                           const proa_tensor *out, int64_t round_type, bool integers)
{
    proa_var *from = proa__slot_var(x);
    double largest = number_of(p, scale);
    if (largest == 0 || !proa__use_of(&p->uses, from) || x->dtype != PROA_F32 ||
        !proa__is_value(&p->uses, from))
        return;
    set(p, out,
        &(grid){.kind = GRID_ACTIVATION,
                .integers = integers,
                .from = from,
                .largest = largest,
                .low = low_of(round_type)});
}

#define ACTIVATION(a, holds_integers)                                                          \
    ((a)->is_test && (a)->bit_length == 8                                                      \
         ? set_activation(p, (a)->x, (a)->in_scale, (a)->out, (a)->round_type, holds_integers) \
         : (void)0)

/* ---- quantize_linear, dequantize_linear ---------------------------------------------------- */

static proa_status quantize_linear_grid(int8_pass *p, const proa_quantize_linear_args *a)
{
    proa_tensor *x = proa__int8_constant(p, a->x), *scale = proa__int8_constant(p, a->scale);
    if (!scale || !a->is_test || a->only_observer || a->bit_length != 8) return PROA_OK;
    if (!x) {
        if (scale->numel == 1) set_activation(p, a->x, a->scale, a->y, a->round_type, true);
        return PROA_OK;
    }
    proa_tensor *y = proa_quantize_linear(proa__deferred_once(x), scale, PROA_NONE, PROA_NONE, PROA_NONE,
                                          .quant_axis = a->quant_axis, .round_type = a->round_type);
    proa__constant_was_read(x);
    return set_weight(p, a->y, y, scale, a->quant_axis, true);
}

static proa_status dequantize_linear_grid(int8_pass *p, const proa_dequantize_linear_args *a)
{
    proa_tensor *x = proa__int8_constant(p, a->x), *scale = proa__int8_constant(p, a->scale);
    if (!scale || a->only_observer || a->bit_length != 8) return PROA_OK;
    if (x) return set_weight(p, a->y, x, scale, a->quant_axis, false);
    const grid *g = proa__int8_grid_of(p, a->x);
    if (!g || !g->integers) return PROA_OK;
    if (g->kind == GRID_WEIGHT) return set_weight(p, a->y, g->weight, scale, a->quant_axis, false);
    if (number_of(p, a->scale) != g->largest) return PROA_OK;
    grid same = *g;
    same.integers = false;
    set(p, a->y, &same);
    return PROA_OK;
}

/* Notes the grid of a weight that is dequantized before its op. Dequantizers behind an op are handled in
 * int8_products.c. */
static proa_status dequantized_grid(int8_pass *p, proa_tensor *slot, proa_tensor *scale, proa_tensor *out,
                                    int64_t axis)
{
    const grid *g = proa__int8_grid_of(p, slot);
    proa_tensor *x = g && g->kind == GRID_WEIGHT && g->integers ? g->weight : proa__int8_constant(p, slot);
    proa_tensor *largest = proa__int8_constant(p, scale);
    return x && largest ? set_weight(p, out, x, largest, axis, false) : PROA_OK;
}

static proa_status note_grid(int8_pass *p, const proa_instr *instr)
{
    const void *args = instr->args;
    if (proa__is_op(instr, "fake_quantize_dequantize_moving_average_abs_max")) {
        ACTIVATION((const proa_fake_quantize_dequantize_moving_average_abs_max_args *)args, false);
    } else if (proa__is_op(instr, "fake_quantize_moving_average_abs_max")) {
        ACTIVATION((const proa_fake_quantize_moving_average_abs_max_args *)args, true);
    } else if (proa__is_op(instr, "fake_quantize_range_abs_max")) {
        ACTIVATION((const proa_fake_quantize_range_abs_max_args *)args, true);
    } else if (proa__is_op(instr, "fake_quantize_abs_max")) {
        return fake_quantize_abs_max_grid(p, args);
    } else if (proa__is_op(instr, "fake_quantize_dequantize_abs_max")) {
        return fake_quantize_dequantize_abs_max_grid(p, args);
    } else if (proa__is_op(instr, "fake_channel_wise_quantize_abs_max")) {
        const proa_fake_channel_wise_quantize_abs_max_args *a = args;
        return by_channel(p, a->x, a->is_test ? a->scale : NULL, a->out, a->bit_length, a->round_type,
                          a->quant_axis, true);
    } else if (proa__is_op(instr, "fake_channel_wise_quantize_dequantize_abs_max")) {
        const proa_fake_channel_wise_quantize_dequantize_abs_max_args *a = args;
        return by_channel(p, a->x, NULL, a->out, a->bit_length, a->round_type, a->quant_axis, false);
    } else if (proa__is_op(instr, "quantize_linear")) {
        return quantize_linear_grid(p, args);
    } else if (proa__is_op(instr, "dequantize_linear")) {
        return dequantize_linear_grid(p, args);
    } else if (proa__is_op(instr, "fake_channel_wise_dequantize_max_abs")) {
        const proa_fake_channel_wise_dequantize_max_abs_args *a = args;
        if (a->scales.count == 1 && (a->quant_bits.count == 0 || a->quant_bits.at[0] == 8))
            return dequantized_grid(p, a->x, a->scales.at[0], a->out, a->quant_axis);
    } else if (proa__is_op(instr, "fake_dequantize_max_abs")) {
        const proa_fake_dequantize_max_abs_args *a = args;
        if (a->max_range == INT8_RANGE) return dequantized_grid(p, a->x, a->scale, a->out, 0);
    }
    return PROA_OK;
}

proa_status proa__int8_note_grid(int8_pass *p, const proa_instr *instr)
{
    PROA_SCOPED; /* frees the floats of a weight, and what was made of them, at once */
    return note_grid(p, instr);
}
