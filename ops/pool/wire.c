/* Pooling in Paddle's programs: one wire op whose strides must be spelled out, global pooling, and 1-D
 * pooling as a 2-D one of one row. May use core and the ops. */
#include "ops/pool/geometry.h"
#include "ops/wire_util.h"

#include <proa/wire.h>

static proa_status put_list(proa_wire_writer *w, const char *name, int wire_dims, const int64_t *values)
{
    return proa_wire_put_ints(w, name, PROA_WIRE_INTS,
                              (proa_ints){wire_dims, values + (3 - wire_dims), NULL, NULL});
}

/* Paddings are before and after of each dim when they differ, once when they do not. */
static proa_status put_paddings(proa_wire_writer *w, const pool_geometry *g, int wire_dims, bool resolved)
{
    int64_t pairs[6] = {0};
    bool equal = true;
    for (int i = 0; i < wire_dims && resolved; i++) {
        pairs[2 * i] = g->before[3 - wire_dims + i], pairs[2 * i + 1] = g->after[3 - wire_dims + i];
        equal = equal && pairs[2 * i] == pairs[2 * i + 1];
    }
    if (!resolved || equal) return put_list(w, "paddings", wire_dims, resolved ? g->before : (int64_t[3]){0});
    return proa_wire_put_ints(w, "paddings", PROA_WIRE_INTS, (proa_ints){2 * wire_dims, pairs, NULL, NULL});
}

