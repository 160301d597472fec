/* Shape inference and gradient rules of concat, split, stack, unstack and unbind. May use core and ops. */
#include "ops/ints.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/shape.h"

/* ---- concat ----------------------------------------------------------------------------- */

/* Dim i of the parts must agree; an unknown one takes what the others know. */
static proa_status agree(const char *who, int k, int i, int64_t d, int64_t *have)
{
    if (*have < 0) *have = d;
    if (d < 0 || d == *have) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "x",
                   "entry %d has length %lld on axis %d; the ones before it have %lld", k, (long long)d, i,
                   (long long)*have);
}

static proa_status check_list(const char *who, const proa_tensors *x)
{
    if (x->count < 1)
        return OP_FAIL(who, INVALID_ARGUMENT, "x", "is an empty list; expected at least one tensor");
    for (int64_t k = 1; k < x->count; k++) {
        if (x->at[k]->dtype != x->at[0]->dtype)
            return OP_FAIL(who, INVALID_ARGUMENT, "x",
                           "entry %lld is %s, but the first is %s; convert with cast", (long long)k,
                           proa__tensor_text(x->at[k]), proa__tensor_text(x->at[0]));
        if (x->at[k]->ndim != x->at[0]->ndim)
            return OP_FAIL(who, INVALID_ARGUMENT, "x", "entry %lld is %s, but the first is %s: ranks differ",
                           (long long)k, proa__tensor_text(x->at[k]), proa__tensor_text(x->at[0]));
    }
    return PROA_OK;
}

/* *axis is UNKNOWN_AXIS if it is known only when the program runs. */
enum { UNKNOWN_AXIS = -1 };

static proa_status axis_or(const char *who, int64_t axis, const proa_ints *twin, int ndim, int *to)
{
    int64_t v;
    PROA_TRY(proa__int_or(who, "axis", axis, twin, &v));
    *to = UNKNOWN_AXIS;
    return v == PROA_UNKNOWN ? PROA_OK : proa__axis(who, "axis", v, ndim, to);
}

static void forget_dims(proa_meta *m)
{
    for (int i = 0; i < m->ndim; i++) m->shape[i] = -1;
}

static proa_status concat_axis(const proa_concat_args *a, int *axis)
{
    if (a->x.at[0]->ndim == 0)
        return OP_FAIL("concat", INVALID_ARGUMENT, "x", "holds 0-D tensors, which have no axis; use stack");
    return axis_or("concat", a->axis, &a->axis_tensor, a->x.at[0]->ndim, axis);
}

proa_status concat_infer(const proa_concat_args *a, proa_concat_metas *m)
{
    int axis;
    PROA_TRY(check_list("concat", &a->x));
    PROA_TRY(concat_axis(a, &axis));
    m->out = proa_meta_of(a->x.at[0]);
    if (axis == UNKNOWN_AXIS) forget_dims(&m->out);
    for (int k = 1; k < a->x.count && axis != UNKNOWN_AXIS; k++)
        for (int i = 0; i < m->out.ndim; i++) {
            int64_t d = a->x.at[k]->shape[i], *have = &m->out.shape[i];
            if (i != axis) {
                PROA_TRY(agree("concat", k, i, d, have));
            } else if (d < 0 || *have < 0) {
                *have = -1;
            } else if (__builtin_add_overflow(*have, d, have)) {
                return OP_FAIL("concat", OVERFLOW, "x", "is longer than 2^63 along axis %d", axis);
            }
        }
    return PROA_OK;
}

/* The part of d_out that belongs to input x, from *offset on, which moves to the part's end. In a program
 * with unknown lengths *at is the computed offset. */
static proa_tensor *part_of(proa_tensor *d_out, proa_tensor *x, int axis, int64_t *offset, proa_tensor **at)
{
    proa_ints axes = PROA_INTS(axis);
    if (!*at && x->shape[axis] >= 0) {
        int64_t from = *offset, to = *offset += x->shape[axis];
        return proa_slice(d_out, axes, PROA_INTS(from), PROA_INTS(to));
    }
    proa_tensor *length = proa_slice(proa_shape(x), PROA_INTS(0), PROA_INTS(axis), PROA_INTS(axis + 1));
    int32_t done = (int32_t)*offset;
    proa_tensor *from = *at ? *at : proa_from_data(&done, PROA_INTS(1), PROA_I32);
    *at = proa_add(from, length);
    proa_ints starts = {.tensor = from}, ends = {.tensor = *at};
    return proa_slice(d_out, axes, starts, ends);
}

/* x's dims as a tensor: of a shape that is known, an op that holds the numbers. */
static proa_tensor *dims_of(proa_tensor *x)
{
    if (x->numel < 0) return proa_shape(x);
    return proa_assign_value(PROA_INTS(x->ndim), PROA_I32,
                             .int_values = ((proa_ints){x->ndim, x->shape, NULL, NULL}));
}

