/* Lists of Paddle's op types, with which users narrow INT8 and bfloat16 execution to some ops. May use core
 * and ops. */
#ifndef PROA_JIT_PASSES_OP_TYPES_H
#define PROA_JIT_PASSES_OP_TYPES_H

#include "core/internal.h"

/* An empty list includes every op. Borrows the names. */
typedef struct proa__op_types {
    int64_t count;
    const char *const *at;
} proa__op_types;

/* Whether an op of the table can have been read from this type, or is what Paddle fuses into it. */
bool proa__op_type_is(const char *type, const char *op);
bool proa__op_types_include(const proa__op_types *types, const char *op);

#endif
