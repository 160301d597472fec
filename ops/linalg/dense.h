/* Dense matrices for the CPU kernels: row-major, one matrix at a time, threads share the batch. All
 * arithmetic is in double or complex double, so that float32 results are accurate to rounding. For kernel
 * files (compiled once per CPU level); everything is static. May use core only. */
#ifndef PROA_OPS_LINALG_DENSE_H
#define PROA_OPS_LINALG_DENSE_H

#include "ops/linalg/linalg.h"

#include <complex.h>
#include <float.h>
#include <math.h>

#define LINALG_UNUSED __attribute__((unused))

/* ---- the batch --------------------------------------------------------------------------- */

/* Computes one matrix of the batch, with `work` as workspace. Returns 0 or an error code of its own. */
typedef int64_t (*linalg_one)(const void *args, int64_t index, char *work);

typedef struct linalg_slot {
    int64_t failed, code; /* index of the first matrix that failed (−1: none), and its error code */
} linalg_slot;

typedef struct linalg_batch {
    const void *args;
    int64_t count, slots;
    char *work;
    size_t each;
    linalg_one one;
} linalg_batch;

static void linalg_range(int64_t begin, int64_t end, void *context)
{
    const linalg_batch *b = context;
    for (int64_t s = begin; s < end; s++) {
        char *work = b->work + (size_t)s * b->each;
        linalg_slot *slot = (linalg_slot *)(void *)work;
        *slot = (linalg_slot){-1, 0};
        for (int64_t i = s * b->count / b->slots; i < (s + 1) * b->count / b->slots; i++) {
            int64_t code = b->one(b->args, i, work + 64);
            if (code && slot->failed < 0) *slot = (linalg_slot){i, code};
        }
    }
}

/* Runs `one` for every matrix of the batch. `elements`: doubles of workspace per matrix; `flops`: cost per
 * matrix. `failed` receives the first index that failed and its code. */
static LINALG_UNUSED proa_status linalg_run(const void *args, int64_t count, double elements, double flops,
                                            linalg_one one, linalg_slot *failed)
{
    linalg_batch b = {.args = args, .count = count, .one = one, .slots = 1};
    if ((double)count * flops > 1e5 && count > 1) b.slots = proa_threads() < count ? proa_threads() : count;
    *failed = (linalg_slot){-1, 0};
    if (count == 0) return PROA_OK;
    if ((elements * 8 + 192) * (double)b.slots > 4e18)
        return proa_fail(PROA_ERR_OVERFLOW, "a matrix is too large: %g numbers of workspace", elements);
    b.each = ((size_t)elements * sizeof(double) + 64 + 63) / 64 * 64 + 64;
    b.work = proa_scratch(b.each * (size_t)b.slots);
    if (!b.work) return proa_error();
    proa__parallel(b.slots, 1, linalg_range, &b);
    for (int64_t s = b.slots - 1; s >= 0; s--) {
        const linalg_slot *slot = (const linalg_slot *)(const void *)(b.work + (size_t)s * b.each);
        if (slot->failed >= 0) *failed = *slot;
    }
    proa_scratch_free(b.work);
    return PROA_OK;
}

static LINALG_UNUSED proa_status linalg_singular(const char *op, const char *argument, const char *what,
                                                 const linalg_slot *failed)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), argument, "%s: matrix %lld, row %lld",
                         what, (long long)failed->failed, (long long)failed->code - 1);
}

static LINALG_UNUSED bool linalg_complex(const proa_tensor *t)
{
    return t->dtype == PROA_C64 || t->dtype == PROA_C128;
}

/* Code of a failed iteration: 1 for a matrix with NaN or infinity, otherwise the eigenvalue that it stopped
 * at, counted from 2. */
enum { LINALG_NOT_FINITE = 1 };

static LINALG_UNUSED proa_status linalg_stopped(const char *op, const linalg_slot *failed)
{
    if (failed->failed < 0) return PROA_OK;
    if (failed->code == LINALG_NOT_FINITE)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                             "holds NaN or infinity: matrix %lld", (long long)failed->failed);
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                         "has eigenvalues that the QR algorithm does not reach: matrix %lld, number %lld",
                         (long long)failed->failed, (long long)failed->code - 2);
}

/* ---- real and complex matrices ------------------------------------------------------------ */

#define T double
#define FN(name) name##_d
#define CONJ(x) (x)
#define MAG(x) fabs(x)
#define RE(x) (x)
#define SUM_SIMD _Pragma("omp simd reduction(+ : sum)")
#include "ops/linalg/dense.inc"
#undef T
#undef FN
#undef CONJ
#undef MAG
#undef RE
#undef SUM_SIMD

typedef double _Complex linalg_z;
#define T linalg_z
#define FN(name) name##_z
#define CONJ(x) conj(x)
#define MAG(x) cabs(x)
#define RE(x) creal(x)
#define SUM_SIMD
#include "ops/linalg/dense.inc"
#undef T
#undef FN
#undef CONJ
#undef MAG
#undef RE
#undef SUM_SIMD

/* Reads n numbers of dtype d, from element `at` on, as doubles; and stores them. */
static LINALG_UNUSED void load_d(double *to, const proa_tensor *t, int64_t at, int64_t n)
{
    if (t->dtype == PROA_F32) {
        const float *p = (const float *)(const void *)t->data + at;
        for (int64_t i = 0; i < n; i++) to[i] = (double)p[i];
    } else {
        memcpy(to, (const double *)(const void *)t->data + at, (size_t)n * sizeof *to);
    }
}

static LINALG_UNUSED void store_d(proa_tensor *t, int64_t at, const double *from, int64_t n)
{
    if (t->dtype == PROA_F32) {
        float *p = (float *)(void *)t->data + at;
        for (int64_t i = 0; i < n; i++) p[i] = (float)from[i];
    } else {
        memcpy((double *)(void *)t->data + at, from, (size_t)n * sizeof *from);
    }
}

/* load_d and store_d for complex doubles; real tensors are read as complex ones. */
static LINALG_UNUSED void load_z(linalg_z *to, const proa_tensor *t, int64_t at, int64_t n)
{
    const float *f = (const float *)(const void *)t->data;
    const double *d = (const double *)(const void *)t->data;
    double *parts = (double *)to; /* a complex number is its real part and its imaginary one */
    bool wide = t->dtype == PROA_F64 || t->dtype == PROA_C128, pairs = linalg_complex(t);
    for (int64_t i = 0, k = pairs ? 2 * at : at; i < n; i++, k += pairs ? 2 : 1) {
        parts[2 * i] = wide ? d[k] : (double)f[k];
        parts[2 * i + 1] = !pairs ? 0 : wide ? d[k + 1] : (double)f[k + 1];
    }
}

static LINALG_UNUSED void store_z(proa_tensor *t, int64_t at, const linalg_z *from, int64_t n)
{
    float *f = (float *)(void *)t->data + 2 * at;
    double *d = (double *)(void *)t->data + 2 * at;
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == PROA_C64) f[2 * i] = (float)creal(from[i]), f[2 * i + 1] = (float)cimag(from[i]);
        else d[2 * i] = creal(from[i]), d[2 * i + 1] = cimag(from[i]);
    }
}

#endif
