/* Kernels of conv2d_pooled (fused convolution + ReLU + max pooling) and its gradients. Forward computes the
 * convolution's rows that one row of pooling windows covers, in vectors of output channels, and pools them
 * while they are in the cache; backward sums over the argmax pixel of each window only. Images go in chunks
 * that do not depend on the number of threads, each chunk with its own scratch. Measured over 10 training
 * shapes that no row of benchmarks/ has: 1.42 times (median) as fast as the three ops. May use core, kernels
 * and ops. */
#include "ops/conv/algorithms.h"
#include "ops/conv/conv_relu_pool.h"
#include "ops/conv/scanlines.h"
#include "kernels/gemm.h"

#define LANES ((int64_t)(VECTOR_BYTES / 4))
#define FORWARD_TILES_12(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#if defined(__AVX512F__) || defined(__aarch64__)
#define TILE_MAX 14
#define FORWARD_TILES(X) FORWARD_TILES_12(X) X(13) X(14)
#else
#define TILE_MAX 12
#define FORWARD_TILES FORWARD_TILES_12
#endif
enum { CHUNKS = 32, ROWS_MAX = 5, VECTORS_MAX = 2, WAYS = 4 };

typedef float lane __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t lane_mask __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

/* Argmax pixels of one plane whose gradient is not zero: their filter windows' offsets in an image
 * [line][column][channel], and the gradients. */
typedef struct given {
    int64_t n;
    int64_t *at;
    float *value;
} given;

/* A register tile of a filter's rows × vectors, over all argmax pixels of a plane: `image` and `filter` are
 * at its first vector, their rows `pitch` and `ld` floats apart. */
typedef void (*pooled_tile_fn)(const given *v, float *image, int64_t pitch, float *filter, int64_t ld);

typedef struct pooled_job {
    pooled_geometry p;
    const float *x, *weight, *bias, *out, *d_out;
    const int32_t *place;
    const pooled_tile_fn *tiles; /* of a gradient: by rows and vectors */
    float *result;               /* out, d_x or, of all chunks, the sums of d_weight and d_bias */
    int32_t *places;
    float *packed;     /* the weights as the task reads them */
    float *work;       /* a chunk's */
    int64_t work_each; /* floats */
    int64_t chunks;
    int64_t lines, width; /* of an image with its padding */
    int64_t row, vectors; /* of a filter: numbers in a row, over all channels; vectors of these */
} pooled_job;

static proa_status start(pooled_job *j, const char *op, const proa_tensor *x, const proa_tensor *weight,
                         const proa_ints *padding, const proa_ints *kernel_size)
{
    PROA_TRY(proa__pooled_geometry(op, x, weight, padding, kernel_size, &j->p));
    const conv_geometry *g = &j->p.g;
    j->x = conv_floats(x), j->weight = conv_floats(weight);
    j->lines = g->in[1] + g->before[1] + g->after[1], j->width = g->in[2] + g->before[2] + g->after[2];
    j->row = g->kernel[2] * g->in_channels, j->vectors = (j->row + LANES - 1) / LANES;
    j->chunks = gemm_min(g->batch, CHUNKS);
    return PROA_OK;
}

/* Runs a task over all chunks, each with `each` floats of scratch; `packed`: floats for the packed weights,
 * which all chunks share. */
static proa_status run_chunks(pooled_job *j, int64_t each, int64_t packed, void (*pack)(const pooled_job *),
                              proa_range_fn task)
{
    j->work_each = gemm_round_up(each, 16);
    j->work = proa_scratch((size_t)(j->chunks * j->work_each + packed) * sizeof(float));
    if (!j->work) return proa_error();
    j->packed = j->work + j->chunks * j->work_each;
    const conv_geometry *g = &j->p.g;
    double work =
        (double)(g->batch * g->out_channels * g->out[1] * g->out[2]) * (double)(j->row * g->kernel[1]);
    if (pack) pack(j);
    proa__parallel(j->chunks, work < 1e5 ? j->chunks : 1, task, j);
    proa_scratch_free(j->work);
    return PROA_OK;
}

