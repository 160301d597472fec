/* Appending an op of Paddle's format to a program. May use proa/io.h. */
#ifndef PROA_IO_APPEND_H
#define PROA_IO_APPEND_H

#include <proa/io.h>

/* The reverse of proa_program_describe: appends the op of Paddle's format that op describes to p, or to the
 * block of p that is open. Its inputs name variables of p. Outputs name persistables, which are written;
 * declared variables (jit/declare.h), which it makes; others, whose new version takes the name (tensors of
 * the old one follow by proa_program_follow); or none yet. Shapes and dtypes are inferred. before: the op of
 * the root block (by number) that it is put in front of; -1: none. Gradient ops without a form of their own,
 * and ops with blocks, cannot be appended. Errors name the op, and the slot or attribute. */
PROA_API proa_status proa_program_append(proa_program *p, const proa_op_desc *op, int64_t before);

#endif
