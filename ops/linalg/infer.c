/* Shapes and dtypes of the linear algebra ops. May use core only. */
#include "ops/linalg/linalg.h"

#include "core/error.h"
#include "core/run.h"
#include "ops/ints.h"

/* −1 is a dim that only the program's run will know: it agrees with everything. */
static bool agree(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }

static proa_status matrices(const char *op, const char *argument, const proa_tensor *x)
{
    if (x->ndim >= 2) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, argument, "must have 2 dims or more, got %s", proa__tensor_text(x));
}

static proa_status square(const char *op, const char *argument, const proa_tensor *x)
{
    PROA_TRY(matrices(op, argument, x));
    if (agree(linalg_rows(x), linalg_columns(x))) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, argument, "must hold square matrices, got %s", proa__tensor_text(x));
}

static proa_status same_dtype(const char *op, const char *argument, const proa_tensor *y,
                              const proa_tensor *x)
{
    return y->dtype == x->dtype ? PROA_OK : proa__same_dtype(proa_find_op(op), argument, y, x);
}

/* The batch dims of x alone, as a shape of dtype d. */
static proa_meta batch_of(const proa_tensor *x, proa_dtype d)
{
    proa_meta m = {.dtype = d, .ndim = (int8_t)(x->ndim - 2)};
    for (int i = 0; i < m.ndim; i++) m.shape[i] = x->shape[i];
    return m;
}

static void push(proa_meta *m, int64_t dim) { m->shape[m->ndim++] = dim; }

static proa_meta matrix_of(const proa_tensor *x, proa_dtype d, int64_t rows, int64_t columns)
{
    proa_meta m = batch_of(x, d);
    push(&m, rows), push(&m, columns);
    return m;
}

static proa_meta nothing(proa_dtype d) { return (proa_meta){.dtype = d, .ndim = 1}; }

static proa_dtype real_of(const proa_tensor *x)
{
    proa_dtype d = (proa_dtype)x->dtype;
    return d == PROA_C64 ? PROA_F32 : d == PROA_C128 ? PROA_F64 : d;
}

static proa_dtype complex_of(const proa_tensor *x)
{
    proa_dtype d = (proa_dtype)x->dtype;
    return d == PROA_F32 ? PROA_C64 : d == PROA_F64 ? PROA_C128 : d;
}

/* ---- systems ---------------------------------------------------------------------------- */

/* The broadcast batch dims of a and b, whose last core_a and core_b dims are no batch. */
static proa_status broadcast(const char *op, const proa_tensor *a, int core_a, const proa_tensor *b,
                             int core_b, proa_meta *m)
{
    int da = a->ndim - core_a, db = b->ndim - core_b;
    m->ndim = (int8_t)(da > db ? da : db);
    for (int i = 0; i < m->ndim; i++) {
        int ia = i - (m->ndim - da), ib = i - (m->ndim - db);
        int64_t p = ia < 0 ? 1 : a->shape[ia], q = ib < 0 ? 1 : b->shape[ib];
        if (p != 1 && q != 1 && !agree(p, q))
            return OP_FAIL(
                op, INVALID_ARGUMENT, "y",
                "is %s, whose batch dims do not broadcast against x's, %s; they must be equal or 1",
                proa__tensor_text(b), proa__tensor_text(a));
        m->shape[i] = p == 1 ? q : q == 1 || p >= 0 ? p : q;
    }
    return PROA_OK;
}

/* factor·out = rhs for matrices rhs. */
static proa_status system_meta(const char *op, const char *name, const proa_tensor *factor,
                               const char *rhs_name, const proa_tensor *rhs, proa_meta *m)
{
    PROA_TRY(square(op, name, factor));
    PROA_TRY(matrices(op, rhs_name, rhs));
    if (!agree(linalg_rows(factor), linalg_rows(rhs)))
        return OP_FAIL(op, INVALID_ARGUMENT, rhs_name, "has %lld rows (%s); %s is %s: expected %lld",
                       (long long)linalg_rows(rhs), proa__tensor_text(rhs), name, proa__tensor_text(factor),
                       (long long)linalg_rows(factor));
    m->dtype = (proa_dtype)rhs->dtype;
    PROA_TRY(broadcast(op, factor, 2, rhs, 2, m));
    push(m, linalg_rows(factor) < 0 ? linalg_rows(rhs) : linalg_rows(factor));
    push(m, linalg_columns(rhs));
    return PROA_OK;
}

proa_status solve_infer(const proa_solve_args *a, proa_solve_metas *m)
{
    const proa_tensor *x = a->x, *y = a->y;
    PROA_TRY(same_dtype("solve", "y", y, x));
    PROA_TRY(square("solve", "x", x));
    if (y->ndim == 0) return OP_FAIL("solve", INVALID_ARGUMENT, "y", "must have 1 dim or more, got a number");
    if (!linalg_is_vector(x, y)) return system_meta("solve", "x", x, "y", y, &m->out);
    if (!agree(linalg_rows(x), y->shape[y->ndim - 1]))
        return OP_FAIL("solve", INVALID_ARGUMENT, "y",
                       "holds vectors of %lld numbers; x is %s: expected %lld",
                       (long long)y->shape[y->ndim - 1], proa__tensor_text(x), (long long)linalg_rows(x));
    m->out.dtype = (proa_dtype)x->dtype;
    PROA_TRY(broadcast("solve", x, 2, y, 1, &m->out));
    push(&m->out, linalg_rows(x));
    return PROA_OK;
}

