/* Gradients of the collectives. A result that every rank holds receives the sum of all ranks' gradients,
 * except in tensor-parallel ops, which know which tensors are replicated. May use core and public ops. */
#include "impl/collective.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/reduce.h"

#include "ops/collective/group.h"

/* Only sums and averages are differentiable: Paddle has no gradient of the others either. */
static bool linear(const char *name, proa_reduce_type op)
{
    if (op == PROA_REDUCE_TYPE_SUM || op == PROA_REDUCE_TYPE_AVG) return true;
    proa__op_fail(PROA_ERR_UNSUPPORTED, proa_find_op(name), "op",
                  "is neither SUM nor AVG: it has no gradient");
    return false;
}

static proa_tensor *averaged(proa_tensor *d, proa_reduce_type op, int64_t ranks)
{
    return op == PROA_REDUCE_TYPE_AVG && ranks > 1 ? proa_scale(d, .scale = PROA_SCALAR(1.0 / (double)ranks))
                                                   : d;
}

proa_status all_reduce_vjp(const proa_all_reduce_args *a, proa_all_reduce_grads *g)
{
    if (g->want_x && linear("all_reduce", a->op))
        g->d_x = proa_all_reduce(g->d_out, .op = a->op, .group = a->group);
    return proa_error();
}

/* Sums d over the group's ranks; complex numbers as pairs, since groups sum real numbers only. nranks < 0:
 * every rank gets the whole sum. */
static proa_tensor *summed(proa_tensor *d, int64_t group, int64_t nranks)
{
    if (!d) return NULL;
    if (d->dtype != PROA_C64 && d->dtype != PROA_C128)
        return nranks < 0 ? proa_all_reduce(d, .group = group)
                          : proa_reduce_scatter(d, .group = group, .nranks = nranks);
    proa_dtype dtype = (proa_dtype)d->dtype;
    proa_tensor *re = proa_cast(summed(proa_real(d), group, nranks), dtype);
    proa_tensor *im = proa_cast(summed(proa_imag(d), group, nranks), dtype);
    return proa_add(re, proa_scale(im, .scale = proa_scalar_complex(0, 1)));
}

/* d on the rank of the group, zeros on the others. */
static proa_tensor *only_on(proa_tensor *d, const char *op, int64_t group, int64_t rank)
{
    const proa_group *g = d ? proa__group(op, group) : NULL;
    if (!g) return NULL;
    return g->rank == rank ? d : proa_full_like(d, 0);
}

/* The source rank gets the sum of all gradients; the other ranks' inputs were not used. */
proa_status broadcast_vjp(const proa_broadcast_args *a, proa_broadcast_grads *g)
{
    if (g->want_x) g->d_x = only_on(summed(g->d_out, a->group, -1), "broadcast", a->group, a->src);
    return proa_error();
}

/* All ranks get the gradient of dst, the only rank that has the result. */
proa_status reduce_to_vjp(const proa_reduce_to_args *a, proa_reduce_to_grads *g)
{
    if (!g->want_x || !linear("reduce_to", a->op)) return proa_error();
    int64_t ranks = ranks_of("reduce_to", a->group, 0);
    if (ranks > 0)
        g->d_x =
            averaged(proa_broadcast(g->d_out, .src = rows_option(a->dst), .group = a->group), a->op, ranks);
    return proa_error();
}

proa_status all_gather_vjp(const proa_all_gather_args *a, proa_all_gather_grads *g)
{
    if (g->want_x) g->d_x = summed(g->d_out, a->group, a->nranks);
    return proa_error();
}

proa_status reduce_scatter_vjp(const proa_reduce_scatter_args *a, proa_reduce_scatter_grads *g)
{
    if (!g->want_x || !linear("reduce_scatter", a->op)) return proa_error();
    int64_t ranks = ranks_of("reduce_scatter", a->group, a->nranks);
    if (ranks > 0)
        g->d_x = averaged(proa_all_gather(g->d_out, .group = a->group, .nranks = a->nranks), a->op, ranks);
    return proa_error();
}

