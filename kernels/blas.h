/* Number of threads that OpenBLAS takes, for the kernels that call it. May use core only. */
#ifndef PROA_KERNELS_BLAS_H
#define PROA_KERNELS_BLAS_H

#include <cblas.h>
#include <openblas_config.h>
#if PROA_HAVE_OPENMP
#include <omp.h>
#endif

/* This thread's calls take n threads from here on. Returns what to give back afterwards: OpenBLAS goes by
 * OpenMP's number, as proa_threads may. */
static inline int proa__blas_threads(int n)
{
#if PROA_HAVE_OPENMP
    int before = omp_get_max_threads();
    if (before != n) omp_set_num_threads(n);
    return before;
#else
    int before = openblas_get_num_threads();
    if (before != n) openblas_set_num_threads(n);
    return before;
#endif
}

#endif