proa_status triangular_solve_infer(const proa_triangular_solve_args *a, proa_triangular_solve_metas *m)
{
    if (a->y->dtype != a->x->dtype) /* x alone selects the kernel */
        return proa__operand_dtype_fail(proa_find_op("triangular_solve"), "y",
                                        "is %s; expected the dtype of x, %s", proa__tensor_text(a->y),
                                        proa_dtype_name((proa_dtype)a->x->dtype));
    return system_meta("triangular_solve", "x", a->x, "y", a->y, &m->out);
}

proa_status cholesky_solve_infer(const proa_cholesky_solve_args *a, proa_cholesky_solve_metas *m)
{
    PROA_TRY(same_dtype("cholesky_solve", "y", a->y, a->x));
    return system_meta("cholesky_solve", "y", a->y, "x", a->x, &m->out);
}

/* ---- square matrices --------------------------------------------------------------------- */

#define SAME_SHAPE_INFER(op)                                                \
    proa_status op##_infer(const proa_##op##_args *a, proa_##op##_metas *m) \
    {                                                                       \
        m->out = proa_meta_of(a->x);                                        \
        return square(#op, "x", a->x);                                      \
    }
SAME_SHAPE_INFER(cholesky)
SAME_SHAPE_INFER(inverse)
SAME_SHAPE_INFER(matrix_power)

proa_status det_infer(const proa_det_args *a, proa_det_metas *m)
{
    PROA_TRY(square("det", "x", a->x));
    m->out = batch_of(a->x, (proa_dtype)a->x->dtype);
    return PROA_OK;
}

proa_status slogdet_infer(const proa_slogdet_args *a, proa_slogdet_metas *m)
{
    PROA_TRY(square("slogdet", "x", a->x));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 1, .shape = {2}};
    for (int i = 0; i < a->x->ndim - 2; i++) push(&m->out, a->x->shape[i]);
    return PROA_OK;
}

/* Values of real dtype (eigh) or complex, and vectors unless they are left out. */
static proa_status spectrum(const char *op, const proa_tensor *x, proa_dtype values, proa_dtype vectors,
                            bool left_out, proa_meta *w, proa_meta *v)
{
    PROA_TRY(square(op, "x", x));
    int64_t n = linalg_rows(x) < 0 ? linalg_columns(x) : linalg_rows(x);
    *w = batch_of(x, values);
    push(w, n);
    if (v) *v = left_out ? nothing(vectors) : matrix_of(x, vectors, n, n);
    return PROA_OK;
}

proa_status eigh_infer(const proa_eigh_args *a, proa_eigh_metas *m)
{
    return spectrum("eigh", a->x, real_of(a->x), (proa_dtype)a->x->dtype, false, &m->eigenvalues,
                    &m->eigenvectors);
}

proa_status eigvalsh_infer(const proa_eigvalsh_args *a, proa_eigvalsh_metas *m)
{
    return spectrum("eigvalsh", a->x, real_of(a->x), (proa_dtype)a->x->dtype, a->is_test, &m->eigenvalues,
                    &m->eigenvectors);
}

proa_status eig_infer(const proa_eig_args *a, proa_eig_metas *m)
{
    return spectrum("eig", a->x, complex_of(a->x), complex_of(a->x), false, &m->eigenvalues,
                    &m->eigenvectors);
}

proa_status eigvals_infer(const proa_eigvals_args *a, proa_eigvals_metas *m)
{
    return spectrum("eigvals", a->x, complex_of(a->x), complex_of(a->x), false, &m->out, NULL);
}

/* ---- any matrices ------------------------------------------------------------------------ */

proa_status lu_infer(const proa_lu_args *a, proa_lu_metas *m)
{
    PROA_TRY(matrices("lu", "x", a->x));
    if (!a->pivot)
        return OP_FAIL("lu", UNSUPPORTED, "pivot",
                       "is false; LU without pivoting is not there, as on Paddle's CPU");
    m->out = proa_meta_of(a->x);
    m->pivots = m->infos = batch_of(a->x, PROA_I32);
    push(&m->pivots, linalg_least(linalg_rows(a->x), linalg_columns(a->x)));
    if (m->infos.ndim == 0) push(&m->infos, 1);
    return PROA_OK;
}

