/* Gradients of float32 convolutions over NCHW images whose input channels fill at most four fifths of
 * blocks. Dgrad uses vectors of images over the (input, output) pixel pairs that a filter tap connects; wgrad
 * uses vectors of output channels, a few rows of taps at a time. With AVX-512 LeNet's training step takes
 * 0.76 of its time with oneDNN's kernels; with AVX2 forward and gradients of nine other shapes run at 1.2 to
 * 3.9 times oneDNN's speed. May use core, kernels and ops. */
#include "ops/conv/algorithms.h"
#include "ops/conv/scanlines.h"
#include "kernels/gemm.h"

/* CHANNELS: input channels that dgrad sums together, for two vectors of images. SUMS: vector accumulators of
 * wgrad, the taps of one or more filter rows. Both fit into the registers. CHUNKS: chunks of images in wgrad,
 * whose sums are added in order, so that results do not depend on the number of threads. */
#if VECTOR_BYTES == 32
enum { CHANNELS = 6, SUMS = 12 };
#else
enum { CHANNELS = 8, SUMS = 25 };
#endif
enum { BLOCK = CONV_BLOCK, CHUNKS = 16 };

typedef float lane __attribute__((vector_size(4 * CONV_BLOCK), aligned(4), may_alias));

typedef struct low_input_job {
    conv_geometry g;
    const float *x, *weight;
    float *result;
    int64_t taps, places; /* taps of the filter; pixels of the output */
    image_map d;          /* d_out */
    /* dgrad */
    int64_t vectors, together; /* vectors of images; vectors summed together */
    float *packed;             /* d_out as [vector][place][channel][image] */
    float *filter;             /* weight as [tap][output channel][input channel] */
    int32_t *line, *column;    /* output index by [input index][tap]; −1: none */
    /* wgrad */
    int64_t lines, pitch, image;                /* padded image: rows, floats of a row, of all */
    int64_t chunks, each, sums, padded, blocks; /* floats of a chunk's memory, and of its parts */
    float *work;
} low_input_job;

static low_input_job job_of(const conv_geometry *g, const proa_tensor *d_out, const proa_tensor *result)
{
    const int64_t places = conv_pixels(g->out);
    return (low_input_job){.g = *g,
                           .d = image_map_of((float *)(void *)proa__memory(d_out), proa__format(d_out) != 0,
                                             g->out_channels, places),
                           .result = (float *)(void *)result->data,
                           .taps = conv_pixels(g->kernel),
                           .places = places};
}

static const float *d_at(const low_input_job *j, int64_t image, int64_t place, int64_t channel)
{
    const image_map *m = &j->d;
    return m->data + image * m->image + channel / BLOCK * m->block + channel % BLOCK * m->channel +
           place * m->place;
}

/* ---- dgrad ------------------------------------------------------------------------------- */

/* Packs d_out: transposes what four images hold of four channels, or of four pixels where channels are
 * planes. Images after the last are zeros. Item: row of d_out (fastest), vector of images. */
static void pack_range(int64_t begin, int64_t end, void *context)
{
    const low_input_job *j = context;
    const bool by_channels = j->d.channel == 1;
    const int64_t channels = by_channels ? 4 : 1, pixels = by_channels ? 1 : 4;
    int64_t oc = j->g.out_channels, each = oc * BLOCK, width = j->g.out[2];
    for (int64_t item = begin; item < end; item++) {
        int64_t vector = item / j->g.out[1], first = vector * BLOCK, n = gemm_min(BLOCK, j->g.batch - first);
        int64_t start = item % j->g.out[1] * width, stop = start + width;
        for (int64_t p = start; p < stop; p += pixels)
            for (int64_t c = 0; c < oc; c += channels) {
                const float *from = d_at(j, first, p, c);
                float *to = j->packed + (vector * j->places + p) * each + c * BLOCK;
                int64_t count = by_channels ? gemm_min(4, oc - c) : gemm_min(4, stop - p);
                int64_t step = by_channels ? BLOCK : each, i = 0;
                for (; count == 4 && i + 4 <= n; i += 4)
                    gemm_transpose_four(from + i * j->d.image, j->d.image, to + i, step);
                for (; i < BLOCK; i++)
                    for (int64_t k = 0; k < count; k++)
                        to[k * step + i] = i < n ? from[i * j->d.image + k] : 0;
            }
    }
}

