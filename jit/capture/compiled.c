/* A captured function as one node of the eager tape: a call runs a forward program; its backward runs a
 * backward program that is fed the values that the forward saved. May use core, ops and autograd. */
#include "compiled.h"

#include "autograd/backward.h"
#include "autograd/node.h"
#include "core/internal.h"
#include "core/args_visit.h"

#include <proa/autograd.h>
#include <proa/ops.h>

/* State that the tape keeps for one call of a compiled function. */
typedef struct call_record {
    proa_compiled *compiled;
    proa__variant *variant; /* owned */
    proa_tensors saved;     /* owned */
    proa_storage *block;    /* memory of most of them; owned; NULL once a backward has reused it */
    bool spent;
    uint32_t *versions; /* of the saved values, then of the persistables that backward reads */
    proa_meta *outputs; /* to make zeros for gradients that did not arrive */
    proa_meta *inputs;  /* shapes that their gradients must have; in the same allocation */
    uint32_t *seen;     /* versions of inputs and persistables when the call began */
    proa_rng_state rng; /* generator state at the start of the run */
} call_record;

static void compiled_release(proa_compiled *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1) return;
    for (int32_t i = 0; i < c->n_variants; i++) proa__variant_release(c->variants[i]);
    proa__free(c->variants);
    proa__free(c->persistables);
    proa_executor_free(c->plain);
    if (c->owns_program) proa_program_free(c->program);
    for (int64_t i = 0; i < c->n_specs; i++) {
        proa__free((void *)(uintptr_t)c->specs[i].name);
        proa__free((void *)(uintptr_t)c->specs[i].shape.at);
    }
    proa__free(c->specs);
    proa__free(c);
}

void proa_compiled_free(proa_compiled *c)
{
    if (c) compiled_release(c);
}

const proa_program *proa_compiled_program(const proa_compiled *c) { return c ? c->program : NULL; }

proa_executor_stats proa_compiled_get_stats(const proa_compiled *c)
{
    proa_executor_stats all = {0, 0, 0, 0};
    for (int32_t i = -1; c && i < c->n_variants; i++) {
        const proa_executor *of[] = {i < 0 ? c->plain : c->variants[i]->forward,
                                     i < 0 ? NULL : c->variants[i]->backward};
        for (int k = 0; k < 2; k++) {
            proa_executor_stats s = proa_executor_get_stats(of[k]);
            all.arena_bytes += s.arena_bytes, all.plans += s.plans, all.plans_made += s.plans_made;
            all.overlapped += s.overlapped;
        }
    }
    return all;
}

/* ---- making ---------------------------------------------------------------------------- */

static proa_compiled *new_compiled(bool training)
{
    proa_compiled *c = proa__calloc(sizeof *c);
    if (!c) return NULL;
    atomic_init(&c->refs, 1);
    c->training = training;
    return c;
}

static proa_status copy_specs(proa_compiled *c, const proa_input_spec *specs, int64_t n)
{
    c->specs = proa__calloc(((size_t)n + 1) * sizeof *c->specs);
    if (!c->specs) return proa_error();
    for (; c->n_specs < n; c->n_specs++) {
        const proa_input_spec *from = &specs[c->n_specs];
        proa_input_spec *to = &c->specs[c->n_specs];
        size_t count = from->shape.count > 0 ? (size_t)from->shape.count : 0;
        int64_t *shape = proa__alloc((count + 1) * sizeof *shape);
        if (shape && count) memcpy(shape, from->shape.at, count * sizeof *shape);
        to->shape = (proa_ints){from->shape.count, shape, NULL, NULL};
        to->dtype = from->dtype;
        to->name = from->name ? proa__strdup(from->name) : NULL;
        if (!shape || (from->name && !to->name)) {
            c->n_specs++;
            return proa_error();
        }
    }
    return PROA_OK;
}

