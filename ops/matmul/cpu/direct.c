/* Unpacked float32 matrix products of small and medium size. The left operand is read in place; the right
 * one, too, if its rows are whole vectors, otherwise it is copied one panel at a time. May use core, kernels
 * and ops. */
#include "kernels/prepacked_gemm.h"

#include "ops/matmul/product.h"

/* Bounds in multiply-adds. MAX: of a batch entry, from which packing pays. ANY: of a product that is always
 * taken. ENTRY_MIN: of a batch entry worth a tile call. ALONE: of a product for one thread. DEPTH: longest
 * sum. */
#define DIRECT_MAX 18e6
#define DIRECT_ANY 600000.0
#define DIRECT_ENTRY_MIN 32768.0
#define DIRECT_ALONE 200000.0
enum { DIRECT_DEPTH = 4096 };

typedef struct direct_job {
    const matmul_product *p;
    float *work; /* a panel for each thread */
    int64_t work_each, panels, parts, row_parts;
    bool by_rows;
    packed_turns turns;
} direct_job;

/* ---- register tiles ---------------------------------------------------------------------------- */

typedef void (*direct_tile_fn)(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
                               int64_t ldc, const packed_ends *e);

#define DIRECT_TILE(mr, width, down)                                                                        \
    static void direct_tile_##mr##_##width##_##down(int64_t k, const float *a, int64_t lda, const float *b, \
                                                    int64_t ldb, float *c, int64_t ldc,                     \
                                                    const packed_ends *e)                                   \
    {                                                                                                       \
        packed_tile(mr, width, down, k, a, lda, b, ldb, c, ldc, e, b + PACKED_NR, ldb);                     \
    }
#define DIRECT_BOTH(mr, width) DIRECT_TILE(mr, width, 0) DIRECT_TILE(mr, width, 1)
#define DIRECT_ALL(mr) \
    DIRECT_BOTH(mr, PACKED_ONE) DIRECT_BOTH(mr, PACKED_ONE_AND_HALF) DIRECT_BOTH(mr, PACKED_TWO)
PACKED_TILES(DIRECT_ALL)
#define DIRECT_WIDTHS(mr, down)                                                              \
    {                                                                                        \
        direct_tile_##mr##_PACKED_ONE_##down, direct_tile_##mr##_PACKED_ONE_AND_HALF_##down, \
            direct_tile_##mr##_PACKED_TWO_##down                                             \
    }
#define DIRECT_ENTRY(mr) {DIRECT_WIDTHS(mr, 0), DIRECT_WIDTHS(mr, 1)},
static const direct_tile_fn direct_tiles[PACKED_MR][2][PACKED_WIDTHS] = {PACKED_TILES(DIRECT_ENTRY)};

/* ---- the right operand ------------------------------------------------------------------------- */

/* Transposes `columns` columns that are contiguous in memory (length k) to rows of PACKED_NR. */
static void put_across(const float *from, int64_t cs, int64_t k, int64_t columns, float *to)
{
    int64_t j = 0;
#if defined(__AVX512F__)
    for (; j + 16 <= columns; j += 16) {
        const float *at = from + j * cs;
        int64_t p = 0;
        for (; p + 4 <= k; p += 4) { /* 16 columns × 4: four 4 × 4 blocks at once, one in each quarter */
            __m512 r[4];
            for (int q = 0; q < 4; q++) {
                r[q] = _mm512_castps128_ps512(_mm_loadu_ps(at + q * cs + p));
                r[q] = _mm512_insertf32x4(r[q], _mm_loadu_ps(at + (q + 4) * cs + p), 1);
                r[q] = _mm512_insertf32x4(r[q], _mm_loadu_ps(at + (q + 8) * cs + p), 2);
                r[q] = _mm512_insertf32x4(r[q], _mm_loadu_ps(at + (q + 12) * cs + p), 3);
            }
            __m512d low = (__m512d)_mm512_unpacklo_ps(r[0], r[1]),
                    high = (__m512d)_mm512_unpackhi_ps(r[0], r[1]);
            __m512d low2 = (__m512d)_mm512_unpacklo_ps(r[2], r[3]),
                    high2 = (__m512d)_mm512_unpackhi_ps(r[2], r[3]);
            float *out = to + p * PACKED_NR + j;
            _mm512_storeu_ps(out, (__m512)_mm512_unpacklo_pd(low, low2));
            _mm512_storeu_ps(out + PACKED_NR, (__m512)_mm512_unpackhi_pd(low, low2));
            _mm512_storeu_ps(out + 2 * PACKED_NR, (__m512)_mm512_unpacklo_pd(high, high2));
            _mm512_storeu_ps(out + 3 * PACKED_NR, (__m512)_mm512_unpackhi_pd(high, high2));
        }
        for (; p < k; p++)
            for (int64_t q = 0; q < 16; q++) to[p * PACKED_NR + j + q] = at[q * cs + p];
    }
#endif
    int64_t rest = columns - j, whole = rest / 4 * 4;
    if (whole) gemm_transpose_f32(whole, k, from + j * cs, cs, to + j, PACKED_NR);
    for (j += whole; j < columns; j++)
        for (int64_t p = 0; p < k; p++) to[p * PACKED_NR + j] = from[j * cs + p];
}

