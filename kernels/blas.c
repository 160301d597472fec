/* Runs OpenBLAS's OpenMP regions on Proa's worker teams and sets their thread count. Empty without OpenBLAS.
 * May use core only. */
#if PROA_HAVE_OPENBLAS
#include "kernels/blas.h"

#include "core/openmp.h"

static bool served;

__attribute__((constructor)) static void serve(void)
{
    served = proa__openmp_serve((void (*)(void))cblas_sgemm);
}

/* An OpenBLAS with a thread pool of its own (a build other than Debian's openmp) has one thread count for all
 * callers. */
int proa__blas_threads(int n)
{
    if (served) {
        if (n > 1) n = proa__openmp_reserve(n);
        return proa__openmp_limit(n);
    }
    int before = openblas_get_num_threads();
    if (before != n) openblas_set_num_threads(n);
    return before;
}
#endif
