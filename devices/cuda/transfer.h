/* Copies batches to a GPU ahead of their use (transfer.c). The caller of each function holds the lock of the
 * GPU's context. C. */
#ifndef PROA_CUDA_TRANSFER_H
#define PROA_CUDA_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cuda_context cuda_context;
typedef struct cuda_transfers cuda_transfers;

/* Memory of the GPU into which the bytes are on their way, `from` free to be overwritten; NULL without an
 * error: not now, they are to be copied the ordinary way. */
void *cuda_transfer_send(cuda_context *c, const void *from, size_t bytes);
/* Makes work that is queued from now on wait for the copy; 0 or the driver's code. */
int cuda_transfer_arrive(cuda_context *c, const void *at);
/* Lets it go; false: it is none of these. */
bool cuda_transfer_give(cuda_context *c, const void *at);
/* Gives back what nobody owns. */
void cuda_transfers_trim(cuda_context *c);
/* Number of copies that were made ahead so far. */
int64_t cuda_transfer_count(const cuda_context *c);

#endif
