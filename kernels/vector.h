/* Vectors as wide as a register of the CPU level that a kernel file is compiled for. Compilers keep values of
 * wider vector types in memory. */
#ifndef PROA_KERNELS_VECTOR_H
#define PROA_KERNELS_VECTOR_H

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef float vector_float __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double vector_double __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* The number at `at` in all lanes: as a vector of its own, which VECTOR_KEEP can keep. */
static inline __attribute__((always_inline)) vector_float vector_splat_float(const float *at)
{
#if defined(__AVX512F__)
    return (vector_float)_mm512_set1_ps(*at);
#elif defined(__AVX2__)
    return (vector_float)_mm256_broadcast_ss(at);
#else
    return (vector_float){*at, *at, *at, *at};
#endif
}
static inline __attribute__((always_inline)) vector_double vector_splat_double(const double *at)
{
#if defined(__AVX512F__)
    return (vector_double)_mm512_set1_pd(*at);
#elif defined(__AVX2__)
    return (vector_double)_mm256_broadcast_sd(at);
#else
    return (vector_double){*at, *at};
#endif
}

/* Keeps v in its register up to here. Compilers else let the last multiply-add of a loop's body write to an
 * operand that is dead by then, and copy sums between registers in every iteration: products with five rows
 * a tile took 1.17 times as long on AVX2. */
#if defined(__AVX512F__)
#define VECTOR_KEEP(v) __asm__ volatile("" : : "v"(v))
#elif defined(__AVX2__)
#define VECTOR_KEEP(v) __asm__ volatile("" : : "x"(v))
#else
#define VECTOR_KEEP(v) (void)(v)
#endif

#endif
