/* Capture assumes that two dynamic dims are equal. A run in which one of them is 1 would need a reduction
 * that the captured backward lacks, so it is rejected. May use core and autograd. */
#include "plan.h"

#include "autograd/backward.h"
#include "core/internal.h"
#include "core/args_visit.h"

typedef struct broadcast {
    const proa__segment *s;
    const proa_op *op;
    const proa_meta *out;
    proa_meta captured; /* what was known of out */
} broadcast;

static proa_status look_input(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const broadcast *b = context;
    (void)index;
    const proa_var *v = proa__slot_var(*slot);
    const proa_tensor *t = v ? b->s->values[v->index].handle : NULL;
    if (!t || t->ndim != v->handle->ndim) return PROA_OK;
    bool made = !v->is_input && !v->persistable;
    if (made && proa__stretched_dims(b->op, v->handle->shape, t->ndim, &b->captured)) return PROA_OK;
    int kept = b->op->flags & PROA_OP_BATCHES ? 2 : 0;
    for (int d = t->ndim - 1 - kept, o = b->out->ndim - 1 - kept; d >= 0 && o >= 0; d--, o--) {
        if (v->handle->shape[d] >= 0 || t->shape[d] != 1 || b->out->shape[o] == 1) continue;
        return proa__op_fail(PROA_ERR_UNSUPPORTED, b->op, f->name,
                             "(%s) has shape %s when the program is made and is %s in this run, broadcast to "
                             "%s: the gradients were made without that; make the program with known dims",
                             v->name, proa__shape_text(v->handle->shape, v->handle->ndim),
                             proa__tensor_text(t), proa__shape_text(b->out->shape, b->out->ndim));
    }
    return PROA_OK;
}

proa_status proa__check_dynamic_dims(const proa__segment *s, const proa_instr *instr, void *metas)
{
    const proa_op *op = instr->op;
    if (instr->role & 1 || !(op->flags & (PROA_OP_BROADCASTS | PROA_OP_BATCHES))) return PROA_OK;
    const proa_field *f = &op->fields[op->n_in + op->n_attr];
    proa__meta_ref m = proa__meta_first(metas);
    const proa_metas all = proa__metas_of(m, f);
    const proa_tensors outs = proa__field_all(f, instr->args);
    for (int64_t i = 0; i < all.count && i < outs.count; i++) {
        broadcast b = {s, op, &all.at[i], proa_meta_of(outs.at[i])};
        PROA_TRY(proa__args_visit(op, instr->args, PROA_IN, look_input, &b));
    }
    return PROA_OK;
}
