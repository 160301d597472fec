/* The planner of one segment, and the parts that plan.c, buffer_assignment.c, view.c, constant_shapes.c and
 * layout.c add to it. May use core and ops. */
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
    bool takes_blocked; /* its kernels do */
    bool unblocked;     /* a persistable has been made plain: what was planned before knows it blocked */
} proa__planner;

/* The buffer of persistables: never packed, never free. */
extern proa__buffer proa__fixed_place;

proa__buffer *proa__plan_buffer(proa__planner *p, proa__assign_buffers place, int32_t index, int64_t bytes,
                                int32_t last);
/* A handle on a buffer, which the segment points before a run. format: 0, or that of the buffer. */
proa_tensor *proa__plan_handle(proa__planner *p, const proa_meta *meta, int format, proa__buffer *buffer,
                               int64_t offset);
static inline int64_t proa__plan_bytes(const proa_tensor *t)
{
    return t->numel * (int64_t)proa_dtype_size((proa_dtype)t->dtype);
}
static inline int32_t proa__max64(int32_t a, int32_t b) { return a > b ? a : b; }
/* The segment becomes an owner of the handle. */
proa_status proa__plan_bind(proa__planner *p, proa_tensor *handle, proa__buffer *buffer, int64_t offset);
/* The plan holds only while t's memory, and with same_data its elements, stay as they are. */
proa_status proa__plan_guard(proa__planner *p, proa_tensor *t, bool same_data);
proa_status proa__plan_step(proa__planner *p, proa__step step);
/* Picks a kernel for p->args and adds its step, which then owns them: p->args is NULL. */
proa_status proa__plan_kernel(proa__planner *p);
/* The value of a variable; without a handle, and perhaps with an error, when it has none. */
proa__value *proa__plan_value(proa__planner *p, const proa_var *v);

/* True if the table lets output f take the memory of the input that its alias names. */
static inline bool proa__may_lie_over(const proa_field *f)
{
    return f->alias >= 0 && !proa__makes_list(f) && !(f->flags & (PROA_FIELD_MUTATED | PROA_FIELD_VIEW));
}

/* The contiguous copy of a tensor that is strided or lies blocked, made once a segment unless an output has
 * taken its place. */
proa_tensor *proa__plan_dense(proa__planner *p, proa__value *value);

/* True if a strided tensor may not stand for v: an op reads it as an attribute, or all that read it would
 * copy it. Ops that take strides get them, as they do eagerly: a product may sum in another order over a
 * copy. */
static inline bool proa__must_be_dense(const proa__liveness *facts, const proa_var *v)
{
    int32_t i = v->index;
    return facts->supplies[i] || (facts->reads_dense[i] && !facts->reads_strided[i]);
}

/* ---- place.c --------------------------------------------------------------------------------- */

/* Gives every output of the op at hand its place; metas: what inference found. */
proa_status proa__plan_outputs(proa__planner *p, void *metas);
/* Makes output v an output that is handed out, if it is one. */
void proa__plan_hand_out(proa__planner *p, proa__buffer *b, const proa_var *v, const proa_meta *meta);
/* True if the input's memory is nobody's any more after this op and may hold an output. */
bool proa__plan_is_free(proa__planner *p, const proa__value *in);

/* ---- view.c ---------------------------------------------------------------------------------- */

/* Lets output 0 of the op at hand be a view of input 0, if its strides allow and whoever reads it takes them;
 * !*viewed: it becomes a copy. */
proa_status proa__plan_view(proa__planner *p, const proa_meta *meta, bool *viewed);

/* ---- constant_shapes.c ----------------------------------------------------------------------- */

/* True if the results of the op at hand feed attributes and depend on nothing that a run brings. */
bool proa__plan_worth_knowing(proa__planner *p);
/* Runs the op now and keeps its results; !*known: they are too large, and nothing has happened. */
proa_status proa__plan_know(proa__planner *p, void *metas, bool *known);

/* ---- layout.c -------------------------------------------------------------------------------- */

/* True if the op at hand is one whose kernels take blocked operands, which may stay so. */
bool proa__plan_takes_blocked(const proa__planner *p);
/* True if an input of the op at hand lies blocked. */
bool proa__plan_reads_blocked(proa__planner *p);
/* Output 0 of the op at hand, placed already, will lie in a format, if it may. */
proa_status proa__plan_block(proa__planner *p, int format, bool *done);
/* An elementwise op over the memory of blocked operands; !*done: nothing has happened. */
proa_status proa__plan_flat(proa__planner *p, void *metas, bool *done);

#endif
