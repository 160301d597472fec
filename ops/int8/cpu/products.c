/* CPU kernels of quantize_int8 and of INT8 convolutions, linear layers and matrix products, which run where
 * oneDNN's do not: they convert the operands to float32 (weights times their scales, converted once), run the
 * float32 op, and round its result. Compiled once per CPU level; static functions and the kernels only. */
#include "kernels/iterator.h"
#include "ops/conv/geometry.h"
#include "ops/int8/rounding.h"
#include "ops/int8/source.h"
#include "core/run.h"
#include "impl/elementwise.h"
#include "impl/int8.h"
#include "impl/matmul.h"
#include "impl/shape.h"

/* ---- rounding ------------------------------------------------------------------------------- */

#define ROUNDING_ROW(T)                                               \
    static void to_##T(char *const *p, int64_t n, const void *args)   \
    {                                                                 \
        const rounding r = *(const rounding *)args;                   \
        const float *x = (const float *)(const void *)p[1];           \
        T *out = (T *)(void *)p[0];                                   \
        for (int64_t i = 0; i < n; i++) out[i] = (T)rounded(x[i], r); \
    }
ROUNDING_ROW(int8_t)
ROUNDING_ROW(uint8_t)

static void to_float(char *const *p, int64_t n, const void *args)
{
    const float scale = ((const rounding *)args)->scale, *x = (const float *)(const void *)p[1];
    float *out = (float *)(void *)p[0];
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * scale;
}

static void to_positive(char *const *p, int64_t n, const void *args)
{
    const float scale = ((const rounding *)args)->scale, *x = (const float *)(const void *)p[1];
    float *out = (float *)(void *)p[0];
    for (int64_t i = 0; i < n; i++) out[i] = x[i] < 0 ? 0 : x[i] * scale;
}

/* Floats are only bounded by a `low` of 0. */
static proa_status round_into(proa_tensor *out, proa_tensor *x, double scale, int64_t low, int64_t high)
{
    proa_dtype d = (proa_dtype)out->dtype;
    rounding r = {(float)scale, (float)(d == PROA_U8 && low < 0 ? 0 : low), (float)high};
    proa_map map = {.row = d == PROA_I8   ? to_int8_t
                           : d == PROA_U8 ? to_uint8_t
                           : low == 0     ? to_positive
                                          : to_float,
                    .n = 2,
                    .tensor = {out, x},
                    .as = {d, PROA_F32},
                    .args = &r};
    return proa__map_run(&map);
}

PROA_KERNEL(quantize_int8_cpu, quantize_int8) { return round_into(a->out, a->x, a->scale, a->low, a->high); }

/* ---- products in float ------------------------------------------------------------------------ */

/* The float32 kernel that serves an INT8 op, and the weights as it reads them. */
typedef struct stand_in {
    const proa_kernel *kernel;
    void *state;
    proa_tensor *weight;   /* weight · scale; kept */
    packed_source from[2]; /* weight and scale */
} stand_in;

static void forget(stand_in *s)
{
    proa_release(s->weight);
    s->weight = NULL;
    for (int i = 0; i < 2; i++) packed_forget(&s->from[i]);
}

static void stand_in_release(void *state)
{
    stand_in *s = state;
    if (!s) return;
    forget(s);
    if (s->kernel && s->kernel->release && s->state) s->kernel->release(s->state);
    proa__free(s);
}

static proa_status stand_in_prepare(const void *args, void **state)
{
    (void)args;
    *state = proa__calloc(sizeof(stand_in));
    return *state ? PROA_OK : proa_error();
}

static proa_status call(const char *op, void *args)
{
    return proa_call_from(PROA_DOOR_RUN, proa_find_op(op), args);
}

/* A new float32 tensor of t's values; NULL on failure. */
static proa_tensor *widened(proa_tensor *t)
{
    if (proa__absent(t) || t->dtype == PROA_F32) return t;
    proa_cast_args cast = {.x = t, .dtype = PROA_F32};
    return call("cast", &cast) == PROA_OK ? cast.out : NULL;
}

/* weight · scale, one scale an index of `axis`. */
static proa_status scale_weight(stand_in *s, proa_tensor *weight, proa_tensor *scale, int axis)
{
    if (s->weight && packed_is_of(&s->from[0], weight) && packed_is_of(&s->from[1], scale)) return PROA_OK;
    forget(s);
    PROA_SCOPED;
    proa_tensor *wide = widened(weight);
    int64_t shape[] = {1, 1, 1, 1};
    shape[axis] = scale->numel;
    proa_reshape_args column = {.x = scale, .shape = {.count = weight->ndim, .at = shape}};
    if (!wide) return proa_error();
    PROA_TRY(call("reshape", &column));
    proa_multiply_args scaled = {.x = wide, .y = column.out};
    PROA_TRY(call("multiply", &scaled));
    s->weight = proa_retain(scaled.out);
    packed_note(&s->from[0], weight);
    packed_note(&s->from[1], scale);
    return PROA_OK;
}