static proa_status put_pool(const pool_params *p, proa_tensor *x, proa_tensor *out, proa_wire_writer *w)
{
    pool_geometry g;
    PROA_TRY(proa__pool_geometry(p, &g));
    int n = p->dims == 1 ? 2 : p->dims;
    /* SAME written by name would pad the row of a 1-D pooling as well, were that not of size 1 and
     * stride 1. */
    PROA_TRY(proa_wire_op(w, n == 2 ? "pool2d" : "pool3d"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(put_list(w, "ksize", n, g.kernel));
    PROA_TRY(put_list(w, "strides", n, g.stride));
    PROA_TRY(put_paddings(w, &g, n, p->algorithm == PROA_PADDING_ALGORITHM_EXPLICIT));
    PROA_TRY(proa_wire_put_int(w, "ceil_mode", PROA_WIRE_BOOLEAN, p->ceil_mode));
    PROA_TRY(proa_wire_put_int(w, "exclusive", PROA_WIRE_BOOLEAN,
                               p->type == PROA_POOLING_TYPE_MAX || g.exclusive));
    PROA_TRY(proa_wire_put_string(w, "data_format",
                                  n == 2            ? g.channels_last ? "NHWC" : "NCHW"
                                  : g.channels_last ? "NDHWC"
                                                    : "NCDHW"));
    PROA_TRY(proa_wire_put_string(w, "pooling_type", p->type == PROA_POOLING_TYPE_MAX ? "max" : "avg"));
    PROA_TRY(proa_wire_put_int(w, "global_pooling", PROA_WIRE_BOOLEAN, 0));
    PROA_TRY(proa_wire_put_int(w, "adaptive", PROA_WIRE_BOOLEAN, p->adaptive));
    PROA_TRY(proa_wire_put_string(w, "padding_algorithm", proa__wire_algorithm(p->algorithm)));
    return proa_wire_put_int(w, "use_cudnn", PROA_WIRE_BOOLEAN, 0);
}

static proa_status write_pool(const pool_params *p, proa_tensor *out, proa_wire_writer *w)
{
    proa_tensor *x = (proa_tensor *)(uintptr_t)p->x;
    if (p->dims != 1) return put_pool(p, x, out, w);
    int axis = proa__channels_last(p->format) ? -3 : -2;
    proa_tensor *rows = proa__wire_with_axis(w, x, axis), *pooled = proa__wire_with_axis(w, out, axis);
    if (!rows || !pooled) return proa_error();
    PROA_TRY(proa__wire_put_axis(w, "unsqueeze2", x, rows, axis));
    PROA_TRY(put_pool(p, rows, pooled, w));
    return proa__wire_put_axis(w, "squeeze2", pooled, out, axis);
}

#define POOL_WRITE(name, params)                                    \
    proa_status name##_write(const void *args, proa_wire_writer *w) \
    {                                                               \
        const proa_##name##_args *a = args;                         \
        return write_pool(&params, a->out, w);                      \
    }

#define POOL_WRITES(N)                                                                   \
    POOL_WRITE(max_pool##N##d, MAX_PARAMS(a, N, "max_pool" #N "d"))                      \
    POOL_WRITE(avg_pool##N##d, AVG_PARAMS(a, N, "avg_pool" #N "d"))                      \
    POOL_WRITE(adaptive_max_pool##N##d,                                                  \
               ADAPTIVE_PARAMS(a, N, "adaptive_max_pool" #N "d", PROA_POOLING_TYPE_MAX)) \
    POOL_WRITE(adaptive_avg_pool##N##d,                                                  \
               ADAPTIVE_PARAMS(a, N, "adaptive_avg_pool" #N "d", PROA_POOLING_TYPE_AVG))

POOL_WRITES(1)
POOL_WRITES(2)
POOL_WRITES(3)

static proa_status write_index(const pool_params *p, const char *type, proa_tensor *out, proa_tensor *mask,
                               proa_wire_writer *w)
{
    pool_geometry g;
    PROA_TRY(proa__pool_geometry(p, &g));
    if (memcmp(g.before, g.after, sizeof g.before))
        return proa__op_fail(PROA_ERR_UNSUPPORTED, proa_find_op(p->op), "padding",
                             "differs before and after a dim, which Paddle's %s cannot say; pad first", type);
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", (proa_tensor *)(uintptr_t)p->x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_output(w, "Mask", mask));
    PROA_TRY(put_list(w, "ksize", p->dims, g.kernel));
    PROA_TRY(put_list(w, "strides", p->dims, g.stride));
    PROA_TRY(put_list(w, "paddings", p->dims, g.before));
    PROA_TRY(proa_wire_put_int(w, "global_pooling", PROA_WIRE_BOOLEAN, 0));
    return proa_wire_put_int(w, "adaptive", PROA_WIRE_BOOLEAN, p->adaptive);
}

#define INDEX_WRITE(N)                                                                                      \
    proa_status max_pool##N##d_with_index_write(const void *args, proa_wire_writer *w)                      \
    {                                                                                                       \
        const proa_max_pool##N##d_with_index_args *a = args;                                                \
        return write_index(&INDEX_PARAMS(a, N, "max_pool" #N "d_with_index"), "max_pool" #N "d_with_index", \
                           a->out, a->mask, w);                                                             \
    }

INDEX_WRITE(2)
INDEX_WRITE(3)

/* Global pooling is adaptive pooling to one value. */
#define READ_GLOBAL(N, ...)                                                                                 \
    proa_status pool##N##d_read_global(proa_wire_reader *r)                                                 \
    {                                                                                                       \
        const char *format = proa_wire_string(r, "data_format", "NCHW"), *type;                             \
        type = proa_wire_string(r, "pooling_type", "");                                                     \
        proa_data_format f =                                                                                \
            format && format[0] == 'N' && format[1] != 'C' ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW; \
        proa_tensor *x = proa_wire_input(r, "X"), *out;                                                     \
        if (type && type[0] == 'm')                                                                         \
            out = proa_adaptive_max_pool##N##d(x, PROA_INTS(__VA_ARGS__), .data_format = f);                \
        else out = proa_adaptive_avg_pool##N##d(x, PROA_INTS(__VA_ARGS__), .data_format = f);               \
        return proa_wire_result(r, "Out", out);                                                             \
    }

READ_GLOBAL(2, 1, 1)
READ_GLOBAL(3, 1, 1, 1)
