/* Values of scalar attributes, which one-element tensors may supply instead. For kernel files. May use core
 * and kernels only. */
#ifndef PROA_OPS_SCALAR_H
#define PROA_OPS_SCALAR_H

#include "kernels/iterator.h"

/* Writes s as one element of `dtype` to out (at most 16 bytes); `fallback` if s is absent. */
static inline void proa__scalar_to(const proa_scalar *s, proa_dtype dtype, double fallback, void *out)
{
    double complex_value[2] = {s->f, s->im};
    switch (s->kind) {
    case PROA_SCALAR_TENSOR:
        proa__convert(dtype, out, (proa_dtype)s->tensor->dtype, s->tensor->data, 1);
        return;
    case PROA_SCALAR_BOOL:
    case PROA_SCALAR_INT: proa__convert(dtype, out, PROA_I64, &s->i, 1); return;
    case PROA_SCALAR_FLOAT: proa__convert(dtype, out, PROA_F64, &s->f, 1); return;
    case PROA_SCALAR_COMPLEX: proa__convert(dtype, out, PROA_C128, complex_value, 1); return;
    default: proa__convert(dtype, out, PROA_F64, &fallback, 1); return;
    }
}

#endif