proa_status scatter_from_vjp(const proa_scatter_from_args *a, proa_scatter_from_grads *g)
{
    if (g->want_x)
        g->d_x = only_on(proa_all_gather(g->d_out, .group = a->group, .nranks = a->nranks), "scatter_from",
                         a->group, a->src);
    return proa_error();
}

proa_status all_to_all_vjp(const proa_all_to_all_args *a, proa_all_to_all_grads *g)
{
    if (g->want_x) g->d_x = proa_all_to_all(g->d_out, .group = a->group);
    return proa_error();
}

proa_status global_scatter_vjp(const proa_global_scatter_args *a, proa_global_scatter_grads *g)
{
    if (g->want_x) g->d_x = proa_global_gather(g->d_out, a->local_count, a->global_count, .group = a->group);
    return proa_error();
}

proa_status global_gather_vjp(const proa_global_gather_args *a, proa_global_gather_grads *g)
{
    if (g->want_x) g->d_x = proa_global_scatter(g->d_out, a->local_count, a->global_count, .group = a->group);
    return proa_error();
}

/* ---- tensor parallel layers ------------------------------------------------------------ */

proa_status mp_all_reduce_vjp(const proa_mp_all_reduce_args *a, proa_mp_all_reduce_grads *g)
{
    if (g->want_x) g->d_x = proa_mp_identity(g->d_out, .group = a->group);
    return proa_error();
}

proa_status mp_identity_vjp(const proa_mp_identity_args *a, proa_mp_identity_grads *g)
{
    if (g->want_x) g->d_x = summed(g->d_out, a->group, -1);
    return proa_error();
}

proa_status mp_concat_vjp(const proa_mp_concat_args *a, proa_mp_concat_grads *g)
{
    if (g->want_x)
        g->d_x =
            proa_mp_split(g->d_out, .group = a->group, .rank = rows_option(a->rank), .nranks = a->nranks);
    return proa_error();
}

proa_status mp_split_vjp(const proa_mp_split_args *a, proa_mp_split_grads *g)
{
    if (g->want_x)
        g->d_x =
            proa_mp_concat(g->d_out, .group = a->group, .rank = rows_option(a->rank), .nranks = a->nranks);
    return proa_error();
}

proa_status mp_embedding_vjp(const proa_mp_embedding_args *a, proa_mp_embedding_grads *g)
{
    if (g->want_weight)
        g->d_weight = proa_mp_embedding_grad(a->weight, a->x, g->d_out, .start_index = a->start_index,
                                             .vocab_size = a->vocab_size);
    return proa_error();
}

proa_status mp_embedding_grad_vjp(const proa_mp_embedding_grad_args *a, proa_mp_embedding_grad_grads *g)
{
    if (g->want_d_out)
        g->d_d_out = proa_mp_embedding(g->d_d_weight, a->x, .start_index = a->start_index,
                                       .vocab_size = a->vocab_size);
    return proa_error();
}

/* softmax · (d − Σ d·softmax), the sum over the classes of all ranks. */
static proa_tensor *through_softmax(const proa_mp_cross_entropy_args *a, proa_tensor *d)
{
    proa_tensor *weighted = proa_multiply(d, a->softmax);
    proa_tensor *sum =
        proa_all_reduce(proa_sum(weighted, .axis = PROA_INTS(-1), .keepdim = true), .group = a->group);
    return proa_multiply(a->softmax, proa_subtract(d, sum));
}

proa_status mp_cross_entropy_vjp(const proa_mp_cross_entropy_args *a, proa_mp_cross_entropy_grads *g)
{
    if (!g->want_logits) return PROA_OK;
    proa_tensor *by_softmax = NULL, *by_loss = NULL;
    if (!proa__absent(g->d_softmax)) by_softmax = through_softmax(a, g->d_softmax);
    if (!proa__absent(g->d_loss))
        by_loss = proa_mp_cross_entropy_grad(a->softmax, a->label, g->d_loss,
                                             .ignore_index = rows_option(a->ignore_index), .group = a->group,
                                             .rank = rows_option(a->rank), .nranks = a->nranks);
    g->d_logits = by_softmax && by_loss ? proa_add(by_softmax, by_loss) : by_loss ? by_loss : by_softmax;
    return proa_error();
}
