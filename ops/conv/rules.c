/* Gradients of convolutions. A convolution is linear in both operands, so each derivative of any order is
 * again a forward convolution, a dgrad or a wgrad. May use core and the ops. */
#include "ops/conv/geometry.h"
#include "impl/reduce.h"
#include "impl/shape.h"

/* The bias gradient: d_out summed over batch and space. */
static proa_tensor *sum_but_channels(proa_tensor *d_out, int dims, bool channels_last)
{
    int64_t axes[4] = {0};
    for (int i = 0; i < dims; i++) axes[1 + i] = channels_last ? 1 + i : 2 + i;
    return proa_sum(d_out, .axis = ((proa_ints){dims + 1, axes, NULL, NULL}));
}

/* A transposed op's paddings are those of its own input: explicit ones for the ops that see it reversed. */
#define EXPLICIT_ATTRS(a)                                                                     \
    .stride = (a)->stride, .padding = paddings, .dilation = dilations, .groups = (a)->groups, \
    .data_format = (a)->data_format

static proa_status explicit_lists(const conv_params *p, int64_t *paddings, int64_t *dilations)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(p, &g));
    for (int i = 0; i < p->dims; i++) dilations[i] = g.dilation[3 - p->dims + i];
    if (proa__conv_paddings(&g, paddings)) return PROA_OK;
    return proa__op_fail(PROA_ERR_UNSUPPORTED, proa_find_op(p->op), "padding_algorithm",
                         "SAME has no gradient while a spatial size is unknown; give explicit paddings");
}

/* conv1d is a conv2d of one row; its gradients are that one's. */
static int64_t row_axis(proa_data_format f) { return proa__channels_last(f) ? -3 : -2; }

static proa_tensor *as_rows(proa_tensor *t, int64_t axis) { return proa_unsqueeze(t, PROA_INTS(axis)); }

static proa_tensor *without_rows(proa_tensor *t, int64_t axis)
{
    return proa_squeeze(t, .axis = PROA_INTS(axis));
}

/* Options of the conv2d that a conv1d is; paddings are explicit, so that SAME does not pad the row. */
#define ROW_ATTRS(a)                                                                                 \
    .stride = PROA_INTS(1, (a)->stride.at[0]), .padding = PROA_INTS(0, 0, paddings[0], paddings[1]), \
    .dilation = PROA_INTS(1, dilations[0]), .groups = (a)->groups,                                   \
    .data_format = proa__channels_last((a)->data_format) ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW

static proa_status row_vjp(const proa_conv1d_args *a, proa_conv1d_grads *g)
{
    int64_t axis = row_axis(a->data_format), paddings[2], dilations[1];
    PROA_TRY(explicit_lists(&CONV_PARAMS(a, 1, "conv1d"), paddings, dilations));
    proa_tensor *x = as_rows(a->x, axis), *weight = as_rows(a->weight, -2), *d_out = as_rows(g->d_out, axis);
    if (g->want_x) g->d_x = without_rows(proa_conv2d_grad_input(x, weight, d_out, ROW_ATTRS(a)), axis);
    if (g->want_weight)
        g->d_weight = without_rows(proa_conv2d_grad_filter(x, weight, d_out, ROW_ATTRS(a)), -2);
    if (g->want_bias) g->d_bias = sum_but_channels(g->d_out, 1, proa__channels_last(a->data_format));
    return proa_error();
}

static proa_status row_transpose_vjp(const proa_conv1d_transpose_args *a, proa_conv1d_transpose_grads *g)
{
    int64_t axis = row_axis(a->data_format), paddings[2], dilations[1];
    PROA_TRY(explicit_lists(&CONV_TRANSPOSE_PARAMS(a, 1), paddings, dilations));
    proa_tensor *x = as_rows(a->x, axis), *weight = as_rows(a->weight, -2), *d_out = as_rows(g->d_out, axis);
    if (g->want_x) g->d_x = without_rows(proa_conv2d(d_out, weight, PROA_NONE, ROW_ATTRS(a)), axis);
    if (g->want_weight)
        g->d_weight = without_rows(proa_conv2d_grad_filter(d_out, weight, x, ROW_ATTRS(a)), -2);
    if (g->want_bias) g->d_bias = sum_but_channels(g->d_out, 1, proa__channels_last(a->data_format));
    return proa_error();
}

