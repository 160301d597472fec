/* Convolutions through oneDNN: forward, dgrad, transposed (a dgrad and a bias) and fused with an epilogue.
 * The primitive chooses its layouts, except for the images of fused channels-last convolutions; operands are
 * reordered where the caller's differ. May use core and kernels only. */
#include "ops/conv/onednn_task.h"

/* Declares the operands, the result third. It may stay in oneDNN's blocked layout, unless it is
 * channels-last. */
static bool operands(proa__dnnl_build *b, const conv_task *t)
{
    static const struct {
        int index, side;
    } of[][SIDES] = {
        [FORWARD] = {{DNNL_ARG_SRC, IN}, {DNNL_ARG_WEIGHTS, FILTER}, {DNNL_ARG_DST, OUT}},
        [BACKWARD_DATA] = {{DNNL_ARG_DIFF_DST, OUT}, {DNNL_ARG_WEIGHTS, FILTER}, {DNNL_ARG_DIFF_SRC, IN}}};
    const conv_kind kind = t->p->direction;
    for (int i = 0; i < SIDES; i++) {
        int side = of[kind][i].side;
        const conv_layout *l = &t->layout[side];
        if (!proa__dnnl_add(b, of[kind][i].index, i == SIDES - 1,
                            proa__dnnl_md_of(t->p->sides[side], l->n, l->dims, l->strides)))
            return false;
    }
    if (!t->p->g.channels_last) proa__dnnl_may_block(b, t->p->sides[of[kind][SIDES - 1].side], 1.4);
    return !t->bias || proa__dnnl_add(b, DNNL_ARG_BIAS, false, conv_bias_md(t));
}

/* tail: the epilogue of a fused convolution, else NULL. A channels-last result of one is computed
 * channels-last. */
static proa_status prepare(conv_algorithm_id id, const conv_params *params, conv_problem p,
                           const proa_tensor *bias, const proa__epilogue *tail, void **state)
{
    PROA_TRY(conv_ask(id, params, &p));
    proa__dnnl_build b;
    bool ok = proa__dnnl_begin(&b, conv_work(&p.g));
    conv_task t = {0};
    const conv_layout *out = &t.layout[OUT];
    ok = ok && conv_task_make(&t, &p, proa__absent(bias) ? NULL : bias, tail && p.g.channels_last);
    ok = ok && (!tail || proa__dnnl_post_ops(&b, tail, out->n, out->dims, out->strides, NULL));
    ok = ok && (p.direction != FORWARD
                    ? conv_backward_desc(&t, b.attr, &b.desc)
                    : conv_forward_desc(&t, tail ? dnnl_forward_inference : dnnl_forward_training, b.attr,
                                        &b.desc));
    ok = ok && operands(&b, &t);
    conv_task_release(&t);
    return proa__dnnl_finish(&b, ok, state);
}

/* <kernel>_prepare of an op conv<N>d<suffix>, from its sides and bias. */
#define CONV_PREPARE(kernel, op, suffix, bias, ...)                                                      \
    static proa_status kernel##_prepare(const void *args, void **state)                                  \
    {                                                                                                    \
        const proa_##op##_args *a = args;                                                                \
        const conv_problem p = {.sides = {__VA_ARGS__}, .plain = true};                                  \
        return prepare(CONV_ALGORITHM_##kernel, &CONV_PARAMS_OF(a, proa__spatial_rank(a->x), suffix), p, \
                       bias, NULL, state);                                                               \
    }
