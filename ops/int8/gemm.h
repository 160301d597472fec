/* GEMM of 8-bit integers by AVX2, for CPUs without VNNI: rows of the left operand are widened to 16 bits
 * block by block, a constant right operand is packed once into panels and widened as it is read, and pairs
 * of products are summed exactly in 32 bits (vpmaddwd). For kernel files; may use core and kernels, and
 * everything is static. */
#ifndef PROA_OPS_INT8_GEMM_H
#define PROA_OPS_INT8_GEMM_H

#include "kernels/prepacked_gemm.h"
#include "ops/int8/pair_tiles.h"
#include "ops/int8/rounding.h"

/* INT8_MAX_K: sums of more products of 255 and −128 might exceed 32 bits. INT8_ALONE: multiply-adds below
 * which one thread does all. INT8_A_BYTES: of a block of widened rows (half of a second-level cache).
 * INT8_MIN_ROWS and INT8_MIN_PANELS: of a slot, so that widening pays. */
enum {
    INT8_MAX_K = 65536,
    INT8_ALONE = 1 << 17,
    INT8_A_BYTES = 192 << 10,
    INT8_MIN_ROWS = 18,
    INT8_MIN_PANELS = 8
};

/* ---- the right operand ---------------------------------------------------------------------- */

/* Size and element strides of the right operand: its depth k counts `taps` · `channels`, channels first. */
typedef struct int8_right {
    int64_t taps, channels, n;
    int64_t tap_step, channel_step, n_step;
} int8_right;

static inline int64_t int8_depth(const int8_right *r) { return r->taps * r->channels; }
static inline int64_t int8_padded(int64_t k) { return gemm_round_up(k, INT8_DEPTH); }
static inline int64_t int8_panels(int64_t n) { return (n + INT8_NR - 1) / INT8_NR; }

/* Layout: panels in sequence; in one, for each pair of rows, two bytes a column. */
static inline int64_t int8_panel_bytes(int64_t k) { return int8_padded(k) * INT8_NR; }

static inline size_t int8_packed_bytes(const int8_right *r)
{
    return (size_t)(int8_panels(r->n) * int8_panel_bytes(int8_depth(r)));
}

/* Writes panel j, with zeros beyond row k and column n. */
static inline void int8_pack_panel(const int8_right *r, const int8_t *from, int64_t j, int8_t *to)
{
    const int64_t columns = gemm_min(INT8_NR, r->n - j * INT8_NR), step = r->n_step;
    const bool paired = r->taps == 1 || r->channels % 2 == 0; /* no pair is of two taps */
    memset(to, 0, (size_t)int8_panel_bytes(int8_depth(r)));
    from += j * INT8_NR * step;
    for (int64_t t = 0, p = 0; t < r->taps; t++) {
        const int64_t end = (t + 1) * r->channels;
        const int8_t *row = from + t * r->tap_step;
        for (; paired && p + 2 <= end; p += 2, row += 2 * r->channel_step) {
            const int8_t *next = row + r->channel_step;
            int8_t *out = to + int8_at(p, 0);
            for (int64_t q = 0; q < columns; q++) out[2 * q] = row[q * step], out[2 * q + 1] = next[q * step];
        }
        for (; p < end; p++, row += r->channel_step)
            for (int64_t q = 0; q < columns; q++) to[int8_at(p, q)] = row[q * step];
    }
}

static inline void int8_unpack_panel(const int8_right *r, const int8_t *from, int64_t j, int8_t *to)
{
    const int64_t columns = gemm_min(INT8_NR, r->n - j * INT8_NR);
    to += j * INT8_NR * r->n_step;
    for (int64_t t = 0, p = 0; t < r->taps; t++)
        for (int64_t c = 0; c < r->channels; c++, p++) {
            int8_t *row = to + t * r->tap_step + c * r->channel_step;
            for (int64_t q = 0; q < columns; q++) row[q * r->n_step] = from[int8_at(p, q)];
        }
}

