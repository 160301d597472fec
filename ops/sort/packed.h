/* Stable LSD radix sort of long lines with keys of at most 32 bits: key and index share 64 bits, a pass sorts
 * by 8 bits. Threads split each pass into fixed parts, and the result does not depend on their number. Kernel
 * files only; may use core. */
#ifndef PROA_OPS_SORT_PACKED_H
#define PROA_OPS_SORT_PACKED_H

#include "ops/sort/keys.h"

enum { PACKED_PARTS = 8, PACKED_SHARED_FROM = 1 << 16, PACKED_BLOCK = 64 };

typedef struct packed_pass {
    const uint64_t *src;
    uint64_t *dst;
    int64_t n;
    int shift, parts;
    int64_t at[PACKED_PARTS][256];
} packed_pass;

static inline int64_t packed_start(const packed_pass *p, int64_t part) { return p->n * part / p->parts; }

static void packed_count(int64_t begin, int64_t end, void *context)
{
    packed_pass *p = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t *at = p->at[part], last = packed_start(p, part + 1);
        const uint64_t *src = p->src;
        const int shift = p->shift;
        memset(at, 0, sizeof p->at[part]);
        for (int64_t i = packed_start(p, part); i < last; i++) at[src[i] >> shift & 255]++;
    }
}

static void packed_move(int64_t begin, int64_t end, void *context)
{
    packed_pass *p = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t at[256], last = packed_start(p, part + 1); /* a copy: of dst's stores it is no alias */
        const uint64_t *src = p->src;
        uint64_t *dst = p->dst;
        const int shift = p->shift;
        memcpy(at, p->at[part], sizeof at);
        for (int64_t i = packed_start(p, part); i < last; i++) dst[at[src[i] >> shift & 255]++] = src[i];
    }
}

/* Turns counts into output positions: digit by digit, and within a digit part by part. False: all keys share
 * this digit, so the pass can be skipped. */
static bool packed_places(packed_pass *p)
{
    int64_t sum = 0;
    for (int d = 0; d < 256; d++) {
        int64_t before = sum;
        for (int part = 0; part < p->parts; part++) {
            int64_t here = p->at[part][d];
            p->at[part][d] = sum;
            sum += here;
        }
        if (sum - before == p->n) return false;
    }
    return true;
}

/* Sorts p stably by the `bits` bits above its low 32; `other` has space for n. Returns the buffer with the
 * result. */
static uint64_t *sort_packed(uint64_t *p, uint64_t *other, int64_t n, int bits)
{
    packed_pass pass = {.n = n, .parts = n >= PACKED_SHARED_FROM ? PACKED_PARTS : 1};
    for (pass.shift = 32; pass.shift < 32 + bits; pass.shift += 8) {
        pass.src = p, pass.dst = other;
        proa__parallel(pass.parts, 1, packed_count, &pass);
        if (!packed_places(&pass)) continue;
        proa__parallel(pass.parts, 1, packed_move, &pass);
        uint64_t *t = p;
        p = other, other = t;
    }
    return p;
}

/* Keys of n plain float32 numbers, flipped; returns the least. Vector code. */
static uint32_t f32_keys(const uint32_t *bits, int64_t n, uint32_t flip, uint32_t *keys)
{
    uint32_t least = UINT32_MAX;
#pragma omp simd reduction(min : least)
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = bits[i] == 0x80000000u ? 0 : bits[i];
        uint32_t key = u >> 31 ? ~u : u | 0x80000000u;
        key = ((u & 0x7fffffffu) > 0x7f800000u ? UINT32_MAX : key) ^ flip;
        keys[i] = key;
        least = key < least ? key : least;
    }
    return least;
}

/* True where the bits of a float32 are known from its key; they go to `to`. Zeros and NaN: several kinds. */
static inline bool f32_of_key(uint32_t key, uint32_t *to)
{
    *to = key >> 31 ? key & 0x7fffffffu : ~key;
    return key != 0x80000000u && key != UINT32_MAX;
}

static void fill_packed(uint64_t *p, int64_t n, proa_dtype dtype, const char *from, int64_t stride,
                        uint32_t flip)
{
    if (dtype != PROA_F32 || stride != (int64_t)sizeof(float)) {
        for (int64_t i = 0; i < n; i++)
            p[i] = (uint64_t)((uint32_t)key_of(dtype, from + i * stride) ^ flip) << 32 | (uint64_t)i;
        return;
    }
    for (int64_t i = 0; i < n; i += PACKED_BLOCK) {
        uint32_t keys[PACKED_BLOCK];
        int64_t m = n - i < PACKED_BLOCK ? n - i : PACKED_BLOCK;
        f32_keys((const uint32_t *)(const void *)from + i, m, flip, keys);
        for (int64_t k = 0; k < m; k++) p[i + k] = (uint64_t)keys[k] << 32 | (uint64_t)(i + k);
    }
}

#endif
