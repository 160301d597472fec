/* proa_to_device: a differentiable copy to a device; its gradient is copied back to the source's device. May
 * use core. */
#include "autograd/node.h"
#include "core/copy.h"
#include "core/device.h"

static proa_tensors one(proa_tensor *t)
{
    proa_tensors list = {1, proa_scope_alloc(sizeof *list.at)};
    if (list.at) list.at[0] = t;
    return t && list.at ? list : (proa_tensors){0, NULL};
}

typedef struct move {
    int to, from;
} move;

static proa_tensors forward(proa_tensors inputs, void *context)
{
    const move *m = context;
    return one(proa__copy_to(inputs.at[0], m->to));
}

static proa_tensors backward(proa_tensors inputs, proa_tensors outputs, proa_tensors grads, void *context)
{
    const move *m = context;
    (void)inputs, (void)outputs;
    if (grads.at[0] == proa_none) return one(proa_none);
    return one(proa_to_device(grads.at[0], proa_device_name(m->from)));
}

static const proa_function function = {.name = "to_device",
                                       .forward = forward,
                                       .backward = backward,
                                       .release = proa__free,
                                       .forget_inputs = true,
                                       .forget_outputs = true};

proa_tensor *proa_to_device(proa_tensor *t, const char *device)
{
    if (proa_error()) return NULL;
    if (!t || t == proa_none) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "to_device: expected a tensor, got %s", proa__tensor_text(t));
        return NULL;
    }
    int to = proa_device_find("to_device", device);
    if (to < 0) return NULL;
    if (t->flags & (PROA_T_SYMBOLIC | PROA_T_META)) return t; /* a program runs on its inputs' device */
    if (t->kind > PROA_ROWS) {
        proa_fail(PROA_ERR_UNSUPPORTED, "to_device: %s has no memory of its own", proa__tensor_text(t));
        return NULL;
    }
    if (proa__device_id(t) == to) return t;
    if (t->kind == PROA_ROWS) {
        proa_tensor *values = proa_rows_values(t), *copy = values ? proa__copy_to(values, to) : NULL;
        if (copy) proa__rows_attach(copy, t);
        return copy;
    }
    move *m = proa__alloc(sizeof *m);
    if (!m) return NULL;
    *m = (move){to, proa__device_id(t)};
    proa_tensors out = proa_apply(&function, (proa_tensors){1, &t}, m);
    return out.count == 1 ? out.at[0] : NULL;
}
