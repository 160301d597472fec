/* Convolutions through oneDNN: forward, dgrad, wgrad, transposed (a dgrad and a bias) and fused with an
 * epilogue. The primitive chooses its layouts, except for the images of fused channels-last convolutions;
 * operands are reordered where the caller's differ. May use core and kernels only. */
#include "kernels/onednn.h"
#include "ops/conv/algorithms.h"
#include "ops/conv/onednn_layout.h"

enum { IN, FILTER, OUT, SIDES };

/* A convolution as oneDNN describes it: layouts and descriptors of the input, filter and output side. */
typedef struct conv_task {
    const conv_problem *p;
    const proa_tensor *bias; /* NULL: none */
    conv_layout layout[SIDES];
    dnnl_dims_t stride, dilation, before, after;
    dnnl_memory_desc_t md[SIDES], md_bias; /* for the primitive: `any` leaves the layout to it */
} conv_task;

static dnnl_memory_desc_t bias_md(const conv_task *t)
{
    return proa__dnnl_md(1, &t->p->g.out_channels, NULL, (proa_dtype)t->bias->dtype);
}

/* keeps: images stay in the caller's layout, so that only the filter is reordered. */
static bool task_make(conv_task *t, const conv_problem *p, const proa_tensor *bias, bool keeps)
{
    const conv_geometry *g = &p->g;
    bool made = true;
    *t = (conv_task){.p = p,
                     .bias = bias,
                     .layout = {conv_layout_of_images(g, g->in_channels, g->in), conv_layout_of_filter(g),
                                conv_layout_of_images(g, g->out_channels, g->out)}};
    for (int i = 0; i < g->dims; i++) {
        int from = 3 - g->dims + i;
        t->stride[i] = g->stride[from], t->dilation[i] = g->dilation[from] - 1;
        t->before[i] = g->before[from], t->after[i] = g->after[from];
    }
    for (int i = 0; i < SIDES; i++) {
        const conv_layout *l = &t->layout[i];
        const proa_dtype dtype = (proa_dtype)p->sides[IN]->dtype;
        t->md[i] = keeps && i != FILTER ? proa__dnnl_md(l->n, l->dims, l->strides, dtype)
                                        : proa__dnnl_md_any(l->n, l->dims, dtype);
        made = made && t->md[i];
    }
    if (bias) t->md_bias = bias_md(t);
    return made && (!bias || t->md_bias);
}

static void task_release(conv_task *t)
{
    for (int i = 0; i < SIDES; i++)
        if (t->md[i]) dnnl_memory_desc_destroy(t->md[i]);
    if (t->md_bias) dnnl_memory_desc_destroy(t->md_bias);
}

static bool forward_desc(const conv_task *t, dnnl_prop_kind_t kind, const_dnnl_primitive_attr_t attr,
                         dnnl_primitive_desc_t *desc)
{
    return dnnl_convolution_forward_primitive_desc_create(
               desc, proa__dnnl_engine(), kind, dnnl_convolution_direct, t->md[IN], t->md[FILTER], t->md_bias,
               t->md[OUT], t->stride, t->dilation, t->before, t->after, attr) == dnnl_success;
}

/* The backward descriptors want the forward one as a hint. */
static bool backward_desc(const conv_task *t, const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *desc)
{
    dnnl_primitive_desc_t hint = NULL;
    if (!forward_desc(t, dnnl_forward_training, NULL, &hint)) return false;
    dnnl_status_t status =
        t->p->direction == BACKWARD_DATA
            ? dnnl_convolution_backward_data_primitive_desc_create(
                  desc, proa__dnnl_engine(), dnnl_convolution_direct, t->md[IN], t->md[FILTER], t->md[OUT],
                  t->stride, t->dilation, t->before, t->after, hint, attr)
            : dnnl_convolution_backward_weights_primitive_desc_create(
                  desc, proa__dnnl_engine(), dnnl_convolution_direct, t->md[IN], t->md[FILTER], NULL,
                  t->md[OUT], t->stride, t->dilation, t->before, t->after, hint, attr);
    dnnl_primitive_desc_destroy(hint);
    return status == dnnl_success;
}

/* Declares the operands, the result third. It may stay in oneDNN's blocked layout, unless it is channels-last
 * or a grouped filter. */
static bool operands(proa__dnnl_build *b, const conv_task *t)
{
    static const struct {
        int index, side;
    } of[][SIDES] = {
        [FORWARD] = {{DNNL_ARG_SRC, IN}, {DNNL_ARG_WEIGHTS, FILTER}, {DNNL_ARG_DST, OUT}},
        [BACKWARD_DATA] = {{DNNL_ARG_DIFF_DST, OUT}, {DNNL_ARG_WEIGHTS, FILTER}, {DNNL_ARG_DIFF_SRC, IN}},
        [BACKWARD_WEIGHTS] = {{DNNL_ARG_SRC, IN}, {DNNL_ARG_DIFF_DST, OUT}, {DNNL_ARG_DIFF_WEIGHTS, FILTER}}};
    const conv_kind kind = t->p->direction;
    const bool filter = kind == BACKWARD_WEIGHTS;
    for (int i = 0; i < SIDES; i++) {
        int side = of[kind][i].side;
        const conv_layout *l = &t->layout[side];
        if (!proa__dnnl_add(b, of[kind][i].index, i == SIDES - 1,
                            proa__dnnl_md_of(t->p->sides[side], l->n, l->dims, l->strides)))
            return false;
    }
    if (filter ? t->p->g.groups == 1 : !t->p->g.channels_last)
        proa__dnnl_may_block(b, t->p->sides[of[kind][SIDES - 1].side], filter ? 1 : 1.4);
    return !t->bias || proa__dnnl_add(b, DNNL_ARG_BIAS, false, bias_md(t));
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
    ok = ok && task_make(&t, &p, proa__absent(bias) ? NULL : bias, tail && p.g.channels_last);
    ok = ok && (!tail || proa__dnnl_post_ops(&b, tail, out->n, out->dims, out->strides, NULL));
    ok = ok &&
         (p.direction != FORWARD
              ? backward_desc(&t, b.attr, &b.desc)
              : forward_desc(&t, tail ? dnnl_forward_inference : dnnl_forward_training, b.attr, &b.desc));
    ok = ok && operands(&b, &t);
    task_release(&t);
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
CONV_PREPARE(conv_grad_filter_onednn, conv2d_grad_filter, "_grad_filter", NULL, a->x, a->d_weight, a->d_out)
CONV_RUN(conv_grad_filter_onednn, conv2d_grad_filter, a->x, a->d_out, a->d_weight)

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
