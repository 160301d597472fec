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
    int64_t live_bytes, peak_bytes, held_bytes; /* held: taken from the driver, in use or cached */
    int64_t driver_calls;                       /* mallocs of the driver */
} cuda_pool_stats;

/* NULL: out of host memory. */
cuda_pool *cuda_pool_new(const cuda_driver *driver, int device);
/* Returns all memory to the driver, blocks still in use included. */
void cuda_pool_free(cuda_pool *pool);
/* A block aligned to 512 bytes; NULL when neither the cache nor the driver has the memory, even after cached
 * segments were returned. `owner`, a string literal, names the holder in cuda_pool_report. */
void *cuda_pool_take(cuda_pool *pool, size_t bytes, const char *owner);
/* Frees block p; false if p is no block of this pool that is in use. */
bool cuda_pool_give(cuda_pool *pool, void *p);
/* Returns unused whole segments to the driver. */
void cuda_pool_trim(cuda_pool *pool);
cuda_pool_stats cuda_pool_get_stats(cuda_pool *pool, bool reset_peak);
/* Writes who holds what: "1536.0 MiB live: 1228.8 MiB in 3 of matmul, …; 204.8 MiB cached". */
void cuda_pool_report(cuda_pool *pool, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
