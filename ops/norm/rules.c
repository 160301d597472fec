/* Gradients of the normalizations: the fused backward ops, and double backward, composed of public ops. With
 * x̂ = (x − m)·r, g = weight·d_out, M the mean over a row: d_x = r·(g − Mg − x̂·M(g·x̂)), which is linear and
 * self-adjoint in g; its derivative with respect to x gives the formulas of `second`. May use core and the
 * ops. */
#include "ops/norm/norm.h"

#include "ops/ints.h"
#include "impl/elementwise.h"
#include "impl/reduce.h"
#include "impl/shape.h"

/* ---- first order ---- */

proa_status batch_norm_vjp(const proa_batch_norm_args *a, proa_batch_norm_grads *g)
{
    if (!proa__is_given(g->d_out)) return PROA_OK;
    proa_batch_norm_grad_result r = proa_batch_norm_grad(
        a->x, a->weight, a->saved_mean, a->saved_variance, g->d_out, .is_test = a->is_test,
        .epsilon = a->epsilon == 0 ? (double)PROA_ZERO : a->epsilon, .data_format = a->data_format,
        .use_global_stats = a->use_global_stats, .trainable_statistics = a->trainable_statistics);
    if (g->want_x) g->d_x = r.d_x;
    if (g->want_weight) g->d_weight = r.d_weight;
    if (g->want_bias) g->d_bias = r.d_bias;
    return proa_error();
}

/* epsilon as an option, where a plain 0 would mean "default". */
#define EPSILON(a) .epsilon = (a)->epsilon == 0 ? (double)PROA_ZERO : (a)->epsilon

#define FIRST_ORDER(op, call)                                             \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g) \
    {                                                                     \
        if (!proa__is_given(g->d_out)) return PROA_OK;                    \
        proa_##op##_grad_result r = call;                                 \
        if (g->want_x) g->d_x = r.d_x;                                    \
        if (g->want_weight) g->d_weight = r.d_weight;                     \
        if (g->want_bias) g->d_bias = r.d_bias;                           \
        return proa_error();                                              \
    }

FIRST_ORDER(layer_norm, proa_layer_norm_grad(a->x, a->weight, a->mean, a->variance, g->d_out, EPSILON(a),
                                             .begin_norm_axis = a->begin_norm_axis))
FIRST_ORDER(group_norm, proa_group_norm_grad(a->x, a->num_groups, a->weight, a->mean, a->variance, g->d_out,
                                             EPSILON(a), .data_format = a->data_format))
FIRST_ORDER(instance_norm,
            proa_instance_norm_grad(a->x, a->weight, a->saved_mean, a->saved_variance, g->d_out, EPSILON(a)))

/* ---- second order ---- */

/* Shapes in which rows and weights are axes, so that one set of formulas serves all normalizations. */
typedef struct norm_view {
    proa_ints x, statistics, weight; /* shapes to reshape to */
    proa_ints row_axes;              /* axes of x that a mean reduces */
    proa_ints weight_axes;           /* axes of x that a weight's gradient sums over */
    int64_t values[5][4];
} norm_view;

/* A gradient op's tensors in the view's shapes; absent ones are NULL. */
typedef struct second_order {
    const norm_view *view;
    bool fixed;
    proa_tensor *x, *weight, *mean, *r, *d_out;
    proa_tensor *v, *v_weight, *v_bias; /* gradients of d_x, d_weight, d_bias */
} second_order;

/* t in a view's shape; half types as float32, as in the kernels; autograd casts the gradients back. */
static proa_tensor *shaped(proa_tensor *t, proa_ints shape)
{
    if (!proa__is_given(t)) return NULL;
    bool half = t->dtype == PROA_F16 || t->dtype == PROA_BF16;
    return proa_reshape(half ? proa_cast(t, PROA_F32) : t, shape);
}

static proa_tensor *row_mean(const second_order *s, proa_tensor *t)
{
    return proa_mean(t, .axis = s->view->row_axes, .keepdim = true);
}

static proa_tensor *plus(proa_tensor *a, proa_tensor *b) { return !a ? b : !b ? a : proa_add(a, b); }

/* r·(t − Mt − x̂·M(t·x̂)): the first-order rule, for any t. */
static proa_tensor *normalized(const second_order *s, proa_tensor *t, proa_tensor *x_hat)
{
    if (!t) return NULL;
    if (s->fixed) return proa_multiply(s->r, t);
    proa_tensor *along = proa_multiply(x_hat, row_mean(s, proa_multiply(t, x_hat)));
    return proa_multiply(s->r, proa_subtract(proa_subtract(t, row_mean(s, t)), along));
}

