/* Strided copies between tensors of one dtype, on any device, for the run door, views and copying ops; and
 * copies by non-temporal stores. May use proa/device.h. */
#ifndef PROA_CORE_COPY_H
#define PROA_CORE_COPY_H

#include "core/tensor.h"

#include <proa/device.h>

#include <stdatomic.h>

/* Copies every element of src to the same index of dst. Shapes and dtypes are equal, strides are any; the
 * memory does not overlap, unless dst and src are exactly the same elements. */
proa_status proa__copy(proa_tensor *dst, const proa_tensor *src);
/* Fills c with the copy of src to dst, for a device: shape and byte strides, with contiguous dims merged. */
void proa__copy_describe(proa_strided_copy *c, const proa_tensor *dst, const proa_tensor *src);
/* Size in bytes from which outputs may be written by non-temporal stores, since caches would evict them
 * before they are read again (FLAGS_nontemporal_bytes, or a quarter of the processor's shared cache). */
extern atomic_llong proa__nontemporal_from;
static inline int64_t proa__nontemporal_bytes(void)
{
    return atomic_load_explicit(&proa__nontemporal_from, memory_order_relaxed);
}
/* True if they pay off for an output of `bytes` in an op that reads and writes `all` bytes: while all of
 * these fit the shared cache, ordinary stores are faster, and what reads the output next finds it there. */
static inline bool proa__nontemporal_pays(int64_t bytes, int64_t all)
{
    int64_t least = proa__nontemporal_bytes();
    return bytes >= least && all / 4 >= least;
}
/* memcpy by non-temporal stores of whole cache lines; proa__copy_nontemporal_end must follow before another
 * thread reads. */
void proa__copy_nontemporal(char *to, const char *from, int64_t n);
void proa__copy_nontemporal_end(void);
/* memcpy. The C library's takes thirteen times as long on some processors (AMD's Zen 3 and 4) for 2 KiB or
 * more whose destination is less than a cache line ahead of the source, modulo the size of a page: it then
 * copies by a string instruction. */
void proa__copy_bytes_ahead(char *to, const char *from, size_t n);
static inline void proa__copy_bytes(char *restrict to, const char *restrict from, size_t n)
{
    if (n >= 2048 && (((uintptr_t)to - (uintptr_t)from) & 4095) - 1 < 63) proa__copy_bytes_ahead(to, from, n);
    else memcpy(to, from, n);
}
/* t itself if contiguous, else a new contiguous copy. */
proa_tensor *proa__contiguous(proa_tensor *t);

#endif
