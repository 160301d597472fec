/* GEMM with a constant right operand, which is packed once into panels (prepacked): panels are read as one
 * stream, and the next one is prefetched during the current one. float32, for kernel files (compiled once per
 * CPU level). May use core; everything is static but the register tiles, which ops/matmul/cpu/tiles.c
 * compiles. */
#ifndef PROA_KERNELS_PREPACKED_GEMM_H
#define PROA_KERNELS_PREPACKED_GEMM_H

#include "kernels/epilogue.h"
#include "kernels/gemm.h"
#include "kernels/simd_activations.h"
#include "kernels/activations.h"
#include "kernels/simd_math.h"

#include <stdatomic.h>

/* PACKED_MR: rows of the register tile, so that rows × 2 vectors + 3 fit into the register file.
 * PACKED_LANES: floats in a vector. PACKED_NR: columns of a panel. */
#if defined(__AVX512F__)
#define PACKED_MR 14
#elif defined(__aarch64__)
#define PACKED_MR 12
#else
#define PACKED_MR 6
#endif
#define PACKED_LANES (VECTOR_BYTES / 4)
#define PACKED_NR (2 * PACKED_LANES)
/* PACKED_KC: depth (k) of a cache block, less without FMA. Sizes in bytes: PACKED_A_BYTES of a block of the
 * left operand (half of a second-level cache), PACKED_C_BYTES of a block of the result where threads share
 * rows, PACKED_KEPT_BYTES of a thread's copies of the left operand, PACKED_B_BYTES of panels that stay in
 * cache. */
#if defined(__FMA__) || defined(__aarch64__)
enum { PACKED_KC = 1024, PACKED_A_BYTES = 512 << 10, PACKED_C_BYTES = 128 << 10 };
#else
enum { PACKED_KC = 256, PACKED_A_BYTES = 512 << 10, PACKED_C_BYTES = 128 << 10 };
#endif
enum { PACKED_KEPT_BYTES = 2 << 20, PACKED_B_BYTES = 128 << 10 };

typedef vector_float packed_vector;
typedef int32_t packed_mask __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef float packed_half __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));
typedef int32_t packed_half_mask __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));

/* packed_relu: max(v, 0); packed_cap: min(v, high). NaN stays NaN. */
static inline __attribute__((always_inline)) packed_vector packed_relu(packed_vector v)
{
    const packed_vector zero = {0};
#if defined(__AVX512F__) /* min and max return their second operand if either is NaN */
    return (packed_vector)_mm512_max_ps((__m512)zero, (__m512)v);
#elif defined(__AVX2__)
    return (packed_vector)_mm256_max_ps((__m256)zero, (__m256)v);
#else
    return (packed_vector)(~(v < zero) & (packed_mask)v);
#endif
}
static inline __attribute__((always_inline)) packed_vector packed_cap(packed_vector v, packed_vector high)
{
#if defined(__AVX512F__)
    return (packed_vector)_mm512_min_ps((__m512)high, (__m512)v);
#elif defined(__AVX2__)
    return (packed_vector)_mm256_min_ps((__m256)high, (__m256)v);
#else
    packed_mask above = v > high;
    return (packed_vector)((~above & (packed_mask)v) | (above & (packed_mask)high));
#endif
}

static inline __attribute__((always_inline)) packed_vector packed_clamp(packed_vector v, packed_vector high)
{
    return packed_cap(packed_relu(v), high);
}

static inline __attribute__((always_inline)) packed_half packed_half_clamp(packed_half v, packed_half high)
{
    packed_half_mask above = v > high, kept = ~(v < (packed_half){0}) & ~above;
    return (packed_half)((kept & (packed_half_mask)v) | (above & (packed_half_mask)high));
}

/* Epilogue of a register tile: adds bias and a matrix, then clamps. */
typedef struct packed_ends {
    const float *bias; /* one number a column; NULL: none */
    const float *add;  /* a matrix whose rows are add_ld floats apart; NULL: none */
    int64_t add_ld;
    bool clamps; /* to [0, high] */
    float high;
} packed_ends;

/* Pointers are kept to every third row of the left operand; the rows between are addressed by lda and 2 ·
 * lda, so that all fit into registers. */
