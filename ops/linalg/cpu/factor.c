/* CPU kernels of factorizations, linear systems and determinants. Compiled once per CPU level; static
 * functions and the kernels only. */
#include "ops/linalg/dense.h"

static double cube(int64_t n) { return (double)n * (double)n * (double)n; }

/* ---- cholesky ---------------------------------------------------------------------------- */

/* a's transpose, in place. */
static void transpose(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            double t = a[i * n + j];
            a[i * n + j] = a[j * n + i], a[j * n + i] = t;
        }
}

static int64_t cholesky_one(const void *args, int64_t index, char *work)
{
    const proa_cholesky_args *a = args;
    int64_t n = linalg_rows(a->x);
    double *m = (double *)(void *)work;
    load_d(m, a->x, index * n * n, n * n);
    if (a->upper) transpose(m, n);
    int64_t info = cholesky_d(m, n);
    if (a->upper) transpose(m, n);
    store_d(a->out, index * n * n, m, n * n);
    return info;
}

PROA_KERNEL(cholesky_cpu, cholesky)
{
    linalg_slot failed;
    int64_t n = linalg_rows(a->x);
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), (double)n * (double)n, cube(n), cholesky_one, &failed));
    if (failed.failed < 0) return PROA_OK;
    return linalg_singular("cholesky", "x", "is not positive definite", &failed);
}

static int64_t cholesky_solve_one(const void *args, int64_t index, char *work)
{
    const proa_cholesky_solve_args *a = args;
    int64_t n = linalg_rows(a->y), r = linalg_columns(a->x);
    double *factor = (double *)(void *)work, *b = factor + n * n;
    load_d(factor, a->y, linalg_at(a->y, 2, a->out, 2, index) * n * n, n * n);
    load_d(b, a->x, linalg_at(a->x, 2, a->out, 2, index) * n * r, n * r);
    triangular_d(factor, a->upper, a->upper, false, b, n, r);
    triangular_d(factor, a->upper, !a->upper, false, b, n, r);
    store_d(a->out, index * n * r, b, n * r);
    return 0;
}

PROA_KERNEL(cholesky_solve_cpu, cholesky_solve)
{
    linalg_slot failed;
    double n = (double)linalg_rows(a->y), r = (double)linalg_columns(a->x);
    return linalg_run(a, linalg_count(a->out, 2), n * (n + r), 2 * n * n * r, cholesky_solve_one, &failed);
}

static int64_t triangular_solve_one(const void *args, int64_t index, char *work)
{
    const proa_triangular_solve_args *a = args;
    int64_t n = linalg_rows(a->x), r = linalg_columns(a->y);
    double *m = (double *)(void *)work, *b = m + n * n;
    load_d(m, a->x, linalg_at(a->x, 2, a->out, 2, index) * n * n, n * n);
    load_d(b, a->y, linalg_at(a->y, 2, a->out, 2, index) * n * r, n * r);
    triangular_d(m, a->upper, a->transpose, a->unitriangular, b, n, r);
    store_d(a->out, index * n * r, b, n * r);
    return 0;
}

PROA_KERNEL(triangular_solve_cpu, triangular_solve)
{
    linalg_slot failed;
    double n = (double)linalg_rows(a->x), r = (double)linalg_columns(a->y);
    return linalg_run(a, linalg_count(a->out, 2), n * (n + r), n * n * r, triangular_solve_one, &failed);
}

/* ---- inverse and solve -------------------------------------------------------------------- */

#define T double
#define SUFFIX d
#include "ops/linalg/cpu/solve.inc"
#define T linalg_z
#define SUFFIX z
#include "ops/linalg/cpu/solve.inc"

PROA_KERNEL(inverse_cpu, inverse)
{
    linalg_slot failed;
    int64_t n = linalg_rows(a->x);
    bool z = linalg_complex(a->x);
    double capacity = (z ? 4 : 2) * (double)n * (double)n + (double)n;
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), capacity, 2 * cube(n), z ? inverse_one_z : inverse_one_d,
                        &failed));
    if (failed.failed < 0) return PROA_OK;
    return linalg_singular("inverse", "x", "is singular", &failed);
}

PROA_KERNEL(solve_cpu, solve)
{
    linalg_slot failed;
    bool z = linalg_complex(a->x), vector = linalg_is_vector(a->x, a->y);
    int64_t n = linalg_rows(a->x), r = vector ? 1 : linalg_columns(a->y);
    double capacity = (z ? 2 : 1) * (double)n * (double)(n + r) + (double)n;
    PROA_TRY(linalg_run(a, linalg_count(a->out, vector ? 1 : 2), capacity, cube(n),
                        z ? solve_one_z : solve_one_d, &failed));
    if (failed.failed < 0) return PROA_OK;
    return linalg_singular("solve", "x", "is singular", &failed);
}

/* ---- determinants and powers ---------------------------------------------------------------- */

