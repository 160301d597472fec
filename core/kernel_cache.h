/* Caches, per thread, which kernel an eager call selected and the state that the kernel prepared, for a
 * bounded number of calls. May use core only. */
#ifndef PROA_CORE_KERNEL_CACHE_H
#define PROA_CORE_KERNEL_CACHE_H

#include "core/internal.h"

/* Selects the kernel and state for this call. *cached: the cache owns the state; otherwise the caller
 * releases it after the run. */
proa_status proa__kernel_cache_get(const proa_op *op, const void *args, const proa_kernel **kernel,
                                   void **state, bool *cached);
/* The number of the kernel selection under way on this thread, 0 outside one. A prepare function may cache
 * under this number what depends on the call alone, for other kernels that are tried in the same
 * selection. */
uint64_t proa__selection(void);
/* Releases this thread's entries at once, for tests; a thread's end releases them by itself, and flags that
 * kernels depend on are part of the key. */
void proa__kernel_cache_clear(void);

#endif
