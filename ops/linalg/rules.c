/* Gradients of linear algebra, made of public ops. Formulas: Giles, An extended collection of matrix
 * derivative results (2008); Murray, Differentiation of the Cholesky decomposition (2016); Townsend,
 * Differentiating the singular value decomposition (2016); Liao et al., Differentiable programming tensor
 * networks (2019) for QR. For complex matrices ᵀ is ᴴ. May use core and the ops. */
#include "ops/linalg/linalg.h"

#include "ops/ints.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/linalg.h"
#include "impl/matmul.h"
#include "impl/reduce.h"
#include "impl/shape.h"

static bool is_complex(const proa_tensor *t) { return t && (t->dtype == PROA_C64 || t->dtype == PROA_C128); }

static proa_tensor *conjugate(proa_tensor *t) { return is_complex(t) ? proa_conj(t) : t; }

/* The last two axes exchanged. */
static proa_tensor *flipped(proa_tensor *t)
{
    int64_t perm[PROA_MAX_DIMS];
    if (!t) return NULL;
    for (int i = 0; i < t->ndim; i++) perm[i] = i < t->ndim - 2 ? i : 2 * t->ndim - 3 - i;
    return proa_transpose(t, ((proa_ints){t->ndim, perm, NULL, NULL}));
}

static proa_tensor *adjoint(proa_tensor *t) { return conjugate(flipped(t)); }

/* xᴴ·y and x·yᴴ */
static proa_tensor *left_adjoint(proa_tensor *x, proa_tensor *y)
{
    return proa_matmul(conjugate(x), y, .transpose_x = true);
}
static proa_tensor *right_adjoint(proa_tensor *x, proa_tensor *y)
{
    return proa_matmul(x, conjugate(y), .transpose_y = true);
}

/* t·diag(v) and diag(v)·t */
static proa_tensor *columns_by(proa_tensor *t, proa_tensor *v)
{
    return proa_multiply(t, proa_unsqueeze(v, PROA_INTS(-2)));
}
static proa_tensor *rows_by(proa_tensor *t, proa_tensor *v)
{
    return proa_multiply(t, proa_unsqueeze(v, PROA_INTS(-1)));
}

static proa_tensor *sum_of(proa_tensor *a, proa_tensor *b) { return proa__is_given(a) ? proa_add(a, b) : b; }

/* Numbers of a batch, as 1×1 matrices. */
static proa_tensor *as_matrices(proa_tensor *t)
{
    return proa_unsqueeze(proa_unsqueeze(t, PROA_INTS(-1)), PROA_INTS(-1));
}

/* 1 / (w[j] − w[i]) at [i, j], and 0 where they are equal: on the diagonal, and for equal values, whose term
 * is multiplied by zero for functions that have a gradient. */
static proa_tensor *gaps(proa_tensor *w)
{
    proa_tensor *gap = proa_subtract(proa_unsqueeze(w, PROA_INTS(-2)), proa_unsqueeze(w, PROA_INTS(-1)));
    proa_tensor *zero = proa_full_like(gap, 0.0), *equal = proa_equal(gap, zero);
    return proa_where(equal, zero, proa_reciprocal(proa_where(equal, proa_full_like(gap, 1.0), gap)));
}

static proa_tensor *negative(proa_tensor *t) { return proa_neg(t); }

/* Columns (axis −1) or rows (axis −2) [from, to) of t. */
static proa_tensor *part(proa_tensor *t, int64_t axis, int64_t from, int64_t to)
{
    if (!t) return NULL;
    int64_t dim = t->shape[t->ndim + axis];
    if (from == 0 && dim == to) return t;
    return proa_slice(t, PROA_INTS(axis + t->ndim), PROA_INTS(from), PROA_INTS(to));
}

/* ---- systems ---------------------------------------------------------------------------- */

/* out = L with x = L·Lᵀ: dx = ½(S + Sᵀ), S = L⁻ᵀ·Φ(Lᵀ·dL)·L⁻¹, Φ: the lower triangle, its diagonal halved. */
proa_status cholesky_vjp(const proa_cholesky_args *a, proa_cholesky_grads *g)
{
    proa_tensor *l = a->upper ? flipped(a->out) : a->out, *d = a->upper ? flipped(g->d_out) : g->d_out;
    proa_tensor *p = left_adjoint(l, d);
    p = proa_add(proa_tril(p), proa_tril(p, .diagonal = -1)); /* 2·Φ */
    p = proa_triangular_solve(l, p, .no_upper = true, .transpose = true);
    p = proa_triangular_solve(l, flipped(p), .no_upper = true, .transpose = true);
    g->d_x = proa_scale(proa_add(p, flipped(p)), .scale = PROA_SCALAR(0.25));
    return proa_error();
}

