/* Winograd convolutions with the transforms of winograd_transforms.h: chunks of tiles are transformed,
 * multiplied by the transformed filter (one matrix product for each point of a tile), and transformed back.
 * Images are channels-last or in blocks of channels. For kernel files (compiled once per CPU level); may use
 * core and helpers of ops/. */
#ifndef PROA_OPS_CONV_WINOGRAD_H
#define PROA_OPS_CONV_WINOGRAD_H

#include "ops/conv/blocks.h"
#include "ops/conv/winograd_transforms.h"

enum { WINOGRAD_TAPS = 9 };

/* Layout of images: channel c of a pixel is at c % CONV_BLOCK in block c / CONV_BLOCK. Steps are in
 * floats. */
typedef struct winograd_map {
    float *data;
    int64_t height, width, channels;
    int64_t image, pixel, block;
} winograd_map;

static inline winograd_map winograd_map_of(void *data, const int64_t *size, int64_t channels, bool blocked)
{
    int64_t pixels = size[1] * size[2];
    return (winograd_map){.data = data,
                          .height = size[1],
                          .width = size[2],
                          .channels = channels,
                          .image = pixels * channels,
                          .pixel = blocked ? CONV_BLOCK : channels,
                          .block = blocked ? pixels * CONV_BLOCK : CONV_BLOCK};
}

typedef struct winograd winograd;

/* Position of a tile: its image, and the pixel of its first output. */
typedef struct winograd_place {
    int64_t image, y, x;
} winograd_place;

/* A Winograd algorithm over the transforms of `set`; points of a tile and of the filter: its side squared. A
 * sum per point adds up `piece` products at a time, since shorter sums round less. Points of a chunk of tiles
 * take about chunk_bytes, at most twice that. `phases`: the image's phases, whose channels are summed
 * together. `tap`: the index in a filter of its t-th tap (−1: zero). `filter` makes points of taps, one
 * filter a lane. `transform` writes a tile's points as row `row` of all sums. `results` makes results of
 * sums, for a vector of channels from c on; m: sum 0 of these. */
typedef struct winograd_kind {
    const winograd_set *set;
    int phases, chunk_bytes, piece;
    int64_t (*tap)(const conv_geometry *g, int64_t channel, int64_t t);
    void (*filter)(const packed_vector *taps, packed_vector *points);
    void (*transform)(const winograd *w, int64_t tile, int64_t row, float *v);
    void (*results)(const winograd *w, winograd_place at, int64_t c, const float *m);
} winograd_kind;

struct winograd {
    const winograd_kind *kind;
    winograd_map from, to;
    int64_t batch, before[2];
    const float *points; /* of the filter: [panel][point][channel of from][PACKED_NR], in steps */
    const float *bias;
    proa__epilogue tail;
    int64_t down, across, tiles;
    int64_t chunk, ld; /* tiles of a chunk; floats from a tile's points to the next's */
    int64_t parts;     /* parts of the panels, a work item each */
    bool few;          /* few tiles: threads divide panels, each for all tiles of a chunk */
    int64_t from_step, to_step, filter_step; /* floats from a point to the next: of `chunk` tiles of either
                                              * side, of a panel's filter */
    float *work;
    int64_t work_each;
    packed_turns turns; /* work items: parts (fastest), chunks */
};

static inline int winograd_tile_points(const winograd_kind *kind)
{
    return kind->set->side * kind->set->side;
}

/* Computes the number of tiles from kind, to and batch. */
static inline void winograd_tiles(winograd *w)
{
    int side = w->kind->set->results;
    w->down = (w->to.height + side - 1) / side, w->across = (w->to.width + side - 1) / side;
    w->tiles = w->batch * w->down * w->across;
}

/* Distance in floats between points that are written together: an odd number of cache lines, so that the
 * points do not map to the same cache sets. */
static inline int64_t winograd_step(int64_t floats) { return ((floats + 15) / 16 | 1) * 16; }

/* ---- tiles ------------------------------------------------------------------------------------ */

static inline winograd_place winograd_place_of(const winograd *w, int64_t tile)
{
    int64_t per_image = w->down * w->across, at = tile % per_image;
    int side = w->kind->set->results;
    return (winograd_place){tile / per_image, at / w->across * side, at % w->across * side};
}

