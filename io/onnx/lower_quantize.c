/* Lowerings of quantization with scales that are known: Paddle's scale is the greatest magnitude, ONNX's
 * the size of a step. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/quantize.h"

enum { STEPS = 127 }; /* of 8 bits and a sign */

/* The step sizes of a scale: 0-D for one of the whole tensor, [n] for one an index along an axis. */
static onnx_value *steps_of(onnx_graph *g, const proa_tensor *scale, int64_t axis)
{
    onnx_value *v = onnx_mul_by(g, onnx_cast(g, onnx_in(g, scale), PROA_F32), 1.0 / STEPS);
    if (axis >= 0 && onnx_needs(g, 13)) return NULL;
    return axis >= 0 ? ONNX_RESHAPE(g, v, -1) : onnx_reshape(g, v, 0, NULL);
}

/* Zeros of int8, as many as there are steps. */
static onnx_value *zeros_for(onnx_graph *g, const proa_tensor *scale, int64_t axis)
{
    if (axis < 0) return onnx_whole(g, PROA_I8, 0);
    int64_t n = scale->numel;
    int8_t *zeros = n < 0 ? NULL : onnx_alloc(g, (size_t)n, sizeof *zeros);
    return zeros ? onnx_data(g, PROA_I8, 1, &n, zeros) : onnx_refuse(g, "the number of scales must be known");
}

static onnx_value *step_node(onnx_graph *g, const char *type, onnx_value *x, const proa_tensor *scale,
                             int64_t axis)
{
    onnx_value *y = ONNX_NODE(g, type, x, steps_of(g, scale, axis), zeros_for(g, scale, axis));
    if (axis >= 0) onnx_put_int(g, y, "axis", axis);
    return onnx_typed(y, type[0] == 'Q' ? PROA_I8 : PROA_F32);
}

/* x within the scale: the least integer is then −127, as Paddle's, not −128. */
static onnx_value *limited(onnx_graph *g, onnx_value *x, const proa_tensor *scale)
{
    onnx_value *most = onnx_cast(g, onnx_in(g, scale), PROA_F32);
    x = ONNX_NODE(g, "Max", onnx_cast(g, x, PROA_F32), ONNX_NODE(g, "Neg", most));
    return ONNX_NODE(g, "Min", x, most);
}

static bool eight_bits(onnx_graph *g, int64_t bits)
{
    if (bits != 8) onnx_refuse(g, "bit_length is %lld, and ONNX quantizes to 8 bits", (long long)bits);
    return bits == 8;
}

ONNX_LOWER(lower_quantize_linear, quantize_linear)
{
    onnx_value *x = onnx_in(g, a->x);
    if (!a->is_test && !a->only_observer)
        onnx_refuse(g, "it observes scales: put the layer into evaluation mode");
    if (!eight_bits(g, a->bit_length)) return;
    if (a->round_type == 1 && a->quant_axis < 0) x = limited(g, x, a->scale);
    onnx_bind(g, a->y, a->only_observer ? x : step_node(g, "QuantizeLinear", x, a->scale, a->quant_axis));
}

/* The integers that were cast to x; NULL: x is no such cast. */
static onnx_value *integers_of(onnx_value *x)
{
    bool cast = x && x->maker && strcmp(x->maker->type, "Cast") == 0;
    return cast && x->maker->in[0]->dtype == PROA_I8 ? x->maker->in[0] : NULL;
}

/* Numbers that no quantizer made may be between integers, so they are multiplied. */
ONNX_LOWER(lower_dequantize_linear, dequantize_linear)
{
    onnx_value *x = onnx_in(g, a->x), *y, *whole = integers_of(x);
    if (!eight_bits(g, a->bit_length)) return;
    if (a->only_observer) y = x;
    else if (!whole && a->quant_axis < 0) y = onnx_mul(g, x, steps_of(g, a->scale, -1));
    else
        y = step_node(g, "DequantizeLinear", whole ? whole : onnx_cast(g, x, PROA_I8), a->scale,
                      a->quant_axis);
    onnx_bind(g, a->y, y);
}

ONNX_LOWER(lower_fake_quantize, fake_quantize_dequantize_moving_average_abs_max)
{
    if (!a->is_test) onnx_refuse(g, "it observes scales: put the layer into evaluation mode");
    if (!eight_bits(g, a->bit_length)) return;
    onnx_value *x = onnx_in(g, a->x);
    if (a->round_type == 1) x = limited(g, x, a->in_scale);
    onnx_value *y = step_node(g, "QuantizeLinear", x, a->in_scale, -1);
    onnx_bind(g, a->out, step_node(g, "DequantizeLinear", y, a->in_scale, -1));
    if (onnx_is_read(g, a->out_scale)) onnx_bind(g, a->out_scale, onnx_in(g, a->in_scale));
}

const onnx_rule onnx_rules_quantize[] = {
    {"quantize_linear", lower_quantize_linear, NULL, 10, 0},
    {"dequantize_linear", lower_dequantize_linear, NULL, 10, 0},
    {"fake_quantize_dequantize_moving_average_abs_max", lower_fake_quantize, NULL, 10, 0},
    {0},
};

#else
typedef int proa__no_onnx_quantize; /* C wants a declaration in every file */
#endif
