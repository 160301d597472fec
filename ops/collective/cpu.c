/* Kernels of the collectives: the process group moves the bytes, between devices where those of its ranks are
 * connected, otherwise between operands in host memory. May use core. */
#include "impl/collective.h"

#include "ops/collective/group.h"

/* The op table's reductions and the group's have the same order. */
_Static_assert((int)PROA_REDUCE_TYPE_SUM == (int)PROA_REDUCE_SUM &&
                   (int)PROA_REDUCE_TYPE_MAX == (int)PROA_REDUCE_MAX &&
                   (int)PROA_REDUCE_TYPE_MIN == (int)PROA_REDUCE_MIN &&
                   (int)PROA_REDUCE_TYPE_PROD == (int)PROA_REDUCE_PROD &&
                   (int)PROA_REDUCE_TYPE_AVG == (int)PROA_REDUCE_AVG,
               "reductions");

static void copy(proa_tensor *to, const proa_tensor *from)
{
    if (to->data != from->data && from->numel) memcpy(to->data, from->data, bytes_of(from));
}

/* Sets *in to x in host memory and *result to host memory for out; false after setting the error. */
static bool enter(proa_tensor *x, proa_tensor *out, proa_tensor **in, proa_tensor **result)
{
    *in = host_in(x);
    *result = *in ? host_out(out) : NULL;
    return *result;
}

/* Bytes of one rank's part, in a collective that moves elements without reducing them. */
static int64_t part_of(const proa_tensor *part) { return (int64_t)bytes_of(part); }

/* Runs the call between the ranks' devices if x is on one. *done: false, without an error, if it is to be
 * made in host memory. x, and for calls in place a copy of it in out, is what the ranks give. */
static proa_status call_device(proa_group *g, proa_tensor *x, proa_tensor *out, proa_device_call call,
                               bool *done)
{
    const proa_tensor *any = x ? x : out;
    *done = false;
    if (!proa__on_device(any) || !proa__communicators_of(proa__device_id(any))) return PROA_OK;
    bool in_place = call.kind == PROA_DEVICE_ALL_REDUCE || call.kind == PROA_DEVICE_REDUCE ||
                    call.kind == PROA_DEVICE_BROADCAST;
    if (in_place && x->data != out->data) PROA_TRY(proa__copy(out, x));
    call.in = x ? x->data : NULL;
    call.out = out ? out->data : NULL;
    call.dtype = (proa_dtype)any->dtype;
    return proa__calls_of(g)->on_device(g, proa__device_id(any), &call, done);
}

/* Returns from a kernel if devices have done its call, or if it failed there. */
#define TRY_DEVICE(g, x, out, ...)                                                       \
    do {                                                                                 \
        bool done_;                                                                      \
        PROA_TRY(call_device((g), (x), (out), (proa_device_call){__VA_ARGS__}, &done_)); \
        if (done_) return PROA_OK;                                                       \
    } while (0)

PROA_KERNEL_ANYWHERE(all_reduce_cpu, all_reduce)
{
    PROA_SCOPED;
    proa_group *g = proa__group("all_reduce", a->group);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_ALL_REDUCE, .count = a->out->numel, .op = (int)a->op);
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    copy(out, x);
    return host_back(a->out, out,
                     g->all_reduce(g, out->data, out->numel, (proa_dtype)out->dtype, (proa_reduce)a->op));
}

PROA_KERNEL_ANYWHERE(mp_all_reduce_cpu, mp_all_reduce)
{
    PROA_SCOPED;
    proa_group *g = proa__group("mp_all_reduce", a->group);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_ALL_REDUCE, .count = a->out->numel);
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    copy(out, x);
    return host_back(a->out, out,
                     g->all_reduce(g, out->data, out->numel, (proa_dtype)out->dtype, PROA_REDUCE_SUM));
}

PROA_KERNEL_ANYWHERE(reduce_to_cpu, reduce_to)
{
    PROA_SCOPED;
    proa_group *g = proa__group("reduce_to", a->group);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_REDUCE, .count = a->out->numel, .op = (int)a->op,
               .peer = (int)a->dst);
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    copy(out, x);
    return host_back(a->out, out,
                     proa__calls_of(g)->reduce(g, out->data, out->numel, (proa_dtype)out->dtype,
                                               (proa_reduce)a->op, (int)a->dst));
}

PROA_KERNEL_ANYWHERE(broadcast_cpu, broadcast)
{
    PROA_SCOPED;
    proa_group *g = proa__group("broadcast", a->group);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_BROADCAST, .count = part_of(a->out), .peer = (int)a->src);
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    copy(out, x);
    return host_back(a->out, out, g->broadcast(g, out->data, bytes_of(out), (int)a->src));
}

PROA_KERNEL_ANYWHERE(all_gather_cpu, all_gather)
{
    PROA_SCOPED;
    proa_group *g = group_as("all_gather", a->group, -1, a->nranks);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_ALL_GATHER, .count = part_of(a->x));
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    return host_back(a->out, out, g->all_gather(g, x->data, out->data, bytes_of(x)));
}

