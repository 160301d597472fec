/* Paddle's names of error categories, and errors that refuse a dtype or a number of dims, which Python tells
 * from other invalid arguments. May use core only. */
#ifndef PROA_CORE_ERROR_H
#define PROA_CORE_ERROR_H

#include <proa/op.h>

/* "InvalidArgument", … : Paddle's category of a code, in brackets before a message in Python. Static. */
PROA_API const char *proa_error_category(proa_status code);

/* "float32, float64": the dtypes of a mask (bits 1 << dtype), for the error that refuses another one. Returns
 * `text`. */
enum { PROA_DTYPES_TEXT = 160 };
PROA_API const char *proa_dtypes_text(uint32_t dtypes, char text[PROA_DTYPES_TEXT]);

/* Fails with INVALID_ARGUMENT for an operand (an index, a mask) of a dtype that the op does not take. */
proa_status proa__operand_dtype_fail(const proa_op *op, const char *argument, const char *format, ...)
    PROA_PRINTF(3, 4);
/* True if this thread's error refuses a dtype: WRONG_TYPE, or proa__operand_dtype_fail's. In Python it is a
 * TypeError while a program is built. */
PROA_API bool proa_error_is_of_dtype(void);

/* Fails with INVALID_ARGUMENT for a shape of more dims than a tensor can have. */
proa_status proa__rank_fail(const proa_op *op, const char *argument, const char *format, ...)
    PROA_PRINTF(3, 4);
/* True if this thread's error is proa__rank_fail's. In Python it has no category: an OSError, and a
 * RuntimeError while a program is built. */
PROA_API bool proa_error_is_of_rank(void);

#endif
