/* Gradients of the creation ops that take a tensor. Public ops only. */
#include "core/tensor.h"
#include "impl/create.h"

proa_status tril_vjp(const proa_tril_args *a, proa_tril_grads *g)
{
    g->d_x = proa_tril(g->d_out, .diagonal = a->diagonal);
    return proa_error();
}

proa_status triu_vjp(const proa_triu_args *a, proa_triu_grads *g)
{
    g->d_x = proa_triu(g->d_out, .diagonal = a->diagonal);
    return proa_error();
}

proa_status fill_vjp(const proa_fill_args *a, proa_fill_grads *g)
{
    (void)a;
    g->d_x = proa_full_like(g->d_out, 0);
    return proa_error();
}
