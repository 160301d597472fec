/* Lowerings of convolutions and transposed convolutions. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/conv.h"
#include "ops/padding.h"
#include "ops/windows.h"

/* ---- data formats --------------------------------------------------------------------------- */

onnx_value *onnx_to_channels_first(onnx_graph *g, onnx_value *x, int ndim)
{
    int64_t perm[PROA_MAX_DIMS] = {0, ndim - 1};
    for (int i = 2; i < ndim; i++) perm[i] = i - 1;
    return ndim < 3 ? x : onnx_transpose(g, x, ndim, perm);
}

onnx_value *onnx_to_channels_last(onnx_graph *g, onnx_value *x, int ndim)
{
    int64_t perm[PROA_MAX_DIMS] = {0};
    for (int i = 1; i < ndim; i++) perm[i] = i + 1 < ndim ? i + 1 : 1;
    return ndim < 3 ? x : onnx_transpose(g, x, ndim, perm);
}

/* ---- windows -------------------------------------------------------------------------------- */

void onnx_window_fill(onnx_window *w, const proa_ints *stride, const proa_ints *padding,
                      const proa_ints *dilation, proa_padding_algorithm algorithm)
{
    w->same = algorithm == PROA_PADDING_ALGORITHM_SAME;
    for (int i = 0; i < w->n; i++) {
        w->stride[i] = i < stride->count ? stride->at[i] : stride->count == 1 ? stride->at[0] : w->size[i];
        w->dilation[i] = !dilation || w->same ? 1 : i < dilation->count ? dilation->at[i] : 1;
        w->pads[i] = w->pads[w->n + i] = 0;
        if (algorithm != PROA_PADDING_ALGORITHM_EXPLICIT) continue;
        bool pairs = padding->count == 2 * w->n && w->n > 0;
        w->pads[i] = pairs                ? padding->at[2 * i]
                     : i < padding->count ? padding->at[i]
                     : padding->count     ? padding->at[0]
                                          : 0;
        w->pads[w->n + i] = pairs ? padding->at[2 * i + 1] : w->pads[i];
    }
}

void onnx_put_pads(onnx_graph *g, onnx_value *v, const onnx_window *w)
{
    if (w->same) onnx_put_text(g, v, "auto_pad", "SAME_UPPER");
    else onnx_put_ints(g, v, "pads", 2 * w->n, w->pads);
}

static void put_window(onnx_graph *g, onnx_value *v, const onnx_window *w)
{
    onnx_put_ints(g, v, "kernel_shape", w->n, w->size);
    onnx_put_ints(g, v, "strides", w->n, w->stride);
    onnx_put_ints(g, v, "dilations", w->n, w->dilation);
    onnx_put_pads(g, v, w);
}

/* The window of a filter [out, in, …]; false with an error if its size is not known. */
static bool filter_window(const onnx_graph *g, const proa_tensor *weight, onnx_window *w)
{
    w->n = weight->ndim - 2;
    for (int i = 0; i < w->n; i++) w->size[i] = weight->shape[i + 2];
    for (int i = 0; i < w->n; i++)
        if (w->size[i] < 0) return onnx_refuse(g, "the filter's shape must be known") != NULL;
    return true;
}

ONNX_LOWER(lower_conv, conv2d)
{
    onnx_window w;
    if (!filter_window(g, a->weight, &w)) return;
    onnx_window_fill(&w, &a->stride, &a->padding, &a->dilation, a->padding_algorithm);
    bool last = proa__channels_last(a->data_format);
    onnx_value *x = onnx_in(g, a->x);
    if (last) x = onnx_to_channels_first(g, x, a->x->ndim);
    onnx_value *out = ONNX_NODE(g, "Conv", x, onnx_in(g, a->weight), onnx_in(g, a->bias));
    put_window(g, out, &w);
    onnx_put_int(g, out, "group", a->groups);
    onnx_bind(g, a->out, last ? onnx_to_channels_last(g, out, a->out->ndim) : out);
}

/* ---- transposed ------------------------------------------------------------------------------ */

/* Rows and columns that are added at the end: given, or those that output_size asks for beyond the least
 * size. */
static bool output_padding(const onnx_graph *g, const proa_conv2d_transpose_args *a, const onnx_window *w,
                           bool last, int64_t *to)
{
    for (int i = 0; i < w->n; i++) {
        to[i] = i < a->output_padding.count ? a->output_padding.at[i] : 0;
        if (a->output_size.count == 0) continue;
        int axis = last ? 1 + i : 2 + i;
        int64_t in = a->x->shape[axis], out = a->out->shape[axis];
        if (in < 0 || out < 0) return onnx_refuse(g, "output_size needs a known size of x") != NULL;
        to[i] = out - ((in - 1) * w->stride[i] - w->pads[i] - w->pads[w->n + i] +
                       w->dilation[i] * (w->size[i] - 1) + 1);
    }
    return true;
}

ONNX_LOWER(lower_conv_transpose, conv2d_transpose)
{
    onnx_window w;
    int64_t more[PROA_MAX_DIMS];
    bool last = proa__channels_last(a->data_format);
    if (!filter_window(g, a->weight, &w)) return;
    onnx_window_fill(&w, &a->stride, &a->padding, &a->dilation, a->padding_algorithm);
    for (int i = 0; w.same && i < w.n; i++) {
        int64_t in = a->x->shape[last ? 1 + i : 2 + i];
        if (in < 0) {
            onnx_refuse(g, "padding SAME needs a known size of x: give it in input_spec");
            return;
        }
        proa__same_padding(in, w.size[i], w.stride[i], &w.pads[i], &w.pads[w.n + i]);
    }
    w.same = false;
    if (!output_padding(g, a, &w, last, more)) return;
    onnx_value *x = onnx_in(g, a->x);
    if (last) x = onnx_to_channels_first(g, x, a->x->ndim);
    onnx_value *out = ONNX_NODE(g, "ConvTranspose", x, onnx_in(g, a->weight), onnx_in(g, a->bias));
    put_window(g, out, &w);
    onnx_put_int(g, out, "group", a->groups);
    onnx_put_ints(g, out, "output_padding", w.n, more);
    onnx_bind(g, a->out, last ? onnx_to_channels_last(g, out, a->out->ndim) : out);
}

const onnx_rule onnx_rules_conv[] = {
    {"conv1d", lower_conv, NULL, 0, 0},
    {"conv2d", lower_conv, NULL, 0, 0},
    {"conv3d", lower_conv, NULL, 0, 0},
    {"conv1d_transpose", lower_conv_transpose, NULL, 0, 0},
    {"conv2d_transpose", lower_conv_transpose, NULL, 0, 0},
    {"conv3d_transpose", lower_conv_transpose, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_conv; /* C wants a declaration in every file */
#endif