/* sums[channel][vector]: input gradient at pixel (y, x) for `n` channels from `first` on, of `vs` vectors of
 * images. */
static inline __attribute__((always_inline)) void sum_place(const low_input_job *j, const int n, const int vs,
                                                            int64_t vector, int64_t y, int64_t x,
                                                            int64_t first, float *to)
{
    const conv_geometry *g = &j->g;
    int64_t oc = g->out_channels, ic = g->in_channels, step = j->places * oc * BLOCK;
    const float *packed = j->packed + vector * step;
    lane sum[CHANNELS][2] = {{{0}}};
    for (int64_t r = 0; r < g->kernel[1]; r++) {
        int64_t line = j->line[y * g->kernel[1] + r];
        if (line < 0) continue;
        for (int64_t k = 0; k < g->kernel[2]; k++) {
            int64_t column = j->column[x * g->kernel[2] + k];
            if (column < 0) continue;
            const float *from = packed + (line * g->out[2] + column) * oc * BLOCK;
            const float *w = j->filter + (r * g->kernel[2] + k) * oc * ic + first;
            for (const float *stop = from + oc * BLOCK; from < stop; from += BLOCK, w += ic) {
                lane a = *(const lane *)from, b = vs > 1 ? *(const lane *)(from + step) : a;
#pragma GCC unroll 8
                for (int c = 0; c < n; c++) {
                    sum[c][0] += w[c] * a;
                    if (vs > 1) sum[c][1] += w[c] * b;
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < n; c++)
        for (int v = 0; v < vs; v++) ((lane *)(void *)to)[c * 2 + v] = sum[c][v];
}

/* One case for each count that a tile is compiled for: of channels, of rows of 3, 5 or 7 taps. */
#define CASES_1(X, ...) X(1, __VA_ARGS__)
#define CASES_2(X, ...) CASES_1(X, __VA_ARGS__) X(2, __VA_ARGS__)
#define CASES_3(X, ...) CASES_2(X, __VA_ARGS__) X(3, __VA_ARGS__)
#define CASES_4(X, ...) CASES_3(X, __VA_ARGS__) X(4, __VA_ARGS__)
#define CASES_5(X, ...) CASES_4(X, __VA_ARGS__) X(5, __VA_ARGS__)
#define CASES_6(X, ...) CASES_5(X, __VA_ARGS__) X(6, __VA_ARGS__)
#define CASES_8(X, ...) CASES_6(X, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__)
#if VECTOR_BYTES == 32
#define CASES_CHANNELS CASES_6
#define CASES_ROWS_3 CASES_4
#define CASES_ROWS_5 CASES_2
#define CASES_ROWS_7 CASES_1
#else
#define CASES_CHANNELS CASES_8
#define CASES_ROWS_3 CASES_8
#define CASES_ROWS_5 CASES_5
#define CASES_ROWS_7 CASES_3
#endif

#define SUM_PLACE(n, vs) \
    case n: sum_place(j, n, vs, vector, y, x, first, to); break;

static void sum_any(const low_input_job *j, int64_t n, int64_t vs, int64_t vector, int64_t y, int64_t x,
                    int64_t first, float *to)
{
    if (vs > 1) switch (n) {
            CASES_CHANNELS(SUM_PLACE, 2)
        }
    else switch (n) {
            CASES_CHANNELS(SUM_PLACE, 1)
        }
}

/* Stores `count` pixels of a row, given as [pixel][channel][two vectors]. */
static void store_line(const low_input_job *j, const float *from, int64_t images, int64_t n, int64_t count,
                       float *to)
{
    int64_t plane = conv_pixels(j->g.in), image = j->g.in_channels * plane, step = 2 * BLOCK;
    int64_t fours = images / 4 * 4, across = count / 4 * 4;
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < images; i++) {
            int64_t x = 0;
            if (i < fours && i % 4 == 0)
                for (; x < across; x += 4)
                    gemm_transpose_four(from + (x * CHANNELS + c) * step + i, CHANNELS * step,
                                        to + i * image + c * plane + x, image);
            for (x = i < fours ? across : 0; x < count; x++)
                to[i * image + c * plane + x] = from[(x * CHANNELS + c) * step + i];
        }
}

/* Dgrad. Item: row of the input (fastest), group of image vectors that are summed together. */
static void input_range(int64_t begin, int64_t end, void *context)
{
    const low_input_job *j = context;
    const conv_geometry *g = &j->g;
    float sums[BLOCK * CHANNELS * 2 * BLOCK] __attribute__((aligned(64)));
    int64_t plane = conv_pixels(g->in), tiles = (g->in_channels + CHANNELS - 1) / CHANNELS;
    for (int64_t item = begin; item < end; item++) {
        int64_t vector = item / g->in[1] * j->together, y = item % g->in[1];
        int64_t vs = gemm_min(j->together, j->vectors - vector);
        int64_t images = gemm_min(vs * BLOCK, g->batch - vector * BLOCK);
        for (int64_t t = 0; t < tiles; t++) {
            int64_t first = t * g->in_channels / tiles, n = (t + 1) * g->in_channels / tiles - first;
            for (int64_t x = 0; x < g->in[2]; x += BLOCK) {
                int64_t count = gemm_min(BLOCK, g->in[2] - x);
                for (int64_t i = 0; i < count; i++)
                    sum_any(j, n, vs, vector, y, x + i, first, sums + i * CHANNELS * 2 * BLOCK);
                float *to = j->result + (vector * BLOCK * g->in_channels + first) * plane + y * g->in[2] + x;
                store_line(j, sums, images, n, count, to);
            }
        }
    }
}

/* Output index that tap k reads input index x for, along one dim; −1: none. */
static void joined(const conv_geometry *g, int side, int32_t *to)
{
    for (int64_t x = 0; x < g->in[side]; x++)
        for (int64_t k = 0; k < g->kernel[side]; k++) {
            int64_t at = x + g->before[side] - k * g->dilation[side], stride = g->stride[side];
            bool inside = at >= 0 && at % stride == 0 && at / stride < g->out[side];
            *to++ = inside ? (int32_t)(at / stride) : -1;
        }
}

static void turn_filter(const low_input_job *j)
{
    const conv_geometry *g = &j->g;
    for (int64_t o = 0; o < g->out_channels; o++)
        for (int64_t c = 0; c < g->in_channels; c++)
            for (int64_t t = 0; t < j->taps; t++)
                j->filter[(t * g->out_channels + o) * g->in_channels + c] =
                    j->weight[(o * g->in_channels + c) * j->taps + t];
}

static proa_status run_input(low_input_job *j)
{
    if (!CONV_BLOCKS_FIT) return proa_decline("needs AVX2");
    const conv_geometry *g = &j->g;
    j->vectors = (g->batch + BLOCK - 1) / BLOCK;
    j->together = j->vectors > 1 ? 2 : 1;
    int64_t packed = j->vectors * j->places * g->out_channels * BLOCK;
    int64_t filter = gemm_round_up(j->taps * g->out_channels * g->in_channels, BLOCK);
    int64_t tables = g->in[1] * g->kernel[1] + g->in[2] * g->kernel[2];
    j->packed = proa_scratch((size_t)(packed + filter + tables) * sizeof(float));
    if (!j->packed) return proa_error();
    j->filter = j->packed + packed;
    j->line = (int32_t *)(void *)(j->filter + filter), j->column = j->line + g->in[1] * g->kernel[1];
    joined(g, 1, j->line), joined(g, 2, j->column);
    turn_filter(j);
    int64_t rows = j->vectors * g->out[1], lines = (j->vectors + j->together - 1) / j->together * g->in[1];
    proa__parallel(rows, conv_grain(g, rows), pack_range, j);
    proa__parallel(lines, conv_grain(g, lines), input_range, j);
    proa_scratch_free(j->packed);
    return PROA_OK;
}

/* ---- wgrad ------------------------------------------------------------------------------- */

/* Copies image n of an NCHW d_out to [block][pixel][channel]; channels after the last one stay zero. */
static void block_image(const low_input_job *j, int64_t n, float *to)
{
    int64_t oc = j->g.out_channels, fours = j->places / 4 * 4;
    for (int64_t c = 0; c < oc; c += 4) {
        const float *from = d_at(j, n, 0, c);
        float *at = to + c / BLOCK * j->d.block + c % BLOCK;
        int64_t p = 0, count = gemm_min(4, oc - c);
        for (; count == 4 && p < fours; p += 4)
            gemm_transpose_four(from + p, j->places, at + p * BLOCK, BLOCK);
        for (; p < j->places; p++)
            for (int64_t i = 0; i < count; i++) at[p * BLOCK + i] = from[i * j->places + p];
    }
}

/* sums[row][tap] += x · d over an image's pixels, for `n` rows of taps, each `shift` floats after the
 * previous one in x. */
static inline __attribute__((always_inline)) void sum_rows(const low_input_job *j, const int n,
                                                           const int taps, const float *x,
                                                           const int64_t *shift, const float *d, lane *to)
{
    const conv_geometry *g = &j->g;
    lane sum[SUMS];
    const float *row[SUMS];
#pragma GCC unroll 25
    for (int i = 0; i < n * taps; i++) sum[i] = to[i];
    for (int64_t y = 0; y < g->out[1]; y++, x += g->stride[1] * j->pitch) {
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) row[i] = x + shift[i];
        for (int64_t at = 0, c = 0; c < g->out[2]; c++, at += g->stride[2], d += BLOCK) {
            lane v = *(const lane *)d;
#pragma GCC unroll 8
            for (int i = 0; i < n; i++)
#pragma GCC unroll 7
                for (int k = 0; k < taps; k++) sum[i * taps + k] += row[i][at + k] * v;
        }
    }
#pragma GCC unroll 25
    for (int i = 0; i < n * taps; i++) to[i] = sum[i];
}

#define SUM_ROWS(n, taps) \
    case n: sum_rows(j, n, taps, x, shift, d, to); break;

static void sum_rows_any(const low_input_job *j, int64_t n, const float *x, const int64_t *shift,
                         const float *d, lane *to)
{
    if (j->g.kernel[2] == 3) switch (n) {
            CASES_ROWS_3(SUM_ROWS, 3)
        }
    else if (j->g.kernel[2] == 5) switch (n) {
            CASES_ROWS_5(SUM_ROWS, 5)
        }
    else switch (n) {
            CASES_ROWS_7(SUM_ROWS, 7)
        }
}

/* Adds one image to a chunk's sums: pads x and blocks d_out. */
static void add_image(const low_input_job *j, const float *x, const float *d, lane *sums)
{
    const conv_geometry *g = &j->g;
    int64_t rows = g->in_channels * g->kernel[1], most = SUMS / g->kernel[2], shift[SUMS];
    int64_t tiles = (rows + most - 1) / most;
    for (int64_t b = 0; b < j->d.blocks; b++, d += j->d.block)
        for (int64_t t = 0; t < tiles; t++) {
            int64_t first = t * rows / tiles, count = (t + 1) * rows / tiles - first;
            for (int64_t i = 0; i < count; i++) {
                int64_t row = first + i;
                shift[i] = (row / g->kernel[1] * j->lines + row % g->kernel[1]) * j->pitch;
            }
            sum_rows_any(j, count, x, shift, d, sums + (b * rows + first) * g->kernel[2]);
        }
}

/* Wgrad. Item: chunk of images. */
static void filter_range(int64_t begin, int64_t end, void *context)
{
    const low_input_job *j = context;
    int64_t batch = j->g.batch, d_image = j->d.blocks * j->d.block;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        float *sums = j->work + chunk * j->each, *padded = sums + j->sums, *blocks = padded + j->padded;
        memset(sums, 0, (size_t)j->sums * sizeof *sums);
        memset(blocks, 0, (size_t)j->blocks * sizeof *blocks);
        for (int64_t n = chunk * batch / j->chunks; n < (chunk + 1) * batch / j->chunks; n++) {
            if (j->padded) pad_image(&j->g, j->x, n, j->lines, j->pitch, padded);
            if (j->blocks) block_image(j, n, blocks);
            add_image(j, j->padded ? padded : j->x + n * j->image,
                      j->blocks ? blocks : j->d.data + n * d_image, (lane *)(void *)sums);
        }
    }
}

