/* The shared memory segment of a group's ranks on one host, and synchronization through counters in it, for
 * the collectives in shm.c. May use core. */
#ifndef PROA_DIST_SHM_H
#define PROA_DIST_SHM_H

#include "dist/engine.h"

#include <stdatomic.h>

enum {
    PROA__SHM_SLOT =
        512 << 10, /* bytes of a rank's chunk in a round; chunks of a few ranks fit the L2 cache */
    PROA__SHM_RING = 256 << 10, /* bytes of a pair's ring buffer; a power of two */
    PROA__SHM_LINE = 64
};

/* A counter on which other ranks wait by futex. */
typedef struct proa__shm_counter {
    _Alignas(PROA__SHM_LINE) atomic_uint value;
    atomic_uint sleepers;
} proa__shm_counter;

/* The call that a rank makes, published so that mismatched calls of ranks become errors. */
typedef struct proa__shm_call {
    _Alignas(PROA__SHM_LINE) uint32_t kind, dtype, op;
    int32_t root;
    uint64_t size; /* equal on all ranks */
    uint64_t most; /* may differ between ranks: the largest is taken */
} proa__shm_call;

typedef struct proa__shm_ring {
    proa__shm_counter written, read;
    _Alignas(PROA__SHM_LINE) char data[PROA__SHM_RING];
} proa__shm_ring;

typedef struct proa__shm {
    proa__store *store;
    double timeout;
    int rank, size, spins;
    const int *ranks;
    char *base;
    size_t bytes;
    bool shares;     /* ranks that are threads of one process share the mapping */
    const void **in; /* inputs of a reduction, one a rank */
    uint32_t step;   /* rounds that this rank has begun */
    /* parts of the segment */
    proa__shm_counter *steps; /* one a rank */
    proa__shm_call *calls;    /* two a rank, by parity of the round */
    char *slots;              /* likewise */
    proa__shm_ring *rings;    /* one an ordered pair */
    /* the error that made the group unusable: the thread that sets `failing` first writes the text, then the
     * code */
    atomic_bool failing;
    _Atomic(proa_status) failed;
    char failure[512];
} proa__shm;

static inline char *proa__shm_slot(const proa__shm *s, int rank, uint32_t step)
{
    return s->slots + ((size_t)rank * 2 + (step & 1)) * PROA__SHM_SLOT;
}
static inline proa__shm_call *proa__shm_call_of(const proa__shm *s, int rank, uint32_t step)
{
    return &s->calls[rank * 2 + (int)(step & 1)];
}
static inline proa__shm_ring *proa__shm_ring_of(const proa__shm *s, int from, int to)
{
    return &s->rings[from * s->size + to];
}

/* Maps the segment on all members. NULL without an error if not all can map it. Collective. */
proa__shm *proa__shm_attach(proa__ring *g, const proa__engine_setup *setup);
void proa__shm_detach(proa__shm *s);
/* Waits until the member `whom` (rank in the group) has raised c to `value`; fails when it ends or the
 * timeout passes. */
proa_status proa__shm_await(proa__shm *s, proa__shm_counter *c, uint32_t value, int whom, const char *what);
void proa__shm_post(proa__shm_counter *c, uint32_t value);
/* Fails if an earlier call left the group unusable: calls that are queued behind it do not wait again. */
proa_status proa__shm_check(proa__shm *s, const char *what);
/* Publishes the slot that this rank filled for round step + 1, and waits until all ranks have published
 * theirs. They may be read until the next round; this rank may fill its slot for that round at once. */
proa_status proa__shm_round(proa__shm *s, const char *what);
/* As proa__shm_round, for the first round of a collective: compares the ranks' calls, and sets *most to the
 * largest of all ranks. */
proa_status proa__shm_begin(proa__shm *s, const char *what, const proa__shm_call *call, uint64_t *most);

#endif
