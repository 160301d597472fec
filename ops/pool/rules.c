/* Gradients of pooling. Pooling is linear once the argmax indices are known, so double backward gathers at
 * those indices (max) or averages again (mean). A 1-D pooling is a 2-D one of one row. May use core and the
 * ops. */
#include "ops/pool/geometry.h"
#include "impl/index.h"
#include "impl/shape.h"

/* Explicit strides where the op's default is the kernel size: Paddle's gradient ops have no default. */
#define WINDOWS(a)                                                                         \
    .stride = (a)->stride.count ? (a)->stride : (a)->kernel_size, .padding = (a)->padding, \
    .ceil_mode = (a)->ceil_mode, .data_format = (a)->data_format,                          \
    .padding_algorithm = (a)->padding_algorithm

/* The elements of v at the argmax indices in `mask`: v is [image, channel, input pixels…], mask and result
 * [image, channel, windows…]. */
static proa_tensor *picked(proa_tensor *v, proa_tensor *mask)
{
    int64_t n = v ? v->shape[0] : 0, c = v ? v->shape[1] : 0;
    proa_tensor *flat = proa_take_along_axis(proa_reshape(v, PROA_INTS(n, c, -1)),
                                             proa_reshape(mask, PROA_INTS(n, c, -1)), 2);
    return proa_reshape(flat, ((proa_ints){mask->ndim, mask->shape, NULL, NULL}));
}

/* ---- 1-D ---- */

static proa_tensor *as_rows(proa_tensor *t, proa_data_format f)
{
    return proa_unsqueeze(t, PROA_INTS(proa__channels_last(f) ? -3 : -2));
}

static proa_tensor *without_rows(proa_tensor *t, proa_data_format f)
{
    return proa_squeeze(t, .axis = PROA_INTS(proa__channels_last(f) ? -3 : -2));
}

/* The gradient of any 1-D pooling, as that of a 2-D pooling of one row; the geometry turns its padding
 * algorithm into numbers. SAME needs a known length. */
static proa_tensor *row_grad(const pool_params *p, proa_tensor *x, proa_tensor *out, proa_tensor *d_out)
{
    pool_geometry g;
    if (proa__pool_geometry(p, &g) != PROA_OK) return NULL;
    if (p->algorithm == PROA_PADDING_ALGORITHM_SAME && g.in[2] < 0) {
        proa__op_fail(PROA_ERR_UNSUPPORTED, proa_find_op(p->op), "padding_algorithm",
                      "SAME has no gradient while the length is unknown; give explicit paddings");
        return NULL;
    }
    proa_tensor *d_x = proa_pool2d_grad(
        as_rows(x, p->format), as_rows(out, p->format), as_rows(d_out, p->format), PROA_INTS(1, g.kernel[2]),
        .stride = PROA_INTS(1, g.stride[2]), .padding = PROA_INTS(0, 0, g.before[2], g.after[2]),
        .ceil_mode = p->ceil_mode, .no_exclusive = !g.exclusive, .adaptive = p->adaptive,
        .pooling_type = p->type,
        .data_format = proa__channels_last(p->format) ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW);
    return without_rows(d_x, p->format);
}

/* ---- the rules ---- */

/* Adaptive pooling has no windows; exclusive is true by default, so its option is inverted. */
static proa_pool2d_grad_opts grad_options(const pool_params *p)
{
    proa_pool2d_grad_opts o = {.pooling_type = p->type, .adaptive = p->adaptive, .data_format = p->format};
    if (p->adaptive) return o;
    o.stride = p->stride.count ? p->stride : p->kernel_size, o.padding = p->padding;
    o.ceil_mode = p->ceil_mode, o.padding_algorithm = p->algorithm;
    o.no_exclusive = p->type == PROA_POOLING_TYPE_AVG && !p->exclusive;
    return o;
}

