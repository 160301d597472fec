/* Gradients of activations, and of their fused backward ops (double backward). Public ops only. */
#include "ops/elementwise/rules.h"
#include "ops/windows.h"
#include "impl/reduce.h"
#include "impl/shape.h"

#define GREATER(t, v) proa_greater_than(t, number_of(t, v))
#define LESS(t, v) proa_less_than(t, number_of(t, v))
#define BETWEEN(t, low, high) proa_logical_and(GREATER(t, low), LESS(t, high))

static proa_tensor *number_of(const proa_tensor *like, double v)
{
    return like ? proa_full(PROA_SCALAR_SHAPE, v, .dtype = (proa_dtype)like->dtype) : NULL;
}
/* min(x, 0): keeps exponentials finite where their branch is not taken. */
static proa_tensor *negative_part(proa_tensor *x) { return proa_minimum(x, proa__zero_of(x)); }

/* ---- rectifiers ---- */
proa_status relu_vjp(const proa_relu_args *a, proa_relu_grads *g)
{
    g->d_x = proa_relu_grad(a->out, g->d_out);
    return proa_error();
}
proa_status relu6_vjp(const proa_relu6_args *a, proa_relu6_grads *g)
{
    g->d_x = proa_relu6_grad(a->out, g->d_out);
    return proa_error();
}
proa_status leaky_relu_vjp(const proa_leaky_relu_args *a, proa_leaky_relu_grads *g)
{
    g->d_x = proa_leaky_relu_grad(a->x, g->d_out, .negative_slope = a->negative_slope);
    return proa_error();
}
WHERE_VJP(elu, GREATER(a->x, 0), proa_multiply(g->d_out, SCALED(proa_exp(negative_part(a->x)), a->alpha)))
WHERE_VJP(celu, GREATER(a->x, 0),
          proa_multiply(g->d_out, proa_exp(SCALED(negative_part(a->x), 1 / a->alpha))))
WHERE_VJP(thresholded_relu, GREATER(a->x, a->threshold), RULE_ZERO)
WHERE_VJP(hardtanh, BETWEEN(a->x, a->min, a->max), RULE_ZERO)
WHERE_VJP(hardshrink, proa_logical_or(GREATER(a->x, a->threshold), LESS(a->x, -a->threshold)), RULE_ZERO)
WHERE_VJP(softshrink, proa_logical_or(GREATER(a->x, a->threshold), LESS(a->x, -a->threshold)), RULE_ZERO)

proa_status selu_vjp(const proa_selu_args *a, proa_selu_grads *g)
{
    proa_tensor *negative = proa_multiply(g->d_out, AFFINE(a->out, 1, a->scale * a->alpha));
    g->d_x = proa_where(GREATER(a->out, 0), SCALED(g->d_out, a->scale), negative);
    return proa_error();
}

proa_status hardsigmoid_vjp(const proa_hardsigmoid_args *a, proa_hardsigmoid_grads *g)
{
    g->d_x = proa_hardsigmoid_grad(a->out, g->d_out, .slope = a->slope, .offset = a->offset);
    return proa_error();
}

proa_status hardswish_vjp(const proa_hardswish_args *a, proa_hardswish_grads *g)
{
    if (!rule_is_complex(a->x)) {
        g->d_x = proa_hardswish_grad(a->x, g->d_out);
        return proa_error();
    }
    proa_tensor *slope = rule_conj(AFFINE(a->x, 1.0 / 3, 0.5)), *x = proa_real(a->x);
    proa_tensor *upper = proa_where(LESS(x, 3), proa_multiply(g->d_out, slope), g->d_out);
    g->d_x = proa_where(GREATER(x, -3), upper, RULE_ZERO);
    return proa_error();
}

/* ---- smooth ones ---- */
proa_status sigmoid_vjp(const proa_sigmoid_args *a, proa_sigmoid_grads *g)
{
    if (rule_is_complex(a->out))
        g->d_x = proa_multiply(g->d_out, rule_conj(proa_multiply(a->out, AFFINE(a->out, -1, 1))));
    else g->d_x = proa_sigmoid_grad(a->out, g->d_out);
    return proa_error();
}

proa_status silu_vjp(const proa_silu_args *a, proa_silu_grads *g)
{
    if (rule_is_complex(a->x)) {
        proa_tensor *s = proa_sigmoid(a->x);
        proa_tensor *f = proa_multiply(s, AFFINE(proa_multiply(a->x, AFFINE(s, -1, 1)), 1, 1));
        g->d_x = proa_multiply(g->d_out, rule_conj(f));
    } else {
        g->d_x = proa_silu_grad(a->x, g->d_out);
    }
    return proa_error();
}

proa_status swish_vjp(const proa_swish_args *a, proa_swish_grads *g)
{
    g->d_x = proa_silu_grad(a->x, g->d_out);
    return proa_error();
}

proa_status gelu_vjp(const proa_gelu_args *a, proa_gelu_grads *g)
{
    g->d_x = proa_gelu_grad(a->x, g->d_out, .approximate = a->approximate);
    return proa_error();
}

