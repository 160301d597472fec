/* List of the convolution algorithms in order of preference, and the check by which a kernel accepts or
 * declines a problem; the first kernel that accepts runs. May use core and kernels; everything is static and
 * compiled for the CPU level of the file that includes it. */
#ifndef PROA_OPS_CONV_ALGORITHMS_H
#define PROA_OPS_CONV_ALGORITHMS_H

#include "ops/conv/conditions.h"

/* X(kernel, direction, algorithm, instruction set, layout, supports, cost). A kernel's name is its op, which
 * says the direction, its algorithm and its instruction set. supports(problem) is NULL or says why not;
 * cost(problem) is below 1 where the algorithm beats those behind it (NULL: always). The table of
 * docs/architecture.md and the op table's `kernels:` say the same (tests/kernels/test_kernel_choice.py). */
#define CONV_ALGORITHMS(X)                                                                                   \
    X(conv_depthwise_nchw_cpu, FORWARD, "direct, by planes", "any", "NCHW", conv_depthwise_nchw, NULL)       \
    X(conv2d_grad_input_depthwise_nchw_cpu, BACKWARD_DATA, "direct, by planes", "any", "NCHW",               \
      conv_depthwise_nchw, NULL)                                                                             \
    X(conv2d_grad_filter_depthwise_nchw_cpu, BACKWARD_WEIGHTS, "direct, by planes", "any", "NCHW",           \
      conv_depthwise_nchw, NULL)                                                                             \
    X(conv2d_winograd_cpu, FORWARD, "Winograd F(2×2, 3×3)", "AVX2", "blocked", conv_winograd,                \
      conv_winograd_cost)                                                                                    \
    X(conv2d_grad_input_winograd_cpu, BACKWARD_DATA, "Winograd F(2×2, 3×3)", "AVX2", "blocked",              \
      conv_winograd, conv_winograd_cost)                                                                     \
    X(conv2d_grad_filter_winograd_cpu, BACKWARD_WEIGHTS, "Winograd F(2×2, 3×3)", "AVX2", "blocked",          \
      conv_winograd, conv_winograd_cost)                                                                     \
    X(conv2d_small_spatial_cpu, FORWARD, "direct, over gathered pixels", "AVX2", "blocked",                  \
      conv_small_spatial, conv_small_spatial_cost)                                                           \
    X(conv2d_grad_input_small_spatial_cpu, BACKWARD_DATA, "direct, over gathered pixels", "AVX2", "blocked", \
      conv_small_spatial, conv_small_spatial_cost)                                                           \
    X(conv2d_grad_filter_small_spatial_cpu, BACKWARD_WEIGHTS, "direct, over gathered pixels", "AVX2",        \
      "blocked", conv_small_spatial, conv_small_spatial_cost)                                                \
    X(conv2d_grad_input_strided_cpu, BACKWARD_DATA, "phases of the stride together", "AVX2", "blocked",      \
      conv_strided, conv_strided_cost)                                                                       \
    X(conv2d_grad_input_low_input_channels_cpu, BACKWARD_DATA, "direct, vectors of images", "AVX2", "NCHW",  \
      conv_low_input, conv_low_input_cost)                                                                   \
    X(conv2d_grad_filter_direct_cpu, BACKWARD_WEIGHTS, "direct, tiles of channels", "AVX2", "blocked",       \
      conv_direct_filter, NULL)                                                                              \
    X(conv2d_grad_filter_low_input_channels_cpu, BACKWARD_WEIGHTS, "direct, vectors of output channels",     \
      "AVX2", "NCHW", conv_low_input, conv_low_input_cost)                                                   \
    X(conv2d_fused_depthwise_nhwc_cpu, FORWARD, "direct, constant filter", "any", "NHWC",                    \
      conv_frozen_depthwise, NULL)                                                                           \
    X(conv2d_fused_pointwise_cpu, FORWARD, "prepacked GEMM", "any", "NHWC", conv_frozen_pointwise, NULL)     \
    X(conv2d_fused_winograd_phases_avx512_cpu, FORWARD, "Winograd F(3×3, 4×4) by phases", "AVX-512", "NHWC", \
      conv_frozen_phases, conv_frozen_phases_cost)                                                           \
    X(conv2d_fused_winograd_f4x4_cpu, FORWARD, "Winograd F(4×4, 3×3)", "any", "NHWC", conv_frozen_winograd,  \
      conv_f4x4_cost)                                                                                        \
    X(conv2d_fused_winograd_f3x3_cpu, FORWARD, "Winograd F(3×3, 3×3)", "any", "NHWC", conv_frozen_winograd,  \
      conv_f3x3_cost)                                                                                        \
    X(conv2d_fused_winograd_f2x2_cpu, FORWARD, "Winograd F(2×2, 3×3)", "any", "NHWC", conv_frozen_winograd,  \
      conv_f2x2_cost)                                                                                        \
    X(inverted_residual_packed_cpu, FORWARD, "1×1, depthwise and 1×1 by strips", "any", "NHWC",              \
      conv_frozen_depthwise, NULL)                                                                           \
    X(inverted_residual_cpu, FORWARD, "composed", "any", "NHWC", NULL, NULL)                                 \
    X(conv2d_pooled_cpu, FORWARD, "convolution, ReLU, max pooling by tiles", "any", "NCHW", conv_float32,    \
      NULL)                                                                                                  \
    X(conv2d_pooled_composed_cpu, FORWARD, "composed", "any", "NCHW", NULL, NULL)                            \
    X(conv2d_pooled_grad_input_cpu, BACKWARD_DATA, "convolution, ReLU, max pooling by tiles", "any", "NCHW", \
      conv_float32, NULL)                                                                                    \
    X(conv2d_pooled_grad_input_composed_cpu, BACKWARD_DATA, "composed", "any", "NCHW", NULL, NULL)           \
    X(conv2d_pooled_grad_filter_cpu, BACKWARD_WEIGHTS, "convolution, ReLU, max pooling by tiles", "any",     \
      "NCHW", conv_float32, NULL)                                                                            \
    X(conv2d_pooled_grad_filter_composed_cpu, BACKWARD_WEIGHTS, "composed", "any", "NCHW", NULL, NULL)       \
    X(conv_onednn, FORWARD, "oneDNN's", "oneDNN's", "oneDNN's", conv_by_onednn, conv_by_onednn_cost)         \
    X(conv_grad_input_onednn, BACKWARD_DATA, "oneDNN's", "oneDNN's", "oneDNN's", conv_by_onednn, NULL)       \
    X(conv_grad_filter_onednn, BACKWARD_WEIGHTS, "oneDNN's", "oneDNN's", "oneDNN's", conv_by_onednn,         \
      conv_by_onednn_cost)                                                                                   \
    X(conv_transpose_onednn, BACKWARD_DATA, "oneDNN's", "oneDNN's", "oneDNN's", conv_by_onednn, NULL)        \
    X(conv2d_fused_onednn, FORWARD, "oneDNN's", "oneDNN's", "oneDNN's", conv_by_onednn, NULL)                \
    X(conv_cpu, FORWARD, "im2col and GEMM", "any", "any", NULL, NULL)                                        \
    X(conv_grad_input_cpu, BACKWARD_DATA, "im2col and GEMM", "any", "any", NULL, NULL)                       \
    X(conv_grad_filter_cpu, BACKWARD_WEIGHTS, "im2col and GEMM", "any", "any", NULL, NULL)                   \
    X(conv_transpose_cpu, BACKWARD_DATA, "im2col and GEMM", "any", "any", NULL, NULL)                        \
    X(conv2d_fused_cpu, FORWARD, "composed", "any", "any", NULL, NULL)

