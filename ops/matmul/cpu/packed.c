/* Linear layers with a constant weight: prepacked GEMM (kernels/prepacked_gemm.h). May use core and
 * kernels. */
#include "kernels/prepacked_operand.h"

#include "ops/matmul/product.h"

static proa_status linear_fused_prepare(const void *args, void **state)
{
    const proa_linear_fused_args *a = args;
    const proa__epilogue tail = PROA__EPILOGUE(a);
    const proa_tensor *x = a->x, *w = a->weight;
    if (!a->constant_weight || x->dtype != PROA_F32 || !proa__epilogue_is_plain(&tail, a->out))
        return proa_decline("needs constant float32 weights and an epilogue that does not broadcast");
    if (x->ndim != a->out->ndim || x->ndim < 1 || w->ndim != 2 || w->numel == 0)
        return proa_decline("the weight is no matrix, or is empty");
    for (int i = 0; i < x->ndim - 1; i++)
        if (x->shape[i] != a->out->shape[i]) return proa_decline("the input is broadcast");
    const proa_tensor *const read[] = {x, w, a->bias, a->residual};
    for (int i = 0; i < 4; i++)
        if (!proa__absent(read[i]) && (read[i]->flags & PROA_T_STRIDED))
            return proa_decline("an operand is strided");
    if (!proa__absent(a->bias) && a->bias->numel != w->shape[1])
        return proa_decline("the bias is not one number a column");
    return packed_prepare(state);
}

PROA__KERNEL_TRAITS(linear_fused_packed_cpu, .packs = 1u << 1) /* weight */
PROA_KERNEL_PREPARED(linear_fused_packed_cpu, linear_fused, linear_fused_prepare, packed_release)
{
    int64_t k = a->weight->shape[0], n = a->weight->shape[1];
    packed_product w = {.a = {.at = (const float *)(void *)a->x->data, .ld = k},
                        .b = packed_operand(run->state, a->weight, (gemm_strides){n, 1}, k, n),
                        .c = (float *)(void *)a->out->data,
                        .m = a->out->numel / n,
                        .n = n,
                        .k = k,
                        .bias = proa__absent(a->bias) ? NULL : (const float *)(void *)a->bias->data,
                        .tail = PROA__EPILOGUE(a)};
    w.residual = packed_residual(&w.tail);
    return w.b ? packed_run(&w) : proa_error();
}