/* The parts of d_out where only the run knows the axis: their lengths are taken from the shapes of x. */
static proa_status parts_along_variable(const proa_concat_args *a, proa_concat_grads *g)
{
    proa_tensor *axis = proa__axes_tensor(&a->axis_tensor, a->x.at[0]->ndim);
    proa_tensor **lengths = proa_scope_alloc((size_t)a->x.count * sizeof(proa_tensor *));
    int64_t *numbers = proa_scope_alloc((size_t)a->x.count * sizeof *numbers);
    if (!lengths || !numbers) return proa_error();
    for (int64_t k = 0; k < a->x.count; k++) {
        numbers[k] = 0;
        lengths[k] = proa_gather(dims_of(a->x.at[k]), axis);
    }
    g->d_x = proa_split(g->d_out, .sections = ((proa_ints){a->x.count, numbers, NULL, lengths}),
                        .axis_tensor = a->axis_tensor);
    return proa_error();
}

proa_status concat_vjp(const proa_concat_args *a, proa_concat_grads *g)
{
    int axis;
    int64_t offset = 0;
    proa_tensor *at = NULL;
    PROA_TRY(concat_axis(a, &axis));
    if (axis == UNKNOWN_AXIS) return parts_along_variable(a, g);
    g->d_x.at = proa_scope_alloc((size_t)a->x.count * sizeof *g->d_x.at);
    if (!g->d_x.at) return proa_error();
    g->d_x.count = a->x.count;
    for (int64_t k = 0; k < a->x.count; k++) g->d_x.at[k] = part_of(g->d_out, a->x.at[k], axis, &offset, &at);
    return proa_error();
}

/* ---- split ------------------------------------------------------------------------------ */

static proa_status split_axis(const proa_split_args *a, int *axis)
{
    if (a->x->ndim == 0) return OP_FAIL("split", INVALID_ARGUMENT, "x", "is 0-D and has no axis to part");
    return axis_or("split", a->axis, &a->axis_tensor, a->x->ndim, axis);
}

/* Each part is a tensor of its own. */
static proa_status check_parts(const char *who, int64_t n)
{
    if (n <= 1 << 24) return PROA_OK;
    return OP_FAIL(who, OVERFLOW, NULL, "would make %lld tensors; at most 2^24 are possible", (long long)n);
}

static proa_status split_even(const proa_split_args *a, int axis, proa_metas *out)
{
    int64_t dim = axis == UNKNOWN_AXIS ? -1 : a->x->shape[axis];
    if (a->num < 1 || (dim >= 0 && dim % a->num))
        return OP_FAIL("split", INVALID_ARGUMENT, "num",
                       "is %lld, which does not part axis %d of length %lld evenly", (long long)a->num, axis,
                       (long long)dim);
    PROA_TRY(check_parts("split", a->num));
    PROA_TRY(proa_metas_resize(out, a->num));
    for (int64_t k = 0; k < a->num; k++) {
        out->at[k] = proa_meta_of(a->x);
        if (axis != UNKNOWN_AXIS) out->at[k].shape[axis] = dim < 0 ? -1 : dim / a->num;
        else forget_dims(&out->at[k]);
    }
    return PROA_OK;
}

/* Lengths of the parts, which the run compares with the axis. */
static proa_status split_unknown(const proa_split_args *a, proa_metas *out)
{
    for (int64_t k = 0; k < out->count; k++) {
        int64_t part = proa__ints_at(&a->sections, k);
        if (part < -1 && part != PROA_UNKNOWN)
            return OP_FAIL("split", INVALID_ARGUMENT, "sections", "entry %lld is %lld", (long long)k,
                           (long long)part);
        out->at[k] = proa_meta_of(a->x);
        forget_dims(&out->at[k]);
    }
    return PROA_OK;
}

proa_status split_infer(const proa_split_args *a, proa_split_metas *m)
{
    int axis;
    int64_t n, rest, hole = -1;
    PROA_TRY(split_axis(a, &axis));
    PROA_TRY(proa__ints_count("split", "sections", &a->sections, &n));
    if (n == 0) return split_even(a, axis, &m->out);
    PROA_TRY(check_parts("split", n));
    PROA_TRY(proa_metas_resize(&m->out, n));
    if (axis == UNKNOWN_AXIS) return split_unknown(a, &m->out);
    rest = a->x->shape[axis];
    bool known = rest >= 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t part = proa__ints_at(&a->sections, k);
        m->out.at[k] = proa_meta_of(a->x);
        m->out.at[k].shape[axis] = part == PROA_UNKNOWN ? -1 : part;
        if (part == PROA_UNKNOWN) {
            known = false;
        } else if (part == -1) {
            if (hole >= 0) return OP_FAIL("split", INVALID_ARGUMENT, "sections", "has more than one −1");
            hole = k;
        } else if (part < 0 || (known && part > rest)) {
            return OP_FAIL("split", INVALID_ARGUMENT, "sections",
                           "entry %lld is %lld, but axis %d of x has %lld", (long long)k, (long long)part,
                           axis, (long long)a->x->shape[axis]);
        } else if (known) {
            rest -= part;
        }
    }
    if (!known) return PROA_OK;
    if (hole >= 0) m->out.at[hole].shape[axis] = rest;
    else if (rest)
        return OP_FAIL("split", INVALID_ARGUMENT, "sections", "sum to %lld, but axis %d of x has %lld",
                       (long long)(a->x->shape[axis] - rest), axis, (long long)a->x->shape[axis]);
    return PROA_OK;
}

