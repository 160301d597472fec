/* Depthwise convolutions of NCHW images: forward, dgrad and wgrad. A padded strip of one channel's plane is
 * copied into scratch, split by phase of the stride, so that every filter tap is a shift; each plane is read
 * and written once. Measured on 3×3 over 16×192×56×56: forward 4.0 ms instead of oneDNN's 6.4, both gradients
 * 6.2 instead of 16. May use core, kernels and ops. */
#include "ops/conv/algorithms.h"
#include "ops/conv/scanlines.h"
#include "kernels/nontemporal.h"
#include "ops/reduce/simd_extremes.h"

/* TAPS: filter taps that wgrad sums in one pass, all of a 3×3 filter. ROWS: output rows that a 3×3 filter
 * computes together. COLUMNS: vectors of an output row that other filters compute together. STRIP_BYTES:
 * scratch of a strip, half of a typical L1+L2 working set. MIN: multiply-adds worth a thread. */
enum { TAPS = 9, ROWS = 4, COLUMNS = LANES < 16 ? 8 : 4, STRIP_BYTES = 64 << 10, MIN = 1 << 15 };

/* One call. The result is computed in strips of `rows` rows; wgrad takes strips of d_out's rows. Dgrad is a
 * stride-1 convolution of d_out with the flipped filter and zeros between d_out's pixels. */
typedef struct planes {
    const float *x, *weight, *bias; /* x: d_out in dgrad */
    const float *d;                 /* d_out in wgrad */
    float *out;
    int64_t batch, channels, height, width; /* of x */
    int64_t above, left, spread;            /* padding before x; distance of x's pixels in padded x */
    int64_t out_height, out_width, side[2], stride[2];
    int64_t rows, strips, pitch; /* pitch: floats of a row in scratch, whole vectors */
    int64_t shift[CONV_DEPTHWISE_SIDE_MAX * CONV_DEPTHWISE_SIDE_MAX],
        area; /* offset of each tap in scratch; floats of scratch */
    bool flipped, nontemporal;
} planes;

/* True for a 3×3 filter with stride 1. */
static bool is_square(const planes *w)
{
    return w->side[0] == 3 && w->side[1] == 3 && w->stride[0] == 1 && w->stride[1] == 1;
}