/* A kernel for float32; the composed kernels take wider dtypes. */
#define POOLED_KERNEL(op)                                                  \
    static proa_status op##_prepare(const void *args, void **state)        \
    {                                                                      \
        conv_problem p = {.sides = {((const proa_##op##_args *)args)->x}}; \
        *state = NULL;                                                     \
        return conv_ask(CONV_ALGORITHM_##op##_cpu, NULL, &p);              \
    }                                                                      \
    PROA_KERNEL_PREPARED(op##_cpu, op, op##_prepare, NULL)

static inline int64_t chunk_start(const pooled_job *j, int64_t chunk)
{
    return chunk * j->p.g.batch / j->chunks;
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* One output row at p columns, for LANES output channels. x: the first input of each column; w: [in
 * channel][row][column][LANES]. Each output is summed in the same order, so equal inputs give equal
 * results. */
static inline __attribute__((always_inline)) void forward_tile(const int p, const pooled_job *j,
                                                               const float *x, const float *w, lane bias,
                                                               float *to)
{
    const conv_geometry *g = &j->p.g;
    lane sum[TILE_MAX];
#pragma GCC unroll 16
    for (int i = 0; i < p; i++) sum[i] = bias;
    for (int64_t c = 0; c < g->in_channels; c++)
        for (int64_t r = 0; r < g->kernel[1]; r++) {
            const float *from = x + (c * j->lines + r) * j->width;
            for (int64_t k = 0; k < g->kernel[2]; k++, w += LANES) {
                lane tap = *(const lane *)w;
#pragma GCC unroll 16
                for (int i = 0; i < p; i++) sum[i] += from[k + i] * tap;
            }
        }
#pragma GCC unroll 16
    for (int i = 0; i < p; i++) *(lane *)(to + i * LANES) = sum[i];
}

typedef void (*forward_tile_fn)(const pooled_job *j, const float *x, const float *w, lane bias, float *to);
#define FORWARD_TILE(p)                                                                                  \
    static void forward_tile_##p(const pooled_job *j, const float *x, const float *w, lane b, float *to) \
    {                                                                                                    \
        forward_tile(p, j, x, w, b, to);                                                                 \
    }
FORWARD_TILES(FORWARD_TILE)
#define FORWARD_ENTRY(p) forward_tile_##p,
static const forward_tile_fn forward_tiles[TILE_MAX] = {FORWARD_TILES(FORWARD_ENTRY)};

static void pack_forward(const pooled_job *j)
{
    const conv_geometry *g = &j->p.g;
    int64_t taps = g->in_channels * g->kernel[1] * g->kernel[2],
            blocks = (g->out_channels + LANES - 1) / LANES;
    for (int64_t o = 0; o < blocks * LANES; o++)
        for (int64_t t = 0; t < taps; t++)
            j->packed[((o / LANES) * taps + t) * LANES + o % LANES] =
                o < g->out_channels ? j->weight[o * taps + t] : 0;
}

/* Maximum and argmax of each pooling window in one row of windows; `line` holds the convolution's results as
 * [window row][column][LANES]. */
static void pool_line(const pooled_job *j, const float *line, int64_t py, int64_t columns, float *best,
                      int32_t *place)
{
    const pooled_geometry *p = &j->p;
    for (int64_t px = 0; px < p->out[1]; px++) {
        const float *at = line + px * p->window[1] * LANES;
        lane value = *(const lane *)at, zero = {0};
        lane_mask where = {0};
        where += (int32_t)(py * p->window[0] * p->g.out[2] + px * p->window[1]);
        for (int64_t r = 0; r < p->window[0]; r++)
            for (int64_t c = 0; c < p->window[1]; c++) {
                lane v = *(const lane *)(at + (r * columns + c) * LANES);
                lane_mask larger = v > value, here = {0};
                here += (int32_t)((py * p->window[0] + r) * p->g.out[2] + px * p->window[1] + c);
                where = (larger & here) | (~larger & where);
                value = (lane)((larger & (lane_mask)v) | (~larger & (lane_mask)value));
            }
        lane_mask below = value < zero; /* a NaN stays */
        *(lane *)(best + px * LANES) = (lane)(~below & (lane_mask)value);
        *(lane_mask *)(place + px * LANES) = where;
    }
}

/* One image, for the LANES output channels from block · LANES on. */
static void forward_block(const pooled_job *j, int64_t n, int64_t block, const float *image, float *line)
{
    const pooled_geometry *p = &j->p;
    const conv_geometry *g = &p->g;
    int64_t columns = p->out[1] * p->window[1], tiles = (columns + TILE_MAX - 1) / TILE_MAX;
    int64_t count = gemm_min(LANES, g->out_channels - block * LANES);
    const float *w = j->packed + block * g->in_channels * g->kernel[1] * g->kernel[2] * LANES;
    float *best = line + p->window[0] * columns * LANES;
    int32_t *place = (int32_t *)(void *)(best + p->out[1] * LANES);
    lane bias = {0};
    for (int64_t l = 0; j->bias && l < count; l++) bias[l] = j->bias[block * LANES + l];
    for (int64_t py = 0; py < p->out[0]; py++) {
        for (int64_t r = 0; r < p->window[0]; r++)
            for (int64_t t = 0; t < tiles; t++) {
                int64_t from = t * columns / tiles, size = (t + 1) * columns / tiles - from;
                forward_tiles[size - 1](j, image + (py * p->window[0] + r) * j->width + from, w, bias,
                                        line + (r * columns + from) * LANES);
            }
        pool_line(j, line, py, columns, best, place);
        for (int64_t l = 0; l < count; l++) {
            int64_t at = ((n * g->out_channels + block * LANES + l) * p->out[0] + py) * p->out[1];
            for (int64_t px = 0; px < p->out[1]; px++) {
                j->result[at + px] = best[px * LANES + l];
                j->places[at + px] = place[px * LANES + l];
            }
        }
    }
}

static void forward_range(int64_t begin, int64_t end, void *context)
{
    const pooled_job *j = context;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        float *image = j->work + chunk * j->work_each;
        float *line = image + gemm_round_up(j->p.g.in_channels * j->lines * j->width, 16);
        for (int64_t n = chunk_start(j, chunk); n < chunk_start(j, chunk + 1); n++) {
            pad_image(&j->p.g, j->x, n, j->lines, j->width, image);
            for (int64_t b = 0; b * LANES < j->p.g.out_channels; b++) forward_block(j, n, b, image, line);
        }
    }
}

POOLED_KERNEL(conv2d_pooled)
{
    pooled_job j = {.bias = conv_floats(a->bias),
                    .result = (float *)(void *)a->out->data,
                    .places = (int32_t *)(void *)a->place->data};
    PROA_TRY(start(&j, "conv2d_pooled", a->x, a->weight, &a->padding, &a->kernel_size));
    const conv_geometry *g = &j.p.g;
    if (g->batch == 0) return PROA_OK;
    int64_t line = (j.p.window[0] * j.p.window[1] + 2) * j.p.out[1] * LANES;
    return run_chunks(&j, gemm_round_up(g->in_channels * j.lines * j.width, 16) + line,
                      gemm_round_up(g->out_channels, LANES) * j.row * g->kernel[1], pack_forward,
                      forward_range);
}

/* ---- argmax pixels with a gradient, which both gradients sum over ---- */

/* Floats of scratch that `given` needs, with space for one more entry; and how they are divided. */
static int64_t given_floats(const pooled_job *j)
{
    return gemm_round_up(3 * (j->p.out[0] * j->p.out[1] + 1), 16);
}

static given given_of(const pooled_job *j, float *memory)
{
    int64_t n = j->p.out[0] * j->p.out[1] + 1;
    return (given){0, (int64_t *)(void *)memory, memory + 2 * n};
}

/* Lists a plane's argmax pixels whose gradient is not zero, and returns the sum of the gradients. Indices
 * outside their window's rows or the plane's columns are clamped. */
static float take_plane(const pooled_job *j, int64_t plane, given *to)
{
    const pooled_geometry *p = &j->p;
    int64_t pixels = p->out[0] * p->out[1], channels = p->g.in_channels, n = 0, q = plane * pixels;
    int32_t columns = (int32_t)p->g.out[2];
    float total = 0;
    for (int64_t py = 0; py < p->out[0]; py++) {
        int32_t first = (int32_t)(py * p->window[0]) * columns;
        for (int64_t px = 0; px < p->out[1]; px++, q++) {
            int32_t rest = j->place[q] - first, row = 0;
            for (int32_t r = 1; r < (int32_t)p->window[0]; r++) row += rest >= r * columns;
            rest -= row * columns;
            rest = rest < 0 ? 0 : rest >= columns ? columns - 1 : rest;
            float d = j->out[q] > 0 ? j->d_out[q] : 0;
            to->at[n] = ((py * p->window[0] + row) * j->width + rest) * channels;
            to->value[n] = d;
            n += !(d == 0);
            total += d;
        }
    }
    to->n = n;
    return total;
}

/* Floats of a padded image [line][column][channel], and of what a vector may read past its end. */
static int64_t image_floats(const pooled_job *j)
{
    return gemm_round_up(j->lines * j->width * j->p.g.in_channels + VECTORS_MAX * LANES, 16);
}

#define POOLED_TILE(name, rows, vecs)                                                              \
    static void name##_##rows##_##vecs(const given *v, float *image, int64_t pitch, float *filter, \
                                       int64_t ld)                                                 \
    {                                                                                              \
        name(rows, vecs, v, image, pitch, filter, ld);                                             \
    }
#define POOLED_ENTRY(name, rows, vecs) name##_##rows##_##vecs,
#define POOLED_ROWS(X, name, rows) X(name, rows, 1) X(name, rows, 2)
#define POOLED_EACH(X, name) \
    POOLED_ROWS(X, name, 1)  \
    POOLED_ROWS(X, name, 2) POOLED_ROWS(X, name, 3) POOLED_ROWS(X, name, 4) POOLED_ROWS(X, name, 5)
#define POOLED_TILES(name)         \
    POOLED_EACH(POOLED_TILE, name) \
    static const pooled_tile_fn name##s[ROWS_MAX * VECTORS_MAX] = {POOLED_EACH(POOLED_ENTRY, name)}

/* Runs the tiles of a whole filter. */
static void run_tiles(const pooled_job *j, const given *v, float *image, float *filter)
{
    const conv_geometry *g = &j->p.g;
    int64_t ld = j->vectors * LANES, pitch = j->width * g->in_channels;
    for (int64_t r = 0; r < g->kernel[1]; r += ROWS_MAX)
        for (int64_t k = 0; k < j->vectors; k += VECTORS_MAX) {
            int64_t rows = gemm_min(ROWS_MAX, g->kernel[1] - r), vecs = gemm_min(VECTORS_MAX, j->vectors - k);
            j->tiles[(rows - 1) * VECTORS_MAX + vecs - 1](v, image + r * pitch + k * LANES, pitch,
                                                          filter + r * ld + k * LANES, ld);
        }
}

/* Copies the planes of an image to [line][column][channel] within its padding, or back. */
static void turn_image(const pooled_job *j, float *planes, float *image, const bool back)
{
    const conv_geometry *g = &j->p.g;
    int64_t channels = g->in_channels;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t r = 0; r < g->in[1]; r++, planes += g->in[2]) {
            float *line = image + ((g->before[1] + r) * j->width + g->before[2]) * channels + c;
            for (int64_t i = 0; i < g->in[2]; i++)
                if (back) planes[i] = line[i * channels];
                else line[i * channels] = planes[i];
        }
}

/* Copies filters [out][in][row][column] to [out][row][column, in], rows of whole vectors, or back. */
static void turn_filters(const pooled_job *j, float *filters, float *rows, const bool back)
{
    const conv_geometry *g = &j->p.g;
    int64_t ld = j->vectors * LANES, channels = g->in_channels;
    for (int64_t o = 0; o < g->out_channels; o++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t r = 0; r < g->kernel[1]; r++)
                for (int64_t k = 0; k < g->kernel[2]; k++, filters++) {
                    float *at = rows + (o * g->kernel[1] + r) * ld + k * channels + c;
                    if (back) *filters = *at;
                    else *at = *filters;
                }
}

/* ---- wgrad ---------------------------------------------------------------------------------- */

/* filter[rows × vecs vectors] += value · the image's vectors at offset `at`. */
static inline __attribute__((always_inline)) void filter_tile(const int rows, const int vecs, const given *v,
                                                              const float *image, int64_t pitch,
                                                              float *filter, int64_t ld)
{
    lane sum[ROWS_MAX][VECTORS_MAX];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int k = 0; k < vecs; k++) sum[r][k] = *(const lane *)(filter + r * ld + k * LANES);
    for (int64_t i = 0; i < v->n; i++) {
        const float *from = image + v->at[i];
        float value = v->value[i];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int k = 0; k < vecs; k++) sum[r][k] += value * *(const lane *)(from + r * pitch + k * LANES);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int k = 0; k < vecs; k++) *(lane *)(filter + r * ld + k * LANES) = sum[r][k];
}

POOLED_TILES(filter_tile);

/* ---- dgrad ---------------------------------------------------------------------------------- */

/* Adds value · filter[rows × vecs vectors] to the image at each offset `at`. WAYS distant offsets are
 * interleaved, because a load soon after a store to the same address is slow. */
static inline __attribute__((always_inline)) void input_tile(const int rows, const int vecs, const given *v,
                                                             float *image, int64_t pitch, const float *filter,
                                                             int64_t ld)
{
    lane tap[ROWS_MAX][VECTORS_MAX];
    int64_t part = (v->n + WAYS - 1) / WAYS;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int k = 0; k < vecs; k++) tap[r][k] = *(const lane *)(filter + r * ld + k * LANES);
    for (int64_t i = 0; i < part; i++)
        for (int64_t at = i; at < v->n; at += part) {
            float *to = image + v->at[at], value = v->value[at];
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
                for (int k = 0; k < vecs; k++) *(lane *)(to + r * pitch + k * LANES) += value * tap[r][k];
        }
}

POOLED_TILES(input_tile);

/* ---- both --------------------------------------------------------------------------------------- */

/* Floats of one chunk's sums: weight gradients, then bias gradients; whole cache lines. */
static int64_t filter_floats(const pooled_job *j)
{
    return gemm_round_up(j->p.g.out_channels * (j->p.g.kernel[1] * j->vectors * LANES + 1), 16);
}

/* The gradients of a chunk's images, channel by channel: wgrad adds the image at the argmax pixels to the
 * chunk's sums, dgrad adds the filters to the image there. */
static void gradients_range(int64_t begin, int64_t end, void *context)
{
    const pooled_job *j = context;
    const conv_geometry *g = &j->p.g;
    const bool to_input = j->tiles == input_tiles;
    const int64_t filter = g->kernel[1] * j->vectors * LANES, planes = g->in_channels * g->in[1] * g->in[2];
    for (int64_t chunk = begin; chunk < end; chunk++) {
        float *image = j->work + chunk * j->work_each;
        float *filters = to_input ? j->packed : j->result + chunk * filter_floats(j);
        if (!to_input) memset(image, 0, (size_t)image_floats(j) * sizeof *image); /* the padding */
        for (int64_t n = chunk_start(j, chunk); n < chunk_start(j, chunk + 1); n++) {
            if (to_input) memset(image, 0, (size_t)image_floats(j) * sizeof *image);
            else turn_image(j, (float *)(uintptr_t)j->x + n * planes, image, false);
            for (int64_t o = 0; o < g->out_channels; o++) {
                given v = given_of(j, image + image_floats(j));
                float total = take_plane(j, n * g->out_channels + o, &v);
                run_tiles(j, &v, image, filters + o * filter);
                if (!to_input) filters[g->out_channels * filter + o] += total;
            }
            if (to_input) turn_image(j, j->result + n * planes, image, true);
        }
    }
}

POOLED_KERNEL(conv2d_pooled_grad_filter)
{
    pooled_job j = {.tiles = filter_tiles,
                    .out = conv_floats(a->out),
                    .d_out = conv_floats(a->d_out),
                    .place = (const int32_t *)(void *)a->place->data};
    PROA_TRY(start(&j, "conv2d_pooled_grad_filter", a->x, a->weight, &a->padding, &a->kernel_size));
    const int64_t n = filter_floats(&j), all = (j.chunks + 1) * n;
    j.result = proa_scratch((size_t)all * sizeof *j.result);
    if (!j.result) return proa_error();
    memset(j.result, 0, (size_t)all * sizeof *j.result);
    proa_status status = PROA_OK;
    if (j.chunks) status = run_chunks(&j, image_floats(&j) + given_floats(&j), 0, NULL, gradients_range);
    float *total = j.result + j.chunks * n;
    for (int64_t chunk = 0; chunk < j.chunks; chunk++)
        for (int64_t i = 0; i < n; i++) total[i] += j.result[chunk * n + i];
    turn_filters(&j, (float *)(void *)a->d_weight->data, total, true);
    const int64_t channels = j.p.g.out_channels, filter = j.p.g.kernel[1] * j.vectors * LANES;
    memcpy(a->d_bias->data, total + channels * filter, (size_t)channels * sizeof *total);
    proa_scratch_free(j.result);
    return status;
}

static void pack_filters(const pooled_job *j)
{
    const conv_geometry *g = &j->p.g;
    memset(j->packed, 0, (size_t)(g->out_channels * g->kernel[1] * j->vectors * LANES) * sizeof(float));
    turn_filters(j, (float *)(uintptr_t)j->weight, j->packed, false);
}

POOLED_KERNEL(conv2d_pooled_grad_input)
{
    pooled_job j = {.tiles = input_tiles,
                    .out = conv_floats(a->out),
                    .d_out = conv_floats(a->d_out),
                    .place = (const int32_t *)(void *)a->place->data,
                    .result = (float *)(void *)a->d_x->data};
    PROA_TRY(start(&j, "conv2d_pooled_grad_input", a->x, a->weight, &a->padding, &a->kernel_size));
    if (!j.chunks) return PROA_OK;
    return run_chunks(&j, image_floats(&j) + given_floats(&j),
                      j.p.g.out_channels * j.p.g.kernel[1] * j.vectors * LANES, pack_filters,
                      gradients_range);
}
