/* A segment of shared memory that the ranks of one host map, and waiting for one another in it: what the
 * collectives of shm.c are made of. May use core. */
#ifndef PROA_DIST_SHM_H
#define PROA_DIST_SHM_H

#include "dist/engine.h"

#include <stdatomic.h>

enum {
    PROA__SHM_SLOT =
        512 << 10, /* bytes that a rank shows at a time: chunks of all ranks fit a second-level cache */
    PROA__SHM_RING = 256 << 10, /* bytes under way from one rank to another; a power of two */
    PROA__SHM_LINE = 64
};

/* A counter that others wait for. */
typedef struct proa__shm_counter {
    _Alignas(PROA__SHM_LINE) atomic_uint value;
    atomic_uint sleepers;
} proa__shm_counter;

/* A rank's description of its call, so that calls that do not match are errors. */
typedef struct proa__shm_call {
    _Alignas(PROA__SHM_LINE) uint32_t kind, dtype, op;
    int32_t root;
    uint64_t size; /* equal on all ranks */
    uint64_t most; /* may differ: the largest is taken */
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
    bool shares;     /* its mapping is one of several threads that are ranks */
    const void **in; /* where reductions read: one a rank */
    uint32_t step;   /* rounds that this rank has begun */
    /* parts of the segment */
    proa__shm_counter *steps; /* one a rank */
    proa__shm_call *calls;    /* two a rank, by parity of the round */
    char *slots;              /* likewise */
    proa__shm_ring *rings;    /* one an ordered pair */
    /* why the group cannot be used any more: whoever sets `failing` first writes the text, then the code */
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

/* Maps the segment on all members; NULL without an error: not all of them can. */
proa__shm *proa__shm_attach(proa__ring *g, const proa__engine_setup *setup);
void proa__shm_detach(proa__shm *s);
/* Waits until c has reached `value`, which global rank `whom` brings about. */
proa_status proa__shm_await(proa__shm *s, proa__shm_counter *c, uint32_t value, int whom, const char *what);
void proa__shm_post(proa__shm_counter *c, uint32_t value);
/* Shows the slot that was filled for round step + 1, and waits until all have done so: what they show may be
 * read until the next round begins, and this rank's slot of the next round may be written at once. */
proa_status proa__shm_round(proa__shm *s, const char *what);
/* The same for the first round of a call, which is compared; *most becomes the largest of all. */
proa_status proa__shm_begin(proa__shm *s, const char *what, const proa__shm_call *call, uint64_t *most);

#endif