/* The LU factors of matrix `index` of x, and the sign of the permutation (0 if a pivot is zero). */
static double factors(const proa_tensor *x, int64_t index, double *m, int64_t n)
{
    int64_t *pivot = (int64_t *)(void *)(m + n * n);
    double sign = 1;
    load_d(m, x, index * n * n, n * n);
    if (lu_d(m, n, n, pivot)) return 0;
    for (int64_t i = 0; i < n; i++)
        if (pivot[i] != i) sign = -sign;
    return sign;
}

static int64_t det_one(const void *args, int64_t index, char *work)
{
    const proa_det_args *a = args;
    int64_t n = linalg_rows(a->x);
    double *m = (double *)(void *)work, value = factors(a->x, index, m, n);
    for (int64_t i = 0; i < n && value != 0; i++) value *= m[i * n + i];
    store_d(a->out, index, &value, 1);
    return 0;
}

PROA_KERNEL(det_cpu, det)
{
    linalg_slot failed;
    int64_t n = linalg_rows(a->x);
    return linalg_run(a, linalg_count(a->x, 2), (double)n * (double)(n + 1), cube(n), det_one, &failed);
}

static int64_t slogdet_one(const void *args, int64_t index, char *work)
{
    const proa_slogdet_args *a = args;
    int64_t n = linalg_rows(a->x);
    double *m = (double *)(void *)work, sign = factors(a->x, index, m, n), log_of = sign == 0 ? -INFINITY : 0;
    for (int64_t i = 0; i < n && sign != 0; i++) {
        log_of += log(fabs(m[i * n + i]));
        if (m[i * n + i] < 0) sign = -sign;
    }
    store_d(a->out, index, &sign, 1);
    store_d(a->out, linalg_count(a->x, 2) + index, &log_of, 1);
    return 0;
}

PROA_KERNEL(slogdet_cpu, slogdet)
{
    linalg_slot failed;
    int64_t n = linalg_rows(a->x);
    return linalg_run(a, linalg_count(a->x, 2), (double)n * (double)(n + 1), cube(n), slogdet_one, &failed);
}

static int64_t matrix_power_one(const void *args, int64_t index, char *work)
{
    const proa_matrix_power_args *a = args;
    int64_t n = linalg_rows(a->x), size = n * n, *pivot = (int64_t *)(void *)work;
    double *base = (double *)(void *)work + n, *power = base + size, *next = power + size, *spare;
    uint64_t left = a->n < 0 ? 0 - (uint64_t)a->n : (uint64_t)a->n;
    load_d(base, a->x, index * size, size);
    identity_d(power, n, n);
    if (a->n < 0) { /* the inverse takes base's place */
        int64_t info = lu_d(base, n, n, pivot);
        if (info) return info;
        lu_solve_d(base, pivot, power, n, n);
        spare = base, base = power, power = spare;
        identity_d(power, n, n);
    }
    for (; left; left >>= 1) {
        if (left & 1) {
            product_d(power, base, next, n);
            spare = power, power = next, next = spare;
        }
        if (left == 1) break;
        product_d(base, base, next, n);
        spare = base, base = next, next = spare;
    }
    store_d(a->out, index * size, power, size);
    return 0;
}

PROA_KERNEL(matrix_power_cpu, matrix_power)
{
    linalg_slot failed;
    int64_t n = linalg_rows(a->x);
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), (double)n * (double)(3 * n + 1), 4 * cube(n),
                        matrix_power_one, &failed));
    if (failed.failed < 0) return PROA_OK;
    return linalg_singular("matrix_power", "x", "is singular, and n is negative", &failed);
}

/* ---- lu ------------------------------------------------------------------------------------- */

static int64_t lu_one(const void *args, int64_t index, char *work)
{
    const proa_lu_args *a = args;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), k = linalg_least(m, n);
    double *x = (double *)(void *)work;
    int64_t *pivot = (int64_t *)(void *)(x + m * n);
    int32_t *to = (int32_t *)(void *)a->pivots->data + index * k;
    load_d(x, a->x, index * m * n, m * n);
    ((int32_t *)(void *)a->infos->data)[index] = (int32_t)lu_d(x, m, n, pivot);
    for (int64_t i = 0; i < k; i++) to[i] = (int32_t)(pivot[i] + 1);
    store_d(a->out, index * m * n, x, m * n);
    return 0;
}

PROA_KERNEL(lu_cpu, lu)
{
    linalg_slot failed;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), k = linalg_least(m, n);
    if (m > INT32_MAX)
        return proa__op_fail(PROA_ERR_OVERFLOW, proa_find_op("lu"), "x", "has %lld rows: pivots are int32",
                             (long long)m);
    return linalg_run(a, linalg_count(a->x, 2), (double)m * (double)n + (double)k,
                      (double)m * (double)n * (double)k, lu_one, &failed);
}

