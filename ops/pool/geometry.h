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

#define POOL_COMMON(a, rank, before, after) \
    .op = PROA__OF_RANK(rank, before, after), .dims = rank, .x = (a)->x
#define POOL_WINDOWS(a)                                                              \
    .kernel_size = (a)->kernel_size, .stride = (a)->stride, .padding = (a)->padding, \
    .ceil_mode = (a)->ceil_mode, .algorithm = (a)->padding_algorithm, .format = (a)->data_format
#define MAX_PARAMS(a, rank) ((pool_params){POOL_COMMON(a, rank, "max_pool", ""), POOL_WINDOWS(a)})
#define MAX_INT8_PARAMS(a) ((pool_params){.op = "max_pool2d_int8", .dims = 2, .x = (a)->x, POOL_WINDOWS(a)})
#define AVG_INT8_PARAMS(a)                        \
    ((pool_params){.op = "avg_pool2d_int8",       \
                   .dims = 2,                     \
                   .x = (a)->x,                   \
                   POOL_WINDOWS(a),               \
                   .type = PROA_POOLING_TYPE_AVG, \
                   .exclusive = (a)->exclusive,   \
                   .adaptive = (a)->adaptive})
#define AVG_PARAMS(a, rank)                                                                              \
    ((pool_params){POOL_COMMON(a, rank, "avg_pool", ""), POOL_WINDOWS(a), .type = PROA_POOLING_TYPE_AVG, \
                   .exclusive = (a)->exclusive})
#define ADAPTIVE_PARAMS(a, rank, name, t)                                                        \
    ((pool_params){POOL_COMMON(a, rank, name, ""), .format = (a)->data_format, .adaptive = true, \
                   .kernel_size = (a)->output_size, .type = t})
#define ADAPTIVE_MAX_PARAMS(a, rank) ADAPTIVE_PARAMS(a, rank, "adaptive_max_pool", PROA_POOLING_TYPE_MAX)
#define ADAPTIVE_AVG_PARAMS(a, rank) ADAPTIVE_PARAMS(a, rank, "adaptive_avg_pool", PROA_POOLING_TYPE_AVG)
#define INDEX_PARAMS(a, rank, after)                                                         \
    ((pool_params){POOL_COMMON(a, rank, "max_pool", after), .kernel_size = (a)->kernel_size, \
                   .stride = (a)->stride, .padding = (a)->padding, .adaptive = (a)->adaptive})
#define GRAD_PARAMS(a, rank, after)                                                                 \
    ((pool_params){POOL_COMMON(a, rank, "pool", after), POOL_WINDOWS(a), .type = (a)->pooling_type, \
                   .exclusive = (a)->exclusive, .adaptive = (a)->adaptive})

#endif
