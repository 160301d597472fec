/* CPU kernels of the SVD, of symmetric eigenvalues, and of the ops built on them. Compiled once per CPU
 * level; static functions and the kernels only. */
#include "ops/linalg/dense.h"

static double square_of(int64_t n) { return (double)n * (double)n; }

/* ---- singular values ----------------------------------------------------------------------- */

static void rotate_rows(double *restrict x, double *restrict y, double c, double s, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double p = x[j], q = y[j];
        x[j] = c * p - s * q;
        y[j] = s * p + c * q;
    }
}

/* Hestenes' one-sided Jacobi: rotates the n rows of w (m ≥ n numbers each) until they are orthogonal, and the
 * rows of v, initially the identity, in the same way (Golub and Van Loan, 8.6.3). */
static void orthogonalize(double *w, double *v, int64_t n, int64_t m)
{
    const double tolerance = 4 * DBL_EPSILON * sqrt((double)m);
    bool again = true;
    identity_d(v, n, n);
    for (int sweep = 0; sweep < 60 && again; sweep++) {
        again = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double *x = w + p * m, *y = w + q * m;
                double a = dot_d(x, x, m), b = dot_d(y, y, m), c = dot_d(x, y, m);
                if (!(fabs(c) > tolerance * sqrt(a) * sqrt(b)) || c == 0) continue;
                double zeta = (b - a) / (2 * c);
                double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta)),
                       cs = 1 / sqrt(1 + t * t);
                rotate_rows(x, y, cs, cs * t, m);
                rotate_rows(v + p * n, v + q * n, cs, cs * t, n);
                again = true;
            }
    }
}

/* Fills the rows of w from `have` on with unit vectors orthogonal to those before; `total` rows of m numbers.
 * */
static void complete(double *w, int64_t have, int64_t total, int64_t m)
{
    for (; have < total; have++) {
        double best = -1, *to = w + have * m;
        int64_t axis = 0;
        for (int64_t i = 0; i < m; i++) { /* the axis that is furthest from the span so far */
            double left = 1;
            for (int64_t r = 0; r < have; r++) left -= w[r * m + i] * w[r * m + i];
            if (left > best) best = left, axis = i;
        }
        for (int64_t i = 0; i < m; i++) to[i] = i == axis;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t r = 0; r < have; r++) take_d(to, w + r * m, dot_d(to, w + r * m, m), m);
        double length = sqrt(dot_d(to, to, m));
        for (int64_t i = 0; i < m; i++) to[i] /= length;
    }
}

/* x = Σ s[j]·u_j·v_jᵀ, s descending. Of the two sides the longer one is in `tall` (rows of `high` numbers: k
 * of them, or all), the other in `short_` (rows of `low`). */
typedef struct decomposition {
    int64_t high, low, rows;   /* rows: number of rows of tall to compute */
    double *s, *tall, *short_; /* low, rows × high, low × low */
    double *w, *v;             /* low × high and low × low: space to work in */
    int64_t *order;
} decomposition;

static double decomposition_capacity(int64_t m, int64_t n, bool full)
{
    double high = (double)(m > n ? m : n), low = (double)(m > n ? n : m);
    return 2 * low + (full ? high : low) * high + 2 * low * low + low * high;
}

static decomposition decomposition_in(double *work, int64_t m, int64_t n, bool full)
{
    decomposition d = {.high = m > n ? m : n, .low = m > n ? n : m};
    d.rows = full ? d.high : d.low;
    d.s = work, d.order = (int64_t *)(void *)(work + d.low);
    d.tall = work + 2 * d.low, d.short_ = d.tall + d.rows * d.high;
    d.w = d.short_ + d.low * d.low, d.v = d.w + d.low * d.high;
    return d;
}

/* The decomposition of matrix `index` of x (m×n); singular vectors of (almost) zeros are left to the caller:
 * how many are there is returned. */
