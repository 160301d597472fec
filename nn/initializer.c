/* Paddle's initializers, drawn from the thread's generator through ops, so that a seed gives the
 * same parameters everywhere. Fans as in Paddle: [in, out] matrices, [out, in, k…] convolutions.
 * Uses nn/layer.h. */
#include "nn/layer.h"

#include <math.h>

static void fans(proa_ints shape, double *in, double *out)
{
    double field = 1;
    for (int64_t i = 2; i < shape.count; i++) field *= (double)shape.at[i];
    if (shape.count == 0) {
        *in = *out = 1;
    } else if (shape.count == 1) {
        *in = *out = (double)shape.at[0];
    } else if (shape.count == 2) {
        *in = (double)shape.at[0];
        *out = (double)shape.at[1];
    } else {
        *in = (double)shape.at[1] * field;
        *out = (double)shape.at[0] * field;
    }
}

static proa_tensor *uniform(proa_ints shape, proa_dtype dtype, double low, double high)
{
    return proa_uniform(shape, .dtype = dtype, .min = PROA_SCALAR(low), .max = PROA_SCALAR(high));
}

static proa_tensor *normal(proa_ints shape, proa_dtype dtype, double mean, double std)
{
    return proa_gaussian(shape, .mean = mean, .std = std == 0 ? (double)PROA_ZERO : std, .dtype = dtype);
}

static proa_tensor *assigned(proa_ints shape, proa_dtype dtype, proa_tensor *value)
{
    if (!value || value == proa_none) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "initializer: PROA_INIT_ASSIGN needs a value");
        return NULL;
    }
    bool same = value->ndim == shape.count;
    for (int64_t i = 0; same && i < shape.count; i++) same = value->shape[i] == shape.at[i];
    if (same) return value->dtype == dtype ? proa_assign(value) : proa_cast(value, dtype);
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "initializer: the value is %s, the parameter %s",
              proa__tensor_text(value), proa__shape_text(shape.at, (int)shape.count));
    return NULL;
}

proa_tensor *proa_initialized(proa_ints shape, proa_dtype dtype, proa_init init)
{
    if (proa_error()) return NULL;
    PROA_NO_GRAD;
    double in, out;
    fans(shape, &in, &out);
    double std = init.b != 0 ? init.b : 1;
    switch (init.kind) {
    case PROA_INIT_CONSTANT: return proa_full(shape, init.a, .dtype = dtype);
    case PROA_INIT_UNIFORM:
        if (init.a == 0 && init.b == 0) return uniform(shape, dtype, -1, 1);
        return uniform(shape, dtype, init.a, init.b);
    case PROA_INIT_NORMAL: return normal(shape, dtype, init.a, std);
    case PROA_INIT_TRUNCATED_NORMAL:
        return proa_truncated_gaussian_random(shape, .mean = init.a, .std = std, .dtype = dtype);
    case PROA_INIT_XAVIER_NORMAL: return normal(shape, dtype, 0, sqrt(2 / (in + out)));
    case PROA_INIT_KAIMING_UNIFORM: {
        double limit = sqrt(6 / in);
        return uniform(shape, dtype, -limit, limit);
    }
    case PROA_INIT_KAIMING_NORMAL: return normal(shape, dtype, 0, sqrt(2 / in));
    case PROA_INIT_ASSIGN: return assigned(shape, dtype, init.value);
    case PROA_INIT_DEFAULT:
    case PROA_INIT_XAVIER_UNIFORM:
    default: {
        double limit = sqrt(6 / (in + out));
        return uniform(shape, dtype, -limit, limit);
    }
    }
}