proa_status split_vjp(const proa_split_args *a, proa_split_grads *g)
{
    g->d_x = proa_concat(g->d_out, .axis = a->axis, .axis_tensor = a->axis_tensor);
    return proa_error();
}

/* ---- stack, unstack, unbind ------------------------------------------------------------- */

proa_status stack_infer(const proa_stack_args *a, proa_stack_metas *m)
{
    int axis;
    PROA_TRY(check_list("stack", &a->x));
    proa_meta one = proa_meta_of(a->x.at[0]);
    for (int k = 1; k < a->x.count; k++)
        for (int i = 0; i < one.ndim; i++)
            PROA_TRY(agree("stack", k, i, a->x.at[k]->shape[i], &one.shape[i]));
    if (one.ndim == PROA_MAX_DIMS)
        return OP_FAIL("stack", INVALID_ARGUMENT, "x", "has %d axes already, the most possible", one.ndim);
    PROA_TRY(proa__axis("stack", "axis", a->axis, one.ndim + 1, &axis));
    m->out = one;
    m->out.ndim++;
    for (int i = one.ndim; i > axis; i--) m->out.shape[i] = one.shape[i - 1];
    m->out.shape[axis] = a->x.count;
    return PROA_OK;
}

proa_status stack_vjp(const proa_stack_args *a, proa_stack_grads *g)
{
    int axis;
    PROA_TRY(proa__axis("stack", "axis", a->axis, a->x.at[0]->ndim + 1, &axis));
    g->d_x.at = proa_scope_alloc((size_t)a->x.count * sizeof *g->d_x.at);
    if (!g->d_x.at) return proa_error();
    g->d_x.count = a->x.count;
    for (int64_t k = 0; k < a->x.count; k++)
        g->d_x.at[k] = proa_slice(g->d_out, PROA_INTS(axis), PROA_INTS(k), PROA_INTS(k + 1),
                                  .decrease_axis = PROA_INTS(axis));
    return proa_error();
}

static proa_status parts(const char *who, const char *arg, const proa_tensor *x, int64_t axis, int64_t num,
                         proa_metas *out)
{
    int at;
    if (x->ndim == 0) return OP_FAIL(who, INVALID_ARGUMENT, arg, "is 0-D and has no axis to part");
    PROA_TRY(proa__axis(who, "axis", axis, x->ndim, &at));
    int64_t n = x->shape[at];
    if (n < 0 && num <= 0)
        return OP_FAIL(who, UNSUPPORTED, arg,
                       "has an unknown length on axis %d; the number of parts must be known", at);
    if (num > 0 && n >= 0 && num != n)
        return OP_FAIL(who, INVALID_ARGUMENT, "num", "is %lld, but axis %d of x has %lld", (long long)num, at,
                       (long long)n);
    if (n < 0) n = num;
    PROA_TRY(check_parts(who, n));
    PROA_TRY(proa_metas_resize(out, n));
    for (int64_t k = 0; k < n; k++) {
        proa_meta *m = &out->at[k];
        *m = proa_meta_of(x);
        for (int i = at; i + 1 < x->ndim; i++) m->shape[i] = m->shape[i + 1];
        m->ndim--;
    }
    return PROA_OK;
}

proa_status unstack_infer(const proa_unstack_args *a, proa_unstack_metas *m)
{
    return parts("unstack", "x", a->x, a->axis, a->num, &m->out);
}
proa_status unbind_infer(const proa_unbind_args *a, proa_unbind_metas *m)
{
    return parts("unbind", "input", a->input, a->axis, 0, &m->out);
}

/* m: metas of the output list, one per part. */
proa_status unbind_view(proa_unbind_args *a, const proa_meta *m)
{
    const proa_metas *list = (const void *)m;
    const proa_tensor *x = a->input;
    int axis;
    int64_t strides[PROA_MAX_DIMS];
    PROA_TRY(proa__axis("unbind", "axis", a->axis, x->ndim, &axis));
    for (int i = 0; i + 1 < x->ndim; i++) strides[i] = x->strides[i < axis ? i : i + 1];
    if (!list->count) return PROA_OK;
    a->out.at = proa_scope_alloc((size_t)list->count * sizeof *a->out.at);
    if (!a->out.at) return proa_error();
    for (; a->out.count < list->count; a->out.count++) {
        int64_t k = a->out.count;
        proa_tensor *part =
            proa__tensor_view(a->input, x->ndim - 1, list->at[k].shape, strides, k * x->strides[axis]);
        if (!part) return proa_error();
        a->out.at[k] = part;
    }
    return PROA_OK;
}

proa_status unstack_vjp(const proa_unstack_args *a, proa_unstack_grads *g)
{
    g->d_x = proa_stack(g->d_out, .axis = a->axis);
    return proa_error();
}
proa_status unbind_vjp(const proa_unbind_args *a, proa_unbind_grads *g)
{
    g->d_input = proa_stack(g->d_out, .axis = a->axis);
    return proa_error();
}
