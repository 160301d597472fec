/* Training steps eagerly and captured: proa_compile makes of a function one program for forward and one
 * for backward. */
#include <proa.h>

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The captured function: the loss of a batch (x, y). Called once; afterwards its program runs. */
static proa_tensors loss_of(proa_tensors inputs, void *context)
{
    proa_tensors out = {1, proa_scope_alloc(sizeof(proa_tensor *))};
    if (out.at) out.at[0] = proa_mse_loss(proa_forward(context, inputs.at[0]), inputs.at[1]);
    return out;
}

static double train(proa_layer *net, proa_compiled *compiled, int steps, double *seconds)
{
    proa_optimizer *opt = proa_sgd(proa_parameters(net), .lr = 0.05);
    double last = 0, began = now();
    for (int i = 0; i < steps && !proa_error(); i++)
        PROA_SCOPE {
            proa_tensor *x = proa_randn(PROA_SHAPE(16, 8), PROA_F32);
            proa_tensors batch = PROA_LIST(x, proa_sum(x, .axis = PROA_INTS(1), .keepdim = true));
            proa_tensors loss = compiled ? proa_compiled_call(compiled, batch) : loss_of(batch, net);
            if (loss.count == 0) break;
            proa_backward(loss.at[0]);
            proa_step(opt);
            last = proa_item(loss.at[0]);
        }
    *seconds = now() - began;
    proa_optimizer_free(opt);
    return last;
}

static proa_layer *make_net(void)
{
    proa_seed(2);
    return proa_sequential(proa_linear_layer(8, 32), proa_tanh_layer(), proa_linear_layer(32, 32),
                           proa_tanh_layer(), proa_linear_layer(32, 1));
}

int main(void)
{
    double seconds[2], loss[2] = {0};
    for (int captured = 0; captured < 2; captured++) {
        proa_layer *net = make_net();
        proa_input_spec specs[2] = {PROA_INPUT(-1, 8), PROA_INPUT(-1, 1)};
        proa_compiled *c = captured ? proa_compile(loss_of, specs, 2, net, true) : NULL;
        loss[captured] = train(net, c, 500, &seconds[captured]);
        proa_compiled_free(c);
        proa_layer_free(net);
    }
    printf("eager    loss %.5f, %.1f us a step\n", loss[0], seconds[0] / 500 * 1e6);
    printf("captured loss %.5f, %.1f us a step\n", loss[1], seconds[1] / 500 * 1e6);
    return proa_finish(stderr);
}
