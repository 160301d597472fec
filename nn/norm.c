/* Batch, layer, group and instance normalization layers with Paddle's parameters: weights of ones, biases of
 * zeros; batch norm keeps running statistics as buffers. Uses nn/layer.h. */
#include "nn/layer.h"

typedef struct norm {
    proa_layer base;
    proa_tensor *weight, *bias;   /* borrowed from the base's list; PROA_NONE without affine part */
    proa_tensor *mean, *variance; /* batch norm's buffers */
    int64_t groups, features;
    double momentum, epsilon;
    proa_data_format format;
} norm;

static double given(double v) { return v == 0 ? (double)PROA_ZERO : v; }

static proa_tensor *batch_forward(proa_layer *self, proa_tensor *x)
{
    const norm *n = (const norm *)self;
    return proa_batch_norm(x, n->mean, n->variance, n->weight, n->bias, .is_test = self->eval,
                           .momentum = given(n->momentum), .epsilon = given(n->epsilon),
                           .data_format = n->format)
        .out;
}

static proa_tensor *layer_forward(proa_layer *self, proa_tensor *x)
{
    const norm *n = (const norm *)self;
    int last = proa_ndim(x) - 1;
    if (last < 0 || (proa_dim(x, last) != n->features && proa_dim(x, last) >= 0)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "layer_norm_layer: x is %s; expected [..., %lld]",
                  proa__tensor_text(x), (long long)n->features);
        return NULL;
    }
    return proa_layer_norm(x, n->weight, n->bias, .epsilon = given(n->epsilon),
                           .begin_norm_axis = last == 0 ? PROA_ZERO : last)
        .out;
}

static proa_tensor *group_forward(proa_layer *self, proa_tensor *x)
{
    const norm *n = (const norm *)self;
    return proa_group_norm(x, n->groups, n->weight, n->bias, .epsilon = given(n->epsilon),
                           .data_format = n->format)
        .out;
}

static proa_tensor *instance_forward(proa_layer *self, proa_tensor *x)
{
    const norm *n = (const norm *)self;
    return proa_instance_norm(x, n->weight, n->bias, .epsilon = given(n->epsilon)).out;
}

static norm *norm_new(const char *type, proa_tensor *(*forward)(proa_layer *, proa_tensor *),
                      int64_t features, const char *weight, proa_norm_layer_opts opts)
{
    if (proa_error()) return NULL;
    if (features < 1) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s_layer: %lld features, expected at least 1", type,
                  (long long)features);
        return NULL;
    }
    norm *n = (norm *)proa_layer_new(sizeof *n, type, forward);
    if (!n) return NULL;
    n->features = features;
    n->momentum = opts.momentum == 0 ? 0.9 : opts.momentum == (double)PROA_ZERO ? 0 : opts.momentum;
    n->epsilon = opts.epsilon == 0 ? 1e-5 : opts.epsilon == (double)PROA_ZERO ? 0 : opts.epsilon;
    n->format = opts.data_format;
    n->weight = n->bias = proa_none;
    if (opts.no_affine) return n;
    n->weight = proa_layer_parameter(&n->base, weight, PROA_SHAPE(features),
                                     (proa_init){.kind = PROA_INIT_CONSTANT, .a = 1});
    n->bias = proa_layer_parameter(&n->base, "bias", PROA_SHAPE(features), (proa_init){0});
    return n;
}

proa_layer *proa_batch_norm_layer_opt(int64_t channels, proa_norm_layer_opts opts)
{
    norm *n = norm_new("batch_norm", batch_forward, channels, "weight", opts);
    if (!n) return NULL;
    n->mean = proa_layer_buffer(&n->base, "_mean", PROA_SHAPE(channels), (proa_init){0});
    n->variance = proa_layer_buffer(&n->base, "_variance", PROA_SHAPE(channels),
                                    (proa_init){.kind = PROA_INIT_CONSTANT, .a = 1});
    return proa__layer_done(&n->base);
}

proa_layer *proa_layer_norm_layer_opt(int64_t features, proa_norm_layer_opts opts)
{
    norm *n = norm_new("layer_norm", layer_forward, features, "weight", opts);
    return n ? proa__layer_done(&n->base) : NULL;
}

proa_layer *proa_group_norm_layer_opt(int64_t groups, int64_t channels, proa_norm_layer_opts opts)
{
    if (!proa_error() && (groups < 1 || channels % groups))
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "group_norm_layer: groups is %lld, which must divide channels (%lld)", (long long)groups,
                  (long long)channels);
    norm *n = norm_new("group_norm", group_forward, channels, "weight", opts);
    if (!n) return NULL;
    n->groups = groups;
    return proa__layer_done(&n->base);
}

proa_layer *proa_instance_norm_layer_opt(int64_t channels, proa_norm_layer_opts opts)
{
    norm *n = norm_new("instance_norm", instance_forward, channels, "scale", opts);
    return n ? proa__layer_done(&n->base) : NULL;
}
