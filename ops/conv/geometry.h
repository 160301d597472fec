/* Geometry of every convolution op: one n-dimensional, grouped, strided, dilated convolution with given
 * paddings, run forward, as dgrad or as wgrad. A transposed convolution is a dgrad. May use core only. */
#ifndef PROA_OPS_CONV_GEOMETRY_H
#define PROA_OPS_CONV_GEOMETRY_H

#include "impl/conv.h"

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/windows.h"

/* Direction of a convolution. */
typedef enum conv_kind { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS } conv_kind;

/* Sizes of the underlying forward convolution; for a transposed one, `in` is therefore the op's output.
 * Spatial sizes have three entries, depth first; absent leading ones are 1. −1: a size known only at run
 * time. */
typedef struct conv_geometry {
    int dims; /* spatial dims of the op: 1, 2, 3 */
    bool channels_last;
    int64_t batch, groups, in_channels, out_channels;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], before[3], after[3];
} conv_geometry;

/* Attributes of any op of the family; those that an op lacks are zero. */
typedef struct conv_params {
    const char *op;
    int dims;
    bool transposed, mixed; /* mixed: x and weight may differ in dtype */
    const proa_tensor *x, *weight;
    proa_ints stride, padding, dilation, output_padding, output_size;
    int64_t groups;
    proa_padding_algorithm algorithm;
    proa_data_format format;
} conv_params;

/* Checks all arguments and fills g; the error names the op and the argument. */
proa_status proa__conv_geometry(const conv_params *p, conv_geometry *g);
/* proa__conv_geometry for prepare functions: computed once per kernel selection and shared by every algorithm
 * that is asked. */
proa_status proa__conv_geometry_once(const conv_params *p, conv_geometry *g);
/* Declines because of the algorithm's cost, relative to the algorithms after it in the list. */
proa_status proa__conv_dear(double cost);
/* Shape and dtype of the input (meta_in) or output (meta_out) of the underlying forward convolution; for a
 * transposed op, meta_in is therefore the op's output. */
void proa__conv_meta_in(const conv_geometry *g, proa_dtype dtype, proa_meta *m);
void proa__conv_meta_out(const conv_geometry *g, proa_dtype dtype, proa_meta *m);
/* Fails unless t, argument `name` of an op, has m's dtype and, where dims are known, shape, as `maker` made
 * it. */
proa_status proa__conv_check_made(const char *op, const char *name, const proa_tensor *t, const proa_meta *m,
                                  const char *maker);
/* Fails unless a bias is absent or has x's dtype and a value for each output channel. */
proa_status proa__conv_check_bias(const char *op, const char *name, const proa_tensor *bias,
                                  const proa_tensor *x, int64_t out_channels);
/* True where vectors of pixels (low_output_channels.h) are faster than vectors of channels, because there are
 * too few output channels to fill those. */
bool proa__conv_has_low_output_channels(const conv_geometry *g);
/* Resolved paddings as 2·dims explicit values; false if they depend on a size known only at run time. */
bool proa__conv_paddings(const conv_geometry *g, int64_t *to);

/* Element strides of a contiguous activation: batch, channel, depth, row, column. */
typedef struct conv_strides {
    int64_t n, c, s[3];
} conv_strides;

static inline conv_strides conv_strides_of(const conv_geometry *g, int64_t channels, const int64_t *size)
{
    conv_strides s;
    int64_t pixels = size[0] * size[1] * size[2], step = g->channels_last ? channels : 1;
    s.n = channels * pixels;
    s.c = g->channels_last ? 1 : pixels;
    s.s[2] = step, s.s[1] = step * size[2], s.s[0] = step * size[1] * size[2];
    return s;
}

/* Whether the sizes of both spatial dims of a 2-D convolution are `value`. */
static inline bool conv_all_are(const int64_t *sizes, int64_t value)
{
    return sizes[1] == value && sizes[2] == value;
}

/* A float32 operand's elements; NULL where an optional one is absent. */
static inline const float *conv_floats(const proa_tensor *t)
{
    return proa__absent(t) ? NULL : (const float *)(const void *)t->data;
}

static inline int64_t conv_pixels(const int64_t *size) { return size[0] * size[1] * size[2]; }

/* Number of tiles of side × side outputs over all images. */
static inline int64_t conv_tiles(const conv_geometry *g, int64_t side)
{
    return g->batch * ((g->out[1] + side - 1) / side) * ((g->out[2] + side - 1) / side);
}

/* Multiply-adds. */
static inline double conv_work(const conv_geometry *g)
{
    double work = (double)g->batch * (double)g->in_channels / (double)g->groups * (double)g->out_channels;
    for (int i = 0; i < 3; i++) work *= (double)g->out[i] * (double)g->kernel[i];
    return work;
}

/* Number of the `items` equal parts that one thread should get: at least 2^16 multiply-adds, 1 to 2 µs of a
 * core. */
static inline int64_t conv_grain(const conv_geometry *g, int64_t items)
{
    return 1 + (int64_t)(65536.0 * (double)items / (conv_work(g) + 1));
}

/* Number of threads that the whole convolution keeps busy, by the measure of conv_grain. */
static inline int64_t conv_worth(const conv_geometry *g) { return 1 + (int64_t)(conv_work(g) / 65536.0); }

/* The attributes of an op as those of another call or args; without groups, for ops that have none. */
#define CONV_SAME_UNGROUPED(a)                                                 \
    .stride = (a)->stride, .padding = (a)->padding, .dilation = (a)->dilation, \
    .data_format = (a)->data_format, .padding_algorithm = (a)->padding_algorithm
#define CONV_SAME_ATTRIBUTES(a) CONV_SAME_UNGROUPED(a), .groups = (a)->groups

/* conv_params of each kind of op, from its args. */
#define CONV_COMMON(a, N, in_groups)                                                               \
    .dims = N, .x = (a)->x, .weight = (a)->weight, .stride = (a)->stride, .padding = (a)->padding, \
    .dilation = (a)->dilation, .groups = in_groups, .algorithm = (a)->padding_algorithm,           \
    .format = (a)->data_format
#define CONV_PARAMS(a, N, name) ((conv_params){.op = name, CONV_COMMON(a, N, (a)->groups)})
/* CONV_PARAMS of an op conv<rank>d<suffix>. */
#define CONV_PARAMS_OF(a, rank, suffix) CONV_PARAMS(a, rank, PROA__OF_RANK(rank, "conv", suffix))
/* CONV_PARAMS for ops whose weight may have another dtype than x. */
#define CONV_PARAMS_MIXED(a, N, name) \
    ((conv_params){.op = name, .mixed = true, CONV_COMMON(a, N, (a)->groups)})
#define CONV_TRANSPOSED(a) \
    .transposed = true, .output_padding = (a)->output_padding, .output_size = (a)->output_size
#define CONV_TRANSPOSE_PARAMS(a, N) \
    ((conv_params){                 \
        .op = PROA__OF_RANK(N, "conv", "_transpose"), CONV_TRANSPOSED(a), CONV_COMMON(a, N, (a)->groups)})
#define CONV_TRANSPOSE_INT8_PARAMS(a) \
    ((conv_params){.op = "conv2d_transpose_int8", .mixed = true, CONV_TRANSPOSED(a), CONV_COMMON(a, 2, 1)})

#endif
