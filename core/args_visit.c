/* Visits the tensor slots of an args struct in the order of its fields, numbers output slots, and recognizes
 * control-flow ops; see args_visit.h. May use core. */
#include "args_visit.h"

static proa_status walk_list(proa_tensor *const *at, int64_t count, const proa_field *f, proa__slot_fn fn,
                             void *context)
{
    for (int64_t i = 0; at && i < count; i++) PROA_TRY(fn((proa_tensor **)(uintptr_t)&at[i], f, i, context));
    return PROA_OK;
}

static proa_status walk_field(const proa_field *f, void *args, proa__slot_fn fn, void *context)
{
    void *at = proa_field_at(f, args);
    switch (f->kind) {
    case PROA_FIELD_TENSOR: return fn(at, f, 0, context);
    case PROA_FIELD_TENSORS: {
        proa_tensors *list = at;
        return walk_list(list->at, list->count, f, fn, context);
    }
    case PROA_FIELD_INTS: {
        proa_ints *ints = at;
        if (ints->tensor) PROA_TRY(fn(&ints->tensor, f, 0, context));
        return walk_list(ints->tensors, ints->count, f, fn, context);
    }
    case PROA_FIELD_SCALAR: {
        proa_scalar *scalar = at;
        return scalar->kind == PROA_SCALAR_TENSOR ? fn(&scalar->tensor, f, 0, context) : PROA_OK;
    }
    default: return PROA_OK;
    }
}

proa_status proa__args_visit(const proa_op *op, void *args, proa_role role, proa__slot_fn fn, void *context)
{
    int first = role == PROA_IN ? 0 : role == PROA_ATTR ? op->n_in : op->n_in + op->n_attr;
    int count = role == PROA_IN ? op->n_in : role == PROA_ATTR ? op->n_attr : op->n_out;
    for (int i = first; i < first + count; i++) PROA_TRY(walk_field(&op->fields[i], args, fn, context));
    return PROA_OK;
}

proa_status proa__args_visit_reads(const proa_op *op, void *args, proa__slot_fn fn, void *context)
{
    PROA_TRY(proa__args_visit(op, args, PROA_IN, fn, context));
    return proa__args_visit(op, args, PROA_ATTR, fn, context);
}

proa_tensor **proa__out_slot(const proa_op *op, const void *args, int64_t k, const proa_field **field)
{
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        if (field) *field = f;
        const proa_tensors all = proa__field_all(f, args);
        if (k < all.count) return &all.at[k];
        k -= all.count;
    }
    return NULL;
}

bool proa__has_block(const proa_op *op)
{
    for (int i = op->n_in; i < op->n_in + op->n_attr; i++)
        if (op->fields[i].kind == PROA_FIELD_BLOCK) return true;
    return false;
}
