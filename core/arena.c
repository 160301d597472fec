/* Arena allocator: hands out memory from blocks made by proa__alloc, front to back, and frees all blocks
 * together. May use core only. */
#include "core/arena.h"

#include <stdarg.h>
#include <stdio.h>

enum { BLOCK = 16384, ALIGN = 16 };

struct proa__arena_block {
    struct proa__arena_block *before;
    size_t used, capacity;
    _Alignas(ALIGN) char data[];
};

void *proa__arena_alloc(proa__arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        proa_fail(PROA_ERR_OVERFLOW, "a block of %zu bytes is too large", bytes);
        return NULL;
    }
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct proa__arena_block *b = a->last;
    if (!b || b->capacity - b->used < bytes) {
        size_t capacity = bytes > BLOCK / 4 ? bytes : BLOCK;
        b = proa__alloc(sizeof *b + capacity);
        if (!b) return NULL;
        b->used = 0;
        b->capacity = capacity;
        /* a block for one large allocation goes behind `last`, whose free space stays in use */
        if (a->last && capacity == bytes && capacity != BLOCK) {
            b->before = a->last->before;
            a->last->before = b;
        } else {
            b->before = a->last;
            a->last = b;
        }
    }
    void *p = b->data + b->used;
    b->used += bytes;
    memset(p, 0, bytes);
    return p;
}

void *proa__arena_array(proa__arena *a, size_t count, size_t item)
{
    size_t bytes;
    if (!proa__mul_size(count, item, &bytes)) return NULL;
    return proa__arena_alloc(a, bytes ? bytes : 1);
}

char *proa__arena_text(proa__arena *a, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = proa__arena_alloc(a, n);
    if (copy) memcpy(copy, text, n);
    return copy;
}

char *proa__arena_format(proa__arena *a, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = n < 0 ? NULL : proa__arena_alloc(a, (size_t)n + 1);
    if (text) vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void proa__arena_free(proa__arena *a)
{
    while (a->last) {
        struct proa__arena_block *b = a->last;
        a->last = b->before;
        proa__free(b);
    }
}
