/* Result shape and dtype of creation ops, from attributes or tensors. May use core only; implemented in
 * ops/create. */
#ifndef PROA_OPS_SHAPE_META_H
#define PROA_OPS_SHAPE_META_H

#include <proa/op.h>

/* Fills m from the shape attribute of op `who`, which numbers or tensors supply; dims that a variable of a
 * program supplies become −1. INVALID_ARGUMENT for negative dims, OVERFLOW beyond 2^63 bytes. */
proa_status proa__shape_meta(const char *who, const proa_ints *shape, proa_dtype dtype, proa_meta *m);
/* dtype, or the default floating dtype if dtype is PROA_NODTYPE. */
static inline proa_dtype proa__dtype_or_default(proa_dtype dtype)
{
    return dtype == PROA_NODTYPE ? proa_default_dtype() : dtype;
}
/* INVALID_ARGUMENT unless dtype is in the bit mask `allowed`. */
proa_status proa__check_dtype(const char *who, proa_dtype dtype, uint32_t allowed);

#endif
