/* List attributes that tensors may supply, axes, and windows (strided parts) of tensors, for shape inference,
 * rules and copying kernels of several families. May use core only; implemented in ops/shape/ints.c. */
#ifndef PROA_OPS_INTS_H
#define PROA_OPS_INTS_H

#include "core/internal.h"
#include "core/tensor.h"

/* A list entry that only running the program will tell. */
#define PROA_UNKNOWN INT64_MIN

/* A failure of op `who`; the lookup costs only when something is wrong. */
#define OP_FAIL(who, code, argument, ...) \
    proa__op_fail(PROA_ERR_##code, proa_find_op(who), argument, __VA_ARGS__)

/* True if an optional tensor was given. */
static inline bool proa__is_given(const proa_tensor *t) { return t && !proa__absent(t); }

/* A user's smallest integer must not read as "unknown". */
static inline int64_t proa__constant_shapes(int64_t v) { return v == PROA_UNKNOWN ? v + 1 : v; }
/* True if no tensor supplies the list or an entry: the numbers are all there is. */
static inline bool proa__ints_plain(const proa_ints *v)
{
    return v->at && !v->tensors && !proa__is_given(v->tensor);
}

/* Slow paths of the next two, for lists that tensors supply or that have entries from tensors. */
proa_status proa__ints_count_given(const char *who, const char *arg, const proa_ints *v, int64_t *count);
int64_t proa__ints_at_given(const proa_ints *v, int64_t i);

/* Entries of a list, wherever they come from. INVALID_ARGUMENT unless supplying tensors are integers. */
static inline proa_status proa__ints_count(const char *who, const char *arg, const proa_ints *v,
                                           int64_t *count)
{
    if (!proa__ints_plain(v)) return proa__ints_count_given(who, arg, v, count);
    *count = v->count;
    return PROA_OK;
}
/* Entry i < count; PROA_UNKNOWN when a program's variable supplies it. */
static inline int64_t proa__ints_at(const proa_ints *v, int64_t i)
{
    return proa__ints_plain(v) ? proa__constant_shapes(v->at[i]) : proa__ints_at_given(v, i);
}
/* All entries into to[max]; INVALID_ARGUMENT when there are more. */
proa_status proa__ints_list(const char *who, const char *arg, const proa_ints *v, int max, int64_t *to,
                            int *n);
/* True if a tensor supplies the list or one of its entries. */
bool proa__ints_from_tensor(const proa_ints *v);
/* The one value of an int attribute with a tensor twin: the twin if given, else `value`. */
proa_status proa__int_or(const char *who, const char *arg, int64_t value, const proa_ints *twin, int64_t *to);

/* axis in [−ndim, ndim) → [0, ndim); a 0-D tensor takes 0 and −1. INVALID_ARGUMENT otherwise. */
proa_status proa__axis(const char *who, const char *arg, int64_t axis, int ndim, int *to);
/* Several axes, each once. */
proa_status proa__axes(const char *who, const char *arg, const proa_ints *v, int ndim, int *axes, int *n);

/* t's shape as an attribute: its dims, or, in a program with unknown ones, a `shape` op. Borrowed. */
proa_ints proa__shape_like(proa_tensor *t);
/* A 0-D zero of t's dtype, for rules. */
proa_tensor *proa__zero_of(const proa_tensor *t);
/* Number of elements of a meta; −1 when a dim is unknown. */
int64_t proa__meta_numel(const proa_meta *m);

/* ---- windows ---------------------------------------------------------------------------- */

/* A stack handle on t's memory, to be narrowed and given to proa__copy. It owns nothing. */
static inline proa_tensor proa__window(const proa_tensor *t)
{
    proa_tensor w = {.dtype = t->dtype,
                     .ndim = t->ndim,
                     .flags = t->flags & PROA_T_DEVICE,
                     .numel = t->numel,
                     .data = t->data,
                     .storage = t->storage};
    for (int i = 0; i < t->ndim; i++) w.shape[i] = t->shape[i], w.strides[i] = t->strides[i];
    return w;
}

/* Keeps [start, start + count · step) of one axis. */
static inline void proa__narrow(proa_tensor *w, int axis, int64_t start, int64_t count, int64_t step)
{
    if (count > 0) w->data += start * w->strides[axis];
    w->shape[axis] = count;
    w->strides[axis] *= step;
}

/* Entry k of an axis, without that axis. */
static inline proa_tensor proa__entry(const proa_tensor *t, int axis, int64_t k)
{
    proa_tensor w = proa__window(t);
    w.data += k * w.strides[axis];
    for (int i = axis; i + 1 < w.ndim; i++) w.shape[i] = w.shape[i + 1], w.strides[i] = w.strides[i + 1];
    w.ndim--;
    return w;
}

/* proa__copy between windows, after their flags are set right. */
proa_status proa__copy_window(proa_tensor *dst, proa_tensor *src);
/* Writes one element's bytes (NULL: zero) all over dst. */
proa_status proa__fill_window(proa_tensor *dst, const void *value);

#endif