proa_compiled *proa_compile(proa_tensors (*fn)(proa_tensors inputs, void *context),
                            const proa_input_spec *inputs, int64_t n_inputs, void *context, bool training)
{
    if (proa_error() != PROA_OK) return NULL;
    proa_program *p;
    PROA_NO_GRAD;
    p = proa_capture(fn, inputs, n_inputs, context);
    proa_compiled *c = p ? new_compiled(training) : NULL;
    if (!c) {
        proa_program_free(p);
        return NULL;
    }
    c->program = p;
    c->owns_program = true;
    c->fn = fn;
    c->context = context;
    if (copy_specs(c, inputs, n_inputs) == PROA_OK && proa__list_persistables(c) == PROA_OK) return c;
    compiled_release(c);
    return NULL;
}

proa_compiled *proa_compile_program(const proa_program *p, bool training)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!p || !proa__root(p)->n_outputs) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "compile_program: needs a program with outputs");
        return NULL;
    }
    proa_compiled *c = new_compiled(training);
    if (!c) return NULL;
    c->program = (proa_program *)(uintptr_t)p;
    if (proa__list_persistables(c) == PROA_OK) return c;
    compiled_release(c);
    return NULL;
}

/* ---- backward of a call ---------------------------------------------------------------- */

static void record_release(void *context)
{
    call_record *r = context;
    for (int64_t i = 0; i < r->saved.count; i++) proa_release(r->saved.at[i]);
    if (r->block) proa__storage_release(r->block);
    proa__free(r->saved.at);
    proa__free(r->versions);
    proa__free(r->outputs);
    proa__free(r->seen);
    proa__variant_release(r->variant);
    compiled_release(r->compiled);
    proa__free(r);
}

static proa_status check_version(const proa_tensor *t, uint32_t version, const char *what)
{
    if (proa__guarded_version(t) == version) return PROA_OK;
    const char *name = proa_name_of(t);
    return proa_fail(PROA_ERR_BAD_STATE,
                     "backward: %s was changed in place between the forward and the backward of a compiled "
                     "function",
                     name ? name : what);
}

static proa_status check_saved(const call_record *r)
{
    const proa__variant *v = r->variant;
    if (r->spent)
        return proa_fail(PROA_ERR_BAD_STATE,
                         "backward: a compiled function's graph was used up by a backward "
                         "before; use retain_graph = true there");
    for (int64_t i = 0; i < r->saved.count; i++)
        PROA_TRY(check_version(r->saved.at[i], r->versions[i], "an input or output that it needs"));
    for (int32_t i = 0; i < v->n_read; i++)
        PROA_TRY(check_version(v->read[i], r->versions[r->saved.count + i], "a parameter"));
    return PROA_OK;
}

/* Capture assumes that two dynamic dims are equal. A run in which one of them is 1 would need a reduction
 * that the captured backward lacks, so its backward is rejected. */
static proa_status check_shape(const proa_tensor *grad, const proa_meta *want)
{
    bool same = grad->ndim == want->ndim;
    for (int d = 0; same && d < want->ndim; d++) same = grad->shape[d] == want->shape[d];
    if (same) return PROA_OK;
    return proa_fail(
        PROA_ERR_UNSUPPORTED,
        "backward: the gradient of an input of shape %s came out as %s: a dim that was unknown when "
        "the function was captured is broadcast in this call; capture it with known dims",
        proa__shape_text(want->shape, want->ndim), proa__tensor_text(grad));
}

/* Collects the inputs of the backward program: saved values, then gradients of the floating outputs. */
static proa_status backward_inputs(const call_record *r, proa_tensors grads, proa_tensors *to)
{
    to->at = proa_scope_alloc((size_t)(r->saved.count + grads.count + 1) * sizeof *to->at);
    if (!to->at) return proa_error();
    for (to->count = 0; to->count < r->saved.count; to->count++) to->at[to->count] = r->saved.at[to->count];
    for (int64_t i = 0; i < grads.count; i++) {
        const proa_meta *m = &r->outputs[i];
        if (m->dtype < PROA_F16) continue;
        proa_tensor *g = grads.at[i];
        if (g == proa_none) g = proa_full(((proa_ints){m->ndim, m->shape, NULL, NULL}), 0, .dtype = m->dtype);
        if (!g) return proa_error();
        to->at[to->count++] = g;
    }
    return PROA_OK;
}

