/* Copies and keys of args structs, for core itself, the tape and programs. */
#ifndef PROA_CORE_ARGS_H
#define PROA_CORE_ARGS_H

#include "core/internal.h"
#include "core/tensor.h"

/* What proa__args_copy keeps of a tensor field. */
enum { PROA_KEEP_NOTHING, PROA_KEEP_VALUE, PROA_KEEP_META };

/* proa__args_copy and proa__args_free into memory of the caller's, of proa__args_bytes bytes. copy_to: false
 * without memory for a meta handle, and then it has kept nothing. */
size_t proa__args_bytes(const proa_op *op, const void *args);
bool proa__args_copy_to(const proa_op *op, const void *args, const uint8_t *keep, void *to);
void proa__args_drop(const proa_op *op, void *args);

/* Writes what a prepared kernel depends on (op, metas, strides, attributes) as bytes; returns their
 * number, 0 when they exceed `room` or when a tensor supplies an attribute. */
size_t proa__args_key(const proa_op *op, const void *args, char *key, size_t room);

#endif
