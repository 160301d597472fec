/* One instance of the portable matrix product: included by gemm.h with GEMM_NAME, GEMM_T (accumulator),
 * GEMM_IN (element in memory), GEMM_LOAD (element to accumulator) and GEMM_SPLAT (accumulator to all lanes).
 * No include guard on purpose. */
#define GEMM_PASTE_(a, b) a##_##b
#define GEMM_PASTE(a, b) GEMM_PASTE_(a, b)
#define GEMM_FN(name) GEMM_PASTE(name, GEMM_NAME)
#define GEMM_LANES ((int64_t)(VECTOR_BYTES / sizeof(GEMM_T)))
#define GEMM_NR (GEMM_NV * GEMM_LANES)

typedef GEMM_T GEMM_FN(gemm_vector)
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(GEMM_T)), may_alias));

/* sum[rows × NR] += outer product of a column of a's panel and a row of b's. */
static inline __attribute__((always_inline)) void GEMM_FN(gemm_step)(const int rows,
                                                                     GEMM_FN(gemm_vector) (*sum)[GEMM_NV],
                                                                     const GEMM_T *a, const GEMM_T *b)
{
    GEMM_FN(gemm_vector) column[GEMM_NV];
#pragma GCC unroll 2
    for (int v = 0; v < GEMM_NV; v++) column[v] = *(const GEMM_FN(gemm_vector) *)(b + v * GEMM_LANES);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        GEMM_FN(gemm_vector) x = GEMM_SPLAT(a + i);
#pragma GCC unroll 2
        for (int v = 0; v < GEMM_NV; v++) sum[i][v] += x * column[v];
        VECTOR_KEEP(x);
    }
#pragma GCC unroll 2
    for (int v = 0; v < GEMM_NV; v++) VECTOR_KEEP(column[v]);
}

/* Source that a register tile is added to, and destination of its sums (the same memory or
 * disjoint). `ahead` is prefetched meanwhile, `ahead_step` elements for each row of b. */
typedef struct GEMM_FN(gemm_ends) {
    const GEMM_T *from;
    GEMM_T *to;
    int64_t from_ld, to_ld;
    const GEMM_T *ahead;
    int64_t ahead_step;
} GEMM_FN(gemm_ends);

/* Computes a register tile, to[rows × NR] = from + a panel · b panel, with both panels packed. Destination
 * lines are prefetched in the first steps. Callers pass a constant `rows`. */
static inline __attribute__((always_inline)) void GEMM_FN(gemm_micro_of)(const int rows, int64_t kc,
                                                                         const GEMM_T *a, const GEMM_T *b,
                                                                         GEMM_FN(gemm_ends) e)
{
    typedef GEMM_FN(gemm_vector) vector;
    vector sum[GEMM_MR][GEMM_NV];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < GEMM_NV; v++) sum[i][v] = (vector){0};
    int64_t p = 0, first = kc < rows ? kc : rows;
    for (; p < first; p++, a += GEMM_MR, b += GEMM_NR, e.ahead += e.ahead_step) {
        __builtin_prefetch(e.ahead, 0, 2);
        __builtin_prefetch(e.to + p * e.to_ld, 1, 3);
        __builtin_prefetch(e.to + p * e.to_ld + GEMM_LANES, 1, 3);
        GEMM_FN(gemm_step)(rows, sum, a, b);
    }
    for (; p < kc; p++, a += GEMM_MR, b += GEMM_NR, e.ahead += e.ahead_step) {
        __builtin_prefetch(e.ahead, 0, 2);
        GEMM_FN(gemm_step)(rows, sum, a, b);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < GEMM_NV; v++)
            *(vector *)(e.to + i * e.to_ld + v * GEMM_LANES) =
                *(const vector *)(e.from + i * e.from_ld + v * GEMM_LANES) + sum[i][v];
}

/* gemm_micro_of for the first `rows` rows of a tile, rounded up to thirds of the tile, so that few unused
 * rows are computed. */
