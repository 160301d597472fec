/* A plan: a block's ops made ready for one set of input shapes. Kernels are selected and prepared, args
 * filled, and every variable has its memory. May use core and ops.
 *
 * A plan is a tree of segments. It is cut where shapes depend on data: after an op that sizes its own
 * outputs, and before an op with an attribute from a tensor that the run computes. After a cut there is one
 * segment for each recent outcome; the outcome (those shapes or values) is the segment's key. */
#ifndef PROA_JIT_PLAN_PLAN_H
#define PROA_JIT_PLAN_PLAN_H

#include "jit/ir/program.h"

#include "core/internal.h"

/* ---- facts about a block before any shape is known ------------------------------------ */

typedef struct proa__liveness {
    const proa_block *block;
    int32_t n_vars;
    int32_t n_handed;     /* the first n outputs are handed out; the others stay in the arena */
    int32_t *last_use;    /* of a variable: the last op that names it; INT32_MAX for outputs */
    bool *reads_dense;    /* some op that reads it takes contiguous inputs only */
    bool *reads_strided;  /* some op that reads it takes any strides */
    bool *supplies;       /* an op reads it as an attribute */
    bool *feeds_attr;     /* an attribute is computed from it */
    bool *read;           /* some op reads it, or it is handed out */
    int32_t *first_write; /* of a persistable: the first op that writes it; INT32_MAX: none does */
    int32_t *next_write;  /* by op: the op that then writes the persistable that it reads first; INT32_MAX */
    bool *is_output;
    bool differentiated; /* a backward was made for the block's ops */
    bool announces;      /* outputs are handed over when they are complete, not only at the end of the run */
    bool *touched_later; /* a persistable that an op names after another op has written it */
} proa__liveness;

proa_status proa__liveness_find(proa__liveness *facts, const proa_block *b);
void proa__liveness_free(proa__liveness *facts);
/* True for ops whose result depends on the shapes of their inputs only, so it is known at plan time. */
bool proa__is_shape_op(const proa_op *op);

/* ---- memory ---------------------------------------------------------------------------- */

typedef enum proa__assign_buffers {
    PROA__IN_ARENA,
    PROA__IN_INPUT,   /* the caller's tensor number `index` */
    PROA__IN_OUTPUT,  /* the tensor handed out as output number `index` */
    PROA__IN_DYNAMIC, /* output slot number `index` of the op before the cut */
    PROA__IN_FIXED    /* a persistable, or a constant of the plan: never moves */
} proa__assign_buffers;

typedef struct proa__buffer {
    proa__assign_buffers place;
    int32_t index;
    int32_t depth;         /* of the segment whose arena contains it */
    int32_t first, last;   /* first and last op between which it is in use, inclusive */
    int64_t bytes, offset; /* offset: in the segment's arena */
    int format;            /* of the elements in it (core/blocked.h); 0: row-major */
    bool pinned;           /* its offset was given: an input that is inside the block that serves as arena */
    bool overwritten;      /* an output was placed over the value that was here first */
    int32_t call;          /* overlap.c: 1 + the step of the asynchronous call that has its memory; 0: none */
    int32_t touched;       /* overlap.c: the last step that reads or writes it */
    proa_meta meta;        /* of the output, if it is handed out */
} proa__buffer;

/* Gives each buffer in the arena an offset, a multiple of 64, so that no two that are in use at the same time
 * overlap. Pinned buffers keep their offsets; the others are placed largest first (more than 4096: in order
 * of time), each into the smallest gap that fits. *total: bytes of the arena. */
proa_status proa__plan_memory(proa__buffer **buffers, int32_t n, int64_t *total);

/* Extends the lifetime of pinned buffers that overlap to the end of the run. */
proa_status proa__share_pinned(proa__buffer **buffers, int32_t n);

/* A handle on a part of a buffer; before a run it is pointed at the buffer's memory. */
typedef struct proa__binding {
    proa_tensor *handle; /* owned */
    proa__buffer *buffer;
    int64_t offset;
    int32_t next; /* of an output that is handed over early: its next binding; −1: none */
} proa__binding;

