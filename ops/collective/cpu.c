/* Collectives: the default process group moves the bytes, in host memory.
 * May use core. */
#include "core/copy.h"
#include "core/device.h"
#include "impl/collective.h"

#include "kernels/rowwise.h"

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

/* The groups move host memory: tensors of a device pass through copies. */
typedef struct passage {
    proa_tensor *x, *out; /* on the host */
    proa_tensor *there;   /* where the result belongs */
} passage;

static proa_status enter(passage *p, proa_tensor *x, proa_tensor *out)
{
    *p = (passage){x, out, out};
    if (!proa__on_device(out)) return PROA_OK;
    PROA__ON_CPU;
    proa_meta meta = proa_meta_of(out);
    p->x = proa__copy_to(x, PROA_CPU);
    p->out = p->x ? proa__tensor_new(&meta) : NULL;
    return p->out ? PROA_OK : proa_error();
}

static proa_status leave(passage *p, proa_status status)
{
    if (p->out == p->there) return status;
    if (status == PROA_OK) status = proa__copy(p->there, p->out);
    proa_drop(p->out);
    proa_drop(p->x);
    return status;
}

static void copy(proa_tensor *to, const proa_tensor *from)
{
    if (to->data != from->data && from->numel) memcpy(to->data, from->data, bytes_of(from));
}

PROA_KERNEL_ANYWHERE(all_reduce_cpu, all_reduce)
{
    proa_group *g = proa__default_group();
    passage p;
    PROA_TRY(enter(&p, a->x, a->out));
    copy(p.out, p.x);
    return leave(&p,
                 g->all_reduce(g, p.out->data, p.out->numel, (proa_dtype)p.out->dtype, (proa_reduce)a->op));
}

PROA_KERNEL_ANYWHERE(broadcast_cpu, broadcast)
{
    proa_group *g = proa__default_group();
    passage p;
    PROA_TRY(enter(&p, a->x, a->out));
    copy(p.out, p.x);
    return leave(&p, g->broadcast(g, p.out->data, bytes_of(p.out), (int)a->src));
}

PROA_KERNEL_ANYWHERE(all_gather_cpu, all_gather)
{
    proa_group *g = proa__default_group();
    passage p;
    PROA_TRY(enter(&p, a->x, a->out));
    return leave(&p, g->all_gather(g, p.x->data, p.out->data, bytes_of(p.x)));
}

static proa_status scatter_sum(proa_group *g, const proa_tensor *x, proa_tensor *out, proa_reduce op)
{
    size_t bytes = bytes_of(x), each = bytes_of(out);
    if (bytes == 0) return PROA_OK;
    char *all = proa_scratch(bytes);
    if (!all) return proa_error();
    memcpy(all, x->data, bytes);
    proa_status status = g->all_reduce(g, all, x->numel, (proa_dtype)x->dtype, op);
    if (status == PROA_OK) memcpy(out->data, all + (size_t)g->rank * each, each);
    proa_scratch_free(all);
    return status;
}

PROA_KERNEL_ANYWHERE(reduce_scatter_cpu, reduce_scatter)
{
    passage p;
    PROA_TRY(enter(&p, a->x, a->out));
    return leave(&p, scatter_sum(proa__default_group(), p.x, p.out, (proa_reduce)a->op));
}

PROA_KERNEL_ANYWHERE(barrier_cpu, barrier)
{
    proa_group *g = proa__default_group();
    PROA_TRY(proa__copy(a->out, a->x));
    return g->barrier(g);
}
