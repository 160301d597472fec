/* Blocked layouts: a storage's elements in the order that a kernel library prefers (channels in blocks of
 * the vector length), as a second form or the only one. Users never see a blocked form: asking for the
 * address of a blocked tensor makes a row-major ("plain") form, once, and a write drops the blocked form.
 * The kernel that makes an output decides that it is blocked: the blocked form is then in the storage's
 * own memory, and a plain form has memory of its own. Every handle on the whole storage has
 * PROA_T_BLOCKED and may have no `data`; a view has PROA_T_BLOCKED_BASE. Format numbers have a meaning
 * for the hooks only, except PROA_CHANNELS_LAST, the format of devices. May use proa/device.h. */
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

/* The format of t's blocked form; 0: there is none, or t is a view of a part. */
static inline int proa__format(const proa_tensor *t)
{
    return t->flags & PROA_T_BLOCKED ? t->storage->format : 0;
}
/* proa__blocked_data: address of t's blocked form, which exists. proa__memory: address of t's blocked form
 * or, where it has none, of the row-major form. */
char *proa__blocked_data(const proa_tensor *t);
static inline char *proa__memory(const proa_tensor *t)
{
    return proa__format(t) ? proa__blocked_data(t) : t->data;
}
/* Channels (axis 1) per block of t's blocked form; 0: t has none, or one of another kind. */
int64_t proa__channel_block(const proa_tensor *t);
/* Bytes of t's blocked form. */
size_t proa__blocked_bytes(const proa_tensor *t);

/* A window: a blocked storage on the thread's device for tensors like t, whose memory is part of another
 * storage. It has no memory until proa__window_point. */
proa_storage *proa__window_new(const proa_tensor *t, int format);
/* Points the window at `data` in the storage `owner`, which the window retains (NULL: the caller keeps that
 * memory alive), and drops its plain form. Handles on s must have no `data` at that time. */
void proa__window_point(proa_storage *s, proa_storage *owner, char *data);
/* The storage whose memory holds t's elements: t's own, or the one that its window points into. */
const proa_storage *proa__storage_behind(const proa_tensor *t);

/* t->data, by an atomic load, since another thread may be making it; NULL: there is no plain form yet. */
static inline const char *proa__data_now(const proa_tensor *t)
{
    return __atomic_load_n(&t->data, __ATOMIC_ACQUIRE);
}
PROA_API proa_status proa_make_plain(const proa_tensor *t);
/* Makes t->data valid: converts a blocked tensor to its plain form. Threads may call this on one tensor at
 * once. */
static inline proa_status proa__plain(const proa_tensor *t)
{
    if (!(t->flags & PROA_T_BLOCKED) || proa__data_now(t)) return PROA_OK;
    return proa_make_plain(t);
}

proa_status proa__drop_blocked(const proa_tensor *t);
/* proa__plain for a caller that will write to t: drops the blocked form, so that the plain one is the only
 * one. */
static inline proa_status proa__plain_to_write(const proa_tensor *t)
{
    if (!(t->flags & (PROA_T_BLOCKED | PROA_T_BLOCKED_BASE))) return PROA_OK;
    return proa__drop_blocked(t);
}
/* True if t is row-major in the CPU's memory now, so that t->data may be read without proa__plain. */
static inline bool proa__is_row_major(const proa_tensor *t)
{
    return !(t->flags & (PROA_T_STRIDED | PROA_T_BLOCKED)) && t->storage && t->storage->device == PROA_CPU;
}
/* proa_copy_out for a CPU tensor with PROA_T_BLOCKED: converts a blocked form into `to` without making a
 * plain form; reads the elements of a deferred tensor first. */
proa_status proa__blocked_copy_out(const proa_tensor *t, void *to);

/* True if tensors may be blocked: hooks are installed and FLAGS_blocked is on. */
bool proa__blocking(void);
/* Gives t, a fresh output that nothing was written to, a blocked form, unless a plan has given it that format
 * already. The kernel then fills proa__blocked_data(t), and pads with zeros. */
proa_status proa__block_output(proa_tensor *t, int format);
/* Bytes of a tensor like t in that format; 0: there is no such form. */
size_t proa__format_bytes(const proa_tensor *t, int format);
/* Copies t's elements between forms; format 0 is row-major. */
proa_status proa__convert_blocked(const proa_tensor *t, int from_format, const void *from, int to_format,
                                  void *to);
/* Sets the padding of a blocked t to zero; false if its format is not of the kind that channel_block
 * describes. */
bool proa__zero_padding(const proa_tensor *t);

/* Converts t, whose values are about to be overwritten, to a format of the same size in a storage of its own
 * without a plain form. *done false: nothing has changed, since t's memory may be known to others. */
proa_status proa__move_to_format(proa_tensor *t, int format, bool *done);

/* Implements proa_host_api.match_layout (proa/device.h), which gives n tensors one layout. */
proa_status proa__match_layout(proa_tensor *const *at, int n, const proa_tensor *like, bool may_move);

/* Makes the plain form of every blocked input of the call; with `lost`, only of those whose blocked form has
 * been dropped through another handle. */
proa_status proa__plain_inputs(const proa_op *op, const void *args, bool lost);

#endif
