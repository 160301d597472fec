/* Convolutions in Paddle's programs: a bias is written as elementwise_add, a 1-D convolution as a 2-D one of
 * one row, and one with a group for each input channel as depthwise_conv2d. A conv2d_grad or conv3d_grad that
 * is read becomes two ops, one for each gradient. May use core and the ops. */
#include "ops/conv/geometry.h"
#include "ops/wire_util.h"

#include <proa/wire.h>

/* State that the writers share: one wire convolution of `dims` spatial dims and its bias. */
typedef struct conv_writing {
    proa_wire_writer *w;
    const conv_params *p;
    conv_geometry g;
    int wire_dims; /* 2 for 1-D convolutions */
    proa_tensor *bias, *out;
} conv_writing;

/* `v` with `lead` put in front of a 1-D op's values, once or (for paddings) twice. */
static proa_ints for_rows(const conv_writing *s, const proa_ints *v, int64_t lead, int64_t *storage)
{
    if (s->p->dims != 1 || v->count == 0) return *v;
    int64_t each = v->count, n = 0;
    for (int64_t i = 0; i < each; i++) storage[n++] = lead;
    for (int64_t i = 0; i < v->count; i++) storage[n++] = v->at[i];
    return (proa_ints){n, storage, NULL, NULL};
}

static const char *wire_format(const conv_writing *s)
{
    if (s->wire_dims == 2) return s->g.channels_last ? "NHWC" : "NCHW";
    if (s->p->transposed) return s->g.channels_last ? "NHWC" : "NCHW"; /* it knows no other names */
    return s->g.channels_last ? "NDHWC" : "NCDHW";
}

static const char *wire_type(const conv_writing *s)
{
    const conv_geometry *g = &s->g;
    bool depthwise =
        s->wire_dims == 2 && g->groups > 1 && g->groups == g->in_channels && g->groups == g->out_channels;
    if (s->wire_dims == 3) return s->p->transposed ? "conv3d_transpose" : "conv3d";
    if (s->p->transposed) return depthwise ? "depthwise_conv2d_transpose" : "conv2d_transpose";
    depthwise =
        depthwise || (g->groups > 1 && g->groups == g->in_channels && g->out_channels % g->groups == 0);
    return depthwise ? "depthwise_conv2d" : "conv2d";
}

static proa_status put_attrs(const conv_writing *s)
{
    proa_wire_writer *w = s->w;
    const conv_params *p = s->p;
    int64_t storage[4];
    PROA_TRY(proa_wire_put_ints(w, "strides", PROA_WIRE_INTS, for_rows(s, &p->stride, 1, storage)));
    if (p->dims == 1 && p->algorithm == PROA_PADDING_ALGORITHM_EXPLICIT && p->padding.count == 2)
        PROA_TRY(proa_wire_put_ints(w, "paddings", PROA_WIRE_INTS,
                                    PROA_INTS(0, 0, p->padding.at[0], p->padding.at[1])));
    else PROA_TRY(proa_wire_put_ints(w, "paddings", PROA_WIRE_INTS, for_rows(s, &p->padding, 0, storage)));
    PROA_TRY(proa_wire_put_string(w, "padding_algorithm", proa__wire_algorithm(p->algorithm)));
    PROA_TRY(proa_wire_put_ints(w, "dilations", PROA_WIRE_INTS, for_rows(s, &p->dilation, 1, storage)));
    PROA_TRY(proa_wire_put_int(w, "groups", PROA_WIRE_INT, p->groups));
    PROA_TRY(proa_wire_put_string(w, "data_format", wire_format(s)));
    if (!p->transposed) return PROA_OK;
    PROA_TRY(
        proa_wire_put_ints(w, "output_padding", PROA_WIRE_INTS, for_rows(s, &p->output_padding, 0, storage)));
    return proa_wire_put_ints(w, "output_size", PROA_WIRE_INTS, for_rows(s, &p->output_size, 1, storage));
}