static proa_tensor *pool_grad(int rank, proa_tensor *x, proa_tensor *out, proa_tensor *d_out,
                              proa_ints kernel_size, proa_pool2d_grad_opts options)
{
    return (rank == 3 ? proa_pool3d_grad_opt : proa_pool2d_grad_opt)(x, out, d_out, kernel_size, options);
}

/* Sets *d_x to the gradient of a pooling of any number of dims, if `want` says that it is asked for. */
static proa_status give(bool want, const pool_params *p, proa_tensor *x, proa_tensor *out, proa_tensor *d_out,
                        proa_tensor **d_x)
{
    if (want)
        *d_x = p->dims == 1 ? row_grad(p, x, out, d_out)
                            : pool_grad(p->dims, x, out, d_out, p->kernel_size, grad_options(p));
    return proa_error();
}

proa_status max_pool_vjp(int rank, const proa_max_pool1d_args *a, proa_max_pool1d_grads *g)
{
    return give(g->want_x, &MAX_PARAMS(a, rank), a->x, a->out, g->d_out, &g->d_x);
}

proa_status avg_pool_vjp(int rank, const proa_avg_pool1d_args *a, proa_avg_pool1d_grads *g)
{
    return give(g->want_x, &AVG_PARAMS(a, rank), a->x, a->out, g->d_out, &g->d_x);
}

proa_status adaptive_max_pool_vjp(int rank, const proa_adaptive_max_pool1d_args *a,
                                  proa_adaptive_max_pool1d_grads *g)
{
    return give(g->want_x, &ADAPTIVE_MAX_PARAMS(a, rank), a->x, a->out, g->d_out, &g->d_x);
}

proa_status adaptive_avg_pool_vjp(int rank, const proa_adaptive_avg_pool1d_args *a,
                                  proa_adaptive_avg_pool1d_grads *g)
{
    return give(g->want_x, &ADAPTIVE_AVG_PARAMS(a, rank), a->x, a->out, g->d_out, &g->d_x);
}

proa_status pool_grad_vjp(int rank, const proa_pool2d_grad_args *a, proa_pool2d_grad_grads *g)
{
    const proa_pool2d_double_grad_opts options = {WINDOWS(a), .no_exclusive = !a->exclusive,
                                                  .adaptive = a->adaptive, .pooling_type = a->pooling_type};
    if (g->want_d_out)
        g->d_d_out = (rank == 3 ? proa_pool3d_double_grad_opt
                                : proa_pool2d_double_grad_opt)(a->x, g->d_d_x, a->kernel_size, options);
    return proa_error();
}

proa_status pool_double_grad_vjp(int rank, const proa_pool2d_double_grad_args *a,
                                 proa_pool2d_double_grad_grads *g)
{
    const proa_pool2d_grad_opts options = {WINDOWS(a), .no_exclusive = !a->exclusive, .adaptive = a->adaptive,
                                           .pooling_type = a->pooling_type};
    if (g->want_v) g->d_v = pool_grad(rank, a->x, g->d_out, g->d_out, a->kernel_size, options);
    return proa_error();
}

proa_status max_pool_with_index_vjp(int rank, const proa_max_pool2d_with_index_args *a,
                                    proa_max_pool2d_with_index_grads *g)
{
    const proa_max_pool2d_with_index_grad_opts options = {.stride =
                                                              a->stride.count ? a->stride : a->kernel_size,
                                                          .padding = a->padding,
                                                          .adaptive = a->adaptive};
    if (g->want_x)
        g->d_x = (rank == 3 ? proa_max_pool3d_with_index_grad_opt : proa_max_pool2d_with_index_grad_opt)(
            a->x, a->mask, g->d_out, a->kernel_size, options);
    return proa_error();
}

proa_status max_pool_with_index_grad_vjp(int rank, const proa_max_pool2d_with_index_grad_args *a,
                                         proa_max_pool2d_with_index_grad_grads *g)
{
    (void)rank;
    if (g->want_d_out) g->d_d_out = picked(g->d_d_x, a->mask);
    return proa_error();
}
