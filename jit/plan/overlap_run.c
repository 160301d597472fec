/* Runs a segment's steps with collectives on their groups' threads, and hands outputs over when they are
 * complete. May use core and ops. */
#include "executor.h"

#include "core/args_visit.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/group.h"
#include "core/numerics.h"
#include "impl/collective.h"

/* A call that was started and must be complete before step `until`. */
typedef struct started {
    const proa__group_calls *calls;
    void *task;
    int32_t until;
} started;

typedef struct flight {
    proa_executor *e;
    const proa__segment *s;
    started *calls;
    int32_t n;
    bool watch, overlap; /* overlap: or what may run beside later steps is waited for at once */
} flight;

/* FLAGS_check_nan_inf and an inspector look at a step's results behind the step. */
static bool is_on(const proa_executor *e)
{
    return e->block->program->overlaps && !proa__flag_int(PROA_FLAG_check_nan_inf) && !proa__inspecting();
}

/* True if this run hands outputs over in the order in which they are complete. */
static bool hands_over(const proa_executor *e, const proa__segment *s)
{
    return e->early && s->n_early && proa__stream()->device == PROA_CPU;
}

bool proa__executor_overlaps(const proa_executor *e, const proa__segment *s)
{
    int device = proa__stream()->device;
    if (hands_over(e, s)) return true;
    if (!s->n_async || !is_on(e)) return false;
    return device == PROA_CPU || (proa__communicators_of(device) && !proa__device_graph_recording());
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Waits for the calls that must be complete before step `at`, all of them even after an error. */
static proa_status wait_before(flight *f, int32_t at)
{
    proa_status status = PROA_OK;
    int32_t kept = 0;
    for (int32_t i = 0; i < f->n; i++) {
        if (f->calls[i].until > at) {
            f->calls[kept++] = f->calls[i];
            continue;
        }
        proa_status ended = f->calls[i].calls->finish(f->calls[i].task);
        if (status == PROA_OK) status = ended;
    }
    f->n = kept;
    return status;
}

/* The call of a step that may be asynchronous; *x: what this rank gives. */
static proa__async_call call_of(const proa__step *step, int64_t *group, proa_tensor **x)
{
    const char *name = step->op->name;
    if (strcmp(name, "reduce_to") == 0) {
        const proa_reduce_to_args *a = step->args;
        *group = a->group, *x = a->x;
        return (proa__async_call){PROA__ASYNC_REDUCE, a->out, (proa_reduce)a->op, (int)a->dst};
    }
    if (strcmp(name, "broadcast") == 0) {
        const proa_broadcast_args *a = step->args;
        *group = a->group, *x = a->x;
        return (proa__async_call){PROA__ASYNC_BROADCAST, a->out, PROA_REDUCE_SUM, (int)a->src};
    }
    if (strcmp(name, "mp_all_reduce") == 0) {
        const proa_mp_all_reduce_args *a = step->args;
        *group = a->group, *x = a->x;
        return (proa__async_call){PROA__ASYNC_ALL_REDUCE, a->out, PROA_REDUCE_SUM, 0};
    }
    const proa_all_reduce_args *a = step->args;
    *group = a->group, *x = a->x;
    return (proa__async_call){PROA__ASYNC_ALL_REDUCE, a->out, (proa_reduce)a->op, 0};
}

/* Starts the call of a step; in a group without a thread, makes it. */
static proa_status start(flight *f, const proa__step *step)
{
    int64_t group;
    proa_tensor *x;
    const proa__async_call call = call_of(step, &group, &x);
    proa_group *g = proa__group(step->op->name, group);
    if (!g) return proa_error();
    const proa__group_calls *calls = proa__calls_of(g);
    if (!calls->start || g->size == 1 || call.root < 0 || call.root >= g->size)
        return proa__executor_step(step, f->watch);
    if (x->data != call.data->data) PROA_TRY(proa__copy(call.data, x));
    void *task = calls->start(g, &call);
    if (!task) return proa_error();
    f->calls[f->n++] = (started){calls, task, step->until};
    f->e->overlapped++;
    return PROA_OK;
}

/* ---- outputs ----------------------------------------------------------------------------- */

static proa_status hand_over(const flight *f, const proa__early_output *early)
{
    proa_executor *e = f->e;
    bool taken = false;
    PROA_TRY(proa__executor_collect(e, f->s, early->output)); /* a copy, if it is in the arena */
    for (int32_t i = early->binding; i >= 0; i = f->s->bindings[i].next)
        proa__binding_clear(&f->s->bindings[i]); /* so that the callee alone owns the memory */
    proa_status status = e->early(early->output, e->outputs[early->output], &taken, e->early_context);
    if (!taken) return status;
    e->outputs[early->output] = proa_none;
    e->overlapped += f->overlap;
    return status;
}

/* ---- steps ------------------------------------------------------------------------------- */

static proa_status run(flight *f)
{
    const proa__segment *s = f->s;
    int32_t early = hands_over(f->e, s) ? 0 : s->n_early;
    for (int32_t i = 0; i < s->n_steps; i++) {
        const proa__step *step = &s->steps[i];
        if (step->waits) PROA_TRY(wait_before(f, i));
        PROA_TRY(step->until && f->overlap ? start(f, step) : proa__executor_step(step, f->watch));
        PROA_TRY(proa_error());
        for (; f->overlap && early < s->n_early && s->early[early].step == i; early++)
            PROA_TRY(hand_over(f, &s->early[early]));
    }
    for (; early < s->n_early; early++) PROA_TRY(hand_over(f, &s->early[early])); /* in the same order */
    return PROA_OK;
}

proa_status proa__executor_overlap(proa_executor *e, const proa__segment *s, bool watch)
{
    flight f = {.e = e, .s = s, .watch = watch, .overlap = is_on(e)};
    if (s->n_async) f.calls = proa_scope_alloc((size_t)s->n_async * sizeof *f.calls);
    if (s->n_async && !f.calls) return proa_error();
    proa_status status = run(&f), ended = wait_before(&f, INT32_MAX);
    return status != PROA_OK ? status : ended;
}
