/* Paddle's names of error categories. May use core only. */
#ifndef PROA_CORE_ERROR_H
#define PROA_CORE_ERROR_H

#include <proa/core.h>

/* "InvalidArgument", … : Paddle's category of a code, in brackets before a message in Python. Static. */
PROA_API const char *proa_error_category(proa_status code);

#endif
