/* Number of threads that OpenBLAS takes, for the kernels that call it. May use core only. */
#ifndef PROA_KERNELS_BLAS_H
#define PROA_KERNELS_BLAS_H

#include <cblas.h>
#include <openblas_config.h>

/* This thread's calls take n threads from here on. Returns what to give back afterwards. */
int proa__blas_threads(int n);

#endif