/* Returns the parameters' gradients from the former step that count as zeros (proa_zero_grad), so that this
 * step's gradients reuse their memory. */
static proa_tensor **reuse_gradients(const proa__variant *v)
{
    proa_tensor **into = proa_scope_alloc(((size_t)v->n_wants + 1) * sizeof *into);
    if (!into) return NULL;
    memset(into, 0, ((size_t)v->n_wants + 1) * sizeof *into);
    for (int32_t i = 0; i < v->n_trained; i++) {
        int32_t result = v->result[v->n_inputs + i];
        if (result >= 0) into[result] = proa__take_zeroed(v->trained[i]);
    }
    return into;
}

/* ---- higher-order gradients: replaying the call on the tape -------------------------------- */

/* For create_graph: the call is replayed op by op on the tape, so that the ops' own gradient rules give
 * gradients of any order. */
typedef struct replayed {
    const call_record *r;
    proa__hash_map written; /* variables that ops write and that outlive a call, such as running statistics */
    proa__hash_map instead; /* persistables → tensors that replace them in the replay */
    const proa_instr *instr;
    bool own; /* the current op writes a tensor that it reads */
    const proa_var *read;
} replayed;

static proa_status note_written(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    replayed *p = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    if (!v || !v->persistable) return PROA_OK;
    if (v == p->read) p->own = true;
    return proa__hash_map_put(&p->written, v, v);
}

static proa_status check_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    replayed *p = context;
    (void)f, (void)index;
    p->read = proa__slot_var(*slot);
    if (!p->read || !proa__hash_map_find(&p->written, p->read)) return PROA_OK;
    p->own = false;
    PROA_TRY(proa__args_visit(p->instr->op, p->instr->args, PROA_OUT, note_written, p));
    if (p->own) return PROA_OK;
    return proa_fail(
        PROA_ERR_UNSUPPORTED,
        "backward: a gradient of the gradient of a compiled function runs it once more, but %s reads "
        "%s, which the function overwrites; call the plain function for create_graph",
        p->instr->op->name, p->read->name);
}

/* Makes the tensors that replace persistables: aliases of parameters that want gradients, copies of
 * persistables that are written. */
static proa_status stand_ins(replayed *p, proa_tensors *xs)
{
    const proa__variant *v = p->r->variant;
    const proa_block *b = proa__root(p->r->compiled->program);
    for (int32_t i = 0; i < b->n_ops; i++)
        PROA_TRY(proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_OUT, note_written, p));
    for (int32_t i = 0; i < b->n_ops; i++) {
        p->instr = &b->ops[i];
        PROA_TRY(proa__args_visit_reads(b->ops[i].op, b->ops[i].args, check_read, p));
    }
    for (int32_t i = 0; i < b->n_vars; i++) {
        if (!proa__hash_map_find(&p->written, b->vars[i]) || !b->vars[i]->value) continue;
        proa_tensor *copy = proa_assign(proa_detach(b->vars[i]->value));
        if (!copy) return proa_error();
        PROA_TRY(proa__hash_map_put(&p->instead, b->vars[i]->value, copy));
    }
    for (int32_t i = 0; i < v->n_trained; i++) {
        proa_tensor *alias = xs->at[xs->count++] = proa_assign(v->trained[i]);
        if (!alias) return proa_error();
        PROA_TRY(proa__hash_map_put(&p->instead, v->trained[i], alias));
    }
    return PROA_OK;
}

