/* A few float32 rows by a large matrix, which is read once: products of a batch's tokens in decoding. May use
 * core, kernels and ops. */
#include "kernels/gemm.h"
#include "kernels/iterator.h"

#include "ops/matmul/cpu/dots.h"
#include "ops/matmul/product.h"

/* DEEP: rows of the matrix that are added at once. GROUP: rows of results that share their loads. CHUNK:
 * columns of an item. WIDE: of neighbouring items computed together. AHEAD: rows of the matrix that are
 * prefetched. LINES: rows of a transposed matrix in the first-level cache. */
enum { FEW_DEEP = 4, FEW_GROUP = 4, FEW_CHUNK = 64, FEW_WIDE = 512, FEW_AHEAD = 4, FEW_LINES = 4 };

static int64_t few_chunks(const matmul_product *p) { return (p->n + FEW_CHUNK - 1) / FEW_CHUNK; }

/* sum[i][0..n) += x[i][0..deep) · y, for `rows` rows of results; fetches: prefetches the rows of y AHEAD. */
static inline __attribute__((always_inline)) void few_add(int rows, int deep, bool fetches, const float *x,
                                                          int64_t x_rs, const float *y, int64_t y_rs,
                                                          int64_t n, float *sum)
{
    float at[FEW_GROUP][FEW_DEEP];
    for (int i = 0; i < rows; i++)
        for (int d = 0; d < deep; d++) at[i][d] = x[i * x_rs + d];
    if (fetches)
        for (int d = 0; d < deep; d++)
            for (int64_t j = 0; j < n; j += 16) __builtin_prefetch(y + (FEW_AHEAD + d) * y_rs + j);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float w[FEW_DEEP];
        for (int d = 0; d < deep; d++) w[d] = y[d * y_rs + j];
        for (int i = 0; i < rows; i++) {
            float s = sum[i * FEW_WIDE + j];
            for (int d = 0; d < deep; d++) s += at[i][d] * w[d];
            sum[i * FEW_WIDE + j] = s;
        }
    }
}

static void few_group(int64_t rows, int64_t deep, bool fetches, const float *x, int64_t x_rs, const float *y,
                      int64_t y_rs, int64_t n, float *sum)
{
    if (deep == FEW_DEEP && rows == 4) few_add(4, FEW_DEEP, fetches, x, x_rs, y, y_rs, n, sum);
    else if (deep == FEW_DEEP && rows == 3) few_add(3, FEW_DEEP, fetches, x, x_rs, y, y_rs, n, sum);
    else if (deep == FEW_DEEP && rows == 2) few_add(2, FEW_DEEP, fetches, x, x_rs, y, y_rs, n, sum);
    else if (deep == FEW_DEEP) few_add(1, FEW_DEEP, fetches, x, x_rs, y, y_rs, n, sum);
    else
        for (int64_t d = 0; d < deep; d++)
            for (int64_t i = 0; i < rows; i++)
                few_add(1, 1, false, x + i * x_rs + d, x_rs, y + d * y_rs, y_rs, n, sum + i * FEW_WIDE);
}

/* Items are (batch, chunk of columns). */
static void few_columns(int64_t begin, int64_t end, void *context)
{
    const matmul_product *p = context;
    int64_t chunks = few_chunks(p), count, x, y, out;
    float sum[FEW_ROWS * FEW_WIDE];
    for (; begin < end; begin += count) {
        int64_t first = begin % chunks, at = first * FEW_CHUNK;
        count = gemm_min(gemm_min(end - begin, chunks - first), FEW_WIDE / FEW_CHUNK);
        int64_t n = gemm_min(count * FEW_CHUNK, p->n - at);
        proa__product_batch(p, begin / chunks, &x, &y, &out);
        const float *from = (const float *)(const void *)p->x + x,
                    *matrix = (const float *)(const void *)p->y + y + at;
        const float *bias = p->add ? (const float *)(const void *)p->add + at : NULL;
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < n; j++) sum[i * FEW_WIDE + j] = 0;
        for (int64_t q = 0; q < p->k; q += FEW_DEEP) {
            int64_t deep = gemm_min(FEW_DEEP, p->k - q);
            for (int64_t i = 0; i < p->m; i += FEW_GROUP)
                few_group(gemm_min(FEW_GROUP, p->m - i), deep, i == 0 && q + FEW_AHEAD + FEW_DEEP <= p->k,
                          from + i * p->x_rs + q, p->x_rs, matrix + q * p->y_rs, p->y_rs, n,
                          sum + i * FEW_WIDE);
        }
        float *to = (float *)(void *)p->out + out + at;
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < n; j++)
                to[i * p->out_rs + j] = bias ? sum[i * FEW_WIDE + j] + bias[j] : sum[i * FEW_WIDE + j];
    }
}

/* The matrix transposed: its lines are columns, an item is LINES of them. */
static void few_lines(int64_t begin, int64_t end, void *context)
{
    const matmul_product *p = context;
    int64_t items = (p->n + FEW_LINES - 1) / FEW_LINES, x, y, out;
    for (; begin < end; begin++) {
        int64_t at = begin % items * FEW_LINES, n = gemm_min(FEW_LINES, p->n - at);
        proa__product_batch(p, begin / items, &x, &y, &out);
        const float *lines = (const float *)(const void *)p->y + y + at * p->y_cs;
        const float *bias = p->add ? (const float *)(const void *)p->add + at : NULL;
        for (int64_t i = 0; i < p->m; i++) {
            float *to = (float *)(void *)p->out + out + i * p->out_rs + at;
            dots(lines, p->y_cs, (const float *)(const void *)p->x + x + i * p->x_rs, p->k, n, to);
            for (int64_t j = 0; bias && j < n; j++) to[j] += bias[j];
        }
    }
}

static proa_status few_run(const matmul_product *p)
{
    bool lines = p->y_cs != 1;
    int64_t columns = lines ? FEW_LINES : FEW_CHUNK, items = (p->n + columns - 1) / columns;
    proa__parallel(p->batches * items, PROA_GRAIN / (columns * p->k) + 1, lines ? few_lines : few_columns,
                   (void *)(uintptr_t)p);
    return PROA_OK;
}

static proa_status few_prepare(const matmul_product *p, void **state)
{
    *state = NULL;
    return product_is_few_rows(p) ? PROA_OK : proa_decline("not a few rows by a large matrix");
}

#define FEW_PRODUCT(op, make)                                       \
    PRODUCT_PREPARE(op, make, few_prepare)                          \
    PROA_KERNEL_PREPARED(op##_few_rows_cpu, op, op##_prepare, NULL) \
    {                                                               \
        matmul_product p = make(a);                                 \
        return few_run(&p);                                         \
    }

FEW_PRODUCT(matmul, PRODUCT_MATMUL)
FEW_PRODUCT(linear, product_linear)
