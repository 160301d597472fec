/* Conversions of float16 and bfloat16 to and from float32: round to nearest even, NaN stays NaN (made quiet,
 * but for bfloat16 to float32, which only shifts bits). Branch-free, so that loops over them vectorize;
 * arrays of float16 use F16C instructions where the file is compiled for them. Needs no other header. */
#ifndef PROA_CORE_HALF_H
#define PROA_CORE_HALF_H

#include <stdint.h>
#include <string.h>
#if defined(__F16C__) && defined(__AVX__)
#include <immintrin.h>
#endif

static inline uint32_t proa__f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float proa__f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float proa__bf16_to_f32(uint16_t h) { return proa__f32_from_bits((uint32_t)h << 16); }

static inline uint16_t proa__f32_to_bf16(float f)
{
    uint32_t u = proa__f32_bits(f);
    uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    uint32_t quiet = (u >> 16) | 0x40u;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline float proa__f16_to_f32(uint16_t h)
{
    uint32_t magnitude = h & 0x7fffu, sign = ((uint32_t)h & 0x8000u) << 16;
    /* float16's exponent bias is 15, float32's 127; all-ones exponents move by twice the difference. */
    uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00u ? 224u << 23 : 112u << 23);
    uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    uint32_t tiny = proa__f32_bits((float)(int32_t)magnitude * 0x1p-24f); /* multiples of 2^-24 */
    return proa__f32_from_bits(sign | (magnitude < 0x400u ? tiny : normal | quiet));
}

static inline uint16_t proa__f32_to_f16(float f)
{
    uint32_t u = proa__f32_bits(f), magnitude = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
    /* Normal: rebias, round the 13 bits that go; a carry runs into the exponent and up to infinity. */
    uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    /* Below 2^-14: 0.5 has an ulp of 2^-24, so adding it rounds to float16's subnormal grid. */
    uint32_t tiny = proa__f32_bits(proa__f32_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x1ffu) : 0x7c00u;
    uint32_t finite = magnitude < 0x38800000u ? tiny : normal;
    return (uint16_t)(sign | (magnitude >= 0x47800000u ? special : finite));
}

/* ---- conversion of arrays ----------------------------------------------------------------- */

/* Four conversions a turn: one alone is a loop of 25 bytes, which took 1.2 times as long where it crossed a
 * cache line. */
static inline void proa__f16_to_f32_row(const uint16_t *from, float *to, int64_t n)
{
    int64_t i = 0;
#if defined(__F16C__) && defined(__AVX__)
    _Pragma("GCC unroll 4") for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
#endif
    for (; i < n; i++) to[i] = proa__f16_to_f32(from[i]);
}

static inline void proa__f32_to_f16_row(const float *from, uint16_t *to, int64_t n)
{
    int64_t i = 0;
#if defined(__F16C__) && defined(__AVX__)
    _Pragma("GCC unroll 4") for (; i + 8 <= n; i += 8) _mm_storeu_si128(
        (__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) to[i] = proa__f32_to_f16(from[i]);
}

static inline void proa__bf16_to_f32_row(const uint16_t *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = proa__bf16_to_f32(from[i]);
}

static inline void proa__f32_to_bf16_row(const float *from, uint16_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = proa__f32_to_bf16(from[i]);
}

#endif
