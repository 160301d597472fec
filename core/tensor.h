/* The tensor handle and its storage, for Proa's own folders. The fields that every op call reads are in the
 * first cache lines of a handle; functions that read them are inline. May use proa/op.h only. */
#ifndef PROA_CORE_TENSOR_H
#define PROA_CORE_TENSOR_H

#include <proa/op.h>

#include <stdatomic.h>
#include <string.h>

enum { PROA__MAX_DEVICES = 64 };

typedef struct proa_storage {
    atomic_int refs;
    atomic_uint version;            /* incremented by every write but the one that makes the elements */
    atomic_uint unguarded;          /* how many of those writes backward accepts for values that it saved */
    uint16_t format;                /* format of the blocked form (core/blocked.h); 0: no such form */
    uint8_t device : 6;             /* its id, below PROA__MAX_DEVICES */
    bool padded : 1;                /* the blocked form is larger than the plain one */
    bool window : 1;                /* the blocked form is in another storage (core/blocked.h) */
    atomic_bool pinned;             /* its address was handed out: stays row-major and does not move */
    char *data;                     /* the row-major form; NULL while there is only a blocked one */
    size_t bytes;                   /* of the row-major form */
    void (*release)(void *context); /* called when it is freed; NULL: its memory is the device allocator's */
    void *context;
} proa_storage;

#define proa__device_bits(id) ((unsigned)(id) & (PROA__MAX_DEVICES - 1U))

typedef enum proa_kind { PROA_DENSE, PROA_ROWS, PROA_ARRAY, PROA_RECORD } proa_kind;

/* The part of a SelectedRows handle beside the stored rows, which the handle holds like a dense tensor.
 * Shared by handles, immutable. */
typedef struct proa__rows {
    atomic_int refs;
    proa_tensor *index; /* row numbers; retained: int64 [n], contiguous */
    int64_t height;
} proa__rows;

struct proa_node; /* autograd's */
struct proa_var;  /* jit's */

/* autograd's part of a handle: gradient, hooks, retain flag. Created when first needed. */
struct proa_grad_info;

struct proa_tensor {
    atomic_int refs;
    uint8_t kind, dtype;
    int8_t ndim;
    bool is_return;      /* returned: moves to the enclosing scope when its scope ends */
    uint32_t flags;      /* PROA_T_* */
    uint32_t scope_slot; /* 1 + index in its thread's scope stack; 0 = in no scope */
    int64_t numel;       /* −1 when a dim is unknown */
    char *data;          /* storage->data + offset; NULL for symbolic and meta handles, and while blocked */
    proa_storage *storage;
    int64_t shape[PROA_MAX_DIMS];
    int64_t strides[PROA_MAX_DIMS]; /* bytes */
    struct proa_node *node;         /* the tape's node that made this tensor; owned */
    uint32_t node_output;           /* which of the node's outputs */
    uint32_t base_version;          /* of a recorded view: storage version when it was attached */
    proa_tensor *base;              /* of a recorded view: the tensor that it is a view of; owned */
    struct proa_grad_info *grad;    /* owned */
    struct proa_var *var;           /* symbolic: its variable, borrowed; its program may have been freed, */
    uint64_t var_serial;            /* so it is looked up by address and serial before it is read */
    void *extra;                    /* of kind rows: its proa__rows; owned */
    char *name;                     /* owned */
    atomic_bool is_saved;           /* a node on the tape may own this very handle */
};

/* A copy of t's handle on the stack that owns nothing, to read or fill a part of t's memory through changed
 * shape, strides or data. The counter of references is not read: other threads may change it meanwhile. */
static inline proa_tensor proa__shallow_copy(const proa_tensor *t)
{
    const size_t from = offsetof(proa_tensor, kind), end = offsetof(proa_tensor, is_saved);
    proa_tensor copy;
    atomic_init(&copy.refs, 1);
    memcpy((char *)&copy + from, (const char *)t + from, end - from);
    atomic_init(&copy.is_saved, false);
    return copy;
}

/* Handles come from a per-thread free list. A new one is dense and owned by the innermost scope alone. */
/* New dense tensor of a meta, with uninitialized memory on the thread's device. */
proa_tensor *proa__tensor_new(const proa_meta *meta);
/* New handle without memory: symbolic or meta (flags say which). */
proa_tensor *proa__tensor_bare(const proa_meta *meta, uint32_t flags);
/* A new tensor of shape and dtype alone (PROA_T_META). */
PROA_API proa_tensor *proa_tensor_without_memory(const proa_meta *meta);
/* A new view of t's storage. offset: bytes from t's element 0. strides: in bytes; NULL: row-major, which
 * requires a contiguous t with as many elements. */