/* to[0, n) = from + add (NULL: nothing), of at most PACKED_NR floats. fills: zeros up to a whole vector. */
static inline __attribute__((always_inline)) void put_few(float *to, const float *from, const float *add,
                                                          int64_t n, bool fills)
{
#if defined(__AVX512F__)
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
        __m512 v = _mm512_maskz_loadu_ps(mask, from + i);
        if (add) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, add + i));
        if (fills) _mm512_storeu_ps(to + i, v);
        else _mm512_mask_storeu_ps(to + i, mask, v);
    }
#else
    int64_t filled = fills ? gemm_round_up(n, PACKED_LANES) : n;
    for (int64_t i = 0; i < n; i++) to[i] = add ? from[i] + add[i] : from[i];
    for (int64_t i = n; i < filled; i++) to[i] = 0;
#endif
}

/* Panel j of the right operand: read in place, or copied to `work`. Padding columns up to a whole vector are
 * zero. */
static const float *panel_of(const matmul_product *p, const float *y, int64_t j, float *work, int64_t *ldb)
{
    int64_t columns = gemm_min(PACKED_NR, p->n - j * PACKED_NR);
    int64_t filled = packed_columns_of(packed_width_of(columns));
    const float *from = y + j * PACKED_NR * p->y_cs;
    *ldb = p->y_rs;
    if (p->y_cs == 1 && columns == filled) return from;
    *ldb = PACKED_NR;
    if (p->y_cs == 1) {
        for (int64_t i = 0; i < p->k; i++)
            put_few(work + i * PACKED_NR, from + i * p->y_rs, NULL, columns, true);
        return work;
    }
    put_across(from, p->y_cs, p->k, columns, work);
    for (int64_t i = 0; i < p->k && columns < filled; i++)
        for (int64_t c = columns; c < filled; c++) work[i * PACKED_NR + c] = 0;
    return work;
}

/* ---- the product ------------------------------------------------------------------------------- */

/* Computes rows [i0, i1) of panel j at b. */
static void put_panel(const matmul_product *p, const float *x, float *out, int64_t j, int64_t i0, int64_t i1,
                      const float *b, int64_t ldb)
{
    int64_t columns = gemm_min(PACKED_NR, p->n - j * PACKED_NR);
    packed_width width = packed_width_of(columns);
    bool down = p->x_cs != 1, whole = columns == packed_columns_of(width);
    int64_t lda = down ? p->x_cs : p->x_rs, tiles = (i1 - i0 + PACKED_MR - 1) / PACKED_MR;
    const float *bias = p->add ? (const float *)(const void *)p->add + j * PACKED_NR : NULL;
    float edge[PACKED_MR * PACKED_NR];
    for (int64_t t = 0; t < tiles; t++) {
        int64_t i = i0 + t * (i1 - i0) / tiles, rows = i0 + (t + 1) * (i1 - i0) / tiles - i;
        direct_tile_fn tile = direct_tiles[rows - 1][down][width];
        float *c = out + i * p->out_rs + j * PACKED_NR;
        if (whole) {
            tile(p->k, x + i * p->x_rs, lda, b, ldb, c, p->out_rs, &(packed_ends){.bias = bias});
            continue;
        }
        tile(p->k, x + i * p->x_rs, lda, b, ldb, edge, PACKED_NR, &(packed_ends){.bias = NULL});
        for (int64_t r = 0; r < rows; r++)
            put_few(c + r * p->out_rs, edge + r * PACKED_NR, bias, columns, false);
    }
}

