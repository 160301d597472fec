/* Deferred elements, which are read when they are first asked for, and packed forms of constants. If a kernel
 * packs a deferred storage before its elements were read, and packing can be undone, later reads unpack that
 * form, so that a weight is in memory once. May use proa/op.h. */
#ifndef PROA_CORE_DEFERRED_H
#define PROA_CORE_DEFERRED_H

#include "core/blocked.h"

/* ---- deferred tensors -------------------------------------------------------------------- */

/* Source of a tensor whose elements are read on demand: when they are first asked for (proa__plain), `read`
 * fills memory of `bytes` bytes. Until then the handle looks like one whose blocked form was dropped through
 * another handle. `release` frees the context, but is not called when proa__deferred_new fails. The tensor
 * has at least one element. */
typedef struct proa__deferred {
    proa_status (*read)(void *context, void *to, size_t bytes);
    void (*release)(void *context);
    void *context;
    /* If not NULL, the elements may be evicted and read again; `write` is called before eviction if they were
     * written to. A `read` with `to` NULL then says that memory for the elements ran out, which is the
     * thread's error. */
    proa_status (*write)(void *context, const void *from, size_t bytes);
    size_t spare;   /* padding: the memory for `read` is this many bytes larger than the elements */
    char *elements; /* in memory that the context holds: there is nothing to read; NULL: elsewhere */
} proa__deferred;
proa_tensor *proa__deferred_new(proa_ints shape, proa_dtype dtype, proa__deferred source);
/* True if t's elements were not read yet. */
static inline bool proa__is_unread(const proa_tensor *t)
{
    return t->flags & PROA_T_BLOCKED && !proa__format(t) && !proa__data_now(t);
}
/* Reads the elements; proa_make_plain's part for tensors without a blocked form. */
proa_status proa__deferred_plain(const proa_tensor *t);
/* Evicts the elements of a deferred t: writes them back to the source if they were changed, then frees them,
 * unless another handle shares them or their address was handed out; *gone: they were freed. No other thread
 * may use t meanwhile. A tensor that is not deferred is left alone, and *gone is false. */
proa_status proa__deferred_evict(proa_tensor *t, bool *gone);
/* The elements of t for one use: t itself or, if they are deferred and were not read yet, a new tensor that
 * they are read into while t stays unread. For those who make something else of t, which then needs no
 * memory for its elements. NULL on error. */
proa_tensor *proa__deferred_once(proa_tensor *t);
/* A deferred tensor of its own with the elements of t, which has not been read: they are read again for it,
 * and t stays unread. t itself if it was read. NULL on error. */
proa_tensor *proa__deferred_again(proa_tensor *t);
/* True if t's storage is deferred, with this context as its source. */
bool proa__deferred_is(const proa_tensor *t, const void *context);
/* Records that an optimizer's step has changed the source, and that the elements read for t are the changed
 * ones. */
void proa__deferred_changed(proa_tensor *t);
/* Makes t a deferred tensor whose source is the memory that it has now, so that a kernel may pack it and
 * free that memory. Leaves t alone if other handles refer to it or its address was handed out. No other
 * thread may use t meanwhile. */
proa_status proa__defer(proa_tensor *t);

/* ---- packed forms ------------------------------------------------------------------------ */

enum { PROA__HOW_BYTES = 128 };

/* Description of a packing: functions, and plain bytes that say the rest, such as sizes. */
typedef struct proa__packing {
    size_t bytes; /* of the packed form */
    const void *how;
    size_t how_bytes; /* at most PROA__HOW_BYTES */
    void *context;    /* for pack: what the kernel has at hand */
    proa_status (*pack)(void *context, const void *how, const void *elements, void *packed);
    /* The inverse, bit by bit; NULL: there is none, so that the elements stay in memory, too. */
    proa_status (*unpack)(const void *how, const void *packed, void *elements);
} proa__packing;

/* A packed form; everybody who packs the same storage in the same way shares it. */
typedef struct proa__packed {
    atomic_int refs;
    void *data;
    size_t bytes;
    proa_status (*unpack)(const void *how, const void *packed, void *elements);
    struct proa__packed *next; /* of the same storage */
    uint32_t version;          /* of the storage when it was packed */
    size_t how_bytes;
    char how[PROA__HOW_BYTES];
} proa__packed;

/* The packed form of t, which is row-major or unread; retained (proa__packed_release). NULL on error. */
proa__packed *proa__packed_of(const proa_tensor *t, const proa__packing *packing);
void proa__packed_release(proa__packed *p); /* accepts NULL */

/* A kernel's packed operand and what it was packed from. It belongs to one thread at a time. */
typedef struct proa__packed_operand {
    proa__packed *form;
    proa_storage *storage; /* retained, so that no other storage gets its address */
    const char *from;      /* NULL: the whole of a storage that may be unread */
    uint32_t version;
} proa__packed_operand;

/* True if the operand is the packed form of t as it is now. */
static inline bool proa__packed_is_of(const proa__packed_operand *o, const proa_tensor *t)
{
    const char *from = t->flags & PROA_T_BLOCKED ? NULL : t->data;
    return o->form && o->storage == t->storage && o->from == from &&
           o->version == atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}
/* Packs t into the operand unless that is up to date. NULL on error. */
const void *proa__packed_renew(proa__packed_operand *o, const proa_tensor *t, const proa__packing *packing);
void proa__packed_clear(proa__packed_operand *o);

#endif
