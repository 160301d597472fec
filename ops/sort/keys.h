/* Sorting by keys: every real dtype is mapped to unsigned integers of the same order (−0 = 0, NaN last), and
 * (key, index) pairs are sorted stably. All dtypes share one code path, and the order does not depend on the
 * thread count. Kernel files only (static functions); may use core. */
#ifndef PROA_OPS_KEYS_H
#define PROA_OPS_KEYS_H

#include "core/half.h"
#include "core/internal.h"
#include "core/tensor.h"

typedef struct sort_pair {
    uint64_t key;
    int64_t place;
} sort_pair;

static inline uint64_t key_of_f32(float v)
{
    if (v != v) return UINT32_MAX;
    uint32_t u = proa__f32_bits(v == 0 ? 0.0f : v);
    return u >> 31 ? (uint32_t)~u : u | 0x80000000u;
}

static inline uint64_t key_of_f64(double v)
{
    uint64_t u;
    if (v != v) return UINT64_MAX;
    v = v == 0 ? 0.0 : v;
    memcpy(&u, &v, sizeof u);
    return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

/* The key of one stored element. */
static inline uint64_t key_of(proa_dtype dtype, const char *p)
{
    const void *v = p;
    switch (dtype) {
    case PROA_I8: return (uint8_t)(*(const uint8_t *)v ^ 0x80u);
    case PROA_I16: return (uint16_t)(*(const uint16_t *)v ^ 0x8000u);
    case PROA_I32: return *(const uint32_t *)v ^ 0x80000000u;
    case PROA_I64: return *(const uint64_t *)v ^ (uint64_t)1 << 63;
    case PROA_F16: return key_of_f32(proa__f16_to_f32(*(const uint16_t *)v));
    case PROA_BF16: return key_of_f32(proa__bf16_to_f32(*(const uint16_t *)v));
    case PROA_F32: return key_of_f32(*(const float *)v);
    case PROA_F64: return key_of_f64(*(const double *)v);
    default: return *(const uint8_t *)v;
    }
}

/* Number of bits in which keys of a dtype can differ. */
static inline int key_bits(proa_dtype dtype)
{
    size_t size = proa_dtype_size(dtype);
    return size == 8 ? 64 : size == 4 || dtype == PROA_F16 || dtype == PROA_BF16 ? 32 : (int)size * 8;
}

/* XOR mask that reverses the order of keys if `descending`, otherwise 0. */
static inline uint64_t flip_of(proa_dtype dtype, bool descending)
{
    if (!descending) return 0;
    return key_bits(dtype) == 64 ? UINT64_MAX : ((uint64_t)1 << key_bits(dtype)) - 1;
}

/* Fills n (key, index) pairs from elements `stride` bytes apart; `descending` reverses the order of keys,
 * equal keys keep their order. */
static __attribute__((unused)) void fill_pairs(sort_pair *p, int64_t n, proa_dtype dtype, const char *from,
                                               int64_t stride, bool descending)
{
    uint64_t flip = flip_of(dtype, descending);
    for (int64_t i = 0; i < n; i++) p[i] = (sort_pair){key_of(dtype, from + i * stride) ^ flip, i};
}

enum { SORT_RUN = 24, SORT_RADIX_FROM = 512 };

static __attribute__((unused)) void merge_pairs(const sort_pair *a, int64_t na, const sort_pair *b,
                                                int64_t nb, sort_pair *to)
{
    while (na && nb) {
        if (b->key < a->key) *to++ = *b++, nb--;
        else *to++ = *a++, na--;
    }
    while (na--) *to++ = *a++;
    while (nb--) *to++ = *b++;
}

static __attribute__((unused)) void sort_by_merging(sort_pair *p, sort_pair *other, int64_t n)
{
    for (int64_t from = 0; from < n; from += SORT_RUN) {
        int64_t end = from + SORT_RUN < n ? from + SORT_RUN : n;
        for (int64_t i = from + 1; i < end; i++) {
            sort_pair v = p[i];
            int64_t j = i;
            for (; j > from && p[j - 1].key > v.key; j--) p[j] = p[j - 1];
            p[j] = v;
        }
    }
    sort_pair *src = p, *dst = other;
    for (int64_t run = SORT_RUN; run < n; run *= 2) {
        for (int64_t from = 0; from < n; from += 2 * run) {
            int64_t mid = from + run < n ? from + run : n, end = from + 2 * run < n ? from + 2 * run : n;
            merge_pairs(src + from, mid - from, src + mid, end - mid, dst + from);
        }
        sort_pair *t = src;
        src = dst, dst = t;
    }
    if (src != p) memcpy(p, src, (size_t)n * sizeof *p);
}

/* Sorts p by key, stably; `other` has space for n pairs. A pass over a byte that is equal in all keys is
 * skipped. */
static __attribute__((unused)) void sort_pairs(sort_pair *p, sort_pair *other, int64_t n, int bits)
{
    if (n < SORT_RADIX_FROM) {
        sort_by_merging(p, other, n);
        return;
    }
    sort_pair *src = p, *dst = other;
    for (int shift = 0; shift < bits; shift += 8) {
        int64_t at[256] = {0}, sum = 0;
        for (int64_t i = 0; i < n; i++) at[src[i].key >> shift & 255]++;
        if (at[src[0].key >> shift & 255] == n) continue;
        for (int d = 0; d < 256; d++) {
            int64_t here = at[d];
            at[d] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < n; i++) dst[at[src[i].key >> shift & 255]++] = src[i];
        sort_pair *t = src;
        src = dst, dst = t;
    }
    if (src != p) memcpy(p, src, (size_t)n * sizeof *p);
}

#endif
