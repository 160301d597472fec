/* Gradients of the softmax family. With s = softmax(x): ds/dx · v = s · (v − Σ v·s), and the logarithm's is
 * v − s · Σ v. The fused backward ops' own rules are those formulas differentiated, from public ops. */
#include "impl/elementwise.h"
#include "impl/reduce.h"
#include "impl/softmax.h"

#include "kernels/rowwise.h"

static proa_tensor *sum_along(proa_tensor *x, int64_t axis)
{
    return proa_sum(x, .axis = PROA_INTS(axis), .keepdim = true);
}

proa_status softmax_vjp(const proa_softmax_args *a, proa_softmax_grads *g)
{
    if (g->want_x) g->d_x = proa_softmax_grad(a->out, g->d_out, .axis = rows_option(a->axis));
    return proa_error();
}

/* d_x = s·(v − Σ v·s). With w the gradient of d_x: d_v = s·(w − Σ w·s), d_s = w·(v − Σ v·s) − v·Σ w·s. */
proa_status softmax_grad_vjp(const proa_softmax_grad_args *a, proa_softmax_grad_grads *g)
{
    proa_tensor *w = g->d_d_x;
    if (g->want_d_out) g->d_d_out = proa_softmax_grad(a->out, w, .axis = rows_option(a->axis));
    if (g->want_out) {
        proa_tensor *vs = sum_along(proa_multiply(a->d_out, a->out), a->axis);
        proa_tensor *ws = sum_along(proa_multiply(w, a->out), a->axis);
        g->d_out = proa_subtract(proa_multiply(w, proa_subtract(a->d_out, vs)), proa_multiply(a->d_out, ws));
    }
    return proa_error();
}

proa_status log_softmax_vjp(const proa_log_softmax_args *a, proa_log_softmax_grads *g)
{
    if (g->want_x) g->d_x = proa_log_softmax_grad(a->out, g->d_out, .axis = rows_option(a->axis));
    return proa_error();
}

/* d_x = v − exp(y)·Σ v. With w the gradient of d_x: d_v = w − Σ w·exp(y), d_y = −w·exp(y)·Σ v. */
proa_status log_softmax_grad_vjp(const proa_log_softmax_grad_args *a, proa_log_softmax_grad_grads *g)
{
    proa_tensor *ws = proa_multiply(g->d_d_x, proa_exp(a->out));
    if (g->want_d_out) g->d_d_out = proa_subtract(g->d_d_x, sum_along(ws, a->axis));
    if (g->want_out) g->d_out = proa_neg(proa_multiply(ws, sum_along(a->d_out, a->axis)));
    return proa_error();
}
