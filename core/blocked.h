/* The blocked form of a storage: the same elements in the order a kernel library likes best (channels in
 * blocks of the vector's length). It never shows: a tensor that lies blocked gets a plain form, made once,
 * when somebody asks for its address, and a write drops the blocked one.
 *
 * A storage that has one was made so, by the kernel whose output it is; the blocked form fills its block, and
 * the plain one, when there is one, lies elsewhere. Every handle on the whole of it has PROA_T_BLOCKED, and
 * may have no data; a view of it has PROA_T_BLOCKED_BASE. A format is a number that means something to
 * the hooks only; devices have one, PROA_CHANNELS_LAST, which core knows and their strided copy makes. May
 * use proa/device.h. */
#ifndef PROA_CORE_BLOCKED_H
#define PROA_CORE_BLOCKED_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/device.h>

/* Hooks through which a kernel library describes its formats; installed once. */
typedef struct proa__blocked_hooks {
    /* Bytes of a tensor of t's shape and this dtype in `format`; 0: there is no such form. */
    size_t (*bytes)(const proa_tensor *t, proa_dtype dtype, int format);
    /* Copies t's elements from one form to another; format 0 is row-major. */
    proa_status (*convert)(const proa_tensor *t, int from_format, const void *from, int to_format, void *to);
    /* Channels (axis 1) per block: memory is ordered by image, block of channels, pixel, channel of the
     * block. 0: the format is of another kind. */
    int64_t (*channel_block)(const proa_tensor *t, int format);
} proa__blocked_hooks;
void proa__blocked_install(const proa__blocked_hooks *hooks);

/* The format of t's blocked form; 0: none, or t shows a part of it. */
static inline int proa__format(const proa_tensor *t)
{
    return t->flags & PROA_T_BLOCKED ? t->storage->format : 0;
}
/* The memory of the form that proa__format names: blocked if there is such a one. */
char *proa__blocked_data(const proa_tensor *t);
static inline char *proa__memory(const proa_tensor *t)
{
    return proa__format(t) ? proa__blocked_data(t) : t->data;
}
/* channel_block of t's own format; 0 if t is plain. */
int64_t proa__channel_block(const proa_tensor *t);
/* Bytes of t's blocked form. */
size_t proa__blocked_bytes(const proa_tensor *t);

/* A window: a blocked storage for tensors like t that lies in somebody else's memory, on the thread's device,
 * nowhere at first. */
proa_storage *proa__window_new(const proa_tensor *t, int format);
/* Shows `data` from now on, in `owner`, which it keeps (NULL: it is kept by others); a plain form goes.
 * Handles on s must have no data then. */
void proa__window_point(proa_storage *s, proa_storage *owner, char *data);
/* Whose memory t's elements are: that of its storage, or of the one behind a window. */
const proa_storage *proa__storage_behind(const proa_tensor *t);

/* t->data as another thread may just have made it; NULL: there is no plain form yet. */
static inline const char *proa__data_now(const proa_tensor *t)
{
    return __atomic_load_n(&t->data, __ATOMIC_ACQUIRE);
}
PROA_API proa_status proa_make_plain(const proa_tensor *t);
/* Afterwards t->data is there. Several threads may ask at once. */
static inline proa_status proa__plain(const proa_tensor *t)
{
    if (!(t->flags & PROA_T_BLOCKED) || proa__data_now(t)) return PROA_OK;
    return proa_make_plain(t);
}

/* A new tensor whose elements are somewhere else until somebody asks for them (proa__plain): then `read`
 * fills memory of `bytes` bytes, once. Until it has, such a tensor looks like one whose blocked form another
 * handle has dropped. `release` ends the context; on failure here it is not called. At least one element. */
typedef struct proa__deferred {
    proa_status (*read)(void *context, void *to, size_t bytes);
    void (*release)(void *context);
    void *context;
    /* Not NULL: the elements may be evicted and read again. Called before they go, if they were written to.
     * Then `read` with `to` NULL means that there is no memory for them, which is the thread's error. */
    proa_status (*write)(void *context, const void *from, size_t bytes);
    size_t spare; /* bytes that `read` may write beyond the elements */
} proa__deferred;
proa_tensor *proa__deferred_new(proa_ints shape, proa_dtype dtype, proa__deferred source);
/* Hands elements of a deferred t that were written to back to its source, then frees them, unless another
 * handle shows them or somebody holds their address; *gone says whether they are nowhere now. No other
 * thread may use t meanwhile. A t of another storage stays as it is, and *gone is false. */
proa_status proa__deferred_evict(proa_tensor *t, bool *gone);
/* Whether t's storage is a deferred one of this context. */
bool proa__deferred_is(const proa_tensor *t, const void *context);
/* The source has other elements now, which are those that a t that was read shows: what kept the version of
 * the former ones is refused by backward. */
void proa__deferred_changed(proa_tensor *t);
proa_status proa__drop_blocked(const proa_tensor *t);
/* The same for who will write: the plain form becomes the only one. */
static inline proa_status proa__plain_to_write(const proa_tensor *t)
{
    if (!(t->flags & (PROA_T_BLOCKED | PROA_T_BLOCKED_BASE))) return PROA_OK;
    return proa__drop_blocked(t);
}
/* Plain, contiguous, in the CPU's memory, now: t->data may be read as it is. */
static inline bool proa__lies_plain(const proa_tensor *t)
{
    return !(t->flags & (PROA_T_STRIDED | PROA_T_BLOCKED)) && t->storage && t->storage->device == PROA_CPU;
}
/* proa_copy_out of a tensor of the CPU with PROA_T_BLOCKED; makes no plain form. */
proa_status proa__blocked_copy_out(const proa_tensor *t, void *to);

/* True if tensors may be blocked: hooks are there and FLAGS_blocked is on. */
bool proa__blocking(void);
/* Makes t, an output made for this call that nothing has been written to, blocked, unless it lies in that
 * format already (a plan has given it one). The kernel then fills proa__blocked_data(t), padding with
 * zeros. */
proa_status proa__block_output(proa_tensor *t, int format);
/* Bytes of a tensor like t in that format; 0: there is no such form. */
size_t proa__format_bytes(const proa_tensor *t, int format);
/* Copies t's elements between forms; format 0 is row-major. */
proa_status proa__convert_blocked(const proa_tensor *t, int from_format, const void *from, int to_format,
                                  void *to);
/* Sets the padding of a blocked t to zero; false if its format is not of the kind that channel_block
 * describes. */
bool proa__zero_padding(const proa_tensor *t);

/* Brings t, which is about to be overwritten from its own values, into a format of the same size, in a
 * storage of its own; it is left with no plain form. *done: false, and nothing has changed, where others
 * may know its memory. */
proa_status proa__move_to_format(proa_tensor *t, int format, bool *done);

/* proa_host_api.lay_alike. */
proa_status proa__lie_alike(proa_tensor *const *at, int n, const proa_tensor *like, bool may_move);

/* Every input of the call that lies blocked gets its plain form; with `lost`, only those whose blocked form
 * has been dropped through another handle. */
proa_status proa__plain_inputs(const proa_op *op, const void *args, bool lost);

#endif
