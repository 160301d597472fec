/* Measures the bandwidth of a hand-written triad, to = x + 3 y, over arrays larger than the caches, with
 * plain and with non-temporal stores, one part a thread. C library and OpenMP only. */
#ifndef PROA_BENCHMARKS_TRIAD_H
#define PROA_BENCHMARKS_TRIAD_H

#include "timing.h"

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#define TRIAD_TARGET __attribute__((target("avx")))
#else
#define TRIAD_TARGET
#endif

static void triad_plain(float *restrict to, const float *restrict x, const float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = x[i] + 3 * y[i];
}

/* to = x + 3 y by non-temporal stores; n is a multiple of 16, `to` is 64-byte aligned. */
TRIAD_TARGET static void triad_streamed(float *to, const float *x, const float *y, int64_t n)
{
#if defined(__x86_64__)
    __m256 three = _mm256_set1_ps(3);
    for (int64_t i = 0; i < n; i += 8)
        _mm256_stream_ps(to + i,
                         _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_mul_ps(three, _mm256_loadu_ps(y + i))));
    _mm_sfence();
#else
    triad_plain(to, x, y, n);
#endif
}

static double triad_seconds(float *to, const float *x, const float *y, int64_t n, int streamed)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx")) streamed = 0;
#endif
    double start = now();
#if defined(_OPENMP)
#pragma omp parallel
    {
        int64_t part = omp_get_thread_num(), parts = omp_get_num_threads(), lines = n / 16;
        int64_t from = lines * part / parts * 16, until = lines * (part + 1) / parts * 16;
        if (streamed) triad_streamed(to + from, x + from, y + from, until - from);
        else triad_plain(to + from, x + from, y + from, until - from);
    }
#else
    if (streamed) triad_streamed(to, x, y, n);
    else triad_plain(to, x, y, n);
#endif
    opaque(to);
    return now() - start;
}

#endif