proa_status inverse_vjp(const proa_inverse_args *a, proa_inverse_grads *g)
{
    g->d_x = negative(left_adjoint(a->out, right_adjoint(g->d_out, a->out)));
    return proa_error();
}

/* dy = x⁻ᴴ·d_out, dx = −dy·outᴴ. */
proa_status solve_vjp(const proa_solve_args *a, proa_solve_grads *g)
{
    proa_tensor *out = a->out, *d_out = g->d_out;
    bool vector = linalg_is_vector(a->x, a->y);
    if (vector) out = proa_unsqueeze(out, PROA_INTS(-1)), d_out = proa_unsqueeze(d_out, PROA_INTS(-1));
    proa_tensor *d_y = proa_solve(adjoint(a->x), d_out);
    if (g->want_x) g->d_x = negative(right_adjoint(d_y, out));
    if (g->want_y) g->d_y = vector ? proa_squeeze(d_y, .axis = PROA_INTS(-1)) : d_y;
    return proa_error();
}

proa_status triangular_solve_vjp(const proa_triangular_solve_args *a, proa_triangular_solve_grads *g)
{
    proa_tensor *d_y = proa_triangular_solve(a->x, g->d_out, .no_upper = !a->upper,
                                             .transpose = !a->transpose, .unitriangular = a->unitriangular);
    int64_t diagonal = a->unitriangular ? 1 : 0;
    if (g->want_y) g->d_y = d_y;
    if (!g->want_x) return proa_error();
    proa_tensor *d = negative(a->transpose ? right_adjoint(a->out, d_y) : right_adjoint(d_y, a->out));
    g->d_x = a->upper ? proa_triu(d, .diagonal = diagonal) : proa_tril(d, .diagonal = -diagonal);
    return proa_error();
}

/* A = y·yᵀ (upper: yᵀ·y): dA = −dx·outᵀ, and dy = (dA + dAᵀ)·y (upper: y·(dA + dAᵀ)), the triangle of it. */
proa_status cholesky_solve_vjp(const proa_cholesky_solve_args *a, proa_cholesky_solve_grads *g)
{
    proa_tensor *d_x = proa_cholesky_solve(g->d_out, a->y, .upper = a->upper);
    if (g->want_x) g->d_x = d_x;
    if (!g->want_y) return proa_error();
    proa_tensor *d = negative(right_adjoint(d_x, a->out));
    d = proa_add(d, flipped(d));
    g->d_y =
        a->upper ? proa_triu(proa_matmul(proa_triu(a->y), d)) : proa_tril(proa_matmul(d, proa_tril(a->y)));
    return proa_error();
}

/* ---- powers and determinants --------------------------------------------------------------- */

/* Σ mⁱ·d·mⁿ⁻¹⁻ⁱ for i < n, by doubling: S of 2k is S·mᵏ + mᵏ·S, S of k + 1 is m·S + d·mᵏ. */
static proa_tensor *power_sum(proa_tensor *m, proa_tensor *d, uint64_t n)
{
    int bit = 63;
    while (!(n >> bit & 1)) bit--;
    proa_tensor *sum = d, *power = m;
    while (sum && power && bit-- > 0) {
        sum = proa_add(proa_matmul(sum, power), proa_matmul(power, sum));
        power = proa_matmul(power, power);
        if (n >> bit & 1) {
            sum = proa_add(proa_matmul(m, sum), proa_matmul(d, power));
            if (bit) power = proa_matmul(power, m);
        }
    }
    return sum;
}

proa_status matrix_power_vjp(const proa_matrix_power_args *a, proa_matrix_power_grads *g)
{
    if (a->n == 0) {
        g->d_x = proa_full_like(g->d_out, 0.0);
    } else if (a->n > 0) {
        g->d_x = power_sum(flipped(a->x), g->d_out, (uint64_t)a->n);
    } else {
        proa_tensor *m = flipped(proa_inverse(a->x));
        proa_tensor *d = power_sum(m, g->d_out, 0 - (uint64_t)a->n);
        g->d_x = negative(proa_matmul(m, proa_matmul(d, m)));
    }
    return proa_error();
}

