/* Helpers that the collectives share: the process group of a call, and copies of operands in host memory, for
 * calls that the ranks' devices do not make between themselves. May use core and kernels. */
#ifndef PROA_OPS_COLLECTIVE_GROUP_H
#define PROA_OPS_COLLECTIVE_GROUP_H

#include "core/copy.h"
#include "core/device.h"
#include "core/group.h"
#include "kernels/rowwise.h"

/* nranks, or the group's size if it is 0; −1 with an error. */
static inline __attribute__((unused)) int64_t ranks_of(const char *op, int64_t group, int64_t nranks)
{
    const proa_group *g = nranks > 0 ? NULL : proa__group(op, group);
    return nranks > 0 ? nranks : g ? g->size : -1;
}

/* rank, or that of this process if it is −1; −1 with an error. */
static inline __attribute__((unused)) int64_t rank_in(const char *op, int64_t group, int64_t rank)
{
    const proa_group *g = rank >= 0 ? NULL : proa__group(op, group);
    return rank >= 0 ? rank : g ? g->rank : -1;
}

/* The group of a call, after checks of the number of ranks that it expects (0: not given) and of this
 * process's rank (−1: not given). */
static inline __attribute__((unused)) proa_group *group_as(const char *op, int64_t group, int64_t rank,
                                                           int64_t nranks)
{
    proa_group *g = proa__group(op, group);
    if (!g || ((nranks <= 0 || nranks == g->size) && (rank < 0 || rank == g->rank))) return g;
    proa__op_fail(
        PROA_ERR_BAD_STATE, proa_find_op(op), "nranks",
        "the call was made for rank %lld of %lld in group %lld, and this process is rank %d of %d; start as "
        "many ranks as the program was made for",
        (long long)rank, (long long)nranks, (long long)group, g->rank, g->size);
    return NULL;
}

static inline __attribute__((unused)) size_t bytes_of(const proa_tensor *t)
{
    return (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
}

/* An input in host memory: x itself, or a new copy. */
static inline __attribute__((unused)) proa_tensor *host_in(proa_tensor *x)
{
    if (!x || !proa__on_device(x)) return x;
    PROA__ON_CPU;
    return proa__copy_to(x, PROA_CPU);
}

/* Memory for an output on the host: out itself, or a new tensor, which host_back copies to out. */
static inline __attribute__((unused)) proa_tensor *host_out(proa_tensor *out)
{
    if (!proa__on_device(out)) return out;
    PROA__ON_CPU;
    proa_meta meta = proa_meta_of(out);
    return proa__tensor_new(&meta);
}

static inline __attribute__((unused)) proa_status host_back(proa_tensor *out, const proa_tensor *host,
                                                            proa_status status)
{
    return status == PROA_OK && out != host ? proa__copy(out, host) : status;
}

#endif
