/* Shapes and dtypes of reductions, argmax and argmin, and cumulative sums and products. May use core and the
 * op headers. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/ints.h"
#include "ops/reduce/axes.h"
#include "ops/shape_meta.h"
#include "impl/reduce.h"

proa_status proa__reduce_mask(const char *who, const proa_ints *axis, int ndim, unsigned *mask)
{
    int axes[PROA_MAX_DIMS], n = 0;
    PROA_TRY(proa__axes(who, "axis", axis, ndim, axes, &n));
    *mask = n ? 0 : (1u << ndim) - 1;
    for (int i = 0; i < n; i++) *mask |= 1u << axes[i];
    return PROA_OK;
}

proa_status proa__scan_axis(const char *who, const proa_scalar *axis, int ndim, int *to, bool *flat)
{
    *flat = axis->kind == PROA_SCALAR_NONE;
    *to = 0;
    if (*flat) return PROA_OK;
    int64_t value = axis->kind == PROA_SCALAR_FLOAT ? (int64_t)axis->f : axis->i;
    if (axis->kind == PROA_SCALAR_TENSOR) {
        if (axis->tensor->numel != 1)
            return OP_FAIL(who, INVALID_ARGUMENT, "axis", "is a tensor of shape %s; expected one element",
                           proa__shape_text(axis->tensor->shape, axis->tensor->ndim));
        *to = PROA_AXIS_UNKNOWN;
        if (!axis->tensor->data) return PROA_OK;
        value = proa_item_int(axis->tensor);
        if (proa_error() != PROA_OK) return proa_error();
    }
    return proa__axis(who, "axis", value, ndim, to);
}

static void drop_axes(const proa_tensor *x, unsigned mask, bool keepdim, proa_meta *m)
{
    m->ndim = 0;
    for (int i = 0; i < x->ndim; i++)
        if (!(mask >> i & 1)) m->shape[m->ndim++] = x->shape[i];
        else if (keepdim) m->shape[m->ndim++] = 1;
}

/* The result of a reduction over n axes that are known only when the program runs. */
static proa_status drop_unknown(const char *who, const proa_tensor *x, int64_t n, bool keepdim, proa_meta *m)
{
    int left = keepdim || x->ndim == 0 ? x->ndim : x->ndim - (int)n;
    if (n > (x->ndim ? x->ndim : 1))
        return OP_FAIL(who, INVALID_ARGUMENT, "axis", "names %lld axes; x has %d", (long long)n, x->ndim);
    for (m->ndim = 0; m->ndim < left;) m->shape[m->ndim++] = -1;
    return PROA_OK;
}

/* The fields of these ops have one layout but different structs: they are read by descriptor. */
static const proa_ints *axis_of(const proa_op *op, const void *args)
{
    return proa_field_at(&op->fields[1], args);
}
static bool keepdim_of(const proa_op *op, const void *args)
{
    return *(const bool *)proa_field_at(&op->fields[op->n_in + op->n_attr - 1], args);
}

static bool chooses(const proa_op *op) /* max, min, amax, amin; not mean, all, any */
{
    return strstr(op->name, "max") || strstr(op->name, "min");
}

/* Fails on an empty reduction: min and max of no elements do not exist. */
static proa_status check_not_empty(const char *who, const proa_tensor *x, unsigned mask)
{
    for (int i = 0; i < x->ndim; i++)
        if (mask >> i & 1 && x->shape[i] == 0)
            return OP_FAIL(who, INVALID_ARGUMENT, "x", "has shape %s: nothing to choose from along axis %d",
                           proa__shape_text(x->shape, x->ndim), i);
    return PROA_OK;
}

static proa_status reduced_shape(const proa_op *op, const void *args, proa_meta *m)
{
    const proa_tensor *x = *proa_field_tensor(&op->fields[0], args);
    const proa_ints *axis = axis_of(op, args);
    unsigned mask;
    int64_t n;
    if (proa__ints_unknown(axis)) {
        PROA_TRY(proa__ints_count(op->name, "axis", axis, &n));
        return drop_unknown(op->name, x, n, keepdim_of(op, args), m);
    }
    PROA_TRY(proa__reduce_mask(op->name, axis, x->ndim, &mask));
    if (x->numel <= 0 && chooses(op)) PROA_TRY(check_not_empty(op->name, x, mask));
    drop_axes(x, mask, keepdim_of(op, args), m);
    return PROA_OK;
}

