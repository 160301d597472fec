/* Shared by the files that plan one segment: plan.c, buffer_assignment.c, view.c, constant_shapes.c, layout.c
 * and overlap.c. May use core and ops. */
#ifndef PROA_JIT_PLAN_PLANNER_H
#define PROA_JIT_PLAN_PLANNER_H

#include "core/args_visit.h"
#include "plan.h"

typedef struct proa__planner {
    const proa__liveness *facts;
    proa__segment *s;
    /* of one op: */
    const proa_instr *instr;
    void *args;
    int32_t at;
    bool flag;
    int64_t count;
    uint32_t packs;     /* inputs that some of its kernels pack (core/kernel_traits.h) */
    bool takes_blocked; /* its kernels do */
    bool unblocked;     /* a persistable was made row-major: the segment is planned again */
} proa__planner;

/* The buffer of all persistables and constants of plans: the memory planner never places it, and it is never
 * freed. */
extern proa__buffer proa__fixed_place;

proa__buffer *proa__plan_buffer(proa__planner *p, proa__assign_buffers place, int32_t index, int64_t bytes,
                                int32_t last);
/* A handle on a buffer, bound before a run. format: 0 (row-major), or the buffer's format. */
proa_tensor *proa__plan_handle(proa__planner *p, const proa_meta *meta, int format, proa__buffer *buffer,
                               int64_t offset);
static inline int64_t proa__plan_bytes(const proa_tensor *t)
{
    return t->numel * (int64_t)proa_dtype_size((proa_dtype)t->dtype);
}
static inline int32_t proa__max64(int32_t a, int32_t b) { return a > b ? a : b; }
/* Makes the segment an owner of the handle. */
proa_status proa__plan_bind(proa__planner *p, proa_tensor *handle, proa__buffer *buffer, int64_t offset);
/* Adds a guard: the plan is valid only while t's memory, and with same_data its elements, stay the same. */
proa_status proa__plan_guard(proa__planner *p, proa_tensor *t, bool same_data);
proa_status proa__plan_step(proa__planner *p, proa__step step);
/* Selects a kernel for p->args and adds its step, which then owns the args: p->args becomes NULL. */
proa_status proa__plan_kernel(proa__planner *p);
/* The value of a variable. If it has none yet, the value has no handle; perhaps with an error. */
proa__value *proa__plan_value(proa__planner *p, const proa_var *v);
/* The same, but the elements of a persistable may stay unread. */
proa__value *proa__plan_packed_value(proa__planner *p, const proa_var *v);

/* True if the op table lets output f use the memory of the input that its alias names. */
static inline bool proa__may_lie_over(const proa_field *f)
{
    return f->alias >= 0 && !proa__makes_list(f) && !(f->flags & (PROA_FIELD_MUTATED | PROA_FIELD_VIEW));
}

/* A contiguous copy of a strided or blocked value, made once per segment unless an output has taken its
 * memory. */
proa_tensor *proa__plan_dense(proa__planner *p, proa__value *value);

/* True if v needs a contiguous tensor: an op reads it as an attribute, or all its readers would copy a
 * strided one. Other ops get strided tensors, as they do eagerly, since a product may sum a copy in another
 * order. */
static inline bool proa__must_be_dense(const proa__liveness *facts, const proa_var *v)
{
    int32_t i = v->index;
    return facts->supplies[i] || (facts->reads_dense[i] && !facts->reads_strided[i]);
}

/* ---- buffer_assignment.c --------------------------------------------------------------------- */

/* Assigns memory to every output of the current op; metas: from shape inference. */
proa_status proa__plan_outputs(proa__planner *p, void *metas);
/* Marks b as the buffer of an output that is handed out, if v is one. */
void proa__plan_hand_out(proa__planner *p, proa__buffer *b, const proa_var *v, const proa_meta *meta);
/* True if the input's buffer is dead after the current op and no other operand shares it, so that an output
 * may be placed in it. */
bool proa__plan_is_free(proa__planner *p, const proa__value *in);

/* ---- view.c ---------------------------------------------------------------------------------- */

/* Makes output 0 of the current op a view of input 0, if strides allow and its readers accept it. *viewed
 * false: it becomes a copy. */
proa_status proa__plan_view(proa__planner *p, const proa_meta *meta, bool *viewed);

/* ---- overlap.c ------------------------------------------------------------------------------- */

/* Finds the collectives that may run beside later steps, extends the lifetimes of their memory, and finds the
 * outputs that are complete before the last step. Behind the last op, before memory is planned. */
proa_status proa__plan_overlap(proa__planner *p);

/* ---- constant_shapes.c ----------------------------------------------------------------------- */

/* True if the results of the current op feed attributes and are the same in every run. */
bool proa__plan_worth_knowing(proa__planner *p);
/* Runs the current op now and keeps its results; *known false: they are too large, and nothing has
 * happened. */
proa_status proa__plan_know(proa__planner *p, void *metas, bool *known);

/* ---- layout.c -------------------------------------------------------------------------------- */

/* True if the kernels of the current op accept blocked operands. */
bool proa__plan_takes_blocked(const proa__planner *p);
/* True if an input of the current op is stored blocked. */
bool proa__plan_reads_blocked(proa__planner *p);
/* Makes output 0 of the current op, which has a buffer already, use a blocked format, if possible. */
proa_status proa__plan_block(proa__planner *p, int format, bool *done);
/* Plans an elementwise op over the memory of blocked operands; *done false: nothing has happened. */
proa_status proa__plan_flat(proa__planner *p, void *metas, bool *done);

#endif
