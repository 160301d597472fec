/* Matrix products through OpenBLAS: float32, float64 and complex, where rows or columns of both operands are
 * contiguous, which are read in place. Not used on x86-64 CPUs without AVX2 or unknown to OpenBLAS. The
 * product is cut into tiles by size alone, each one single-threaded library call, so that results do not
 * depend on the number of threads. May use core and kernels only. */
#include "kernels/blas.h"
#include "ops/matmul/product.h"

#include <limits.h>
#include <strings.h>

/* Below this many multiply-adds the smaller fixed cost of the kernels in cpu/ wins. */
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
/* True if this OpenBLAS does not know the CPU: it then treats it as a very old one, without AVX2. */
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
    if (proa__cpu_level() == 0 || is_behind()) return proa_decline("OpenBLAS has slower kernels on this CPU");
#endif
    bool known =
        p->dtype == PROA_F32 || p->dtype == PROA_F64 || p->dtype == PROA_C64 || p->dtype == PROA_C128;
    if (!known || p->odd || p->k == 0 || p->batches == 0 || p->m == 0 || p->n == 0)
        return proa_decline("a dtype without BLAS, odd strides, or empty");
    bool real = p->dtype == PROA_F32 || p->dtype == PROA_F64;
    if (product_work(p) < SMALL_WORK || product_is_dots(p) || product_is_streamed(p) || (p->has_add && !real))
        return proa_decline("too small, a vector's product, or complex with an addend");
    int64_t x = leading(p->x_rs, p->x_cs, p->m, p->k, &t), y = leading(p->y_rs, p->y_cs, p->k, p->n, &t);
    if (!x || !y || x > INT_MAX || y > INT_MAX || p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX)
        return proa_decline("no leading dimension, or a length beyond int");
    return PROA_OK;
}

/* ---- tiles ---- */

/* PACKING: multiply-adds that cost as much as packing an element. MIN_WORK: of a tile (about 0.1 ms).
 * MAX_AREA: elements of a tile. MIN_SIDE: shortest side. TILES: fewest tiles of a large product. */
enum { PACKING = 16, MIN_WORK = 2000000, MAX_AREA = 1 << 17, MIN_SIDE = 64, TILES = 8 };

typedef struct tiling {
    const matmul_product *p;
    int64_t m, n;             /* of a tile */
    int64_t tiles_m, tiles_n; /* of a batch */
} tiling;

static double tile_work(const tiling *t)
{
    return (double)t->p->k * ((double)t->m * (double)t->n + PACKING * (double)(t->m + t->n));
}

/* The halves of a side, the first in whole vectors. */
static void halve(int64_t *side) { *side = (*side / 2 + 15) / 16 * 16; }

static tiling cut(const matmul_product *p)
{
    tiling t = {.p = p, .m = p->m, .n = p->n, .tiles_m = 1, .tiles_n = 1};
    for (;;) {
        int64_t *side = t.m >= t.n ? &t.m : &t.n;
        bool few = p->batches * t.tiles_m * t.tiles_n < TILES && tile_work(&t) > 2.0 * MIN_WORK;
        if (*side < 2 * MIN_SIDE || (!few && t.m * t.n <= MAX_AREA)) return t;
        halve(side);
        t.tiles_m = (p->m + t.m - 1) / t.m, t.tiles_n = (p->n + t.n - 1) / t.n;
    }
}

/* Fills a tile of C with beta·D, which gemm then adds to. */
static void put_addend(const matmul_product *p, int64_t i0, int64_t j0, int64_t m, int64_t n, char *out)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = (i0 + i) * p->add_rs + (j0 + j) * p->add_cs, to = i * p->n + j;
            if (p->dtype == PROA_F32)
                ((float *)(void *)out)[to] = (float)p->beta * ((const float *)(const void *)p->add)[at];
            else ((double *)(void *)out)[to] = p->beta * ((const double *)(const void *)p->add)[at];
        }
}

/* One tile: rows of x by columns of y. */
static void multiply(const matmul_product *p, int64_t rows, int64_t columns, const char *x, const char *y,
                     char *out)
{
    bool tx, ty;
    int m = (int)rows, n = (int)columns, k = (int)p->k, ldc = (int)p->n;
    int ldx = (int)leading(p->x_rs, p->x_cs, p->m, p->k, &tx),
        ldy = (int)leading(p->y_rs, p->y_cs, p->k, p->n, &ty);
    CBLAS_TRANSPOSE a = tx ? CblasTrans : CblasNoTrans, b = ty ? CblasTrans : CblasNoTrans;
    double one = p->add ? 1 : 0;
    double alpha_z[2] = {1, 0}, zero_z[2] = {0, 0};
    float alpha_c[2] = {1, 0}, zero_c[2] = {0, 0};
    switch (p->dtype) {
    case PROA_F32:
        cblas_sgemm(CblasRowMajor, a, b, m, n, k, (float)p->alpha, (const float *)(const void *)x, ldx,
                    (const float *)(const void *)y, ldy, (float)one, (float *)(void *)out, ldc);
        break;
    case PROA_F64:
        cblas_dgemm(CblasRowMajor, a, b, m, n, k, p->alpha, (const double *)(const void *)x, ldx,
                    (const double *)(const void *)y, ldy, one, (double *)(void *)out, ldc);
        break;
    case PROA_C64:
        cblas_cgemm(CblasRowMajor, a, b, m, n, k, alpha_c, x, ldx, y, ldy, zero_c, out, ldc);
        break;
    default: cblas_zgemm(CblasRowMajor, a, b, m, n, k, alpha_z, x, ldx, y, ldy, zero_z, out, ldc);
    }
}

static void run_tiles(int64_t begin, int64_t end, void *context)
{
    const tiling *t = context;
    const matmul_product *p = t->p;
    int64_t size = (int64_t)proa_dtype_size(p->dtype), each = t->tiles_m * t->tiles_n;
    int before = proa__blas_threads(1);
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t x, y, out, i0 = tile % each / t->tiles_n * t->m, j0 = tile % t->tiles_n * t->n;
        int64_t m = p->m - i0 < t->m ? p->m - i0 : t->m, n = p->n - j0 < t->n ? p->n - j0 : t->n;
        proa__product_batch(p, tile / each, &x, &y, &out);
        char *to = p->out + (out + i0 * p->n + j0) * size;
        if (p->add) put_addend(p, i0, j0, m, n, to);
        multiply(p, m, n, p->x + (x + i0 * p->x_rs) * size, p->y + (y + j0 * p->y_cs) * size, to);
    }
    proa__blas_threads(before);
}

static proa_status product_run(const matmul_product *p)
{
    tiling t = cut(p);
    proa__blas_buffers(proa_threads());
    proa__parallel(p->batches * t.tiles_m * t.tiles_n, 1 + (int64_t)(MIN_WORK / (tile_work(&t) + 1)),
                   run_tiles, &t);
    return PROA_OK;
}

#define BLAS_PRODUCT(op, make)                                  \
    PRODUCT_PREPARE(op, make, prepare)                          \
    PROA_KERNEL_PREPARED(op##_openblas, op, op##_prepare, NULL) \
    {                                                           \
        matmul_product p = make(a);                             \
        return product_run(&p);                                 \
    }

BLAS_PRODUCT(matmul, PRODUCT_MATMUL)
BLAS_PRODUCT(bmm, PRODUCT_BMM)
BLAS_PRODUCT(mv, PRODUCT_MV)
BLAS_PRODUCT(linear, product_linear)