/* x⁻ᵀ for the regular matrices of a batch; the identity for those that `zero` marks as singular. */
static proa_tensor *inverse_where_regular(proa_tensor *x, proa_tensor *zero)
{
    proa_tensor *identity = proa_tril(proa_triu(proa_full_like(x, 1.0)));
    return flipped(proa_inverse(proa_where(as_matrices(zero), identity, x)));
}

proa_status det_vjp(const proa_det_args *a, proa_det_grads *g)
{
    proa_tensor *zero = proa_equal(a->out, proa__zero_of(a->out));
    g->d_x = proa_multiply(as_matrices(proa_multiply(g->d_out, a->out)), inverse_where_regular(a->x, zero));
    return proa_error();
}

proa_status slogdet_vjp(const proa_slogdet_args *a, proa_slogdet_grads *g)
{
    proa_tensor *sign =
        proa_slice(a->out, PROA_INTS(0), PROA_INTS(0), PROA_INTS(1), .decrease_axis = PROA_INTS(0));
    proa_tensor *d =
        proa_slice(g->d_out, PROA_INTS(0), PROA_INTS(1), PROA_INTS(2), .decrease_axis = PROA_INTS(0));
    proa_tensor *none = proa__zero_of(a->out), *zero = proa_equal(sign, none);
    g->d_x = proa_multiply(as_matrices(proa_where(zero, none, d)), inverse_where_regular(a->x, zero));
    return proa_error();
}

/* ---- lu ------------------------------------------------------------------------------------- */

static proa_status unknown_dims(const char *op, const proa_tensor *x)
{
    return OP_FAIL(op, UNSUPPORTED, "x", "is %s; its gradient needs to know both dims of the matrices",
                   proa__tensor_text(x));
}

/* x = P·L·U. With k = min(m, n), L₁ and U₁ the k×k parts, L₂ the rows below, U₂ the columns beside: G =
 * tril(L₁ᵀ·dL₁ − U₂ part, −1) + triu(dU₁·U₁ᵀ − L₂ part), and P·L₁⁻ᵀ·G·U₁⁻ᵀ is the gradient of the k×k part.
 * */
proa_status lu_vjp(const proa_lu_args *a, proa_lu_grads *g)
{
    int64_t m = linalg_rows(a->out), n = linalg_columns(a->out), k = linalg_least(m, n);
    if (k < 0) return unknown_dims("lu", a->out);
    proa_lu_unpack_result f = proa_lu_unpack(a->out, a->pivots);
    proa_tensor *d = g->d_out, *l1 = part(f.l, -2, 0, k), *u1 = part(f.u, -1, 0, k),
                *d1 = part(part(d, -2, 0, k), -1, 0, k);
    proa_tensor *lower = left_adjoint(l1, proa_tril(d1, .diagonal = -1)),
                *upper = right_adjoint(proa_triu(d1), u1);
    if (n > k) lower = proa_subtract(lower, right_adjoint(part(d, -1, k, n), part(f.u, -1, k, n)));
    if (m > k) upper = proa_subtract(upper, left_adjoint(part(f.l, -2, k, m), part(d, -2, k, m)));
    proa_tensor *inner = proa_add(proa_tril(lower, .diagonal = -1), proa_triu(upper));
    inner = flipped(proa_triangular_solve(u1, flipped(inner))); /* inner·U₁⁻ᵀ */
    proa_tensor *out =
        proa_triangular_solve(l1, inner, .no_upper = true, .transpose = true, .unitriangular = true);
    if (n > k) {
        proa_tensor *beside = proa_triangular_solve(l1, part(d, -1, k, n), .no_upper = true,
                                                    .transpose = true, .unitriangular = true);
        out = out && beside ? proa_concat(PROA_LIST(out, beside), .axis = out->ndim - 1) : NULL;
    }
    if (m > k) {
        proa_tensor *below = flipped(proa_triangular_solve(u1, flipped(part(d, -2, k, m))));
        out = out && below ? proa_concat(PROA_LIST(out, below), .axis = out->ndim - 2) : NULL;
    }
    g->d_x = proa_matmul(f.p, out);
    return proa_error();
}

/* t with `count` zero columns (axis −1) or rows (axis −2) behind it. */
static proa_tensor *padded(proa_tensor *t, int axis, int64_t count)
{
    int64_t around[2 * PROA_MAX_DIMS] = {0};
    if (!t || count <= 0) return t;
    around[2 * (t->ndim + axis) + 1] = count;
    return proa_pad(t, ((proa_ints){2 * t->ndim, around, NULL, NULL}));
}