static proa_status check_unchanged(const replayed *p, proa_tensors inputs)
{
    const call_record *r = p->r;
    const proa_compiled *c = r->compiled;
    int32_t n = r->variant->n_inputs;
    for (int32_t i = 0; i < n; i++) PROA_TRY(check_version(inputs.at[i], r->seen[i], "an input"));
    for (int32_t i = 0; i < c->n_persistables; i++)
        if (!proa__hash_map_find(&p->instead, c->persistables[i]) || c->persistables[i]->flags & PROA_T_GRAD)
            PROA_TRY(check_version(c->persistables[i], r->seen[n + i], "a parameter"));
    return PROA_OK;
}

/* Gradients of the floating outputs with respect to xs, the tensors that the replayed ops were called on. */
static proa_status replayed_gradients(const replayed *p, proa_tensors in, proa_tensors xs, proa_tensors grads,
                                      proa_tensors *made)
{
    proa_tensors outs;
    proa_rng_state now = proa_rng_get();
    proa_rng_set(p->r->rng);
    proa_status status = proa__block_inline(proa__root(p->r->compiled->program), in, &p->instead, &outs);
    proa_rng_set(now);
    PROA_TRY(status);
    proa_tensors from = {0, proa_scope_alloc(((size_t)outs.count + 1) * sizeof *from.at)};
    proa_tensors seeds = {0, proa_scope_alloc(((size_t)outs.count + 1) * sizeof *seeds.at)};
    if (!from.at || !seeds.at) return proa_error();
    for (int64_t i = 0; i < outs.count && i < grads.count; i++) {
        if (grads.at[i] == proa_none || !(outs.at[i]->flags & PROA_T_GRAD)) continue;
        from.at[from.count++] = outs.at[i];
        seeds.at[seeds.count++] = grads.at[i];
    }
    for (int64_t i = 0; i < xs.count; i++) made->at[i] = PROA_NONE;
    if (from.count && xs.count) *made = proa__grad_inside(from, xs, seeds);
    return proa_error();
}

static proa_tensors run_recorded(const call_record *r, proa_tensors inputs, proa_tensors grads)
{
    const proa__variant *v = r->variant;
    const proa_tensors none = {0, NULL};
    size_t capacity = ((size_t)v->n_wants + 1) * sizeof(proa_tensor *);
    proa_tensors in = {v->n_inputs, proa_scope_alloc(capacity)}, xs = {0, proa_scope_alloc(capacity)};
    proa_tensors made = {0, proa_scope_alloc(capacity)}, all = {v->n_wants, proa_scope_alloc(capacity)};
    replayed p = {.r = r};
    if (!in.at || !xs.at || !made.at || !all.at) return none;
    proa_status status = PROA_OK;
    if (r->compiled->program->n_blocks > 1)
        status =
            proa_fail(PROA_ERR_UNSUPPORTED,
                      "backward: a compiled function with branches or loops has no gradient of its gradient; "
                      "call the plain function for create_graph");
    for (int32_t i = 0; status == PROA_OK && i < v->n_inputs; i++) {
        in.at[i] = v->input_wants[i] ? proa_assign(inputs.at[i]) : inputs.at[i];
        if (!in.at[i]) status = proa_error();
        if (v->input_wants[i]) xs.at[xs.count++] = in.at[i];
    }
    if (status == PROA_OK) status = stand_ins(&p, &xs);
    if (status == PROA_OK) status = check_unchanged(&p, inputs);
    if (status == PROA_OK) status = replayed_gradients(&p, in, xs, grads, &made);
    for (int32_t i = 0, k = 0; status == PROA_OK && i < v->n_wants; i++)
        all.at[i] = i >= v->n_inputs || v->input_wants[i] ? made.at[k++] : PROA_NONE;
    proa__hash_map_clear(&p.written);
    proa__hash_map_clear(&p.instead);
    return status == PROA_OK ? all : none;
}

