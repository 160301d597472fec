/* Sixteen random bits an element, for dropout masks: a 128-bit Philox block serves eight neighbors, so
 * element i's bits depend on the stream and i alone. May use core; for kernel files. */
#ifndef PROA_KERNELS_PHILOX16_H
#define PROA_KERNELS_PHILOX16_H

#include "kernels/simd_philox.h"
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

enum { PHILOX16_EACH = 8, PHILOX16_BLOCKS = 32, PHILOX16_GROUPS = 4 };

/* Number of Philox blocks that n elements use. */
static inline uint64_t philox16_blocks(int64_t n)
{
    return ((uint64_t)n + PHILOX16_EACH - 1) / PHILOX16_EACH;
}

/* An element is dropped if its 16 bits are less than this threshold: p · 65536, rounded. */
static inline uint32_t philox16_threshold(double p) { return (uint32_t)(p * 65536.0 + 0.5); }

#if defined(__AVX512BW__)
/* Round keys, in memory: a vector xor with a broadcast memory operand is cheaper than a broadcast from a
 * general-purpose register. */
typedef struct philox16_keys {
    uint64_t first[10], second[10];
} philox16_keys;

static inline void philox16_keys_of(proa_rng_state stream, philox16_keys *keys)
{
    uint32_t k0 = (uint32_t)stream.seed, k1 = (uint32_t)(stream.seed >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
        keys->first[round] = k0, keys->second[round] = k1;
}

/* Turns the words of eight blocks into a bit mask of 64 elements: 1 if the element is kept, first element in
 * the lowest bit. */
static inline uint64_t philox16_bits(__m512i w0, __m512i w1, __m512i w2, __m512i w3, __m512i threshold)
{
    __m512i low = _mm512_mask_shuffle_epi32(w0, 0xAAAA, w1, (_MM_PERM_ENUM)0xA0);
    __m512i high = _mm512_mask_shuffle_epi32(w2, 0xAAAA, w3, (_MM_PERM_ENUM)0xA0);
    uint64_t first = _mm512_cmpge_epu16_mask(_mm512_unpacklo_epi64(low, high), threshold);
    uint64_t second = _mm512_cmpge_epu16_mask(_mm512_unpackhi_epi64(low, high), threshold);
    return first | second << 32;
}

/* Keep masks of n groups of 64 elements, that is, of eight Philox blocks each, starting at `block`. Each
 * 64-bit lane holds one word in its low half, as the widening multiply needs it. Rounds depend on one
 * another, so PHILOX16_GROUPS groups are interleaved, which takes three quarters of the time. */
static inline __attribute__((always_inline)) void philox16_groups(const philox16_keys *keys, uint64_t block,
                                                                  __m512i threshold, const int n,
                                                                  uint64_t *keep)
{
    __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); /* block order that the unpacking at the end
                                                                * makes ascending */
    __m512i w0[PHILOX16_GROUPS], w1[PHILOX16_GROUPS], w2[PHILOX16_GROUPS], w3[PHILOX16_GROUPS];
    for (int g = 0; g < n; g++) {
        w0[g] = _mm512_add_epi64(_mm512_set1_epi64((long long)block + 8 * g), order);
        w1[g] = _mm512_srli_epi64(w0[g], 32);
        w2[g] = w3[g] = _mm512_setzero_si512();
    }
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        __m512i k0 = _mm512_set1_epi64((long long)keys->first[round]);
        __m512i k1 = _mm512_set1_epi64((long long)keys->second[round]);
#pragma GCC unroll 4
        for (int g = 0; g < n; g++) {
            __m512i a = _mm512_mul_epu32(w0[g], _mm512_set1_epi64(0xD2511F53));
            __m512i b = _mm512_mul_epu32(w2[g], _mm512_set1_epi64(0xCD9E8D57));
            w0[g] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(b, 32), w1[g], k0, 0x96);
            w2[g] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(a, 32), w3[g], k1, 0x96);
            w1[g] = b, w3[g] = a;
        }
    }
    for (int g = 0; g < n; g++) keep[g] = philox16_bits(w0[g], w1[g], w2[g], w3[g], threshold);
}

/* Broadcasts the threshold to all lanes; p = 1 does not fit into 16 bits, so callers handle it. */
static inline __m512i philox16_lanes(uint32_t threshold) { return _mm512_set1_epi16((short)threshold); }
#endif

/* keep[k] = 1 or 0 for elements [at, at + n) of the stream. Computes eight Philox blocks at a time by
 * AVX-512BW; elsewhere PHILOX16_BLOCKS at a time, in loops that the compiler vectorizes. */
static inline void philox16_keep(proa_rng_state stream, int64_t at, int64_t n, uint32_t threshold,
                                 uint8_t *keep)
{
    uint64_t block = (uint64_t)at / PHILOX16_EACH;
    int64_t skip = at % PHILOX16_EACH, done = 0;
#if defined(__AVX512BW__)
    philox16_keys keys;
    philox16_keys_of(stream, &keys);
    for (; done < n && threshold <= 0xffffu; block += 8, skip = 0) {
        uint8_t kept[64];
        uint64_t bits;
        philox16_groups(&keys, stream.offset + block, philox16_lanes(threshold), 1, &bits);
        _mm512_storeu_si512(kept, _mm512_maskz_set1_epi8(bits, 1));
        int64_t have = n - done < 64 - skip ? n - done : 64 - skip;
        memcpy(keep + done, kept + skip, (size_t)have);
        done += have;
    }
#endif
    while (done < n) {
        uint32_t word[4][PHILOX16_BLOCKS], low[PHILOX16_BLOCKS], high[PHILOX16_BLOCKS];
        uint8_t kept[PHILOX16_BLOCKS * PHILOX16_EACH];
        uint32_t *const words[4] = {word[0], word[1], word[2], word[3]};
        philox_lanes(stream, block, PHILOX16_BLOCKS, words);
        for (int i = 0; i < PHILOX16_BLOCKS; i++) { /* eight bytes a block; the lowest byte belongs to the
                                                     * first element */
            uint32_t pair[4];
            for (int v = 0; v < 4; v++)
                pair[v] = ((word[v][i] & 0xffffu) >= threshold) | (uint32_t)((word[v][i] >> 16) >= threshold)
                                                                      << 8;
            low[i] = pair[0] | pair[1] << 16;
            high[i] = pair[2] | pair[3] << 16;
        }
        for (int i = 0; i < PHILOX16_BLOCKS; i++) {
            uint32_t both[2] = {low[i], high[i]};
            memcpy(kept + i * PHILOX16_EACH, both, sizeof both);
        }
        int64_t have = PHILOX16_BLOCKS * PHILOX16_EACH - skip;
        if (have > n - done) have = n - done;
        memcpy(keep + done, kept + skip, (size_t)have);
        done += have;
        block += PHILOX16_BLOCKS;
        skip = 0;
    }
}

#endif