/* ---- the product ---------------------------------------------------------------------------- */

/* out = outer · activation(a · b · scale + bias + residual), rounded and clamped where out is of integers. */
typedef struct int8_product {
    int64_t m, n, k;
    void (*widen)(const void *context, int64_t row, int16_t *to); /* writes k numbers */
    const void *context;
    const int8_t *b;    /* packed */
    const float *scale; /* one number a column; NULL: outer alone */
    const float *bias;  /* or NULL */
    proa__epilogue tail;
    proa_tensor *out;
    int64_t out_at, out_ld; /* elements */
    float outer, low, high;
    /* partition of the work */
    int64_t height, row_parts, panel_parts; /* rows of a part */
} int8_product;

/* Adds the residual's integers or floats to rows × columns numbers. */
static inline void int8_add(const int8_product *w, int64_t at, int64_t rows, int64_t columns, float *v)
{
    const proa_tensor *t = w->tail.residual;
#define INT8_ADD(T)                                                                 \
    for (int64_t i = 0; i < rows; i++) {                                            \
        const T *from = (const T *)(const void *)t->data + at + i * w->out_ld;      \
        for (int64_t q = 0; q < columns; q++) v[i * INT8_NR + q] += (float)from[q]; \
    }                                                                               \
    break
    switch (t->dtype) {
    case PROA_I8: INT8_ADD(int8_t);
    case PROA_U8: INT8_ADD(uint8_t);
    default: INT8_ADD(float);
    }
#undef INT8_ADD
}

/* Applies the activation to whole vectors, also of narrower panels, so that it needs one loop. */
static __attribute__((noinline)) void int8_activate(float *v, int64_t rows, const proa__epilogue *tail)
{
    packed_activate(v, INT8_NR, rows, INT8_NR, tail);
}

static inline void int8_store(const int8_product *w, int64_t at, int64_t rows, int64_t columns,
                              const float *v)
{
    const rounding r = {w->outer, w->low, w->high};
#define INT8_ROUND(T)                                                                    \
    for (int64_t i = 0; i < rows; i++) {                                                 \
        T *to = (T *)(void *)w->out->data + at + i * w->out_ld;                          \
        for (int64_t q = 0; q < columns; q++) to[q] = (T)rounded(v[i * INT8_NR + q], r); \
    }                                                                                    \
    break
    switch (w->out->dtype) {
    case PROA_I8: INT8_ROUND(int8_t);
    case PROA_U8: INT8_ROUND(uint8_t);
    default:
        for (int64_t i = 0; i < rows; i++) {
            float *to = (float *)(void *)w->out->data + at + i * w->out_ld;
            for (int64_t q = 0; q < columns; q++) to[q] = v[i * INT8_NR + q] * r.scale;
        }
    }
#undef INT8_ROUND
}

/* From sums to results: rows [row, row + rows) of the columns of panel j. */
static inline __attribute__((always_inline)) void int8_finish(const int8_product *w, int64_t row,
                                                              int64_t rows, int64_t j, const int64_t columns,
                                                              const int32_t *sums)
{
    float v[INT8_MR * INT8_NR];
    const int64_t first = j * INT8_NR, at = w->out_at + row * w->out_ld + first;
    if (columns < INT8_NR) memset(v, 0, sizeof v);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t q = 0; q < columns; q++) {
            const float x = (float)sums[i * INT8_NR + q] * (w->scale ? w->scale[first + q] : 1);
            v[i * INT8_NR + q] = w->bias ? x + w->bias[first + q] : x;
        }
    if (!proa__absent(w->tail.residual)) int8_add(w, at, rows, columns, v);
    if (packed_clamps(&w->tail)) {
        const float high = packed_high(&w->tail);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t q = 0; q < columns; q++) {
                const float x = v[i * INT8_NR + q];
                v[i * INT8_NR + q] = x < 0 ? 0 : x > high ? high : x;
            }
    } else if (w->tail.activation != PROA_FUSED_ACTIVATION_NONE) {
        int8_activate(v, rows, &w->tail);
    }
    int8_store(w, at, rows, columns, v);
}

