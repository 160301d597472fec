/* Geometry of every pooling op: windows over up to three spatial dims, given by size, stride and padding
 * or by the number of outputs. May use core only. */
#ifndef PROA_OPS_POOL_GEOMETRY_H
#define PROA_OPS_POOL_GEOMETRY_H

#include "impl/pool.h"

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/pool/windows.h"
#include "ops/windows.h"

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