/* Body of one thread: computes slots until none is left. */
static void direct_slots(int64_t begin, int64_t end, void *context)
{
    direct_job *job = context;
    const matmul_product *p = job->p;
    float *work = job->work + begin * job->work_each;
    int64_t slot, x, y, out;
    (void)end;
    while ((slot = packed_turn(&job->turns, begin)) >= 0) {
        int64_t part = slot % job->parts, row = part % job->row_parts, ldb;
        proa__product_batch(p, slot / job->parts, &x, &y, &out);
        int64_t j0 = job->by_rows ? 0 : part / job->row_parts, j1 = job->by_rows ? job->panels : j0 + 1;
        int64_t i0 = row * p->m / job->row_parts, i1 = (row + 1) * p->m / job->row_parts;
        for (int64_t j = j0; j < j1; j++) {
            const float *b = panel_of(p, (const float *)(const void *)p->y + y, j, work, &ldb);
            put_panel(p, (const float *)(const void *)p->x + x, (float *)(void *)p->out + out, j, i0, i1, b,
                      ldb);
        }
    }
}

/* Threads share panels, or rows if there are too few panels, or parts of panels if there are few of both.
 * Each element is one sequential sum, whatever the partition. */
static proa_status direct_run(const matmul_product *p)
{
    direct_job job = {.p = p, .panels = packed_panels(p->n)};
    int64_t threads = product_work(p) < DIRECT_ALONE ? 1 : proa_threads();
    int64_t least = 2 * threads, panels = p->batches * job.panels, pieces = p->m / (2 * PACKED_MR);
    job.by_rows = panels < least && p->m >= least * PACKED_MR;
    job.row_parts = job.by_rows ? least : 1;
    if (!job.by_rows && pieces > 1) job.row_parts = gemm_min(pieces, (least + panels - 1) / panels);
    job.parts = job.by_rows ? job.row_parts : job.panels * job.row_parts;
    threads = gemm_min(threads, p->batches * job.parts);
    job.work_each = gemm_round_up(p->k * PACKED_NR, 16);
    job.work = proa_scratch((size_t)(threads * job.work_each) * sizeof(float));
    if (!job.work) return proa_error();
    packed_turns_begin(&job.turns, p->batches * job.parts, threads);
    proa__parallel(threads, 1, direct_slots, &job);
    proa_scratch_free(job.work);
    return PROA_OK;
}

static proa_status direct_prepare(const matmul_product *p, void **state)
{
    *state = NULL;
    if (p->dtype != PROA_F32 || p->odd || p->alpha != 1 || p->k == 0 || p->batches == 0)
        return proa_decline("not plain float32");
    if (p->m < 2 || p->n < 2 || product_is_streamed(p) || p->k > DIRECT_DEPTH)
        return proa_decline("of vectors, or too deep");
    double entry = (double)p->m * (double)p->n * (double)p->k;
    bool crowded = p->x_cs == 1 && p->x_rs % PRODUCT_CROWDED == 0;
    bool pays = entry >= DIRECT_ENTRY_MIN && entry <= DIRECT_MAX && !crowded;
    if (product_work(p) > DIRECT_ANY && !pays) return proa_decline("too large");
    if ((p->x_cs != 1 && p->x_rs != 1) || (p->y_cs != 1 && p->y_rs != 1))
        return proa_decline("an operand is contiguous along neither axis");
    if (p->has_add && (p->beta != 1 || p->add_rs != 0 || (p->add_cs != 1 && p->n != 1)))
        return proa_decline("the addend is no row of numbers");
    return PROA_OK;
}

#define DIRECT_PRODUCT(op, make)                                  \
    PRODUCT_PREPARE(op, make, direct_prepare)                     \
    PROA_KERNEL_PREPARED(op##_direct_cpu, op, op##_prepare, NULL) \
    {                                                             \
        matmul_product p = make(a);                               \
        return direct_run(&p);                                    \
    }

DIRECT_PRODUCT(matmul, PRODUCT_MATMUL)
DIRECT_PRODUCT(bmm, PRODUCT_BMM)
DIRECT_PRODUCT(linear, product_linear)
DIRECT_PRODUCT(matmul_swapped, PRODUCT_SWAPPED)
