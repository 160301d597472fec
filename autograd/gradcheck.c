/* Numeric gradient checker: compares the recorded gradient with central differences along one random
 * direction of all float64 inputs; order 2 checks the gradient's gradient in the same way. May use core and
 * ops. */
#include "autograd/backward.h"
#include "core/philox.h"

#include <proa/ops.h>

#include <math.h>

typedef struct checker {
    proa_tensors (*fn)(proa_tensors inputs, void *context);
    void *context;
    double eps, rtol, atol;
    uint64_t seed, drawn;
} checker;

static double draw(checker *c)
{
    return (double)proa__philox(c->seed, c->drawn++).v[0] / 4294967296.0 * 2 - 1;
}

/* Σ outputs·weights: a scalar function of fn's outputs. The weights are drawn from the same seed at every
 * call. */
static proa_tensor *weighted_sum(checker *c, proa_tensors inputs)
{
    c->drawn = 1u << 20; /* far from the numbers of the directions */
    proa_tensors outputs = c->fn(inputs, c->context);
    proa_tensor *sum = NULL;
    for (int64_t i = 0; i < outputs.count && !proa_error(); i++) {
        proa_tensor *y = outputs.at[i];
        if (!y || y == proa_none || y->dtype != PROA_F64) continue;
        proa_tensor *w = proa_full_like(y, 0);
        if (!w) return NULL;
        for (int64_t k = 0; k < w->numel; k++) ((double *)(void *)w->data)[k] = draw(c);
        proa_tensor *part = proa_sum(proa_multiply(y, w));
        sum = sum ? proa_add(sum, part) : part;
    }
    if (!sum && !proa_error()) proa_fail(PROA_ERR_WRONG_TYPE, "gradcheck: fn returned no float64 output");
    return sum;
}

/* Inputs moved by `step` along `directions` (NULL entries stay), as fresh leaves. */
static bool moved(proa_tensors inputs, double *const *directions, double step, proa_tensors *out)
{
    out->count = inputs.count;
    out->at = proa_scope_alloc((size_t)(inputs.count + 1) * sizeof *out->at);
    if (!out->at) return false;
    for (int64_t i = 0; i < inputs.count; i++) {
        PROA_NO_GRAD;
        out->at[i] = inputs.at[i] == proa_none ? proa_none : proa_assign(inputs.at[i]);
        if (!out->at[i]) return false;
        if (!directions[i]) continue;
        double *x = (double *)(void *)out->at[i]->data;
        for (int64_t k = 0; k < out->at[i]->numel; k++) x[k] += step * directions[i][k];
        if (proa_set_stop_gradient(out->at[i], false) != PROA_OK) return false;
    }
    return true;
}

/* The value whose derivative is checked: fn's weighted sum (order 1), or the weighted sum of its
 * gradients (order 2). */
static proa_tensor *target(checker *c, proa_tensors inputs, int order)
{
    proa_tensor *value = weighted_sum(c, inputs);
    if (!value || order == 1) return value;
    proa_tensor **wanted = proa_scope_alloc((size_t)inputs.count * sizeof(proa_tensor *));
    if (!wanted) return NULL;
    int64_t n = 0;
    for (int64_t i = 0; i < inputs.count; i++)
        if (inputs.at[i] != proa_none && inputs.at[i]->flags & PROA_T_GRAD) wanted[n++] = inputs.at[i];
    proa_tensors grads =
        proa_grad((proa_tensors){1, &value}, (proa_tensors){n, wanted}, (proa_tensors){0, NULL},
                  (proa_grad_opts){.create_graph = true, .allow_unused = true});
    proa_tensor *sum = NULL;
    for (int64_t i = 0; i < grads.count && !proa_error(); i++) {
        if (grads.at[i] == proa_none || !(grads.at[i]->flags & PROA_T_GRAD))
            continue; /* independent of the inputs */
        proa_tensor *w = proa_full_like(grads.at[i], 0);
        if (!w) return NULL;
        for (int64_t k = 0; k < w->numel; k++) ((double *)(void *)w->data)[k] = draw(c);
        proa_tensor *part = proa_sum(proa_multiply(grads.at[i], w));
        sum = sum ? proa_add(sum, part) : part;
    }
    return sum ? sum : proa_error() ? NULL : proa_none; /* linear function: its second derivative is zero */
}

