/* Pooling in Paddle's programs: pool2d and pool3d with explicit strides; adaptive max pooling, written as
 * max_pool2d_with_index or its 3-D form; global pooling, read as adaptive; and 1-D pooling as a 2-D one of
 * one row. May use core and the ops. */
#include "ops/pool/geometry.h"
#include "ops/wire_util.h"

#include <proa/wire.h>

static proa_status put_list(proa_wire_writer *w, const char *name, int wire_dims, const int64_t *values)
{
    return proa_wire_put_ints(w, name, PROA_WIRE_INTS,
                              (proa_ints){wire_dims, values + (3 - wire_dims), NULL, NULL});
}

/* Writes paddings as one number per dim where before and after agree in all dims, else as both. Not
 * `resolved` (SAME, VALID): zeros. */
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

static proa_status put_attrs(const pool_params *p, const pool_geometry *g, int n, proa_wire_writer *w)
{
    PROA_TRY(put_list(w, "ksize", n, g->kernel));
    PROA_TRY(put_list(w, "strides", n, g->stride));
    PROA_TRY(put_paddings(w, g, n, p->algorithm == PROA_PADDING_ALGORITHM_EXPLICIT));
    PROA_TRY(proa_wire_put_int(w, "ceil_mode", PROA_WIRE_BOOLEAN, p->ceil_mode));
    PROA_TRY(proa_wire_put_int(w, "exclusive", PROA_WIRE_BOOLEAN,
                               p->type == PROA_POOLING_TYPE_MAX || g->exclusive));
    PROA_TRY(proa_wire_put_string(w, "data_format",
                                  n == 2             ? g->channels_last ? "NHWC" : "NCHW"
                                  : g->channels_last ? "NDHWC"
                                                     : "NCDHW"));
    PROA_TRY(proa_wire_put_string(w, "pooling_type", p->type == PROA_POOLING_TYPE_MAX ? "max" : "avg"));
    PROA_TRY(proa_wire_put_int(w, "global_pooling", PROA_WIRE_BOOLEAN, 0));
    PROA_TRY(proa_wire_put_int(w, "adaptive", PROA_WIRE_BOOLEAN, p->adaptive));
    PROA_TRY(proa_wire_put_string(w, "padding_algorithm", proa__wire_algorithm(p->algorithm)));
    return proa_wire_put_int(w, "use_cudnn", PROA_WIRE_BOOLEAN, 0);
}

/* Writes pool2d or pool3d. padding_algorithm SAME may stay a name for a 1-D pooling, because the row that it
 * adds has kernel 1 and stride 1 and so gets no padding. */
