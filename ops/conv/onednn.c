/* Forward, dgrad and wgrad through oneDNN. The primitive chooses its layouts; operands are reordered where
 * the caller's differ. May use core and kernels only. */
#include "kernels/onednn.h"
#include "ops/conv/algorithms.h"
#include "ops/conv/onednn_layout.h"

/* Operands of the forward, dgrad and wgrad descriptors; `any_*` leave the layout to oneDNN. */
typedef struct conv_task {
    const conv_geometry *g;
    proa_dtype dtype;
    /* Tensors on the input, filter and output side; NULL: row-major, even if the tensor is blocked. */
    const proa_tensor *x, *weight, *y;
    conv_layout in, filter, out;
    dnnl_dims_t stride, dilation, before, after;
    dnnl_memory_desc_t any_in, any_filter, any_out, bias;
} conv_task;

static bool task_make(conv_task *t, const conv_geometry *g, proa_tensor *const *sides, bool bias)
{
    proa_dtype dtype = (proa_dtype)sides[0]->dtype;
    *t = (conv_task){.g = g,
                     .dtype = dtype,
                     .x = sides[0],
                     .weight = sides[1],
                     .y = sides[2],
                     .in = conv_layout_of_images(g, g->in_channels, g->in),
                     .filter = conv_layout_of_filter(g),
                     .out = conv_layout_of_images(g, g->out_channels, g->out)};
    for (int i = 0; i < g->dims; i++) {
        int from = 3 - g->dims + i;
        t->stride[i] = g->stride[from], t->dilation[i] = g->dilation[from] - 1;
        t->before[i] = g->before[from], t->after[i] = g->after[from];
    }
    t->any_in = proa__dnnl_md_any(t->in.n, t->in.dims, dtype);
    t->any_filter = proa__dnnl_md_any(t->filter.n, t->filter.dims, dtype);
    t->any_out = proa__dnnl_md_any(t->out.n, t->out.dims, dtype);
    if (bias) t->bias = proa__dnnl_md(1, &g->out_channels, NULL, dtype);
    return t->any_in && t->any_filter && t->any_out && (!bias || t->bias);
}

static void task_release(conv_task *t)
{
    if (t->any_in) dnnl_memory_desc_destroy(t->any_in);
    if (t->any_filter) dnnl_memory_desc_destroy(t->any_filter);
    if (t->any_out) dnnl_memory_desc_destroy(t->any_out);
    if (t->bias) dnnl_memory_desc_destroy(t->bias);
}

static bool forward_desc(const conv_task *t, dnnl_prop_kind_t kind, const_dnnl_primitive_attr_t attr,
                         dnnl_primitive_desc_t *desc)
{
    return dnnl_convolution_forward_primitive_desc_create(
               desc, proa__dnnl_engine(), kind, dnnl_convolution_direct, t->any_in, t->any_filter, t->bias,
               t->any_out, t->stride, t->dilation, t->before, t->after, attr) == dnnl_success;
}

/* The backward descriptors want the forward one as a hint. */
static bool backward_desc(conv_kind kind, const conv_task *t, const_dnnl_primitive_attr_t attr,
                          dnnl_primitive_desc_t *desc)
{
    dnnl_primitive_desc_t hint = NULL;
    if (!forward_desc(t, dnnl_forward_training, NULL, &hint)) return false;
    dnnl_status_t status =
        kind == BACKWARD_DATA
            ? dnnl_convolution_backward_data_primitive_desc_create(
                  desc, proa__dnnl_engine(), dnnl_convolution_direct, t->any_in, t->any_filter, t->any_out,
                  t->stride, t->dilation, t->before, t->after, hint, attr)
            : dnnl_convolution_backward_weights_primitive_desc_create(
                  desc, proa__dnnl_engine(), dnnl_convolution_direct, t->any_in, t->any_filter, NULL,
                  t->any_out, t->stride, t->dilation, t->before, t->after, hint, attr);
    dnnl_primitive_desc_destroy(hint);
    return status == dnnl_success;
}