enum { PACKED_EVERY = 3, PACKED_THIRDS = (PACKED_MR + PACKED_EVERY - 1) / PACKED_EVERY };

/* Accumulators of a register tile, one, one and a half, or two vectors wide: channel counts of many networks
 * fill three quarters of a panel. */
typedef struct packed_sums {
    packed_vector whole[PACKED_MR][2];
    packed_half half[PACKED_MR];
} packed_sums;
typedef enum packed_width { PACKED_ONE, PACKED_ONE_AND_HALF, PACKED_TWO, PACKED_WIDTHS } packed_width;

static inline packed_width packed_width_of(int64_t columns)
{
    if (columns <= PACKED_LANES) return PACKED_ONE;
    return 2 * columns <= 3 * PACKED_LANES ? PACKED_ONE_AND_HALF : PACKED_TWO;
}
static inline int64_t packed_columns_of(packed_width width) { return (2 + (int)width) * PACKED_LANES / 2; }

#define PACKED_ROWS _Pragma("GCC unroll 16") for (int i = 0; i < mr; i++)
#define PACKED_WHOLE PACKED_ROWS _Pragma("GCC unroll 2") for (int v = 0; v < nv; v++)
#define PACKED_HALF \
    if (half) PACKED_ROWS
#define PACKED_AT(type, from) (*(const packed_##type *)(from))

static inline __attribute__((always_inline)) packed_half packed_lower(packed_vector v)
{
#if defined(__AVX512F__)
    return (packed_half)_mm512_castps512_ps256((__m512)v);
#elif defined(__AVX2__)
    return (packed_half)_mm256_castps256_ps128((__m256)v);
#else
    return (packed_half){v[0], v[1]};
#endif
}

/* Adds the product of a column of the left operand and a row of b to the sums, then advances both. */
static inline __attribute__((always_inline)) void packed_step(const int mr, const int nv, const bool half,
                                                              const bool down, packed_sums *sum,
                                                              const float **thirds, int64_t lda,
                                                              const float *b)
{
    packed_vector column[2];
    packed_half last = {0};
#pragma GCC unroll 2
    for (int v = 0; v < nv; v++) column[v] = PACKED_AT(vector, b + v * PACKED_LANES);
    if (half) last = PACKED_AT(half, b + PACKED_LANES);
    PACKED_ROWS
    {
        packed_vector x =
            vector_splat_float(down ? thirds[0] + i : thirds[i / PACKED_EVERY] + i % PACKED_EVERY * lda);
#pragma GCC unroll 2
        for (int v = 0; v < nv; v++) sum->whole[i][v] += x * column[v];
        if (half) sum->half[i] += packed_lower(x) * last;
        VECTOR_KEEP(x);
    }
#pragma GCC unroll 2
    for (int v = 0; v < nv; v++) VECTOR_KEEP(column[v]);
    if (half) VECTOR_KEEP(last);
#pragma GCC unroll 8
    for (int i = 0; i < PACKED_THIRDS; i++)
        if (i * PACKED_EVERY < mr) thirds[i] += down ? lda : 1;
}

static inline __attribute__((always_inline)) void packed_begin(const int mr, const int nv, const bool half,
                                                               packed_sums *sum, const float *bias)
{
    const packed_vector zero = {0};
    PACKED_WHOLE sum->whole[i][v] = bias ? PACKED_AT(vector, bias + v * PACKED_LANES) : zero;
    PACKED_HALF sum->half[i] = bias ? PACKED_AT(half, bias + PACKED_LANES) : (packed_half){0};
}