static void unpack_data(const proa_lu_unpack_args *a, int64_t index, double *x, double *row)
{
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), k = linalg_least(m, n);
    load_d(x, a->x, index * m * n, m * n);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < k; j++) row[j] = j < i ? x[i * n + j] : j == i;
        store_d(a->l, (index * m + i) * k, row, k);
    }
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < i; j++) x[i * n + j] = 0;
        store_d(a->u, (index * k + i) * n, x + i * n, n);
    }
}

static int64_t lu_unpack_one(const void *args, int64_t index, char *work)
{
    const proa_lu_unpack_args *a = args;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), k = linalg_least(m, n);
    double *x = (double *)(void *)work, *row = x + m * n;
    int64_t *from = (int64_t *)(void *)(row + m);
    const int32_t *pivot = (const int32_t *)(const void *)a->y->data + index * k;
    if (a->unpack_ludata) unpack_data(a, index, x, row);
    if (!a->unpack_pivots) return 0;
    for (int64_t i = 0; i < m; i++) from[i] = i;
    for (int64_t i = 0; i < k; i++) {
        if (pivot[i] < 1 || pivot[i] > m) return i + 1;
        int64_t t = from[i], other = pivot[i] - 1;
        from[i] = from[other], from[other] = t;
    }
    for (int64_t i = 0; i < m;
         i++) { /* row from[i] of P has its one in column i; rows are written in order */
        int64_t column = 0;
        while (from[column] != i) column++;
        for (int64_t j = 0; j < m; j++) row[j] = j == column;
        store_d(a->p, (index * m + i) * m, row, m);
    }
    return 0;
}

PROA_KERNEL(lu_unpack_cpu, lu_unpack)
{
    linalg_slot failed;
    double m = (double)linalg_rows(a->x), n = (double)linalg_columns(a->x);
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), m * (n + 2), m * n, lu_unpack_one, &failed));
    if (failed.failed < 0) return PROA_OK;
    return linalg_singular("lu_unpack", "y", "has a pivot that is no row, counted from 1", &failed);
}

/* ---- qr -------------------------------------------------------------------------------------- */

/* a (m×n) ← R above, Householder's vectors below the diagonal; signs as LAPACK's (dgeqr2). w: n numbers. */
static void householder(double *a, int64_t m, int64_t n, double *tau, double *w)
{
    for (int64_t k = 0; k < linalg_least(m, n); k++) {
        double below = 0, alpha = a[k * n + k];
        for (int64_t i = k + 1; i < m; i++) below = hypot(below, a[i * n + k]);
        tau[k] = 0;
        if (below == 0) continue;
        double beta = -copysign(hypot(alpha, below), alpha);
        tau[k] = (beta - alpha) / beta;
        for (int64_t i = k + 1; i < m; i++) a[i * n + k] /= alpha - beta;
        int64_t c = n - k - 1;
        memcpy(w, a + k * n + k + 1, (size_t)c * sizeof *w);
        for (int64_t i = k + 1; i < m; i++) take_d(w, a + i * n + k + 1, -a[i * n + k], c);
        take_d(a + k * n + k + 1, w, tau[k], c);
        for (int64_t i = k + 1; i < m; i++) take_d(a + i * n + k + 1, w, tau[k] * a[i * n + k], c);
        a[k * n + k] = beta;
    }
}

/* q (m×c) ← the first c columns of the product of the reflections. w: c numbers. */
static void form_q(const double *a, int64_t m, int64_t n, const double *tau, double *q, int64_t c, double *w)
{
    identity_d(q, m, c);
    for (int64_t k = linalg_least(m, n) - 1; k >= 0; k--) {
        memcpy(w, q + k * c, (size_t)c * sizeof *w);
        for (int64_t i = k + 1; i < m; i++) take_d(w, q + i * c, -a[i * n + k], c);
        take_d(q + k * c, w, tau[k], c);
        for (int64_t i = k + 1; i < m; i++) take_d(q + i * c, w, tau[k] * a[i * n + k], c);
    }
}

static int64_t qr_one(const void *args, int64_t index, char *work)
{
    const proa_qr_args *a = args;
    int64_t m = linalg_rows(a->x), n = linalg_columns(a->x), rows = linalg_rows(a->r);
    int64_t c = a->mode == PROA_QR_MODE_R ? 0 : linalg_columns(a->q), wide = n > c ? n : c;
    double *x = (double *)(void *)work, *tau = x + m * n, *w = tau + n, *q = w + wide;
    load_d(x, a->x, index * m * n, m * n);
    householder(x, m, n, tau, w);
    if (c) {
        form_q(x, m, n, tau, q, c, w);
        store_d(a->q, index * m * c, q, m * c);
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n && j < i; j++) x[i * n + j] = 0;
        store_d(a->r, (index * rows + i) * n, x + i * n, n);
    }
    return 0;
}

PROA_KERNEL(qr_cpu, qr)
{
    linalg_slot failed;
    double m = (double)linalg_rows(a->x), n = (double)linalg_columns(a->x);
    return linalg_run(a, linalg_count(a->x, 2), m * n + 3 * n + m + m * m, 4 * m * n * n, qr_one, &failed);
}
