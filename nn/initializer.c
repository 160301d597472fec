/* Paddle's initializers, drawn from the thread's generator through ops, so that a seed gives the
 * same parameters everywhere. Fans, spreads and defaults are nn/initializers.yaml's. Uses nn/layer.h. */
#include "nn/layer.h"

#include "initializers.h"

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
    if (init.kind == PROA_INIT_CONSTANT) return proa_full(shape, init.a, .dtype = dtype);
    if (init.kind == PROA_INIT_ASSIGN) return assigned(shape, dtype, init.value);
    proa__draw draw = proa__init_draw(init, shape);
    switch (draw.kind) {
    case PROA__DRAW_UNIFORM:
        return proa_uniform(shape, .dtype = dtype, .min = PROA_SCALAR(draw.a), .max = PROA_SCALAR(draw.b));
    case PROA__DRAW_TRUNCATED_NORMAL:
        return proa_truncated_gaussian_random(shape, .mean = draw.a, .std = draw.b, .dtype = dtype);
    case PROA__DRAW_NORMAL:
    default: return proa_gaussian(shape, .mean = draw.a, .std = draw.b, .dtype = dtype);
    }
}
