/* The width of a vector register on the CPU level that a kernel file is compiled for. Compilers keep values
 * of wider vector types in memory. */
#ifndef PROA_KERNELS_VECTOR_H
#define PROA_KERNELS_VECTOR_H

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#endif
