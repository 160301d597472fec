/* Gradients of reductions and of running sums and products. Public ops only. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/ints.h"
#include "ops/reduce/axes.h"
#include "ops/shape/slice.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/reduce.h"
#include "impl/shape.h"
#include "impl/sort.h"

/* Reshapes t so that reduced axes have length 1 and it broadcasts with x. */
static proa_tensor *with_axes(proa_tensor *t, const proa_tensor *x, const char *who, const proa_ints *axis,
                              bool keepdim)
{
    unsigned mask;
    if (!t || keepdim) return t;
    if (proa__ints_unknown(axis)) {
        proa_tensor *which = proa__axes_tensor(axis, x->ndim);
        return proa_unsqueeze(t, ((proa_ints){.tensor = proa_sort(which).out}));
    }
    if (proa__reduce_mask(who, axis, x->ndim, &mask) != PROA_OK) return NULL;
    int64_t axes[PROA_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < x->ndim; i++)
        if (mask >> i & 1) axes[n++] = i;
    return n ? proa_unsqueeze(t, ((proa_ints){n, axes, NULL, NULL})) : t;
}

/* t expanded to x's shape: a view with strides of 0, or an expand op where it is recorded or captured. */
static proa_tensor *spread(proa_tensor *t, proa_tensor *x)
{
    const uint32_t unusual = PROA_T_SYMBOLIC | PROA_T_META | PROA_T_NOT_DENSE | PROA_T_BLOCKED;
    bool recorded = t && t->flags & PROA_T_GRAD && proa_door_is_open(PROA_DOOR_RECORD);
    if (!t || recorded || t->flags & unusual || proa_door_is_open(PROA_DOOR_CAPTURE))
        return proa_expand(t, proa__shape_like(x));
    proa_tensor w = proa__window(t);
    proa__expand_window(&w, x->ndim, x->shape);
    return proa__tensor_view(t, w.ndim, w.shape, w.strides, 0);
}

/* Number of elements that make one result; −1 when only running the program tells, 0 on an error. */
static int64_t term_count(const proa_tensor *x, const char *who, const proa_ints *axis)
{
    unsigned mask;
    int64_t n = 1;
    if (proa__ints_unknown(axis)) return -1;
    if (proa__reduce_mask(who, axis, x->ndim, &mask) != PROA_OK) return 0;
    for (int i = 0; i < x->ndim; i++)
        if (mask >> i & 1) n = x->shape[i] < 0 ? -1 : n < 0 ? n : n * x->shape[i];
    return n;
}

proa_status sum_vjp(const proa_sum_args *a, proa_sum_grads *g)
{
    g->d_x = spread(with_axes(g->d_out, a->x, "sum", &a->axis, a->keepdim), a->x);
    return proa_error();
}

proa_status mean_vjp(const proa_mean_args *a, proa_mean_grads *g)
{
    proa_tensor *d = spread(with_axes(g->d_out, a->x, "mean", &a->axis, a->keepdim), a->x);
    int64_t n = term_count(a->x, "mean", &a->axis);
    if (n > 0) {
        g->d_x = proa_scale(d, .scale = PROA_SCALAR(1.0 / (double)n));
    } else if (n < 0) { /* unknown at capture: the count is a sum of ones */
        proa_tensor *count = proa_sum(proa_full_like(d, 1), .axis = a->axis, .keepdim = true);
        g->d_x = proa_divide(d, count);
    } else {
        g->d_x = d;
    }
    return proa_error();
}

/* 2 (x − mean) / divisor; the gradient through the mean cancels. */
proa_status variance_vjp(const proa_variance_args *a, proa_variance_grads *g)
{
    proa_tensor *d = with_axes(g->d_out, a->x, "variance", &a->axis, a->keepdim);
    proa_tensor *away = proa_subtract(a->x, proa_mean(a->x, .axis = a->axis, .keepdim = true));
    int64_t n = term_count(a->x, "variance", &a->axis), less = a->unbiased ? 1 : 0;
    if (n >= 0) {
        d = proa_scale(d, .scale = PROA_SCALAR(2.0 / (double)(n > less ? n - less : 1)));
    } else { /* only running the program tells */
        proa_tensor *count = proa_sum(proa_full_like(a->x, 1), .axis = a->axis, .keepdim = true);
        proa_tensor *half = proa_scale(count, .scale = PROA_SCALAR(0.5), .bias = -0.5 * (double)less);
        d = proa_divide(d, proa_maximum(half, proa_scale(proa__zero_of(half), .bias = 0.5)));
    }
    g->d_x = proa_multiply(away, d);
    return proa_error();
}

