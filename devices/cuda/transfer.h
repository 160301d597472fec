/* Copies batches to a GPU ahead of their use (transfer.c). The caller of each function holds the lock of the
 * GPU's context. C. */
#ifndef PROA_CUDA_TRANSFER_H
#define PROA_CUDA_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cuda_context cuda_context;
typedef struct cuda_transfers cuda_transfers;

/* Device memory into which the bytes are being copied asynchronously; `from` may be overwritten. NULL without
 * an error: not possible now, use an ordinary copy. */
void *cuda_transfer_send(cuda_context *c, const void *from, size_t bytes);
/* Makes work that is queued from now on wait for the copy; 0 or the driver's code. */
int cuda_transfer_arrive(cuda_context *c, const void *at);
/* Frees memory that cuda_transfer_send returned; false: `at` is no such memory. */
bool cuda_transfer_give(cuda_context *c, const void *at);
/* Returns cached pieces, which no caller owns, to the pool and the driver. */
void cuda_transfers_trim(cuda_context *c);
/* Number of copies that were made ahead so far. */
int64_t cuda_transfer_count(const cuda_context *c);

#endif
