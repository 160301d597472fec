/* Pooling, softmax and convolution over sequences, on the CPU. May use core and the helpers of ops/. */
#include "ops/lod/offsets.h"
#include "impl/lod.h"

#include <math.h>

static double pool_divisor(int type, int64_t n)
{
    if (type == PROA_SEQUENCE_POOL_TYPE_AVERAGE) return (double)n;
    return type == PROA_SEQUENCE_POOL_TYPE_SQRT ? sqrt((double)n) : 1.0;
}

#define T float
#include "ops/lod/pool.inc"
#undef T
#define T double
#include "ops/lod/pool.inc"
#undef T

/* Kernel `op`: `fn` for the dtype of field `of`, with offsets that end at its rows. */
#define LOD_KERNEL(op, fn, of)                                                                  \
    PROA_KERNEL(op##_cpu, op)                                                                   \
    {                                                                                           \
        offsets sequences;                                                                      \
        PROA_TRY(offsets_of(#op, "offsets", a->offsets, a->of->shape[0], &sequences));          \
        return a->of->dtype == PROA_F64 ? fn##_double(a, sequences) : fn##_float(a, sequences); \
    }

LOD_KERNEL(sequence_pool, pool, x)
LOD_KERNEL(sequence_softmax, softmax, x)
LOD_KERNEL(sequence_softmax_grad, softmax_grad, out)
LOD_KERNEL(sequence_conv, conv, x)
LOD_KERNEL(sequence_conv_grad, conv_grad, x)

PROA_KERNEL(sequence_pool_grad_cpu, sequence_pool_grad)
{
    offsets of;
    PROA_TRY(offsets_of("sequence_pool_grad", "offsets", a->offsets, a->x->shape[0], &of));
    if (a->d_out->numel != of.n * row_items(a->x))
        return ROWS_FAIL(sequence_pool_grad, INVALID_ARGUMENT, "d_out",
                         "is %s; expected a row a sequence, %lld", proa__tensor_text(a->d_out),
                         (long long)of.n);
    return a->x->dtype == PROA_F64 ? pool_grad_double(a, of) : pool_grad_float(a, of);
}
