/* Numbers that attributes or one-element tensors supply: start, end and step of a range. For ops/create,
 * ops/elementwise and ops/random. */
#ifndef PROA_OPS_CREATE_RANGE_H
#define PROA_OPS_CREATE_RANGE_H

#include <proa/op.h>

typedef struct proa_number {
    bool known;   /* false: a program's variable will supply it */
    bool integer; /* an integer: its value is in i, exact */
    int64_t i;
    double f;
} proa_number;

/* Reads scalar s into *to. INVALID_ARGUMENT if it is absent or its tensor has not one element. */
proa_status proa__number(const char *who, const char *name, const proa_scalar *s, proa_number *to);
/* A tensor that supplies a scalar has one element. */
proa_status proa__check_scalar(const char *who, const char *name, const proa_scalar *s);

#endif