/* Addresses of side × side pixels from (y0, x0) on, and distances to their next blocks of channels; pixels
 * outside the map read zeros. */
static inline void winograd_window(const winograd_map *m, int64_t image, int64_t y0, int64_t x0, int side,
                                   const float **from, int64_t *block)
{
    static const float zeros[CONV_BLOCK];
    for (int i = 0; i < side * side; i++) {
        int64_t y = y0 + i / side, x = x0 + i % side;
        bool inside = y >= 0 && y < m->height && x >= 0 && x < m->width;
        from[i] = inside ? m->data + image * m->image + (y * m->width + x) * m->pixel : zeros;
        block[i] = inside ? m->block : 0;
    }
}

/* Rows [first, end) of the points of one tile's pixels, for all channels: point p of them for channel c goes
 * to v[p · from_step + c]. */
WINOGRAD_FN void winograd_transform_tile(const winograd *w, const winograd_set *set, int64_t tile,
                                         const int first, const int end, float *v)
{
    const int side = set->side;
    const winograd_map *m = &w->from;
    int64_t step = w->from_step;
    winograd_place at = winograd_place_of(w, tile);
    int64_t y0 = at.y - w->before[0], x0 = at.x - w->before[1];
    packed_vector d[WINOGRAD_MAX_POINTS];
    if (y0 >= 0 && x0 >= 0 && y0 + side <= m->height && x0 + side <= m->width) {
        int64_t line = m->width * m->pixel, pixel = m->pixel;
        const float *from = m->data + at.image * m->image + y0 * line + x0 * pixel;
        for (int64_t b = 0; b < m->channels / CONV_BLOCK; b++, from += m->block, v += CONV_BLOCK)
            for (int64_t q = 0; q < CONV_BLOCK; q += PACKED_LANES) {
#pragma GCC unroll 36
                for (int i = 0; i < side * side; i++)
                    d[i] = *(const packed_vector *)(from + i / side * line + i % side * pixel + q);
                winograd_input(set, d, first, end, v + q, step);
            }
        return;
    }
    const float *from[WINOGRAD_MAX_POINTS];
    int64_t block[WINOGRAD_MAX_POINTS];
    winograd_window(m, at.image, y0, x0, side, from, block);
    for (int64_t b = 0; b < m->channels / CONV_BLOCK; b++, v += CONV_BLOCK)
        for (int64_t q = 0; q < CONV_BLOCK; q += PACKED_LANES) {
#pragma GCC unroll 36
            for (int i = 0; i < side * side; i++) d[i] = *(const packed_vector *)(from[i] + b * block[i] + q);
            winograd_input(set, d, first, end, v + q, step);
        }
}

/* Stores channels [c, c + LANES) of one output, `at` floats from the map's start. */
static inline void winograd_put(const winograd *w, packed_vector y, int64_t at, int64_t c)
{
    const packed_vector zero = {0};
    if (w->bias) y += *(const packed_vector *)(w->bias + c);
    const float *residual = packed_residual(&w->tail);
    if (residual) y += *(const packed_vector *)(residual + at);
    if (packed_clamps(&w->tail)) y = packed_clamp(y, zero + packed_high(&w->tail));
    *(packed_vector *)(w->to.data + at) = y;
    if (!packed_clamps(&w->tail)) packed_activate(w->to.data + at, 0, 1, PACKED_LANES, &w->tail);
}

/* Stores n results y of row r of a tile, up to the map's edges, for channels [c, c + LANES). */
WINOGRAD_FN void winograd_put_row(const winograd *w, winograd_place at, const int r, int64_t c,
                                  const packed_vector *y, const int n)
{
    const winograd_map *map = &w->to;
    int64_t to = at.image * map->image + ((at.y + r) * map->width + at.x) * map->pixel +
                 c / CONV_BLOCK * map->block + c % CONV_BLOCK;
    if (at.y + r >= map->height) return;
    for (int x = 0; x < n; x++)
        if (at.x + x < map->width) winograd_put(w, y[x], to + x * map->pixel, c);
}