static inline __attribute__((always_inline)) void packed_end(const int mr, const int nv, const bool half,
                                                             packed_sums *sum, const packed_ends *e, float *c,
                                                             int64_t ldc)
{
    const float *add = e->add;
    const int64_t ld = e->add_ld;
    const packed_vector high = (packed_vector){0} + e->high;
    const bool clamps = e->clamps, ends = clamps && e->high < INFINITY;
    if (add) {
        PACKED_WHOLE sum->whole[i][v] += PACKED_AT(vector, add + i * ld + v * PACKED_LANES);
        PACKED_HALF sum->half[i] += PACKED_AT(half, add + i * ld + PACKED_LANES);
    }
    if (clamps) {
        PACKED_WHOLE sum->whole[i][v] = packed_relu(sum->whole[i][v]);
        PACKED_HALF sum->half[i] = packed_half_clamp(sum->half[i], (packed_half){0} + e->high);
    }
    if (ends) PACKED_WHOLE sum->whole[i][v] = packed_cap(sum->whole[i][v], high);
    PACKED_WHOLE *(packed_vector *)(c + i * ldc + v * PACKED_LANES) = sum->whole[i][v];
    PACKED_HALF *(packed_half *)(c + i * ldc + PACKED_LANES) = sum->half[i];
}

/* Register tile: c[mr rows of a width] = ends(a[mr × k] · b), with row strides lda and ldb; `down`: a is
 * transposed. Prefetches from `ahead`, ahead_step floats per row of b. In the first steps, one row a step, it
 * also prefetches the added matrix and the destination; requested all at once they would stall the loop. */
static inline __attribute__((always_inline)) void packed_tile(const int mr, const packed_width width,
                                                              const bool down, int64_t k, const float *a,
                                                              int64_t lda, const float *b, int64_t ldb,
                                                              float *c, int64_t ldc, const packed_ends *e,
                                                              const float *ahead, int64_t ahead_step)
{
    const int nv = width == PACKED_TWO ? 2 : 1;
    const bool half = width == PACKED_ONE_AND_HALF;
    packed_sums sum;
    const float *thirds[PACKED_THIRDS];
    packed_begin(mr, nv, half, &sum, e->bias);
#pragma GCC unroll 8
    for (int i = 0; i < PACKED_THIRDS; i++) {
        thirds[i] = down || i * PACKED_EVERY >= mr ? a : a + i * PACKED_EVERY * lda;
        __asm__(""
                : "+r"(thirds[i])); /* keeps three addresses instead of an offset per row, which would
                                        * spill */
    }
    const float *from = e->add ? e->add : c, *to = c;
    int64_t p = 0, from_step = e->add ? e->add_ld : ldc, first = k < mr ? k : mr;
    for (; p < first; p++, b += ldb, ahead += ahead_step, from += from_step, to += ldc) {
        __builtin_prefetch(ahead, 0, 2);
        __builtin_prefetch(from, 0, 3);
        __builtin_prefetch(to, 1, 3);
        if (width != PACKED_ONE) {
            __builtin_prefetch(from + PACKED_LANES, 0, 3);
            __builtin_prefetch(to + PACKED_LANES, 1, 3);
        }
        packed_step(mr, nv, half, down, &sum, thirds, lda, b);
    }
    for (; p < k; p++, b += ldb, ahead += ahead_step) {
        __builtin_prefetch(ahead, 0, 2);
        packed_step(mr, nv, half, down, &sum, thirds, lda, b);
    }
    packed_end(mr, nv, half, &sum, e, c, ldc);
}
#undef PACKED_ROWS
#undef PACKED_WHOLE
#undef PACKED_HALF
#undef PACKED_AT

typedef void (*packed_tile_fn)(int64_t k, const float *a, int64_t lda, const float *b, float *c, int64_t ldc,
                               const packed_ends *e, const float *ahead, int64_t ahead_step);

/* Applies X to every height of a register tile. */
#define PACKED_TILES(X) X(1) X(2) X(3) X(4) X(5) X(6) PACKED_TILES_12(X) PACKED_TILES_14(X)
#if PACKED_MR >= 12
#define PACKED_TILES_12(X) X(7) X(8) X(9) X(10) X(11) X(12)
#else
#define PACKED_TILES_12(X)
#endif
#if PACKED_MR >= 14
#define PACKED_TILES_14(X) X(13) X(14)
#else
#define PACKED_TILES_14(X)
#endif

/* packed_tile by rows − 1 and width, for a packed right operand: compiled once (ops/matmul/cpu/tiles.c). */
extern const packed_tile_fn PROA_LEVELED(packed_tile_table)[PACKED_MR][PACKED_WIDTHS];
#define packed_tiles PROA_LEVELED(packed_tile_table)