static proa_status put_conv(const conv_writing *s, proa_tensor *x, proa_tensor *weight, proa_tensor *to)
{
    PROA_TRY(proa_wire_op(s->w, wire_type(s)));
    PROA_TRY(proa_wire_put_input(s->w, "Input", x));
    PROA_TRY(proa_wire_put_input(s->w, "Filter", weight));
    PROA_TRY(proa_wire_put_output(s->w, "Output", to));
    return put_attrs(s);
}

/* out = sum + bias: channels last broadcast as they are, otherwise the bias is reshaped to [1, C, 1, …]. */
static proa_status put_bias(const conv_writing *s, proa_tensor *sum, proa_tensor *out)
{
    proa_tensor *bias = s->bias;
    if (!s->g.channels_last) {
        proa_meta m = {.dtype = (proa_dtype)bias->dtype, .ndim = (int8_t)(s->wire_dims + 2)};
        for (int i = 0; i < m.ndim; i++) m.shape[i] = i == 1 ? bias->shape[0] : 1;
        proa_tensor *shaped = proa_wire_temporary(s->w, &m);
        if (!shaped) return proa_error();
        PROA_TRY(proa_wire_op(s->w, "reshape2"));
        PROA_TRY(proa_wire_put_input(s->w, "X", bias));
        PROA_TRY(proa_wire_put_output(s->w, "Out", shaped));
        PROA_TRY(proa_wire_put_ints(s->w, "shape", PROA_WIRE_INTS, (proa_ints){m.ndim, m.shape, NULL, NULL}));
        bias = shaped;
    }
    PROA_TRY(proa_wire_op(s->w, "elementwise_add"));
    PROA_TRY(proa_wire_put_input(s->w, "X", sum));
    PROA_TRY(proa_wire_put_input(s->w, "Y", bias));
    PROA_TRY(proa_wire_put_output(s->w, "Out", out));
    return proa_wire_put_int(s->w, "axis", PROA_WIRE_INT, -1);
}

static proa_status write_rows(conv_writing *s)
{
    int axis = s->g.channels_last ? -3 : -2;
    proa_tensor *x = proa__wire_with_axis(s->w, s->p->x, axis),
                *weight = proa__wire_with_axis(s->w, s->p->weight, -2);
    proa_tensor *sum = proa__wire_with_axis(s->w, s->out, axis), *out = sum;
    if (!proa__absent(s->bias)) out = proa__wire_with_axis(s->w, s->out, axis);
    if (!x || !weight || !sum || !out) return proa_error();
    PROA_TRY(proa__wire_put_axis(s->w, "unsqueeze2", (proa_tensor *)(uintptr_t)s->p->x, x, axis));
    PROA_TRY(proa__wire_put_axis(s->w, "unsqueeze2", (proa_tensor *)(uintptr_t)s->p->weight, weight, -2));
    PROA_TRY(put_conv(s, x, weight, sum));
    if (out != sum) PROA_TRY(put_bias(s, sum, out));
    return proa__wire_put_axis(s->w, "squeeze2", out, s->out, axis);
}

static proa_status write_conv(const conv_params *p, proa_tensor *bias, proa_tensor *out, proa_wire_writer *w)
{
    conv_writing s = {.w = w, .p = p, .wire_dims = p->dims == 1 ? 2 : p->dims, .bias = bias, .out = out};
    PROA_TRY(proa__conv_geometry(p, &s.g));
    if (p->dims == 1) return write_rows(&s);
    proa_tensor *x = (proa_tensor *)(uintptr_t)p->x, *weight = (proa_tensor *)(uintptr_t)p->weight;
    if (proa__absent(bias)) return put_conv(&s, x, weight, out);
    proa_meta m = proa_meta_of(out);
    proa_tensor *sum = proa_wire_temporary(w, &m);
    if (!sum) return proa_error();
    PROA_TRY(put_conv(&s, x, weight, sum));
    return put_bias(&s, sum, out);
}

