/* Macros and the boolean type of Paddle's C interface. Includes headers of the C library alone. */
#ifndef PROA_PD_COMMON_H
#define PROA_PD_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(_WIN32)
#define PADDLE_CAPI_EXPORT
#else
#define PADDLE_CAPI_EXPORT __attribute__((visibility("default")))
#endif

/* Ownership of a pointer: the caller gets it, the callee takes it, or it stays whose it is. */
#ifndef __pd_give
#define __pd_give
#endif
#ifndef __pd_take
#define __pd_take
#endif
#ifndef __pd_keep
#define __pd_keep
#endif

typedef int8_t PD_Bool;
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#define PD_ENUM(type)     \
    typedef int32_t type; \
    enum

#endif
