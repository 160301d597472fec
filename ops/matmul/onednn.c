/* Matrix products through oneDNN's matmul primitive: float32, bfloat16 and float16 where the CPU has them,
 * operands read in place through their strides, but a constant weight of linear_fused packed once. May use
 * core and kernels only. */
#include "ops/matmul/onednn_product.h"

/* Below these many multiply-adds the smaller fixed cost of OpenBLAS and of the kernels in cpu/ wins. */
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

bool proa__dnnl_product_suits(const matmul_product *p)
{
    if (p->odd || p->k == 0 || p->batches == 0 || p->m == 0 || p->n == 0 || p->batch_dims > 3) return false;
    return plain_strides(p->x_rs, p->x_cs, p->m, p->k) && plain_strides(p->y_rs, p->y_cs, p->k, p->n);
}

/* FEW: rows of a result below which oneDNN's AVX2 kernel reads the right operand in place instead of copying
 * it, at half the speed if its rows conflict. SHALLOW: terms of a sum below which that is no matter. */
enum { FEW = 512, SHALLOW = 128 };

static bool conflicts(const matmul_product *p)
{
    return p->dtype == PROA_F32 && p->batches == 1 && p->m < FEW && p->y_cs == 1 &&
           p->y_rs % PRODUCT_CROWDED == 0 && p->k >= SHALLOW && proa__cpu_level() < 2;
}

/* packs: the second operand is packed once. A single row by a matrix of half types pays then alone: the other
 * kernels convert the matrix each time. */
static bool suits(const matmul_product *p, bool packs)
{
    if (p->dtype != PROA_F32 && p->dtype != PROA_BF16 && p->dtype != PROA_F16) return false;
    if (product_work(p) < (p->dtype == PROA_F32 ? SMALL_WORK_F32 : SMALL_WORK_HALF)) return false;
    if (p->n == 1 || p->k == 1 || (p->m == 1 && (p->dtype == PROA_F32 || !packs))) return false;
    if (!packs && conflicts(p)) return false;
    return proa__dnnl_product_suits(p);
}

bool proa__dnnl_describe_product(proa__dnnl_build *b, const matmul_product *p,
                                 const proa__dnnl_product_form *form)
{
    const proa_dtype *dtypes = form->dtypes;
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
    dims[2][n - 2] = p->m, dims[2][n - 1] = p->n, strides[2][n - 2] = p->out_rs;
    strides[2][n - 1] = 1;
    bias_dims[n - 1] = p->n, bias_strides[n - 1] = 1;
    bool ok = !form->tail || proa__dnnl_post_ops(b, form->tail, n, dims[2], strides[2], NULL);
    int first = b->n_args;
    ok = ok && proa__dnnl_add(b, DNNL_ARG_SRC, false, proa__dnnl_md(n, dims[0], strides[0], dtypes[0])) &&
         proa__dnnl_add(b, DNNL_ARG_WEIGHTS, false, proa__dnnl_md(n, dims[1], strides[1], dtypes[1])) &&
         proa__dnnl_add(b, DNNL_ARG_DST, true, proa__dnnl_md(n, dims[2], strides[2], dtypes[2])) &&
         (!p->has_add ||
          proa__dnnl_add(b, DNNL_ARG_BIAS, false, proa__dnnl_md(n, bias_dims, bias_strides, p->dtype)));
    const proa__dnnl_arg *at = &b->args[first];
    dnnl_memory_desc_t any = ok && form->packs ? proa__dnnl_md_any(n, dims[1], p->dtype) : NULL;
    ok = ok && (any || !form->packs) &&
         dnnl_matmul_primitive_desc_create(&b->desc, proa__dnnl_engine(), at[0].user,
                                           form->packs ? any : at[1].user, p->has_add ? at[3].user : NULL,
                                           at[2].user, b->attr) == dnnl_success;
    if (any) dnnl_memory_desc_destroy(any);
    return ok;
}

