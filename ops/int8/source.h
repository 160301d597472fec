/* Remembers the tensor (storage, address and version) from which a kernel has packed a constant, and tells
 * whether the packed form is still that tensor's. May use core; for kernel files. */
#ifndef PROA_OPS_INT8_SOURCE_H
#define PROA_OPS_INT8_SOURCE_H

#include "core/internal.h"
#include "core/tensor.h"

typedef struct packed_source {
    proa_storage *from; /* retained, so that no other storage gets its address */
    const char *data;
    uint32_t version;
} packed_source;

static inline bool packed_is_of(const packed_source *s, const proa_tensor *t)
{
    return s->from == t->storage && s->data == t->data && s->version == proa__version(t);
}

static inline void packed_forget(packed_source *s)
{
    if (s->from) proa__storage_release(s->from);
    s->from = NULL;
    s->data = NULL;
}

static inline void packed_note(packed_source *s, const proa_tensor *t)
{
    packed_forget(s);
    *s = (packed_source){t->storage, t->data, proa__version(t)};
    if (s->from) atomic_fetch_add_explicit(&s->from->refs, 1, memory_order_relaxed);
}

#endif
