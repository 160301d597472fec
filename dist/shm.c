/* Collectives between ranks of one host through shared memory. In each round a rank copies a chunk into its
 * slot, waits until all ranks have, and reads other ranks' slots. Messages between two ranks pass through a
 * ring buffer of the pair. May use core. */
#include "core/internal.h"
#include "dist/reduce.h"
#include "dist/shm.h"

enum { SMALL = 8 << 10 /* bytes up to which each rank reduces all data: one round, not two */ };

enum { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, SCATTER, ALL_TO_ALL, BARRIER };

static proa__shm *shm_of(const proa__ring *g) { return g->context; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

static char *next_slot(const proa__shm *s) { return proa__shm_slot(s, s->rank, s->step + 1); }

/* ---- reductions ------------------------------------------------------------------------ */

typedef struct reduction {
    proa__shm *s;
    const char *what;
    proa_dtype dtype;
    proa_reduce_type op;
    size_t item;
} reduction;

/* Reduces the slots of all ranks in the current round, from `offset` on. */
static void reduce_slots(const reduction *w, void *out, size_t offset, size_t count)
{
    proa__shm *s = w->s;
    for (int r = 0; r < s->size; r++) s->in[r] = proa__shm_slot(s, r, s->step) + offset;
    proa__reduce_buffers(out, s->in, s->size, count, w->dtype, w->op, s->size);
}

/* Reduces a chunk that all ranks have in their slots: each rank reduces one part of it, publishes that in the
 * next round, and copies the other ranks' parts. */
static proa_status share_out(const reduction *w, char *data, size_t count)
{
    proa__shm *s = w->s;
    size_t part = round_up((count + (size_t)s->size - 1) / (size_t)s->size, PROA__SHM_LINE);
    size_t first = smaller((size_t)s->rank * part, count), last = smaller(first + part, count);
    if (last > first) reduce_slots(w, next_slot(s), first * w->item, last - first);
    PROA_TRY(proa__shm_round(s, w->what));
    for (int r = 0; r < s->size; r++) {
        first = smaller((size_t)r * part, count);
        last = smaller(first + part, count);
        memcpy(data + first * w->item, proa__shm_slot(s, r, s->step), (last - first) * w->item);
    }
    return PROA_OK;
}

static proa_status all_reduce_chunks(const reduction *w, char *data, size_t count)
{
    proa__shm *s = w->s;
    size_t most = PROA__SHM_SLOT / w->item;
    for (size_t at = 0; at < count || at == 0; at += most) {
        size_t n = smaller(count - at, most), bytes = n * w->item;
        if (bytes) memcpy(next_slot(s), data + at * w->item, bytes);
        if (at == 0) {
            PROA_TRY(proa__shm_begin(
                s, w->what, &(proa__shm_call){ALL_REDUCE, w->dtype, (uint32_t)w->op, -1, count, 0}, NULL));
        } else {
            PROA_TRY(proa__shm_round(s, w->what));
        }
        if (bytes <= SMALL) reduce_slots(w, data + at * w->item, 0, n);
        else PROA_TRY(share_out(w, data + at * w->item, n));
    }
    return PROA_OK;
}

static proa_status start(reduction *w, proa__ring *g, const char *what, proa_dtype dtype, proa_reduce_type op)
{
    *w = (reduction){.s = shm_of(g), .what = what, .dtype = dtype, .op = op, .item = proa_dtype_size(dtype)};
    return proa__reduce_check(what, dtype, op);
}

static proa_status shm_all_reduce(proa__ring *g, void *data, int64_t count, proa_dtype dtype,
                                  proa_reduce_type op)
{
    reduction w;
    PROA_TRY(start(&w, g, "all_reduce", dtype, op));
    return all_reduce_chunks(&w, data, (size_t)count);
}

static proa_status reduce_chunks(const reduction *w, char *data, size_t count, int root)
{
    proa__shm *s = w->s;
    size_t most = PROA__SHM_SLOT / w->item;
    for (size_t at = 0; at < count || at == 0; at += most) {
        size_t n = smaller(count - at, most);
        if (n) memcpy(next_slot(s), data + at * w->item, n * w->item);
        if (at == 0) {
            PROA_TRY(proa__shm_begin(
                s, w->what, &(proa__shm_call){REDUCE, w->dtype, (uint32_t)w->op, root, count, 0}, NULL));
        } else {
            PROA_TRY(proa__shm_round(s, w->what));
        }
        if (s->rank == root) reduce_slots(w, data + at * w->item, 0, n);
    }
    return PROA_OK;
}

static proa_status shm_reduce(proa__ring *g, void *data, int64_t count, proa_dtype dtype, proa_reduce_type op,
                              int root)
{
    reduction w;
    PROA_TRY(start(&w, g, "reduce", dtype, op));
    return reduce_chunks(&w, data, (size_t)count, root);
}

/* Reduce-scatter: in each round a slot holds an equal piece of every rank's part. */
static proa_status reduce_scatter_chunks(const reduction *w, const char *in, char *out, size_t count)
{
    proa__shm *s = w->s;
    size_t most = PROA__SHM_SLOT / (size_t)s->size / w->item;
    for (size_t at = 0; at < count || at == 0; at += most) {
        size_t n = smaller(count - at, most), bytes = n * w->item;
        for (size_t r = 0; r < (size_t)s->size && bytes; r++)
            memcpy(next_slot(s) + r * bytes, in + (r * count + at) * w->item, bytes);
        if (at == 0) {
            PROA_TRY(proa__shm_begin(
                s, w->what, &(proa__shm_call){REDUCE_SCATTER, w->dtype, (uint32_t)w->op, -1, count, 0},
                NULL));
        } else {
            PROA_TRY(proa__shm_round(s, w->what));
        }
        if (n) reduce_slots(w, out + at * w->item, (size_t)s->rank * bytes, n);
    }
    return PROA_OK;
}

static proa_status shm_reduce_scatter(proa__ring *g, const void *in, void *out, int64_t count_each,
                                      proa_dtype dtype, proa_reduce_type op)
{
    reduction w;
    PROA_TRY(start(&w, g, "reduce_scatter", dtype, op));
    return reduce_scatter_chunks(&w, in, out, (size_t)count_each);
}

/* ---- moving ---------------------------------------------------------------------------- */

static proa_status step(proa__shm *s, const char *what, bool first, uint32_t kind, int root, size_t size)
{
    if (!first) return proa__shm_round(s, what);
    return proa__shm_begin(s, what, &(proa__shm_call){kind, 0, 0, root, size, 0}, NULL);
}

static proa_status shm_broadcast(proa__ring *g, void *data, size_t bytes, int root)
{
    proa__shm *s = shm_of(g);
    for (size_t at = 0; at < bytes || at == 0; at += PROA__SHM_SLOT) {
        size_t n = smaller(bytes - at, PROA__SHM_SLOT);
        if (s->rank == root && n) memcpy(next_slot(s), (char *)data + at, n);
        PROA_TRY(step(s, "broadcast", at == 0, BROADCAST, root, bytes));
        if (s->rank != root && n) memcpy((char *)data + at, proa__shm_slot(s, root, s->step), n);
    }
    return PROA_OK;
}

static proa_status shm_all_gather(proa__ring *g, const void *in, void *out, size_t bytes)
{
    proa__shm *s = shm_of(g);
    for (size_t at = 0; at < bytes || at == 0; at += PROA__SHM_SLOT) {
        size_t n = smaller(bytes - at, PROA__SHM_SLOT);
        if (n) memcpy(next_slot(s), (const char *)in + at, n);
        PROA_TRY(step(s, "all_gather", at == 0, ALL_GATHER, -1, bytes));
        for (size_t r = 0; r < (size_t)s->size && n; r++)
            memcpy((char *)out + r * bytes + at, proa__shm_slot(s, (int)r, s->step), n);
    }
    return PROA_OK;
}

static proa_status shm_scatter(proa__ring *g, const void *in, void *out, size_t bytes, int root)
{
    proa__shm *s = shm_of(g);
    size_t most = PROA__SHM_SLOT / (size_t)s->size;
    for (size_t at = 0; at < bytes || at == 0; at += most) {
        size_t n = smaller(bytes - at, most);
        for (size_t r = 0; s->rank == root && r < (size_t)s->size && n; r++)
            memcpy(next_slot(s) + r * n, (const char *)in + r * bytes + at, n);
        PROA_TRY(step(s, "scatter", at == 0, SCATTER, root, bytes));
        if (n) memcpy((char *)out + at, proa__shm_slot(s, root, s->step) + (size_t)s->rank * n, n);
    }
    return PROA_OK;
}

/* All-to-all with a size for each pair of ranks. A slot is divided equally among the receivers; the largest
 * size determines the number of rounds. */
static proa_status shm_all_to_all(proa__ring *g, const void *in, const size_t *in_bytes, void *out,
                                  const size_t *out_bytes)
{
    proa__shm *s = shm_of(g);
    size_t capacity = PROA__SHM_SLOT / (size_t)s->size / PROA__SHM_LINE * PROA__SHM_LINE;
    uint64_t most = 0;
    for (int r = 0; r < s->size; r++) {
        if (in_bytes[r] > most) most = in_bytes[r];
        if (out_bytes[r] > most) most = out_bytes[r];
    }
    for (size_t at = 0; at < most || at == 0; at += capacity) {
        const char *from = in;
        for (size_t r = 0; r < (size_t)s->size; from += in_bytes[r++])
            if (at < in_bytes[r])
                memcpy(next_slot(s) + r * capacity, from + at, smaller(in_bytes[r] - at, capacity));
        if (at == 0) {
            PROA_TRY(
                proa__shm_begin(s, "all_to_all", &(proa__shm_call){ALL_TO_ALL, 0, 0, -1, 0, most}, &most));
        } else {
            PROA_TRY(proa__shm_round(s, "all_to_all"));
        }
        char *to = out;
        for (int r = 0; r < s->size; to += out_bytes[r++])
            if (at < out_bytes[r])
                memcpy(to + at, proa__shm_slot(s, r, s->step) + (size_t)s->rank * capacity,
                       smaller(out_bytes[r] - at, capacity));
    }
    return PROA_OK;
}

static proa_status shm_barrier(proa__ring *g) { return step(shm_of(g), "barrier", true, BARRIER, -1, 0); }

/* ---- between two ranks ----------------------------------------------------------------- */

/* Sends bytes through the pair's ring buffer, at most a quarter of it at a time, so that both ranks copy
 * concurrently. */
static proa_status push(proa__shm *s, int peer, const char *data, size_t bytes)
{
    proa__shm_ring *ring = proa__shm_ring_of(s, s->rank, peer);
    uint32_t at = atomic_load(&ring->written.value);
    while (bytes) {
        uint32_t n = (uint32_t)smaller(bytes, PROA__SHM_RING / 4), from = at % PROA__SHM_RING;
        n = (uint32_t)smaller(n, PROA__SHM_RING - from);
        PROA_TRY(proa__shm_await(s, &ring->read, at + n - PROA__SHM_RING, peer, "send"));
        memcpy(ring->data + from, data, n);
        proa__shm_post(&ring->written, at += n);
        data += n;
        bytes -= n;
    }
    return PROA_OK;
}

/* Receives bytes from the pair's ring buffer; with data NULL they are discarded. */
static proa_status pull(proa__shm *s, int peer, char *data, size_t bytes)
{
    proa__shm_ring *ring = proa__shm_ring_of(s, peer, s->rank);
    uint32_t at = atomic_load(&ring->read.value);
    while (bytes) {
        uint32_t n = (uint32_t)smaller(bytes, PROA__SHM_RING / 4), from = at % PROA__SHM_RING;
        n = (uint32_t)smaller(n, PROA__SHM_RING - from);
        PROA_TRY(proa__shm_await(s, &ring->written, at + n, peer, "recv"));
        if (data) {
            memcpy(data, ring->data + from, n);
            data += n;
        }
        proa__shm_post(&ring->read, at += n);
        bytes -= n;
    }
    return PROA_OK;
}

static proa_status shm_send(proa__ring *g, const void *data, size_t bytes, int peer)
{
    proa__shm *s = shm_of(g);
    uint64_t head = bytes;
    PROA_TRY(proa__shm_check(s, "send"));
    PROA_TRY(push(s, peer, (const char *)&head, sizeof head));
    return push(s, peer, data, bytes);
}

static proa_status shm_recv(proa__ring *g, void *data, size_t bytes, int peer)
{
    proa__shm *s = shm_of(g);
    uint64_t head = 0;
    PROA_TRY(proa__shm_check(s, "recv"));
    PROA_TRY(pull(s, peer, (char *)&head, sizeof head));
    if (head == bytes) return pull(s, peer, data, bytes);
    PROA_TRY(pull(s, peer, NULL, head));
    return proa_fail(
        PROA_ERR_INVALID_ARGUMENT,
        "recv: rank %d sent %llu bytes, the tensor has %zu; give it the shape and dtype of what is sent",
        proa__global_rank(g, peer), (unsigned long long)head, bytes);
}

/* ---- life ------------------------------------------------------------------------------ */

static void shm_close(proa__ring *g) { proa__shm_detach(g->context); }

static const proa__engine engine = {
    .name = "shm",
    .all_reduce = shm_all_reduce,
    .reduce = shm_reduce,
    .reduce_scatter = shm_reduce_scatter,
    .broadcast = shm_broadcast,
    .all_gather = shm_all_gather,
    .scatter = shm_scatter,
    .all_to_all = shm_all_to_all,
    .send = shm_send,
    .recv = shm_recv,
    .barrier = shm_barrier,
    .close = shm_close,
};

proa_status proa__shm_open(proa__ring *g, const proa__engine_setup *setup, bool *done)
{
    g->context = proa__shm_attach(g, setup);
    *done = g->context != NULL;
    if (*done) g->engine = &engine;
    return *done ? PROA_OK : proa_error();
}
