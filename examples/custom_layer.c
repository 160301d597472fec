/* A layer of one's own: a gated unit with two weights, used, saved and exported like any other. */
#include <proa.h>

/* y = (x · value) · sigmoid(x · gate): the base first, then what the layer needs at hand. */
typedef struct gated {
    proa_layer base;
    proa_tensor *value, *gate; /* [in, out]; borrowed: the base keeps them */
} gated;

static proa_tensor *gated_forward(proa_layer *self, proa_tensor *x)
{
    const gated *g = (const gated *)self;
    return proa_multiply(proa_matmul(x, g->value), proa_sigmoid(proa_matmul(x, g->gate)));
}

static proa_layer *gated_layer(int64_t in, int64_t out)
{
    gated *g = (gated *)proa_layer_new(sizeof *g, "gated", gated_forward);
    if (!g) return NULL;
    g->value = proa_layer_parameter(&g->base, "value", PROA_SHAPE(in, out), (proa_init){0});
    g->gate = proa_layer_parameter(&g->base, "gate", PROA_SHAPE(in, out),
                                   (proa_init){.kind = PROA_INIT_KAIMING_NORMAL});
    return &g->base;
}

int main(void)
{
    proa_seed(5);
    proa_layer *net = proa_sequential(gated_layer(2, 32), proa_linear_layer(32, 1));
    proa_optimizer *opt = proa_adam(proa_parameters(net), .lr = 0.01);
    double last = 0;
    for (int step = 0; step < 400 && !proa_error(); step++)
        PROA_SCOPE { /* learns to multiply two numbers */
            proa_tensor *x = proa_randn(PROA_SHAPE(64, 2), PROA_F32);
            proa_tensor *a = proa_slice(x, PROA_INTS(1), PROA_INTS(0), PROA_INTS(1));
            proa_tensor *b = proa_slice(x, PROA_INTS(1), PROA_INTS(1), PROA_INTS(2));
            proa_tensor *loss = proa_mse_loss(proa_forward(net, x), proa_multiply(a, b));
            proa_backward(loss);
            proa_step(opt);
            last = proa_item(loss);
        }
    proa_named_list state = proa_layer_state(net);
    for (int64_t i = 0; i < state.count; i++) printf("%s\n", state.at[i].name);
    proa_export(net, "gated", PROA_INPUT(-1, 2));
    printf("mean squared error %.3f; gated.pdmodel loads in Paddle\n", last);
    proa_optimizer_free(opt);
    proa_layer_free(net);
    return proa_finish(stderr);
}
