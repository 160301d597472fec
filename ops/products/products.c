/* Shape inference and gradient rules of cross, kron and renorm. May use core, kernels and ops. */
#include "ops/products/products.h"

#include "core/error.h"
#include "core/run.h"
#include "ops/index/index.h"
#include "kernels/rowwise.h"
#include "impl/elementwise.h"
#include "impl/products.h"
#include "impl/reduce.h"

proa_status proa__cross_axis(const proa_tensor *x, int64_t given, int *axis)
{
    *axis = 0;
    if (given == 9) {
        while (*axis < x->ndim && x->shape[*axis] != 3) ++*axis;
        for (int i = 0; *axis == x->ndim && i < x->ndim; i++) /* in a program, an unknown one may be */
            if (x->shape[i] < 0) *axis = i;
        if (*axis == x->ndim)
            return OP_FAIL("cross", INVALID_ARGUMENT, "x", "is %s; expected an axis of length 3",
                           proa__tensor_text(x));
        return PROA_OK;
    }
    PROA_TRY(proa__single_axis("cross", "axis", given, x->ndim, axis));
    if (x->ndim && (x->shape[*axis] == 3 || x->shape[*axis] < 0)) return PROA_OK;
    return OP_FAIL("cross", INVALID_ARGUMENT, "x", "is %s; expected the length 3 along axis %d",
                   proa__tensor_text(x), *axis);
}

static proa_status same_dtype(const char *who, const proa_tensor *x, const proa_tensor *y)
{
    if (x->dtype == y->dtype) return PROA_OK;
    return proa__operand_dtype_fail(proa_find_op(who), "y", "is %s; expected x's dtype, %s",
                                    proa__tensor_text(y), proa_dtype_name((proa_dtype)x->dtype));
}

proa_status cross_infer(const proa_cross_args *a, proa_cross_metas *m)
{
    int axis;
    PROA_TRY(same_dtype("cross", a->x, a->y));
    PROA_TRY(proa__cross_axis(a->x, a->axis, &axis));
    m->out = proa_meta_of(a->x);
    if (rows_same_shape(a->x, a->y)) return PROA_OK;
    return OP_FAIL("cross", INVALID_ARGUMENT, "y", "is %s; expected x's shape, %s", proa__tensor_text(a->y),
                   proa__shape_text(a->x->shape, a->x->ndim));
}

/* d(x × y): dx gets y × g, dy gets g × x. */
proa_status cross_vjp(const proa_cross_args *a, proa_cross_grads *g)
{
    bool parts = a->x->dtype == PROA_C64 || a->x->dtype == PROA_C128;
    int64_t axis = a->axis ? a->axis : PROA_ZERO;
    if (g->want_x) g->d_x = proa_cross(parts ? proa_conj(a->y) : a->y, g->d_out, .axis = axis);
    if (g->want_y) g->d_y = proa_cross(g->d_out, parts ? proa_conj(a->x) : a->x, .axis = axis);
    return proa_error();
}

proa_status proa__kron_shape(const char *who, const proa_tensor *x, const proa_tensor *y, kron_shape *s)
{
    s->ndim = x->ndim > y->ndim ? x->ndim : y->ndim;
    for (int i = 0; i < s->ndim; i++) {
        int at_x = i - (s->ndim - x->ndim), at_y = i - (s->ndim - y->ndim);
        s->x[i] = at_x < 0 ? 1 : x->shape[at_x];
        s->y[i] = at_y < 0 ? 1 : y->shape[at_y];
        s->out[i] = -1;
        if (s->x[i] >= 0 && s->y[i] >= 0 && __builtin_mul_overflow(s->x[i], s->y[i], &s->out[i]))
            return OP_FAIL(who, OVERFLOW, "y", "makes axis %d longer than 2^63", i);
    }
    return PROA_OK;
}

proa_status kron_infer(const proa_op *op, const void *args, void *metas)
{
    const proa_kron_args *a = args;
    proa_meta *m = metas;
    kron_shape s;
    PROA_TRY(proa__same_dtype(op, "y", a->y, a->x));
    PROA_TRY(proa__kron_shape("kron", a->x, a->y, &s));
    *m = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = (int8_t)s.ndim};
    memcpy(m->shape, s.out, sizeof s.out);
    return PROA_OK;
}