/* ---- the right operand -------------------------------------------------------------------- */

/* Layout of the packed k × n operand: blocks of PACKED_KC rows in sequence, each consisting of panels of
 * PACKED_NR columns in sequence, padded with zeros. */
static inline int64_t packed_depths(int64_t k) { return (k + PACKED_KC - 1) / PACKED_KC; }
static inline int64_t packed_panels(int64_t n) { return (n + PACKED_NR - 1) / PACKED_NR; }
static inline int64_t packed_floats(int64_t k, int64_t n) { return k * packed_panels(n) * PACKED_NR; }

static inline void packed_pack_panel(const float *from, gemm_strides s, int64_t k, int64_t n, int64_t panel,
                                     float *to)
{
    int64_t j0 = panel * PACKED_NR, columns = gemm_min(PACKED_NR, n - j0), panels = packed_panels(n);
    for (int64_t p0 = 0; p0 < k; p0 += PACKED_KC) {
        int64_t kc = gemm_min(PACKED_KC, k - p0);
        float *at = to + p0 * panels * PACKED_NR + panel * kc * PACKED_NR;
        if (columns < PACKED_NR) memset(at, 0, (size_t)(kc * PACKED_NR) * sizeof *at);
        const float *block = from + p0 * s.rs + j0 * s.cs;
        if (s.cs == 1)
            for (int64_t p = 0; p < kc; p++)
                memcpy(at + p * PACKED_NR, block + p * s.rs, (size_t)columns * sizeof *at);
        else
            for (int64_t j = 0; j < columns; j++)
                for (int64_t p = 0; p < kc; p++) at[p * PACKED_NR + j] = block[p * s.rs + j * s.cs];
    }
}

/* The inverse of packed_pack_panel. */
static inline void packed_unpack_panel(const float *from, gemm_strides s, int64_t k, int64_t n, int64_t panel,
                                       float *to)
{
    int64_t j0 = panel * PACKED_NR, columns = gemm_min(PACKED_NR, n - j0), panels = packed_panels(n);
    for (int64_t p0 = 0; p0 < k; p0 += PACKED_KC) {
        int64_t kc = gemm_min(PACKED_KC, k - p0);
        const float *at = from + p0 * panels * PACKED_NR + panel * kc * PACKED_NR;
        float *block = to + p0 * s.rs + j0 * s.cs;
        for (int64_t j = 0; j < columns; j++)
            for (int64_t p = 0; p < kc; p++) block[p * s.rs + j * s.cs] = at[p * PACKED_NR + j];
    }
}

/* ---- work sharing among at most PACKED_TEAMS threads --------------------------------------- */

enum { PACKED_TEAMS = 16 };

/* Work items ("slots") with stealing. Each thread first takes its own slots in order, since its core's cache
 * still holds what the previous op wrote there, then slots of other threads that nobody has taken. */
typedef struct packed_turns {
    int64_t slots, threads;
    struct {
        atomic_llong taken __attribute__((aligned(64)));
    } of[PACKED_TEAMS];
} packed_turns;

static inline void packed_turns_begin(packed_turns *t, int64_t slots, int64_t threads)
{
    t->slots = slots, t->threads = gemm_min(threads, PACKED_TEAMS);
    for (int64_t i = 0; i < t->threads; i++) atomic_init(&t->of[i].taken, i * slots / t->threads);
}

/* Takes the next slot for a thread; -1: none is left. */
static inline int64_t packed_turn(packed_turns *t, int64_t thread)
{
    for (int64_t i = 0; i < t->threads; i++) {
        int64_t of = (thread + i) % t->threads, last = (of + 1) * t->slots / t->threads;
        if (atomic_load_explicit(&t->of[of].taken, memory_order_relaxed) >= last) continue;
        int64_t slot = atomic_fetch_add_explicit(&t->of[of].taken, 1, memory_order_relaxed);
        if (slot < last) return slot;
    }
    return -1;
}

/* ---- the product ---------------------------------------------------------------------------- */

/* Rows of the left operand. Row i is at i · ld; if width is not 0, the operand is an image, and row i is
 * pixel i % width of scanline i / width, of which an image has `lines`. */
