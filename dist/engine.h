/* Rings: the members of a process group and the engine that connects them, shared memory within a host or
 * Gloo between hosts. May use core and ops. */
#ifndef PROA_DIST_ENGINE_H
#define PROA_DIST_ENGINE_H

#include "dist/store.h"

#include <proa/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct proa__ring proa__ring;
struct proa_group;

/* Every member calls the same functions in the same order, but for send and recv, which pair up by
 * themselves. Ranks and roots are counted within the group; sizes are equal on all members unless said. An
 * engine fails with TIMEOUT or UNAVAILABLE, naming the global rank, when a member is late or gone. */
typedef struct proa__engine {
    const char *name;
    proa_status (*all_reduce)(proa__ring *g, void *data, int64_t count, proa_dtype dtype,
                              proa_reduce_type op);
    /* data of the root is the result; of the others it is unchanged */
    proa_status (*reduce)(proa__ring *g, void *data, int64_t count, proa_dtype dtype, proa_reduce_type op,
                          int root);
    proa_status (*reduce_scatter)(proa__ring *g, const void *in, void *out, int64_t count_each,
                                  proa_dtype dtype, proa_reduce_type op);
    proa_status (*broadcast)(proa__ring *g, void *data, size_t bytes, int root);
    proa_status (*all_gather)(proa__ring *g, const void *in, void *out, size_t bytes_each);
    /* in: of the root, one part a rank */
    proa_status (*scatter)(proa__ring *g, const void *in, void *out, size_t bytes_each, int root);
    /* parts lie one after the other; in_bytes[r] go to rank r, out_bytes[r] come from it */
    proa_status (*all_to_all)(proa__ring *g, const void *in, const size_t *in_bytes, void *out,
                              const size_t *out_bytes);
    proa_status (*send)(proa__ring *g, const void *data, size_t bytes, int peer);
    proa_status (*recv)(proa__ring *g, void *data, size_t bytes, int peer);
    proa_status (*barrier)(proa__ring *g);
    void (*close)(proa__ring *g);
} proa__engine;

struct proa__ring {
    int rank, size, id; /* rank −1: this process is no member */
    const int *ranks;   /* the world's rank of each member; NULL: 0, 1, 2, … */
    const proa__engine *engine;
    void *context;               /* the engine's */
    struct proa__queues *queues; /* threads for what is done later */
    struct proa_group *group;    /* what core and users hold */
};

/* The world's rank of a member, for messages and for calls that are given such ranks. */
static inline int proa__global_rank(const proa__ring *g, int rank)
{
    return g->ranks ? g->ranks[rank] : rank;
}
/* The rank within g of a rank of the world; −1: no member. */
int proa__ring_rank_of(const proa__ring *g, int global);

/* Facts by which an engine connects the members of g, whose rank, size, ranks and id are set. */
typedef struct proa__engine_setup {
    proa__store *store;
    const char *prefix;    /* of keys: no other group of the job has it */
    const char *interface; /* network interface; NULL: the address by which this process reaches the store */
    double timeout;        /* seconds of a wait */
} proa__engine_setup;

/* The functions of a ring of one rank: copies. */
extern const proa__engine proa__engine_alone;
/* Connects over shared memory if all members can map one segment; *done says whether. Collective. */
proa_status proa__shm_open(proa__ring *g, const proa__engine_setup *setup, bool *done);
/* Connects over Gloo. Collective. */
proa_status proa__gloo_open(proa__ring *g, const proa__engine_setup *setup);

#ifdef __cplusplus
}
#endif
#endif
