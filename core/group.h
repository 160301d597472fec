/* Process groups by id, which ops call `group` and Paddle's programs ring_id, and collective calls beyond
 * those of proa_group. May use core/internal.h. */
#ifndef PROA_CORE_GROUP_H
#define PROA_CORE_GROUP_H

#include "core/internal.h"

#include <proa/communicator.h>

/* A collective in place on one tensor, for proa__group_calls.start. */
typedef struct proa__async_call {
    enum { PROA__ASYNC_ALL_REDUCE, PROA__ASYNC_REDUCE, PROA__ASYNC_BROADCAST } kind;
    proa_tensor *data;
    proa_reduce op;
    int root;
} proa__async_call;

/* Collectives with a root, and calls between two ranks. Roots and peers are ranks within the group. */
typedef struct proa__group_calls {
    /* the root's data become the result; the other ranks' data stay unchanged */
    proa_status (*reduce)(proa_group *g, void *data, int64_t count, proa_dtype dtype, proa_reduce op,
                          int root);
    proa_status (*reduce_scatter)(proa_group *g, const void *in, void *out, int64_t count_each,
                                  proa_dtype dtype, proa_reduce op);
    proa_status (*scatter)(proa_group *g, const void *in, void *out, size_t bytes_each, int root);
    /* in and out are contiguous: in_bytes[r] go to rank r, out_bytes[r] come from rank r */
    proa_status (*all_to_all)(proa_group *g, const void *in, const size_t *in_bytes, void *out,
                              const size_t *out_bytes);
    proa_status (*send)(proa_group *g, const void *data, size_t bytes, int peer);
    proa_status (*recv)(proa_group *g, void *data, size_t bytes, int peer);
    /* Runs the call between the ranks' devices; `device` is this rank's. *done: false, without an error, if
     * they are not connected, so that the call is to be made in host memory; the same on all ranks. */
    proa_status (*on_device)(proa_group *g, int device, const proa_device_call *call, bool *done);
    /* Starts the call on the group's own thread, behind the group's earlier calls; its memory belongs to the
     * call until `finish`. NULL after an error. Groups without a thread have no `start`. */
    void *(*start)(proa_group *g, const proa__async_call *call);
    /* Waits for a started call, even if this thread has an error, and frees it. Returns the call's error. */
    proa_status (*finish)(void *task);
} proa__group_calls;

/* Every proa_group is the first member of one of these. */
typedef struct proa__comm {
    proa_group group;
    const proa__group_calls *calls;
} proa__comm;

static inline const proa__group_calls *proa__calls_of(proa_group *g)
{
    return ((const proa__comm *)(const void *)g)->calls;
}

/* The communicators of a device; NULL: it has none. */
const proa_communicators *proa__communicators_of(int device);
void proa__set_communicators(int device, const proa_communicators *c);

enum { PROA__GROUPS = 1024 /* ids of groups are below this */ };
/* The group of an id; id 0 is the default group if none was set for it. In a job of one rank every id gives a
 * group of that rank. NULL and NOT_FOUND: there is no such group, or this process is not a member. */
proa_group *proa__group(const char *op, int64_t id);
/* Enters g, which stays the caller's, under an id; NULL makes the id free again. */
void proa__set_group(int id, proa_group *g);
/* Creates group `id`. `endpoints` lists the members' endpoints in the order of their ranks, joined by commas
 * ("": all ranks of the job); this process has rank `rank`. size 0: all ranks. Installed by dist; all members
 * must call it. */
typedef proa_status (*proa__ring_maker)(int64_t id, int64_t rank, int64_t size, const char *endpoints);
extern proa__ring_maker proa__make_ring;

/* True if other ranks take part in the op (`communicates:` in the op table). Passes never fold such an op or
 * merge it with another call, and prune keeps it while a program's writes are kept. Generated. */
bool proa__op_communicates(const proa_op *op);

#endif