static proa_status run_stand_in(stand_in *s, const char *name, void *args)
{
    const proa_op *op = proa_find_op(name);
    if (!s->kernel) PROA_TRY(proa__pick_kernel(op, args, &s->kernel, &s->state));
    proa_run run = {.state = s->state};
    return s->kernel->run(args, &run);
}

static bool is_finished(const proa_tensor *out, double outer) { return out->dtype == PROA_F32 && outer == 1; }

/* Output of the stand-in: the result, where it needs no rounding; otherwise a temporary. */
static proa_tensor *float_result(proa_tensor *out, double outer)
{
    if (is_finished(out, outer)) return out;
    return proa_empty((proa_ints){.count = out->ndim, .at = out->shape}, PROA_F32);
}

static proa_status finish(proa_tensor *out, proa_tensor *y, double outer, int64_t high)
{
    return is_finished(out, outer) ? PROA_OK : round_into(out, y, outer, -128, high);
}

PROA_KERNEL_PREPARED(conv2d_int8_cpu, conv2d_int8, stand_in_prepare, stand_in_release)
{
    stand_in *s = run->state;
    PROA_TRY(scale_weight(s, a->weight, a->scale, 0));
    PROA_SCOPED;
    proa_conv2d_fused_args conv = {.x = widened(a->x),
                                   .weight = s->weight,
                                   .bias = a->bias,
                                   .residual = widened(a->residual),
                                   CONV_SAME_ATTRIBUTES(a),
                                   .activation = a->activation,
                                   .alpha = a->alpha,
                                   .beta = a->beta,
                                   .constant_weight = true,
                                   .out = float_result(a->out, a->outer)};
    if (!conv.x || !conv.residual || !conv.out) return proa_error();
    PROA_TRY(run_stand_in(s, "conv2d_fused", &conv));
    return finish(a->out, conv.out, a->outer, a->high);
}

PROA_KERNEL_PREPARED(conv2d_transpose_int8_cpu, conv2d_transpose_int8, stand_in_prepare, stand_in_release)
{
    stand_in *s = run->state;
    PROA_TRY(scale_weight(s, a->weight, a->scale, 1));
    PROA_SCOPED;
    bool relu = a->activation == PROA_FUSED_ACTIVATION_RELU;
    proa_conv2d_transpose_args conv = {.x = widened(a->x),
                                       .weight = s->weight,
                                       .bias = a->bias,
                                       .stride = a->stride,
                                       .padding = a->padding,
                                       .output_padding = a->output_padding,
                                       .groups = 1,
                                       .dilation = a->dilation,
                                       .output_size = a->output_size,
                                       .data_format = a->data_format,
                                       .padding_algorithm = a->padding_algorithm,
                                       .out = float_result(a->out, relu ? 0 : a->outer)};
    if (!conv.x || !conv.out) return proa_error();
    PROA_TRY(run_stand_in(s, "conv2d_transpose", &conv));
    if (!relu && is_finished(a->out, a->outer)) return PROA_OK;
    return round_into(a->out, conv.out, a->outer, relu ? 0 : -128, a->high);
}

PROA_KERNEL_PREPARED(linear_int8_cpu, linear_int8, stand_in_prepare, stand_in_release)
{
    stand_in *s = run->state;
    PROA_TRY(scale_weight(s, a->weight, a->scale, 1));
    PROA_SCOPED;
    proa_linear_fused_args linear = {.x = widened(a->x),
                                     .weight = s->weight,
                                     .bias = a->bias,
                                     .residual = widened(a->residual),
                                     .activation = a->activation,
                                     .alpha = a->alpha,
                                     .beta = a->beta,
                                     .constant_weight = true,
                                     .out = float_result(a->out, a->outer)};
    if (!linear.x || !linear.residual || !linear.out) return proa_error();
    PROA_TRY(run_stand_in(s, "linear_fused", &linear));
    return finish(a->out, linear.out, a->outer, a->high);
}

PROA_KERNEL_PREPARED(matmul_int8_cpu, matmul_int8, stand_in_prepare, stand_in_release)
{
    PROA_SCOPED;
    proa_matmul_args product = {.x = widened(a->x),
                                .y = widened(a->y),
                                .transpose_x = a->transpose_x,
                                .transpose_y = a->transpose_y,
                                .out = float_result(a->out, a->scale)};
    if (!product.x || !product.y || !product.out) return proa_error();
    PROA_TRY(run_stand_in(run->state, "matmul", &product));
    return finish(a->out, product.out, a->scale, a->high);
}