proa_status lu_unpack_vjp(const proa_lu_unpack_args *a, proa_lu_unpack_grads *g)
{
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x);
    proa_tensor *sum = PROA_NONE;
    if (!a->unpack_ludata) return PROA_OK;
    if (m < 0 || n < 0) return unknown_dims("lu_unpack", a->x);
    if (proa__is_given(g->d_l)) sum = padded(proa_tril(g->d_l, .diagonal = -1), -1, n - m);
    if (proa__is_given(g->d_u)) sum = sum_of(sum, padded(proa_triu(g->d_u), -2, m - n));
    if (proa__is_given(sum)) g->d_x = sum;
    return proa_error();
}

/* ---- qr -------------------------------------------------------------------------------------- */

/* For m ≥ n: dx = (dQ + Q·C)·R⁻ᵀ, where C is symmetric with the lower triangle of R·dRᵀ − dQᵀ·Q. */
static proa_tensor *qr_tall(proa_tensor *q, proa_tensor *r, proa_tensor *d_q, proa_tensor *d_r)
{
    proa_tensor *m = proa__is_given(d_r) ? right_adjoint(r, d_r) : PROA_NONE;
    if (proa__is_given(d_q)) m = sum_of(m, negative(left_adjoint(d_q, q)));
    if (!proa__is_given(m)) return NULL;
    m = proa_add(proa_tril(m), flipped(proa_tril(m, .diagonal = -1)));
    return flipped(proa_triangular_solve(r, flipped(sum_of(d_q, proa_matmul(q, m)))));
}

proa_status qr_vjp(const proa_qr_args *a, proa_qr_grads *g)
{
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x);
    if (m < 0 || n < 0) return unknown_dims("qr", a->x);
    if (a->mode == PROA_QR_MODE_R || (a->mode == PROA_QR_MODE_COMPLETE && m > n))
        return OP_FAIL("qr", UNSUPPORTED, "mode", "'%s' has no gradient for %s, as in Paddle; use 'reduced'",
                       a->mode == PROA_QR_MODE_R ? "r" : "complete", proa__tensor_text(a->x));
    if (m >= n) {
        g->d_x = qr_tall(a->q, a->r, g->d_q, g->d_r);
        return proa_error();
    }
    /* x = [X | Y], R = [U | V], Y = Q·V */
    proa_tensor *d_q = g->d_q, *d_r = g->d_r;
    if (!proa__is_given(d_r)) { /* V has no gradient, nor has Y but through X */
        g->d_x = padded(qr_tall(a->q, part(a->r, -1, 0, m), d_q, d_r), -1, n - m);
        return proa_error();
    }
    proa_tensor *v = part(a->r, -1, m, n), *d_v = part(d_r, -1, m, n);
    d_q = sum_of(d_q, right_adjoint(proa_matmul(a->q, v), d_v));
    proa_tensor *left = qr_tall(a->q, part(a->r, -1, 0, m), d_q, part(d_r, -1, 0, m));
    proa_tensor *right = proa_matmul(a->q, d_v);
    if (left && right) g->d_x = proa_concat(PROA_LIST(left, right), .axis = left->ndim - 1);
    return proa_error();
}

/* ---- svd -------------------------------------------------------------------------------------- */

/* xᵀ·y − yᵀ·x, over the gaps. */
static proa_tensor *turned(proa_tensor *product, proa_tensor *gap)
{
    return proa_multiply(proa_subtract(product, flipped(product)), gap);
}

/* dx = U·(((Uᵀ·dU − dUᵀ·U) ∘ F)·S + S·((Vᵀ·dV − dVᵀ·V) ∘ F) + dS)·Vᵀ, F the reciprocal gaps of s², and what
 * dU and dV have outside the spans of U and V. */