PROA_KERNEL_ANYWHERE(reduce_scatter_cpu, reduce_scatter)
{
    PROA_SCOPED;
    proa_group *g = group_as("reduce_scatter", a->group, -1, a->nranks);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_REDUCE_SCATTER, .count = a->out->numel, .op = (int)a->op);
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    return host_back(a->out, out,
                     proa__calls_of(g)->reduce_scatter(g, x->data, out->data, out->numel,
                                                       (proa_dtype)out->dtype, (proa_reduce)a->op));
}

PROA_KERNEL_ANYWHERE(scatter_from_cpu, scatter_from)
{
    PROA_SCOPED;
    proa_group *g = group_as("scatter_from", a->group, -1, a->nranks);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_SCATTER, .count = part_of(a->out), .peer = (int)a->src);
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    return host_back(a->out, out,
                     proa__calls_of(g)->scatter(g, x->data, out->data, bytes_of(out), (int)a->src));
}

PROA_KERNEL_ANYWHERE(all_to_all_cpu, all_to_all)
{
    PROA_SCOPED;
    proa_group *g = proa__group("all_to_all", a->group);
    proa_tensor *x, *out;
    if (!g) return proa_error();
    if (a->x->shape[0] % g->size)
        return ROWS_FAIL(all_to_all, INVALID_ARGUMENT, "x", "is %s; axis 0 must split into %d equal parts",
                         proa__tensor_text(a->x), g->size);
    size_t *bytes = proa_scope_alloc((size_t)g->size * sizeof *bytes);
    if (!bytes) return proa_error();
    for (int r = 0; r < g->size; r++) bytes[r] = bytes_of(a->x) / (size_t)g->size;
    TRY_DEVICE(g, a->x, a->out, .kind = PROA_DEVICE_ALL_TO_ALL, .in_bytes = bytes, .out_bytes = bytes);
    if (!enter(a->x, a->out, &x, &out)) return proa_error();
    return host_back(a->out, out, proa__calls_of(g)->all_to_all(g, x->data, bytes, out->data, bytes));
}

static proa_status check_peer(const proa_group *g, const char *op, int64_t peer)
{
    if (peer >= 0 && peer < g->size && peer != g->rank) return PROA_OK;
    return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "peer",
                         "is %lld; expected another rank of the group's %d than %d", (long long)peer, g->size,
                         g->rank);
}

PROA_KERNEL_ANYWHERE(p2p_send_cpu, p2p_send)
{
    PROA_SCOPED;
    proa_group *g = proa__group("p2p_send", a->group);
    if (!g) return proa_error();
    PROA_TRY(check_peer(g, "p2p_send", a->peer));
    TRY_DEVICE(g, a->x, NULL, .kind = PROA_DEVICE_SEND, .count = part_of(a->x), .peer = (int)a->peer);
    const proa_tensor *x = host_in(a->x);
    return x ? proa__calls_of(g)->send(g, x->data, bytes_of(x), (int)a->peer) : proa_error();
}

PROA_KERNEL_ANYWHERE(p2p_recv_cpu, p2p_recv)
{
    PROA_SCOPED;
    proa_group *g = proa__group("p2p_recv", a->group);
    if (!g) return proa_error();
    PROA_TRY(check_peer(g, "p2p_recv", a->peer));
    TRY_DEVICE(g, NULL, a->out, .kind = PROA_DEVICE_RECV, .count = part_of(a->out), .peer = (int)a->peer);
    proa_tensor *out = host_out(a->out);
    if (!out) return proa_error();
    return host_back(a->out, out, proa__calls_of(g)->recv(g, out->data, bytes_of(out), (int)a->peer));
}

PROA_KERNEL_ANYWHERE(barrier_cpu, barrier)
{
    proa_group *g = proa__group("barrier", a->group);
    if (!g) return proa_error();
    PROA_TRY(proa__copy(a->out, a->x));
    return g->barrier(g);
}

/* ---- rings ----------------------------------------------------------------------------- */

/* Lists the ranks' endpoints in order: this rank's own replaces entry `rank`, the others stay. */
PROA_KERNEL_ANYWHERE(gen_ring_id_cpu, gen_ring_id)
{
    PROA_SCOPED;
    proa_tensor *out = host_out(a->id);
    if (!out) return proa_error();
    char *to = out->data, *end = to + out->numel;
    const char *others = a->other_endpoints;
    for (int64_t r = 0; to < end; r++) {
        bool own = r == a->rank || !*others;
        const char *from = own ? a->endpoint : others;
        size_t n = own ? strlen(from) : strcspn(from, ",");
        if (!own) others += n + (others[n] == ',');
        if (r) *to++ = ',';
        if (n > (size_t)(end - to)) n = (size_t)(end - to);
        memcpy(to, from, n);
        to += n;
    }
    return host_back(a->id, out, PROA_OK);
}

PROA_KERNEL_ANYWHERE(init_ring_cpu, init_ring)
{
    PROA_SCOPED;
    const proa_tensor *id = proa__absent(a->id) ? NULL : host_in(a->id);
    PROA_TRY(proa_error());
    char *text = proa_scope_alloc((id ? (size_t)id->numel : strlen(a->endpoints)) + 1);
    if (!text) return proa_error();
    if (id) {
        memcpy(text, id->data, (size_t)id->numel);
        text[id->numel] = 0;
    } else {
        memcpy(text, a->endpoints, strlen(a->endpoints) + 1);
    }
    return proa__make_ring(a->group, a->nranks > 0 ? a->rank : -1, a->nranks, text);
}
