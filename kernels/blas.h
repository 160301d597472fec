/* Sets the number of threads that OpenBLAS uses, for the kernels that call it. May use core only. */
#ifndef PROA_KERNELS_BLAS_H
#define PROA_KERNELS_BLAS_H

#include <cblas.h>
#include <openblas_config.h>

/* Makes OpenBLAS calls of this thread use n threads from now on. Returns the argument that restores the
 * former number. */
int proa__blas_threads(int n);

#endif
