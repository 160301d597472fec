/* Implements ops/ints.h: axes, windows (strided parts of tensors), and list attributes that tensors may
 * supply. May use core and ops. */
#include "ops/ints.h"

#include "core/copy.h"
#include "core/device.h"
#include "core/error.h"

#include <proa/ops.h>

static proa_status check_integer(const char *who, const char *arg, const proa_tensor *t)
{
    if (t->dtype == PROA_I32 || t->dtype == PROA_I64) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, arg, "comes from a tensor of dtype %s; expected int32 or int64",
                   proa_dtype_name((proa_dtype)t->dtype));
}

proa_status proa__ints_count_given(const char *who, const char *arg, const proa_ints *v, int64_t *count)
{
    *count = v->count;
    if (proa__is_given(v->tensor)) {
        PROA_TRY(check_integer(who, arg, v->tensor));
        *count = v->tensor->numel;
        if (v->tensor->ndim > 1)
            return OP_FAIL(who, INVALID_ARGUMENT, arg, "comes from a tensor of shape %s; expected one axis",
                           proa__shape_text(v->tensor->shape, v->tensor->ndim));
        if (*count < 0)
            return OP_FAIL(who, UNSUPPORTED, arg,
                           "comes from a tensor of unknown length; give it a fixed one");
    } else if (v->tensors) {
        for (int64_t i = 0; i < v->count; i++) {
            if (!proa__is_given(v->tensors[i])) continue;
            PROA_TRY(check_integer(who, arg, v->tensors[i]));
            if (v->tensors[i]->numel != 1 && v->tensors[i]->numel >= 0)
                return OP_FAIL(who, INVALID_ARGUMENT, arg,
                               "entry %lld is a tensor of shape %s; expected one element", (long long)i,
                               proa__shape_text(v->tensors[i]->shape, v->tensors[i]->ndim));
        }
    }
    return PROA_OK;
}

static int64_t element(const proa_tensor *t, int64_t i)
{
    if (!t->data) return PROA_UNKNOWN;
    const char *p = t->data + (t->ndim ? i * t->strides[0] : 0);
    return t->dtype == PROA_I32 ? *(const int32_t *)(const void *)p
                                : proa__known_entry(*(const int64_t *)(const void *)p);
}

int64_t proa__ints_at_given(const proa_ints *v, int64_t i)
{
    if (proa__is_given(v->tensor)) return element(v->tensor, i);
    if (v->tensors && proa__is_given(v->tensors[i])) {
        int64_t held = element(v->tensors[i], 0);
        bool said = held == PROA_UNKNOWN && v->at && v->at[i] >= PROA_EXPECTED(0) &&
                    v->at[i] <= PROA_EXPECTED(INT32_MAX);
        return said ? v->at[i] - PROA_EXPECTED(0) : held;
    }
    return v->at ? proa__known_entry(v->at[i]) : PROA_UNKNOWN;
}

static proa_status count_up_to(const char *who, const char *arg, const proa_ints *v, int max, int *n)
{
    int64_t count;
    PROA_TRY(proa__ints_count(who, arg, v, &count));
    if (count > max)
        return OP_FAIL(who, INVALID_ARGUMENT, arg, "has %lld entries; at most %d are possible",
                       (long long)count, max);
    *n = (int)count;
    return PROA_OK;
}

proa_status proa__ints_list(const char *who, const char *arg, const proa_ints *v, int max, int64_t *to,
                            int *n)
{
    PROA_TRY(count_up_to(who, arg, v, max, n));
    for (int i = 0; i < *n; i++) to[i] = proa__ints_at(v, i);
    return PROA_OK;
}

proa_status proa__shape_list(const char *who, const char *arg, const proa_ints *v, int64_t *to, int *n)
{
    int64_t count;
    PROA_TRY(proa__ints_count(who, arg, v, &count));
    if (count > PROA_MAX_DIMS)
        return proa__rank_fail(proa_find_op(who), arg, "has %lld entries; at most %d are possible",
                               (long long)count, PROA_MAX_DIMS);
    return proa__ints_list(who, arg, v, PROA_MAX_DIMS, to, n);
}

bool proa__ints_from_tensor(const proa_ints *v)
{
    if (proa__is_given(v->tensor)) return true;
    for (int64_t i = 0; v->tensors && i < v->count; i++)
        if (proa__is_given(v->tensors[i])) return true;
    return false;
}

bool proa__ints_unknown(const proa_ints *v)
{
    if (proa__is_given(v->tensor)) return !v->tensor->data && v->tensor->numel;
    for (int64_t i = 0; v->tensors && i < v->count; i++)
        if (proa__ints_at(v, i) == PROA_UNKNOWN) return true;
    return false;
}

