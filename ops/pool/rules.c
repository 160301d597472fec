/* Gradients of pooling. Pooling is linear once the places of the maxima are known, so its gradient's gradient
 * picks (max) or averages (avg) again. A 1-D pooling is a 2-D one of one row. May use core and the ops. */
#include "ops/pool/geometry.h"
#include "impl/index.h"
#include "impl/shape.h"

/* Windows side by side are spelled out: Paddle's gradient ops have no default for strides. */
#define WINDOWS(a)                                                                         \
    .stride = (a)->stride.count ? (a)->stride : (a)->kernel_size, .padding = (a)->padding, \
    .ceil_mode = (a)->ceil_mode, .data_format = (a)->data_format,                          \
    .padding_algorithm = (a)->padding_algorithm

/* exclusive's default is true, so its option is stored inverted. */
#define POOL_RULES(N)                                                                                        \
    proa_status max_pool##N##d_vjp(const proa_max_pool##N##d_args *a, proa_max_pool##N##d_grads *g)          \
    {                                                                                                        \
        if (g->want_x) g->d_x = proa_pool##N##d_grad(a->x, a->out, g->d_out, a->kernel_size, WINDOWS(a));    \
        return proa_error();                                                                                 \
    }                                                                                                        \
    proa_status avg_pool##N##d_vjp(const proa_avg_pool##N##d_args *a, proa_avg_pool##N##d_grads *g)          \
    {                                                                                                        \
        if (g->want_x)                                                                                       \
            g->d_x =                                                                                         \
                proa_pool##N##d_grad(a->x, a->out, g->d_out, a->kernel_size, WINDOWS(a),                     \
                                     .no_exclusive = !a->exclusive, .pooling_type = PROA_POOLING_TYPE_AVG);  \
        return proa_error();                                                                                 \
    }                                                                                                        \
    proa_status adaptive_max_pool##N##d_vjp(const proa_adaptive_max_pool##N##d_args *a,                      \
                                            proa_adaptive_max_pool##N##d_grads *g)                           \
    {                                                                                                        \
        if (g->want_x)                                                                                       \
            g->d_x = proa_pool##N##d_grad(a->x, a->out, g->d_out, a->output_size, .adaptive = true,          \
                                          .data_format = a->data_format);                                    \
        return proa_error();                                                                                 \
    }                                                                                                        \
    proa_status adaptive_avg_pool##N##d_vjp(const proa_adaptive_avg_pool##N##d_args *a,                      \
                                            proa_adaptive_avg_pool##N##d_grads *g)                           \
    {                                                                                                        \
        if (g->want_x)                                                                                       \
            g->d_x =                                                                                         \
                proa_pool##N##d_grad(a->x, a->out, g->d_out, a->output_size, .adaptive = true,               \
                                     .data_format = a->data_format, .pooling_type = PROA_POOLING_TYPE_AVG);  \
        return proa_error();                                                                                 \
    }                                                                                                        \
    proa_status pool##N##d_grad_vjp(const proa_pool##N##d_grad_args *a, proa_pool##N##d_grad_grads *g)       \
    {                                                                                                        \
        if (g->want_d_out)                                                                                   \
            g->d_d_out = proa_pool##N##d_double_grad(a->x, g->d_d_x, a->kernel_size, WINDOWS(a),             \
                                                     .no_exclusive = !a->exclusive, .adaptive = a->adaptive, \
                                                     .pooling_type = a->pooling_type);                       \
        return proa_error();                                                                                 \
    }                                                                                                        \
    proa_status pool##N##d_double_grad_vjp(const proa_pool##N##d_double_grad_args *a,                        \
                                           proa_pool##N##d_double_grad_grads *g)                             \
    {                                                                                                        \
        if (g->want_v)                                                                                       \
            g->d_v = proa_pool##N##d_grad(a->x, g->d_out, g->d_out, a->kernel_size, WINDOWS(a),              \
                                          .no_exclusive = !a->exclusive, .adaptive = a->adaptive,            \
                                          .pooling_type = a->pooling_type);                                  \
        return proa_error();                                                                                 \
    }                                                                                                        \
    proa_status max_pool##N##d_with_index_vjp(const proa_max_pool##N##d_with_index_args *a,                  \
                                              proa_max_pool##N##d_with_index_grads *g)                       \
    {                                                                                                        \
        if (g->want_x)                                                                                       \
            g->d_x =                                                                                         \
                proa_max_pool##N##d_with_index_grad(a->x, a->mask, g->d_out, a->kernel_size,                 \
                                                    .stride = a->stride.count ? a->stride : a->kernel_size,  \
                                                    .padding = a->padding, .adaptive = a->adaptive);         \
        return proa_error();                                                                                 \
    }                                                                                                        \
    proa_status max_pool##N##d_with_index_grad_vjp(const proa_max_pool##N##d_with_index_grad_args *a,        \
                                                   proa_max_pool##N##d_with_index_grad_grads *g)             \
    {                                                                                                        \
        if (g->want_d_out) g->d_d_out = picked(g->d_d_x, a->mask);                                           \
        return proa_error();                                                                                 \
    }

/* v at the mask's places, both [image, channel, …]. */
static proa_tensor *picked(proa_tensor *v, proa_tensor *mask)
{
    int64_t n = v ? v->shape[0] : 0, c = v ? v->shape[1] : 0;
    proa_tensor *flat = proa_take_along_axis(proa_reshape(v, PROA_INTS(n, c, -1)),
                                             proa_reshape(mask, PROA_INTS(n, c, -1)), 2);
    return proa_reshape(flat, ((proa_ints){mask->ndim, mask->shape, NULL, NULL}));
}

POOL_RULES(2)
POOL_RULES(3)

/* ---- 1-D ---- */

static proa_tensor *as_rows(proa_tensor *t, proa_data_format f)
{
    return proa_unsqueeze(t, PROA_INTS(proa__channels_last(f) ? -3 : -2));
}

static proa_tensor *without_rows(proa_tensor *t, proa_data_format f)
{
    return proa_squeeze(t, .axis = PROA_INTS(proa__channels_last(f) ? -3 : -2));
}

/* The 2-D gradient of a 1-D op with explicit or SAME paddings, which the geometry resolved. */
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

#define ROW_RULE(name, params)                                                  \
    proa_status name##_vjp(const proa_##name##_args *a, proa_##name##_grads *g) \
    {                                                                           \
        if (g->want_x) g->d_x = row_grad(&params, a->x, a->out, g->d_out);      \
        return proa_error();                                                    \
    }

ROW_RULE(max_pool1d, MAX_PARAMS(a, 1, "max_pool1d"))
ROW_RULE(avg_pool1d, AVG_PARAMS(a, 1, "avg_pool1d"))
ROW_RULE(adaptive_max_pool1d, ADAPTIVE_PARAMS(a, 1, "adaptive_max_pool1d", PROA_POOLING_TYPE_MAX))
ROW_RULE(adaptive_avg_pool1d, ADAPTIVE_PARAMS(a, 1, "adaptive_avg_pool1d", PROA_POOLING_TYPE_AVG))