static bool add_operand(proa__dnnl_build *b, int index, bool output, const conv_layout *l, proa_dtype dtype,
                        const proa_tensor *t)
{
    dnnl_memory_desc_t md =
        t ? proa__dnnl_md_of(t, l->n, l->dims, l->strides) : proa__dnnl_md(l->n, l->dims, l->strides, dtype);
    return proa__dnnl_add(b, index, output, md);
}

/* Declares the primitive's result: it may stay in oneDNN's blocked layout unless it is channels-last. */
static bool add_result(proa__dnnl_build *b, int index, const conv_layout *l, const conv_task *t,
                       const proa_tensor *to)
{
    if (!add_operand(b, index, true, l, t->dtype, to)) return false;
    return !to || t->g->channels_last || proa__dnnl_may_block(b, to, 1.4);
}

static bool operands(conv_kind kind, proa__dnnl_build *b, const conv_task *t)
{
    switch (kind) {
    case FORWARD:
        return add_operand(b, DNNL_ARG_SRC, false, &t->in, t->dtype, t->x) &&
               add_operand(b, DNNL_ARG_WEIGHTS, false, &t->filter, t->dtype, t->weight) &&
               add_result(b, DNNL_ARG_DST, &t->out, t, t->y) &&
               (!t->bias || proa__dnnl_add(b, DNNL_ARG_BIAS, false,
                                           proa__dnnl_md(1, &t->g->out_channels, NULL, t->dtype)));
    case BACKWARD_DATA:
        return add_operand(b, DNNL_ARG_DIFF_DST, false, &t->out, t->dtype, t->y) &&
               add_operand(b, DNNL_ARG_WEIGHTS, false, &t->filter, t->dtype, t->weight) &&
               add_result(b, DNNL_ARG_DIFF_SRC, &t->in, t, t->x);
    default:
        return add_operand(b, DNNL_ARG_SRC, false, &t->in, t->dtype, t->x) &&
               add_operand(b, DNNL_ARG_DIFF_DST, false, &t->out, t->dtype, t->y) &&
               add_operand(b, DNNL_ARG_DIFF_WEIGHTS, true, &t->filter, t->dtype, t->weight) &&
               (t->g->groups > 1 || proa__dnnl_may_block(b, t->weight, 1));
    }
}

/* sides: the tensors on the input's, the filter's and the output's side. */
static proa_status prepare(conv_algorithm_id id, const conv_params *params, proa_tensor *const *sides,
                           bool bias, void **state)
{
    conv_problem p = {.sides = {sides[0], sides[1], sides[2]}, .plain = true};
    PROA_TRY(conv_ask(id, params, &p));
    const conv_kind kind = p.direction;
    proa__dnnl_build b;
    bool ok = proa__dnnl_begin(&b, conv_work(&p.g));
    conv_task t = {0};
    ok = ok && task_make(&t, &p.g, sides, bias && kind == FORWARD);
    ok = ok && (kind == FORWARD ? forward_desc(&t, dnnl_forward_training, b.attr, &b.desc)
                                : backward_desc(kind, &t, b.attr, &b.desc));
    ok = ok && operands(kind, &b, &t);
    task_release(&t);
    return proa__dnnl_finish(&b, ok, state);
}

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

/* <kernel>_prepare for an op conv<N>d<suffix>. */
#define PREPARE(kernel, op, suffix, x_side, w_side, y_side, bias)                                            \
    static proa_status kernel##_prepare(const void *args, void **state)                                      \
    {                                                                                                        \
        const proa_##op##_args *a = args;                                                                    \
        proa_tensor *sides[] = {x_side, w_side, y_side};                                                     \
        return prepare(CONV_ALGORITHM_##kernel, &CONV_PARAMS_OF(a, proa__spatial_rank(a->x), suffix), sides, \
                       bias, state);                                                                         \
    }
PREPARE(conv_onednn, conv1d, "", a->x, a->weight, a->out, !proa__absent(a->bias))
PREPARE(conv_grad_input_onednn, conv2d_grad_input, "_grad_input", a->d_x, a->weight, a->d_out, false)
PREPARE(conv_grad_filter_onednn, conv2d_grad_filter, "_grad_filter", a->x, a->d_weight, a->d_out, false)