static double **make_directions(checker *c, proa_tensors inputs)
{
    double **d = proa_scope_alloc((size_t)(inputs.count + 1) * sizeof *d);
    if (!d) return NULL;
    c->drawn = 0;
    for (int64_t i = 0; i < inputs.count; i++) {
        const proa_tensor *t = inputs.at[i];
        d[i] = NULL;
        if (t == proa_none || t->dtype != PROA_F64 || t->numel == 0) continue;
        d[i] = proa_scope_alloc((size_t)t->numel * sizeof(double));
        if (!d[i]) return NULL;
        for (int64_t k = 0; k < t->numel; k++) d[i][k] = draw(c);
    }
    return d;
}

static proa_status recorded_slope(checker *c, proa_tensors inputs, double *const *directions, int order,
                                  double *slope)
{
    proa_tensors at;
    *slope = 0;
    if (!moved(inputs, directions, 0, &at)) return proa_error();
    proa_tensor *value = target(c, at, order);
    if (!value) return proa_error();
    if (value == proa_none || !(value->flags & PROA_T_GRAD)) return PROA_OK;
    for (int64_t i = 0; i < at.count; i++) {
        if (!directions[i]) continue;
        proa_tensors g =
            proa_grad((proa_tensors){1, &value}, (proa_tensors){1, &at.at[i]}, (proa_tensors){0, NULL},
                      (proa_grad_opts){.retain_graph = true, .allow_unused = true});
        if (g.count != 1) return proa_error();
        if (g.at[0] == proa_none) continue;
        proa_tensor *whole = proa_assign(g.at[0]);
        if (!whole) return proa_error();
        const double *v = (const double *)(const void *)whole->data;
        for (int64_t k = 0; k < whole->numel; k++) *slope += v[k] * directions[i][k];
    }
    return PROA_OK;
}

static proa_status numeric_value(checker *c, proa_tensors inputs, double *const *directions, int order,
                                 double step, double *value)
{
    PROA_SCOPED;
    proa_tensors at;
    if (!moved(inputs, directions, step, &at)) return proa_error();
    proa_tensor *t = target(c, at, order);
    if (!t) return proa_error();
    *value = t == proa_none ? 0 : proa_item(t);
    return proa_error();
}

static proa_status check_order(checker *c, proa_tensors inputs, double *const *directions, int order)
{
    PROA_SCOPED;
    double slope = 0, up = 0, down = 0;
    PROA_TRY(recorded_slope(c, inputs, directions, order, &slope));
    PROA_TRY(numeric_value(c, inputs, directions, order, c->eps, &up));
    PROA_TRY(numeric_value(c, inputs, directions, order, -c->eps, &down));
    double numeric = (up - down) / (2 * c->eps);
    double scale = fabs(numeric) > fabs(slope) ? fabs(numeric) : fabs(slope);
    /* error bound of the difference: cancellation in up − down */
    double noise = 8 * 2.3e-16 * (fabs(up) + fabs(down)) / c->eps;
    if (fabs(numeric - slope) <= c->atol + c->rtol * scale + noise) return PROA_OK;
    return proa_fail(PROA_ERR_NUMERIC,
                     "gradcheck: order %d: the recorded gradient along a random direction is %.12g, central "
                     "differences give %.12g",
                     order, slope, numeric);
}

proa_status proa_gradcheck(proa_tensors (*fn)(proa_tensors inputs, void *context), proa_tensors inputs,
                           void *context, proa_gradcheck_opts opts)
{
    PROA_TRY(proa_error());
    if (!fn || inputs.count <= 0 || !inputs.at)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "gradcheck: fn and at least one input must be given");
    for (int64_t i = 0; i < inputs.count; i++)
        if (!inputs.at[i])
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "gradcheck: input %lld is NULL", (long long)i);
    PROA_SCOPED;
    checker c = {fn,
                 context,
                 opts.eps > 0 ? opts.eps : 1e-6,
                 opts.rtol > 0 ? opts.rtol : 1e-5,
                 opts.atol > 0 ? opts.atol : 1e-7,
                 opts.seed,
                 0};
    double **directions = make_directions(&c, inputs);
    if (!directions) return proa_error();
    PROA_TRY(check_order(&c, inputs, directions, 1));
    return opts.order >= 2 ? check_order(&c, inputs, directions, 2) : PROA_OK;
}
