/* Shape and dtype inference and argument checks of elementwise ops; implements ops/broadcast.h. May use core
 * and the op headers. */
#include "core/internal.h"
#include "core/run.h"
#include "core/tensor.h"
#include "ops/create/range.h"
#include "ops/broadcast.h"
#include "ops/windows.h"
#include "ops/ints.h"
#include "impl/elementwise.h"

#include <math.h>

static inline bool has_shape(const proa_meta *m, const proa_tensor *t)
{
    bool same = m->ndim == t->ndim;
    for (int i = 0; i < t->ndim && same; i++) same = m->shape[i] == t->shape[i];
    return same;
}

bool proa__broadcast_into(proa_meta *m, const proa_tensor *t)
{
    if (has_shape(m, t)) return true;
    int ndim = m->ndim > t->ndim ? m->ndim : t->ndim;
    int64_t shape[PROA_MAX_DIMS];
    for (int i = 0; i < ndim; i++) {
        int own = i - (ndim - m->ndim), other = i - (ndim - t->ndim);
        int64_t a = own < 0 ? 1 : m->shape[own], b = other < 0 ? 1 : t->shape[other];
        if (a == b || b == 1) shape[i] = a;
        else if (a == 1) shape[i] = b;
        else if (a < 0) shape[i] = b;
        else if (b < 0) shape[i] = a;
        else return false;
    }
    m->ndim = (int8_t)ndim;
    memcpy(m->shape, shape, (size_t)ndim * sizeof *shape);
    return true;
}

proa_status proa__broadcast_fail(const proa_op *op, const proa_field *f, const proa_meta *m,
                                 const proa_tensor *t)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                         "has shape %s, which does not broadcast with %s: each dim must be equal or 1, "
                         "counted from the right",
                         proa__shape_text(t->shape, t->ndim), proa__shape_text(m->shape, m->ndim));
}

/* Broadcasts all tensor inputs from field `first` on, which must have one dtype. */
static proa_status broadcast_inputs(const proa_op *op, const void *args, int first, proa_meta *m)
{
    const proa_tensor *x = *proa_field_tensor(&op->fields[first], args);
    m->dtype = (proa_dtype)x->dtype;
    m->ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++) m->shape[i] = x->shape[i];
    for (int i = first + 1; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        const proa_tensor *t = *proa_field_tensor(f, args);
        if (t->dtype == x->dtype && has_shape(m, t)) continue;
        PROA_TRY(proa__same_dtype(op, f->name, t, x));
        if (!proa__broadcast_into(m, t)) return proa__broadcast_fail(op, f, m, t);
    }
    return PROA_OK;
}

proa_status broadcast_infer(const proa_op *op, const void *args, void *metas)
{
    return broadcast_inputs(op, args, 0, metas);
}

proa_status compare_infer(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = metas;
    PROA_TRY(broadcast_inputs(op, args, 0, m));
    m->dtype = PROA_BOOL;
    return PROA_OK;
}

proa_status complex_infer(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = metas;
    PROA_TRY(broadcast_inputs(op, args, 0, m));
    m->dtype = m->dtype == PROA_F64 ? PROA_C128 : PROA_C64;
    return PROA_OK;
}

static proa_meta *same_as_first(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = metas;
    *m = proa_meta_of(*proa_field_tensor(&op->fields[0], args));
    return m;
}

proa_status test_infer(const proa_op *op, const void *args, void *metas)
{
    same_as_first(op, args, metas)->dtype = PROA_BOOL;
    return PROA_OK;
}

/* Integers give float32. */
proa_status floating_infer(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = same_as_first(op, args, metas);
    if (m->dtype <= PROA_I64) m->dtype = PROA_F32;
    return PROA_OK;
}

/* Complex gives the real dtype of its parts. */
proa_status real_infer(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = same_as_first(op, args, metas);
    if (m->dtype == PROA_C64) m->dtype = PROA_F32;
    if (m->dtype == PROA_C128) m->dtype = PROA_F64;
    return PROA_OK;
}

