/* Shapes and dtypes of the matrix products. May use core only. */
#include "core/run.h"
#include "ops/epilogue.h"
#include "ops/matmul/product.h"

#define FAIL(op, argument, ...) \
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), argument, __VA_ARGS__)

/* True if two dims agree; −1, known only when the program runs, agrees with all. */
static bool agree(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }

static proa_status same_dtype(const char *op, const char *argument, const proa_tensor *t,
                              const proa_tensor *first)
{
    return t->dtype == first->dtype ? PROA_OK : proa__same_dtype(proa_find_op(op), argument, t, first);
}

static proa_status check_rank(const char *op, const char *argument, const proa_tensor *t, int low, int high)
{
    if (t->ndim >= low && t->ndim <= high) return PROA_OK;
    if (low == high)
        return FAIL(op, argument, "must have %d dims, got %s; reshape it first", low, proa__tensor_text(t));
    return FAIL(op, argument, "must have %d to %d dims, got %s; reshape it first", low, high,
                proa__tensor_text(t));
}

static proa_status inner_dims(const char *op, const proa_tensor *x, int64_t kx, const proa_tensor *y,
                              int64_t ky)
{
    if (agree(kx, ky)) return PROA_OK;
    return FAIL(op, "y",
                "has %lld rows to multiply, but x has %lld columns (x %s, y %s); transpose or reshape one",
                (long long)ky, (long long)kx, proa__tensor_text(x), proa__tensor_text(y));
}

static bool broadcast_dim(int64_t a, int64_t b, int64_t *out)
{
    if (a == 1) {
        *out = b;
    } else if (b == 1 || a == b || b < 0) {
        *out = a;
    } else if (a < 0) {
        *out = b;
    } else {
        return false;
    }
    return true;
}

/* Batch dims of x and y, right-aligned, into m; `core_*` dims at the end are the matrices. */
static proa_status batch_dims(const char *op, const proa_tensor *x, int core_x, const proa_tensor *y,
                              int core_y, proa_meta *m)
{
    int bx = x->ndim - core_x, by = y->ndim - core_y, dims = bx > by ? bx : by;
    for (int i = 0; i < dims; i++) {
        int ix = i - (dims - bx), iy = i - (dims - by);
        int64_t dx = ix < 0 ? 1 : x->shape[ix], dy = iy < 0 ? 1 : y->shape[iy];
        if (!broadcast_dim(dx, dy, &m->shape[i]))
            return FAIL(op, "y", "has batch dim %lld where x has %lld (x %s, y %s); they must be equal or 1",
                        (long long)dy, (long long)dx, proa__tensor_text(x), proa__tensor_text(y));
    }
    m->ndim = (int8_t)dims;
    return PROA_OK;
}

proa_status proa__product_meta(const char *op, const proa_tensor *x, const proa_tensor *y, bool tx, bool ty,
                               proa_meta *m)
{
    PROA_TRY(check_rank(op, "x", x, 1, PROA_MAX_DIMS));
    PROA_TRY(check_rank(op, "y", y, 1, PROA_MAX_DIMS));
    bool row = x->ndim == 1, column = y->ndim == 1;
    int64_t kx = x->shape[row || !tx ? x->ndim - 1 : x->ndim - 2];
    int64_t ky = y->shape[column || ty ? y->ndim - 1 : y->ndim - 2];
    PROA_TRY(inner_dims(op, x, kx, y, ky));
    m->dtype = (proa_dtype)x->dtype;
    PROA_TRY(batch_dims(op, x, row ? 1 : 2, y, column ? 1 : 2, m));
    if (!row) m->shape[m->ndim++] = x->shape[tx ? x->ndim - 1 : x->ndim - 2];
    if (!column) m->shape[m->ndim++] = y->shape[ty ? y->ndim - 2 : y->ndim - 1];
    return PROA_OK;
}

static proa_status product_meta(const char *op, const proa_tensor *x, const proa_tensor *y, bool tx, bool ty,
                                proa_meta *m)
{
    PROA_TRY(same_dtype(op, "y", y, x));
    return proa__product_meta(op, x, y, tx, ty, m);
}

