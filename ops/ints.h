/* List attributes that tensors may supply, axes, and windows (strided parts) of tensors, for shape inference,
 * rules and copying kernels of several families. May use core only; implemented in ops/shape/ints.c. */
#ifndef PROA_OPS_INTS_H
#define PROA_OPS_INTS_H

#include "core/internal.h"
#include "core/tensor.h"

/* A list entry that is known only when the program runs. */
#define PROA_UNKNOWN INT64_MIN
/* Stands beside the variable of an entry that will hold n (at most INT32_MAX), as a program file says. */
#define PROA_EXPECTED(n) (INT64_MIN / 2 + (n))

/* Fails with an error of op `who`. The op is looked up here, only on failure. */
#define OP_FAIL(who, code, argument, ...) \
    proa__op_fail(PROA_ERR_##code, proa_find_op(who), argument, __VA_ARGS__)

/* True if an optional tensor was given. */
static inline bool proa__is_given(const proa_tensor *t) { return t && !proa__absent(t); }

/* True if two shapes of ndim dims agree wherever both are known (not negative). */
static inline bool proa__shapes_agree(const int64_t *a, const int64_t *b, int ndim)
{
    for (int i = 0; i < ndim; i++)
        if (a[i] != b[i] && a[i] >= 0 && b[i] >= 0) return false;
    return true;
}

/* An attribute value as a list entry: a user's INT64_MIN becomes INT64_MIN + 1, so that it does not read as
 * PROA_UNKNOWN. */
static inline int64_t proa__known_entry(int64_t v) { return v == PROA_UNKNOWN ? v + 1 : v; }
/* True if neither the list nor an entry is supplied by a tensor. */
static inline bool proa__ints_plain(const proa_ints *v)
{
    return v->at && !v->tensors && !proa__is_given(v->tensor);
}

/* Slow paths of proa__ints_count and proa__ints_at, for lists or entries that tensors supply. */
proa_status proa__ints_count_given(const char *who, const char *arg, const proa_ints *v, int64_t *count);
int64_t proa__ints_at_given(const proa_ints *v, int64_t i);

/* Number of entries of a list, whether attributes or tensors supply it. INVALID_ARGUMENT unless the supplying
 * tensors are integers. */
static inline proa_status proa__ints_count(const char *who, const char *arg, const proa_ints *v,
                                           int64_t *count)
{
    if (!proa__ints_plain(v)) return proa__ints_count_given(who, arg, v, count);
    *count = v->count;
    return PROA_OK;
}
/* Entry i (i < count); PROA_UNKNOWN when a variable of a program supplies it, unless PROA_EXPECTED is beside
 * it. */
static inline int64_t proa__ints_at(const proa_ints *v, int64_t i)
{
    return proa__ints_plain(v) ? proa__known_entry(v->at[i]) : proa__ints_at_given(v, i);
}
/* Copies all entries into to[max]; INVALID_ARGUMENT when there are more than max. */
proa_status proa__ints_list(const char *who, const char *arg, const proa_ints *v, int max, int64_t *to,
                            int *n);
/* The same for a shape, which has at most PROA_MAX_DIMS entries: proa__rank_fail when there are more. */
proa_status proa__shape_list(const char *who, const char *arg, const proa_ints *v, int64_t *to, int *n);
/* True if a tensor supplies the list or one of its entries. */
bool proa__ints_from_tensor(const proa_ints *v);
/* True if an entry is known only when the program runs. */
bool proa__ints_unknown(const proa_ints *v);
/* Value of an int attribute that a tensor may supply: the tensor's if it is given, otherwise `value`. */
proa_status proa__int_or(const char *who, const char *arg, int64_t value, const proa_ints *twin, int64_t *to);

/* Maps axis in [−ndim, ndim) to [0, ndim); for a 0-D tensor 0 and −1 are valid. INVALID_ARGUMENT
 * otherwise. */
proa_status proa__axis(const char *who, const char *arg, int64_t axis, int ndim, int *to);
/* proa__axis for several axes, none of which may repeat; they must be known. */
proa_status proa__axes(const char *who, const char *arg, const proa_ints *v, int ndim, int *axes, int *n);

/* The entries of a list that tensors supply as a 1-D int64 tensor, for rules; a negative one counts from
 * ndim. */
proa_tensor *proa__axes_tensor(const proa_ints *v, int ndim);

/* t's shape as a list attribute: its dims or, in a program with unknown ones, the result of a `shape` op.
 * Borrowed: the caller frees nothing. */
proa_ints proa__shape_like(proa_tensor *t);
/* A 0-D zero of t's dtype, for rules. */
proa_tensor *proa__zero_of(const proa_tensor *t);
/* Number of elements of a tensor with that meta; −1 when a dim is unknown. */
int64_t proa__meta_numel(const proa_meta *m);

/* ---- windows ---------------------------------------------------------------------------- */

/* A tensor handle on the stack that views t's memory, to be narrowed and given to proa__copy_window. It owns
 * nothing. */
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

/* Narrows one axis to the indices start, start + step, …, `count` of them. */
static inline void proa__narrow(proa_tensor *w, int axis, int64_t start, int64_t count, int64_t step)
{
    if (count > 0) w->data += start * w->strides[axis];
    w->shape[axis] = count;
    w->strides[axis] *= step;
}

/* View of entry k of an axis; that axis is removed. */
static inline proa_tensor proa__entry(const proa_tensor *t, int axis, int64_t k)
{
    proa_tensor w = proa__window(t);
    w.data += k * w.strides[axis];
    for (int i = axis; i + 1 < w.ndim; i++) w.shape[i] = w.shape[i + 1], w.strides[i] = w.strides[i + 1];
    w.ndim--;
    return w;
}

/* proa__copy between windows; updates their contiguity flags first. */
proa_status proa__copy_window(proa_tensor *dst, proa_tensor *src);
/* Fills dst with one element's bytes (NULL: zero). */
proa_status proa__fill_window(proa_tensor *dst, const void *value);

#endif
