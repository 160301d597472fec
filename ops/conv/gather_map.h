/* Sums over the (input, output) pixel pairs that the taps of a filter connect, as a vector of columns
 * (images, or pixels of images) by blocks of channels. Pixels are gathered by index instead of by im2col, so
 * that one filter in blocks of channels serves forward and dgrad. For kernel files; may use core and helpers
 * of ops/; everything is static. */
#ifndef PROA_OPS_CONV_GATHER_MAP_H
#define PROA_OPS_CONV_GATHER_MAP_H

#include "ops/conv/blocks.h"
#include "kernels/gemm.h"

enum { PAIRS_TILE = CONV_BLOCK * CONV_BLOCK };

typedef float gather_lane __attribute__((vector_size(4 * CONV_BLOCK), aligned(4), may_alias));

/* A pair of pixels, one of each map, that a filter tap connects. */
typedef struct conv_pair {
    int32_t in, out, tap;
} conv_pair;

typedef struct conv_gather_map {
    int64_t taps;
    int64_t groups; /* one per sum: output pixel, input pixel (dgrad) or tap (wgrad) */
    int32_t *start; /* first pair of each group; then the number of pairs */
    conv_pair *pairs;
} conv_gather_map;

static inline void gather_release(conv_gather_map *p)
{
    proa__free(p->start);
    proa__free(p->pairs);
}

static inline int32_t gather_group(const conv_pair *p, conv_kind kind)
{
    return kind == FORWARD ? p->out : kind == BACKWARD_DATA ? p->in : p->tap;
}

/* Sorts n pairs by group, stably. taps and groups are set by the caller, who releases p if this fails. */
static inline proa_status gather_sort(conv_gather_map *p, const conv_pair *list, int64_t n, conv_kind kind)
{
    p->start = proa__calloc((size_t)(p->groups + 2) * sizeof *p->start);
    p->pairs = proa__alloc((size_t)n * sizeof *p->pairs);
    if (!p->start || !p->pairs) return proa_error();
    int32_t *next = p->start + 1; /* shifted by one until all pairs are placed (counting sort) */
    for (int64_t i = 0; i < n; i++) next[gather_group(&list[i], kind) + 1]++;
    for (int64_t i = 0; i < p->groups; i++) next[i + 1] += next[i];
    for (int64_t i = 0; i < n; i++) p->pairs[next[gather_group(&list[i], kind)]++] = list[i];
    return PROA_OK;
}

/* Prefetches `bytes` bytes. */
static inline void gather_prefetch(const void *at, size_t bytes, const int to_write)
{
    const char *from = at;
    for (size_t i = 0; i < bytes; i += 64) {
        if (to_write) __builtin_prefetch(from + i, 1);
        else __builtin_prefetch(from + i, 0);
    }
}

/* sum[c] += w[c · channel + k · step] · from[k], for each k of a block. */
static inline __attribute__((always_inline)) void gather_add_tile(gather_lane *sum, const float *w,
                                                                  const int64_t channel, const int64_t step,
                                                                  const float *from)
{
    for (int64_t k = 0; k < CONV_BLOCK; k++) {
        gather_lane v = *(const gather_lane *)(from + k * CONV_BLOCK);
#pragma GCC unroll 16
        for (int64_t c = 0; c < CONV_BLOCK; c++) sum[c] += w[c * channel + k * step] * v;
    }
}

/* A step of transposition by s × s blocks, for each pair of rows r[i] and r[i + s]: the lanes of both,
 * counted through, that the first and that the second gets. */
#define GATHER_SWAP(s, first, second)                             \
    _Pragma("GCC unroll 16") for (int i = 0; i < CONV_BLOCK; i++) \
    {                                                             \
        if (i & s) continue;                                      \
        gather_lane a = r[i], b = r[i + s];                       \
        r[i] = __builtin_shufflevector(a, b, first);              \
        r[i + s] = __builtin_shufflevector(a, b, second);         \
    }
#define GATHER_LANES(...) __VA_ARGS__

/* Transposes the square block whose rows are r. */
static inline __attribute__((always_inline)) void gather_transpose(gather_lane *r)
{
#if VECTOR_BYTES == 32
    GATHER_SWAP(1, GATHER_LANES(0, 8, 2, 10, 4, 12, 6, 14), GATHER_LANES(1, 9, 3, 11, 5, 13, 7, 15))
    GATHER_SWAP(2, GATHER_LANES(0, 1, 8, 9, 4, 5, 12, 13), GATHER_LANES(2, 3, 10, 11, 6, 7, 14, 15))
    GATHER_SWAP(4, GATHER_LANES(0, 1, 2, 3, 8, 9, 10, 11), GATHER_LANES(4, 5, 6, 7, 12, 13, 14, 15))
#else
    GATHER_SWAP(1, GATHER_LANES(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
                GATHER_LANES(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
    GATHER_SWAP(2, GATHER_LANES(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                GATHER_LANES(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    GATHER_SWAP(4, GATHER_LANES(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                GATHER_LANES(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    GATHER_SWAP(8, GATHER_LANES(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                GATHER_LANES(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#endif
}

/* Operands of one vector of columns. Block b of channels on the other side (input, in dgrad output) is at
 * from + b · from_step as [pixel][channel][column], its filter block at w + b · step; `blocks` are still to
 * be added. */
typedef struct gather_operands {
    const float *w, *from;
    int64_t step, from_step, blocks;
} gather_operands;

/* sums[pixel][channel of the block] += the products of the next n blocks of `o`. The filter is read once; the
 * sums stay in the L1 cache. The filter's next blocks are prefetched piece by piece, one piece per pair,
 * because many prefetches at once would stall. */
static inline __attribute__((always_inline)) void gather_add_blocks(const conv_gather_map *s,
                                                                    const bool forward,
                                                                    const gather_operands *o, int64_t n,
                                                                    gather_lane *sums)
{
    int64_t next = o->blocks >= 2 * n ? n * o->step : 0;
    int64_t piece = s->taps * PAIRS_TILE / s->start[s->groups];
    for (int64_t place = 0; place < s->groups; place++) {
        int32_t first = s->start[place], end = s->start[place + 1];
        if (first == end) continue;
        gather_lane sum[CONV_BLOCK], *at = sums + place * CONV_BLOCK;
#pragma GCC unroll 16
        for (int64_t c = 0; c < CONV_BLOCK; c++) sum[c] = at[c];
        for (int64_t b = 0; b < n; b++) {
            const float *w = o->w + b * o->step, *from = o->from + b * o->from_step;
            for (int32_t i = first; i < end; i++) {
                const conv_pair *p = &s->pairs[i];
                gather_prefetch(w + next + i * piece, (size_t)piece * sizeof *w, 0);
                gather_add_tile(sum, w + p->tap * PAIRS_TILE, forward ? 1 : CONV_BLOCK,
                                forward ? CONV_BLOCK : 1, from + (forward ? p->in : p->out) * PAIRS_TILE);
            }
        }
#pragma GCC unroll 16
        for (int64_t c = 0; c < CONV_BLOCK; c++) at[c] = sum[c];
    }
}

#endif
