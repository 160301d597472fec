/* Remembers, per thread, which kernel took a call and what it prepared: bounded, for eager calls. */
#ifndef PROA_CORE_KERNEL_CACHE_H
#define PROA_CORE_KERNEL_CACHE_H

#include "core/internal.h"

/* The kernel and state for this call; *cached says that the cache owns the state (else the caller
 * releases it after the run). */
proa_status proa__kernel_cache_get(const proa_op *op, const void *args, const proa_kernel **kernel,
                                   void **state, bool *cached);
/* The number of the kernel selection under way on this thread, 0 outside one: what a prepare computes from
 * the call alone holds for the others that are asked in the same selection. */
uint64_t proa__selection(void);
/* Releases this thread's entries: at thread exit, and when flags that kernels depend on change. */
void proa__kernel_cache_clear(void);

#endif