static int64_t decompose(decomposition *d, const proa_tensor *x, int64_t index)
{
    int64_t m = linalg_rows(x), n = linalg_columns(x), have = 0;
    if (m < n) {
        load_d(d->w, x, index * m * n, m * n);
    } else { /* columns become rows */
        load_d(d->tall, x, index * m * n, m * n);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) d->w[j * m + i] = d->tall[i * n + j];
    }
    double unit = normalize_d(d->w, m * n);
    if (isinf(unit)) return -1;
    orthogonalize(d->w, d->v, d->low, d->high);
    for (int64_t j = 0; j < d->low; j++) {
        double length = sqrt(dot_d(d->w + j * d->high, d->w + j * d->high, d->high));
        int64_t at = j;
        for (; at > 0 && d->s[at - 1] < length; at--)
            d->s[at] = d->s[at - 1], d->order[at] = d->order[at - 1];
        d->s[at] = length, d->order[at] = j;
    }
    for (int64_t j = 0; j < d->low; j++) {
        const double *from = d->w + d->order[j] * d->high;
        memcpy(d->short_ + j * d->low, d->v + d->order[j] * d->low, (size_t)d->low * sizeof(double));
        for (int64_t i = 0; i < d->high; i++) d->tall[j * d->high + i] = from[i] / d->s[j];
        if (d->s[j] > 1e-100) have = j + 1; /* below, squares underflow and directions are lost */
        d->s[j] *= unit;
    }
    return have;
}

/* Writes `count` rows of n numbers as columns. */
static void store_columns(proa_tensor *t, int64_t index, const double *rows, int64_t count, int64_t n,
                          double *row)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < count; j++) row[j] = rows[j * n + i];
        store_d(t, (index * n + i) * count, row, count);
    }
}

static int64_t svd_one(const void *args, int64_t index, char *work)
{
    const proa_svd_args *a = args;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x);
    decomposition d = decomposition_in((double *)(void *)work, m, n, a->full_matrices);
    double *row = (double *)(void *)work + (int64_t)decomposition_capacity(m, n, a->full_matrices);
    int64_t have = decompose(&d, a->x, index);
    if (have < 0) return LINALG_NOT_FINITE;
    complete(d.tall, have, d.rows, d.high);
    store_d(a->s, index * d.low, d.s, d.low);
    if (m >= n) {
        store_columns(a->u, index, d.tall, d.rows, m, row);
        store_d(a->vh, index * n * n, d.short_, n * n);
    } else {
        store_columns(a->u, index, d.short_, m, m, row);
        store_d(a->vh, index * d.rows * n, d.tall, d.rows * n);
    }
    return 0;
}

PROA_KERNEL(svd_cpu, svd)
{
    linalg_slot failed;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x);
    double capacity = decomposition_capacity(m, n, a->full_matrices) + (double)(m > n ? m : n);
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), capacity, 50 * (double)m * square_of(n), svd_one, &failed));
    return linalg_stopped("svd", &failed);
}

static int64_t lstsq_one(const void *args, int64_t index, char *work)
{
    const proa_lstsq_args *a = args;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), r = linalg_columns(a->y), rank = 0;
    decomposition d = decomposition_in((double *)(void *)work, m, n, false);
    double *y = (double *)(void *)work + (int64_t)decomposition_capacity(m, n, false);
    double *out = y + m * r, *row = out + n * r, *x = row + r;
    if (decompose(&d, a->x, index) < 0) return LINALG_NOT_FINITE;
    load_d(y, a->y, index * m * r, m * r);
    memset(out, 0, (size_t)(n * r) * sizeof *out);
    double least = a->driver == PROA_LSTSQ_DRIVER_GELS || d.low == 0 ? 0 : fmax(a->rcond, 0) * d.s[0];
    for (; rank < d.low && d.s[rank] > least; rank++) { /* out += v·(uᵀ·y) / s */
        const double *tall = d.tall + rank * d.high, *low = d.short_ + rank * d.low;
        const double *u = m >= n ? tall : low, *v = m >= n ? low : tall;
        memset(row, 0, (size_t)r * sizeof *row);
        for (int64_t i = 0; i < m; i++) take_d(row, y + i * r, -u[i], r);
        for (int64_t i = 0; i < n; i++) take_d(out + i * r, row, -v[i] / d.s[rank], r);
    }
    store_d(a->solution, index * n * r, out, n * r);
    store_d(a->singular_values, index * d.low, d.s, d.low);
    ((int32_t *)(void *)a->rank->data)[index] = (int32_t)rank;
    if (m <= n) return 0;
    memset(row, 0, (size_t)r * sizeof *row);
    load_d(x, a->x, index * m * n, m * n);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t k = 0; k < n; k++) take_d(y + i * r, out + k * r, x[i * n + k], r);
        for (int64_t j = 0; j < r; j++) row[j] += y[i * r + j] * y[i * r + j];
    }
    store_d(a->residuals, index * r, row, r);
    return 0;
}