proa_status matmul_infer(const proa_matmul_args *a, proa_matmul_metas *m)
{
    return product_meta("matmul", a->x, a->y, a->transpose_x, a->transpose_y, &m->out);
}

proa_status matmul_swapped_infer(const proa_matmul_swapped_args *a, proa_matmul_swapped_metas *m)
{
    PROA_TRY(check_rank("matmul_swapped", "x", a->x, 3, PROA_MAX_DIMS));
    PROA_TRY(check_rank("matmul_swapped", "y", a->y, 2, PROA_MAX_DIMS));
    PROA_TRY(product_meta("matmul_swapped", a->x, a->y, a->transpose_x, a->transpose_y, &m->out));
    int64_t *rows = &m->out.shape[m->out.ndim - 3], heads = *rows;
    rows[0] = rows[1], rows[1] = heads;
    return PROA_OK;
}

proa_status bmm_infer(const proa_bmm_args *a, proa_bmm_metas *m)
{
    PROA_TRY(check_rank("bmm", "x", a->x, 3, 3));
    PROA_TRY(check_rank("bmm", "y", a->y, 3, 3));
    if (!agree(a->x->shape[0], a->y->shape[0]))
        return FAIL("bmm", "y", "has %lld matrices, but x has %lld", (long long)a->y->shape[0],
                    (long long)a->x->shape[0]);
    return product_meta("bmm", a->x, a->y, false, false, &m->out);
}

proa_status mv_infer(const proa_mv_args *a, proa_mv_metas *m)
{
    PROA_TRY(check_rank("mv", "x", a->x, 2, 2));
    PROA_TRY(check_rank("mv", "vec", a->vec, 1, 1));
    return product_meta("mv", a->x, a->vec, false, false, &m->out);
}

proa_status dot_infer(const proa_dot_args *a, proa_dot_metas *m)
{
    PROA_TRY(same_dtype("dot", "y", a->y, a->x));
    PROA_TRY(check_rank("dot", "x", a->x, 1, 2));
    bool same = a->x->ndim == a->y->ndim;
    for (int i = 0; same && i < a->x->ndim; i++) same = agree(a->x->shape[i], a->y->shape[i]);
    if (!same)
        return FAIL("dot", "y", "must have the shape of x, %s, got %s", proa__tensor_text(a->x),
                    proa__tensor_text(a->y));
    m->out.dtype = (proa_dtype)a->x->dtype;
    m->out.ndim = (int8_t)(a->x->ndim - 1);
    if (a->x->ndim == 2) m->out.shape[0] = a->x->shape[0] < 0 ? a->y->shape[0] : a->x->shape[0];
    return PROA_OK;
}

/* d must broadcast to the 2-D (or, for linear, any) result. */
static proa_status check_addend(const char *op, const char *argument, const proa_tensor *d,
                                const proa_meta *out)
{
    bool fits = d->ndim <= out->ndim;
    for (int i = 0; fits && i < d->ndim; i++)
        fits = d->shape[i] == 1 || agree(d->shape[i], out->shape[out->ndim - d->ndim + i]);
    if (fits) return PROA_OK;
    return FAIL(op, argument, "is %s, which does not broadcast to the product's shape %s",
                proa__tensor_text(d), proa__shape_text(out->shape, out->ndim));
}

proa_status addmm_infer(const proa_addmm_args *a, proa_addmm_metas *m)
{
    PROA_TRY(check_rank("addmm", "x", a->x, 2, 2));
    PROA_TRY(check_rank("addmm", "y", a->y, 2, 2));
    PROA_TRY(check_rank("addmm", "input", a->input, 1, 2));
    PROA_TRY(same_dtype("addmm", "x", a->x, a->input));
    PROA_TRY(product_meta("addmm", a->x, a->y, false, false, &m->out));
    return check_addend("addmm", "input", a->input, &m->out);
}

