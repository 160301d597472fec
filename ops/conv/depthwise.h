/* Channels-last depthwise convolution with the filter stored as [tap][channel]: one vector of channels at a
 * time, a few neighboring output pixels of a row together. For kernel files (compiled once per CPU level).
 * May use core, kernels and ops; everything is static. */
#ifndef PROA_OPS_CONV_DEPTHWISE_H
#define PROA_OPS_CONV_DEPTHWISE_H

#include "kernels/prepacked_operand.h"

#include "ops/conv/geometry.h"

/* Adjacent output pixels of a row that one register tile computes. */
enum { DEPTHWISE_TILE = 4 };

typedef struct depthwise {
    const conv_geometry *g;
    const float *x, *bias, *residual;
    const float *taps; /* [tap][channel] */
    float *out;
    proa__epilogue tail;
    int64_t first_line, first_row; /* input line that x points to; result row that out points to */
    int64_t block;                 /* channels at a time */
    int64_t left, right;           /* pixels [left, right) of an output row read no padding left or right */
} depthwise;

/* A run of adjacent output pixels, and the taps [y0, y1) × [x0, x1) of the filter that are inside the image
 * for all of them. */
typedef struct depthwise_window {
    const float *x; /* input pixel of the first output pixel's tap (0, 0) */
    int64_t y0, y1, x0, x1;
    int64_t c0, c1; /* channels, LANES of them or more */
    int64_t pixel;  /* number of the first output pixel from `out` */
} depthwise_window;

/* Operands of the innermost loop, passed by value so that they stay in registers: in memory, stores of
 * vectors might alias them. */
typedef struct depthwise_steps {
    const float *x, *taps, *bias, *residual;
    float *out;
    int64_t channels, across, line, out_line, width;
    bool clamps;
    float high;
} depthwise_steps;

#define DEPTHWISE_EACH _Pragma("GCC unroll 4") for (int i = 0; i < n; i++)

static inline __attribute__((always_inline)) void depthwise_begin(const depthwise_steps *s, const int n,
                                                                  packed_vector *sum)
{
    const packed_vector start = s->bias ? *(const packed_vector *)s->bias : (packed_vector){0};
    DEPTHWISE_EACH sum[i] = start;
}

/* Adds the residual, clamps, and stores n pixels' sums `at` floats from s->out. */
static inline __attribute__((always_inline)) void depthwise_end(const depthwise_steps *s, const int n,
                                                                packed_vector *sum, int64_t at)
{
    const packed_vector high = (packed_vector){0} + s->high;
    const float *add = s->residual ? s->residual + at : NULL;
    float *out = s->out + at;
    __asm__("" : "+r"(out), "+r"(add));
    if (add) DEPTHWISE_EACH sum[i] += *(const packed_vector *)(add + i * s->channels);
    if (s->clamps) DEPTHWISE_EACH sum[i] = packed_clamp(sum[i], high);
    DEPTHWISE_EACH *(packed_vector *)(out + i * s->channels) = sum[i];
}

/* One vector of channels of n adjacent output pixels, whose inputs are `step` pixels apart. side > 0: a row
 * of the filter has `side` taps, all inside the image, with dilation 1; 0: taps are those of the window. */
static inline __attribute__((always_inline)) void depthwise_vector(const depthwise_steps s,
                                                                   const depthwise_window v, const int n,
                                                                   const int side, const int64_t step)
{
    packed_vector sum[DEPTHWISE_TILE];
    int64_t x0 = side ? 0 : v.x0, x1 = side ? side : v.x1;
    const float *from = s.x + v.y0 * s.line, *tap = s.taps + v.y0 * s.width * s.channels;
    depthwise_begin(&s, n, sum);
#pragma GCC unroll 1
    for (int64_t ky = v.y0; ky < v.y1; ky++, from += s.line, tap += s.width * s.channels) {
        __asm__("" : "+r"(from), "+r"(tap)); /* else addresses of all taps are computed first and spill */
#pragma GCC unroll 8
        for (int64_t kx = x0; kx < x1; kx++) {
            packed_vector by = *(const packed_vector *)(tap + kx * s.channels);
            DEPTHWISE_EACH sum[i] +=
                by * *(const packed_vector *)(from + kx * s.across + i * step * s.channels);
        }
    }
    depthwise_end(&s, n, sum, 0);
}

