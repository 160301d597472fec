/* Collectives over tensors in host memory: the default process group moves the bytes.
 * May use core. */
#include "ops_impl.h"

#include "ops/rows.h"

/* The table's reductions and the group's are the same, in the same order. */
_Static_assert((int)PROA_REDUCE_TYPE_SUM == (int)PROA_REDUCE_SUM &&
                   (int)PROA_REDUCE_TYPE_MAX == (int)PROA_REDUCE_MAX &&
                   (int)PROA_REDUCE_TYPE_MIN == (int)PROA_REDUCE_MIN &&
                   (int)PROA_REDUCE_TYPE_PROD == (int)PROA_REDUCE_PROD &&
                   (int)PROA_REDUCE_TYPE_AVG == (int)PROA_REDUCE_AVG,
               "reductions");

static size_t bytes_of(const proa_tensor *t)
{
    return (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
}

static void copy(proa_tensor *to, const proa_tensor *from)
{
    if (to->data != from->data && from->numel) memcpy(to->data, from->data, bytes_of(from));
}

PROA_KERNEL(all_reduce_cpu, all_reduce)
{
    proa_group *g = proa__default_group();
    copy(a->out, a->x);
    return g->all_reduce(g, a->out->data, a->out->numel, (proa_dtype)a->out->dtype, (proa_reduce)a->op);
}

PROA_KERNEL(broadcast_cpu, broadcast)
{
    proa_group *g = proa__default_group();
    copy(a->out, a->x);
    return g->broadcast(g, a->out->data, bytes_of(a->out), (int)a->src);
}

PROA_KERNEL(all_gather_cpu, all_gather)
{
    proa_group *g = proa__default_group();
    return g->all_gather(g, a->x->data, a->out->data, bytes_of(a->x));
}

PROA_KERNEL(reduce_scatter_cpu, reduce_scatter)
{
    proa_group *g = proa__default_group();
    size_t bytes = bytes_of(a->x), each = bytes_of(a->out);
    if (bytes == 0) return PROA_OK;
    char *all = proa_scratch(bytes);
    if (!all) return proa_error();
    memcpy(all, a->x->data, bytes);
    proa_status status = g->all_reduce(g, all, a->x->numel, (proa_dtype)a->x->dtype, (proa_reduce)a->op);
    if (status == PROA_OK) memcpy(a->out->data, all + (size_t)g->rank * each, each);
    proa_scratch_free(all);
    return status;
}

PROA_KERNEL(barrier_cpu, barrier)
{
    proa_group *g = proa__default_group();
    copy(a->out, a->x);
    return g->barrier(g);
}
