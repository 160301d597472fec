/* Shorthands for readers that turn one op of Paddle's programs into several of ours. Uses proa/wire.h and
 * ops. */
#ifndef PROA_OPS_COMPOSED_H
#define PROA_OPS_COMPOSED_H

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/wire_util.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/reduce.h"
#include "impl/shape.h"

#include <proa/wire.h>

/* factor · x + bias */
static inline __attribute__((unused)) proa_tensor *proa__times(proa_tensor *x, double factor, double bias)
{
    return proa_scale(x, .scale = PROA_SCALAR(factor), .bias = bias == 0 ? (double)PROA_ZERO : bias);
}

/* Σ over all dims but the first, as [N, 1]. */
static inline __attribute__((unused)) proa_tensor *proa__row_sums(proa_tensor *x)
{
    if (!x) return NULL;
    proa_tensor *rows = x->ndim == 2 ? x : proa_flatten(x, .start_axis = 1);
    return proa_sum(rows, .axis = PROA_INTS(1), .keepdim = true);
}

/* x's elements [from, to) along an axis. */
static inline __attribute__((unused)) proa_tensor *proa__part(proa_tensor *x, int64_t axis, int64_t from,
                                                              int64_t to)
{
    return proa_slice(x, PROA_INTS(axis), PROA_INTS(from), PROA_INTS(to));
}

/* A condition as 0 and 1 of another tensor's dtype. */
static inline __attribute__((unused)) proa_tensor *proa__as_number(proa_tensor *condition,
                                                                   const proa_tensor *of)
{
    return condition && of ? proa_cast(condition, (proa_dtype)of->dtype) : NULL;
}

/* identity, relu, tanh or sigmoid of x, which an attribute names. */
proa_tensor *proa__activated(proa_tensor *x, const char *attr, const char *name);

/* A constant that broadcasts to a tensor. */
static inline __attribute__((unused)) proa_tensor *proa__constant(const proa_tensor *of, double value)
{
    return of ? proa_full(PROA_INTS(1), PROA_SCALAR(value), .dtype = (proa_dtype)of->dtype) : NULL;
}

#endif