proa_status svd_vjp(const proa_svd_args *a, proa_svd_grads *g)
{
    int64_t m = linalg_rows(a->u), n = linalg_columns(a->vh), k = a->s->shape[a->s->ndim - 1];
    if (a->full_matrices && k < 0) return unknown_dims("svd", a->u);
    proa_tensor *u = a->u, *s = a->s, *vh = a->vh, *d_u = g->d_u, *d_vh = g->d_vh, *inner = PROA_NONE,
                *rest = PROA_NONE;
    if (a->full_matrices) {
        u = part(u, -1, 0, k), vh = part(vh, -2, 0, k);
        if (proa__is_given(d_u)) d_u = part(d_u, -1, 0, k);
        if (proa__is_given(d_vh)) d_vh = part(d_vh, -2, 0, k);
    }
    proa_tensor *gap = proa__is_given(d_u) || proa__is_given(d_vh) ? gaps(proa_square(s)) : PROA_NONE;
    if (proa__is_given(d_u)) {
        proa_tensor *along = left_adjoint(u, d_u);
        inner = columns_by(turned(along, gap), s);
        if (m != k || m < 0)
            rest = proa_matmul(columns_by(proa_subtract(d_u, proa_matmul(u, along)), proa_reciprocal(s)), vh);
    }
    if (proa__is_given(d_vh)) {
        proa_tensor *along = right_adjoint(d_vh, vh);
        inner = sum_of(inner, rows_by(turned(flipped(along), gap), s));
        if (n != k || n < 0)
            rest = sum_of(rest, proa_matmul(columns_by(u, proa_reciprocal(s)),
                                            proa_subtract(d_vh, proa_matmul(along, vh))));
    }
    proa_tensor *left = proa__is_given(inner) ? proa_matmul(u, inner) : PROA_NONE;
    if (proa__is_given(g->d_s)) left = sum_of(left, columns_by(u, g->d_s));
    if (proa__is_given(left)) g->d_x = sum_of(rest, proa_matmul(left, vh));
    return proa_error();
}

/* ---- eigenvalues --------------------------------------------------------------------------------- */

/* dx = V·(diag(dw) + ½(K + Kᴴ))·Vᴴ, K = (Vᴴ·dV) ∘ F, F the reciprocal gaps of the eigenvalues w, which are
 * read for dV only. */
static proa_tensor *hermitian_d_x(proa_tensor *w, proa_tensor *v, proa_tensor *d_w, proa_tensor *d_v)
{
    proa_tensor *left = PROA_NONE;
    proa_dtype d = (proa_dtype)v->dtype;
    if (proa__is_given(d_v)) {
        proa_tensor *gap = gaps(w);
        if (is_complex(v)) gap = proa_cast(gap, d);
        proa_tensor *k = proa_multiply(left_adjoint(v, d_v), gap);
        left = proa_matmul(v, proa_scale(proa_add(k, adjoint(k)), .scale = PROA_SCALAR(0.5)));
    }
    if (proa__is_given(d_w)) left = sum_of(left, columns_by(v, is_complex(v) ? proa_cast(d_w, d) : d_w));
    return proa__is_given(left) ? right_adjoint(left, v) : NULL;
}

proa_status eigh_vjp(const proa_eigh_args *a, proa_eigh_grads *g)
{
    g->d_x = hermitian_d_x(a->eigenvalues, a->eigenvectors, g->d_eigenvalues, g->d_eigenvectors);
    return proa_error();
}

/* Paddle's eigvalsh_grad has no eigenvalues, and no gradient of the eigenvectors: that comes from a second
 * gradient. */
proa_status eigvalsh_vjp(const proa_eigvalsh_args *a, proa_eigvalsh_grads *g)
{
    if (a->is_test)
        return OP_FAIL("eigvalsh", BAD_STATE, "is_test",
                       "is true: there are no eigenvectors, which the gradient needs");
    g->d_x = hermitian_d_x(a->eigenvalues, a->eigenvectors, g->d_eigenvalues, g->d_eigenvectors);
    return proa_error();
}

/* dx = V⁻ᴴ·(diag(dw) + (Vᴴ·dV − Vᴴ·V·diag(Re(Vᴴ·dV))) ∘ conj(F))·Vᴴ; what is subtracted keeps the columns'
 * lengths. */
proa_status eig_vjp(const proa_eig_args *a, proa_eig_grads *g)
{
    proa_tensor *v = a->eigenvectors, *d_v = g->d_eigenvectors, *inner = PROA_NONE;
    proa_dtype d = (proa_dtype)v->dtype;
    if (proa__is_given(d_v)) {
        proa_tensor *along = proa_real(proa_sum(proa_multiply(conjugate(v), d_v), .axis = PROA_INTS(-2)));
        inner = proa_subtract(left_adjoint(v, d_v), columns_by(left_adjoint(v, v), proa_cast(along, d)));
        inner = right_adjoint(proa_multiply(inner, conjugate(gaps(a->eigenvalues))), v);
    }
    if (proa__is_given(g->d_eigenvalues)) inner = sum_of(inner, rows_by(adjoint(v), g->d_eigenvalues));
    if (proa__is_given(inner)) g->d_x = proa_solve(adjoint(v), inner);
    return proa_error();
}
