/* CPU kernels of simulated quantization: Paddle's fake_quantize and fake_dequantize ops, quantize_linear and
 * dequantize_linear. Compiled once per CPU level; static functions and the kernels only. */
#include "kernels/iterator.h"
#include "kernels/rowwise.h"
#include "ops/quantize/quantize.h"
#include "impl/quantize.h"

#include <math.h>

/* x → out, with one scale for each index of an axis; range: the largest integer (quantize_range). */
typedef struct job {
    const char *x;
    char *out, *scale;
    rows_around at;
    double range;
    bool quantizes, even, restores;
} job;

enum { MAX_BLOCKS = 256, BLOCK = 1 << 14 };

/* The largest magnitude, by blocks of a fixed size. */
typedef struct maxima {
    const char *x;
    int64_t count, block;
    double most[MAX_BLOCKS];
} maxima;

#define T float
#define ROUND_TO(name) name##f
#include "rows.inc"
#undef ROUND_TO
#undef T
#define T double
#define ROUND_TO(name) name
#include "rows.inc"
#undef ROUND_TO
#undef T

/* ---- jobs --------------------------------------------------------------------------------- */

static rows_around around(const proa_tensor *x, int64_t axis)
{
    return axis < 0 ? (rows_around){1, 1, x->numel} : rows_split(x, axis);
}

/* round_type 0 rounds halves to even. */
static job quantizer(const proa_tensor *x, proa_tensor *out, const proa_tensor *scale, int64_t axis,
                     int64_t bits, int64_t round_type, bool restores)
{
    return (job){x->data, out->data,       scale->data, around(x, axis), quantize_range(bits),
                 true,    round_type == 0, restores};
}

static proa_status run_job(const job *j, proa_dtype d)
{
    int64_t count = j->at.outer * j->at.n * j->at.inner;
    if (count)
        proa__parallel(count, PROA_GRAIN, d == PROA_F64 ? range_double : range_float, (void *)(uintptr_t)j);
    return PROA_OK;
}

static double largest_magnitude(const proa_tensor *x)
{
    maxima m = {.x = x->data, .count = x->numel, .block = BLOCK};
    while (m.block * MAX_BLOCKS < m.count) m.block *= 2;
    int64_t blocks = (m.count + m.block - 1) / m.block;
    proa__parallel(blocks, 2, x->dtype == PROA_F64 ? block_maxima_double : block_maxima_float, &m);
    double most = 0;
    for (int64_t b = 0; b < blocks; b++) most = m.most[b] > most ? m.most[b] : most;
    return most;
}

/* Fills scale with the largest magnitudes of x, or of its channels. */
static void find_scale(const proa_tensor *x, proa_tensor *scale, int64_t axis)
{
    if (axis < 0) {
        rows_set((proa_dtype)x->dtype, scale->data, 0, largest_magnitude(x));
        return;
    }
    job j = {.x = x->data, .scale = scale->data, .at = around(x, axis)};
    int64_t each = 1 + j.at.outer * j.at.inner;
    proa__parallel(j.at.n, 1 + PROA_GRAIN / each,
                   x->dtype == PROA_F64 ? channel_maxima_double : channel_maxima_float, &j);
}

/* ---- scales that are learnt ------------------------------------------------------------------ */

/* Sets element i of what the op learns: in the tensor that it reads, and in the one that it changes, which
 * the former may be a copy of. */
static void learn(const proa_tensor *seen, proa_tensor *kept, int64_t i, double v)
{
    proa_dtype d = (proa_dtype)kept->dtype;
    rows_set(d, seen->data, i, v);
    rows_set(d, kept->data + (i ? i * kept->strides[0] : 0), 0, v);
}

typedef struct average {
    const proa_tensor *scale, *accum, *state; /* as read */
    proa_tensor *out_scale, *out_accum, *out_state;
    double rate;
} average;

/* In the precision of x, as Paddle's: state = r · state + 1, accum = r · accum + max |x|, scale = accum /
 * state. */