/* A variable in a plan. */
typedef struct proa__value {
    proa_tensor *handle; /* borrowed from a binding or a step; NULL: not made yet */
    proa_tensor *dense;  /* its contiguous copy, if one was made in this segment */
    proa__buffer *buffer, *dense_buffer;
    int64_t offset;
    int32_t until; /* of a view of a persistable: the op that overwrites the viewed memory; INT32_MAX: none */
    bool known;    /* its data are constants of the plan */
} proa__value;

/* ---- segments -------------------------------------------------------------------------- */

typedef struct proa__step {
    const proa_op *op; /* NULL: copies `from` to `to`, or (no `from`) sets the padding of `to` to zero */
    void *args;
    const proa_kernel *kernel;
    void *state;
    proa_tensor *to, *from;
    bool fresh;    /* output 0 is written in the format that the kernel prefers */
    bool waits;    /* an asynchronous call must be complete before this step */
    int32_t at;    /* the op that it is a part of */
    int32_t until; /* of a collective that may run asynchronously: the step before which it must be complete;
                    * 0: it may not */
} proa__step;

/* An output that no step behind `step` reads or writes, and its first binding. */
typedef struct proa__early_output {
    int32_t step, output, binding;
} proa__early_output;

/* A condition of the plan about a persistable: its memory has not moved and, where its data are constants of
 * the plan, they have not changed. */
typedef struct proa__guard {
    proa_tensor *tensor; /* owned */
    const char *data;    /* address of the blocked form if there is one, else of the row-major form */
    /* Not NULL: the steps take packed forms of this storage only, whether its elements are read or not. */
    const proa_storage *packed;
    uint32_t version;
    int format; /* the layout that kernels were selected for */
    bool same_data;
} proa__guard;

enum { PROA__OUTCOMES = 8 };

typedef struct proa__segment proa__segment;

/* Device graphs of a segment's steps, which run them as one (device_graph.c). */
enum { PROA__RECORDINGS = 4 };
typedef struct proa__recordings {
    const struct proa_device_table *device;
    struct {
        uint64_t addresses; /* hash of all that the steps read and write: valid for these only */
        void *recording;    /* NULL: these addresses were met once, without recording */
    } at[PROA__RECORDINGS];
    int next;
    bool never; /* the steps cannot be recorded */
} proa__recordings;
/* Runs the steps one by one. */
typedef proa_status (*proa__each_step)(proa__segment *s, bool watch);
/* Runs the steps as one device graph where the stream's device supports that, else through `each`. */
proa_status proa__run_device_graph(proa__segment *s, proa__each_step each);
void proa__recordings_free(proa__recordings *r);
/* True while this thread records a device graph: nothing may be waited for. */
bool proa__device_graph_recording(void);

struct proa__segment {
    proa__segment *parent;
    int32_t depth, first_op, end_op;
    char *key; /* the outcome of the parent's cut */
    size_t key_bytes;
    proa__step *steps;
    int32_t n_steps, steps_capacity;
    int32_t n_async;           /* steps that may run asynchronously */
    proa__early_output *early; /* by step */
    int32_t n_early;
    proa__buffer **buffers;
    int32_t n_buffers, buffers_capacity;
    proa__binding *bindings;
    int32_t n_bindings, bindings_capacity;
    proa__guard *guards;
    int32_t n_guards, guards_capacity;
    proa_tensor **written; /* persistables that its steps change; borrowed */
    int32_t n_written, written_capacity;
    proa__value *values; /* by variable; NULL when no segment can follow */
    int64_t arena_bytes;
    uint64_t generation; /* sum over the arenas, down to this depth, that its handles point into; 0: none */
    bool sized_by_data;  /* the last step sized its outputs */
    int32_t *cut_vars;   /* variables whose values tell outcomes apart */
    int32_t n_cut, cut_capacity;
    proa__segment *next[PROA__OUTCOMES];
    int32_t n_next, replace; /* replace: the outcome to drop when all entries are used */
    int32_t cursor;          /* for walks over all segments */
    proa__recordings recordings;
};