proa_status kron_vjp(const proa_kron_args *a, proa_kron_grads *g)
{
    proa_kron_grad_result r = proa_kron_grad(a->x, a->y, g->d_out);
    g->d_x = r.d_x;
    g->d_y = r.d_y;
    return proa_error();
}

proa_status kron_grad_infer(const proa_kron_grad_args *a, proa_kron_grad_metas *m)
{
    kron_shape s;
    PROA_TRY(same_dtype("kron_grad", a->x, a->y));
    PROA_TRY(same_dtype("kron_grad", a->x, a->d_out));
    PROA_TRY(proa__kron_shape("kron_grad", a->x, a->y, &s));
    m->d_x = proa_meta_of(a->x);
    m->d_y = proa_meta_of(a->y);
    bool fits = a->d_out->ndim == s.ndim;
    for (int i = 0; fits && i < s.ndim; i++) fits = rows_dims_agree(s.out[i], a->d_out->shape[i]);
    if (fits) return PROA_OK;
    return OP_FAIL("kron_grad", INVALID_ARGUMENT, "d_out", "is %s; expected shape %s",
                   proa__tensor_text(a->d_out), proa__shape_text(s.out, s.ndim));
}

/* ---- renorm ------------------------------------------------------------------------------- */

proa_status renorm_infer(const proa_renorm_args *a, proa_renorm_metas *m)
{
    int axis;
    if (!(a->p > 0) || !(a->max_norm >= 0))
        return OP_FAIL("renorm", INVALID_ARGUMENT, a->p > 0 ? "max_norm" : "p", "is %g; expected %s",
                       a->p > 0 ? a->max_norm : a->p, a->p > 0 ? "0 or more" : "more than 0");
    m->out = proa_meta_of(a->x);
    if (a->x->ndim < 1) return OP_FAIL("renorm", INVALID_ARGUMENT, "x", "is 0-D and has no slices");
    return proa__axis("renorm", "axis", a->axis, a->x->ndim, &axis);
}

/* out = f x with f = M / n where the norm n is above M, else 1: d_x is f d, and where f changes
 * x Σ(d x) times df/dn dn/dx, with dn/dx = sign(x) |x|^(p − 1) n^(1 − p). */
proa_status renorm_vjp(const proa_renorm_args *a, proa_renorm_grads *g)
{
    int64_t others[PROA_MAX_DIMS];
    int n = 0, axis = (int)(a->axis < 0 ? a->axis + a->x->ndim : a->axis);
    for (int i = 0; i < a->x->ndim; i++)
        if (i != axis) others[n++] = i;
    proa_ints over = {n, others, NULL, NULL};
    proa_tensor *size = proa_abs(a->x), *zero = proa__zero_of(a->x);
    proa_tensor *powers = proa_pow(size, a->p), *dot = proa_multiply(g->d_out, a->x);
    if (n) powers = proa_sum(powers, .axis = over, .keepdim = true);
    if (n) dot = proa_sum(dot, .axis = over, .keepdim = true);
    proa_tensor *norm = proa_pow(powers, 1 / a->p);
    proa_tensor *limit = proa_scale(zero, .scale = PROA_SCALAR(0.0), .bias = a->max_norm);
    proa_tensor *above = proa_greater_than(norm, limit),
                *one = proa_scale(zero, .scale = PROA_SCALAR(0.0), .bias = 1);
    proa_tensor *safe = proa_where(above, norm, one), *inverse = proa_reciprocal(safe);
    proa_tensor *factor = proa_where(above, proa_scale(inverse, .scale = PROA_SCALAR(a->max_norm)), one);
    proa_tensor *slope = proa_multiply(proa_sign(a->x), proa_pow(proa_divide(size, safe), a->p - 1));
    proa_tensor *bend = proa_scale(proa_square(inverse), .scale = PROA_SCALAR(-a->max_norm));
    proa_tensor *turn = proa_where(above, proa_multiply(dot, bend), zero);
    g->d_x = proa_add(proa_multiply(factor, g->d_out), proa_multiply(turn, slope));
    return proa_error();
}