static void move_average(const proa_tensor *x, const average *m)
{
    proa_dtype d = (proa_dtype)x->dtype;
    double most = largest_magnitude(x), s = rows_get(d, m->state->data, 0),
           a = rows_get(d, m->accum->data, 0);
    double scale;
    if (d == PROA_F32) {
        float r = (float)m->rate, s1 = r * (float)s + 1, a1 = r * (float)a + (float)most;
        s = (double)s1, a = (double)a1, scale = (double)(a1 / s1);
    } else {
        s = m->rate * s + 1, a = m->rate * a + most, scale = a / s;
    }
    learn(m->state, m->out_state, 0, s);
    learn(m->accum, m->out_accum, 0, a);
    learn(m->scale, m->out_scale, 0, scale);
}

#define AVERAGE(read) \
    (&(average){read, a->in_accum, a->in_state, a->out_scale, a->out_accum, a->out_state, a->moving_rate})

/* The largest of the first n numbers. Not inlined: GCC 12 for arm64 ends in an internal error there. */
static __attribute__((noinline)) double largest_of(proa_dtype d, const char *numbers, int64_t n)
{
    double most = rows_get(d, numbers, 0);
    for (int64_t i = 1; i < n; i++) {
        double next = rows_get(d, numbers, i);
        if (next > most || most != most) most = next;
    }
    return most;
}

/* Puts max |x| into the window; the scale is the largest number of the window. */
static void move_window(const proa_fake_quantize_range_abs_max_args *a)
{
    proa_dtype d = (proa_dtype)a->x->dtype;
    const char *window = a->scales->data;
    int64_t iter = *(const int64_t *)(const void *)a->iter->data, slot = iter % a->window_size;
    if (slot < 0) slot += a->window_size;
    double now = largest_magnitude(a->x), most = rows_get(d, a->in_scale->data, 0);
    double gone = rows_get(d, window, slot);
    learn(a->scales, a->out_scales, slot, now);
    if (most < now) {
        most = now;
    } else if (fabs(gone - most) < 1e-6) {
        int64_t filled = iter > a->window_size ? a->window_size : iter;
        most = filled > 0 ? largest_of(d, window, filled) : now;
    }
    learn(a->in_scale, a->out_scale, 0, most);
}

/* ---- kernels: quantizers ----------------------------------------------------------------------- */

