/* Factorisations through the LAPACK that OpenBLAS carries, in the matrices' own precision: large matrices
 * only, one after the other, each on all threads. LAPACK stores columns: a row-major matrix is its transpose
 * there. May use core only. */
#include "ops/linalg/linalg.h"

#include <cblas.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <openblas_config.h>

/* Rows and columns below which the portable kernels, which start faster, are used: of factors, and of
 * spectra. */
enum { SMALL = 32, SMALL_SPECTRUM = 1 };

/* Declines what is small, or larger than LAPACK's int. */
static proa_status prepare_for(int64_t least, int64_t m, int64_t n, const proa_tensor *x)
{
#if defined(__x86_64__)
    /* For x86-64 without AVX2 OpenBLAS may choose kernels with 3DNow!, which few of those CPUs have. */
    if (proa__cpu_level() == 0) return PROA_DECLINED;
#endif
    bool fits = m >= least && n >= least && m < INT_MAX / 2 && n < INT_MAX / 2 && x->numel > 0;
    return fits ? PROA_OK : PROA_DECLINED;
}

#define PREPARE(op, least, ...)                                                   \
    static proa_status op##_prepare(const void *args, void **state)               \
    {                                                                             \
        const proa_##op##_args *a = args;                                         \
        *state = NULL;                                                            \
        if (!(__VA_ARGS__)) return PROA_DECLINED;                                 \
        return prepare_for(least, linalg_rows(a->x), linalg_columns(a->x), a->x); \
    }

static void use_threads(void)
{
    int wanted = proa_threads();
    if (openblas_get_num_threads() != wanted) openblas_set_num_threads(wanted);
}

/* Memory for `elements` numbers, checked. */
static void *room(double elements, size_t item)
{
    if (elements * (double)item > 4e18) {
        proa_fail(PROA_ERR_OVERFLOW, "a matrix is too large: %g numbers of workspace", elements);
        return NULL;
    }
    return proa_scratch(((size_t)elements + 1) * item);
}

static proa_status failed_at(const char *op, const char *what, int64_t index)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x", "%s: matrix %lld", what,
                         (long long)index);
}

/* What an iteration said; LAPACK prints where it is given NaN or infinity, so it is not. */
enum { NOT_FINITE = -100 };

static proa_status stopped_at(const char *op, blasint info, int64_t index)
{
    return failed_at(op,
                     info == NOT_FINITE ? "holds NaN or infinity"
                                        : "has values that LAPACK's iteration does not reach",
                     index);
}

/* A size of workspace that LAPACK gave as a floating number, which is rounded beyond 2^24. */
#define WORK_SIZE(best) ((blasint)((double)(best)*1.0001) + 1)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(name##_, P)
#define LAPACK(name) PASTE(PASTE(P, name), _)

#define P s
#define T float
#define R float
#include "ops/linalg/openblas_body.inc"
#include "ops/linalg/openblas_real.inc"
#undef P
#undef T
#undef R

#define P d
#define T double
#define R double
#include "ops/linalg/openblas_body.inc"
#include "ops/linalg/openblas_real.inc"
#undef P
#undef T
#undef R

#include <complex.h>

#define LINALG_COMPLEX
#define P c
#define T float _Complex
#define R float
#include "ops/linalg/openblas_body.inc"
#undef P
#undef T
#undef R

#define P z
#define T double _Complex
#define R double
#include "ops/linalg/openblas_body.inc"
#undef P
#undef T
#undef R

/* ---- kernels ------------------------------------------------------------------------------ */

#define REAL_KERNEL(op, least, ...)                             \
    PREPARE(op, least, __VA_ARGS__)                             \
    PROA_KERNEL_PREPARED(op##_openblas, op, op##_prepare, NULL) \
    {                                                           \
        use_threads();                                          \
        return a->x->dtype == PROA_F32 ? op##_s(a) : op##_d(a); \
    }
REAL_KERNEL(cholesky, SMALL, true)
REAL_KERNEL(triangular_solve, SMALL, true)
REAL_KERNEL(matrix_power, SMALL, a->n > 0)
REAL_KERNEL(lu, SMALL, true)
REAL_KERNEL(qr, SMALL, true)
REAL_KERNEL(svd, SMALL_SPECTRUM, true)
REAL_KERNEL(matrix_rank, SMALL_SPECTRUM, !a->hermitian && proa__absent(a->tol_tensor))
REAL_KERNEL(lstsq, SMALL_SPECTRUM, a->y->numel > 0)

#define ANY_KERNEL(op, least, RUN)                              \
    PREPARE(op, least, true)                                    \
    PROA_KERNEL_PREPARED(op##_openblas, op, op##_prepare, NULL) \
    {                                                           \
        use_threads();                                          \
        switch (a->x->dtype) {                                  \
        case PROA_F32: return RUN(s);                           \
        case PROA_F64: return RUN(d);                           \
        case PROA_C64: return RUN(c);                           \
        default: return RUN(z);                                 \
        }                                                       \
    }
#define RUN_INVERSE(p) inverse_##p(a)
#define RUN_SOLVE(p) solve_##p(a)
#define RUN_EIGH(p) eigh_##p("eigh", a->x, a->UPLO == PROA_UPLO_U, a->eigenvalues, a->eigenvectors)
#define RUN_EIGVALSH(p) \
    eigh_##p("eigvalsh", a->x, a->UPLO == PROA_UPLO_U, a->eigenvalues, a->is_test ? NULL : a->eigenvectors)
#define RUN_EIG(p) eig_##p("eig", a->x, a->eigenvalues, a->eigenvectors)
#define RUN_EIGVALS(p) eig_##p("eigvals", a->x, a->out, NULL)
ANY_KERNEL(inverse, SMALL, RUN_INVERSE)
ANY_KERNEL(solve, SMALL, RUN_SOLVE)
ANY_KERNEL(eigh, SMALL_SPECTRUM, RUN_EIGH)
ANY_KERNEL(eigvalsh, SMALL_SPECTRUM, RUN_EIGVALSH)
ANY_KERNEL(eig, SMALL_SPECTRUM, RUN_EIG)
ANY_KERNEL(eigvals, SMALL_SPECTRUM, RUN_EIGVALS)