typedef struct conv_algorithm {
    const char *kernel;
    conv_kind direction;
    const char *algorithm, *isa, *layout;
    const char *(*supports)(const conv_problem *p);
    double (*cost)(const conv_problem *p);
} conv_algorithm;

#define CONV_ID(kernel, ...) CONV_ALGORITHM_##kernel,
typedef enum conv_algorithm_id { CONV_ALGORITHMS(CONV_ID) CONV_ALGORITHM_COUNT } conv_algorithm_id;

#define CONV_ROW(kernel, ...) {#kernel, __VA_ARGS__},
static const conv_algorithm conv_algorithms[CONV_ALGORITHM_COUNT]
    __attribute__((unused)) = {CONV_ALGORITHMS(CONV_ROW)};

/* The answer of one algorithm of the list to a problem whose sides are set: OK, or declined with a reason.
 * The geometry of `params` is computed once per kernel selection; without params the caller has set what
 * `supports` reads. */
CONV_FN proa_status conv_ask(conv_algorithm_id id, const conv_params *params, conv_problem *p)
{
    const conv_algorithm *a = &conv_algorithms[id];
    p->direction = a->direction;
    if (params) PROA_TRY(proa__conv_geometry_once(params, &p->g));
    const char *why = a->supports ? a->supports(p) : NULL;
    if (why) return proa_decline(why);
    double cost = a->cost ? a->cost(p) : 0;
    return cost < 1 ? PROA_OK : proa__conv_dear(cost);
}

/* A kernel of an op of two spatial dims that is not fused: its prepare asks whether its own entry of the list
 * accepts the problem, then calls keep(problem, state). */
#define CONV_KERNEL(kernel, op, x_side, w_side, y_side, keep, release, format)    \
    static proa_status kernel##_prepare(const void *args, void **state)           \
    {                                                                             \
        const proa_##op##_args *a = args;                                         \
        conv_problem p = {.sides = {x_side, w_side, y_side}, .plain = true};      \
        *state = NULL;                                                            \
        PROA_TRY(conv_ask(CONV_ALGORITHM_##kernel, &CONV_PARAMS(a, 2, #op), &p)); \
        return keep(&p, state);                                                   \
    }                                                                             \
    PROA_KERNEL_BLOCKED(kernel, op, kernel##_prepare, release, format)
#define CONV_KERNEL_FORWARD(kernel, keep, release, format) \
    CONV_KERNEL(kernel, conv2d, a->x, a->weight, a->out, keep, release, format)
#define CONV_KERNEL_DATA(kernel, keep, release, format) \
    CONV_KERNEL(kernel, conv2d_grad_input, a->d_x, a->weight, a->d_out, keep, release, format)
#define CONV_KERNEL_WEIGHTS(kernel, keep, release, format) \
    CONV_KERNEL(kernel, conv2d_grad_filter, a->x, a->d_weight, a->d_out, keep, release, format)

/* The problem of a fused convolution, from its args. */
#define CONV_FUSED_PROBLEM(a)                                                         \
    ((conv_problem){.sides = {(a)->x, (a)->weight, (a)->out},                         \
                    .plain = proa__epilogue_is_plain(&PROA__EPILOGUE(a), (a)->out) && \
                             (a)->out->shape[0] == (a)->x->shape[0],                  \
                    .constant = (a)->constant_weight})

/* keep and release of a kernel whose state is the geometry. */
CONV_FN proa_status conv_keep_geometry(const conv_problem *p, void **state)
{
    conv_geometry *g = *state = proa__alloc(sizeof *g);
    if (!g) return proa_error();
    *g = p->g;
    return PROA_OK;
}
CONV_FN void conv_drop_geometry(void *state) { proa__free(state); }

#endif
