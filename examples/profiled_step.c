/* The profiler on a few training steps: a table of ops with their kernels, and a trace for Perfetto. */
#include <proa.h>

int main(void)
{
    proa_seed(4);
    proa_layer *net = proa_sequential(
        proa_conv2d_layer(3, 32, 3, .padding = 1), proa_batch_norm_layer(32), proa_relu_layer(),
        proa_max_pool2d_layer(2), proa_conv2d_layer(32, 64, 3, .padding = 1), proa_relu_layer(),
        proa_adaptive_avg_pool2d_layer(1), proa_flatten_layer(), proa_linear_layer(64, 10));
    proa_optimizer *opt = proa_adam(proa_parameters(net));
    for (int step = 0; step < 6 && !proa_error(); step++)
        PROA_SCOPE {
            if (step == 2) proa_profile_start(); /* the first steps warm caches */
            int64_t began = proa_profile_begin();
            proa_tensor *x = proa_randn(PROA_SHAPE(16, 3, 32, 32), PROA_F32);
            proa_tensor *y = proa_randint(0, 10, PROA_SHAPE(16, 1));
            proa_backward(proa_cross_entropy(proa_forward(net, x), y));
            proa_step(opt);
            proa_profile_end("step", began);
        }
    proa_profile_stop();
    proa_profile_print(stdout, PROA_PROFILE_BY_TOTAL, "ms");
    if (proa_profile_write_trace("profiled_step.json") == PROA_OK)
        printf("profiled_step.json: for ui.perfetto.dev\n");
    proa_optimizer_free(opt);
    proa_layer_free(net);
    return proa_finish(stderr);
}
