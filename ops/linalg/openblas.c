/* Factorizations through OpenBLAS's LAPACK, in the matrices' own precision; a row-major matrix is passed as
 * the column-major transpose that it is, or transposed first where the result depends on it. Batches of small
 * matrices are spread over threads; a large matrix uses all threads, so its rounding depends on their number,
 * unless FLAGS_deterministic gives it one thread. May use core and kernels only. */
#include "core/args_visit.h"
#include "kernels/blas.h"
#include "ops/linalg/linalg.h"

#include <float.h>
#include <limits.h>
#include <math.h>

/* Rows and columns below which our own CPU kernels, which start faster, are used: of factors, and of
 * spectra. */
enum { SMALL = 32, SMALL_SPECTRUM = 1 };

/* Declines what is small, or larger than LAPACK's int. */
static proa_status prepare_for(int64_t least, int64_t m, int64_t n, const proa_tensor *x)
{
#if defined(__x86_64__)
    /* For x86-64 without AVX2 OpenBLAS may choose kernels with 3DNow!, which few of those CPUs have. */
    if (proa__cpu_level() == 0) return proa_decline("needs AVX2");
#endif
    bool fits = m >= least && n >= least && m < INT_MAX / 2 && n < INT_MAX / 2 && x->numel > 0;
    return fits ? PROA_OK : proa_decline("the matrix is small or empty");
}

#define PREPARE(op, least, ...)                                                                     \
    static proa_status op##_prepare(const void *args, void **state)                                 \
    {                                                                                               \
        const proa_##op##_args *a = args;                                                           \
        *state = NULL;                                                                              \
        if (!(__VA_ARGS__)) return proa_decline("the matrix is small, empty, or of another dtype"); \
        return prepare_for(least, linalg_rows(a->x), linalg_columns(a->x), a->x);                   \
    }

/* Elements of a matrix up to which one thread takes it. */
enum { ALONE = 128 * 128 };

/* True if one thread is best for a matrix of so many elements. */
static bool is_alone(int64_t elements)
{
    return elements <= ALONE || proa__flag_int(PROA_FLAG_deterministic) != 0;
}

/* A kernel body that computes an op's whole batch. */
typedef proa_status (*whole_batch)(const void *args);

/* Runs an op on one thread, or on all of them. */
static proa_status run_on_threads(whole_batch run, const void *args, bool alone)
{
    int before = proa__blas_threads(alone ? 1 : proa_threads());
    proa_status status = run(args);
    proa__blas_threads(before);
    return status;
}

/* ---- batches over threads ------------------------------------------------------------------- */

enum { SPREAD_SLOTS = 64, SPREAD_TENSORS = 8, SPREAD_ARGS = 256 };

/* All tensors of the op begin with the same batch dims. */
typedef struct spread {
    const proa_op *op;
    const void *args;
    whole_batch run;
    int batch_dims;
    int64_t count, slots;
    bool failed[SPREAD_SLOTS];
} spread;

/* Matrices [begin, end) of the batch as a call of its own: the same args, with windows for tensors. */
static proa_status run_part(const spread *s, int64_t begin, int64_t end)
{
    _Alignas(16) char args[SPREAD_ARGS];
    proa_tensor windows[SPREAD_TENSORS];
    memcpy(args, s->args, s->op->args_size);
    for (int i = 0, n = 0; i < s->op->n_fields; i++) {
        const proa_field *f = &s->op->fields[i];
        proa_tensor **at = proa__field_one(f, args);
        if (!at) continue;
        proa_tensor *w = &windows[n++];
        if (proa__absent(*at) || (*at)->numel == 0) continue;
        *w = (proa_tensor){.dtype = (*at)->dtype, .ndim = (int8_t)((*at)->ndim - s->batch_dims + 1)};
        int64_t each = 1;
        for (int d = 1; d < w->ndim; d++) each *= w->shape[d] = (*at)->shape[s->batch_dims + d - 1];
        w->shape[0] = end - begin, w->numel = each * (end - begin);
        w->data = (*at)->data + begin * each * (int64_t)proa_dtype_size((proa_dtype)w->dtype);
        *at = w;
    }
    return run_on_threads(s->run, args, true);
}

static void run_parts(int64_t begin, int64_t end, void *context)
{
    spread *s = context;
    for (int64_t i = begin; i < end; i++) {
        s->failed[i] = run_part(s, i * s->count / s->slots, (i + 1) * s->count / s->slots) != PROA_OK;
        if (s->failed[i]) proa_clear_error(); /* perhaps another thread's: see run_spread */
    }
}

