/* Macros for gradient rules of unary ops. For rules*.c of ops/elementwise. */
#ifndef PROA_OPS_ELEMENTWISE_RULES_H
#define PROA_OPS_ELEMENTWISE_RULES_H

#include "core/tensor.h"
#include "ops/ints.h"
#include "impl/create.h"
#include "impl/elementwise.h"

static inline bool rule_is_complex(const proa_tensor *t)
{
    return t->dtype == PROA_C64 || t->dtype == PROA_C128;
}

/* The conjugate of complex t, else t. */
static inline __attribute__((unused)) proa_tensor *rule_conj(proa_tensor *t)
{
    return t && rule_is_complex(t) ? proa_conj(t) : t;
}

/* A number attribute as a 0-D tensor of like's dtype. */
static inline __attribute__((unused)) proa_tensor *rule_number(const proa_scalar *s, const proa_tensor *like)
{
    if (s->kind == PROA_SCALAR_TENSOR) return proa_cast(s->tensor, (proa_dtype)like->dtype);
    return proa_full(PROA_SCALAR_SHAPE, *s, .dtype = (proa_dtype)like->dtype);
}

/* d_x = d_out · conj(factor), where `factor` is an expression in a->x or a->out (whatever is saved). */
#define UNARY_VJP(op, factor)                                             \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g) \
    {                                                                     \
        g->d_x = proa_multiply(g->d_out, rule_conj(factor));              \
        return proa_error();                                              \
    }
#define PASS_VJP(op)                                                      \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g) \
    {                                                                     \
        (void)a;                                                          \
        g->d_x = g->d_out;                                                \
        return proa_error();                                              \
    }
#define ZERO_VJP(op)                                                      \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g) \
    {                                                                     \
        (void)a;                                                          \
        g->d_x = proa_scale(g->d_out, .scale = PROA_SCALAR(0.0));         \
        return proa_error();                                              \
    }
/* d_x = d_out where `test` holds, else `other` (a tensor). */
#define WHERE_VJP(op, test, other)                                        \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g) \
    {                                                                     \
        g->d_x = proa_where(test, g->d_out, other);                       \
        return proa_error();                                              \
    }
#define RULE_ZERO proa__zero_of(g->d_out)
/* s · t + b */
#define AFFINE(t, s, b) proa_scale(t, .scale = PROA_SCALAR((double)(s)), .bias = (b))
#define SCALED(t, s) proa_scale(t, .scale = PROA_SCALAR((double)(s)))

#endif
