/* Philox4x32-10, the counter-based generator (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
 * as 1, 2, 3", 2011), and the numbers made from its bits. Inline, for C, C++ and CUDA alike. */
#ifndef PROA_CORE_PHILOX_H
#define PROA_CORE_PHILOX_H

#include <math.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define PROA__BOTH static __host__ __device__ __forceinline__
#else
#define PROA__BOTH static inline
#endif

typedef struct proa__philox_block {
    uint32_t v[4];
} proa__philox_block;

/* One round: two 32x32-bit products, their halves crossed over. */
PROA__BOTH proa__philox_block proa__philox_round(proa__philox_block c, uint32_t k0, uint32_t k1)
{
    uint64_t a = (uint64_t)0xD2511F53u * c.v[0], b = (uint64_t)0xCD9E8D57u * c.v[2];
    proa__philox_block r;
    r.v[0] = (uint32_t)(b >> 32) ^ c.v[1] ^ k0;
    r.v[1] = (uint32_t)b;
    r.v[2] = (uint32_t)(a >> 32) ^ c.v[3] ^ k1;
    r.v[3] = (uint32_t)a;
    return r;
}

PROA__BOTH proa__philox_block proa__philox_raw(proa__philox_block counter, uint32_t k0, uint32_t k1)
{
    for (int i = 0; i < 10; i++) {
        counter = proa__philox_round(counter, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return counter;
}

/* The 128 random bits of block `index` of the stream with this seed. */
PROA__BOTH proa__philox_block proa__philox(uint64_t seed, uint64_t index)
{
    proa__philox_block counter = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
    return proa__philox_raw(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* Uniform in [0, 1): multiples of 2^-24, all equally likely. */
PROA__BOTH float proa__uniform_f32(uint32_t bits) { return (float)(int32_t)(bits >> 8) * 0x1p-24f; }

/* Uniform in [0, 1): multiples of 2^-53, all equally likely, from two words. */
PROA__BOTH double proa__uniform_f64(uint32_t high, uint32_t low)
{
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;
    return (double)bits * 0x1p-53;
}

/* Two standard normals from two words (Box and Muller, 1958). The logarithm's argument is in (0, 1]. */
PROA__BOTH void proa__normal_f32(uint32_t a, uint32_t b, float *x, float *y)
{
    float u = ((float)(int32_t)(a >> 8) + 1.0f) * 0x1p-24f;
    float angle = 6.28318530717958647692f * proa__uniform_f32(b);
    float radius = sqrtf(-2.0f * logf(u));
    *x = radius * cosf(angle);
    *y = radius * sinf(angle);
}

/* Two standard normals from four words, in double. */
PROA__BOTH void proa__normal_f64(proa__philox_block r, double *x, double *y)
{
    double u = 1.0 - proa__uniform_f64(r.v[0], r.v[1]);
    double angle = 6.28318530717958647692 * proa__uniform_f64(r.v[2], r.v[3]);
    double radius = sqrt(-2.0 * log(u));
    *x = radius * cos(angle);
    *y = radius * sin(angle);
}

#endif
