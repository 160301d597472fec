/* What every pooling op comes down to: windows over up to three spatial dims, given by size, stride and
 * padding or by the number of outputs. May use core only. */
#ifndef PROA_OPS_POOL_GEOMETRY_H
#define PROA_OPS_POOL_GEOMETRY_H

#include "ops_impl.h"

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/windows.h"

/* Spatial sizes are three, depth first; the absent leading ones are 1. */
typedef struct pool_geometry {
    int dims;
    bool channels_last, adaptive, exclusive;
    proa_pooling_type type;
    int64_t batch, channels;
    int64_t in[3], out[3], kernel[3], stride[3], before[3], after[3];
} pool_geometry;

/* The attributes of any op of the family; what an op does not have is zero. kernel_size is the number of
 * outputs when adaptive, as on the wire. */
typedef struct pool_params {
    const char *op;
    int dims;
    const proa_tensor *x;
    proa_ints kernel_size, stride, padding;
    bool ceil_mode, exclusive, adaptive;
    proa_data_format format;
    proa_pooling_type type;
    proa_padding_algorithm algorithm;
} pool_params;

proa_status proa__pool_geometry(const pool_params *p, pool_geometry *g);
void proa__pool_meta_out(const pool_geometry *g, proa_dtype dtype, proa_meta *m);

/* Inputs [*from, *to) of output `i` along dim d, and (not adaptive) the window's length with padding. */
static inline int64_t pool_window(const pool_geometry *g, int d, int64_t i, int64_t *from, int64_t *to)
{
    if (g->adaptive) {
        *from = i * g->in[d] / g->out[d];
        *to = ((i + 1) * g->in[d] + g->out[d] - 1) / g->out[d];
        return *to - *from;
    }
    int64_t start = i * g->stride[d] - g->before[d], end = start + g->kernel[d];
    if (end > g->in[d] + g->before[d]) end = g->in[d] + g->before[d];
    int64_t length = end - start;
    *from = start < 0 ? 0 : start;
    *to = end > g->in[d] ? g->in[d] : end;
    if (*to < *from) *to = *from;
    return length;
}

#define POOL_COMMON(a, N, name) .op = name, .dims = N, .x = (a)->x, .format = (a)->data_format
#define POOL_WINDOWS(a)                                                              \
    .kernel_size = (a)->kernel_size, .stride = (a)->stride, .padding = (a)->padding, \
    .ceil_mode = (a)->ceil_mode, .algorithm = (a)->padding_algorithm
#define MAX_PARAMS(a, N, name) ((pool_params){POOL_COMMON(a, N, name), POOL_WINDOWS(a)})
#define AVG_PARAMS(a, N, name)                                                              \
    ((pool_params){POOL_COMMON(a, N, name), POOL_WINDOWS(a), .type = PROA_POOLING_TYPE_AVG, \
                   .exclusive = (a)->exclusive})
#define ADAPTIVE_PARAMS(a, N, name, t) \
    ((pool_params){POOL_COMMON(a, N, name), .kernel_size = (a)->output_size, .adaptive = true, .type = t})
#define INDEX_PARAMS(a, N, name)                    \
    ((pool_params){.op = name,                      \
                   .dims = N,                       \
                   .x = (a)->x,                     \
                   .kernel_size = (a)->kernel_size, \
                   .stride = (a)->stride,           \
                   .padding = (a)->padding,         \
                   .adaptive = (a)->adaptive})
#define GRAD_PARAMS(a, N, name)                                                         \
    ((pool_params){POOL_COMMON(a, N, name), POOL_WINDOWS(a), .type = (a)->pooling_type, \
                   .exclusive = (a)->exclusive, .adaptive = (a)->adaptive})

#endif