#define QUANTIZE(op, axis, restores)                                                                 \
    PROA_KERNEL(op##_cpu, op)                                                                        \
    {                                                                                                \
        find_scale(a->x, a->out_scale, axis);                                                        \
        job j = quantizer(a->x, a->out, a->out_scale, axis, a->bit_length, a->round_type, restores); \
        return run_job(&j, (proa_dtype)a->x->dtype);                                                 \
    }
QUANTIZE(fake_quantize_abs_max, -1, false)
QUANTIZE(fake_quantize_dequantize_abs_max, -1, true)
QUANTIZE(fake_channel_wise_quantize_dequantize_abs_max, a->quant_axis, true)

PROA_KERNEL(fake_channel_wise_quantize_abs_max_cpu, fake_channel_wise_quantize_abs_max)
{
    const proa_tensor *scale = a->is_test ? a->scale : a->out_scale;
    if (!a->is_test) find_scale(a->x, a->out_scale, a->quant_axis);
    job j = quantizer(a->x, a->out, scale, a->quant_axis, a->bit_length, a->round_type, false);
    return run_job(&j, (proa_dtype)a->x->dtype);
}

PROA_KERNEL(fake_quantize_range_abs_max_cpu, fake_quantize_range_abs_max)
{
    if (!a->is_test) move_window(a);
    job j = quantizer(a->x, a->out, a->in_scale, -1, a->bit_length, a->round_type, false);
    return run_job(&j, (proa_dtype)a->x->dtype);
}

#define QUANTIZE_BY_AVERAGE(op, restores)                                                         \
    PROA_KERNEL(op##_cpu, op)                                                                     \
    {                                                                                             \
        if (!a->is_test) move_average(a->x, AVERAGE(a->in_scale));                                \
        job j = quantizer(a->x, a->out, a->in_scale, -1, a->bit_length, a->round_type, restores); \
        return run_job(&j, (proa_dtype)a->x->dtype);                                              \
    }
QUANTIZE_BY_AVERAGE(fake_quantize_moving_average_abs_max, false)
QUANTIZE_BY_AVERAGE(fake_quantize_dequantize_moving_average_abs_max, true)

static void pass_on(const proa_tensor *x, proa_tensor *out)
{
    size_t bytes = (size_t)x->numel * proa_dtype_size((proa_dtype)x->dtype);
    if (bytes && out->data != x->data) memcpy(out->data, x->data, bytes);
}

PROA_KERNEL(moving_average_abs_max_scale_cpu, moving_average_abs_max_scale)
{
    if (!a->is_test) move_average(a->x, AVERAGE(a->scale));
    pass_on(a->x, a->out);
    return PROA_OK;
}

/* The largest magnitudes of channels. */
static void learn_scales(const proa_quantize_linear_args *a)
{
    find_scale(a->x, a->scale, a->quant_axis);
    for (int64_t i = 0; a->out_scale->data != a->scale->data && i < a->scale->numel; i++)
        learn(a->scale, a->out_scale, i, rows_get((proa_dtype)a->scale->dtype, a->scale->data, i));
}

PROA_KERNEL(quantize_linear_cpu, quantize_linear)
{
    if (!a->is_test && a->quant_axis < 0) move_average(a->x, AVERAGE(a->scale));
    else if (!a->is_test) learn_scales(a);
    if (a->only_observer) {
        pass_on(a->x, a->y);
        return PROA_OK;
    }
    proa_dtype d = (proa_dtype)a->x->dtype;
    job j = quantizer(a->x, a->y, a->scale, a->quant_axis, a->bit_length, a->round_type, false);
    void *scale = NULL; /* in x's dtype */
    if (a->scale->dtype != a->x->dtype) {
        scale = proa__alloc((size_t)a->scale->numel * proa_dtype_size(d));
        if (!scale) return proa_error();
        proa__convert(d, scale, (proa_dtype)a->scale->dtype, a->scale->data, a->scale->numel);
        j.scale = scale;
    }
    proa_status status = run_job(&j, d);
    proa__free(scale);
    return status;
}

/* ---- kernels: dequantizers --------------------------------------------------------------------- */

/* x · scale / range by channel, in out's dtype; factor multiplies every scale. */
static proa_status dequantize(const proa_tensor *x, proa_tensor *out, const proa_tensor *scale, int64_t axis,
                              double range, double factor)
{
    proa_dtype d = (proa_dtype)out->dtype;
    size_t item = proa_dtype_size(d);
    char *own = NULL;
    job j = {x->data, out->data, scale->data, around(x, axis), range, false, false, true};
    if (factor != 1) {
        own = proa__alloc((size_t)scale->numel * item);
        if (!own) return proa_error();
        for (int64_t c = 0; c < scale->numel; c++) rows_set(d, own, c, rows_get(d, scale->data, c) * factor);
        j.scale = own;
    }
    if (x->dtype != out->dtype) { /* converted into the output, and scaled there */
        proa__convert(d, out->data, (proa_dtype)x->dtype, x->data, x->numel);
        j.x = out->data;
    }
    proa_status status = run_job(&j, d);
    proa__free(own);
    return status;
}

PROA_KERNEL(fake_dequantize_max_abs_cpu, fake_dequantize_max_abs)
{
    return dequantize(a->x, a->out, a->scale, -1, a->max_range, 1);
}

PROA_KERNEL(fake_channel_wise_dequantize_max_abs_cpu, fake_channel_wise_dequantize_max_abs)
{
    double range = 1, factor = 1;
    for (int64_t i = 0; i < a->scales.count; i++) range *= quantize_range(bits_of_scale(&a->quant_bits, i));
    const proa_tensor *scale = a->scales.at[0];
    if (a->scales.count == 2) factor = rows_get((proa_dtype)scale->dtype, a->scales.at[1]->data, 0);
    return dequantize(a->x, a->out, scale, dequantize_axis(a->scales.count, a->quant_axis, a->x_num_col_dims),
                      range, factor);
}

PROA_KERNEL(dequantize_linear_cpu, dequantize_linear)
{
    if (!a->only_observer)
        return dequantize(a->x, a->y, a->scale, a->quant_axis, quantize_range(a->bit_length), 1);
    proa__convert((proa_dtype)a->y->dtype, a->y->data, (proa_dtype)a->x->dtype, a->x->data, a->x->numel);
    return PROA_OK;
}