/* Checks the gradient of want i. */
static proa_status check_gradient(const call_record *r, int32_t i, const proa_tensor *grad)
{
    const proa__variant *v = r->variant;
    proa_meta want = i < v->n_inputs ? r->inputs[i] : proa_meta_of(v->trained[i - v->n_inputs]);
    return check_shape(grad, &want);
}

/* Stores a parameter's gradient while backward still computes others, so that a reducer can send it. */
static proa_status store_early(int32_t output, proa_tensor *grad, bool *taken, void *context)
{
    const call_record *r = context;
    int32_t i = r->variant->want[output];
    if (i < r->variant->n_inputs) return PROA_OK;
    PROA_TRY(check_gradient(r, i, grad));
    return proa__gradient_early(i, grad, taken);
}

static proa_tensors run_executor(const call_record *r, proa_tensors feed)
{
    const proa__variant *v = r->variant;
    proa_tensor **into = reuse_gradients(v);
    if (!into) return (proa_tensors){0, NULL};
    bool early = false;
    for (int32_t i = 0; i < v->n_trained && !early; i++) early = proa__takes_early(v->trained[i]);
    if (early) proa__executor_set_early(v->backward, store_early, (void *)(uintptr_t)r);
    proa_tensors made = proa__executor_run_inside(v->backward, feed, r->spent ? r->block : NULL, into);
    proa__executor_set_early(v->backward, NULL, NULL);
    return made;
}

static proa_tensors run_backward(proa_tensors inputs, proa_tensors outputs, proa_tensors grads, void *context)
{
    call_record *r = context;
    const proa__variant *v = r->variant;
    const proa_tensors none = {0, NULL};
    (void)outputs;
    if (proa_recording()) return run_recorded(r, inputs, grads);
    proa_tensors feed, made = {v->n_wants, proa_scope_alloc(((size_t)v->n_wants + 1) * sizeof *made.at)};
    if (!made.at || check_saved(r) != PROA_OK || backward_inputs(r, grads, &feed) != PROA_OK) return none;
    proa_tensors results = none;
    r->spent = r->block && !proa__backward_retains();
    if (v->backward) results = run_executor(r, feed);
    if (proa_error() != PROA_OK) return none;
    for (int32_t i = 0; i < v->n_wants; i++) {
        made.at[i] = v->result[i] < 0 ? PROA_NONE : results.at[v->result[i]];
        if (made.at[i] != PROA_NONE && check_gradient(r, i, made.at[i]) != PROA_OK) return none;
    }
    return made;
}

/* ---- forward of a call ----------------------------------------------------------------- */

/* Forward function for proa_apply, which passes inputs and parameters; the executor takes the inputs
 * alone. */
static proa_tensors run_forward(proa_tensors inputs, void *context)
{
    call_record *r = context;
    const proa__variant *v = r->variant;
    const proa_tensors none = {0, NULL};
    proa_tensors feed = {proa__root(r->compiled->program)->n_inputs, inputs.at};
    const proa_compiled *c = r->compiled;
    r->seen = proa__alloc(((size_t)feed.count + (size_t)c->n_persistables + 1) * sizeof *r->seen);
    if (!r->seen) return none;
    for (int64_t i = 0; i < feed.count; i++) r->seen[i] = proa__guarded_version(feed.at[i]);
    for (int32_t i = 0; i < c->n_persistables; i++)
        r->seen[feed.count + i] = proa__guarded_version(c->persistables[i]);
    r->rng = proa_rng_get();
    proa_tensors all = proa__executor_run_lending(v->forward, feed, &r->block);
    if (proa_error() != PROA_OK) return none;
    int32_t n_saved = v->n_saved;
    proa_tensors outs = {all.count - n_saved, all.at};
    r->outputs = proa__alloc((size_t)(outs.count + feed.count + 1) * sizeof *r->outputs);
    r->versions = proa__alloc(((size_t)(n_saved + v->n_read) + 1) * sizeof *r->versions);
    r->saved.at = proa__alloc(((size_t)n_saved + 1) * sizeof *r->saved.at);
    if (!r->outputs || !r->versions || !r->saved.at) return none;
    r->inputs = r->outputs + outs.count;
    for (int64_t i = 0; i < outs.count; i++) r->outputs[i] = proa_meta_of(outs.at[i]);
    for (int64_t i = 0; i < feed.count; i++) r->inputs[i] = proa_meta_of(feed.at[i]);
    for (int32_t i = 0; i < n_saved; i++) r->versions[i] = proa__guarded_version(all.at[outs.count + i]);
    for (int32_t i = 0; i < v->n_read; i++) r->versions[n_saved + i] = proa__guarded_version(v->read[i]);
    for (; r->saved.count < n_saved; r->saved.count++)
        r->saved.at[r->saved.count] = proa_keep(all.at[outs.count + r->saved.count]);
    return outs;
}