/* Aᵀ·m·A, up to the map's edges. */
WINOGRAD_FN void winograd_results_tile(const winograd *w, const winograd_set *set, winograd_place at,
                                       int64_t c, const float *m)
{
    const int side = set->side, results = set->results;
    packed_vector p[WINOGRAD_MAX_POINTS], h[WINOGRAD_MAX_POINTS];
#pragma GCC unroll 36
    for (int i = 0; i < side * side; i++) p[i] = *(const packed_vector *)(m + i * w->to_step);
#pragma GCC unroll 6
    for (int i = 0; i < side; i++) {
        packed_vector column[WINOGRAD_MAX_SIDE];
        winograd_results_side(set, p + i, side, column);
        for (int r = 0; r < results; r++) h[side * r + i] = column[r];
    }
#pragma GCC unroll 4
    for (int r = 0; r < results; r++) {
        packed_vector y[WINOGRAD_MAX_SIDE];
        winograd_results_side(set, h + side * r, 1, y);
        winograd_put_row(w, at, r, c, y, results);
    }
}

/* ---- F(2×2, 3×3), F(3×3, 3×3) and F(4×4, 3×3) with stride 1 ---------------------------------------- */

static inline int64_t winograd_tap(const conv_geometry *g, int64_t channel, int64_t t)
{
    (void)g;
    return channel * WINOGRAD_TAPS + t;
}