/* −r²·(x̂·(A − 2ab) + q − Mq), where a = M(v·x̂), b = M(g·x̂), A = M(v·g) − Mv·Mg − ab, q = v·b + g·a. */
static proa_tensor *through_statistics(const second_order *s, proa_tensor *g, proa_tensor *x_hat)
{
    proa_tensor *a = row_mean(s, proa_multiply(s->v, x_hat)), *b = row_mean(s, proa_multiply(g, x_hat));
    proa_tensor *ab = proa_multiply(a, b);
    proa_tensor *means = proa_multiply(row_mean(s, s->v), row_mean(s, g));
    proa_tensor *factor = proa_subtract(row_mean(s, proa_multiply(s->v, g)), means);
    factor = proa_subtract(factor, proa_add(ab, proa_add(ab, ab)));
    proa_tensor *q = proa_add(proa_multiply(s->v, b), proa_multiply(g, a));
    proa_tensor *sum = proa_add(proa_multiply(x_hat, factor), proa_subtract(q, row_mean(s, q)));
    return proa_neg(proa_multiply(proa_square(s->r), sum));
}

/* The gradients of a gradient op: to[0] for x, to[1] for weight (summed, in the view's shape), to[2]
 * for d_out. */
static proa_status second(const second_order *s, const bool *want, proa_tensor **to)
{
    proa_tensor *x_hat = proa_multiply(proa_subtract(s->x, s->mean), s->r);
    proa_tensor *g = s->weight ? proa_multiply(s->d_out, s->weight) : s->d_out;
    proa_tensor *d_g = normalized(s, s->v, x_hat);
    if (want[0]) {
        proa_tensor *by_weight = s->v_weight ? proa_multiply(s->v_weight, s->d_out) : NULL;
        proa_tensor *d_x = s->v && !s->fixed ? through_statistics(s, g, x_hat) : NULL;
        to[0] = plus(d_x, normalized(s, by_weight, x_hat));
    }
    if (want[1] && s->weight && d_g)
        to[1] = proa_sum(proa_multiply(d_g, s->d_out), .axis = s->view->weight_axes, .keepdim = true);
    if (want[2]) {
        proa_tensor *d = d_g && s->weight ? proa_multiply(d_g, s->weight) : d_g;
        if (s->v_weight) d = plus(d, proa_multiply(s->v_weight, x_hat));
        if (s->v_bias) d = plus(d, proa_expand_as(s->v_bias, s->x));
        to[2] = d;
    }
    return proa_error();
}

static proa_tensor *back(proa_tensor *t, const proa_tensor *like)
{
    return t ? proa_reshape(t, ((proa_ints){like->ndim, like->shape, NULL, NULL})) : NULL;
}

static int64_t dims_product(const proa_tensor *t, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n = n < 0 || t->shape[i] < 0 ? -1 : n * t->shape[i];
    return n;
}

/* Copies n ≤ 4 values to entry `which` of v->values and returns a list that is valid as long as v. */
static proa_ints list(norm_view *v, int which, int n, const int64_t *values)
{
    for (int i = 0; i < n; i++) v->values[which][i] = values[i];
    return (proa_ints){n, v->values[which], NULL, NULL};
}

#define LIST(v, which, n, ...) list(v, which, n, (const int64_t[]){__VA_ARGS__})

static void batch_view(norm_view *v, const proa_tensor *x, proa_data_format f)
{
    int64_t c = proa__norm_channels(x, f);
    bool last = proa__channels_last(f);
    int64_t inner = last ? 1 : dims_product(x, 2, x->ndim),
            outer = last ? dims_product(x, 0, x->ndim - 1) : x->shape[0];
    v->x = LIST(v, 0, 3, outer, c, inner);
    v->statistics = v->weight = LIST(v, 1, 3, 1, c, 1);
    v->row_axes = v->weight_axes = LIST(v, 2, 2, 0, 2);
}

static void layer_view(norm_view *v, const proa_tensor *x, int64_t axis)
{
    int64_t rows = dims_product(x, 0, (int)axis), n = dims_product(x, (int)axis, x->ndim);
    v->x = LIST(v, 0, 2, rows, n);
    v->statistics = LIST(v, 1, 2, rows, 1);
    v->weight = LIST(v, 2, 2, 1, n);
    v->row_axes = LIST(v, 3, 1, 1);
    v->weight_axes = LIST(v, 4, 1, 0);
}

static void group_view(norm_view *v, const proa_tensor *x, int64_t groups, proa_data_format f)
{
    bool last = proa__channels_last(f);
    int64_t each = proa__norm_channels(x, f) / groups, n = x->shape[0];
    int64_t pixels = last ? dims_product(x, 1, x->ndim - 1) : dims_product(x, 2, x->ndim);
    v->x = last ? LIST(v, 0, 4, n, pixels, groups, each) : LIST(v, 0, 4, n, groups, each, pixels);
    v->statistics = last ? LIST(v, 1, 4, n, 1, groups, 1) : LIST(v, 1, 4, n, groups, 1, 1);
    v->weight = last ? LIST(v, 2, 4, 1, 1, groups, each) : LIST(v, 2, 4, 1, groups, each, 1);
    v->row_axes = last ? LIST(v, 3, 2, 1, 3) : LIST(v, 3, 2, 2, 3);
    v->weight_axes = last ? LIST(v, 4, 2, 0, 1) : LIST(v, 4, 2, 0, 3);
}