typedef struct packed_rows {
    const float *at;
    int64_t ld, width, lines, line_step, image_step;
} packed_rows;

typedef struct packed_product {
    packed_rows a;
    const float *b; /* packed */
    float *c;       /* row-major, n columns */
    int64_t m, n, k;
    const float *bias, *residual; /* NULL: none; residual has c's layout */
    proa__epilogue tail;
    /* partition of the work */
    int64_t row_parts, panel_parts; /* shares of the rows and of the panels; a slot is one of each */
    int64_t height;                 /* rows of a cache block */
    bool by_rows, copies, kept;
    int64_t block_floats; /* floats of the copy of a row block */
    float *work;
    int64_t work_each;
    packed_turns *turns;
} packed_product;

static inline const float *packed_residual(const proa__epilogue *t)
{
    return proa__absent(t->residual) ? NULL : (const float *)(void *)t->residual->data;
}

static inline bool packed_clamps(const proa__epilogue *t)
{
    return t->activation == PROA_FUSED_ACTIVATION_RELU || t->activation == PROA_FUSED_ACTIVATION_RELU6;
}

static inline float packed_high(const proa__epilogue *t)
{
    return t->activation == PROA_FUSED_ACTIVATION_RELU6 ? 6.0f : INFINITY;
}

/* Applies the activation to rows × n numbers whose rows are ld apart. */
static inline void packed_activate(float *x, int64_t ld, int64_t rows, int64_t n, const proa__epilogue *t)
{
    float alpha = (float)t->alpha, beta = (float)t->beta;
#define PACKED_EACH(value)                                                                          \
    for (int64_t i = 0; i < rows; i++, x += ld) _Pragma("omp simd") for (int64_t j = 0; j < n; j++) \
        {                                                                                           \
            float v = x[j];                                                                         \
            x[j] = value;                                                                           \
        }                                                                                           \
    break
#if defined(__AVX512F__)
#define PACKED_QUICK(of_lanes, value)                                                         \
    for (int64_t i = 0; i < rows; i++, x += ld)                                               \
        for (int64_t j = 0; j < n; j += PACKED_LANES) {                                       \
            __mmask16 some = (__mmask16)(n - j < PACKED_LANES ? (1 << (n - j)) - 1 : 0xffff); \
            _mm512_mask_storeu_ps(x + j, some, of_lanes(_mm512_maskz_loadu_ps(some, x + j))); \
        }                                                                                     \
    break
#else
#define PACKED_QUICK(of_lanes, value) PACKED_EACH(value)
#endif
    switch (t->activation) {
    case PROA_FUSED_ACTIVATION_LEAKY_RELU: PACKED_EACH(v < 0 ? v * alpha : v);
    case PROA_FUSED_ACTIVATION_ELU: PACKED_EACH(v < 0 ? alpha * m_expm1_F32(v) : v);
    case PROA_FUSED_ACTIVATION_SIGMOID: PACKED_QUICK(simd_sigmoid, vsigmoid_float(v));
    case PROA_FUSED_ACTIVATION_TANH: PACKED_QUICK(simd_tanh, vtanh_float(v));
    case PROA_FUSED_ACTIVATION_GELU: PACKED_QUICK(simd_gelu_off, gelu_off_F32(v));
    case PROA_FUSED_ACTIVATION_GELU_TANH: PACKED_QUICK(simd_gelu_on, gelu_on_F32(v));
    case PROA_FUSED_ACTIVATION_SILU: PACKED_QUICK(simd_silu, silu_F32(v));
    case PROA_FUSED_ACTIVATION_HARDSWISH: PACKED_EACH(hardswish_F32(v));
    case PROA_FUSED_ACTIVATION_HARDSIGMOID: PACKED_EACH(hardsigmoid_F32(v, alpha, beta));
    default: break;
    }
#undef PACKED_QUICK
#undef PACKED_EACH
}

/* Applies bias, addend and clamp to a register tile whose columns do not fill whole vectors, while copying it
 * from `edge` to c. */