proa_status linear_infer(const proa_linear_args *a, proa_linear_metas *m)
{
    PROA_TRY(check_rank("linear", "weight", a->weight, 2, 2));
    PROA_TRY(product_meta("linear", a->x, a->weight, false, false, &m->out));
    if (proa__absent(a->bias)) return PROA_OK;
    PROA_TRY(same_dtype("linear", "bias", a->bias, a->x));
    PROA_TRY(check_rank("linear", "bias", a->bias, 1, 1));
    return check_addend("linear", "bias", a->bias, &m->out);
}

proa_status linear_fused_infer(const proa_linear_fused_args *a, proa_linear_fused_metas *m)
{
    PROA_TRY(check_rank("linear_fused", "weight", a->weight, 2, 2));
    PROA_TRY(product_meta("linear_fused", a->x, a->weight, false, false, &m->out));
    if (!proa__absent(a->bias)) {
        PROA_TRY(same_dtype("linear_fused", "bias", a->bias, a->x));
        PROA_TRY(check_rank("linear_fused", "bias", a->bias, 1, 1));
        PROA_TRY(check_addend("linear_fused", "bias", a->bias, &m->out));
    }
    return proa__epilogue_meta("linear_fused", &PROA__EPILOGUE(a), &m->out);
}

/* d_pre is of pre's shape, one row of it d_bias. */
static void last_dim(const proa_tensor *t, proa_meta *m)
{
    *m = (proa_meta){.dtype = (proa_dtype)t->dtype, .ndim = 1};
    m->shape[0] = t->shape[t->ndim - 1];
}

proa_status linear_gelu_infer(const proa_linear_gelu_args *a, proa_linear_gelu_metas *m)
{
    PROA_TRY(check_rank("linear_gelu", "weight", a->weight, 2, 2));
    PROA_TRY(product_meta("linear_gelu", a->x, a->weight, false, false, &m->out));
    m->pre = m->out;
    if (proa__absent(a->bias)) return PROA_OK;
    PROA_TRY(same_dtype("linear_gelu", "bias", a->bias, a->x));
    PROA_TRY(check_rank("linear_gelu", "bias", a->bias, 1, 1));
    return check_addend("linear_gelu", "bias", a->bias, &m->out);
}

proa_status linear_gelu_grad_infer(const proa_linear_gelu_grad_args *a, proa_linear_gelu_grad_metas *m)
{
    const char *op = "linear_gelu_grad";
    PROA_TRY(check_rank(op, "weight", a->weight, 2, 2));
    PROA_TRY(check_rank(op, "d_out", a->d_out, 2, PROA_MAX_DIMS));
    PROA_TRY(same_dtype(op, "pre", a->pre, a->d_out));
    PROA_TRY(product_meta(op, a->d_out, a->weight, false, true, &m->d_pre));
    bool fits = a->pre->ndim == m->d_pre.ndim;
    for (int i = 0; fits && i < a->pre->ndim; i++) fits = agree(a->pre->shape[i], m->d_pre.shape[i]);
    if (!fits)
        return FAIL(op, "pre", "must have the product's shape %s, got %s",
                    proa__shape_text(m->d_pre.shape, m->d_pre.ndim), proa__tensor_text(a->pre));
    last_dim(a->pre, &m->d_bias);
    return PROA_OK;
}

proa_status linear_weight_grad_infer(const proa_linear_weight_grad_args *a, proa_linear_weight_grad_metas *m)
{
    const char *op = "linear_weight_grad";
    PROA_TRY(check_rank(op, "x", a->x, 2, PROA_MAX_DIMS));
    PROA_TRY(same_dtype(op, "d_out", a->d_out, a->x));
    bool fits = a->d_out->ndim == a->x->ndim;
    for (int i = 0; fits && i < a->x->ndim - 1; i++) fits = agree(a->x->shape[i], a->d_out->shape[i]);
    if (!fits)
        return FAIL(op, "d_out", "must have as many rows as x, in the same dims, got x %s and d_out %s",
                    proa__tensor_text(a->x), proa__tensor_text(a->d_out));
    last_dim(a->d_out, &m->d_bias);
    m->d_weight = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 2};
    m->d_weight.shape[0] = a->x->shape[a->x->ndim - 1];
    m->d_weight.shape[1] = a->d_out->shape[a->d_out->ndim - 1];
    return PROA_OK;
}