/* The statistics as functions of x, where this rule's own gradient may be asked for: to the tape the saved
 * ones are constants. */
static void restore_statistics(second_order *s, double epsilon)
{
    if (s->fixed || !proa_door_is_open(PROA_DOOR_RECORD)) return;
    s->mean = row_mean(s, s->x);
    proa_tensor *variance = row_mean(s, proa_square(proa_subtract(s->x, s->mean)));
    s->r = proa_rsqrt(proa_scale(variance, .bias = epsilon));
}

/* Operands and results of the second-order rules of all normalizations. */
typedef struct norm_operands {
    proa_tensor *x, *weight, *d_out, *d_d_x, *d_d_weight, *d_d_bias;
    bool want[3]; /* d_x, d_weight, d_d_out */
    double epsilon;
    proa_tensor *made[3];
} norm_operands;

static proa_status second_rule(norm_operands *o, const norm_view *view, bool fixed, proa_tensor *mean,
                               proa_tensor *r)
{
    second_order s = {.view = view,
                      .fixed = fixed,
                      .x = shaped(o->x, view->x),
                      .weight = shaped(o->weight, view->weight),
                      .mean = shaped(mean, view->statistics),
                      .r = shaped(r, view->statistics),
                      .d_out = shaped(o->d_out, view->x),
                      .v = shaped(o->d_d_x, view->x),
                      .v_weight = shaped(o->d_d_weight, view->weight),
                      .v_bias = shaped(o->d_d_bias, view->weight)};
    restore_statistics(&s, o->epsilon);
    if (proa_error()) return proa_error();
    PROA_TRY(second(&s, o->want, o->made));
    o->made[0] = back(o->made[0], o->x);
    o->made[1] = back(o->made[1], o->weight);
    o->made[2] = back(o->made[2], o->x);
    return proa_error();
}

/* norm_operands from a gradient op's args `a` and gradients `g`. */
#define NORM_OPERANDS(a, g)                                                                \
    {                                                                                      \
        .x = (a)->x, .weight = (a)->weight, .d_out = (a)->d_out, .d_d_x = (g)->d_d_x,      \
        .d_d_weight = (g)->d_d_weight, .d_d_bias = (g)->d_d_bias, .epsilon = (a)->epsilon, \
        .want = {(g)->want_x, (g)->want_weight, (g)->want_d_out},                          \
    }

#define SECOND_ORDER(a, g, view, fixed, mean, r)                                   \
    do {                                                                           \
        norm_operands o = NORM_OPERANDS(a, g);                                     \
        PROA_TRY(second_rule(&o, &(view), fixed, mean, r));                        \
        (g)->d_x = o.made[0], (g)->d_weight = o.made[1], (g)->d_d_out = o.made[2]; \
        return PROA_OK;                                                            \
    } while (0)

static proa_tensor *inverse_deviation(proa_tensor *variance, double epsilon)
{
    return proa_rsqrt(proa_scale(variance, .bias = epsilon));
}

proa_status batch_norm_grad_vjp(const proa_batch_norm_grad_args *a, proa_batch_norm_grad_grads *g)
{
    if (BATCH_NORM_PASSES(a)) { /* d_x is d_out, and the parameters' gradients are constants */
        if (g->want_d_out && proa__is_given(g->d_d_x)) g->d_d_out = g->d_d_x;
        return proa_error();
    }
    norm_view view;
    batch_view(&view, a->x, a->data_format);
    SECOND_ORDER(a, g, view, BATCH_NORM_FIXED(a), a->saved_mean, a->saved_variance);
}

proa_status layer_norm_grad_vjp(const proa_layer_norm_grad_args *a, proa_layer_norm_grad_grads *g)
{
    norm_view view;
    layer_view(&view, a->x, a->begin_norm_axis);
    SECOND_ORDER(a, g, view, false, a->mean, inverse_deviation(a->variance, a->epsilon));
}

proa_status group_norm_grad_vjp(const proa_group_norm_grad_args *a, proa_group_norm_grad_grads *g)
{
    norm_view view;
    group_view(&view, a->x, a->num_groups, a->data_format);
    SECOND_ORDER(a, g, view, false, a->mean, inverse_deviation(a->variance, a->epsilon));
}

proa_status instance_norm_grad_vjp(const proa_instance_norm_grad_args *a, proa_instance_norm_grad_grads *g)
{
    norm_view view;
    group_view(&view, a->x, a->x->shape[1], PROA_DATA_FORMAT_NCHW);
    SECOND_ORDER(a, g, view, false, a->saved_mean, a->saved_variance);
}
