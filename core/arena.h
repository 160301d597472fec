/* Arena allocator: many small zeroed allocations, all freed at once. May use core only. */
#ifndef PROA_CORE_ARENA_H
#define PROA_CORE_ARENA_H

#include "core/internal.h"

typedef struct proa__arena {
    struct proa__arena_block *last;
} proa__arena;

/* Zeroed memory, valid until the arena is freed; NULL sets OUT_OF_MEMORY. */
void *proa__arena_alloc(proa__arena *a, size_t bytes);
/* Zeroed array of `count` items of `item` bytes; a size that overflows is an error, too. */
void *proa__arena_array(proa__arena *a, size_t count, size_t item);
char *proa__arena_text(proa__arena *a, const char *text);
char *proa__arena_format(proa__arena *a, const char *format, ...) PROA_PRINTF(2, 3);
void proa__arena_free(proa__arena *a);

#endif