static int64_t simd_up(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

/* Copies columns `phase`, `phase` + stride, … of a padded image row to a row of scratch; `from` is the row
 * without padding, whose zeros are in scratch already. */
static void fill_row(const planes *w, const float *from, int64_t phase, float *to)
{
    int64_t step = w->stride[1], at = phase - w->left; /* first column of x to copy */
    if (w->spread > 1) {                               /* stride is 1 then */
        for (int64_t i = 0, k = w->left; i < w->width && k < w->pitch; i++, k += w->spread) to[k] = from[i];
        return;
    }
    int64_t skip = at < 0 ? (-at + step - 1) / step : 0, n = (w->width - at + step - 1) / step;
    if (n > w->pitch) n = w->pitch;
    if (step == 1) copy_short(to + skip, from + at + skip, n - skip);
    else if (step == 2)
        for (int64_t k = skip; k < n; k++) to[k] = from[at + 2 * k];
    else
        for (int64_t k = skip; k < n; k++) to[k] = from[at + step * k];
}

/* Fills scratch, [row phase][column phase][row][column], with the input rows that output rows [y0, y0 + n)
 * read. `clean`: rows outside the image need no zeros, because scratch was cleared and never written
 * there. */
static void fill(const planes *w, const float *plane, int64_t y0, int64_t n, bool clean, float *to)
{
    int64_t more = (w->side[0] - 1) / w->stride[0], rows = w->rows + more;
    for (int64_t py = 0; py < w->stride[0]; py++)
        for (int64_t px = 0; px < w->stride[1]; px++, to += rows * w->pitch)
            for (int64_t r = 0; r < n + more; r++) {
                int64_t y = (y0 + r) * w->stride[0] + py - w->above;
                bool inside = y >= 0 && y % w->spread == 0 && y / w->spread < w->height;
                if (inside) fill_row(w, plane + y / w->spread * w->width, px, to + r * w->pitch);
                else if (!clean) memset(to + r * w->pitch, 0, (size_t)w->pitch * sizeof *to);
            }
}

/* Prefetch of the next strip's input, in parts of `step` bytes while this strip is computed. */
typedef struct ahead {
    const char *at;
    int64_t step; /* bytes a part */
} ahead;

/* Prefetch of strip `next` of the planes at x (`height` rows of `width` floats); empty from `end` on. */
static ahead look_ahead(const planes *w, const float *x, int64_t height, int64_t width, int64_t next,
                        int64_t end, int64_t parts)
{
    if (next >= end) return (ahead){0};
    int64_t each = height / w->strips + 1, y = next % w->strips * each,
            n = height - y < each ? height - y : each;
    const char *at = (const char *)(x + (next / w->strips * height + y) * width);
    return (ahead){at, n > 0 ? (n * width * (int64_t)sizeof *x + parts - 1) / parts : 0};
}

static inline void ask(ahead *a)
{
    for (int64_t k = 0; k < a->step; k += 64) __builtin_prefetch(a->at + k, 0, 2);
    a->at += a->step;
}

/* Results that non-temporal stores write, in whole cache lines as soon as those are there. */
typedef struct leaving {
    char *to;
    const char *from;
    int64_t done;
    bool nontemporal;
} leaving;

static void leave(leaving *l, int64_t ready, bool last)
{
    int64_t n = ready - l->done;
    if (!last) n -= (int64_t)((uintptr_t)(l->to + ready) & 63);
    if (n <= 0) return;
    if (l->nontemporal && l->done == 0 && (uintptr_t)l->to & 63 && n > 64) { /* up to where a line starts */
        l->done = (int64_t)(-(uintptr_t)l->to & 63), n -= l->done;
        memcpy(l->to, l->from, (size_t)l->done);
    }
    if (l->nontemporal) nontemporal_copy(l->to + l->done, l->from + l->done, n);
    else memcpy(l->to + l->done, l->from + l->done, (size_t)n);
    l->done += n;
}

/* One vector of columns in `rows` adjacent output rows of a 3×3 filter: each vector of x is read once for all
 * rows that use it. */
static inline __attribute__((always_inline)) void square(const float *x, int64_t pitch, const float *tap,
                                                         const int rows, float start, float *to, int64_t step)
{
    f32_lanes sum[ROWS];
    for (int r = 0; r < rows; r++) sum[r] = (f32_lanes){0} + start;
#pragma GCC unroll 8
    for (int y = 0; y < rows + 2; y++)
#pragma GCC unroll 3
        for (int kx = 0; kx < 3; kx++) {
            f32_lanes v = LANES_AT(x + y * pitch + kx);
#pragma GCC unroll 3
            for (int ky = 0; ky < 3; ky++)
                if (y - ky >= 0 && y - ky < rows) sum[y - ky] += v * tap[3 * ky + kx];
        }
    for (int r = 0; r < rows; r++) *(f32_lanes *)(void *)(to + r * step) = sum[r];
}

/* n adjacent vectors of an output row: the sum over taps of the tap times x shifted by the tap's offset. */
static inline __attribute__((always_inline)) void taps_of(const planes *w, const float *x, const float *tap,
                                                          int64_t taps, const int n, float start, float *to)
{
    f32_lanes sum[COLUMNS];
    for (int i = 0; i < n; i++) sum[i] = (f32_lanes){0} + start;
    for (int64_t t = 0; t < taps; t++) {
        const float *from = x + w->shift[t], by = tap[t];
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) sum[i] += LANES_AT(from + i * LANES) * by;
    }
    for (int i = 0; i < n; i++) *(f32_lanes *)(void *)(to + i * LANES) = sum[i];
}

