/* Between executor.c, which finds plans and runs them, and arena.c, which gives them memory. May use core and
 * ops. */
#ifndef PROA_JIT_PLAN_EXECUTOR_H
#define PROA_JIT_PLAN_EXECUTOR_H

#include "plan.h"

typedef struct proa__executor_plan {
    proa__segment *root;
    uint64_t used;
    int64_t room; /* of an executor that lends: what the first arena must hold; −1: not asked yet */
} proa__executor_plan;

typedef struct proa__arena {
    proa_storage *storage;
    int64_t bytes;
    uint64_t generation; /* of `storage`; counts growths of this arena */
} proa__arena;

struct proa_executor {
    const proa_block *block;
    proa_program *own; /* the private copy that it runs; NULL: somebody else's */
    proa__liveness facts;
    proa__executor_plan *plans; /* at most FLAGS_kept_plans, least recently used first to go */
    int32_t n_plans, plans_room;
    uint64_t clock;
    int64_t plans_made;
    proa__arena *arenas; /* one a depth of segments */
    int32_t n_arenas, arenas_room;
    char *key; /* scratch */
    size_t key_bytes, key_capacity;
    proa__inputs fed;      /* of this run */
    proa_tensor **inputs;  /* contiguous */
    proa_tensor **outputs; /* handed out in this run; NULL: not yet */
    proa__segment **path;  /* segments of this run */
    int32_t n_path, path_room;
    bool lends;               /* outputs are kept where they are: arenas are made for each run */
    proa_executor *next;      /* works in the arena of this one's run afterwards; borrowed, may be NULL */
    proa_storage *inside;     /* of this run: the first arena, in which inputs lie; borrowed, may be NULL */
    int64_t least;            /* bytes of the first arena of this run */
    proa_tensor *const *into; /* of this run: tensors for outputs; NULL, or NULL ones: new ones */
    proa__executor_hook hook; /* sees every op's outputs; may be NULL */
    void *hook_context;
};

/* ---- arena.c --------------------------------------------------------------------------------- */

/* Points a segment's handles at memory: arenas, which grow where they are too small, inputs, and tensors that
 * are handed out. */
proa_status proa__executor_point(proa_executor *e, proa__segment *s);
/* The memory of the arena of segments of this depth. */
proa_storage *proa__executor_arena(const proa_executor *e, int32_t depth);
/* e->outputs[i] becomes the tensor that output i will be, if it is not there yet. */
proa_status proa__executor_hand_out(proa_executor *e, int32_t i, const proa_meta *meta, int format);
/* After a run nothing of the caller's stays held, nor an arena that was made for the run. */
void proa__executor_let_go(proa_executor *e);

#endif