proa_status lu_unpack_infer(const proa_lu_unpack_args *a, proa_lu_unpack_metas *m)
{
    const proa_tensor *x = a->x, *y = a->y;
    proa_dtype d = (proa_dtype)x->dtype;
    PROA_TRY(matrices("lu_unpack", "x", x));
    int64_t rows = linalg_rows(x), columns = linalg_columns(x), k = linalg_least(rows, columns);
    if (y->dtype != PROA_I32)
        return OP_FAIL("lu_unpack", INVALID_ARGUMENT, "y", "is %s; expected int32, as lu gives it",
                       proa__tensor_text(y));
    bool fits = y->ndim == x->ndim - 1 && agree(y->shape[y->ndim - 1], k);
    for (int i = 0; fits && i < y->ndim - 1; i++) fits = agree(y->shape[i], x->shape[i]);
    if (!fits)
        return OP_FAIL("lu_unpack", INVALID_ARGUMENT, "y",
                       "is %s; expected x's batch dims and min(m, n) pivots for each (x %s)",
                       proa__tensor_text(y), proa__tensor_text(x));
    m->p = a->unpack_pivots ? matrix_of(x, d, rows, rows) : nothing(d);
    m->l = a->unpack_ludata ? matrix_of(x, d, rows, k) : nothing(d);
    m->u = a->unpack_ludata ? matrix_of(x, d, k, columns) : nothing(d);
    return PROA_OK;
}

proa_status qr_infer(const proa_qr_args *a, proa_qr_metas *m)
{
    const proa_tensor *x = a->x;
    proa_dtype d = (proa_dtype)x->dtype;
    PROA_TRY(matrices("qr", "x", x));
    int64_t rows = linalg_rows(x), k = linalg_least(rows, linalg_columns(x));
    if (a->mode == PROA_QR_MODE_COMPLETE) k = rows;
    m->q = a->mode == PROA_QR_MODE_R ? nothing(d) : matrix_of(x, d, rows, k);
    m->r = matrix_of(x, d, k, linalg_columns(x));
    return PROA_OK;
}

proa_status svd_infer(const proa_svd_args *a, proa_svd_metas *m)
{
    const proa_tensor *x = a->x;
    proa_dtype d = (proa_dtype)x->dtype;
    PROA_TRY(matrices("svd", "x", x));
    int64_t rows = linalg_rows(x), columns = linalg_columns(x), k = linalg_least(rows, columns);
    m->u = matrix_of(x, d, rows, a->full_matrices ? rows : k);
    m->vh = matrix_of(x, d, a->full_matrices ? columns : k, columns);
    m->s = batch_of(x, d);
    push(&m->s, k);
    return PROA_OK;
}

proa_status matrix_rank_infer(const proa_matrix_rank_args *a, proa_matrix_rank_metas *m)
{
    PROA_TRY(matrices("matrix_rank", "x", a->x));
    if (a->hermitian) PROA_TRY(square("matrix_rank", "x", a->x));
    m->out = batch_of(a->x, PROA_I32);
    if (proa__absent(a->tol_tensor)) return PROA_OK;
    const proa_tensor *t = a->tol_tensor;
    PROA_TRY(same_dtype("matrix_rank", "tol_tensor", t, a->x));
    proa_meta batch = m->out;
    m->out.ndim = (int8_t)(t->ndim > batch.ndim ? t->ndim : batch.ndim);
    for (int i = 0; i < m->out.ndim; i++) {
        int ib = i - (m->out.ndim - batch.ndim), it = i - (m->out.ndim - t->ndim);
        int64_t p = ib < 0 ? 1 : batch.shape[ib], q = it < 0 ? 1 : t->shape[it];
        if (p != 1 && q != 1 && !agree(p, q))
            return OP_FAIL("matrix_rank", INVALID_ARGUMENT, "tol_tensor",
                           "is %s, which does not broadcast against the batch dims of x, %s",
                           proa__tensor_text(t), proa__tensor_text(a->x));
        m->out.shape[i] = p == 1 ? q : q == 1 || p >= 0 ? p : q;
    }
    return PROA_OK;
}

proa_status lstsq_infer(const proa_lstsq_args *a, proa_lstsq_metas *m)
{
    const proa_tensor *x = a->x, *y = a->y;
    proa_dtype d = (proa_dtype)x->dtype;
    PROA_TRY(matrices("lstsq", "x", x));
    PROA_TRY(same_dtype("lstsq", "y", y, x));
    bool fits = y->ndim == x->ndim && agree(linalg_rows(x), linalg_rows(y));
    for (int i = 0; fits && i < x->ndim - 2; i++) fits = agree(x->shape[i], y->shape[i]);
    if (!fits)
        return OP_FAIL("lstsq", INVALID_ARGUMENT, "y", "is %s; expected x's batch dims and rows (x %s)",
                       proa__tensor_text(y), proa__tensor_text(x));
    int64_t rows = linalg_rows(x), columns = linalg_columns(x);
    m->solution = matrix_of(x, d, columns, linalg_columns(y));
    m->residuals = nothing(d);
    if (rows > columns || rows < 0 || columns < 0) {
        m->residuals = batch_of(x, d);
        push(&m->residuals, linalg_columns(y));
    }
    m->rank = batch_of(x, PROA_I32);
    m->singular_values = batch_of(x, d);
    push(&m->singular_values, linalg_least(rows, columns));
    return PROA_OK;
}