/* ---- 2-D and 3-D ---- */

static proa_tensor *conv(int rank, proa_tensor *x, proa_tensor *weight, proa_conv2d_opts options)
{
    return (rank == 3 ? proa_conv3d_opt : proa_conv2d_opt)(x, weight, PROA_NONE, options);
}

static proa_tensor *grad_input(int rank, proa_tensor *x, proa_tensor *weight, proa_tensor *d_out,
                               proa_conv2d_grad_input_opts options)
{
    return (rank == 3 ? proa_conv3d_grad_input_opt : proa_conv2d_grad_input_opt)(x, weight, d_out, options);
}

static proa_tensor *grad_filter(int rank, proa_tensor *x, proa_tensor *weight, proa_tensor *d_out,
                                proa_conv2d_grad_filter_opts options)
{
    return (rank == 3 ? proa_conv3d_grad_filter_opt : proa_conv2d_grad_filter_opt)(x, weight, d_out, options);
}

proa_status conv_vjp(int rank, const proa_conv1d_args *a, proa_conv1d_grads *g)
{
    if (rank == 1) return row_vjp(a, g);
    if (g->want_x)
        g->d_x = grad_input(rank, a->x, a->weight, g->d_out,
                            (proa_conv2d_grad_input_opts){CONV_SAME_ATTRIBUTES(a)});
    if (g->want_weight)
        g->d_weight = grad_filter(rank, a->x, a->weight, g->d_out,
                                  (proa_conv2d_grad_filter_opts){CONV_SAME_ATTRIBUTES(a)});
    if (g->want_bias) g->d_bias = sum_but_channels(g->d_out, rank, proa__channels_last(a->data_format));
    return proa_error();
}

proa_status conv_grad_input_vjp(int rank, const proa_conv2d_grad_input_args *a,
                                proa_conv2d_grad_input_grads *g)
{
    if (g->want_weight)
        g->d_weight = grad_filter(rank, g->d_d_x, a->weight, a->d_out,
                                  (proa_conv2d_grad_filter_opts){CONV_SAME_ATTRIBUTES(a)});
    if (g->want_d_out)
        g->d_d_out = conv(rank, g->d_d_x, a->weight, (proa_conv2d_opts){CONV_SAME_ATTRIBUTES(a)});
    return proa_error();
}

proa_status conv_grad_filter_vjp(int rank, const proa_conv2d_grad_filter_args *a,
                                 proa_conv2d_grad_filter_grads *g)
{
    if (g->want_x)
        g->d_x = grad_input(rank, a->x, g->d_d_weight, a->d_out,
                            (proa_conv2d_grad_input_opts){CONV_SAME_ATTRIBUTES(a)});
    if (g->want_d_out)
        g->d_d_out = conv(rank, a->x, g->d_d_weight, (proa_conv2d_opts){CONV_SAME_ATTRIBUTES(a)});
    return proa_error();
}

proa_status conv_transpose_vjp(int rank, const proa_conv1d_transpose_args *a, proa_conv1d_transpose_grads *g)
{
    if (rank == 1) return row_transpose_vjp(a, g);
    int64_t padding_values[6], dilation_values[3];
    PROA_TRY(explicit_lists(&CONV_TRANSPOSE_PARAMS(a, rank), padding_values, dilation_values));
    proa_ints paddings = {2 * rank, padding_values, NULL, NULL},
              dilations = {rank, dilation_values, NULL, NULL};
    if (g->want_x) g->d_x = conv(rank, g->d_out, a->weight, (proa_conv2d_opts){EXPLICIT_ATTRS(a)});
    if (g->want_weight)
        g->d_weight =
            grad_filter(rank, g->d_out, a->weight, a->x, (proa_conv2d_grad_filter_opts){EXPLICIT_ATTRS(a)});
    if (g->want_bias) g->d_bias = sum_but_channels(g->d_out, rank, proa__channels_last(a->data_format));
    return proa_error();
}