/* One vector of channels of n adjacent pixels in two output rows, for a side × side filter with stride and
 * dilation 1: input rows that both use are read once. */
static inline __attribute__((always_inline)) void depthwise_two(const depthwise_steps s, const int n,
                                                                const int side)
{
    packed_vector upper[DEPTHWISE_TILE], lower[DEPTHWISE_TILE];
    const float *from = s.x, *tap = s.taps;
    depthwise_begin(&s, n, upper), depthwise_begin(&s, n, lower);
#pragma GCC unroll 8
    for (int ky = 0; ky <= side; ky++, from += s.line) {
        __asm__("" : "+r"(from), "+r"(tap));
#pragma GCC unroll 8
        for (int kx = 0; kx < side; kx++) {
            if (ky < side) {
                packed_vector by = *(const packed_vector *)(tap + (ky * side + kx) * s.channels);
                DEPTHWISE_EACH upper[i] += by * *(const packed_vector *)(from + (kx + i) * s.channels);
            }
            if (ky > 0) {
                packed_vector by = *(const packed_vector *)(tap + ((ky - 1) * side + kx) * s.channels);
                DEPTHWISE_EACH lower[i] += by * *(const packed_vector *)(from + (kx + i) * s.channels);
            }
        }
    }
    depthwise_end(&s, n, upper, 0), depthwise_end(&s, n, lower, s.out_line);
}

static inline __attribute__((always_inline)) depthwise_steps depthwise_at(depthwise_steps s, int64_t c)
{
    s.x += c, s.taps += c, s.out += c;
    if (s.bias) s.bias += c;
    if (s.residual) s.residual += c;
    return s;
}

/* Computes a window for channels [c0, c1), in one or two output rows; the last vector of channels may overlap
 * the one before it. */
static inline __attribute__((always_inline)) void depthwise_tile(const depthwise *w,
                                                                 const depthwise_window *v, const int lines,
                                                                 const int n, const int side,
                                                                 const int64_t step)
{
    const conv_geometry *g = w->g;
    const depthwise_window window = *v;
    int64_t channels = g->out_channels, at = v->pixel * channels, c = v->c0;
    const depthwise_steps s = {.x = v->x,
                               .taps = w->taps,
                               .bias = w->bias,
                               .residual = w->residual ? w->residual + at : NULL,
                               .out = w->out + at,
                               .channels = channels,
                               .across = channels * (side ? 1 : g->dilation[2]),
                               .line = g->in[2] * channels * (side ? 1 : g->dilation[1]),
                               .out_line = g->out[2] * channels,
                               .width = side ? side : g->kernel[2],
                               .clamps = packed_clamps(&w->tail),
                               .high = packed_high(&w->tail)};
    for (; c < window.c1; c += PACKED_LANES) {
        int64_t from = gemm_min(c, window.c1 - PACKED_LANES);
        if (lines == 2) depthwise_two(depthwise_at(s, from), n, side);
        else depthwise_vector(depthwise_at(s, from), window, n, side, step);
    }
}

typedef void (*depthwise_fn)(const depthwise *w, const depthwise_window *v);
#define DEPTHWISE_TILE_OF(name, n, lines, side, step)                     \
    static void name##_##n(const depthwise *w, const depthwise_window *v) \
    {                                                                     \
        depthwise_tile(w, v, lines, n, side, step);                       \
    }
#define DEPTHWISE_TILES(name, lines, side, step)  \
    DEPTHWISE_TILE_OF(name, 1, lines, side, step) \
    DEPTHWISE_TILE_OF(name, 2, lines, side, step) \
    DEPTHWISE_TILE_OF(name, 3, lines, side, step) DEPTHWISE_TILE_OF(name, 4, lines, side, step)
