/* Process groups by number, which ops and programs name as `group` and ring_id, and the calls of a group
 * beyond those of proa_group. May use core/internal.h. */
#ifndef PROA_CORE_GROUP_H
#define PROA_CORE_GROUP_H

#include "core/internal.h"

/* Calls that one rank roots or that two ranks share. Roots and peers are ranks within the group. */
typedef struct proa__group_calls {
    /* the root's data become the result, the others' stay */
    proa_status (*reduce)(proa_group *g, void *data, int64_t count, proa_dtype dtype, proa_reduce op,
                          int root);
    proa_status (*reduce_scatter)(proa_group *g, const void *in, void *out, int64_t count_each,
                                  proa_dtype dtype, proa_reduce op);
    proa_status (*scatter)(proa_group *g, const void *in, void *out, size_t bytes_each, int root);
    /* parts are contiguous: in_bytes[r] go to rank r, out_bytes[r] come from it */
    proa_status (*all_to_all)(proa_group *g, const void *in, const size_t *in_bytes, void *out,
                              const size_t *out_bytes);
    proa_status (*send)(proa_group *g, const void *data, size_t bytes, int peer);
    proa_status (*recv)(proa_group *g, void *data, size_t bytes, int peer);
} proa__group_calls;

/* Every group is the head of one of these. */
typedef struct proa__comm {
    proa_group group;
    const proa__group_calls *calls;
} proa__comm;

static inline const proa__group_calls *proa__calls_of(proa_group *g)
{
    return ((const proa__comm *)(const void *)g)->calls;
}

enum { PROA__GROUPS = 1024 /* numbers of groups are below */ };
/* The group of that number; 0 without a group of its own is the default one. A job of one rank has that
 * rank under every number. NULL and NOT_FOUND: there is no such group, or this process is no member. */
proa_group *proa__group(const char *op, int64_t id);
/* NULL: the number is free again. */
void proa__set_group(int id, proa_group *g);
/* Makes group `id` of the ranks whose endpoints, in the order of ranks, `endpoints` lists (joined by
 * commas; "": all ranks of the job), of which this process is number `rank`. size 0: of all ranks.
 * Installed by dist; the members call it together. */
typedef proa_status (*proa__ring_maker)(int64_t id, int64_t rank, int64_t size, const char *endpoints);
extern proa__ring_maker proa__make_ring;

/* Whether other ranks take part in the op (`communicates:` in its table): it is never folded, merged with
 * another call or left out while the program writes variables. Generated. */
bool proa__op_communicates(const proa_op *op);

#endif
