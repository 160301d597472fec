/* Implements epilogue.h: checks a residual against the product, and computes product and epilogue by separate
 * ops. May use core and kernels. */
#include "ops/epilogue.h"

#include "core/run.h"
#include "ops/broadcast.h"
#include "impl/elementwise.h"

proa_status proa__epilogue_meta(const char *op, const proa__epilogue *t, proa_meta *out)
{
    const proa_tensor *r = t->residual;
    if (proa__absent(r)) return PROA_OK;
    if ((proa_dtype)r->dtype == out->dtype && proa__broadcast_into(out, r)) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "residual",
                         "must be %s%s, as the product is; got %s", proa_dtype_name(out->dtype),
                         proa__shape_text(out->shape, out->ndim), proa__tensor_text(r));
}

static bool same_shape(const proa_tensor *t, int ndim, const int64_t *shape)
{
    return t->ndim == ndim && memcmp(t->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

static proa_status call(const char *op, void *args)
{
    return proa_call_from(PROA_DOOR_RUN, proa_find_op(op), args);
}

/* Applied in place: elementwise kernels accept their input as output. */
#define APPLY(name, ...)                           \
    do {                                           \
        proa_##name##_args apply_ = {__VA_ARGS__}; \
        return call(#name, &apply_);               \
    } while (0)

static proa_status activate(proa_tensor *out, const proa__epilogue *t)
{
    switch (t->activation) {
    case PROA_FUSED_ACTIVATION_RELU: APPLY(relu, .x = out, .out = out);
    case PROA_FUSED_ACTIVATION_RELU6: APPLY(relu6, .x = out, .out = out);
    case PROA_FUSED_ACTIVATION_LEAKY_RELU:
        APPLY(leaky_relu, .x = out, .out = out, .negative_slope = t->alpha);
    case PROA_FUSED_ACTIVATION_ELU: APPLY(elu, .x = out, .out = out, .alpha = t->alpha);
    case PROA_FUSED_ACTIVATION_SIGMOID: APPLY(sigmoid, .x = out, .out = out);
    case PROA_FUSED_ACTIVATION_TANH: APPLY(tanh, .x = out, .out = out);
    case PROA_FUSED_ACTIVATION_GELU: APPLY(gelu, .x = out, .out = out);
    case PROA_FUSED_ACTIVATION_GELU_TANH: APPLY(gelu, .x = out, .out = out, .approximate = true);
    case PROA_FUSED_ACTIVATION_SILU: APPLY(silu, .x = out, .out = out);
    case PROA_FUSED_ACTIVATION_HARDSWISH: APPLY(hardswish, .x = out, .out = out);
    case PROA_FUSED_ACTIVATION_HARDSIGMOID:
        APPLY(hardsigmoid, .x = out, .out = out, .slope = t->alpha, .offset = t->beta);
    default: return PROA_OK;
    }
}

/* Computes the product: into `out`, or into a new tensor where broadcasting the residual makes `out`
 * larger. */
static proa_status multiply(const proa_op *op, void *args, proa_tensor *out, bool has_residual)
{
    char metas[PROA_METAS_MAX] __attribute__((aligned(16)));
    proa_call product = {op, args, 0};
    proa_tensor **slot = proa_field_tensor(&op->fields[op->n_fields - 1], args);
    *slot = out;
    if (has_residual) {
        memset(metas, 0, sizeof metas);
        PROA_TRY(proa__infer_call(&product, metas));
        const proa_meta *m = (const proa_meta *)(const void *)metas;
        if (!same_shape(out, m->ndim, m->shape)) *slot = NULL;
    }
    return proa_call_from(PROA_DOOR_RUN, op, args);
}

proa_status proa__epilogue_compose(const char *name, void *args, proa_tensor *out, const proa__epilogue *t)
{
    const proa_op *op = proa_find_op(name);
    bool has_residual = !proa__absent(t->residual);
    proa_status status = PROA_OK;
    PROA_SCOPE {
        status = multiply(op, args, out, has_residual);
        proa_tensor *product = *proa_field_tensor(&op->fields[op->n_fields - 1], args);
        if (status == PROA_OK && has_residual) {
            proa_add_args add = {.x = product, .y = t->residual, .out = out};
            status = call("add", &add);
        }
        if (status == PROA_OK) status = activate(out, t);
    }
    return status;
}
