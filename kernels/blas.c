/* Runs OpenBLAS's OpenMP regions on Proa's worker teams, sets their thread count, and readies its buffers.
 * Empty without OpenBLAS. May use core only. */
#if PROA_HAVE_OPENBLAS
#include "kernels/blas.h"

#include "core/openmp.h"

#include <stdatomic.h>

static bool served;

__attribute__((constructor)) static void serve(void)
{
    served = proa__openmp_serve((void (*)(void))cblas_sgemm);
}

/* Functions that OpenBLAS exports and no header declares: the buffers into which it packs operands. One that
 * is given back is the next one taken. */
void *blas_memory_alloc(int place) __attribute__((weak));
void blas_memory_free(void *buffer) __attribute__((weak));

/* BUFFER_BYTES: of a buffer, up to the first panels of the second operand, which lie behind the largest block
 * of the first, 1 MiB of float64. */
enum { BUFFER_BYTES = 5 << 18, PAGE = 4096, MAX_BUFFERS = 64 };

/* OpenBLAS's kernels prefetch beyond what they have packed. A prefetch from a page that was never touched
 * walks the page tables each time: a product of up to 320 columns took 3.5 times as long until a larger one
 * had come (OpenBLAS 0.3.21, Zen 1). */
void proa__blas_buffers(int n)
{
    static atomic_int ready; /* buffers that are touched, or that a thread is touching */
    if (n > MAX_BUFFERS) n = MAX_BUFFERS;
    int before = atomic_load_explicit(&ready, memory_order_relaxed);
    if (before >= n || !blas_memory_alloc || !blas_memory_free) return;
    if (!atomic_compare_exchange_strong(&ready, &before, n)) return; /* another thread does it */
    volatile char *buffers[MAX_BUFFERS];
    for (int i = 0; i < n; i++) {
        buffers[i] = blas_memory_alloc(0);
        for (size_t at = 0; buffers[i] && at < BUFFER_BYTES; at += PAGE) buffers[i][at] = 0;
    }
    for (int i = 0; i < n; i++)
        if (buffers[i]) blas_memory_free((void *)(uintptr_t)buffers[i]);
}

/* An OpenBLAS with a thread pool of its own (a build other than Debian's openmp) has one thread count for all
 * callers. */
int proa__blas_threads(int n)
{
    if (served) {
        if (n > 1) n = proa__openmp_reserve(n);
        proa__blas_buffers(n);
        return proa__openmp_limit(n);
    }
    int before = openblas_get_num_threads();
    if (before != n) openblas_set_num_threads(n);
    return before;
}
#endif