proa_tensor *proa__tensor_view(proa_tensor *t, int ndim, const int64_t *shape, const int64_t *strides,
                               int64_t offset);
/* A new view of t's memory as another dtype; offset and strides in bytes; strides NULL: row-major. */
proa_tensor *proa__tensor_view_as(proa_tensor *t, proa_dtype dtype, int ndim, const int64_t *shape,
                                  const int64_t *strides, int64_t offset);
/* A new handle with t's memory and shape, but without history, name or gradient. */
proa_tensor *proa__tensor_alias(proa_tensor *t);
/* Makes the handle `t` refer to what `from` refers to (memory, shape, strides, dtype); t's address stays. */
void proa__tensor_assign(proa_tensor *t, const proa_tensor *from);
/* Makes t, a dense handle, a SelectedRows with the index and height of `like`. */
void proa__rows_attach(proa_tensor *t, const proa_tensor *like);
/* Makes a SelectedRows t dense: a matrix of its stored rows. */
void proa__rows_detach(proa_tensor *t);
/* True if the whole table of a SelectedRows t has this shape. */
bool proa__rows_fit(const proa_tensor *t, const int64_t *shape, int ndim);
/* Recomputes numel and PROA_T_STRIDED after shape or strides changed. */
void proa__tensor_refresh(proa_tensor *t);
/* Row-major byte strides; returns false when the byte count overflows (OVERFLOW is set). */
bool proa__row_major(const int64_t *shape, int ndim, size_t item, int64_t *strides, int64_t *numel);
/* Checks a user's shape: rank, negative dims, size overflow; fills the meta. `who` starts the message. */
proa_status proa__meta_from_shape(const char *who, proa_ints shape, proa_dtype dtype, proa_meta *meta);

proa_storage *proa__storage_new(size_t bytes, int device);
/* Storage on a device into which these host bytes are being copied asynchronously; NULL: the device did not
 * start such a copy, not always with an error. */
proa_storage *proa__storage_sent(const void *from, size_t bytes, int device);
void proa__storage_release(proa_storage *s);
/* For storage that takes the place of another: the same versions. */
static inline void proa__storage_keep_versions(proa_storage *to, const proa_storage *from)
{
    atomic_store_explicit(&to->version, atomic_load_explicit(&from->version, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&to->unguarded, atomic_load_explicit(&from->unguarded, memory_order_relaxed),
                          memory_order_relaxed);
}

/* The hooks through which autograd frees its part of a handle: installed once. */
typedef struct proa_tensor_hooks {
    void (*free_node)(struct proa_node *node);
    void (*free_grad)(struct proa_grad_info *grad);
} proa_tensor_hooks;
extern proa_tensor_hooks proa__tensor_hooks;

static inline void proa__bump_version(proa_tensor *t)
{
    if (t->storage) atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
}
/* A write of an optimizer's step, of running statistics or of set_value: as in Paddle, backward does not
 * refuse values that it saved before, and reads the new ones. */
static inline void proa__bump_unguarded(proa_tensor *t)
{
    proa__bump_version(t);
    if (t->storage) atomic_fetch_add_explicit(&t->storage->unguarded, 1, memory_order_relaxed);
}
static inline uint32_t proa__version(const proa_tensor *t)
{
    if (t->storage) return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
    return (uint32_t)t->var_serial; /* symbolic: changes when an in-place op gives it another variable */
}
/* The version without unguarded writes: what a saved value must still have in backward. */
static inline uint32_t proa__guarded_version(const proa_tensor *t)
{
    if (!t->storage) return proa__version(t);
    return proa__version(t) - atomic_load_explicit(&t->storage->unguarded, memory_order_relaxed);
}
/* Makes the writes to t since it had this guarded version unguarded ones. */
static inline void proa__unguard_since(proa_tensor *t, uint32_t guarded)
{
    if (t->storage)
        atomic_fetch_add_explicit(&t->storage->unguarded, proa__guarded_version(t) - guarded,
                                  memory_order_relaxed);
}
/* Makes t a handle of the variable that `like` denotes. */
static inline void proa__stand_for(proa_tensor *t, const proa_tensor *like)
{
    t->var = like->var;
    t->var_serial = like->var_serial;
}
static inline bool proa__absent(const proa_tensor *t) { return t == proa_none; }

static inline const proa__rows *proa__rows_of(const proa_tensor *t) { return t->extra; }

/* Text for messages: "[2, 3, -1]". Uses a small ring of per-thread buffers: up to 8 in one message. */
const char *proa__shape_text(const int64_t *shape, int ndim);
const char *proa__tensor_text(const proa_tensor *t); /* "float32[2, 3]" */

#endif