DEPTHWISE_TILES(depthwise_3_1, 1, 3, 1)
DEPTHWISE_TILES(depthwise_3_1_two, 2, 3, 1)
DEPTHWISE_TILES(depthwise_3_2, 1, 3, 2)
DEPTHWISE_TILES(depthwise_5_1, 1, 5, 1)
DEPTHWISE_TILES(depthwise_any, 1, 0, w->g->stride[2])

/* Register tiles by filter side and stride; _TWO computes two output rows. ANY takes every filter, and
 * windows that reach into the padding. */
enum { DEPTHWISE_3_1, DEPTHWISE_3_1_TWO, DEPTHWISE_3_2, DEPTHWISE_5_1, DEPTHWISE_ANY, DEPTHWISE_KINDS };
#define DEPTHWISE_ROW(name)                    \
    {                                          \
        name##_1, name##_2, name##_3, name##_4 \
    }
static const depthwise_fn depthwise_tiles[DEPTHWISE_KINDS][DEPTHWISE_TILE] = {
    DEPTHWISE_ROW(depthwise_3_1), DEPTHWISE_ROW(depthwise_3_1_two), DEPTHWISE_ROW(depthwise_3_2),
    DEPTHWISE_ROW(depthwise_5_1), DEPTHWISE_ROW(depthwise_any)};

/* Register tile for windows whose taps are all inside the image. */
static inline int depthwise_kind(const conv_geometry *g)
{
    int64_t side =
        g->kernel[1] == g->kernel[2] && g->dilation[1] == 1 && g->dilation[2] == 1 ? g->kernel[1] : 0;
    if (side == 3 && g->stride[2] == 1) return DEPTHWISE_3_1;
    if (side == 3 && g->stride[2] == 2) return DEPTHWISE_3_2;
    return side == 5 && g->stride[2] == 1 ? DEPTHWISE_5_1 : DEPTHWISE_ANY;
}

/* Taps [from, to) of `taps` along one dim that read pixels in [0, size), where tap 0 reads pixel `at`. */
static inline void depthwise_clip(int64_t at, int64_t size, int64_t taps, int64_t dilation, int64_t *from,
                                  int64_t *to)
{
    *from = at < 0 ? gemm_min(taps, (-at + dilation - 1) / dilation) : 0;
    *to = at >= size ? 0 : gemm_min(taps, (size - at + dilation - 1) / dilation);
    if (*to < *from) *to = *from;
}

/* Computes channels [c0, c1) of one output row, or of two rows whose filters read no padding above or
 * below. */
static inline void depthwise_lines(const depthwise *w, int64_t row, int64_t lines, int64_t c0, int64_t c1)
{
    const conv_geometry *g = w->g;
    int64_t y = row % g->out[1] * g->stride[1] - g->before[1], image = row / g->out[1] * g->in[1];
    depthwise_window v = {.c0 = c0, .c1 = c1};
    depthwise_clip(y, g->in[1], g->kernel[1], g->dilation[1], &v.y0, &v.y1);
    int kind = lines == 2 ? DEPTHWISE_3_1_TWO : depthwise_kind(g);
    for (int64_t at = 0, n; at < g->out[2]; at += n) {
        int64_t x = at * g->stride[2] - g->before[2], inner = w->right - at;
        bool inside = at >= w->left && inner > 0;
        int64_t parts = inside ? (inner + DEPTHWISE_TILE - 1) / DEPTHWISE_TILE : 1;
        n = inside ? (inner + parts - 1) / parts : 1;
        v.x0 = 0, v.x1 = g->kernel[2];
        v.x = w->x + ((image + y - w->first_line) * g->in[2] + x) * g->in_channels;
        v.pixel = (row - w->first_row) * g->out[2] + at;
        if (inside) {
            depthwise_tiles[kind][n - 1](w, &v);
            continue;
        }
        depthwise_clip(x, g->in[2], g->kernel[2], g->dilation[2], &v.x0, &v.x1);
        for (int64_t i = 0; i < lines; i++) {
            depthwise_tiles[DEPTHWISE_ANY][n - 1](w, &v);
            v.x += g->in[2] * g->in_channels, v.pixel += g->out[2];
        }
    }
}