UNARY_VJP(logsigmoid, proa_sigmoid(proa_neg(a->x)))
UNARY_VJP(tanhshrink, proa_square(proa_tanh(a->x)))

/* Real: d_out / (1 + |x|)². Complex x has a direction besides: with r = |x|,
 * d_out / (1 + r) − x Re(conj(d_out) x) / (r (1 + r)²); at 0 the second term is 0. (Paddle's kernel takes
 * Re(x) d_out for that real part, which is no gradient unless d_out is real.) */
proa_status softsign_vjp(const proa_softsign_args *a, proa_softsign_grads *g)
{
    proa_tensor *r = proa_abs(a->x), *slope = proa_reciprocal(proa_square(AFFINE(r, 1, 1)));
    if (!rule_is_complex(a->x)) {
        g->d_x = proa_multiply(g->d_out, slope);
        return proa_error();
    }
    proa_dtype d = (proa_dtype)a->x->dtype;
    proa_tensor *zero = proa__zero_of(r);
    proa_tensor *safe = proa_where(proa_equal(r, zero), AFFINE(zero, 1, 1), r);
    proa_tensor *along = proa_real(proa_multiply(proa_conj(g->d_out), a->x));
    proa_tensor *bend = proa_multiply(proa_divide(along, safe), slope);
    proa_tensor *turned = proa_multiply(a->x, proa_cast(bend, d));
    g->d_x = proa_subtract(proa_divide(g->d_out, proa_cast(AFFINE(r, 1, 1), d)), turned);
    return proa_error();
}

proa_status softplus_vjp(const proa_softplus_args *a, proa_softplus_grads *g)
{
    if (!rule_is_complex(a->x)) {
        g->d_x = proa_softplus_grad(a->x, g->d_out, .beta = a->beta, .threshold = a->threshold);
        return proa_error();
    }
    proa_tensor *z = SCALED(a->x, a->beta);
    proa_tensor *soft = proa_multiply(g->d_out, rule_conj(proa_sigmoid(z)));
    g->d_x = proa_where(GREATER(proa_real(z), a->threshold), g->d_out, soft);
    return proa_error();
}

proa_status mish_vjp(const proa_mish_args *a, proa_mish_grads *g)
{
    g->d_x = proa_mish_grad(a->x, g->d_out, .threshold = a->threshold);
    return proa_error();
}

/* ---- prelu ---- */
/* alpha as it broadcasts with x */
static proa_tensor *spread_alpha(const proa_prelu_args *a, int64_t *shape)
{
    int n = a->x->ndim, c = proa__channels_last(a->data_format) ? n - 1 : 1;
    for (int i = 0; i < n; i++) shape[i] = 1;
    if (a->mode == PROA_PRELU_MODE_CHANNEL) shape[c] = a->x->shape[c];
    if (a->mode == PROA_PRELU_MODE_ELEMENT)
        for (int i = 1; i < n; i++) shape[i] = a->x->shape[i];
    return proa_reshape(a->alpha, ((proa_ints){n, shape, NULL, NULL}));
}

proa_status prelu_vjp(const proa_prelu_args *a, proa_prelu_grads *g)
{
    int64_t shape[PROA_MAX_DIMS], axes[PROA_MAX_DIMS];
    int n_axes = 0;
    proa_tensor *alpha = spread_alpha(a, shape), *positive = GREATER(a->x, 0);
    if (g->want_x) g->d_x = proa_where(positive, g->d_out, proa_multiply(g->d_out, alpha));
    if (!g->want_alpha) return proa_error();
    proa_tensor *d = proa_where(positive, RULE_ZERO, proa_multiply(g->d_out, a->x));
    for (int i = 0; i < a->x->ndim; i++)
        if (shape[i] == 1) axes[n_axes++] = i;
    if (n_axes) d = proa_sum(d, .axis = {n_axes, axes, NULL, NULL}, .keepdim = true);
    g->d_alpha = proa_reshape(d, ((proa_ints){a->alpha->ndim, a->alpha->shape, NULL, NULL}));
    return proa_error();
}

/* ---- gradients of the fused gradients: x (or out) and d_out are their inputs ---- */
proa_status relu_grad_vjp(const proa_relu_grad_args *a, proa_relu_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_relu_grad(a->out, g->d_d_x);
    return proa_error();
}

proa_status relu6_grad_vjp(const proa_relu6_grad_args *a, proa_relu6_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_relu6_grad(a->out, g->d_d_x);
    return proa_error();
}

proa_status hardswish_grad_vjp(const proa_hardswish_grad_args *a, proa_hardswish_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_hardswish_grad(a->x, g->d_d_x);
    if (!g->want_x) return proa_error();
    proa_tensor *bend = SCALED(proa_multiply(g->d_d_x, a->d_out), 1.0 / 3);
    g->d_x = proa_where(BETWEEN(a->x, -3, 3), bend, proa__zero_of(bend));
    return proa_error();
}

proa_status leaky_relu_grad_vjp(const proa_leaky_relu_grad_args *a, proa_leaky_relu_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_leaky_relu_grad(a->x, g->d_d_x, .negative_slope = a->negative_slope);
    return proa_error();
}