PROA_KERNEL(lstsq_cpu, lstsq)
{
    linalg_slot failed;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), r = linalg_columns(a->y);
    double capacity =
        decomposition_capacity(m, n, false) + (double)(m + n + 1) * (double)r + (double)m * (double)n;
    PROA_TRY(
        linalg_run(a, linalg_count(a->x, 2), capacity, 50 * (double)m * square_of(n), lstsq_one, &failed));
    return linalg_stopped("lstsq", &failed);
}

/* ---- eigenvalues of Hermitian matrices ------------------------------------------------------- */

/* Mirrors the given triangle to the other one. */
#define SAME(x) (x)
#define T double
#define SUFFIX d
#define CONJUGATE SAME
#include "ops/linalg/cpu/eigh.inc"
#define T linalg_z
#define SUFFIX z
#define CONJUGATE conj
#include "ops/linalg/cpu/eigh.inc"

static double eigh_capacity(const proa_tensor *x)
{
    double n = (double)linalg_rows(x);
    return 2 * n + (linalg_complex(x) ? 4 : 2) * n * n;
}

static int64_t eigh_one(const void *args, int64_t index, char *work)
{
    const proa_eigh_args *a = args;
    bool upper = a->UPLO == PROA_UPLO_U;
    return linalg_complex(a->x) ? eigh_z(a->x, upper, index, a->eigenvalues, a->eigenvectors, work)
                                : eigh_d(a->x, upper, index, a->eigenvalues, a->eigenvectors, work);
}

PROA_KERNEL(eigh_cpu, eigh)
{
    linalg_slot failed;
    double n = (double)linalg_rows(a->x);
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), eigh_capacity(a->x), 50 * n * n * n, eigh_one, &failed));
    return linalg_stopped("eigh", &failed);
}

static int64_t eigvalsh_one(const void *args, int64_t index, char *work)
{
    const proa_eigvalsh_args *a = args;
    bool upper = a->UPLO == PROA_UPLO_U;
    proa_tensor *vectors = a->is_test ? NULL : a->eigenvectors;
    return linalg_complex(a->x) ? eigh_z(a->x, upper, index, a->eigenvalues, vectors, work)
                                : eigh_d(a->x, upper, index, a->eigenvalues, vectors, work);
}

PROA_KERNEL(eigvalsh_cpu, eigvalsh)
{
    linalg_slot failed;
    double n = (double)linalg_rows(a->x);
    PROA_TRY(
        linalg_run(a, linalg_count(a->x, 2), eigh_capacity(a->x), 50 * n * n * n, eigvalsh_one, &failed));
    return linalg_stopped("eigvalsh", &failed);
}

/* ---- rank -------------------------------------------------------------------------------------- */

/* Batch `index` of out: the values of matrix linalg_at(x), which are computed anew for each tolerance. */
static int64_t matrix_rank_one(const void *args, int64_t index, char *work)
{
    const proa_matrix_rank_args *a = args;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), k = linalg_least(m, n), rank = 0;
    int64_t at = linalg_at(a->x, 2, a->out, 0, index);
    double *s = (double *)(void *)work, largest = 0, tolerance = a->tol;
    if (a->hermitian) {
        int64_t *order = (int64_t *)(void *)(s + n);
        double *x = s + 2 * n;
        load_d(x, a->x, at * n * n, n * n);
        mirror_d(x, n, false);
        if (jacobi_d(x, NULL, s, order, n)) return LINALG_NOT_FINITE;
    } else {
        decomposition d = decomposition_in(s, m, n, false);
        if (decompose(&d, a->x, at) < 0) return LINALG_NOT_FINITE;
    }
    for (int64_t i = 0; i < k; i++) largest = fmax(largest, fabs(s[i]));
    if (!proa__absent(a->tol_tensor))
        load_d(&tolerance, a->tol_tensor, linalg_at(a->tol_tensor, 0, a->out, 0, index), 1);
    double eps = a->x->dtype == PROA_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    if (a->use_default_tol)
        tolerance =
            fmax(proa__absent(a->tol_tensor) ? 0 : tolerance, largest * eps * (double)(m > n ? m : n));
    for (int64_t i = 0; i < k; i++) rank += fabs(s[i]) > tolerance;
    ((int32_t *)(void *)a->out->data)[index] = (int32_t)rank;
    return 0;
}

PROA_KERNEL(matrix_rank_cpu, matrix_rank)
{
    linalg_slot failed;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x);
    double capacity = decomposition_capacity(m, n, false) + 2 * (double)n,
           flops = 50 * (double)m * square_of(n);
    PROA_TRY(linalg_run(a, linalg_count(a->out, 0), capacity, flops, matrix_rank_one, &failed));
    return linalg_stopped("matrix_rank", &failed);
}
