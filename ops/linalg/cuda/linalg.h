/* Factorizations of one small row-major double matrix by a block of threads: the CPU's algorithms (dense.inc)
 * with independent loops divided among threads. All threads of the block must call each function; its writes
 * are visible to all of them when it returns. */
#ifndef PROA_OPS_LINALG_CUDA_LINALG_H
#define PROA_OPS_LINALG_CUDA_LINALG_H

#include "devices/cuda/kernel.h"

/* for (LINALG_EACH(i, n)): the thread's share of n items of the block's. */
#define LINALG_EACH(i, n)    \
    int64_t i = threadIdx.x; \
    i < (n);                 \
    i += blockDim.x

/* Matrices of a tensor, [rows, columns] or turned; batch dims broadcast to those of the result. */
struct linalg_operand {
    char *data;
    proa_dtype dtype;
    int64_t rows, columns;
    int ndim;
    int64_t shape[PROA_MAX_DIMS], step[PROA_MAX_DIMS]; /* batch dims, and their strides in matrices */
    CUDA_MEMBER int64_t first(int64_t index) const
    {
        return cuda_offset(ndim, shape, step, index) * rows * columns;
    }
    CUDA_MEMBER double get(int64_t i) const
    {
        return dtype == PROA_F64 ? ((const double *)(const void *)data)[i]
                                 : ((const float *)(const void *)data)[i];
    }
    CUDA_MEMBER void put(int64_t i, double v) const
    {
        if (dtype == PROA_F64) ((double *)(void *)data)[i] = v;
        else ((float *)(void *)data)[i] = (float)v;
    }
};

CUDA_FN void linalg_load(double *to, const linalg_operand &x, int64_t index, bool turned = false)
{
    int64_t first = x.first(index);
    for (LINALG_EACH(i, x.rows * x.columns))
        to[turned ? i % x.columns * x.rows + i / x.columns : i] = x.get(first + i);
    __syncthreads();
}
CUDA_FN void linalg_store(const linalg_operand &x, int64_t index, const double *from, bool turned = false)
{
    int64_t first = x.first(index);
    for (LINALG_EACH(i, x.rows * x.columns))
        x.put(first + i, from[turned ? i % x.columns * x.rows + i / x.columns : i]);
    __syncthreads(); /* all threads have read before the next matrix overwrites it */
}

CUDA_FN void linalg_identity(double *a, int64_t n)
{
    for (LINALG_EACH(i, n * n)) a[i] = i / n == i % n;
    __syncthreads();
}

/* Pivot: the row at or below k with the largest magnitude in column k; the first of equals. Ignores NaN
 * unless it is first. */
CUDA_FN cuda_indexed<double> linalg_pivot(const double *a, int64_t m, int64_t n, int64_t k)
{
    cuda_indexed<double> best = {-1, m};
    for (int64_t i = k + threadIdx.x; i < m; i += blockDim.x) {
        double size = fabs(a[i * n + k]);
        if (size != size) size = i == k ? (double)INFINITY : -1;
        if (size > best.value) best = {size, i};
    }
    return cuda_block_reduce<cuda_first<cuda_largest>>(best);
}

CUDA_FN void linalg_swap(double *x, double *y, int64_t n)
{
    for (LINALG_EACH(j, n)) {
        double t = x[j];
        x[j] = y[j], y[j] = t;
    }
    __syncthreads();
}

/* LU factorization in place, a = P·L·U, m x n, with partial pivoting; pivot[k]: the row exchanged with row k.
 * Returns 1 + the index of the first zero pivot, or 0. */
CUDA_FN int64_t linalg_lu(double *a, int64_t m, int64_t n, int64_t *pivot)
{
    int64_t info = 0, least = m < n ? m : n;
    for (int64_t k = 0; k < least; k++) {
        cuda_indexed<double> best = linalg_pivot(a, m, n, k);
        __syncthreads();
        if (threadIdx.x == 0) pivot[k] = best.index;
        if (best.index != k) linalg_swap(a + k * n, a + best.index * n, n);
        if (best.value == 0) {
            if (!info) info = k + 1;
            continue;
        }
        for (LINALG_EACH(i, m - k - 1)) a[(k + 1 + i) * n + k] /= a[k * n + k];
        __syncthreads();
        int64_t width = n - k - 1;
        for (LINALG_EACH(e, (m - k - 1) * width)) {
            int64_t i = k + 1 + e / width, j = k + 1 + e % width;
            a[i * n + j] -= a[i * n + k] * a[k * n + j];
        }
        __syncthreads();
    }
    __syncthreads();
    return info;
}

/* b ← op(a)⁻¹·b for the triangle of a (n x n), op the transpose or nothing; b has r columns. */
CUDA_FN void linalg_triangular(const double *a, bool upper, bool transpose, bool unit, double *b, int64_t n,
                               int64_t r)
{
    bool forward = upper == transpose;
    for (int64_t s = 0; s < n; s++) {
        int64_t i = forward ? s : n - 1 - s, first = forward ? i + 1 : 0, rows = forward ? n - 1 - i : i;
        for (LINALG_EACH(j, unit ? 0 : r)) b[i * r + j] /= a[i * n + i];
        __syncthreads();
        for (LINALG_EACH(e, rows * r)) {
            int64_t t = first + e / r, j = e % r;
            b[t * r + j] -= (transpose ? a[i * n + t] : a[t * n + i]) * b[i * r + j];
        }
        __syncthreads();
    }
}

/* b ← a⁻¹·b, where lu and pivot are what linalg_lu made of a. */
CUDA_FN void linalg_lu_solve(const double *lu, const int64_t *pivot, double *b, int64_t n, int64_t r)
{
    for (int64_t i = 0; i < n; i++)
        if (pivot[i] != i) linalg_swap(b + i * r, b + pivot[i] * r, r);
    linalg_triangular(lu, false, false, true, b, n, r);
    linalg_triangular(lu, true, false, false, b, n, r);
}

/* a ← L with a = L·Lᵀ, from a's lower triangle; the upper one is cleared. Returns the place from 1 of the
 * first minor that is not positive, or 0. */
CUDA_FN int64_t linalg_cholesky(double *a, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        double left = a[k * n + k];
        __syncthreads();
        if (!(left > 0)) return k + 1;
        double root = sqrt(left);
        for (LINALG_EACH(i, n - k)) a[(k + i) * n + k] = i ? a[(k + i) * n + k] / root : root;
        __syncthreads();
        int64_t width = n - k - 1;
        for (LINALG_EACH(e, width * width)) {
            int64_t i = k + 1 + e / width, j = k + 1 + e % width;
            if (j <= i) a[i * n + j] -= a[i * n + k] * a[j * n + k];
        }
        __syncthreads();
    }
    for (LINALG_EACH(e, n * n))
        if (e % n > e / n) a[e] = 0;
    __syncthreads();
    return 0;
}

/* out ← x·y, n x n. */
CUDA_FN void linalg_product(const double *x, const double *y, double *out, int64_t n)
{
    for (LINALG_EACH(e, n * n)) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) sum += x[e / n * n + k] * y[k * n + e % n];
        out[e] = sum;
    }
    __syncthreads();
}

#endif
