/* Caching allocator of one device. A freed block is reused at once, without waiting for the GPU: the new
 * owner queues its work behind that of the old one on the same stream. C. */
#ifndef PROA_CUDA_MEMORY_H
#define PROA_CUDA_MEMORY_H

#include "driver.h"

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_pool cuda_pool;

typedef struct cuda_pool_stats {
    int64_t live_bytes, peak_bytes, held_bytes; /* held: taken from the driver, live or not */
    int64_t driver_calls;                       /* mallocs of the driver */
} cuda_pool_stats;

/* NULL: no host memory. */
cuda_pool *cuda_pool_new(const cuda_driver *driver, int device);
/* Gives everything back; blocks that are live are gone, too. */
void cuda_pool_free(cuda_pool *pool);
/* 512-byte aligned; NULL when neither the cache nor the driver has it, even after the cache was given back.
 * `owner`, a literal, names who holds it in the report. */
void *cuda_pool_take(cuda_pool *pool, size_t bytes, const char *owner);
/* False: p is no live block of this pool. */
bool cuda_pool_give(cuda_pool *pool, void *p);
/* Gives whole segments that nobody uses back to the driver. */
void cuda_pool_trim(cuda_pool *pool);
cuda_pool_stats cuda_pool_get_stats(cuda_pool *pool, bool reset_peak);
/* "1.5 GiB live in 12 blocks: 1.2 GiB in 3 of matmul, …; 0.2 GiB cached": who holds what. */
void cuda_pool_report(cuda_pool *pool, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
