/* Shape inference of the counting ops. May use core, kernels and ops. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/count.h"

proa_status histogram_infer(const proa_histogram_args *a, proa_histogram_metas *m)
{
    if (a->bins < 1)
        return OP_FAIL("histogram", INVALID_ARGUMENT, "bins", "is %lld; expected 1 or more",
                       (long long)a->bins);
    if (a->max < a->min)
        return OP_FAIL("histogram", INVALID_ARGUMENT, "max", "is %lld; expected at least min, %lld",
                       (long long)a->max, (long long)a->min);
    m->out = (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {a->bins}};
    return PROA_OK;
}

proa_status bincount_infer(const proa_bincount_args *a, proa_bincount_metas *m)
{
    const proa_tensor *w = a->weights == proa_none ? NULL : a->weights;
    if (a->minlength < 0)
        return OP_FAIL("bincount", INVALID_ARGUMENT, "minlength", "is %lld; expected 0 or more",
                       (long long)a->minlength);
    if (a->x->ndim != 1)
        return OP_FAIL("bincount", INVALID_ARGUMENT, "x", "is %s; expected one axis",
                       proa__tensor_text(a->x));
    if (w && (!rows_same_shape(a->x, w) || w->dtype > PROA_F64 || w->dtype == PROA_BOOL))
        return OP_FAIL("bincount", INVALID_ARGUMENT, "weights",
                       "is %s; expected real numbers of x's shape, %s", proa__tensor_text(w),
                       proa__shape_text(a->x->shape, a->x->ndim));
    m->out = (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {-1}};
    if (w) m->out.dtype = w->dtype == PROA_F32 ? PROA_F32 : PROA_F64;
    return PROA_OK;
}