static bool describe(proa__dnnl_build *b, const matmul_product *p, bool packs, const proa__epilogue *tail)
{
    proa__dnnl_product_form form = {{p->dtype, p->dtype, p->dtype}, packs, tail};
    return proa__dnnl_describe_product(b, p, &form);
}

static proa_status prepare(const matmul_product *p, void **state)
{
    if (!suits(p, false) || (p->has_add && (p->add_rs != 0 || (p->add_cs != 1 && p->n != 1))))
        return proa_decline("a dtype, size, stride or addend that oneDNN does not take");
    proa__dnnl_build b;
    bool ok = proa__dnnl_begin(&b, product_work(p)) && describe(&b, p, false, NULL);
    return proa__dnnl_finish(&b, ok, state);
}

/* The kernel of one op: `make` turns its args into a product. */
#define DNNL_PRODUCT(op, make)                                                                            \
    PRODUCT_PREPARE(op, make, prepare)                                                                    \
    PROA_KERNEL_PREPARED(op##_onednn, op, op##_prepare, proa__dnnl_release)                               \
    {                                                                                                     \
        matmul_product p = make(a);                                                                       \
        void *data[] = {(void *)(uintptr_t)p.x, (void *)(uintptr_t)p.y, p.out, (void *)(uintptr_t)p.add}; \
        return proa__dnnl_run(run->state, a, op##_prepare, data);                                         \
    }

DNNL_PRODUCT(matmul, PRODUCT_MATMUL)
DNNL_PRODUCT(bmm, PRODUCT_BMM)
DNNL_PRODUCT(linear, product_linear)
DNNL_PRODUCT(matmul_swapped, PRODUCT_SWAPPED)

/* ---- linear_fused: products with an epilogue ---- */

static matmul_product product_linear_fused(const proa_linear_fused_args *a)
{
    return product_linear(
        &(proa_linear_args){.x = a->x, .weight = a->weight, .bias = a->bias, .out = a->out});
}

static proa_status linear_fused_prepare(const void *args, void **state)
{
    const proa_linear_fused_args *a = args;
    const proa__epilogue tail = PROA__EPILOGUE(a);
    if (!proa__epilogue_is_plain(&tail, a->out) || a->x->ndim != a->out->ndim)
        return proa_decline("an epilogue that broadcasts");
    for (int i = 0; i < a->x->ndim - 1; i++)
        if (a->x->shape[i] != a->out->shape[i]) return proa_decline("the input is broadcast");
    if (!proa__absent(a->residual) && a->residual->flags & PROA_T_STRIDED)
        return proa_decline("the residual is strided");
    matmul_product p = product_linear_fused(a);
    if (proa__dnnl_shares_sums(&p)) return proa_decline("threads would share its sums");
    if (!suits(&p, a->constant_weight) || p.batch_dims || (p.has_add && p.add_cs != 1 && p.n != 1))
        return proa_decline("a dtype, size or stride that oneDNN does not take");
    proa__dnnl_build b;
    bool ok =
        proa__dnnl_begin(&b, product_work(&p)) && describe(&b, &p, a->constant_weight, &PROA__EPILOGUE(a));
    return proa__dnnl_finish(&b, ok, state);
}

/* Operands in the primitive's order: the residual, if there is one, is first. */
PROA__KERNEL_TRAITS(linear_fused_onednn, .packs = 1u << 1) /* weight */
PROA_KERNEL_PREPARED(linear_fused_onednn, linear_fused, linear_fused_prepare, proa__dnnl_release)
{
    int first = !proa__absent(a->residual);
    proa_tensor *all[] = {a->residual, a->x, a->weight, a->out, a->bias}, **tensors = all + !first;
    if (!a->constant_weight) PROA_TRY(proa__plain(a->weight));
    if (!a->constant_weight) return proa__dnnl_run_tensors(run, a, linear_fused_prepare, tensors);
    return proa__dnnl_run_constant(run, a, linear_fused_prepare, tensors, first + 1);
}
