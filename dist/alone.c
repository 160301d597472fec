/* The engine (table of collective functions) of a group of one rank: collectives leave the data in place or
 * copy the input to the output; send and recv fail, as there is no peer. Also finds a global rank's rank in a
 * group. May use core. */
#include "core/internal.h"
#include "dist/engine.h"

static proa_status alone_all_reduce(proa__ring *g, void *data, int64_t count, proa_dtype dtype,
                                    proa_reduce_type op)
{
    (void)g, (void)data, (void)count, (void)dtype, (void)op;
    return PROA_OK; /* every reduction of one value is that value */
}

static proa_status check_root(const char *what, int root)
{
    if (root == 0) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "%s: root: expected 0 in a group of 1, got %d", what, root);
}

static proa_status alone_reduce(proa__ring *g, void *data, int64_t count, proa_dtype dtype,
                                proa_reduce_type op, int root)
{
    (void)g, (void)data, (void)count, (void)dtype, (void)op;
    return check_root("reduce", root);
}

static void move(void *out, const void *in, size_t bytes)
{
    if (bytes > 0 && in != out) memmove(out, in, bytes);
}

static proa_status alone_reduce_scatter(proa__ring *g, const void *in, void *out, int64_t count_each,
                                        proa_dtype dtype, proa_reduce_type op)
{
    (void)g, (void)op;
    move(out, in, (size_t)count_each * proa_dtype_size(dtype));
    return PROA_OK;
}

static proa_status alone_broadcast(proa__ring *g, void *data, size_t bytes, int root)
{
    (void)g, (void)data, (void)bytes;
    return check_root("broadcast", root);
}

static proa_status alone_all_gather(proa__ring *g, const void *in, void *out, size_t bytes_each)
{
    (void)g;
    move(out, in, bytes_each);
    return PROA_OK;
}

static proa_status alone_scatter(proa__ring *g, const void *in, void *out, size_t bytes_each, int root)
{
    (void)g;
    PROA_TRY(check_root("scatter", root));
    move(out, in, bytes_each);
    return PROA_OK;
}

static proa_status alone_all_to_all(proa__ring *g, const void *in, const size_t *in_bytes, void *out,
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

static proa_status alone_send(proa__ring *g, const void *data, size_t bytes, int peer)
{
    (void)g, (void)data, (void)bytes;
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "send: peer: a group of 1 has no other rank, got %d", peer);
}

static proa_status alone_recv(proa__ring *g, void *data, size_t bytes, int peer)
{
    (void)g, (void)data, (void)bytes;
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "recv: peer: a group of 1 has no other rank, got %d", peer);
}

static proa_status alone_barrier(proa__ring *g)
{
    (void)g;
    return PROA_OK;
}

static void alone_close(proa__ring *g) { (void)g; }

const proa__engine proa__engine_alone = {
    .name = "one rank",
    .all_reduce = alone_all_reduce,
    .reduce = alone_reduce,
    .reduce_scatter = alone_reduce_scatter,
    .broadcast = alone_broadcast,
    .all_gather = alone_all_gather,
    .scatter = alone_scatter,
    .all_to_all = alone_all_to_all,
    .send = alone_send,
    .recv = alone_recv,
    .barrier = alone_barrier,
    .close = alone_close,
};

int proa__ring_rank_of(const proa__ring *g, int global)
{
    for (int i = 0; i < g->size; i++)
        if (proa__global_rank(g, i) == global) return i;
    return -1;
}
