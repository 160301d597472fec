/* Shapes and rules of the collectives. The gradient of a sum over ranks is the sum of the gradients over
 * ranks: every rank's result depends on every rank's input. May use core and public ops. */
#include "impl/collective.h"
#include "impl/elementwise.h"

#include "kernels/rowwise.h"

proa_status collective_broadcast_infer(const proa_broadcast_args *a, proa_broadcast_metas *m)
{
    int size = proa__default_group()->size;
    if (a->src < 0 || a->src >= size)
        return ROWS_FAIL(broadcast, OUT_OF_RANGE, "src", "is %lld; expected a rank below %d",
                         (long long)a->src, size);
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status all_gather_infer(const proa_all_gather_args *a, proa_all_gather_metas *m)
{
    m->out = proa_meta_of(a->x);
    if (m->out.ndim == 0)
        return ROWS_FAIL(all_gather, INVALID_ARGUMENT, "x", "is 0-D; expected an axis 0 to join along");
    if (m->out.shape[0] > 0) {
        size_t rows;
        if (!proa__mul_size((size_t)m->out.shape[0], (size_t)proa__default_group()->size, &rows))
            return proa_error();
        m->out.shape[0] = (int64_t)rows;
    }
    return PROA_OK;
}

proa_status reduce_scatter_infer(const proa_reduce_scatter_args *a, proa_reduce_scatter_metas *m)
{
    int size = proa__default_group()->size;
    m->out = proa_meta_of(a->x);
    if (m->out.ndim == 0 || (m->out.shape[0] > 0 && m->out.shape[0] % size))
        return ROWS_FAIL(reduce_scatter, INVALID_ARGUMENT, "x",
                         "is %s; axis 0 must split into %d equal parts", proa__tensor_text(a->x), size);
    if (m->out.shape[0] > 0) m->out.shape[0] /= size;
    return PROA_OK;
}

/* Only sums and averages are differentiable: Paddle has no gradient of the others either. */
static bool linear(const char *name, proa_reduce_type op)
{
    if (op == PROA_REDUCE_TYPE_SUM || op == PROA_REDUCE_TYPE_AVG) return true;
    proa__op_fail(PROA_ERR_UNSUPPORTED, proa_find_op(name), "op",
                  "is neither SUM nor AVG: it has no gradient");
    return false;
}

proa_status all_reduce_vjp(const proa_all_reduce_args *a, proa_all_reduce_grads *g)
{
    if (g->want_x && linear("all_reduce", a->op)) g->d_x = proa_all_reduce(g->d_out, .op = a->op);
    return proa_error();
}

/* The groups' sums know real numbers: complex ones go as two parts. */
static proa_tensor *summed(proa_tensor *d, bool scatter)
{
    if (!d) return NULL;
    if (d->dtype != PROA_C64 && d->dtype != PROA_C128)
        return scatter ? proa_reduce_scatter(d, .op = PROA_REDUCE_TYPE_SUM)
                       : proa_all_reduce(d, .op = PROA_REDUCE_TYPE_SUM);
    proa_dtype dtype = (proa_dtype)d->dtype;
    proa_tensor *re = proa_cast(summed(proa_real(d), scatter), dtype);
    proa_tensor *im = proa_cast(summed(proa_imag(d), scatter), dtype);
    return proa_add(re, proa_scale(im, .scale = proa_scalar_complex(0, 1)));
}

/* Everything flows back to the source; the others' tensors were not looked at. */
proa_status broadcast_vjp(const proa_broadcast_args *a, proa_broadcast_grads *g)
{
    if (!g->want_x) return PROA_OK;
    proa_tensor *sum = summed(g->d_out, false);
    double mine = proa__default_group()->rank == a->src ? 1 : 0;
    g->d_x = mine != 0 ? sum : proa_scale(sum, .scale = PROA_SCALAR(mine));
    return proa_error();
}

proa_status all_gather_vjp(const proa_all_gather_args *a, proa_all_gather_grads *g)
{
    (void)a;
    if (g->want_x) g->d_x = summed(g->d_out, true);
    return proa_error();
}

proa_status reduce_scatter_vjp(const proa_reduce_scatter_args *a, proa_reduce_scatter_grads *g)
{
    if (!g->want_x || !linear("reduce_scatter", a->op)) return proa_error();
    g->d_x = proa_all_gather(g->d_out);
    int size = proa__default_group()->size;
    if (a->op == PROA_REDUCE_TYPE_AVG && size > 1)
        g->d_x = proa_scale(g->d_x, .scale = PROA_SCALAR(1.0 / size));
    return proa_error();
}
