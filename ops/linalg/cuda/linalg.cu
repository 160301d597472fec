/* Factorizations, linear systems and determinants on a GPU: one block of threads per matrix, in double, in
 * scratch memory; made for batches of small matrices. Ops that can fail (a singular matrix) wait for the GPU
 * once, to report it. */
#include "ops/linalg/cuda/linalg.h"

namespace
{

enum { LINALG_BLOCKS = 512 }; // matrices under way at once

/* First matrix that failed, and the position in it from 1; on the device. */
struct linalg_failure {
    unsigned long long first; // matrix, place: one number, so that the least is the first
    CUDA_MEMBER void say(int64_t index, int64_t place)
    {
        if (place && threadIdx.x == 0)
            atomicMin(&first, (unsigned long long)index << 24 | (unsigned long long)place);
    }
};

/* The matrices (core 2) or vectors (core 1) in a tensor's last dims; its batch dims broadcast to the first
 * out.ndim − out_core dims of out. */
linalg_operand operand_of(const proa_tensor *tensor, int core, const cuda_tensor &out, int out_core)
{
    cuda_tensor t = cuda_look(tensor);
    linalg_operand x = {t.data, t.dtype, t.dim(-core), core == 2 ? t.dim(-1) : 1};
    x.ndim = out.ndim - out_core;
    int lead = x.ndim - (t.ndim - core);
    int64_t step = 1;
    for (int i = x.ndim - 1; i >= 0; i--) {
        int64_t dim = i >= lead ? t.shape[i - lead] : 1;
        x.shape[i] = out.shape[i];
        x.step[i] = dim == 1 ? 0 : step;
        step *= dim;
    }
    return x;
}
/* operand_of for a tensor of matrices that has the result's batch dims itself. */
linalg_operand matrices_of(const proa_tensor *tensor) { return operand_of(tensor, 2, cuda_look(tensor), 2); }

int64_t count_of(const linalg_operand &x)
{
    int64_t n = 1;
    for (int i = 0; i < x.ndim; i++) n *= x.shape[i];
    return n;
}

template <class F>
__global__ void linalg_kernel(F f, double *work, int64_t capacity, int64_t count, linalg_failure *bad)
{
    for (int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        int64_t place = f(index, work + blockIdx.x * capacity);
        bad->say(index, place);
    }
}

/* Runs f(index, work) for `count` matrices, with `capacity` doubles of workspace each. f returns 0, or 1 +
 * the row where the matrix failed. what: NULL if f cannot fail; otherwise the error is "argument what:
 * matrix, row". */
template <class F>
proa_status run(cuda_context *c, int64_t count, int64_t capacity, F f, const char *argument, const char *what)
{
    static const uint64_t none = ~UINT64_C(0);
    if (count == 0) return PROA_OK;
    int64_t blocks = count < LINALG_BLOCKS ? count : (int64_t)LINALG_BLOCKS;
    double *work = (double *)cuda_scratch(c, (size_t)(blocks * capacity + 1) * sizeof *work);
    if (!work) return cuda_host->error();
    linalg_failure *bad = (linalg_failure *)(void *)(work + blocks * capacity), found = {none};
    proa_status status = cuda_fill(c, bad, &none, sizeof none, 1);
    if (status == PROA_OK)
        status =
            cuda_launch(c, (unsigned)blocks, CUDA_BLOCK, linalg_kernel<F>, f, work, capacity, count, bad);
    if (status == PROA_OK && what) status = cuda_read(c, &found, bad, sizeof found);
    cuda_scratch_free(c, work);
    if (status != PROA_OK || found.first == none) return status;
    return cuda_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %s %s: matrix %llu, row %lld", c->running->name,
                     argument, what, found.first >> 24, (long long)(found.first & 0xffffff) - 1);
}

/* ---- cholesky -------------------------------------------------------------------------- */

struct cholesky_fn {
    linalg_operand x, out;
    bool upper;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        linalg_load(work, x, index, upper);
        int64_t info = linalg_cholesky(work, x.rows);
        linalg_store(out, index, work, upper);
        return info;
    }
};

struct cholesky_solve_fn {
    linalg_operand factor, x, out;
    bool upper;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        int64_t n = factor.rows, r = x.columns;
        double *b = work + n * n;
        linalg_load(work, factor, index);
        linalg_load(b, x, index);
        linalg_triangular(work, upper, upper, false, b, n, r);
        linalg_triangular(work, upper, !upper, false, b, n, r);
        linalg_store(out, index, b);
        return 0;
    }
};

struct triangular_fn {
    linalg_operand x, y, out;
    bool upper, transpose, unit;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        double *b = work + x.rows * x.rows;
        linalg_load(work, x, index);
        linalg_load(b, y, index);
        linalg_triangular(work, upper, transpose, unit, b, x.rows, y.columns);
        linalg_store(out, index, b);
        return 0;
    }
};

