/* Shapes and dtypes of random creation, and the zero gradients of the ops that take a tensor. May use core
 * and the op headers. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/ints.h"
#include "ops/shape_meta.h"
#include "impl/create.h"
#include "impl/random.h"

static const uint32_t FLOATING = 1u << PROA_F16 | 1u << PROA_BF16 | 1u << PROA_F32 | 1u << PROA_F64;
static const uint32_t INDEX = 1u << PROA_I32 | 1u << PROA_I64;

static proa_status random_shape(const char *who, const proa_ints *shape, proa_dtype dtype, proa_meta *m)
{
    proa_dtype d = proa__dtype_or_default(dtype);
    PROA_TRY(proa__check_dtype(who, d, FLOATING));
    return proa__shape_meta(who, shape, d, m);
}

/* As in Paddle, a negative deviation mirrors the draws, which are then of the same distribution. */
static proa_status check_std(const char *who, double std)
{
    if (std == std) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "std", "is %g; expected a number", std);
}

proa_status uniform_infer(const proa_uniform_args *a, proa_uniform_metas *m)
{
    return random_shape("uniform", &a->shape, a->dtype, &m->out);
}

proa_status gaussian_infer(const proa_gaussian_args *a, proa_gaussian_metas *m)
{
    PROA_TRY(check_std("gaussian", a->std));
    return random_shape("gaussian", &a->shape, a->dtype, &m->out);
}

proa_status truncated_gaussian_random_infer(const proa_truncated_gaussian_random_args *a,
                                            proa_truncated_gaussian_random_metas *m)
{
    PROA_TRY(check_std("truncated_gaussian_random", a->std));
    return random_shape("truncated_gaussian_random", &a->shape, a->dtype, &m->out);
}

proa_status randint_infer(const proa_randint_args *a, proa_randint_metas *m)
{
    if (a->low >= a->high)
        return OP_FAIL("randint", INVALID_ARGUMENT, "high", "is %lld; expected more than low, %lld",
                       (long long)a->high, (long long)a->low);
    proa_dtype d = a->dtype == PROA_NODTYPE ? PROA_I64 : a->dtype;
    PROA_TRY(proa__check_dtype("randint", d, INDEX));
    return proa__shape_meta("randint", &a->shape, d, &m->out);
}

proa_status randperm_infer(const proa_randperm_args *a, proa_randperm_metas *m)
{
    proa_dtype d = a->dtype == PROA_NODTYPE ? PROA_I64 : a->dtype;
    PROA_TRY(proa__check_dtype("randperm", d, INDEX | FLOATING));
    return proa__meta_from_shape("randperm", PROA_INTS(a->n), d, &m->out);
}

proa_status bernoulli_vjp(const proa_bernoulli_args *a, proa_bernoulli_grads *g)
{
    (void)a;
    g->d_x = proa_full_like(g->d_out, 0);
    return proa_error();
}

proa_status exponential_vjp(const proa_exponential_args *a, proa_exponential_grads *g)
{
    (void)a;
    g->d_x = proa_full_like(g->d_out, 0);
    return proa_error();
}

proa_status multinomial_infer(const proa_multinomial_args *a, proa_multinomial_metas *m)
{
    const proa_tensor *x = a->x;
    if (x->ndim < 1 || x->ndim > 2 || x->shape[x->ndim - 1] == 0)
        return OP_FAIL("multinomial", INVALID_ARGUMENT, "x", "is %s; expected one or two axes, and elements",
                       proa__tensor_text(x));
    int64_t have = x->shape[x->ndim - 1];
    if (a->num_samples < 1 || (!a->replacement && have >= 0 && a->num_samples > have))
        return OP_FAIL("multinomial", INVALID_ARGUMENT, "num_samples",
                       "is %lld; expected 1 or more, and without replacement at most %lld",
                       (long long)a->num_samples, (long long)have);
    m->out = proa_meta_of(x);
    m->out.dtype = PROA_I64;
    m->out.shape[x->ndim - 1] = a->num_samples;
    return PROA_OK;
}

proa_status poisson_vjp(const proa_poisson_args *a, proa_poisson_grads *g)
{
    (void)a;
    g->d_x = proa_full_like(g->d_out, 0);
    return proa_error();
}