/* Its kernel, from the tensors in the order of `operands`. */
#define CONV_RUN(kernel, op, ...)                                                                   \
    PROA_KERNEL_BLOCKED(kernel, op, kernel##_prepare, proa__dnnl_release, proa__dnnl_result_format) \
    {                                                                                               \
        proa_tensor *tensors[] = {__VA_ARGS__};                                                     \
        return proa__dnnl_run_tensors(run, a, kernel##_prepare, tensors);                           \
    }
CONV_PREPARE(conv_onednn, conv1d, "", a->bias, a->x, a->weight, a->out)
CONV_RUN(conv_onednn, conv1d, a->x, a->weight, a->out, a->bias)
CONV_PREPARE(conv_grad_input_onednn, conv2d_grad_input, "_grad_input", NULL, a->d_x, a->weight, a->d_out)
CONV_RUN(conv_grad_input_onednn, conv2d_grad_input, a->d_out, a->weight, a->d_x)

/* ---- transposed: a dgrad, and a bias ---- */

/* Adds a float32 bias a channel to what backward-data made for a transposed convolution. */
static void add_bias(const conv_geometry *g, const float *bias, float *out)
{
    conv_strides s = conv_strides_of(g, g->in_channels, g->in);
    int64_t pixels = conv_pixels(g->in);
    for (int64_t n = 0; n < g->batch; n++) {
        float *image = out + n * s.n;
        if (g->channels_last) {
            for (int64_t p = 0; p < pixels; p++)
                for (int64_t c = 0; c < g->in_channels; c++) image[p * g->in_channels + c] += bias[c];
        } else {
            for (int64_t c = 0; c < g->in_channels; c++)
                for (int64_t p = 0; p < pixels; p++) image[c * pixels + p] += bias[c];
        }
    }
}

#define TRANSPOSE_PARAMS(a) CONV_TRANSPOSE_PARAMS(a, proa__spatial_rank((a)->x))

static proa_status transpose_prepare(const void *args, void **state)
{
    const proa_conv1d_transpose_args *a = args;
    if (!proa__absent(a->bias) && a->x->dtype != PROA_F32) return proa_decline("a bias that is not float32");
    const conv_problem p = {.sides = {a->out, a->weight, a->x}, .plain = true};
    return prepare(CONV_ALGORITHM_conv_transpose_onednn, &TRANSPOSE_PARAMS(a), p, NULL, NULL, state);
}

static int transpose_format(const void *args, const void *state)
{
    const proa_conv1d_transpose_args *a = args;
    return proa__absent(a->bias) ? proa__dnnl_result_format(args, state) : 0;
}

PROA_KERNEL_BLOCKED(conv_transpose_onednn, conv1d_transpose, transpose_prepare, proa__dnnl_release,
                    transpose_format)
{
    bool biased = !proa__absent(a->bias);
    proa_run same = {.state = run->state, .fresh = run->fresh && !biased};
    proa_tensor *tensors[] = {a->x, a->weight, a->out};
    PROA_TRY(proa__dnnl_run_tensors(&same, a, transpose_prepare, tensors));
    if (!biased) return PROA_OK;
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&TRANSPOSE_PARAMS(a), &g));
    add_bias(&g, (const float *)(void *)a->bias->data, (float *)(void *)a->out->data);
    return PROA_OK;
}

/* ---- convolutions with an epilogue ---- */

/* Operands in the order of `tensors` in the kernel: the residual, if there is one, is first. */
static proa_status conv2d_fused_prepare(const void *args, void **state)
{
    const proa_conv2d_fused_args *a = args;
    return prepare(CONV_ALGORITHM_conv2d_fused_onednn, &CONV_PARAMS(a, 2, "conv2d_fused"),
                   CONV_FUSED_PROBLEM(a), a->bias, &PROA__EPILOGUE(a), state);
}

PROA__KERNEL_TRAITS(conv2d_fused_onednn, .packs = 1u << 1) /* weight */
PROA_KERNEL_BLOCKED(conv2d_fused_onednn, conv2d_fused, conv2d_fused_prepare, proa__dnnl_release,
                    proa__dnnl_result_format)
{
    int first = !proa__absent(a->residual);
    proa_tensor *all[] = {a->residual, a->x, a->weight, a->out, a->bias}, **tensors = all + !first;
    bool keeps = a->constant_weight && !proa__format(a->weight);
    if (!keeps && !proa__format(a->weight)) PROA_TRY(proa__plain(a->weight));
    if (!keeps) return proa__dnnl_run_tensors(run, a, conv2d_fused_prepare, tensors);
    return proa__dnnl_run_constant(run, a, conv2d_fused_prepare, tensors, first + 1);
}
