/* Conversions of 128-bit Philox blocks to random numbers, shared by CPU and GPU kernels: a block gives four
 * floats or two doubles, and a Poisson number has 16 blocks; float16 and bfloat16 are rounded floats. May use
 * core/philox.h. */
#ifndef PROA_OPS_RANDOM_FORMULAS_H
#define PROA_OPS_RANDOM_FORMULAS_H

#include "core/philox.h"

#include <proa/op.h>

#include <math.h>

typedef struct random_numbers {
    proa_rng_state at;
    double a, b; /* bounds, or mean and deviation, or rate */
} random_numbers;

PROA__BOTH float random_uniform_float(random_numbers j, uint32_t bits)
{
    float low = (float)j.a, high = (float)j.b, span = high - low;
    /* in double the product is exact: the same bits with and without fma */
    float v = (float)((double)low + (double)span * (double)proa__uniform_f32(bits));
    return v >= high && high > low ? low : v; /* rounding may reach the open end */
}

PROA__BOTH void random_uniform_floats(random_numbers j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + block);
    for (int i = 0; i < 4; i++) four[i] = random_uniform_float(j, r.v[i]);
}

PROA__BOTH void random_uniform_doubles(random_numbers j, uint64_t block, double *two)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + block);
    for (int i = 0; i < 2; i++) {
        double v = fma(j.b - j.a, proa__uniform_f64(r.v[2 * i], r.v[2 * i + 1]), j.a);
        two[i] = v >= j.b && j.b > j.a ? j.a : v;
    }
}

PROA__BOTH void random_normal_floats(random_numbers j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + block);
    proa__normal_f32(r.v[0], r.v[1], &four[0], &four[1]);
    proa__normal_f32(r.v[2], r.v[3], &four[2], &four[3]);
    for (int i = 0; i < 4; i++) four[i] = (float)j.a + (float)j.b * four[i];
}

PROA__BOTH void random_normal_doubles(random_numbers j, uint64_t block, double *two)
{
    proa__normal_f64(proa__philox(j.at.seed, j.at.offset + block), &two[0], &two[1]);
    for (int i = 0; i < 2; i++) two[i] = j.a + j.b * two[i];
}

/* Φ⁻¹ by Halley's iteration on erfc from a logistic first guess: u in (0, 1). */
PROA__BOTH double random_normal_quantile(double u)
{
    double x = log(u / (1 - u)) / 1.702;
    for (int i = 0; i < 6; i++) {
        double miss = 0.5 * erfc(-x * 0.70710678118654752440) - u;
        double step = miss * 2.50662827463100050242 * exp(0.5 * x * x);
        x -= step / (1 + 0.5 * x * step);
    }
    return x;
}

/* Φ(−2) and Φ(2) bound the uniform number. */
PROA__BOTH double random_truncated(random_numbers j, double u)
{
    const double low = 0.02275013194817920720;
    double x = random_normal_quantile(low + u * (1 - 2 * low));
    x = x < -2 ? -2 : x > 2 ? 2 : x;
    return j.a + j.b * x;
}

PROA__BOTH void random_truncated_floats(random_numbers j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + block);
    for (int i = 0; i < 4; i++) four[i] = (float)random_truncated(j, ((double)r.v[i] + 0.5) * 0x1p-32);
}

PROA__BOTH void random_truncated_doubles(random_numbers j, uint64_t block, double *two)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + block);
    for (int i = 0; i < 2; i++) two[i] = random_truncated(j, proa__uniform_f64(r.v[2 * i], r.v[2 * i + 1]));
}

PROA__BOTH void random_exponential_floats(random_numbers j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + block);
    for (int i = 0; i < 4; i++) four[i] = -logf(1 - proa__uniform_f32(r.v[i])) / (float)j.a;
}

PROA__BOTH void random_exponential_doubles(random_numbers j, uint64_t block, double *two)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + block);
    for (int i = 0; i < 2; i++) two[i] = -log1p(-proa__uniform_f64(r.v[2 * i], r.v[2 * i + 1])) / j.a;
}

/* ---- integers ---- */

/* 64 bits an element: the product's high half is uniform on [0, span) up to 2^-64 · span. */
PROA__BOTH uint64_t random_below(uint64_t bits, uint64_t span)
{
    uint64_t high = (bits >> 32) * (span >> 32), mid1 = (bits >> 32) * (span & 0xffffffffu);
    uint64_t mid2 = (bits & 0xffffffffu) * (span >> 32), low = (bits & 0xffffffffu) * (span & 0xffffffffu);
    uint64_t carry = ((low >> 32) + (mid1 & 0xffffffffu) + (mid2 & 0xffffffffu)) >> 32;
    return high + (mid1 >> 32) + (mid2 >> 32) + carry;
}

/* The 64 bits of element i. */
PROA__BOTH uint64_t random_bits64(random_numbers j, uint64_t i)
{
    proa__philox_block r = proa__philox(j.at.seed, j.at.offset + i / 2);
    return (uint64_t)r.v[i % 2 * 2] << 32 | r.v[i % 2 * 2 + 1];
}

/* Uniform number i of the stream from `at` on, in [0, 1): two a block. */
PROA__BOTH double random_uniform_at(proa_rng_state at, uint64_t i)
{
    proa__philox_block r = proa__philox(at.seed, at.offset + i / 2);
    return proa__uniform_f64(r.v[i % 2 * 2], r.v[i % 2 * 2 + 1]);
}

/* ---- poisson ------------------------------------------------------------------------------ */

/* Philox blocks reserved for each element: 32 uniform numbers, for 16 tries, of which about one in ten is
 * rejected. */
enum { RANDOM_POISSON_BLOCKS = 16 };

/* Small means: the first count whose distribution function exceeds u. */
PROA__BOTH double random_poisson_small(double mean, double u)
{
    double p = exp(-mean), sum = p, k = 0;
    while (u >= sum && k < 200) {
        k += 1;
        p *= mean / k;
        sum += p;
    }
    return k;
}

/* Larger means: transformed rejection with squeeze (Hörmann, 1993: PTRS). */
PROA__BOTH double random_poisson_large(double mean, proa_rng_state at, uint64_t first)
{
    double root = sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2), log_mean = log(mean);
    for (uint64_t i = 0; i < RANDOM_POISSON_BLOCKS; i++) {
        double u = random_uniform_at(at, first + 2 * i) - 0.5, v = random_uniform_at(at, first + 2 * i + 1);
        double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= squeeze) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v * inverse / (a / (us * us) + b)) <= k * log_mean - mean - lgamma(k + 1)) return k;
    }
    return floor(mean);
}

/* A number of the Poisson distribution of this mean, for element i. */
PROA__BOTH double random_poisson(proa_rng_state at, int64_t i, double mean)
{
    uint64_t own = (uint64_t)i * 2 * RANDOM_POISSON_BLOCKS;
    return mean < 10 ? random_poisson_small(mean, random_uniform_at(at, own))
                     : random_poisson_large(mean, at, own);
}

#endif
