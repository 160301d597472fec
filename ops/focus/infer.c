/* Shapes of similarity_focus. May use core and ops. */
#include "ops/ints.h"
#include "impl/focus.h"

proa_status similarity_focus_infer(const proa_similarity_focus_args *a, proa_similarity_focus_metas *m)
{
    const char *op = "similarity_focus";
    if (a->x->ndim != 4)
        return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected [N, A, B, C]", proa__tensor_text(a->x));
    if (a->axis < 1 || a->axis > 3)
        return OP_FAIL(op, INVALID_ARGUMENT, "axis", "is %lld; expected 1, 2 or 3", (long long)a->axis);
    if (a->indexes.count < 1)
        return OP_FAIL(op, INVALID_ARGUMENT, "indexes", "is empty; expected places along axis");
    int64_t size = a->x->shape[a->axis];
    for (int64_t i = 0; i < a->indexes.count; i++)
        if (a->indexes.at[i] < 0 || (size >= 0 && a->indexes.at[i] >= size))
            return OP_FAIL(op, OUT_OF_RANGE, "indexes", "has %lld; expected places along axis %lld of x %s",
                           (long long)a->indexes.at[i], (long long)a->axis, proa__tensor_text(a->x));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}
