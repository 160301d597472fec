/* Visits every tensor slot of an args struct: single tensors, lists, and the tensors that supply an
 * attribute. May use core. */
#ifndef PROA_CORE_ARGS_VISIT_H
#define PROA_CORE_ARGS_VISIT_H

#include "core/tensor.h"

/* `slot` may hold NULL (no tensor there) or PROA_NONE; `index` is the place in a list, 0 otherwise. */
typedef proa_status (*proa__slot_fn)(proa_tensor **slot, const proa_field *field, int64_t index,
                                     void *context);

/* Slots of the fields of `role`, in the order of the fields; stops at the first failure. PROA_ATTR visits
 * the tensors behind attributes, so IN and ATTR together are what an op reads. */
proa_status proa__args_visit(const proa_op *op, void *args, proa_role role, proa__slot_fn fn, void *context);
/* What an op reads: IN, then ATTR. */
proa_status proa__args_visit_reads(const proa_op *op, void *args, proa__slot_fn fn, void *context);

/* True for control flow: some attribute is a block. */
bool proa__has_block(const proa_op *op);
/* The k-th output slot, lists flattened; NULL behind the last. *field (may be NULL): which field it is of. */
proa_tensor **proa__out_slot(const proa_op *op, const void *args, int64_t k, const proa_field **field);

/* Puts `t` (retained) into a slot of an owned args block and releases what was there. */
static inline void proa__slot_set(proa_tensor **slot, proa_tensor *t)
{
    proa_tensor *old = *slot;
    *slot = proa_retain(t);
    proa_release(old);
}
static inline bool proa__slot_empty(const proa_tensor *t) { return !t || proa__absent(t); }

/* Steps through a metas struct: the meta, or list of metas, of each output in turn. */
typedef union proa__meta_ref {
    proa_meta *one;
    proa_metas *list;
    char *at;
} proa__meta_ref;
static inline proa__meta_ref proa__meta_first(void *metas) { return (proa__meta_ref){.at = metas}; }
static inline proa__meta_ref proa__meta_next(proa__meta_ref m, const proa_field *field)
{
    m.at += field->kind == PROA_FIELD_TENSORS ? sizeof(proa_metas) : sizeof(proa_meta);
    return m;
}

#endif