/* Inputs of a plan: arrays with one entry an input. */
typedef struct proa__inputs {
    proa_meta *metas;
    int *formats;                      /* layout of each input; 0: row-major */
    int64_t (*strides)[PROA_MAX_DIMS]; /* in bytes; valid for the inputs that `strided` marks */
    bool *strided;
    int64_t *offsets; /* offset in the arena; −1: in the caller's memory */
    bool inside;      /* offsets are valid: the arena is a block that contains some of the inputs */
} proa__inputs;

/* Plans the ops from the end of `parent` (NULL: from the start). With a parent, `inputs` is NULL, and the
 * parent's steps must just have run, since their results are read. key is copied. */
proa__segment *proa__segment_new(const proa__liveness *facts, proa__segment *parent,
                                 const proa__inputs *inputs, const char *key, size_t key_bytes);
/* Frees the segment and all that follow it. */
void proa__segment_free(proa__segment *top);
/* Fails if an op of the forward broadcasts, in this run, a dim that was unknown when its gradient was made.
 * metas: of the op's outputs. */
proa_status proa__check_dynamic_dims(const proa__segment *s, const proa_instr *instr, void *metas);
/* True for collectives that may run on their group's thread beside later steps: those of one tensor, in
 * place. */
bool proa__may_be_async(const proa_op *op);
/* True if another segment follows. */
static inline bool proa__segment_is_cut(const proa__segment *s, const proa__liveness *facts)
{
    return s->sized_by_data || s->end_op < facts->block->n_ops;
}

/* Makes an executor of one block (a function of its inputs); on success it owns `own`, which may be NULL. */
proa_executor *proa__executor_of(const proa_block *b, proa_program *own);
int64_t proa__executor_inputs(const proa_executor *e);
/* Makes the last n outputs of e stay where they were computed instead of being handed out: each run then has
 * an arena of its own, kept alive by these outputs. `next` (may be NULL) is the executor that will be fed
 * them and the gradients of the other floating outputs; the arena is made large enough for `next` to work in
 * it, too. */
void proa__executor_keep(proa_executor *e, int32_t n, proa_executor *next);
/* Runs e; *block (retained): the arena of a run with kept outputs. */
proa_tensors proa__executor_run_lending(proa_executor *e, proa_tensors inputs, proa_storage **block);
/* Runs e inside `block` (NULL: in an arena of its own), which contains most inputs and which nobody needs
 * afterwards. into: for each output NULL, or a tensor of the scope that receives it if it fits. */
proa_tensors proa__executor_run_inside(proa_executor *e, proa_tensors inputs, proa_storage *block,
                                       proa_tensor *const *into);

/* Called with an output of a run as soon as no later step reads or writes it. *taken true: the tensor is the
 * callee's, which has dropped it from the scope, and PROA_NONE takes its place among the results. */
typedef proa_status (*proa__executor_early)(int32_t output, proa_tensor *value, bool *taken, void *context);
/* Lets the executor's plans find where outputs are complete; before the first run. */
void proa__executor_announce(proa_executor *e);
/* Sets the function that gets outputs early in the following runs on the CPU; NULL: none. */
void proa__executor_set_early(proa_executor *e, proa__executor_early early, void *context);

/* Called after every op of a run with each output: the op's name, the variable's name, its tensor. */
typedef void (*proa__executor_hook)(const char *op, const char *variable, const proa_tensor *value,
                                    void *context);
void proa__executor_set_hook(proa_executor *e, proa__executor_hook hook, void *context);

/* Binds a handle to `data` in `storage`, retained instead of the one before; NULL, NULL: unbinds it. */
static inline void proa__point(proa_tensor *t, proa_storage *storage, char *data)
{
    proa_storage *old = t->storage;
    if (storage) atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    t->storage = storage;
    t->data = data;
    if (storage && storage->device == PROA_CPU) t->flags &= ~(uint32_t)PROA_T_DEVICE;
    else if (storage) t->flags |= PROA_T_DEVICE;
    if (old) proa__storage_release(old);
}

#endif
