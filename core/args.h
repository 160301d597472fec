/* Copies and keys of args structs, for core itself, the tape and programs. */
#ifndef PROA_CORE_ARGS_H
#define PROA_CORE_ARGS_H

#include "core/internal.h"
#include "core/tensor.h"

/* Modes of keeping a tensor field in a copied args struct. */
enum { PROA_KEEP_NOTHING, PROA_KEEP_VALUE, PROA_KEEP_META };

/* A copy in memory of the caller's, of proa__args_bytes bytes, in two steps: copy_values, which cannot fail,
 * leaves tensor fields NULL and lists empty, with room; args_keep fills one tensor (false: no memory for a
 * meta handle, and it is NULL). args_drop releases what is there. */
size_t proa__args_bytes(const proa_op *op, const void *args);
void proa__args_copy_values(const proa_op *op, const void *args, void *to);
bool proa__args_keep_meta(proa_tensor *t, proa_tensor **kept);
static inline bool proa__args_keep(proa_tensor *t, uint8_t how, proa_tensor **kept)
{
    if (how == PROA_KEEP_META && t && t != proa_none) return proa__args_keep_meta(t, kept);
    *kept = t == proa_none ? t : how == PROA_KEEP_VALUE ? proa_retain(t) : NULL; /* absence is always known */
    return true;
}
void proa__args_drop(const proa_op *op, void *args);

/* Writes what a prepared kernel depends on (op, metas, strides, attributes) as bytes; returns their
 * number, 0 when they exceed `room` or when a tensor supplies an attribute. */
size_t proa__args_key(const proa_op *op, const void *args, char *key, size_t room);

#endif