/* The functions of a kind over winograd_<set>. */
#define WINOGRAD_FILTER(set)                                                  \
    static inline void set##_filter(const packed_vector *g, packed_vector *u) \
    {                                                                         \
        winograd_filter(&winograd_##set, g, u);                               \
    }
#define WINOGRAD_TRANSFORM(set)                                                                     \
    static inline void set##_transform(const winograd *w, int64_t tile, int64_t row, float *v)      \
    {                                                                                               \
        winograd_transform_tile(w, &winograd_##set, tile, 0, winograd_##set.side, v + row * w->ld); \
    }
#define WINOGRAD_RESULTS(set)                                                                         \
    static inline void set##_results(const winograd *w, winograd_place at, int64_t c, const float *m) \
    {                                                                                                 \
        winograd_results_tile(w, &winograd_##set, at, c, m);                                          \
    }
#define WINOGRAD_KIND(set_of, phases_of, tap_of, bytes, products)                           \
    static const winograd_kind winograd_##set_of##_kind = {.set = &winograd_##set_of,       \
                                                           .phases = phases_of,             \
                                                           .chunk_bytes = bytes,            \
                                                           .piece = products,               \
                                                           .tap = tap_of,                   \
                                                           .filter = set_of##_filter,       \
                                                           .transform = set_of##_transform, \
                                                           .results = set_of##_results}
#define WINOGRAD_STRIDE_1(set, bytes, products) \
    WINOGRAD_FILTER(set)                        \
    WINOGRAD_TRANSFORM(set) WINOGRAD_RESULTS(set) WINOGRAD_KIND(set, 1, winograd_tap, bytes, products)
WINOGRAD_STRIDE_1(f2x2, 512 << 10, PACKED_KC);
WINOGRAD_STRIDE_1(f3x3, 1 << 20, 256);
WINOGRAD_STRIDE_1(f4x4, 1 << 20, 64);

/* ---- the convolution ---------------------------------------------------------------------------- */

/* Results of tiles [first, first + n), n ≤ chunk, in panels [p0, p1). v: their points; m: scratch for a
 * panel's results. */
static inline void winograd_panels(const winograd *w, int64_t first, int64_t n, int64_t p0, int64_t p1,
                                   const float *v, float *m)
{
    int64_t blocks = (n + PACKED_MR - 1) / PACKED_MR;
    const int points = winograd_tile_points(w->kind);
    int64_t piece = w->kind->piece, depth = w->from.channels, panels = packed_panels(w->to.channels);
    for (int64_t panel = p0; panel < p1; panel++) {
        const float *u = w->points + panel * points * w->filter_step;
        for (int i = 0; i < points; i++, u += w->filter_step)
            for (int64_t b = 0; b < blocks; b++) {
                int64_t t = b * n / blocks, rows = (b + 1) * n / blocks - t;
                float *sum = m + i * w->to_step + t * PACKED_NR;
                packed_ends ends = {.add_ld = PACKED_NR};
                /* the next sum's filter is prefetched; not for a single block, which needs it sooner than
                 * software prefetches bring it: the hardware prefetcher of sequential rows is faster there */
                bool over = panel + 1 == panels && i + 1 == points;
                const float *next = blocks == 1 || over ? NULL : u + w->filter_step;
                packed_ahead ahead = packed_part_of(next, u, depth, b, blocks);
                for (int64_t p = 0; p < depth; p += piece, ends.add = sum)
                    packed_tiles[rows - 1][PACKED_TWO](
                        gemm_min(piece, depth - p), v + i * w->from_step + t * w->ld + p, w->ld,
                        u + p * PACKED_NR, sum, PACKED_NR, &ends, ahead.at + p * ahead.step, ahead.step);
            }
        int64_t c0 = panel * PACKED_NR, c1 = gemm_min(c0 + PACKED_NR, w->to.channels);
        for (int64_t t = 0; t < n; t++) {
            winograd_place at = winograd_place_of(w, first + t);
            for (int64_t c = c0; c < c1; c += PACKED_LANES)
                w->kind->results(w, at, c, m + t * PACKED_NR + c - c0);
        }
    }
}

/* Body of one thread: takes work items (parts of chunks) until none is left. */
static inline void winograd_thread(int64_t begin, int64_t end, void *context)
{
    winograd *w = context;
    (void)end;
    float *v = w->work + begin * w->work_each, *m = v + winograd_tile_points(w->kind) * w->from_step;
    int64_t turn, panels = packed_panels(w->to.channels), have = -1;
    while ((turn = packed_turn(&w->turns, begin)) >= 0) {
        int64_t chunk = turn / w->parts, part = turn % w->parts, first = chunk * w->chunk;
        int64_t n = gemm_min(w->chunk, w->tiles - first);
        for (int64_t t = 0; t < n && chunk != have; t++) w->kind->transform(w, first + t, t, v);
        have = chunk;
        winograd_panels(w, first, n, part * panels / w->parts, (part + 1) * panels / w->parts, v, m);
    }
}

/* Row length in floats: whole vectors, and no multiple of 2 KB, at which rows would evict each other from the
 * L1 cache. */
static inline int64_t winograd_ld(int64_t depth)
{
    int64_t ld = gemm_round_up(depth, PACKED_LANES);
    return ld % 512 ? ld : ld + PACKED_LANES;
}

/* Computes the distances between points for chunks of `chunk` tiles. */
static inline void winograd_layout(winograd *w, int64_t chunk)
{
    w->chunk = chunk, w->ld = winograd_ld(w->from.channels);
    w->from_step = winograd_step(chunk * w->ld), w->to_step = winograd_step(chunk * PACKED_NR);
    w->filter_step = winograd_step(w->from.channels * PACKED_NR);
}

/* Runs the convolution: the caller has set kind, from, to, batch, before, points, bias and tail. A result
 * does not depend on how threads share the tiles. */
static inline proa_status winograd_run(winograd *w)
{
    enum { TURNS = 4 }; /* work items per thread: others take those of a delayed thread */
    int64_t panels = packed_panels(w->to.channels);
    winograd_tiles(w);
    winograd_layout(w, 1);
    int64_t threads = gemm_min(proa_threads(), w->tiles);
    int64_t points = winograd_tile_points(w->kind), each = points * (w->from_step + PACKED_NR);
    /* a thread that has fewer tiles than this takes longer to read the filter than to multiply */
    w->few = w->tiles < threads * PACKED_MR && panels >= threads;
    int64_t share = w->few ? w->tiles : (w->tiles + threads - 1) / threads;
    int64_t most = w->kind->chunk_bytes * (w->few ? 2 : 1) / (4 * each) + 1;
    winograd_layout(w, (share + (share - 1) / most) / ((share - 1) / most + 1));
    w->work_each = points * (w->from_step + w->to_step);
    w->work = proa_scratch((size_t)(threads * w->work_each) * sizeof(float));
    if (!w->work) return proa_error();
    int64_t chunks = (w->tiles + w->chunk - 1) / w->chunk;
    w->parts = chunks < threads * TURNS ? gemm_min((threads * TURNS + chunks - 1) / chunks, panels) : 1;
    packed_turns_begin(&w->turns, chunks * w->parts, threads);
    proa__parallel(threads, 1, winograd_thread, w);
    proa_scratch_free(w->work);
    return PROA_OK;
}

#endif