/* ---- inverse, solve, determinants ------------------------------------------------------- */

struct inverse_fn {
    linalg_operand x, out;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        int64_t n = x.rows, *pivot = (int64_t *)(void *)(work + 2 * n * n);
        linalg_load(work, x, index);
        int64_t info = linalg_lu(work, n, n, pivot);
        if (info) return info;
        linalg_identity(work + n * n, n);
        linalg_lu_solve(work, pivot, work + n * n, n, n);
        linalg_store(out, index, work + n * n);
        return 0;
    }
};

struct solve_fn {
    linalg_operand x, y, out;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        int64_t n = x.rows, r = y.columns, *pivot = (int64_t *)(void *)(work + n * (n + r));
        linalg_load(work, x, index);
        linalg_load(work + n * n, y, index);
        int64_t info = linalg_lu(work, n, n, pivot);
        if (info) return info;
        linalg_lu_solve(work, pivot, work + n * n, n, r);
        linalg_store(out, index, work + n * n);
        return 0;
    }
};

/* The determinant; or (logarithm) its sign, and `signs` elements on the logarithm of its absolute value. */
struct det_fn {
    linalg_operand x;
    linalg_operand out; // of numbers: 1 x 1
    int64_t signs;
    bool logarithm;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        int64_t n = x.rows, *pivot = (int64_t *)(void *)(work + n * n);
        linalg_load(work, x, index);
        double value = linalg_lu(work, n, n, pivot) ? 0 : 1, log_of = value == 0 ? (double)-INFINITY : 0;
        if (threadIdx.x == 0) {
            for (int64_t i = 0; i < n; i++)
                if (pivot[i] != i) value = -value;
            for (int64_t i = 0; i < n && value != 0; i++) {
                double d = work[i * n + i];
                log_of += log(fabs(d));
                value = !logarithm ? value * d : d < 0 ? -value : value;
            }
            out.put(index, value);
            if (logarithm) out.put(signs + index, log_of);
        }
        __syncthreads();
        return 0;
    }
};

struct power_fn {
    linalg_operand x, out;
    int64_t n;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        int64_t rows = x.rows, size = rows * rows, *pivot = (int64_t *)(void *)work;
        uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
        double *base = work + rows, *power = base + size, *next = power + size, *spare;
        linalg_load(base, x, index);
        linalg_identity(power, rows);
        if (n < 0) { // the inverse takes base's place
            int64_t info = linalg_lu(base, rows, rows, pivot);
            if (info) return info;
            linalg_lu_solve(base, pivot, power, rows, rows);
            spare = base, base = power, power = spare;
            linalg_identity(power, rows);
        }
        for (; left; left >>= 1) {
            if (left & 1) {
                linalg_product(power, base, next, rows);
                spare = power, power = next, next = spare;
            }
            if (left == 1) break;
            linalg_product(base, base, next, rows);
            spare = base, base = next, next = spare;
        }
        linalg_store(out, index, power);
        return 0;
    }
};

/* ---- lu --------------------------------------------------------------------------------- */

struct lu_fn {
    linalg_operand x, out;
    int32_t *pivots, *infos;
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        int64_t m = x.rows, n = x.columns, k = m < n ? m : n, *pivot = (int64_t *)(void *)(work + m * n);
        linalg_load(work, x, index);
        int64_t info = linalg_lu(work, m, n, pivot);
        if (threadIdx.x == 0) infos[index] = (int32_t)info;
        for (LINALG_EACH(i, k)) pivots[index * k + i] = (int32_t)(pivot[i] + 1);
        linalg_store(out, index, work);
        return 0;
    }
};

struct unpack_fn {
    linalg_operand x, p, l, u;
    const int32_t *pivots;
    bool data, order;
    CUDA_MEMBER void triangles(int64_t index) const
    {
        int64_t m = x.rows, n = x.columns, k = m < n ? m : n, from = x.first(index);
        for (LINALG_EACH(e, m * k)) {
            int64_t i = e / k, j = e % k;
            l.put(index * m * k + e, j < i ? x.get(from + i * n + j) : (double)(j == i));
        }
        for (LINALG_EACH(e, k * n)) u.put(index * k * n + e, e % n < e / n ? 0.0 : x.get(from + e));
    }
    CUDA_MEMBER int64_t operator()(int64_t index, double *work) const
    {
        int64_t m = x.rows, k = m < x.columns ? m : x.columns, *from = (int64_t *)(void *)work;
        const int32_t *pivot = pivots + index * k;
        if (data) triangles(index);
        if (!order) return 0;
        for (int64_t i = 0; i < k; i++)
            if (pivot[i] < 1 || pivot[i] > m) return i + 1;
        for (LINALG_EACH(i, m)) from[i] = i;
        __syncthreads();
        for (int64_t i = 0; i < k && threadIdx.x == 0; i++) {
            int64_t t = from[i], other = pivot[i] - 1;
            from[i] = from[other], from[other] = t;
        }
        __syncthreads();
        for (LINALG_EACH(e, m * m)) p.put(index * m * m + e, e / m == from[e % m]);
        __syncthreads();
        return 0;
    }
};

} // namespace