proa_status atan2_infer(const proa_op *op, const void *args, void *metas)
{
    proa_meta *m = metas;
    PROA_TRY(broadcast_inputs(op, args, 0, m));
    if (m->dtype <= PROA_I64) m->dtype = PROA_F64;
    return PROA_OK;
}

proa_status where_infer(const proa_op *op, const void *args, void *metas)
{
    const proa_tensor *condition = *proa_field_tensor(&op->fields[0], args);
    PROA_TRY(broadcast_inputs(op, args, 1, metas));
    return proa__broadcast_into(metas, condition)
               ? PROA_OK
               : proa__broadcast_fail(op, &op->fields[0], metas, condition);
}

proa_status cast_infer(const proa_cast_args *a, proa_cast_metas *m)
{
    if (a->dtype <= PROA_NODTYPE || a->dtype >= PROA_DTYPE_COUNT)
        return OP_FAIL("cast", INVALID_ARGUMENT, "dtype",
                       "is not given; expected one of PROA_BOOL … PROA_C128");
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->dtype;
    return PROA_OK;
}

/* True if s is a real number, which goes to *v, or is not given, which leaves it. */
static bool plain_number(const proa_scalar *s, double *v)
{
    if (s->kind == PROA_SCALAR_INT) *v = (double)s->i;
    else if (s->kind == PROA_SCALAR_FLOAT) *v = s->f;
    else return s->kind == PROA_SCALAR_NONE;
    return true;
}

proa_status clip_infer(const proa_clip_args *a, proa_clip_metas *m)
{
    PROA_TRY(proa__check_scalar("clip", "min", &a->min));
    PROA_TRY(proa__check_scalar("clip", "max", &a->max));
    double low = -INFINITY, high = INFINITY;
    if (plain_number(&a->min, &low) && plain_number(&a->max, &high) && !(low <= high))
        return OP_FAIL("clip", INVALID_ARGUMENT, "max", "is %g; expected min, %g, or more", high, low);
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status scale_infer(const proa_scale_args *a, proa_scale_metas *m)
{
    PROA_TRY(proa__check_scalar("scale", "scale", &a->scale));
    if (a->x->kind == PROA_ROWS && a->bias != 0)
        return OP_FAIL("scale", UNSUPPORTED, "bias",
                       "is %g, which rows that are not given cannot take (x is %s)", a->bias,
                       proa__tensor_text(a->x));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status pow_infer(const proa_pow_args *a, proa_pow_metas *m)
{
    PROA_TRY(proa__check_scalar("pow", "y", &a->y));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status prelu_infer(const proa_prelu_args *a, proa_prelu_metas *m)
{
    const proa_tensor *x = a->x, *alpha = a->alpha;
    m->out = proa_meta_of(x);
    if (alpha->dtype != x->dtype)
        return OP_FAIL("prelu", INVALID_ARGUMENT, "alpha", "is %s, but x is %s",
                       proa_dtype_name((proa_dtype)alpha->dtype), proa_dtype_name((proa_dtype)x->dtype));
    int64_t expected = 1;
    if (a->mode == PROA_PRELU_MODE_CHANNEL) {
        if (x->ndim < 2)
            return OP_FAIL("prelu", INVALID_ARGUMENT, "x", "has %d dims; one alpha a channel needs 2 or more",
                           x->ndim);
        expected = x->shape[proa__channels_last(a->data_format) ? x->ndim - 1 : 1];
    } else if (a->mode == PROA_PRELU_MODE_ELEMENT) {
        for (int i = 1; i < x->ndim; i++)
            expected = x->shape[i] < 0 || expected < 0 ? -1 : expected * x->shape[i];
    }
    if (expected >= 0 && alpha->numel >= 0 && alpha->numel != expected)
        return OP_FAIL("prelu", INVALID_ARGUMENT, "alpha", "has %lld elements, expected %lld for this mode",
                       (long long)alpha->numel, (long long)expected);
    return PROA_OK;
}