static proa_status put_pool(const pool_params *p, proa_tensor *x, proa_tensor *out, proa_wire_writer *w)
{
    pool_geometry g;
    PROA_TRY(proa__pool_geometry(p, &g));
    int n = p->dims == 1 ? 2 : p->dims;
    PROA_TRY(proa_wire_op(w, n == 2 ? "pool2d" : "pool3d"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    return put_attrs(p, &g, n, w);
}

/* ---- max pooling with argmax indices ---- */

static const char *index_type(int wire_dims)
{
    return wire_dims == 2 ? "max_pool2d_with_index" : "max_pool3d_with_index";
}

static proa_status put_index_attrs(const pool_params *p, const pool_geometry *g, int n, proa_wire_writer *w)
{
    PROA_TRY(put_list(w, "ksize", n, g->kernel));
    PROA_TRY(put_list(w, "strides", n, g->stride));
    PROA_TRY(put_list(w, "paddings", n, p->adaptive ? (int64_t[3]){0} : g->before));
    PROA_TRY(proa_wire_put_int(w, "global_pooling", PROA_WIRE_BOOLEAN, 0));
    return proa_wire_put_int(w, "adaptive", PROA_WIRE_BOOLEAN, p->adaptive);
}

static proa_status write_index(const pool_params *p, proa_tensor *x, proa_tensor *out, proa_tensor *mask,
                               proa_wire_writer *w)
{
    pool_geometry g;
    int n = p->dims == 1 ? 2 : p->dims;
    PROA_TRY(proa__pool_geometry(p, &g));
    if (memcmp(g.before, g.after, sizeof g.before) != 0)
        return proa__op_fail(PROA_ERR_UNSUPPORTED, proa_find_op(p->op), "padding",
                             "differs before and after a dim, which Paddle's %s cannot say; pad first",
                             index_type(n));
    PROA_TRY(proa_wire_op(w, index_type(n)));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_output(w, "Mask", mask));
    return put_index_attrs(p, &g, n, w);
}

/* Permutation of dims from channels-last to channels-first, or (`back`) the reverse. */
static const int64_t *permutation(int ndim, bool back)
{
    static const int64_t images[2][4] = {{0, 3, 1, 2}, {0, 2, 3, 1}};
    static const int64_t volumes[2][5] = {{0, 4, 1, 2, 3}, {0, 2, 3, 4, 1}};
    return ndim == 5 ? volumes[back] : images[back];
}

/* A channels-first variable for t: t itself if it is; else a new one, with a transpose op if `made` (t has
 * its value), or without (the caller writes it). */
static proa_tensor *channels_first(const pool_params *p, proa_tensor *t, bool made, proa_wire_writer *w)
{
    if (!proa__channels_last(p->format)) return t;
    proa_tensor *first = proa__wire_permuted(w, t, permutation(t->ndim, false));
    if (!first || (made && proa__wire_put_transpose(w, t, first, permutation(t->ndim, false)) != PROA_OK))
        return NULL;
    return first;
}

static proa_status back_from(proa_tensor *first, proa_tensor *to, proa_wire_writer *w)
{
    return first == to ? PROA_OK : proa__wire_put_transpose(w, first, to, permutation(to->ndim, true));
}

static proa_tensor *mask_of(const proa_tensor *out, proa_wire_writer *w)
{
    proa_meta m = proa_meta_of(out);
    m.dtype = PROA_I32;
    return proa_wire_temporary(w, &m);
}

/* Writes max_pool2d_with_index: adaptive windows of Paddle's pool2d differ from those of
 * adaptive_max_pool. */
static proa_status write_adaptive_max(const pool_params *p, proa_tensor *x, proa_tensor *out,
                                      proa_wire_writer *w)
{
    proa_tensor *from = channels_first(p, x, true, w), *to = channels_first(p, out, false, w);
    proa_tensor *mask = to ? mask_of(to, w) : NULL;
    if (!from || !mask) return proa_error();
    PROA_TRY(write_index(p, from, to, mask, w));
    return back_from(to, out, w);
}

static proa_status put_windows(const pool_params *p, proa_tensor *x, proa_tensor *out, proa_wire_writer *w)
{
    bool indexed = p->adaptive && p->type == PROA_POOLING_TYPE_MAX;
    return indexed ? write_adaptive_max(p, x, out, w) : put_pool(p, x, out, w);
}

static proa_status write_pool(const pool_params *p, proa_tensor *out, proa_wire_writer *w)
{
    proa_tensor *x = (proa_tensor *)(uintptr_t)p->x;
    if (p->dims != 1) return put_windows(p, x, out, w);
    int axis = proa__channels_last(p->format) ? -3 : -2;
    proa_tensor *rows = proa__wire_with_axis(w, x, axis), *pooled = proa__wire_with_axis(w, out, axis);
    if (!rows || !pooled) return proa_error();
    PROA_TRY(proa__wire_put_axis(w, "unsqueeze2", x, rows, axis));
    PROA_TRY(put_windows(p, rows, pooled, w));
    return proa__wire_put_axis(w, "squeeze2", pooled, out, axis);
}

#define POOL_WRITE(name, params)                                              \
    proa_status name##_write(int rank, const void *args, proa_wire_writer *w) \
    {                                                                         \
        const proa_##name##1d_args *a = args;                                 \
        return write_pool(&params(a, rank), a->out, w);                       \
    }

POOL_WRITE(max_pool, MAX_PARAMS)
POOL_WRITE(avg_pool, AVG_PARAMS)
POOL_WRITE(adaptive_max_pool, ADAPTIVE_MAX_PARAMS)
POOL_WRITE(adaptive_avg_pool, ADAPTIVE_AVG_PARAMS)

proa_status max_pool_with_index_write(int rank, const void *args, proa_wire_writer *w)
{
    const proa_max_pool2d_with_index_args *a = args;
    return write_index(&INDEX_PARAMS(a, rank, "_with_index"), a->x, a->out, a->mask, w);
}

/* ---- gradients ---------------------------------------------------------------------------- */

/* The gradient of adaptive max pooling asks for the mask, so the pooling is done again. */
static proa_status write_adaptive_max_grad(const pool_params *p, proa_tensor *d_out, proa_tensor *d_x,
                                           proa_wire_writer *w)
{
    pool_geometry g;
    proa_tensor *x = channels_first(p, (proa_tensor *)(uintptr_t)p->x, true, w);
    proa_tensor *from = channels_first(p, d_out, true, w), *to = channels_first(p, d_x, false, w);
    if (!x || !from || !to) return proa_error();
    proa_meta m = proa_meta_of(from);
    proa_tensor *out = proa_wire_temporary(w, &m), *mask = mask_of(from, w);
    if (!out || !mask) return proa_error();
    PROA_TRY(proa__pool_geometry(p, &g));
    PROA_TRY(write_index(p, x, out, mask, w));
    PROA_TRY(proa_wire_op(w, p->dims == 2 ? "max_pool2d_with_index_grad" : "max_pool3d_with_index_grad"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_input(w, "Mask", mask));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", from));
    PROA_TRY(proa_wire_put_output(w, "X@GRAD", to));
    PROA_TRY(put_index_attrs(p, &g, p->dims, w));
    return back_from(to, d_x, w);
}

static proa_status write_grad(const pool_params *p, proa_tensor *out, proa_tensor *d_out, proa_tensor *d_x,
                              proa_wire_writer *w)
{
    pool_geometry g;
    if (p->adaptive && p->type == PROA_POOLING_TYPE_MAX) return write_adaptive_max_grad(p, d_out, d_x, w);
    PROA_TRY(proa__pool_geometry(p, &g));
    PROA_TRY(proa_wire_op(w, p->dims == 2 ? "pool2d_grad" : "pool3d_grad"));
    PROA_TRY(proa_wire_put_input(w, "X", (proa_tensor *)(uintptr_t)p->x));
    PROA_TRY(proa_wire_put_input(w, "Out", out));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", d_out));
    PROA_TRY(proa_wire_put_output(w, "X@GRAD", d_x));
    return put_attrs(p, &g, p->dims, w);
}

proa_status pool_grad_write(int rank, const void *args, proa_wire_writer *w)
{
    const proa_pool2d_grad_args *a = args;
    return write_grad(&GRAD_PARAMS(a, rank, "_grad"), a->out, a->d_out, a->d_x, w);
}

/* Global pooling is adaptive pooling to one value. */
proa_status pool_read_global(int rank, proa_wire_reader *r)
{
    static const int64_t ones[3] = {1, 1, 1};
    const proa_ints size = {rank, ones, NULL, NULL};
    const char *format = proa_wire_string(r, "data_format", "NCHW");
    const char *type = proa_wire_string(r, "pooling_type", "");
    bool last = format && format[0] == 'N' && format[1] != 'C';
    proa_data_format f = last ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW;
    proa_tensor *x = proa_wire_input(r, "X"), *out;
    if (type && type[0] == 'm')
        out = rank == 3 ? proa_adaptive_max_pool3d(x, size, .data_format = f)
                        : proa_adaptive_max_pool2d(x, size, .data_format = f);
    else
        out = rank == 3 ? proa_adaptive_avg_pool3d(x, size, .data_format = f)
                        : proa_adaptive_avg_pool2d(x, size, .data_format = f);
    return proa_wire_result(r, "Out", out);
}

proa_status max_pool_with_index_read_global(int rank, proa_wire_reader *r)
{
    static const int64_t ones[3] = {1, 1, 1};
    const proa_ints size = {rank, ones, NULL, NULL};
    proa_tensor *x = proa_wire_input(r, "X"), *out, *mask = NULL;
    if (rank == 3) {
        proa_max_pool3d_with_index_result made = proa_max_pool3d_with_index(x, size, .adaptive = true);
        out = made.out, mask = made.mask;
    } else {
        proa_max_pool2d_with_index_result made = proa_max_pool2d_with_index(x, size, .adaptive = true);
        out = made.out, mask = made.mask;
    }
    PROA_TRY(proa_wire_result(r, "Out", out));
    return proa_wire_result(r, "Mask", mask);
}