static proa_tensors call_recorded(proa_compiled *c, proa__variant *v, proa_tensors inputs)
{
    const proa_tensors none = {0, NULL};
    proa_tensors all = {0, proa_scope_alloc((size_t)(v->n_wants + 1) * sizeof *all.at)};
    call_record *r = proa__calloc(sizeof *r);
    if (!all.at || !r) {
        proa__free(r);
        return none;
    }
    r->compiled = c;
    r->variant = v;
    atomic_fetch_add(&c->refs, 1);
    atomic_fetch_add(&v->refs, 1);
    for (; all.count < inputs.count; all.count++) all.at[all.count] = inputs.at[all.count];
    for (int32_t i = 0; i < v->n_trained; i++) all.at[all.count++] = v->trained[i];
    proa_function fn = {.name = "compiled",
                        .forward = run_forward,
                        .backward = run_backward,
                        .release = record_release,
                        .forget_inputs = c->program->n_blocks > 1, /* a recorded backward reads them */
                        .forget_outputs = true};
    return proa__apply_unwatched(&fn, all, r);
}

/* ---- the call -------------------------------------------------------------------------- */

static proa_tensors call_plain(proa_compiled *c, proa_tensors inputs)
{
    if (!c->plain) c->plain = proa_executor_with(c->program, (proa_executor_opts){0});
    return proa_executor_run(c->plain, inputs);
}

/* A call while another program is being captured: appends the function's ops to that program. */
static proa_tensors call_captured(const proa_compiled *c, proa_tensors inputs)
{
    proa_tensors outputs = {0, NULL};
    if (c->program->n_blocks > 1)
        proa_fail(PROA_ERR_UNSUPPORTED,
                  "compiled function: a program with branches or loops cannot become part of another one; "
                  "convert the function that made it");
    else proa__block_inline(proa__root(c->program), inputs, NULL, &outputs);
    return outputs;
}

proa_tensors proa_compiled_call(proa_compiled *c, proa_tensors inputs)
{
    const proa_tensors none = {0, NULL};
    if (proa_error() != PROA_OK) return none;
    int64_t n = c ? proa__root(c->program)->n_inputs : 0;
    if (!c || inputs.count != n || (n && !inputs.at)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "compiled function: takes %lld tensors, got %lld", (long long)n,
                  (long long)inputs.count);
        return none;
    }
    for (int64_t i = 0; i < n; i++)
        if (!inputs.at[i] || inputs.at[i] == proa_none) {
            proa_fail(PROA_ERR_INVALID_ARGUMENT, "compiled function: input %lld is %s", (long long)i,
                      inputs.at[i] ? "PROA_NONE" : "NULL");
            return none;
        }
    if (proa_door_is_open(PROA_DOOR_CAPTURE)) return call_captured(c, inputs);
    if (!c->training || !proa_recording() || !proa__wants_gradient(c, inputs)) return call_plain(c, inputs);
    proa__variant *v = proa__variant_for(c, inputs);
    return v ? call_recorded(c, v, inputs) : none;
}