static bool is_real(const proa_tensor *t) { return CUDA_IS(t, CUDA_BIT(F32) | CUDA_BIT(F64)); }
static const char *const singular = "is singular";

CUDA_KERNEL(cholesky, is_real(a->x))
{
    linalg_operand x = matrices_of(a->x);
    return run(c, count_of(x), x.rows * x.rows, cholesky_fn{x, matrices_of(a->out), a->upper}, "x",
               "is not positive definite");
}

CUDA_KERNEL(cholesky_solve, is_real(a->x))
{
    linalg_operand out = matrices_of(a->out), y = operand_of(a->y, 2, cuda_look(a->out), 2),
                   x = operand_of(a->x, 2, cuda_look(a->out), 2);
    return run(c, count_of(out), y.rows * (y.rows + x.columns), cholesky_solve_fn{y, x, out, a->upper}, "",
               NULL);
}

CUDA_KERNEL(triangular_solve, is_real(a->x))
{
    linalg_operand out = matrices_of(a->out), y = operand_of(a->y, 2, cuda_look(a->out), 2),
                   x = operand_of(a->x, 2, cuda_look(a->out), 2);
    return run(c, count_of(out), x.rows * (x.rows + y.columns),
               triangular_fn{x, y, out, a->upper, a->transpose, a->unitriangular}, "", NULL);
}

CUDA_KERNEL(inverse, is_real(a->x))
{
    linalg_operand x = matrices_of(a->x);
    return run(c, count_of(x), x.rows * (2 * x.rows + 1), inverse_fn{x, matrices_of(a->out)}, "x", singular);
}

/* True if y is a batch of vectors (one dim fewer than x), false if of matrices. */
static bool is_vector(const cuda_tensor &x, const cuda_tensor &y)
{
    bool same = y.ndim == x.ndim - 1;
    for (int i = 0; same && i < y.ndim; i++) same = x.shape[i] == y.shape[i];
    return same || y.ndim == 1;
}

CUDA_KERNEL(solve, is_real(a->x))
{
    int core = is_vector(cuda_look(a->x), cuda_look(a->y)) ? 1 : 2;
    cuda_tensor to = cuda_look(a->out);
    linalg_operand out = operand_of(a->out, core, to, core), x = operand_of(a->x, 2, to, core),
                   y = operand_of(a->y, core, to, core);
    return run(c, count_of(out), x.rows * (x.rows + y.columns + 1), solve_fn{x, y, out}, "x", singular);
}

static proa_status determinants(cuda_context *c, const proa_tensor *tensor, const proa_tensor *to,
                                bool logarithm)
{
    linalg_operand x = matrices_of(tensor), out = {};
    out.data = cuda_look(to).data;
    out.dtype = cuda_look(to).dtype;
    return run(c, count_of(x), x.rows * (x.rows + 1), det_fn{x, out, count_of(x), logarithm}, "", NULL);
}

CUDA_KERNEL(det, is_real(a->x)) { return determinants(c, a->x, a->out, false); }
CUDA_KERNEL(slogdet, is_real(a->x)) { return determinants(c, a->x, a->out, true); }

CUDA_KERNEL(matrix_power, is_real(a->x))
{
    linalg_operand x = matrices_of(a->x);
    return run(c, count_of(x), x.rows * (3 * x.rows + 1), power_fn{x, matrices_of(a->out), a->n}, "x",
               a->n < 0 ? "is singular, and n is negative" : NULL);
}

CUDA_KERNEL(lu, is_real(a->x))
{
    linalg_operand x = matrices_of(a->x);
    if (x.rows > INT32_MAX)
        return cuda_fail(PROA_ERR_OVERFLOW, "lu: x has %lld rows: pivots are int32", (long long)x.rows);
    int64_t k = x.rows < x.columns ? x.rows : x.columns;
    return run(
        c, count_of(x), x.rows * x.columns + k,
        lu_fn{x, matrices_of(a->out), cuda_look(a->pivots).as<int32_t>(), cuda_look(a->infos).as<int32_t>()},
        "", NULL);
}

CUDA_KERNEL(lu_unpack, is_real(a->x))
{
    linalg_operand x = matrices_of(a->x), p = {}, l = {}, u = {};
    if (a->unpack_pivots) p = matrices_of(a->p);
    if (a->unpack_ludata) l = matrices_of(a->l), u = matrices_of(a->u);
    return run(c, count_of(x), x.rows,
               unpack_fn{x, p, l, u, cuda_look(a->y).as<int32_t>(), a->unpack_ludata, a->unpack_pivots}, "y",
               a->unpack_pivots ? "has a pivot that is no row, counted from 1" : NULL);
}