/* Computes output rows [y, y + rows) of a strip into `to`, whose rows are padded to whole vectors. */
static void convolve(const planes *w, const float *x, const float *tap, int64_t y, int64_t rows, float start,
                     float *to)
{
    const int64_t taps = w->side[0] * w->side[1], across = simd_up(w->out_width), pitch = w->pitch;
    bool whole = rows == ROWS && is_square(w);
    x += y * pitch, to += y * across;
    for (int64_t c = 0; whole && c < across; c += LANES)
        square(x + c, pitch, tap, ROWS, start, to + c, across);
    for (int64_t r = 0; r < rows && !whole; r++, x += pitch, to += across) {
        int64_t c = 0;
        for (; c + COLUMNS * LANES <= across; c += COLUMNS * LANES)
            taps_of(w, x + c, tap, taps, COLUMNS, start, to + c);
        for (; c + 2 * LANES <= across; c += 2 * LANES) taps_of(w, x + c, tap, taps, 2, start, to + c);
        if (c < across) taps_of(w, x + c, tap, taps, 1, start, to + c);
    }
}

/* Forward and dgrad. Item: strip, the strips of a plane in sequence. */
static void strips_range(int64_t begin, int64_t end, void *context)
{
    const planes *w = context;
    const int64_t taps = w->side[0] * w->side[1], size = w->out_height * w->out_width;
    const int64_t width = w->out_width, across = simd_up(width);
    float *scratch = proa_scratch((size_t)(w->area + 2 * w->rows * across) * sizeof(float));
    if (!scratch) return;
    float *apart = scratch + w->area, *made = across == width ? apart : apart + w->rows * across;
    float tap[CONV_DEPTHWISE_SIDE_MAX * CONV_DEPTHWISE_SIDE_MAX];
    memset(scratch, 0, (size_t)w->area * sizeof *scratch);
    for (int64_t i = begin; i < end; i++) {
        int64_t plane = i / w->strips, channel = plane % w->channels, y = i % w->strips * w->rows;
        int64_t n = w->out_height - y < w->rows ? w->out_height - y : w->rows;
        for (int64_t t = 0; t < taps; t++)
            tap[t] = w->weight[channel * taps + (w->flipped ? taps - 1 - t : t)];
        fill(w, w->x + plane * w->height * w->width, y, n, w->strips == 1, scratch);
        leaving out = {(char *)(w->out + plane * size + y * width), (const char *)made, 0, w->nontemporal};
        ahead next = look_ahead(w, w->x, w->height, w->width, i + 1, end, (n + ROWS - 1) / ROWS);
        for (int64_t r = 0, k; r < n; r += k) {
            k = n - r < ROWS ? n - r : ROWS;
            ask(&next);
            convolve(w, scratch, tap, r, k, w->bias ? w->bias[channel] : 0, apart);
            for (int64_t q = r; q < r + k && made != apart; q++)
                copy_short(made + q * width, apart + q * across, width);
            leave(&out, (r + k) * width * (int64_t)sizeof *made, r + k == n);
        }
    }
    if (w->nontemporal) proa__copy_nontemporal_end();
    proa_scratch_free(scratch);
}

/* sum[t] += Σ d · x shifted by tap t, for a 3×3 filter, one vector of columns at a time from top to bottom:
 * each vector of x is read once for the three rows of d that it multiplies. Two rows of zeros follow d. */
static inline __attribute__((always_inline)) void square_dots(const planes *w, const float *x, const float *d,
                                                              int64_t rows, ahead next[2], double *sum)
{
    const int64_t across = simd_up(w->out_width);
    f32_lanes part[TAPS];
    for (int t = 0; t < TAPS; t++) part[t] = (f32_lanes){0};
    for (int64_t c = 0; c < w->out_width; c += LANES) {
        ask(&next[0]), ask(&next[1]);
        f32_lanes one = {0}, two = {0}; /* the previous row of d, and the one before it */
        for (int64_t y = 0; y < rows + 2; y++) {
            const float *from = x + y * w->pitch + c;
            f32_lanes now = LANES_AT(d + y * across + c);
#pragma GCC unroll 3
            for (int kx = 0; kx < 3; kx++) {
                f32_lanes v = LANES_AT(from + kx);
                part[kx] += now * v, part[3 + kx] += one * v, part[6 + kx] += two * v;
            }
            two = one, one = now;
        }
    }
    for (int t = 0; t < TAPS; t++) {
        f32_lanes v = part[t];
        sum[t] += (double)lanes_sum(&v);
    }
}

