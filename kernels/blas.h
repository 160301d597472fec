/* Sets the number of threads that OpenBLAS uses, for the kernels that call it. May use core only. */
#ifndef PROA_KERNELS_BLAS_H
#define PROA_KERNELS_BLAS_H

#include <cblas.h>
#include <openblas_config.h>

/* Sets the number of threads of this thread's OpenBLAS calls. Returns the argument that restores the former
 * setting. */
int proa__blas_threads(int n);
/* Readies OpenBLAS's packing buffers for n threads that call it at once. */
void proa__blas_buffers(int n);

#endif
