/* Composed kernels of conv2d_pooled (fused convolution + ReLU + max pooling) and of its gradients: the same
 * results from other ops, for the dtypes and devices that conv_relu_pool.c does not take. May use core and
 * ops. */
#include "ops/conv/conv_relu_pool.h"
#include "impl/elementwise.h"
#include "impl/pool.h"
#include "impl/reduce.h"

#define POOLED_CONV(a) .stride = POOLED_ONES, .padding = (a)->padding, .dilation = POOLED_ONES, .groups = 1

static proa_status call(const char *op, void *args)
{
    return proa_call_from(PROA_DOOR_RUN, proa_find_op(op), args);
}

PROA_KERNEL_ANYWHERE(conv2d_pooled_composed_cpu, conv2d_pooled)
{
    static const int64_t none[2];
    const proa_ints zeros = {2, (int64_t *)(uintptr_t)none, NULL, NULL};
    proa_status status;
    PROA_SCOPE {
        proa_conv2d_args conv = {.x = a->x, .weight = a->weight, .bias = a->bias, POOLED_CONV(a)};
        status = call("conv2d", &conv);
        proa_max_pool2d_with_index_args pool = {.x = conv.out,
                                                .kernel_size = a->kernel_size,
                                                .stride = a->kernel_size,
                                                .padding = zeros,
                                                .out = a->out,
                                                .mask = a->place};
        if (status == PROA_OK) status = call("max_pool2d_with_index", &pool);
        proa_relu_args relu = {.x = a->out, .out = a->out};
        if (status == PROA_OK) status = call("relu", &relu);
    }
    return status;
}

/* Gradient of the convolution's result (before ReLU and pooling); NULL on error. */
static proa_tensor *spread(const pooled_geometry *p, proa_tensor *out, proa_tensor *place, proa_tensor *d_out,
                           proa_ints kernel_size)
{
    static const int64_t none[2];
    proa_meta meta;
    proa__conv_meta_out(&p->g, (proa_dtype)out->dtype, &meta);
    proa_tensor *like = proa__tensor_new(&meta); /* for its shape */
    proa_relu_grad_args relu = {.out = out, .d_out = d_out};
    if (!like || call("relu_grad", &relu) != PROA_OK) return NULL;
    proa_max_pool2d_with_index_grad_args pool = {.x = like,
                                                 .mask = place,
                                                 .d_out = relu.d_x,
                                                 .kernel_size = kernel_size,
                                                 .stride = kernel_size,
                                                 .padding = {2, (int64_t *)(uintptr_t)none, NULL, NULL}};
    return call("max_pool2d_with_index_grad", &pool) == PROA_OK ? pool.d_x : NULL;
}

PROA_KERNEL_ANYWHERE(conv2d_pooled_grad_input_composed_cpu, conv2d_pooled_grad_input)
{
    pooled_geometry p;
    PROA_TRY(POOLED_GEOMETRY("conv2d_pooled_grad_input", a, &p));
    PROA_SCOPE {
        proa_tensor *d_conv = spread(&p, a->out, a->place, a->d_out, a->kernel_size);
        proa_conv2d_grad_input_args conv = {
            .x = a->x, .weight = a->weight, .d_out = d_conv, POOLED_CONV(a), .d_x = a->d_x};
        if (d_conv) call("conv2d_grad_input", &conv);
    }
    return proa_error();
}

PROA_KERNEL_ANYWHERE(conv2d_pooled_grad_filter_composed_cpu, conv2d_pooled_grad_filter)
{
    static const int64_t axes[] = {0, 2, 3};
    pooled_geometry p;
    PROA_TRY(POOLED_GEOMETRY("conv2d_pooled_grad_filter", a, &p));
    PROA_SCOPE {
        proa_tensor *d_conv = spread(&p, a->out, a->place, a->d_out, a->kernel_size);
        proa_conv2d_grad_filter_args conv = {
            .x = a->x, .weight = a->weight, .d_out = d_conv, POOLED_CONV(a), .d_weight = a->d_weight};
        proa_sum_args sum = {
            .x = d_conv, .axis = {3, (int64_t *)(uintptr_t)axes, NULL, NULL}, .out = a->d_bias};
        if (d_conv && call("conv2d_grad_filter", &conv) == PROA_OK) call("sum", &sum);
    }
    return proa_error();
}
