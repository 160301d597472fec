/* Access to the tensors of an args struct: by field, by output number, and through a visitor of all slots,
 * tensors that supply attributes included; and to the metas of its outputs. May use core. */
#ifndef PROA_CORE_ARGS_VISIT_H
#define PROA_CORE_ARGS_VISIT_H

#include "core/tensor.h"

/* The slot of a field that holds a single tensor; NULL for lists and plain attributes. */
static inline proa_tensor **proa__field_one(const proa_field *f, const void *args)
{
    return f->kind == PROA_FIELD_TENSOR ? proa_field_tensor(f, args) : NULL;
}
/* The list of a field that holds a list of tensors; NULL for single tensors and plain attributes. */
static inline proa_tensors *proa__field_list(const proa_field *f, const void *args)
{
    return f->kind == PROA_FIELD_TENSORS ? proa_field_tensors(f, args) : NULL;
}
/* The tensors of a field, a single tensor as a list of one; empty for a plain attribute. */
static inline proa_tensors proa__field_all(const proa_field *f, const void *args)
{
    proa_tensor **one = proa__field_one(f, args);
    const proa_tensors *list = one ? NULL : proa__field_list(f, args);
    return list ? *list : (proa_tensors){one != NULL, one};
}

/* `slot` may hold NULL (no tensor) or PROA_NONE; `index` is the index in a list, 0 for a single tensor. */
typedef proa_status (*proa__slot_fn)(proa_tensor **slot, const proa_field *field, int64_t index,
                                     void *context);

/* Calls fn for the slots of the fields of `role`, in the order of the fields, and stops at the first failure.
 * PROA_ATTR visits the tensors that supply attributes, so IN and ATTR together are all that an op reads. */
proa_status proa__args_visit(const proa_op *op, void *args, proa_role role, proa__slot_fn fn, void *context);
/* Visits the slots that an op reads: IN, then ATTR. */
proa_status proa__args_visit_reads(const proa_op *op, void *args, proa__slot_fn fn, void *context);

/* True for control-flow ops: some attribute is a block of a program. */
bool proa__has_block(const proa_op *op);
/* The k-th output slot, lists flattened; NULL when k is beyond the last. *field (may be NULL) gets the slot's
 * field. */
proa_tensor **proa__out_slot(const proa_op *op, const void *args, int64_t k, const proa_field **field);

/* Puts `t` (retained) into a slot of an owned args block and releases the slot's former tensor. */
static inline void proa__slot_set(proa_tensor **slot, proa_tensor *t)
{
    proa_tensor *old = *slot;
    *slot = proa_retain(t);
    proa_release(old);
}
/* Releases the tensors of an output of an owned args block; afterwards the field is NULL or an empty list. */
static inline void proa__output_clear(const proa_field *f, void *args)
{
    const proa_tensors all = proa__field_all(f, args);
    proa_tensors *list = proa__field_list(f, args);
    for (int64_t k = 0; k < all.count; k++) proa__slot_set(&all.at[k], NULL);
    if (list) *list = (proa_tensors){0, NULL};
}
static inline bool proa__slot_empty(const proa_tensor *t) { return !t || proa__absent(t); }

/* Steps through a metas struct: points to the meta, or list of metas, of one output after the other. */
typedef union proa__meta_ref {
    proa_meta *one;
    proa_metas *list;
    char *at;
} proa__meta_ref;
static inline bool proa__makes_list(const proa_field *out) { return out->kind == PROA_FIELD_TENSORS; }
static inline proa__meta_ref proa__meta_first(void *metas) { return (proa__meta_ref){.at = metas}; }
static inline proa__meta_ref proa__meta_next(proa__meta_ref m, const proa_field *field)
{
    m.at += proa__makes_list(field) ? sizeof(proa_metas) : sizeof(proa_meta);
    return m;
}
/* The metas of one output, a single meta as a list of one. */
static inline proa_metas proa__metas_of(proa__meta_ref m, const proa_field *field)
{
    return proa__makes_list(field) ? *m.list : (proa_metas){1, m.one};
}

#endif
