/* Short forms of creating ops: constants and random numbers by shape. Included by proa/ops.h; uses
 * proa/ops/create.h and random.h only. */
#ifndef PROA_CREATE_H
#define PROA_CREATE_H

#include <proa/ops/create.h>
#include <proa/ops/random.h>

#ifdef __cplusplus
extern "C" {
#endif

/* New tensors of zeros or ones; dtype PROA_NODTYPE means the default floating one. Errors: those of proa_full
 * (negative dims, more than PROA_MAX_DIMS of them, no memory). */
static inline proa_tensor *proa_zeros(proa_ints shape, proa_dtype dtype)
{
    return proa_full(shape, 0, .dtype = dtype);
}
static inline proa_tensor *proa_ones(proa_ints shape, proa_dtype dtype)
{
    return proa_full(shape, 1, .dtype = dtype);
}
/* New tensors of zeros or ones in the shape and dtype of x. */
static inline proa_tensor *proa_zeros_like(proa_tensor *x) { return proa_full_like(x, 0); }
static inline proa_tensor *proa_ones_like(proa_tensor *x) { return proa_full_like(x, 1); }

/* New tensors from N(0, 1), and uniform in [0, 1), of the generator that proa_seed sets. Floating dtypes. */
static inline proa_tensor *proa_randn(proa_ints shape, proa_dtype dtype)
{
    return proa_gaussian(shape, .dtype = dtype);
}
static inline proa_tensor *proa_rand(proa_ints shape, proa_dtype dtype)
{
    return proa_uniform(shape, .dtype = dtype, .min = PROA_SCALAR(0.0), .max = PROA_SCALAR(1.0));
}

#ifdef __cplusplus
}
#endif
#endif
