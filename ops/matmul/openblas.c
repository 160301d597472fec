/* Matrix products through OpenBLAS: float32, float64 and complex, one library call a batch, operands read in
 * place when rows or columns are contiguous; not where OpenBLAS does not know the CPU. May use core only. */
#include "ops/matmul/product.h"

#include <cblas.h>
#include <limits.h>
#include <openblas_config.h>
#include <strings.h>

/* Below this many multiply-adds the portable kernel's smaller fixed cost wins. */
#define SMALL_WORK 1000.0

/* Leading dimension of an operand that BLAS can read, 0 if it cannot; *transposed says how. */
static int64_t leading(int64_t rs, int64_t cs, int64_t rows, int64_t columns, bool *transposed)
{
    *transposed = false;
    if (cs == 1 && (rs >= columns || rows == 1)) return rs >= columns ? rs : columns;
    *transposed = true;
    if (rs == 1 && (cs >= rows || columns == 1)) return cs >= rows ? cs : rows;
    return 0;
}

#if defined(__x86_64__)
/* Whether OpenBLAS does without AVX2 here: it takes CPUs that are newer than itself for very old ones. */
static bool is_behind(void)
{
    static const char *const without[] = {"Prescott", "Core2", "Nehalem", "Sandybridge", "Generic"};
    const char *core = openblas_get_corename();
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcasecmp(core, without[i]) == 0) return true;
    return false;
}
#endif

static proa_status prepare(const matmul_product *p, void **state)
{
    bool t;
    *state = NULL;
#if defined(__x86_64__)
    /* For x86-64 without AVX2 OpenBLAS may choose kernels with 3DNow!, which few of those CPUs have. */
    if (proa__cpu_level() == 0 || is_behind()) return PROA_DECLINED;
#endif
    bool known =
        p->dtype == PROA_F32 || p->dtype == PROA_F64 || p->dtype == PROA_C64 || p->dtype == PROA_C128;
    if (!known || p->odd || p->k == 0 || p->batches == 0 || p->m == 0 || p->n == 0) return PROA_DECLINED;
    if (product_work(p) < SMALL_WORK || product_is_dots(p) ||
        (p->has_add && (p->dtype == PROA_C64 || p->dtype == PROA_C128)))
        return PROA_DECLINED;
    int64_t x = leading(p->x_rs, p->x_cs, p->m, p->k, &t), y = leading(p->y_rs, p->y_cs, p->k, p->n, &t);
    if (!x || !y || x > INT_MAX || y > INT_MAX || p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX)
        return PROA_DECLINED;
    return PROA_OK;
}

/* Fills C with beta·D, which gemm then adds to. */
static void put_addend(const matmul_product *p, char *out)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            int64_t at = i * p->add_rs + j * p->add_cs;
            if (p->dtype == PROA_F32)
                ((float *)(void *)out)[i * p->n + j] =
                    (float)p->beta * ((const float *)(const void *)p->add)[at];
            else ((double *)(void *)out)[i * p->n + j] = p->beta * ((const double *)(const void *)p->add)[at];
        }
}

static void multiply(const matmul_product *p, const char *x, const char *y, char *out)
{
    bool tx, ty;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    int ldx = (int)leading(p->x_rs, p->x_cs, p->m, p->k, &tx),
        ldy = (int)leading(p->y_rs, p->y_cs, p->k, p->n, &ty);
    CBLAS_TRANSPOSE a = tx ? CblasTrans : CblasNoTrans, b = ty ? CblasTrans : CblasNoTrans;
    double one = p->add ? 1 : 0;
    double alpha_z[2] = {1, 0}, zero_z[2] = {0, 0};
    float alpha_c[2] = {1, 0}, zero_c[2] = {0, 0};
    if (p->add) put_addend(p, out);
    switch (p->dtype) {
    case PROA_F32:
        cblas_sgemm(CblasRowMajor, a, b, m, n, k, (float)p->alpha, (const float *)(const void *)x, ldx,
                    (const float *)(const void *)y, ldy, (float)one, (float *)(void *)out, n);
        break;
    case PROA_F64:
        cblas_dgemm(CblasRowMajor, a, b, m, n, k, p->alpha, (const double *)(const void *)x, ldx,
                    (const double *)(const void *)y, ldy, one, (double *)(void *)out, n);
        break;
    case PROA_C64: cblas_cgemm(CblasRowMajor, a, b, m, n, k, alpha_c, x, ldx, y, ldy, zero_c, out, n); break;
    default: cblas_zgemm(CblasRowMajor, a, b, m, n, k, alpha_z, x, ldx, y, ldy, zero_z, out, n);
    }
}

static proa_status product_run(const matmul_product *p)
{
    int64_t size = (int64_t)proa_dtype_size(p->dtype);
    int before = openblas_get_num_threads(), wanted = proa_threads();
    if (before != wanted) openblas_set_num_threads(wanted);
    for (int64_t i = 0; i < p->batches; i++) {
        int64_t x, y, out;
        proa__product_batch(p, i, &x, &y, &out);
        multiply(p, p->x + x * size, p->y + y * size, p->out + out * size);
    }
    return PROA_OK;
}

#define BLAS_PRODUCT(op, make)                                      \
    static proa_status op##_prepare(const void *args, void **state) \
    {                                                               \
        matmul_product p = make((const proa_##op##_args *)args);    \
        return prepare(&p, state);                                  \
    }                                                               \
    PROA_KERNEL_PREPARED(op##_openblas, op, op##_prepare, NULL)     \
    {                                                               \
        matmul_product p = make(a);                                 \
        return product_run(&p);                                     \
    }

BLAS_PRODUCT(matmul, PRODUCT_MATMUL)
BLAS_PRODUCT(bmm, PRODUCT_BMM)
BLAS_PRODUCT(mv, PRODUCT_MV)
BLAS_PRODUCT(linear, product_linear)
