/* The process group of one rank, which collectives use until dist installs another. */
#include "core/thread.h"

static proa_status alone_reduce(proa_group *g, void *data, int64_t count, proa_dtype dtype, proa_reduce op)
{
    (void)g, (void)data, (void)count, (void)dtype, (void)op;
    return PROA_OK; /* every reduction of one value is that value */
}

static proa_status alone_broadcast(proa_group *g, void *data, size_t bytes, int root)
{
    (void)g, (void)data, (void)bytes;
    if (root == 0) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "broadcast: root: expected 0 in a group of 1, got %d", root);
}

static proa_status alone_gather(proa_group *g, const void *in, void *out, size_t bytes_each)
{
    (void)g;
    if (bytes_each > 0 && in != out) memmove(out, in, bytes_each);
    return PROA_OK;
}

static proa_status alone_barrier(proa_group *g)
{
    (void)g;
    return PROA_OK;
}

static void alone_close(proa_group *g) { (void)g; }

static proa_group alone = {0,          1, NULL, alone_reduce, alone_broadcast, alone_gather, alone_barrier,
                           alone_close};
static _Atomic(proa_group *) current = &alone;

proa_group *proa__default_group(void) { return atomic_load_explicit(&current, memory_order_acquire); }

/* NULL puts the one-rank group back. */
void proa__set_default_group(proa_group *g)
{
    atomic_store_explicit(&current, g ? g : &alone, memory_order_release);
}
