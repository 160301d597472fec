/* Non-temporal stores for outputs that caches would evict before they are read again: from
 * FLAGS_nontemporal_bytes on, by default a quarter of the third-level cache. A kernel computes a tile into a
 * buffer, streams it out with these functions, and prefetches the next row. For kernel files; may use
 * core. */
#ifndef PROA_KERNELS_NONTEMPORAL_H
#define PROA_KERNELS_NONTEMPORAL_H

#include "core/copy.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* Bytes of a tile. Short alternating phases of prefetching, computing and storing keep the memory bus
 * busy. */
enum { NONTEMPORAL_TILE = 512 };

/* True if non-temporal stores pay off for an output of `bytes` bytes in rows of `row_bytes`, made of as large
 * an input. */
static inline __attribute__((unused)) bool nontemporal_pays(int64_t bytes, int64_t row_bytes)
{
    return proa__nontemporal_pays(bytes, 2 * bytes) && row_bytes >= 256;
}

/* proa__copy_nontemporal for kernels; whole cache lines at aligned addresses are faster. */
static inline __attribute__((unused)) void nontemporal_copy(void *to, const void *from, int64_t bytes)
{
#if defined(__AVX512F__)
    if ((((uintptr_t)to | (uintptr_t)bytes) & 63) == 0) {
        char *d = to;
        const char *s = from;
        for (int64_t i = 0; i < bytes; i += 64)
            _mm512_stream_si512((void *)(d + i), _mm512_loadu_si512(s + i));
        return;
    }
#endif
    proa__copy_nontemporal(to, from, bytes);
}

/* Zeros; whole cache lines at aligned addresses get non-temporal stores where there is AVX-512. */
static inline __attribute__((unused)) void nontemporal_zero(void *to, int64_t bytes)
{
#if defined(__AVX512F__)
    if ((((uintptr_t)to | (uintptr_t)bytes) & 63) == 0) {
        for (int64_t i = 0; i < bytes; i += 64)
            _mm512_stream_si512((void *)((char *)to + i), _mm512_setzero_si512());
        return;
    }
#endif
    memset(to, 0, (size_t)bytes);
}

/* Number of elements in the next tile: `step`, but the first tile only reaches to the start of a cache
 * line. */
static inline __attribute__((unused)) int64_t nontemporal_length(const void *to, int64_t left, int64_t step,
                                                                 int64_t item)
{
    int64_t head = (int64_t)(-(uintptr_t)to & 63) / item, n = head ? head : step;
    return n < left ? n : left;
}

/* nontemporal_copy that also prefetches as many bytes at `next` (NULL: none). */
static inline __attribute__((unused)) void nontemporal_copy_prefetching(void *to, const void *from,
                                                                        int64_t bytes, const void *next)
{
    for (int64_t i = 0, n; i < bytes; i += n) {
        n = bytes - i < NONTEMPORAL_TILE ? bytes - i : NONTEMPORAL_TILE;
        for (int64_t k = 0; next && k < n; k += 64) __builtin_prefetch((const char *)next + i + k, 0, 0);
        nontemporal_copy((char *)to + i, (const char *)from + i, n);
    }
}

/* Prefetches `bytes` bytes at `distance` bytes behind p, where the hardware prefetcher, which stops at the
 * end of a page, does not reach. */
static inline __attribute__((unused)) void nontemporal_prefetch(const void *p, int64_t distance,
                                                                int64_t bytes)
{
    const char *at = (const char *)((uintptr_t)p + (uintptr_t)distance);
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i);
}

#endif
