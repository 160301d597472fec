/* Copies and keys of args structs, for core itself, the tape and programs. */
#ifndef PROA_CORE_ARGS_H
#define PROA_CORE_ARGS_H

#include "core/internal.h"
#include "core/tensor.h"

/* What proa__args_copy keeps of a tensor field. */
enum { PROA_KEEP_NOTHING, PROA_KEEP_VALUE, PROA_KEEP_META };

/* Writes what a prepared kernel depends on (op, metas, strides, attributes) as bytes; returns their
 * number, 0 when they exceed `room` or when a tensor supplies an attribute. */
size_t proa__args_key(const proa_op *op, const void *args, char *key, size_t room);

#endif
