/* Layers without parameters: activations, flatten, dropout, pooling. Uses nn/layer.h. */
#include "nn/layer.h"

#define ACTIVATION(name, expression)                                      \
    static proa_tensor *name##_forward(proa_layer *self, proa_tensor *x)  \
    {                                                                     \
        (void)self;                                                       \
        return expression;                                                \
    }                                                                     \
    proa_layer *proa_##name##_layer(void)                                 \
    {                                                                     \
        return proa_layer_new(sizeof(proa_layer), #name, name##_forward); \
    }

ACTIVATION(relu, proa_relu(x))
ACTIVATION(gelu, proa_gelu(x))
ACTIVATION(sigmoid, proa_sigmoid(x))
ACTIVATION(tanh, proa_tanh(x))
ACTIVATION(silu, proa_silu(x))
ACTIVATION(softmax, proa_softmax(x))
ACTIVATION(flatten, proa_flatten(x, .start_axis = 1))

typedef struct sized {
    proa_layer base;
    int64_t size;
    double p;
} sized;

static proa_layer *sized_new(const char *type, proa_tensor *(*forward)(proa_layer *, proa_tensor *),
                             int64_t size, double p)
{
    sized *s = (sized *)proa_layer_new(sizeof *s, type, forward);
    if (!s) return NULL;
    s->size = size;
    s->p = p;
    return &s->base;
}

proa_tensor *proa__layer_dropout(const proa_layer *self, proa_tensor *x, double p)
{
    return self->eval || p == 0 || !x ? x : proa_dropout(x, .p = p).out;
}

bool proa__is_probability(const char *who, const char *argument, double p)
{
    if (p >= 0 && p <= 1) return true;
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %s is %g, expected a probability", who, argument, p);
    return false;
}

static proa_tensor *dropout_forward(proa_layer *self, proa_tensor *x)
{
    double p = ((const sized *)self)->p;
    return proa__layer_dropout(self, x, p);
}

proa_layer *proa_dropout_layer(double p)
{
    if (proa_error() || !proa__is_probability("dropout_layer", "p", p)) return NULL;
    return sized_new("dropout", dropout_forward, 0, p);
}

static proa_tensor *max_pool2d_forward(proa_layer *self, proa_tensor *x)
{
    int64_t k = ((const sized *)self)->size;
    return proa_max_pool2d(x, PROA_INTS(k, k));
}

proa_layer *proa_max_pool2d_layer(int64_t kernel)
{
    return sized_new("max_pool2d", max_pool2d_forward, kernel, 0);
}

static proa_tensor *avg_pool2d_forward(proa_layer *self, proa_tensor *x)
{
    int64_t k = ((const sized *)self)->size;
    return proa_avg_pool2d(x, PROA_INTS(k, k));
}

proa_layer *proa_avg_pool2d_layer(int64_t kernel)
{
    return sized_new("avg_pool2d", avg_pool2d_forward, kernel, 0);
}

static proa_tensor *adaptive_avg_pool2d_forward(proa_layer *self, proa_tensor *x)
{
    int64_t n = ((const sized *)self)->size;
    return proa_adaptive_avg_pool2d(x, PROA_INTS(n, n));
}

proa_layer *proa_adaptive_avg_pool2d_layer(int64_t size)
{
    return sized_new("adaptive_avg_pool2d", adaptive_avg_pool2d_forward, size, 0);
}
