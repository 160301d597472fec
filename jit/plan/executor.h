/* Shared by executor.c, which finds plans and runs them, and arena.c, which binds them to memory. May use
 * core and ops. */
#ifndef PROA_JIT_PLAN_EXECUTOR_H
#define PROA_JIT_PLAN_EXECUTOR_H

#include "plan.h"

typedef struct proa__executor_plan {
    proa__segment *root;
    uint64_t used;
    int64_t capacity; /* of a lending executor: bytes that the first arena must have, its own and those of
                       * `next`; −1: not known yet */
} proa__executor_plan;

typedef struct proa__arena {
    proa_storage *storage;
    int64_t bytes;
    uint64_t generation; /* of `storage`: how often this arena has grown */
} proa__arena;

struct proa_executor {
    const proa_block *block;
    proa_program *own; /* the private copy of the program that it runs; NULL: owned by others */
    proa__liveness facts;
    proa__executor_plan *plans; /* at most FLAGS_kept_plans; the least recently used is dropped */
    int32_t n_plans, plans_capacity;
    uint64_t clock;
    int64_t plans_made;
    proa__arena *arenas; /* one for each depth of segments */
    int32_t n_arenas, arenas_capacity;
    char *key; /* scratch */
    size_t key_bytes, key_capacity;
    proa__inputs fed;      /* of this run */
    proa_tensor **inputs;  /* contiguous, or strided if an op takes that */
    proa_tensor **outputs; /* handed out in this run; NULL: not yet */
    proa__segment **path;  /* segments of this run */
    int32_t n_path, path_capacity;
    bool lends;               /* kept outputs stay in the arena, which is made for each run */
    proa_executor *next;      /* executor (the backward's) that afterwards works in the arena of this one's
                               * run; borrowed, may be NULL */
    proa_storage *inside;     /* of this run: the first arena, which contains inputs; borrowed, may be NULL */
    int64_t least;            /* bytes of the first arena of this run */
    proa_tensor *const *into; /* of this run: tensors for outputs; NULL, or NULL entries: new ones */
    proa__executor_hook hook; /* sees every op's outputs; may be NULL */
    void *hook_context;
    proa__executor_early early; /* gets outputs when they are complete; may be NULL */
    void *early_context;
    int64_t overlapped;
};

/* Runs one step. watch: through the watch door. */
proa_status proa__executor_step(const proa__step *step, bool watch);

/* Makes e->outputs[i], which is handed out, from its value, if it was not computed there. */
proa_status proa__executor_collect(proa_executor *e, const proa__segment *last, int32_t i);

/* ---- overlap_run.c --------------------------------------------------------------------------- */

/* True if some step of s is to run asynchronously, or some output is to be handed over early, in this run. */
bool proa__executor_overlaps(const proa_executor *e, const proa__segment *s);
/* Runs the steps of s: collectives on their groups' threads, beside later steps. */
proa_status proa__executor_overlap(proa_executor *e, const proa__segment *s, bool watch);

/* ---- arena.c --------------------------------------------------------------------------------- */

/* Points a segment's handles at memory: arenas, which are enlarged if too small, inputs, and outputs that are
 * handed out. */
proa_status proa__executor_point(proa_executor *e, proa__segment *s);
/* The memory of the arena of segments of this depth. */
proa_storage *proa__executor_arena(const proa_executor *e, int32_t depth);
/* Unbinds one handle. */
void proa__binding_clear(const proa__binding *b);
/* Makes e->outputs[i] the tensor that output i is written to, if it is not there yet. */
proa_status proa__executor_hand_out(proa_executor *e, int32_t i, const proa_meta *meta, int format);
/* After a run: releases the caller's tensors, and an arena that was made for the run. */
void proa__executor_let_go(proa_executor *e);

#endif
