/* Matrix products through oneDNN's matmul primitive: float32, bfloat16 and float16 where the CPU has them,
 * operands read in place through their strides. May use core only. */
#include "ops/onednn.h"
#include "ops/matmul/product.h"

/* Below these many multiply-adds the smaller fixed cost of OpenBLAS and of the portable kernel wins. */
#define SMALL_WORK_F32 200000.0
#define SMALL_WORK_HALF 4096.0

static bool plain_strides(int64_t rs, int64_t cs, int64_t rows, int64_t columns)
{
    return (cs == 1 && (rs >= columns || rows == 1)) || (rs == 1 && (cs >= rows || columns == 1));
}

/* Batch strides as oneDNN has them: a broadcast dim has size 1, every other stride is positive. */
static bool put_dims(const matmul_product *p, const int64_t *strides, int64_t *dims, int64_t *to)
{
    for (int i = 0; i < p->batch_dims; i++) {
        if (strides[i] < 0) return false;
        dims[i] = strides[i] == 0 ? 1 : p->batch[i];
        to[i] = strides[i] == 0 ? 1 : strides[i];
    }
    return true;
}

static bool suits(const matmul_product *p)
{
    if (p->odd || p->k == 0 || p->batches == 0 || p->m == 0 || p->n == 0 || p->batch_dims > 3) return false;
    if (p->dtype != PROA_F32 && p->dtype != PROA_BF16 && p->dtype != PROA_F16) return false;
    if (product_work(p) < (p->dtype == PROA_F32 ? SMALL_WORK_F32 : SMALL_WORK_HALF) || p->m == 1 || p->n == 1)
        return false;
    return plain_strides(p->x_rs, p->x_cs, p->m, p->k) && plain_strides(p->y_rs, p->y_cs, p->k, p->n);
}

static bool describe(proa__dnnl_build *b, const matmul_product *p)
{
    int n = p->batch_dims + 2;
    int64_t dims[3][5], strides[3][5], bias_dims[5] = {1, 1, 1, 1, 1};
    int64_t bias_strides[5];
    for (int i = 0; i < 5; i++) bias_strides[i] = p->n;
    if (!put_dims(p, p->x_batch, dims[0], strides[0]) || !put_dims(p, p->y_batch, dims[1], strides[1]) ||
        !put_dims(p, p->out_batch, dims[2], strides[2]))
        return false;
    for (int i = 0; i < p->batch_dims; i++) dims[2][i] = p->batch[i];
    dims[0][n - 2] = p->m, dims[0][n - 1] = p->k, strides[0][n - 2] = p->x_rs, strides[0][n - 1] = p->x_cs;
    dims[1][n - 2] = p->k, dims[1][n - 1] = p->n, strides[1][n - 2] = p->y_rs, strides[1][n - 1] = p->y_cs;
    dims[2][n - 2] = p->m, dims[2][n - 1] = p->n, strides[2][n - 2] = p->n, strides[2][n - 1] = 1;
    bias_dims[n - 1] = p->n, bias_strides[n - 1] = 1;
    bool ok = proa__dnnl_add(b, DNNL_ARG_SRC, false, proa__dnnl_md(n, dims[0], strides[0], p->dtype)) &&
              proa__dnnl_add(b, DNNL_ARG_WEIGHTS, false, proa__dnnl_md(n, dims[1], strides[1], p->dtype)) &&
              proa__dnnl_add(b, DNNL_ARG_DST, true, proa__dnnl_md(n, dims[2], strides[2], p->dtype)) &&
              (!p->has_add ||
               proa__dnnl_add(b, DNNL_ARG_BIAS, false, proa__dnnl_md(n, bias_dims, bias_strides, p->dtype)));
    return ok && dnnl_matmul_primitive_desc_create(&b->desc, proa__dnnl_engine(), b->args[0].user,
                                                   b->args[1].user, p->has_add ? b->args[3].user : NULL,
                                                   b->args[2].user, b->attr) == dnnl_success;
}

static proa_status prepare(const matmul_product *p, void **state)
{
    if (!suits(p) || (p->has_add && (p->add_rs != 0 || (p->add_cs != 1 && p->n != 1)))) return PROA_DECLINED;
    proa__dnnl_build b;
    bool ok = proa__dnnl_begin(&b) && describe(&b, p);
    return proa__dnnl_finish(&b, ok, state);
}

/* The kernel of one op: `make` turns its args into a product. */
#define DNNL_PRODUCT(op, make)                                                                            \
    static proa_status op##_prepare(const void *args, void **state)                                       \
    {                                                                                                     \
        matmul_product p = make((const proa_##op##_args *)args);                                          \
        return prepare(&p, state);                                                                        \
    }                                                                                                     \
    PROA_KERNEL_PREPARED(op##_onednn, op, op##_prepare, proa__dnnl_release)                               \
    {                                                                                                     \
        matmul_product p = make(a);                                                                       \
        void *data[] = {(void *)(uintptr_t)p.x, (void *)(uintptr_t)p.y, p.out, (void *)(uintptr_t)p.add}; \
        return proa__dnnl_run(run->state, a, op##_prepare, data);                                         \
    }

DNNL_PRODUCT(matmul, PRODUCT_MATMUL)
DNNL_PRODUCT(bmm, PRODUCT_BMM)
DNNL_PRODUCT(linear, product_linear)
