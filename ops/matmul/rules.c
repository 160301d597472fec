/* Gradients of the matrix products, made of public ops: for C = A·B, dA = dC·Bᴴ and dB = Aᴴ·dC (Petersen and
 * Pedersen, The Matrix Cookbook, 2012, section 2). May use core and the ops. */
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/shape.h"

#include "core/tensor.h"

static bool is_complex(const proa_tensor *t) { return t && (t->dtype == PROA_C64 || t->dtype == PROA_C128); }

static proa_tensor *conjugate(proa_tensor *t) { return is_complex(t) ? proa_conj(t) : t; }

/* t's leading dims as one: [a, b, c] → [a·b, c]. */
static proa_tensor *fold(proa_tensor *t)
{
    if (!t || t->ndim <= 2) return t;
    int64_t rows = 1, last = t->shape[t->ndim - 1];
    for (int i = 0; i < t->ndim - 1; i++) rows = rows < 0 || t->shape[i] < 0 ? -1 : rows * t->shape[i];
    if (rows < 0 && last < 0) return proa_flatten(t, .start_axis = 0, .stop_axis = t->ndim - 2);
    return proa_reshape(t, PROA_INTS(rows, last));
}

static proa_tensor *product_d_x(proa_tensor *y, proa_tensor *d_out, bool tx, bool ty)
{
    y = conjugate(y);
    return tx ? proa_matmul(y, d_out, .transpose_x = ty, .transpose_y = true)
              : proa_matmul(d_out, y, .transpose_y = !ty);
}

static proa_tensor *product_d_y(proa_tensor *x, proa_tensor *y, proa_tensor *d_out, bool tx, bool ty)
{
    x = conjugate(x);
    if (y->ndim == 2 && !tx) { /* one matrix for all batches: one product over all rows, no sum afterwards */
        x = fold(x);
        d_out = fold(d_out);
    }
    return ty ? proa_matmul(d_out, x, .transpose_x = true, .transpose_y = tx)
              : proa_matmul(x, d_out, .transpose_x = !tx);
}

proa_status matmul_vjp(const proa_matmul_args *a, proa_matmul_grads *g)
{
    proa_tensor *x = a->x, *y = a->y, *d_out = g->d_out;
    bool row = x->ndim == 1, column = y->ndim == 1;
    if (row && column) {
        if (g->want_x) g->d_x = proa_multiply(d_out, conjugate(y));
        if (g->want_y) g->d_y = proa_multiply(d_out, conjugate(x));
        return proa_error();
    }
    /* 1-D operands as the matrices they stood for; a row's extra leading dim goes when the engine un-
     * broadcasts. */
    if (row) x = proa_unsqueeze(x, PROA_INTS(0)), d_out = proa_unsqueeze(d_out, PROA_INTS(-2));
    if (column) y = proa_unsqueeze(y, PROA_INTS(1)), d_out = proa_unsqueeze(d_out, PROA_INTS(-1));
    if (!x || !y || !d_out) return proa_error();
    bool tx = a->transpose_x && !row, ty = a->transpose_y && !column;
    if (g->want_x) g->d_x = product_d_x(y, d_out, tx, ty);
    if (g->want_y) g->d_y = product_d_y(x, y, d_out, tx, ty);
    if (column && g->want_y && g->d_y) g->d_y = proa_squeeze(g->d_y, .axis = PROA_INTS(-1));
    return proa_error();
}

proa_status bmm_vjp(const proa_bmm_args *a, proa_bmm_grads *g)
{
    if (g->want_x) g->d_x = product_d_x(a->y, g->d_out, false, false);
    if (g->want_y) g->d_y = product_d_y(a->x, a->y, g->d_out, false, false);
    return proa_error();
}

proa_status mv_vjp(const proa_mv_args *a, proa_mv_grads *g)
{
    if (g->want_x)
        g->d_x = proa_multiply(proa_unsqueeze(g->d_out, PROA_INTS(1)),
                               proa_unsqueeze(conjugate(a->vec), PROA_INTS(0)));
    if (g->want_vec) g->d_vec = proa_matmul(conjugate(a->x), g->d_out, .transpose_x = true);
    return proa_error();
}

proa_status dot_vjp(const proa_dot_args *a, proa_dot_grads *g)
{
    proa_tensor *d_out = a->x->ndim == 2 ? proa_unsqueeze(g->d_out, PROA_INTS(1)) : g->d_out;
    if (g->want_x) g->d_x = proa_multiply(d_out, conjugate(a->y));
    if (g->want_y) g->d_y = proa_multiply(d_out, conjugate(a->x));
    return proa_error();
}

proa_status addmm_vjp(const proa_addmm_args *a, proa_addmm_grads *g)
{
    proa_tensor *scaled = a->alpha == 1 ? g->d_out : proa_scale(g->d_out, .scale = PROA_SCALAR(a->alpha));
    if (!scaled) return proa_error();
    if (g->want_input)
        g->d_input = a->beta == 1 ? g->d_out : proa_scale(g->d_out, .scale = PROA_SCALAR(a->beta));
    if (g->want_x) g->d_x = product_d_x(a->y, scaled, false, false);
    if (g->want_y) g->d_y = product_d_y(a->x, a->y, scaled, false, false);
    return proa_error();
}

/* True where a device is to sum a bias's gradient while it makes the weight's, by an op that has no gradient
 * of its own. Programs get it from a pass. */
static bool has_sums(const proa_linear_args *a, const proa_tensor *d_out)
{
    int n = d_out->ndim;
    bool floating = d_out->dtype >= PROA_F16 && d_out->dtype <= PROA_F64;
    return d_out->flags & PROA_T_DEVICE && !proa_door_is_open(PROA_DOOR_RECORD) && n > 1 && floating &&
           a->bias->shape[0] == d_out->shape[n - 1];
}

proa_status linear_vjp(const proa_linear_args *a, proa_linear_grads *g)
{
    proa_tensor *x = a->x, *d_out = g->d_out;
    bool together = g->want_bias && g->want_weight && has_sums(a, d_out);
    if (together) {
        proa_linear_weight_grad_result made = proa_linear_weight_grad(x, d_out);
        g->d_weight = made.d_weight, g->d_bias = made.d_bias;
    } else if (g->want_bias) {
        g->d_bias = d_out;
    }
    if (x->ndim == 1) x = proa_unsqueeze(x, PROA_INTS(0)), d_out = proa_unsqueeze(d_out, PROA_INTS(0));
    if (!x || !d_out) return proa_error();
    if (g->want_x) g->d_x = product_d_x(a->weight, d_out, false, false);
    if (g->want_weight && !together) g->d_weight = product_d_y(x, a->weight, d_out, false, false);
    return proa_error();
}