/* sum[t] += Σ d · x shifted by tap t, for n taps. */
static inline __attribute__((always_inline)) void dots(const planes *w, const float *x, const float *d,
                                                       int64_t rows, const int64_t *shift, const int n,
                                                       double *sum)
{
    f32_lanes part[TAPS];
    for (int t = 0; t < n; t++) part[t] = (f32_lanes){0};
    for (int64_t y = 0; y < rows; y++, x += w->pitch, d += simd_up(w->out_width))
        for (int64_t c = 0; c < w->out_width; c += LANES) {
            f32_lanes by = LANES_AT(d + c);
#pragma GCC unroll 9
            for (int t = 0; t < n; t++) part[t] += by * LANES_AT(x + c + shift[t]);
        }
    for (int t = 0; t < n; t++) {
        f32_lanes v = part[t];
        sum[t] += (double)lanes_sum(&v);
    }
}

/* Wgrad. Item: channel, whose sums one thread makes, image after image. */
static void filters_range(int64_t begin, int64_t end, void *context)
{
    const planes *w = context;
    const int64_t taps = w->side[0] * w->side[1], across = simd_up(w->out_width);
    const size_t floats = (size_t)(w->area + (w->rows + 2) * across);
    float *scratch = proa_scratch(floats * sizeof(float));
    if (!scratch) return;
    float *d = scratch + w->area;
    memset(scratch, 0, floats * sizeof *d); /* columns beyond the image stay 0, and rows below it */
    for (int64_t channel = begin; channel < end; channel++) {
        double sum[CONV_DEPTHWISE_SIDE_MAX * CONV_DEPTHWISE_SIDE_MAX] = {0};
        for (int64_t i = 0; i < w->batch * w->strips; i++) {
            int64_t plane = i / w->strips * w->channels + channel, y = i % w->strips * w->rows, t = 0;
            int64_t n = w->out_height - y < w->rows ? w->out_height - y : w->rows;
            const float *from = w->d + (plane * w->out_height + y) * w->out_width;
            int64_t after = i % w->strips + 1 < w->strips ? plane * w->strips + i % w->strips + 1
                                                          : (plane + w->channels) * w->strips;
            int64_t end_of = w->batch * w->channels * w->strips;
            fill(w, w->x + plane * w->height * w->width, y, n, w->strips == 1, scratch);
            for (int64_t r = 0; r < n; r++) copy_short(d + r * across, from + r * w->out_width, w->out_width);
            if (n < w->rows) memset(d + n * across, 0, (size_t)(2 * across) * sizeof *d);
            ahead next[2] = {look_ahead(w, w->x, w->height, w->width, after, end_of, across / LANES),
                             look_ahead(w, w->d, w->out_height, w->out_width, after, end_of, across / LANES)};
            if (is_square(w)) square_dots(w, scratch, d, n, next, sum), t = taps;
            for (; t + TAPS <= taps; t += TAPS) dots(w, scratch, d, n, w->shift + t, TAPS, sum + t);
            for (; t < taps; t++) dots(w, scratch, d, n, w->shift + t, 1, sum + t);
        }
        for (int64_t t = 0; t < taps; t++) w->out[channel * taps + t] = (float)sum[t];
    }
    proa_scratch_free(scratch);
}

