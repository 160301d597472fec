/* Convolution layers of one to three spatial dims, plain and transposed, with Paddle's shapes of weights and
 * its initializer (normal with std √(2 / (kernel elements · in)); transposed: Xavier). Uses nn/layer.h. */
#include "nn/layer.h"

#include "initializers.h"

typedef struct conv {
    proa_layer base;
    proa_tensor *weight, *bias; /* borrowed from the base's list; bias PROA_NONE without */
    int spatial;
    bool transposed;
    int64_t groups;
    int64_t stride[3], padding[3], dilation[3], output_padding[3];
    proa_padding_algorithm algorithm;
    proa_data_format format;
} conv;

static proa_tensor *conv_forward(proa_layer *self, proa_tensor *x)
{
    const conv *c = (const conv *)self;
    proa_ints stride = {c->spatial, c->stride, NULL, NULL}, padding = {c->spatial, c->padding, NULL, NULL},
              dilation = {c->spatial, c->dilation, NULL, NULL};
#define CONV(op)                                                                          \
    op(x, c->weight, c->bias, .stride = stride, .padding = padding, .dilation = dilation, \
       .groups = c->groups, .data_format = c->format, .padding_algorithm = c->algorithm)
    switch (c->spatial) {
    case 1: return CONV(proa_conv1d);
    case 2: return CONV(proa_conv2d);
    default: return CONV(proa_conv3d);
    }
#undef CONV
}

static proa_tensor *transpose_forward(proa_layer *self, proa_tensor *x)
{
    const conv *c = (const conv *)self;
    proa_ints stride = {c->spatial, c->stride, NULL, NULL}, padding = {c->spatial, c->padding, NULL, NULL},
              dilation = {c->spatial, c->dilation, NULL, NULL},
              output_padding = {c->output_padding[0] ? c->spatial : 0, c->output_padding, NULL, NULL};
#define CONV(op)                                                                          \
    op(x, c->weight, c->bias, .stride = stride, .padding = padding, .dilation = dilation, \
       .output_padding = output_padding, .groups = c->groups, .data_format = c->format,   \
       .padding_algorithm = c->algorithm)
    switch (c->spatial) {
    case 1: return CONV(proa_conv1d_transpose);
    case 2: return CONV(proa_conv2d_transpose);
    default: return CONV(proa_conv3d_transpose);
    }
#undef CONV
}

static proa_status check(int spatial, int64_t in, int64_t out, int64_t kernel, const proa_conv_layer_opts *o)
{
    if (spatial < 1 || spatial > 3)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "conv_layer: %d spatial dims, expected 1 to 3", spatial);
    if (in < 1 || out < 1 || kernel < 1 || o->stride < 0 || o->dilation < 0 || o->padding < 0 ||
        o->groups < 0)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "conv%dd_layer: in %lld, out %lld, kernel %lld: channels and kernel must be at least 1, "
            "stride, padding, dilation and groups not negative",
            spatial, (long long)in, (long long)out, (long long)kernel);
    int64_t groups = o->groups ? o->groups : 1;
    if (in % groups || out % groups)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "conv%dd_layer: groups is %lld, which must divide in (%lld) and out (%lld)", spatial,
                         (long long)groups, (long long)in, (long long)out);
    return PROA_OK;
}

proa_layer *proa_conv_layer_opt(int spatial, bool transposed, int64_t in, int64_t out, int64_t kernel,
                                proa_conv_layer_opts opts)
{
    static const char *const types[2][3] = {{"conv1d", "conv2d", "conv3d"},
                                            {"conv1d_transpose", "conv2d_transpose", "conv3d_transpose"}};
    if (proa_error() || check(spatial, in, out, kernel, &opts) != PROA_OK) return NULL;
    conv *c = (conv *)proa_layer_new(sizeof *c, types[transposed][spatial - 1],
                                     transposed ? transpose_forward : conv_forward);
    if (!c) return NULL;
    c->spatial = spatial;
    c->transposed = transposed;
    c->groups = opts.groups ? opts.groups : 1;
    c->algorithm = opts.padding_algorithm;
    c->format = opts.data_format;
    int64_t shape[5] = {transposed ? in : out, (transposed ? out : in) / c->groups};
    double elements = (double)in;
    for (int i = 0; i < spatial; i++) {
        c->stride[i] = opts.stride ? opts.stride : 1;
        c->dilation[i] = opts.dilation ? opts.dilation : 1;
        c->padding[i] = opts.padding;
        c->output_padding[i] = opts.output_padding;
        shape[2 + i] = kernel;
        elements *= (double)kernel;
    }
    if (opts.weight.kind == PROA_INIT_DEFAULT && !transposed) opts.weight = proa__init_convolution(elements);
    proa_ints dims = {2 + spatial, shape, NULL, NULL};
    c->weight = proa_layer_parameter(&c->base, "weight", dims, opts.weight);
    c->bias = opts.no_bias ? proa_none : proa_layer_parameter(&c->base, "bias", PROA_SHAPE(out), opts.bias);
    return proa__layer_done(&c->base);
}
