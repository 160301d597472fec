/* Shapes of decoding over chains of tags. May use core and public ops. */
#include "ops/ints.h"
#include "ops/rows.h"
#include "ops_impl.h"

static bool is_long(const proa_tensor *t) { return t->dtype == PROA_I64; }

proa_status crf_decoding_infer(const proa_crf_decoding_args *a, proa_crf_decoding_metas *m)
{
    const char *op = "crf_decoding";
    const proa_tensor *x = a->emission, *w = a->transition;
    bool padded = !proa__absent(a->length);
    if (padded == !proa__absent(a->offsets))
        return OP_FAIL(op, INVALID_ARGUMENT, "length", "and offsets are %s; expected one of them",
                       padded ? "both given" : "both absent");
    if (x->ndim != (padded ? 3 : 2))
        return OP_FAIL(op, INVALID_ARGUMENT, "emission", "is %s; expected %s", proa__tensor_text(x),
                       padded ? "[batch, time, tags] with length" : "[rows, tags] with offsets");
    int64_t tags = x->shape[x->ndim - 1];
    if (w->ndim != 2 || w->dtype != x->dtype || !rows_dims_agree(w->shape[1], tags) ||
        !rows_dims_agree(w->shape[0], w->shape[1] < 0 ? -1 : w->shape[1] + 2))
        return OP_FAIL(op, INVALID_ARGUMENT, "transition",
                       "is %s; expected [tags + 2, tags], and emission is %s", proa__tensor_text(w),
                       proa__tensor_text(x));
    const proa_tensor *parts = padded ? a->length : a->offsets;
    if (!is_long(parts) || (padded && !rows_dims_agree(parts->numel, x->shape[0])) ||
        (!padded && (parts->ndim != 1 || parts->shape[0] == 0)))
        return OP_FAIL(op, INVALID_ARGUMENT, padded ? "length" : "offsets", "is %s, and emission is %s",
                       proa__tensor_text(parts), proa__tensor_text(x));
    m->path = (proa_meta){.dtype = PROA_I64, .ndim = 2, .shape = {x->shape[0], padded ? x->shape[1] : 1}};
    if (proa__absent(a->label)) return PROA_OK;
    int64_t items = proa__meta_numel(&m->path);
    if (is_long(a->label) && rows_dims_agree(a->label->numel, items)) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "label", "is %s; expected int64 with a tag for each step of %s",
                   proa__tensor_text(a->label), proa__tensor_text(x));
}