proa_status reduce_infer(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = metas;
    m->dtype = (proa_dtype)(*proa_field_tensor(&op->fields[0], args))->dtype;
    return reduced_shape(op, args, m);
}

proa_status test_reduce_infer(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = metas;
    m->dtype = PROA_BOOL;
    return reduced_shape(op, args, m);
}

static proa_status typed_infer(const proa_op *op, const void *args, proa_meta *m, proa_dtype automatic)
{
    proa_dtype wanted = *(const proa_dtype *)proa_field_at(&op->fields[2], args);
    m->dtype = wanted == PROA_NODTYPE ? automatic : wanted;
    return reduced_shape(op, args, m);
}

proa_status sum_infer(const proa_op *op, const void *args, void *metas)
{
    proa_dtype d = (proa_dtype)(*proa_field_tensor(&op->fields[0], args))->dtype;
    return typed_infer(op, args, metas, d == PROA_BOOL || d == PROA_I32 ? PROA_I64 : d);
}

proa_status prod_infer(const proa_op *op, const void *args, void *metas)
{
    proa_dtype d = (proa_dtype)(*proa_field_tensor(&op->fields[0], args))->dtype;
    return typed_infer(op, args, metas, d == PROA_BOOL ? PROA_I64 : d);
}

proa_status p_norm_infer(const proa_p_norm_args *a, proa_p_norm_metas *m)
{
    int axis = 0;
    if (!a->asvector) PROA_TRY(proa__axis("p_norm", "axis", a->axis, a->x->ndim, &axis));
    unsigned mask = a->asvector ? (1u << a->x->ndim) - 1 : 1u << axis;
    if (a->x->ndim == 0) mask = 0;
    drop_axes(a->x, mask, a->keepdim, &m->out);
    m->out.dtype = (proa_dtype)a->x->dtype;
    return PROA_OK;
}

static proa_status arg_infer(const char *who, const proa_tensor *x, const proa_scalar *axis, bool keepdim,
                             proa_dtype dtype, proa_meta *m)
{
    int at;
    bool flat;
    PROA_TRY(proa__scan_axis(who, axis, x->ndim, &at, &flat));
    if (at == PROA_AXIS_UNKNOWN) {
        PROA_TRY(drop_unknown(who, x, 1, keepdim, m));
    } else {
        unsigned mask = flat ? (1u << x->ndim) - 1 : x->ndim ? 1u << at : 0;
        PROA_TRY(check_not_empty(who, x, mask));
        drop_axes(x, mask, keepdim, m);
    }
    m->dtype = dtype == PROA_NODTYPE ? PROA_I64 : dtype;
    return proa__check_dtype(who, m->dtype, 1u << PROA_I32 | 1u << PROA_I64);
}

proa_status argmax_infer(const proa_argmax_args *a, proa_argmax_metas *m)
{
    return arg_infer("argmax", a->x, &a->axis, a->keepdim, a->dtype, &m->out);
}

proa_status argmin_infer(const proa_argmin_args *a, proa_argmin_metas *m)
{
    return arg_infer("argmin", a->x, &a->axis, a->keepdim, a->dtype, &m->out);
}

proa_status cumsum_infer(const proa_cumsum_args *a, proa_cumsum_metas *m)
{
    int axis;
    bool flat;
    PROA_TRY(proa__scan_axis("cumsum", &a->axis, a->x->ndim, &axis, &flat));
    m->out = proa_meta_of(a->x);
    if (flat || a->flatten) {
        m->out.ndim = 1;
        m->out.shape[0] = a->x->numel;
    }
    if (a->dtype != PROA_NODTYPE) m->out.dtype = a->dtype;
    return PROA_OK;
}

proa_status cumprod_infer(const proa_cumprod_args *a, proa_cumprod_metas *m)
{
    int axis;
    PROA_TRY(proa__axis("cumprod", "dim", a->dim, a->x->ndim, &axis));
    m->out = proa_meta_of(a->x);
    if (a->dtype != PROA_NODTYPE) m->out.dtype = a->dtype;
    return PROA_OK;
}