proa_status hardsigmoid_grad_vjp(const proa_hardsigmoid_grad_args *a, proa_hardsigmoid_grad_grads *g)
{
    if (g->want_d_out)
        g->d_d_out = proa_hardsigmoid_grad(a->out, g->d_d_x, .slope = a->slope, .offset = a->offset);
    return proa_error();
}

/* softplus'' = β σ (1 − σ) with σ = σ(β x); 0 above the threshold */
proa_status softplus_grad_vjp(const proa_softplus_grad_args *a, proa_softplus_grad_grads *g)
{
    if (g->want_d_out)
        g->d_d_out = proa_softplus_grad(a->x, g->d_d_x, .beta = a->beta, .threshold = a->threshold);
    if (!g->want_x) return proa_error();
    proa_tensor *z = SCALED(a->x, a->beta), *s = proa_sigmoid(z);
    proa_tensor *bend = proa_multiply(SCALED(s, a->beta), AFFINE(s, -1, 1));
    bend = proa_multiply(proa_multiply(g->d_d_x, a->d_out), bend);
    g->d_x = proa_where(GREATER(z, a->threshold), proa__zero_of(bend), bend);
    return proa_error();
}

/* mish'' = (1 − t²) σ (2 + x (1 − σ − 2 t σ)) with t = tanh(softplus(x)) */
proa_status mish_grad_vjp(const proa_mish_grad_args *a, proa_mish_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_mish_grad(a->x, g->d_d_x, .threshold = a->threshold);
    if (!g->want_x) return proa_error();
    proa_tensor *t = proa_tanh(proa_softplus(a->x, .threshold = a->threshold)), *s = proa_sigmoid(a->x);
    proa_tensor *slope = proa_multiply(AFFINE(proa_square(t), -1, 1), s);
    proa_tensor *less = proa_multiply(s, AFFINE(t, 2, 1));
    proa_tensor *f = proa_multiply(slope, AFFINE(proa_multiply(a->x, AFFINE(less, -1, 1)), 1, 2));
    g->d_x = proa_multiply(proa_multiply(g->d_d_x, a->d_out), f);
    return proa_error();
}

proa_status sigmoid_grad_vjp(const proa_sigmoid_grad_args *a, proa_sigmoid_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_sigmoid_grad(a->out, g->d_d_x);
    if (g->want_out) g->d_out = proa_multiply(proa_multiply(g->d_d_x, a->d_out), AFFINE(a->out, -2, 1));
    return proa_error();
}

proa_status tanh_grad_vjp(const proa_tanh_grad_args *a, proa_tanh_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_tanh_grad(a->out, g->d_d_x);
    if (g->want_out) g->d_out = proa_multiply(proa_multiply(g->d_d_x, a->d_out), SCALED(a->out, -2));
    return proa_error();
}

/* silu'' = σ (1 − σ) (2 + x (1 − 2σ)) */
proa_status silu_grad_vjp(const proa_silu_grad_args *a, proa_silu_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_silu_grad(a->x, g->d_d_x);
    if (!g->want_x) return proa_error();
    proa_tensor *s = proa_sigmoid(a->x), *slope = proa_multiply(s, AFFINE(s, -1, 1));
    proa_tensor *f = proa_multiply(slope, AFFINE(proa_multiply(a->x, AFFINE(s, -2, 1)), 1, 2));
    g->d_x = proa_multiply(proa_multiply(g->d_d_x, a->d_out), f);
    return proa_error();
}

/* gelu'' of the tanh form: with u = k (x + c x³), t = tanh u: (1 − t²) (u′ + x u″ / 2 − x t u′²) */
static proa_tensor *gelu_curvature_tanh(proa_tensor *x)
{
    const double k = 0.79788456080286535588, c = 0.044715;
    proa_tensor *s = proa_square(x);
    proa_tensor *t = proa_tanh(proa_multiply(x, AFFINE(s, k * c, k)));
    proa_tensor *slope = AFFINE(s, 3 * k * c, k);
    proa_tensor *bend =
        proa_subtract(SCALED(s, 3 * k * c), proa_multiply(proa_multiply(x, t), proa_square(slope)));
    return proa_multiply(AFFINE(proa_square(t), -1, 1), proa_add(slope, bend));
}

/* gelu'' = φ(x) (2 − x²) */
static proa_tensor *gelu_curvature(proa_tensor *x)
{
    proa_tensor *s = proa_square(x);
    return proa_multiply(SCALED(proa_exp(SCALED(s, -0.5)), 0.39894228040143267794), AFFINE(s, -1, 2));
}

proa_status gelu_grad_vjp(const proa_gelu_grad_args *a, proa_gelu_grad_grads *g)
{
    if (g->want_d_out) g->d_d_out = proa_gelu_grad(a->x, g->d_d_x, .approximate = a->approximate);
    if (!g->want_x) return proa_error();
    proa_tensor *f = a->approximate ? gelu_curvature_tanh(a->x) : gelu_curvature(a->x);
    g->d_x = proa_multiply(proa_multiply(g->d_d_x, a->d_out), f);
    return proa_error();
}