static inline void GEMM_FN(gemm_micro)(int64_t rows, int64_t kc, const GEMM_T *a, const GEMM_T *b,
                                       GEMM_FN(gemm_ends) e)
{
    if (rows > GEMM_MR * 2 / 3) GEMM_FN(gemm_micro_of)(GEMM_MR, kc, a, b, e);
    else if (rows > GEMM_MR / 3) GEMM_FN(gemm_micro_of)(GEMM_MR * 2 / 3, kc, a, b, e);
    else GEMM_FN(gemm_micro_of)(GEMM_MR / 3, kc, a, b, e);
}

#ifdef GEMM_TRANSPOSE
/* Transposes rows × n elements (rows a multiple of 4) from rows of stride rs to columns of stride to_cs, in 4
 * × 4 blocks. */
static inline void GEMM_FN(gemm_transpose)(int64_t rows, int64_t n, const GEMM_T *from, int64_t rs,
                                           GEMM_T *to, int64_t to_cs)
{
    int64_t p = 0;
    for (; p + 4 <= n; p += 4)
        for (int64_t i = 0; i < rows; i += 4)
            GEMM_TRANSPOSE(from + i * rs + p, rs, to + p * to_cs + i, to_cs);
    for (; p < n; p++)
        for (int64_t i = 0; i < rows; i++) to[p * to_cs + i] = from[i * rs + p];
}
#endif

/* Packs rows [0, m) of A, negated if so asked, into panels of MR rows, padded with zeros to whole panels. */
static inline void GEMM_FN(gemm_pack_a)(int64_t m, int64_t kc, const GEMM_IN *a, gemm_strides s, bool negate,
                                        GEMM_T *to)
{
    int64_t i0 = 0;
    if (s.rs == 1) { /* A column-major: packs all panels at once, so that each column is read in one go */
        int64_t whole = m / GEMM_MR * GEMM_MR;
        for (int64_t p = 0; p < kc; p++)
            for (i0 = 0; i0 < whole; i0 += GEMM_MR) {
                __builtin_prefetch(a + gemm_min(p + GEMM_AHEAD, kc - 1) * s.cs + i0);
                for (int64_t i = 0; i < GEMM_MR; i++)
                    to[i0 * kc + p * GEMM_MR + i] = (GEMM_T)GEMM_LOAD(a[p * s.cs + i0 + i]);
            }
        i0 = whole;
    }
    for (; i0 < m; i0 += GEMM_MR) {
        int64_t rows = gemm_min(GEMM_MR, m - i0), done = 0;
        const GEMM_IN *from = a + i0 * s.rs;
        GEMM_T *panel = to + i0 * kc;
        if (rows < GEMM_MR) memset(panel, 0, (size_t)(GEMM_MR * kc) * sizeof *to);
#ifdef GEMM_TRANSPOSE
        if (s.cs == 1) GEMM_FN(gemm_transpose)(done = rows / 4 * 4, kc, from, s.rs, panel, GEMM_MR);
#endif
        for (int64_t i = done; i < rows; i++)
            for (int64_t p = 0; p < kc; p++)
                panel[p * GEMM_MR + i] = (GEMM_T)GEMM_LOAD(from[i * s.rs + p * s.cs]);
    }
    if (negate)
        for (int64_t i = 0; i < gemm_round_up(m, GEMM_MR) * kc; i++) to[i] = -to[i];
}

/* Packs columns [0, n) of B into panels of NR columns, padded with zeros to whole panels. */
static inline void GEMM_FN(gemm_pack_b)(int64_t kc, int64_t n, const GEMM_IN *b, gemm_strides s, GEMM_T *to)
{
    for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR, to += GEMM_NR * kc) {
        int64_t columns = gemm_min(GEMM_NR, n - j0);
        const GEMM_IN *from = b + j0 * s.cs;
        if (columns < GEMM_NR) memset(to, 0, (size_t)(GEMM_NR * kc) * sizeof *to);
        if (s.cs == 1 && columns == GEMM_NR) {
            for (int64_t p = 0; p < kc; p++)
                for (int64_t j = 0; j < GEMM_NR; j++)
                    to[p * GEMM_NR + j] = (GEMM_T)GEMM_LOAD(from[p * s.rs + j]);
        } else if (s.cs == 1) {
            for (int64_t p = 0; p < kc; p++)
                for (int64_t j = 0; j < columns; j++)
                    to[p * GEMM_NR + j] = (GEMM_T)GEMM_LOAD(from[p * s.rs + j]);
        } else {
            int64_t done = 0;
#ifdef GEMM_TRANSPOSE
            if (s.rs == 1) GEMM_FN(gemm_transpose)(done = columns / 4 * 4, kc, from, s.cs, to, GEMM_NR);
#endif
            for (int64_t j = done; j < columns; j++)
                for (int64_t p = 0; p < kc; p++)
                    to[p * GEMM_NR + j] = (GEMM_T)GEMM_LOAD(from[p * s.rs + j * s.cs]);
        }
    }
}

