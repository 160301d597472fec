/* Process groups by id, and the one-rank group, the default until dist installs another. May use core
 * only. */
#include "core/group.h"

#include <stdatomic.h>
#include <string.h>

static proa_status alone_all_reduce(proa_group *g, void *data, int64_t count, proa_dtype dtype,
                                    proa_reduce op)
{
    (void)g, (void)data, (void)count, (void)dtype, (void)op;
    return PROA_OK; /* every reduction of one value is that value */
}

static proa_status check_root(const char *what, const char *argument, int rank)
{
    if (rank == 0) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "%s: %s: expected 0 in a group of 1, got %d", what, argument,
                     rank);
}

static proa_status alone_reduce(proa_group *g, void *data, int64_t count, proa_dtype dtype, proa_reduce op,
                                int root)
{
    (void)g, (void)data, (void)count, (void)dtype, (void)op;
    return check_root("reduce", "root", root);
}

static void move(void *out, const void *in, size_t bytes)
{
    if (bytes > 0 && in != out) memmove(out, in, bytes);
}

static proa_status alone_reduce_scatter(proa_group *g, const void *in, void *out, int64_t count_each,
                                        proa_dtype dtype, proa_reduce op)
{
    (void)g, (void)op;
    move(out, in, (size_t)count_each * proa_dtype_size(dtype));
    return PROA_OK;
}

static proa_status alone_broadcast(proa_group *g, void *data, size_t bytes, int root)
{
    (void)g, (void)data, (void)bytes;
    return check_root("broadcast", "root", root);
}

static proa_status alone_all_gather(proa_group *g, const void *in, void *out, size_t bytes_each)
{
    (void)g;
    move(out, in, bytes_each);
    return PROA_OK;
}

static proa_status alone_scatter(proa_group *g, const void *in, void *out, size_t bytes_each, int root)
{
    (void)g;
    PROA_TRY(check_root("scatter", "root", root));
    move(out, in, bytes_each);
    return PROA_OK;
}

static proa_status alone_all_to_all(proa_group *g, const void *in, const size_t *in_bytes, void *out,
                                    const size_t *out_bytes)
{
    (void)g;
    if (in_bytes[0] != out_bytes[0])
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "all_to_all: rank 0 sends itself %zu bytes and expects %zu", in_bytes[0],
                         out_bytes[0]);
    move(out, in, in_bytes[0]);
    return PROA_OK;
}

static proa_status no_peer(const char *what, int peer)
{
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "%s: peer: a group of 1 has no other rank, got %d", what, peer);
}

static proa_status alone_send(proa_group *g, const void *data, size_t bytes, int peer)
{
    (void)g, (void)data, (void)bytes;
    return no_peer("send", peer);
}

static proa_status alone_recv(proa_group *g, void *data, size_t bytes, int peer)
{
    (void)g, (void)data, (void)bytes;
    return no_peer("recv", peer);
}

static proa_status alone_barrier(proa_group *g)
{
    (void)g;
    return PROA_OK;
}

static proa_status alone_on_device(proa_group *g, int device, const proa_device_call *call, bool *done)
{
    (void)g, (void)device, (void)call;
    *done = false;
    return PROA_OK;
}

static void alone_close(proa_group *g) { (void)g; }

static const proa__group_calls alone_calls = {
    .reduce = alone_reduce,
    .reduce_scatter = alone_reduce_scatter,
    .scatter = alone_scatter,
    .all_to_all = alone_all_to_all,
    .send = alone_send,
    .recv = alone_recv,
    .on_device = alone_on_device,
};
static proa__comm alone = {
    {0, 1, NULL, alone_all_reduce, alone_broadcast, alone_all_gather, alone_barrier, alone_close},
    &alone_calls};
static _Atomic(proa_group *) current = &alone.group;
static _Atomic(proa_group *) groups[PROA__GROUPS];

proa_group *proa__default_group(void) { return atomic_load_explicit(&current, memory_order_acquire); }

/* Sets the default group; NULL restores the one-rank group. */
void proa__set_default_group(proa_group *g)
{
    atomic_store_explicit(&current, g ? g : &alone.group, memory_order_release);
}

proa_group *proa__group(const char *op, int64_t id)
{
    bool known = id >= 0 && id < PROA__GROUPS;
    proa_group *world = proa__default_group();
    proa_group *g = known ? atomic_load_explicit(&groups[id], memory_order_acquire) : NULL;
    if (!g && (id == 0 || (known && world->size == 1))) g = world;
    if (g && g->rank >= 0) return g;
    if (g) {
        proa_fail(PROA_ERR_NOT_FOUND, "%s: group: this process is no member of group %lld", op,
                  (long long)id);
    } else {
        proa_fail(PROA_ERR_NOT_FOUND,
                  "%s: group: this job of %d ranks has no group %lld; make it first with new_group, or run "
                  "the startup program that makes the ring",
                  op, world->size, (long long)id);
    }
    return NULL;
}

void proa__set_group(int id, proa_group *g) { atomic_store_explicit(&groups[id], g, memory_order_release); }

static proa_status make_ring_alone(int64_t id, int64_t rank, int64_t size, const char *endpoints)
{
    (void)id, (void)endpoints;
    if (rank <= 0 && size <= 1) return PROA_OK;
    return proa_fail(
        PROA_ERR_BAD_STATE,
        "init_ring: a ring of %lld ranks, of which this is number %lld: this process is in no job; "
        "start the ranks with the launcher and call init_parallel_env",
        (long long)size, (long long)rank);
}

proa__ring_maker proa__make_ring = make_ring_alone;