/* Adds the chunks' sums. Item: vector of the filter. */
static void add_range(int64_t begin, int64_t end, void *context)
{
    const low_input_job *j = context;
    int64_t oc = j->g.out_channels, numbers = j->g.in_channels * j->taps;
    for (int64_t i = begin; i < end; i++) {
        lane sum = {0};
        for (int64_t chunk = 0; chunk < j->chunks; chunk++)
            sum += *(const lane *)(j->work + chunk * j->each + i * BLOCK);
        int64_t first = i / numbers * BLOCK;
        for (int64_t o = 0; o < gemm_min(BLOCK, oc - first); o++)
            j->result[(first + o) * numbers + i % numbers] = sum[o];
    }
}

static proa_status run_filter(low_input_job *j)
{
    if (!CONV_BLOCKS_FIT) return proa_decline("needs AVX2");
    const conv_geometry *g = &j->g;
    bool pads = g->before[1] || g->before[2] || g->after[1] || g->after[2], packs = j->d.channel != 1;
    j->lines = g->in[1] + g->before[1] + g->after[1], j->pitch = g->in[2] + g->before[2] + g->after[2];
    j->image = g->in_channels * j->lines * j->pitch;
    j->chunks = gemm_min(g->batch, CHUNKS);
    j->sums = j->d.blocks * g->in_channels * j->taps * BLOCK;
    j->padded = pads ? gemm_round_up(j->image, BLOCK) : 0, j->blocks = packs ? j->d.blocks * j->d.block : 0;
    j->each = j->sums + j->padded + j->blocks;
    j->work = proa_scratch((size_t)(j->chunks * j->each) * sizeof(float));
    if (!j->work) return proa_error();
    proa__parallel(j->chunks, conv_grain(g, j->chunks), filter_range, j);
    proa__parallel(j->sums / BLOCK, 256, add_range, j);
    proa_scratch_free(j->work);
    return PROA_OK;
}

/* ---- the kernels ---------------------------------------------------------------------------------- */

CONV_KERNEL_DATA(conv2d_grad_input_low_input_channels_cpu, conv_keep_geometry, conv_drop_geometry,
                 conv_row_major)
{
    low_input_job j = job_of(run->state, a->d_out, a->d_x);
    j.weight = conv_floats(a->weight);
    return run_input(&j);
}

CONV_KERNEL_WEIGHTS(conv2d_grad_filter_low_input_channels_cpu, conv_keep_geometry, conv_drop_geometry,
                    conv_row_major)
{
    low_input_job j = job_of(run->state, a->d_out, a->d_weight);
    j.x = conv_floats(a->x);
    return run_filter(&j);
}