/* Columns of a cache block of B. */
static inline int64_t GEMM_FN(gemm_nc)(void) { return GEMM_NC_BYTES / (int64_t)sizeof(GEMM_T); }
static inline int64_t GEMM_FN(gemm_ld)(int64_t n) { return gemm_round_up(n, GEMM_NR); }
/* Elements of an m×n accumulator whose rows and columns are padded to whole register tiles. */
static inline int64_t GEMM_FN(gemm_tile_size)(int64_t m, int64_t n)
{
    return gemm_round_up(m, GEMM_MR) * GEMM_FN(gemm_ld)(n);
}
/* Elements of packing space that gemm_add needs for products of at most m×k and k×n. */
static inline int64_t GEMM_FN(gemm_pack_size)(int64_t m, int64_t n, int64_t k)
{
    int64_t rows = gemm_min(gemm_round_up(m, GEMM_MR), GEMM_MC);
    int64_t columns = gemm_min(gemm_round_up(n, GEMM_NR), GEMM_FN(gemm_nc)());
    return (rows + columns) * gemm_min(k, GEMM_KC);
}

/* c += a·b, or −a·b; c has gemm_tile_size elements, pack gemm_pack_size. m, n and k of any size. */
static inline void GEMM_FN(gemm_add)(int64_t m, int64_t n, int64_t k, const GEMM_IN *a, gemm_strides as,
                                     bool negate, const GEMM_IN *b, gemm_strides bs, GEMM_T *c, int64_t ldc,
                                     GEMM_T *pack)
{
    int64_t rows = gemm_min(gemm_round_up(m, GEMM_MR), GEMM_MC), nc = GEMM_FN(gemm_nc)();
    GEMM_T *pack_b = pack + rows * gemm_min(k, GEMM_KC);
    for (int64_t p = 0; p < k; p += GEMM_KC) {
        int64_t kc = gemm_min(GEMM_KC, k - p);
        for (int64_t j0 = 0; j0 < n; j0 += nc) {
            int64_t columns = gemm_min(nc, n - j0);
            GEMM_FN(gemm_pack_b)(kc, columns, b + p * bs.rs + j0 * bs.cs, bs, pack_b);
            for (int64_t i0 = 0; i0 < m; i0 += GEMM_MC) {
                int64_t height = gemm_min(GEMM_MC, m - i0);
                GEMM_FN(gemm_pack_a)(height, kc, a + i0 * as.rs + p * as.cs, as, negate, pack);
                for (int64_t j = 0; j < columns; j += GEMM_NR)
                    for (int64_t i = 0; i < height; i += GEMM_MR) {
                        GEMM_T *to = c + (i0 + i) * ldc + j0 + j;
                        GEMM_FN(gemm_micro)
                        (height - i, kc, pack + i * kc, pack_b + j * kc,
                         (GEMM_FN(gemm_ends)){to, to, ldc, ldc, pack_b + j * kc, 0});
                    }
            }
        }
    }
}

#undef GEMM_PASTE_
#undef GEMM_PASTE
#undef GEMM_FN
#undef GEMM_LANES
#undef GEMM_NR
#undef GEMM_NAME
#undef GEMM_T
#undef GEMM_IN
#undef GEMM_LOAD
#undef GEMM_SPLAT
#undef GEMM_TRANSPOSE