static proa_status run_spread(const proa_op *op, const void *args, const proa_tensor *x, whole_batch run)
{
    int64_t m = linalg_rows(x), n = linalg_columns(x), threads = proa_threads();
    spread s = {.op = op, .args = args, .run = run, .batch_dims = x->ndim - 2, .count = linalg_count(x, 2)};
    s.slots = threads < s.count ? threads : s.count;
    if (s.slots > SPREAD_SLOTS) s.slots = SPREAD_SLOTS;
    double work = (double)s.count * (double)m * (double)n * (double)linalg_least(m, n);
    if (s.slots < 2 || !is_alone(m * n) || work < 1e4 || op->args_size > SPREAD_ARGS) s.slots = 1;
    if (s.slots > 1) {
        bool failed = false;
        proa__parallel(s.slots, 1, run_parts, &s);
        for (int64_t i = 0; i < s.slots; i++) failed = failed || s.failed[i];
        if (!failed) return PROA_OK;
    } /* a failed part fails again here, with the error on this thread */
    return run_on_threads(run, args, is_alone(m * n));
}

/* Memory for `elements` numbers, checked. */
static void *work_array(double elements, size_t item)
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

/* Info of a matrix with NaN or infinity, which is not passed to LAPACK because LAPACK would print. */
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

#define WHOLE(op, RUN)                              \
    static proa_status op##_whole(const void *args) \
    {                                               \
        const proa_##op##_args *a = args;           \
        RUN(op)                                     \
    }
#define SPREAD_KERNEL(op, least, condition, RUN)                   \
    PREPARE(op, least, condition)                                  \
    WHOLE(op, RUN)                                                 \
    PROA_KERNEL_PREPARED(op##_openblas, op, op##_prepare, NULL)    \
    {                                                              \
        return run_spread(proa_find_op(#op), a, a->x, op##_whole); \
    }
#define PLAIN_KERNEL(op, RUN)                                        \
    PREPARE(op, SMALL, true)                                         \
    WHOLE(op, RUN)                                                   \
    PROA_KERNEL_PREPARED(op##_openblas, op, op##_prepare, NULL)      \
    {                                                                \
        int64_t elements = linalg_rows(a->x) * linalg_columns(a->x); \
        return run_on_threads(op##_whole, a, is_alone(elements));    \
    }

#define RUN_REAL(op) return a->x->dtype == PROA_F32 ? op##_s(a) : op##_d(a);
#define RUN_ANY(call)              \
    switch (a->x->dtype) {         \
    case PROA_F32: return call(s); \
    case PROA_F64: return call(d); \
    case PROA_C64: return call(c); \
    default: return call(z);       \
    }
#define CALL_INVERSE(p) inverse_##p(a)
#define CALL_SOLVE(p) solve_##p(a)
#define CALL_EIGH(p) eigh_##p("eigh", a->x, a->UPLO == PROA_UPLO_U, a->eigenvalues, a->eigenvectors)
#define CALL_EIGVALSH(p) \
    eigh_##p("eigvalsh", a->x, a->UPLO == PROA_UPLO_U, a->eigenvalues, a->is_test ? NULL : a->eigenvectors)
#define CALL_EIG(p) eig_##p("eig", a->x, a->eigenvalues, a->eigenvectors)
#define CALL_EIGVALS(p) eig_##p("eigvals", a->x, a->out, NULL)
#define RUN_INVERSE(op) RUN_ANY(CALL_INVERSE)
#define RUN_SOLVE(op) RUN_ANY(CALL_SOLVE)
#define RUN_EIGH(op) RUN_ANY(CALL_EIGH)
#define RUN_EIGVALSH(op) RUN_ANY(CALL_EIGVALSH)
#define RUN_EIG(op) RUN_ANY(CALL_EIG)
#define RUN_EIGVALS(op) RUN_ANY(CALL_EIGVALS)

PLAIN_KERNEL(triangular_solve, RUN_REAL)
PLAIN_KERNEL(solve, RUN_SOLVE)
SPREAD_KERNEL(cholesky, SMALL, true, RUN_REAL)
SPREAD_KERNEL(inverse, SMALL, true, RUN_INVERSE)
SPREAD_KERNEL(matrix_power, SMALL, a->n > 0, RUN_REAL)
SPREAD_KERNEL(lu, SMALL, true, RUN_REAL)
SPREAD_KERNEL(qr, SMALL, true, RUN_REAL)
SPREAD_KERNEL(svd, SMALL_SPECTRUM, true, RUN_REAL)
SPREAD_KERNEL(matrix_rank, SMALL_SPECTRUM, !a->hermitian && proa__absent(a->tol_tensor), RUN_REAL)
SPREAD_KERNEL(lstsq, SMALL_SPECTRUM, a->y->numel > 0, RUN_REAL)
SPREAD_KERNEL(eigh, SMALL_SPECTRUM, true, RUN_EIGH)
SPREAD_KERNEL(eigvalsh, SMALL_SPECTRUM, true, RUN_EIGVALSH)
SPREAD_KERNEL(eig, SMALL_SPECTRUM, true, RUN_EIG)
SPREAD_KERNEL(eigvals, SMALL_SPECTRUM, true, RUN_EIGVALS)