static proa_tensor *one_entry(const proa_ints *v, int64_t i)
{
    proa_tensor *t = v->tensors[i];
    return proa__is_given(t) ? proa_reshape(proa_cast(t, PROA_I64), PROA_INTS(1))
                             : proa_full(PROA_INTS(1), (double)v->at[i], .dtype = PROA_I64);
}

proa_tensor *proa__axes_tensor(const proa_ints *v, int ndim)
{
    proa_tensor *all;
    if (proa__is_given(v->tensor)) {
        all = proa_reshape(proa_cast(v->tensor, PROA_I64), PROA_INTS(-1));
    } else {
        proa_tensor **each = proa_scope_alloc((size_t)v->count * sizeof(proa_tensor *));
        if (!each) return NULL;
        for (int64_t i = 0; i < v->count; i++) each[i] = one_entry(v, i);
        all = v->count == 1 ? each[0] : proa_concat(((proa_tensors){v->count, each}));
    }
    return proa_remainder(all, proa_full(PROA_INTS(1), ndim, .dtype = PROA_I64));
}

proa_status proa__int_or(const char *who, const char *arg, int64_t value, const proa_ints *twin, int64_t *to)
{
    *to = proa__known_entry(value);
    if (!twin->count && !proa__is_given(twin->tensor)) return PROA_OK;
    int n = 0;
    PROA_TRY(proa__ints_list(who, arg, twin, 1, to, &n));
    return n == 1 ? PROA_OK : OP_FAIL(who, INVALID_ARGUMENT, arg, "comes from an empty tensor");
}

proa_status proa__axis(const char *who, const char *arg, int64_t axis, int ndim, int *to)
{
    int64_t n = ndim ? ndim : 1;
    if (axis < -n || axis >= n)
        return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %lld; expected %lld to %lld for a tensor of %d axes",
                       (long long)axis, (long long)-n, (long long)n - 1, ndim);
    *to = (int)(axis < 0 ? axis + n : axis);
    return PROA_OK;
}

proa_status proa__axes(const char *who, const char *arg, const proa_ints *v, int ndim, int *axes, int *n)
{
    unsigned seen = 0;
    PROA_TRY(count_up_to(who, arg, v, PROA_MAX_DIMS, n));
    for (int i = 0; i < *n; i++) {
        int64_t axis = proa__ints_at(v, i);
        if (axis == PROA_UNKNOWN)
            return OP_FAIL(who, UNSUPPORTED, arg, "comes from a variable; in a program axes must be numbers");
        PROA_TRY(proa__axis(who, arg, axis, ndim, &axes[i]));
        if (seen >> axes[i] & 1) return OP_FAIL(who, INVALID_ARGUMENT, arg, "names axis %d twice", axes[i]);
        seen |= 1u << axes[i];
    }
    return PROA_OK;
}

/* Known dims stay constants for shape inference; only unknown ones are computed when the program runs. */
proa_ints proa__shape_like(proa_tensor *t)
{
    const proa_ints none = {0, NULL, NULL, NULL};
    if (!t) return none;
    int unknown = 0;
    for (int i = 0; i < t->ndim; i++) unknown += t->shape[i] < 0;
    if (!unknown) return (proa_ints){t->ndim, t->shape, NULL, NULL};
    proa_tensor *shape = proa_shape(t);
    if (!shape || unknown == t->ndim) return (proa_ints){0, NULL, shape, NULL};
    proa_tensor **each = proa_scope_alloc((size_t)t->ndim * sizeof(proa_tensor *));
    if (!each) return none;
    for (int i = 0; i < t->ndim; i++)
        each[i] = t->shape[i] < 0 ? proa_slice(shape, PROA_INTS(0), PROA_INTS(i), PROA_INTS(i + 1)) : NULL;
    return (proa_ints){t->ndim, t->shape, NULL, each};
}

proa_tensor *proa__zero_of(const proa_tensor *t)
{
    static const char zero[16] = {0};
    if (!t) return NULL;
    if (t->flags & PROA_T_SYMBOLIC) /* an op, which may stand in a branch or loop, as constants may not */
        return proa_full(PROA_SCALAR_SHAPE, 0, .dtype = (proa_dtype)t->dtype);
    return proa_from_data(zero, PROA_SCALAR_SHAPE, (proa_dtype)t->dtype);
}

int64_t proa__meta_numel(const proa_meta *m)
{
    int64_t n = 1;
    for (int i = 0; i < m->ndim; i++) {
        if (m->shape[i] < 0) return -1;
        if (__builtin_mul_overflow(n, m->shape[i], &n)) return -1;
    }
    return n;
}

proa_status proa__copy_window(proa_tensor *dst, proa_tensor *src)
{
    proa__tensor_refresh(dst);
    proa__tensor_refresh(src);
    return proa__copy(dst, src);
}

proa_status proa__fill_window(proa_tensor *dst, const void *value)
{
    proa__tensor_refresh(dst);
    return proa__fill(dst, value);
}