/* Number of output rows from `row` on that are computed together: 1 or 2. */
static inline int64_t depthwise_together(const conv_geometry *g, int64_t row, int64_t end)
{
    int64_t at = row % g->out[1], y = at - g->before[1];
    bool two = depthwise_kind(g) == DEPTHWISE_3_1 && g->stride[1] == 1 && row + 1 < end &&
               at + 1 < g->out[1] && y >= 0 && y + 4 <= g->in[1];
    return two ? 2 : 1;
}

/* Output rows [begin, end), counted over all images, one block of channels after the other, so that the input
 * rows that a result reads stay in the L1 cache. */
static inline void depthwise_range(int64_t begin, int64_t end, void *context)
{
    const depthwise *w = context;
    int64_t channels = w->g->out_channels, size = w->g->out[2] * channels;
    int64_t blocks = channels > w->block ? channels / w->block : 1;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t c0 = b * w->block, c1 = b + 1 < blocks ? c0 + w->block : channels;
        for (int64_t row = begin, lines; row < end; row += lines) {
            lines = depthwise_together(w->g, row, end);
            depthwise_lines(w, row, lines, c0, c1);
        }
    }
    if (!packed_clamps(&w->tail) && w->tail.activation != PROA_FUSED_ACTIVATION_NONE)
        packed_activate(w->out + (begin - w->first_row) * size, 0, 1, (end - begin) * size, &w->tail);
}

/* The filter [channel, 1, tap] as [tap][channel], in the state's memory and reused while the weight is the
 * same; NULL: no memory. */
static inline const float *depthwise_taps(packed_state *s, const proa_tensor *weight, const conv_geometry *g)
{
    int64_t channels = g->out_channels, taps = g->kernel[1] * g->kernel[2];
    if (packed_is_of(s, weight)) return s->data;
    float *to = packed_renew(s, weight, taps * channels);
    const float *from = conv_floats(weight);
    for (int64_t c = 0; c < channels && to; c++)
        for (int64_t t = 0; t < taps; t++) to[t * channels + c] = from[c * taps + t];
    return to;
}

/* Sets the pixels of a row that read no padding, and the channels of a block. */
static inline void depthwise_cut(depthwise *w, const conv_geometry *g)
{
    enum { LINES_BYTES = 24 << 10, MIN_BLOCK = 128 }; /* input rows of a block; channels */
    int64_t span = g->dilation[2] * (g->kernel[2] - 1), capacity = g->in[2] - 1 - span + g->before[2];
    w->g = g;
    w->left = gemm_min(g->out[2], (g->before[2] + g->stride[2] - 1) / g->stride[2]);
    w->right = capacity < 0 ? 0 : gemm_min(g->out[2], capacity / g->stride[2] + 1);
    w->block = LINES_BYTES / (4 * g->kernel[1] * g->in[2]) / PACKED_LANES * PACKED_LANES;
    if (w->block < MIN_BLOCK) w->block = g->out_channels; /* contiguous rows are read faster */
}

static inline proa_status depthwise_run(const proa_conv2d_fused_args *a, const conv_geometry *g,
                                        packed_state *s)
{
    enum { MIN = 1 << 15 }; /* multiply-adds that are worth a thread */
    depthwise w = {.x = conv_floats(a->x),
                   .bias = conv_floats(a->bias),
                   .taps = depthwise_taps(s, a->weight, g),
                   .out = (float *)(void *)a->out->data,
                   .tail = PROA__EPILOGUE(a)};
    if (!w.taps) return proa_error();
    w.residual = packed_residual(&w.tail);
    depthwise_cut(&w, g);
    int64_t each = g->out[2] * g->out_channels * g->kernel[1] * g->kernel[2];
    proa__parallel(g->batch * g->out[1], 1 + MIN / each, depthwise_range, &w);
    return PROA_OK;
}

#endif
