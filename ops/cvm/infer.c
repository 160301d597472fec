/* Shapes and rule of cvm. May use core and public ops. */
#include "ops/ints.h"
#include "impl/cvm.h"
#include "impl/lod.h"
#include "impl/shape.h"

proa_status cvm_infer(const proa_cvm_args *a, proa_cvm_metas *m)
{
    if (a->x->ndim != 2 || (a->x->shape[1] >= 0 && a->x->shape[1] < 2))
        return OP_FAIL("cvm", INVALID_ARGUMENT, "x",
                       "is %s; expected rows that begin with views and clicks, [N, width]",
                       proa__tensor_text(a->x));
    if (a->cvm->ndim != 2 || (a->cvm->shape[1] >= 0 && a->cvm->shape[1] != 2))
        return OP_FAIL("cvm", INVALID_ARGUMENT, "cvm", "is %s; expected views and clicks, [N, 2]",
                       proa__tensor_text(a->cvm));
    m->y = proa_meta_of(a->x);
    if (!a->use_cvm && m->y.shape[1] >= 0) m->y.shape[1] -= 2;
    return PROA_OK;
}

proa_status cvm_vjp(const proa_cvm_args *a, proa_cvm_grads *g)
{
    bool sequences = a->offsets != proa_none;
    proa_tensor *counts = sequences ? proa_sequence_expand_as(a->cvm, g->d_y, a->offsets) : a->cvm;
    proa_tensor *rest = g->d_y;
    if (a->use_cvm) rest = proa_slice(rest, PROA_INTS(1), PROA_INTS(2), PROA_INTS(INT32_MAX));
    g->d_x = proa_concat(PROA_LIST(counts, rest), .axis = 1);
    return proa_error();
}