static inline void packed_put_edge(const packed_product *w, const packed_ends *e, int64_t rows,
                                   int64_t columns, const float *edge, float *c)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *from = edge + i * PACKED_NR, *add = e->add ? e->add + i * e->add_ld : NULL;
        float *to = c + i * w->n;
        for (int64_t q = 0; q < columns; q++) {
            float v = from[q] + (e->bias ? e->bias[q] : 0) + (add ? add[q] : 0);
            if (e->clamps) v = v < 0 ? 0 : v > e->high ? e->high : v;
            to[q] = v;
        }
    }
}

/* Memory that a register tile prefetches: `step` floats for each row of b, from `at` on. */
typedef struct packed_ahead {
    const float *at;
    int64_t step;
} packed_ahead;

/* Computes one register tile: `rows` rows from `row` on and panel j, over the depth block that starts at
 * p0. */
static inline void packed_put(const packed_product *w, int64_t row, int64_t rows, int64_t j, int64_t p0,
                              int64_t kc, const float *a, int64_t lda, const float *panel, packed_ahead ahead)
{
    int64_t columns = gemm_min(PACKED_NR, w->n - j * PACKED_NR), at = row * w->n + j * PACKED_NR;
    packed_width width = packed_width_of(columns);
    bool first = p0 == 0, last = p0 + kc == w->k;
    packed_tile_fn tile = packed_tiles[rows - 1][width];
    float *c = w->c + at;
    packed_ends e = {.bias = first && w->bias ? w->bias + j * PACKED_NR : NULL,
                     .add = c,
                     .add_ld = w->n,
                     .clamps = last && packed_clamps(&w->tail),
                     .high = packed_high(&w->tail)};
    if (first) e.add = w->residual ? w->residual + at : NULL;
    if (columns == packed_columns_of(width)) {
        tile(kc, a, lda, panel, c, w->n, &e, ahead.at, ahead.step);
    } else {
        float edge[PACKED_MR * PACKED_NR];
        tile(kc, a, lda, panel, edge, PACKED_NR, &(packed_ends){.bias = NULL}, ahead.at, ahead.step);
        packed_put_edge(w, &e, rows, columns, edge, c);
    }
    if (!last || packed_clamps(&w->tail) || w->tail.activation == PROA_FUSED_ACTIVATION_NONE) return;
    packed_activate(c, w->n, rows, columns, &w->tail);
}

static inline const float *packed_row(const packed_rows *r, int64_t i)
{
    if (r->width == 0) return r->at + i * r->ld;
    int64_t line = i / r->width;
    return r->at + i % r->width * r->ld + line % r->lines * r->line_step + line / r->lines * r->image_step;
}

/* A thread's copies of blocks of the left operand: either the last block, identified by row and depth, or
 * (w->kept) all blocks of the current share, which starts at `row`; `kept` has a bit per block that was
 * copied. */
typedef struct packed_copy {
    float *at;
    int64_t row, depth;
    uint64_t kept;
} packed_copy;

/* Copies n floats of a row and prefetches the next row, which the hardware prefetcher may not predict. */
static inline void packed_copy_row(float *to, const float *from, int64_t n, const float *next)
{
    int64_t p = 0;
    for (; p + PACKED_LANES <= n; p += PACKED_LANES) {
        __builtin_prefetch(next + p, 0, 3);
        *(packed_vector *)(to + p) = *(const packed_vector *)(from + p);
    }
    for (; p < n; p++) to[p] = from[p];
}

/* Returns the copy of rows [r0, r0 + h) of a share that begins at row m0, over the depth block that starts at
 * p0; makes it if necessary. */
static inline const float *packed_copied(const packed_product *w, packed_copy *copy, int64_t m0, int64_t r0,
                                         int64_t h, int64_t p0, int64_t kc)
{
    float *at = copy->at;
    if (w->kept) {
        int64_t block = (r0 - m0) / w->height * packed_depths(w->k) + p0 / PACKED_KC;
        uint64_t bit = UINT64_C(1) << block;
        at += block * w->block_floats;
        if (copy->row != m0) copy->row = m0, copy->kept = 0;
        if (copy->kept & bit) return at;
        copy->kept |= bit;
    } else {
        if (copy->row == r0 && copy->depth == p0) return at;
        copy->row = r0, copy->depth = p0;
    }
    for (int64_t i = 0; i < h; i++) {
        const float *from = packed_row(&w->a, r0 + i) + p0;
        packed_copy_row(at + i * (kc + PACKED_LANES), from, kc,
                        i + 1 < h ? packed_row(&w->a, r0 + i + 1) + p0 : from);
    }
    return at;
}