/* Widens rows [m0, m1) into tiles at `to`; `line` is memory for the rows of one. */
static inline void int8_widen(const int8_product *w, int64_t m0, int64_t m1, int16_t *line, int16_t *to)
{
    const int64_t k = int8_padded(w->k);
    for (int64_t m = m0; m < m1; m += INT8_MR, to += INT8_MR * k) {
        const int64_t rows = gemm_min(INT8_MR, m1 - m);
        for (int64_t i = 0; i < rows; i++) {
            w->widen(w->context, m + i, line + i * k);
            memset(line + i * k + w->k, 0, (size_t)(k - w->k) * sizeof *line);
        }
        int8_interleave(line, rows, k, to);
    }
}

/* Computes slots [begin, end): one is a part of the rows and a part of the panels. */
static inline void int8_slots(int64_t begin, int64_t end, void *context)
{
#if defined(__AVX2__)
    const int8_product *w = context;
    const int64_t panels = int8_panels(w->n), k = int8_padded(w->k), js = w->panel_parts;
    int16_t *line = proa_scratch((size_t)((INT8_MR + w->height) * k) * sizeof *line), *a = line + INT8_MR * k;
    int32_t sums[INT8_MR * INT8_NR];
    for (int64_t s = begin, widened = -1; s < end && line; s++) {
        const int64_t part = s / js, m0 = part * w->height, m1 = gemm_min(w->m, m0 + w->height);
        if (part != widened) int8_widen(w, m0, m1, line, a);
        widened = part;
        for (int64_t j = s % js * panels / js; j < (s % js + 1) * panels / js; j++) {
            const int8_t *panel = w->b + j * int8_panel_bytes(w->k);
            const int64_t columns = gemm_min(INT8_NR, w->n - j * INT8_NR);
            for (int64_t i = m0; i < m1; i += INT8_MR) {
                const int64_t rows = gemm_min(INT8_MR, m1 - i);
                int8_tiles[rows - 1](k, a + (i - m0) * k, panel, sums);
                if (columns == INT8_NR) int8_finish(w, i, rows, j, INT8_NR, sums);
                else int8_finish(w, i, rows, j, columns, sums);
            }
        }
    }
    proa_scratch_free(line);
#else
    (void)begin, (void)end, (void)context;
#endif
}

/* Partitions the work: by rows where there are enough of them, else also by panels; more parts than threads,
 * so that others can take the parts of a delayed thread. */
static inline void int8_share(int8_product *w, int64_t threads)
{
    enum { PARTS = 4 };
    const int64_t parts = threads > 1 ? threads * PARTS : 1, panels = int8_panels(w->n);
    const int64_t most = INT8_A_BYTES / (2 * int8_padded(w->k));
    int64_t height = (w->m + parts - 1) / parts;
    if (height < INT8_MIN_ROWS) height = gemm_min(INT8_MIN_ROWS, w->m);
    w->height = gemm_round_up(most < height ? most : height, INT8_MR);
    w->row_parts = (w->m + w->height - 1) / w->height;
    w->panel_parts = gemm_min((parts + w->row_parts - 1) / w->row_parts, panels / INT8_MIN_PANELS);
    if (w->panel_parts < 1) w->panel_parts = 1;
}

/* Runs the product; bits do not depend on the partition. */
static inline proa_status int8_run(int8_product *w)
{
    const double work = (double)w->m * (double)w->n * (double)w->k;
    const bool alone = work < INT8_ALONE;
    if (w->m == 0 || w->n == 0) return PROA_OK;
    int8_share(w, alone ? 1 : proa_threads());
    const int64_t slots = w->row_parts * w->panel_parts;
    if (alone) int8_slots(0, slots, w);
    else proa__parallel(slots, 1, int8_slots, w);
    return proa_error();
}

#endif
