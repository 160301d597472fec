/* Copies args structs for the tape and programs, and serializes them to kernel-cache keys. May use core
 * only. */
#ifndef PROA_CORE_ARGS_H
#define PROA_CORE_ARGS_H

#include "core/internal.h"
#include "core/tensor.h"

/* Modes of keeping a tensor field in a copied args struct: not at all (NULL), the tensor itself, or a handle
 * without data. */
enum { PROA_KEEP_NOTHING, PROA_KEEP_VALUE, PROA_KEEP_META };

/* Copies an args struct into memory of the caller's, of proa__args_bytes bytes, in two steps. copy_values,
 * which cannot fail, copies attributes and leaves tensor fields NULL and lists empty, with space for their
 * entries; args_keep fills one tensor slot (false: no memory for a handle without data; the slot is NULL).
 * args_drop releases the tensors of the copy. */
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

/* Serializes what the choice of a prepared kernel depends on (op, metas, strides, blocked formats,
 * attributes) into `key`. Returns the number of bytes, or 0 when they exceed `capacity` or when a tensor
 * supplies an attribute. */
size_t proa__args_key(const proa_op *op, const void *args, char *key, size_t capacity);

#endif