/* Panel j of the depth block that starts at p0. */
static inline const float *packed_panel(const packed_product *w, int64_t p0, int64_t j)
{
    return w->b + (p0 * packed_panels(w->n) + j * gemm_min(PACKED_KC, w->k - p0)) * PACKED_NR;
}

/* The part of the panel at `next` that tile t of `tiles` prefetches. A tile without a part (`next` NULL: no
 * panel follows) prefetches the panel in use: behind the last panel there may be pages that nobody has
 * touched, where every prefetch walks the page tables. */
static inline packed_ahead packed_part_of(const float *next, const float *now, int64_t kc, int64_t t,
                                          int64_t tiles)
{
    int64_t step = 1;
    while (step * tiles < PACKED_NR) step *= 2;
    return next && t * step < PACKED_NR ? (packed_ahead){next + kc * t * step, step} : (packed_ahead){now, 0};
}

/* Computes rows [r0, r0 + h) of panels [j0, j1) over the depth block that starts at p0. Usually panel by
 * panel, prefetching the next panel (`then` after the last; NULL: none). If the panels fit into a cache and
 * threads share rows, tile by tile, so that result rows are written in long runs, prefetching the next
 * rows. */
static inline void packed_block(const packed_product *w, int64_t r0, int64_t h, int64_t j0, int64_t j1,
                                int64_t p0, const float *a, int64_t lda, const float *then)
{
    int64_t kc = gemm_min(PACKED_KC, w->k - p0), size = kc * PACKED_NR, panels = j1 - j0;
    int64_t tiles = (h + PACKED_MR - 1) / PACKED_MR;
    const float *b = packed_panel(w, p0, j0);
    if (!w->by_rows || panels * size * 4 > PACKED_B_BYTES) {
        for (int64_t j = 0; j < panels; j++, b += size)
            for (int64_t t = 0; t < tiles; t++) {
                int64_t i = t * h / tiles, rows = (t + 1) * h / tiles - i;
                packed_ahead ahead = packed_part_of(j + 1 < panels ? b + size : then, b, kc, t, tiles);
                packed_put(w, r0 + i, rows, j0 + j, p0, kc, a + i * lda, lda, b, ahead);
            }
        return;
    }
    for (int64_t t = 0; t < tiles; t++) {
        int64_t i = t * h / tiles, end = (t + 1) * h / tiles, share = (PACKED_MR + panels - 1) / panels;
        for (int64_t j = 0; j < panels; j++) {
            const float *panel = b + j * size;
            packed_ahead ahead = {panel, 0};
            if (t == 0 && j + 1 < panels) ahead = (packed_ahead){panel + size, PACKED_NR};
            else if (t > 0 && end < h) ahead = (packed_ahead){a + end * lda + j * share * kc, share};
            packed_put(w, r0 + i, end - i, j0 + j, p0, kc, a + i * lda, lda, panel, ahead);
        }
    }
}

/* Computes rows [m0, m1) of panels [j0, j1). */
static inline void packed_part(const packed_product *w, int64_t m0, int64_t m1, int64_t j0, int64_t j1,
                               packed_copy *copy)
{
    for (int64_t r0 = m0; r0 < m1; r0 += w->height) {
        int64_t h = gemm_min(w->height, m1 - r0);
        for (int64_t p0 = 0; p0 < w->k; p0 += PACKED_KC) {
            int64_t kc = gemm_min(PACKED_KC, w->k - p0), lda = w->copies ? kc + PACKED_LANES : w->a.ld;
            const float *a = w->copies ? packed_copied(w, copy, m0, r0, h, p0, kc) : w->a.at + r0 * lda + p0;
            bool last = p0 + kc == w->k, over = last && r0 + h == m1;
            const float *then = packed_panel(w, last ? 0 : p0 + kc, over ? j1 : j0);
            packed_block(w, r0, h, j0, j1, p0, a, lda, over && j1 == packed_panels(w->n) ? NULL : then);
        }
    }
}