/* Sets the rows of a strip, so that scratch fits STRIP_BYTES, and each tap's offset in scratch. */
static void cut(planes *w)
{
    int64_t more = (w->side[0] - 1) / w->stride[0], phases = w->stride[0] * w->stride[1];
    w->pitch = simd_up(simd_up(w->out_width) + (w->side[1] - 1) / w->stride[1]);
    w->rows = STRIP_BYTES / (int64_t)sizeof(float) / (w->pitch * (phases + 1)) - more;
    if (w->rows < 8) w->rows = 8;
    if (w->rows > w->out_height) w->rows = w->out_height;
    w->strips = (w->out_height + w->rows - 1) / w->rows;
    w->area = phases * (w->rows + more) * w->pitch;
    for (int64_t ky = 0; ky < w->side[0]; ky++)
        for (int64_t kx = 0; kx < w->side[1]; kx++) {
            int64_t phase = ky % w->stride[0] * w->stride[1] + kx % w->stride[1];
            int64_t row = phase * (w->rows + more) + ky / w->stride[0];
            w->shift[ky * w->side[1] + kx] = row * w->pitch + kx / w->stride[1];
        }
}

static planes describe(const conv_geometry *g, bool to_input)
{
    const int64_t *in = to_input ? g->out : g->in, *out = to_input ? g->in : g->out;
    planes w = {.batch = g->batch,
                .channels = g->in_channels,
                .height = in[1],
                .width = in[2],
                .spread = to_input ? g->stride[1] : 1,
                .out_height = out[1],
                .out_width = out[2],
                .flipped = to_input};
    for (int i = 0; i < 2; i++) w.side[i] = g->kernel[1 + i], w.stride[i] = to_input ? 1 : g->stride[1 + i];
    w.above = to_input ? g->kernel[1] - 1 - g->before[1] : g->before[1];
    w.left = to_input ? g->kernel[2] - 1 - g->before[2] : g->before[2];
    cut(&w);
    return w;
}

static proa_status run_strips(planes *w, const proa_tensor *x, const proa_tensor *weight,
                              const proa_tensor *bias, proa_tensor *out)
{
    w->x = conv_floats(x);
    w->weight = conv_floats(weight);
    w->bias = conv_floats(bias);
    w->out = (float *)(void *)out->data;
    int64_t bytes = out->numel * (int64_t)sizeof(float);
    bool lines = w->out_height * w->out_width >= 64; /* a plane's are mostly whole cache lines */
    w->nontemporal = lines && proa__nontemporal_pays(bytes, bytes + x->numel * (int64_t)sizeof(float));
    int64_t each = w->rows * w->out_width * w->side[0] * w->side[1];
    proa__parallel(w->batch * w->channels * w->strips, 1 + MIN / each, strips_range, w);
    return proa_error();
}

static proa_status forward_prepare(const void *args, void **state)
{
    const proa_conv1d_args *a = args;
    conv_problem p = {.sides = {a->x, a->weight, a->out}, .plain = true};
    *state = NULL;
    PROA_TRY(conv_ask(CONV_ALGORITHM_conv_depthwise_nchw_cpu,
                      &CONV_PARAMS_OF(a, proa__spatial_rank(a->x), ""), &p));
    return conv_keep_geometry(&p, state);
}

/* Signals are images of one row. */
PROA_KERNEL_BLOCKED(conv_depthwise_nchw_cpu, conv1d, forward_prepare, conv_drop_geometry, NULL)
{
    planes w = describe(run->state, false);
    return run_strips(&w, a->x, a->weight, a->bias, a->out);
}

CONV_KERNEL_DATA(conv2d_grad_input_depthwise_nchw_cpu, conv_keep_geometry, conv_drop_geometry, NULL)
{
    planes w = describe(run->state, true);
    return run_strips(&w, a->d_out, a->weight, proa_none, a->d_x);
}

CONV_KERNEL_WEIGHTS(conv2d_grad_filter_depthwise_nchw_cpu, conv_keep_geometry, conv_drop_geometry, NULL)
{
    planes w = describe(run->state, false);
    w.x = conv_floats(a->x);
    w.d = conv_floats(a->d_out);
    w.out = (float *)(void *)a->d_weight->data;
    int64_t each = w.batch * w.out_height * w.out_width * w.side[0] * w.side[1];
    proa__parallel(w.channels, 1 + MIN / each, filters_range, &w);
    return proa_error();
}
