/* A ring is a process group as dist/ sees it: its members, and the engine (a table of collective functions)
 * that connects them through shared memory on one host or Gloo between hosts. May use core and ops. */
#ifndef PROA_DIST_ENGINE_H
#define PROA_DIST_ENGINE_H

#include "dist/store.h"

#include <proa/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct proa__ring proa__ring;
struct proa_group;

/* Functions of an engine. Every member calls the same collectives in the same order; send and recv are
 * matched by the pair of ranks. Ranks and roots are those within the group. Sizes are equal on all members
 * except where a comment says otherwise. If a member is late or gone, functions fail with TIMEOUT or
 * UNAVAILABLE and name its global rank. */
typedef struct proa__engine {
    const char *name;
    proa_status (*all_reduce)(proa__ring *g, void *data, int64_t count, proa_dtype dtype,
                              proa_reduce_type op);
    /* the root's data becomes the result; other members' data is unchanged */
    proa_status (*reduce)(proa__ring *g, void *data, int64_t count, proa_dtype dtype, proa_reduce_type op,
                          int root);
    proa_status (*reduce_scatter)(proa__ring *g, const void *in, void *out, int64_t count_each,
                                  proa_dtype dtype, proa_reduce_type op);
    proa_status (*broadcast)(proa__ring *g, void *data, size_t bytes, int root);
    proa_status (*all_gather)(proa__ring *g, const void *in, void *out, size_t bytes_each);
    /* in: read on the root alone, one part for each rank */
    proa_status (*scatter)(proa__ring *g, const void *in, void *out, size_t bytes_each, int root);
    /* parts are consecutive; in_bytes[r] go to rank r, out_bytes[r] come from it */
    proa_status (*all_to_all)(proa__ring *g, const void *in, const size_t *in_bytes, void *out,
                              const size_t *out_bytes);
    proa_status (*send)(proa__ring *g, const void *data, size_t bytes, int peer);
    proa_status (*recv)(proa__ring *g, void *data, size_t bytes, int peer);
    proa_status (*barrier)(proa__ring *g);
    void (*close)(proa__ring *g);
} proa__engine;

struct proa__ring {
    int rank, size, id; /* rank −1: this process is no member */
    const int *ranks;   /* each member's global rank; NULL: 0, 1, 2, … */
    const proa__engine *engine;
    void *context;                 /* the engine's */
    struct proa__queues *queues;   /* queues of asynchronous calls */
    struct proa__devices *devices; /* communicators between devices; NULL: the group has one rank */
    struct proa_group *group;      /* the group's handle for core and users */
};

/* The global rank (in the whole job) of the member with group rank `rank`. */
static inline int proa__global_rank(const proa__ring *g, int rank)
{
    return g->ranks ? g->ranks[rank] : rank;
}
/* The group rank of a global rank; −1: not a member. */
int proa__ring_rank_of(const proa__ring *g, int global);

/* The data by which an engine connects the members of g, whose rank, size, ranks and id are set. */
typedef struct proa__engine_setup {
    proa__store *store;
    const char *prefix;    /* of keys in the store; unique in the job */
    const char *interface; /* network interface; NULL: that of the route to the store */
    double timeout;        /* seconds of a wait */
} proa__engine_setup;

/* The functions of a ring of one rank: copies. */
extern const proa__engine proa__engine_alone;
/* Connects the members over shared memory if all can map one segment; *done says whether they could.
 * Collective. */
proa_status proa__shm_open(proa__ring *g, const proa__engine_setup *setup, bool *done);
/* Connects over Gloo. Collective. */
proa_status proa__gloo_open(proa__ring *g, const proa__engine_setup *setup);

#ifdef __cplusplus
}
#endif
#endif