/* Body of one thread: computes slots until none is left. */
static inline void packed_slots(int64_t begin, int64_t end, void *context)
{
    const packed_product *w = context;
    int64_t panels = packed_panels(w->n), rs = w->row_parts, js = w->panel_parts, s;
    (void)end;
    packed_copy copy = {w->work + begin * w->work_each, -1, -1, 0};
    while ((s = packed_turn(w->turns, begin)) >= 0) {
        int64_t r = s / js, j = s % js;
        packed_part(w, r * w->m / rs, (r + 1) * w->m / rs, j * panels / js, (j + 1) * panels / js, &copy);
    }
}

/* Chooses the height of row blocks, and whether threads copy them: an image (width != 0), whose rows have no
 * one stride, or rows at a stride of a multiple of 2 KiB. */
static inline void packed_cut(packed_product *w, int64_t rows)
{
    int64_t kc = gemm_min(w->k, PACKED_KC), most = PACKED_A_BYTES / (kc * 4) + PACKED_MR;
    if (w->by_rows) most = gemm_min(most, PACKED_C_BYTES / (w->n * 4) + PACKED_MR);
    w->height = (rows + (rows - 1) / most) / ((rows - 1) / most + 1); /* blocks of equal height */
    /* rows that far apart map to the same sets of the first-level cache */
    w->copies = w->a.width || (w->a.ld % 512 == 0 && w->m > 1);
    w->work_each = w->block_floats = w->copies ? gemm_round_up(w->height * (kc + PACKED_LANES), 16) : 0;
    if (!w->copies || w->by_rows) return;
    int64_t blocks = (rows + w->height - 1) / w->height * packed_depths(w->k);
    w->kept = blocks <= 64 && blocks <= PACKED_KEPT_BYTES / (w->block_floats * 4);
    if (w->kept) w->work_each *= blocks;
}

/* Partitions the work: by rows if there are fewer than two panels a thread, or enough rows where these
 * outnumber the columns or the packed operand is small; otherwise by panels, and also by threads' own rows if
 * these are enough to pay for reading the operand, or if panels divide unevenly. There are more parts than
 * threads, so that others can take the parts of a delayed thread. */
static inline void packed_share(packed_product *w, int64_t threads)
{
    enum { PARTS = 4, OWN_ROWS = 3 * PACKED_MR };
    int64_t panels = packed_panels(w->n), parts = threads > 1 ? threads * PARTS : 1;
    bool tall = w->m > w->n || w->k * w->n * 4 <= PACKED_A_BYTES;
    w->row_parts = w->panel_parts = 1;
    w->by_rows = panels < 2 * threads || (tall && w->m >= 2 * threads * PACKED_MR);
    if (w->by_rows) {
        w->row_parts = gemm_min(parts, (w->m + PACKED_MR - 1) / PACKED_MR);
    } else {
        bool uneven = panels < parts && panels % threads != 0;
        if (w->m >= threads * (uneven ? PACKED_MR : OWN_ROWS)) w->row_parts = threads;
        w->panel_parts = gemm_min(parts / w->row_parts, panels);
    }
}

/* Runs the product. Each sum is formed in the same order, whatever the partition. */
static inline proa_status packed_run(packed_product *w)
{
    int64_t threads = proa_threads();
    if (w->m == 0 || w->n == 0) return PROA_OK;
    if ((double)w->m * (double)w->n * (double)w->k < 65536) threads = 1;
    packed_share(w, threads);
    packed_cut(w, (w->m + w->row_parts - 1) / w->row_parts);
    int64_t slots = w->row_parts * w->panel_parts;
    threads = gemm_min(threads, slots);
    w->work = proa_scratch((size_t)(threads * w->work_each) * sizeof(float));
    if (!w->work) return proa_error();
    packed_turns turns;
    packed_turns_begin(&turns, slots, threads);
    w->turns = &turns;
    proa__parallel(threads, 1, packed_slots, w);
    w->turns = NULL;
    proa_scratch_free(w->work);
    return PROA_OK;
}

#endif