/* Mask of the elements of x that equal the result. */
#define CHOSEN(op)                                                         \
    proa_tensor *out = with_axes(a->out, a->x, #op, &a->axis, a->keepdim); \
    proa_tensor *d = with_axes(g->d_out, a->x, #op, &a->axis, a->keepdim); \
    proa_tensor *chosen = proa_equal(a->x, out), *zero = proa__zero_of(d)

#define WHOLE_VJP(op)                                                     \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g) \
    {                                                                     \
        CHOSEN(op);                                                       \
        g->d_x = proa_where(chosen, d, zero);                             \
        return proa_error();                                              \
    }
WHOLE_VJP(max)
WHOLE_VJP(min)

#define SHARED_VJP(op)                                                              \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g)           \
    {                                                                               \
        CHOSEN(op);                                                                 \
        proa_tensor *ones = proa_cast(chosen, d ? (proa_dtype)d->dtype : PROA_F32); \
        proa_tensor *count = proa_sum(ones, .axis = a->axis, .keepdim = true);      \
        g->d_x = proa_where(chosen, proa_divide(d, count), zero);                   \
        return proa_error();                                                        \
    }
SHARED_VJP(amax)
SHARED_VJP(amin)

static proa_tensor *conj_if(proa_tensor *t)
{
    return t && (t->dtype == PROA_C64 || t->dtype == PROA_C128) ? proa_conj(t) : t;
}

/* The product of the others: out / x where nothing is 0; at the only zero, the product of the rest. */
proa_status prod_vjp(const proa_prod_args *a, proa_prod_grads *g)
{
    proa_tensor *x = proa_cast(a->x, (proa_dtype)a->out->dtype), *zero = proa__zero_of(x);
    proa_tensor *d = with_axes(g->d_out, a->x, "prod", &a->axis, a->keepdim);
    proa_tensor *is_zero = proa_equal(x, zero), *one = proa_scale(zero, .bias = 1);
    proa_tensor *safe = proa_where(is_zero, one, x);
    proa_tensor *zeros = proa_sum(is_zero, .axis = a->axis, .keepdim = true);
    proa_tensor *rest = proa_prod(safe, .axis = a->axis, .keepdim = true);
    proa_tensor *others = proa_add(zeros, proa_neg(proa_cast(is_zero, PROA_I64)));
    proa_tensor *lonely = proa_equal(others, proa__zero_of(others));
    proa_tensor *factor = proa_where(lonely, proa_divide(rest, safe), zero);
    g->d_x = proa_multiply(d, conj_if(factor));
    return proa_error();
}

proa_status logsumexp_vjp(const proa_logsumexp_args *a, proa_logsumexp_grads *g)
{
    proa_tensor *out = with_axes(a->out, a->x, "logsumexp", &a->axis, a->keepdim);
    proa_tensor *d = with_axes(g->d_out, a->x, "logsumexp", &a->axis, a->keepdim);
    g->d_x = proa_multiply(d, proa_exp(proa_subtract(a->x, out)));
    return proa_error();
}

/* sign(x) |x|^(p−1) / norm^(p−1); 0 where the norm is 0. */
proa_status p_norm_vjp(const proa_p_norm_args *a, proa_p_norm_grads *g)
{
    int64_t axis = a->axis;
    proa_ints axes = a->asvector ? (proa_ints){0} : (proa_ints){1, &axis, NULL, NULL};
    proa_tensor *out = with_axes(a->out, a->x, "p_norm", &axes, a->keepdim);
    proa_tensor *d = with_axes(g->d_out, a->x, "p_norm", &axes, a->keepdim);
    double p = a->porder;
    if (p == 0) {
        g->d_x = proa_full_like(a->x, 0);
    } else if (p > 1e308 || p < -1e308) {
        proa_tensor *chosen = proa_equal(proa_abs(a->x), out);
        g->d_x = proa_where(chosen, proa_multiply(d, proa_sign(a->x)), proa__zero_of(d));
    } else if (p == 1) {
        g->d_x = proa_multiply(d, proa_sign(a->x));
    } else {
        proa_tensor *zero = proa__zero_of(out), *one = proa_scale(zero, .bias = 1);
        proa_tensor *none = proa_equal(out, zero), *ratio = proa_divide(a->x, proa_where(none, one, out));
        proa_tensor *size = proa_abs(ratio);
        if (p == 2) size = ratio;
        else size = proa_multiply(proa_sign(ratio), proa_pow(size, p - 1));
        g->d_x = proa_multiply(d, proa_where(none, zero, size));
    }
    return proa_error();
}

proa_status cumsum_vjp(const proa_cumsum_args *a, proa_cumsum_grads *g)
{
    proa_tensor *d = proa_cumsum(g->d_out, .axis = a->axis, .flatten = a->flatten, .exclusive = a->exclusive,
                                 .reverse = !a->reverse);
    if (a->flatten || a->axis.kind == PROA_SCALAR_NONE) d = proa_reshape(d, proa__shape_like(a->x));
    g->d_x = d;
    return proa_error();
}

proa_status cumprod_vjp(const proa_cumprod_args *a, proa_cumprod_grads *g)
{
    proa_dtype d = (proa_dtype)a->out->dtype;
    g->d_x = proa_cumprod_grad(proa_cast(a->x, d), a->out, g->d_out, a->dim);
    return proa_error();
}