PROA_KERNEL_BLOCKED(conv_onednn, conv1d, conv_onednn_prepare, proa__dnnl_release, proa__dnnl_result_format)
{
    proa_tensor *tensors[] = {a->x, a->weight, a->out, a->bias};
    return proa__dnnl_run_tensors(run, a, conv_onednn_prepare, tensors);
}

PROA_KERNEL_BLOCKED(conv_grad_input_onednn, conv2d_grad_input, conv_grad_input_onednn_prepare,
                    proa__dnnl_release, proa__dnnl_result_format)
{
    proa_tensor *tensors[] = {a->d_out, a->weight, a->d_x, proa_none};
    return proa__dnnl_run_tensors(run, a, conv_grad_input_onednn_prepare, tensors);
}

PROA_KERNEL_BLOCKED(conv_grad_filter_onednn, conv2d_grad_filter, conv_grad_filter_onednn_prepare,
                    proa__dnnl_release, proa__dnnl_result_format)
{
    proa_tensor *tensors[] = {a->x, a->d_out, a->d_weight, proa_none};
    return proa__dnnl_run_tensors(run, a, conv_grad_filter_onednn_prepare, tensors);
}

/* ---- transposed: a dgrad, and a bias ---- */

#define TRANSPOSE_PARAMS(a) CONV_TRANSPOSE_PARAMS(a, proa__spatial_rank((a)->x))

static proa_status transpose_prepare(const void *args, void **state)
{
    const proa_conv1d_transpose_args *a = args;
    if (!proa__absent(a->bias) && a->x->dtype != PROA_F32) return proa_decline("a bias that is not float32");
    proa_tensor *sides[] = {a->out, a->weight, a->x};
    return prepare(CONV_ALGORITHM_conv_transpose_onednn, &TRANSPOSE_PARAMS(a), sides, false, state);
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

/* A channels-last result is computed channels-last, from a channels-last input: only the filter is
 * reordered. */
static bool fused_desc(const conv_task *t, proa__dnnl_build *b)
{
    if (!t->g->channels_last) return forward_desc(t, dnnl_forward_inference, b->attr, &b->desc);
    conv_task plain = *t;
    plain.any_in = proa__dnnl_md(t->in.n, t->in.dims, t->in.strides, t->dtype);
    plain.any_out = proa__dnnl_md(t->out.n, t->out.dims, t->out.strides, t->dtype);
    bool ok =
        plain.any_in && plain.any_out && forward_desc(&plain, dnnl_forward_inference, b->attr, &b->desc);
    if (plain.any_in) dnnl_memory_desc_destroy(plain.any_in);
    if (plain.any_out) dnnl_memory_desc_destroy(plain.any_out);
    return ok;
}

/* Operands in the order of `tensors` in the kernel: the residual, if there is one, is first. */
static proa_status conv2d_fused_prepare(const void *args, void **state)
{
    const proa_conv2d_fused_args *a = args;
    conv_problem p = CONV_FUSED_PROBLEM(a);
    PROA_TRY(conv_ask(CONV_ALGORITHM_conv2d_fused_onednn, &CONV_PARAMS(a, 2, "conv2d_fused"), &p));
    proa__dnnl_build b;
    bool ok = proa__dnnl_begin(&b, conv_work(&p.g));
    conv_task t = {0};
    ok = ok && task_make(&t, &p.g, p.sides, !proa__absent(a->bias));
    ok = ok && proa__dnnl_post_ops(&b, &PROA__EPILOGUE(a), t.out.n, t.out.dims, t.out.strides, NULL);
    ok = ok && fused_desc(&t, &b) && operands(FORWARD, &b, &t);
    task_release(&t);
    return proa__dnnl_finish(&b, ok, state);
}

PROA_KERNEL_BLOCKED(conv2d_fused_onednn, conv2d_fused, conv2d_fused_prepare, proa__dnnl_release,
                    proa__dnnl_result_format)
{
    int first = !proa__absent(a->residual);
    proa_tensor *all[] = {a->residual, a->x, a->weight, a->out, a->bias}, **tensors = all + !first;
    bool keeps = a->constant_weight && !proa__format(a->weight);
    if (!keeps) return proa__dnnl_run_tensors(run, a, conv2d_fused_prepare, tensors);
    return proa__dnnl_run_constant(run, a, conv2d_fused_prepare, tensors, first + 1);
}