proa_status conv_write(int rank, const void *args, proa_wire_writer *w)
{
    const proa_conv1d_args *a = args;
    return write_conv(&CONV_PARAMS_OF(a, rank, ""), a->bias, a->out, w);
}

proa_status conv_transpose_write(int rank, const void *args, proa_wire_writer *w)
{
    const proa_conv1d_transpose_args *a = args;
    return write_conv(&CONV_TRANSPOSE_PARAMS(a, rank), a->bias, a->out, w);
}

/* ---- gradients: one wire op stands for two of ours ---- */

/* Writes conv2d_grad or conv3d_grad with the one output, Input@GRAD or Filter@GRAD, that this op makes. */
static proa_status write_grad(const conv_params *p, proa_tensor *d_out, const char *slot, proa_tensor *result,
                              proa_wire_writer *w)
{
    PROA_TRY(proa_wire_op(w, p->dims == 2 ? "conv2d_grad" : "conv3d_grad"));
    PROA_TRY(proa_wire_put_input(w, "Input", (proa_tensor *)(uintptr_t)p->x));
    PROA_TRY(proa_wire_put_input(w, "Filter", (proa_tensor *)(uintptr_t)p->weight));
    PROA_TRY(proa_wire_put_input(w, "Output@GRAD", d_out));
    PROA_TRY(proa_wire_put_output(w, slot, result));
    return put_attrs(&(conv_writing){
        .w = w, .p = p, .wire_dims = p->dims, .g.channels_last = proa__channels_last(p->format)});
}

proa_status conv_grad_input_write(int rank, const void *args, proa_wire_writer *w)
{
    const proa_conv2d_grad_input_args *a = args;
    return write_grad(&CONV_PARAMS_OF(a, rank, "_grad_input"), a->d_out, "Input@GRAD", a->d_x, w);
}

proa_status conv_grad_filter_write(int rank, const void *args, proa_wire_writer *w)
{
    const proa_conv2d_grad_filter_args *a = args;
    return write_grad(&CONV_PARAMS_OF(a, rank, "_grad_filter"), a->d_out, "Filter@GRAD", a->d_weight, w);
}

static proa_data_format read_format(proa_wire_reader *r)
{
    const char *f = proa_wire_string(r, "data_format", "NCHW");
    return f && f[0] == 'N' && f[1] != 'C' ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW;
}

static proa_padding_algorithm read_algorithm(proa_wire_reader *r)
{
    const char *a = proa_wire_string(r, "padding_algorithm", "EXPLICIT");
    return a && a[0] == 'S'   ? PROA_PADDING_ALGORITHM_SAME
           : a && a[0] == 'V' ? PROA_PADDING_ALGORITHM_VALID
                              : PROA_PADDING_ALGORITHM_EXPLICIT;
}

#define READ_ATTRS(r)                                                                    \
    .stride = proa_wire_ints(r, "strides"), .padding = proa_wire_ints(r, "paddings"),    \
    .dilation = proa_wire_ints(r, "dilations"), .groups = proa_wire_int(r, "groups", 1), \
    .padding_algorithm = read_algorithm(r), .data_format = read_format(r)

proa_status conv_read_grad(int rank, proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "Input"), *weight = proa_wire_input(r, "Filter");
    proa_tensor *d_out = proa_wire_input(r, "Output@GRAD");
    proa_tensor *d_x = rank == 3 ? proa_conv3d_grad_input(x, weight, d_out, READ_ATTRS(r))
                                 : proa_conv2d_grad_input(x, weight, d_out, READ_ATTRS(r));
    PROA_TRY(proa_wire_result(r, "Input@GRAD", d_x));
    proa_tensor *d_weight = rank == 3 ? proa_conv3d_grad_filter(x, weight, d_out, READ_ATTRS(r))
                                      : proa_conv2d_grad_filter(x, weight, d_out, READ_ATTRS(r));
    return proa_wire_result(r, "Filter@GRAD", d_weight);
}
