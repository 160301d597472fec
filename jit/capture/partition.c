/* Makes the forward and backward programs of a compiled function: both are captured into one program, which
 * is then cut in two. Values that the forward makes and the backward reads are saved. May use core, ops and
 * autograd. */
#include "compiled.h"

#include "core/internal.h"
#include "jit/passes/passes.h"
#include "core/args_visit.h"

#include <proa/autograd.h>

/* ---- what wants gradients -------------------------------------------------------------- */

proa_status proa__list_persistables(proa_compiled *c)
{
    const proa_block *b = proa__root(c->program);
    for (int32_t i = 0; i < b->n_vars; i++) {
        proa_tensor *t = b->vars[i]->value;
        if (!t || t->dtype < PROA_F16) continue;
        PROA_TRY(proa__reserve(&c->persistables, c->n_persistables, &c->persistables_capacity,
                               sizeof *c->persistables));
        c->persistables[c->n_persistables++] = t;
    }
    return PROA_OK;
}

static bool wants(const proa_tensor *t) { return t->flags & PROA_T_GRAD && t->dtype >= PROA_F16; }

bool proa__wants_gradient(const proa_compiled *c, proa_tensors inputs)
{
    for (int64_t i = 0; i < inputs.count; i++)
        if (wants(inputs.at[i])) return true;
    for (int32_t i = 0; i < c->n_persistables; i++)
        if (wants(c->persistables[i])) return true;
    return false;
}

static bool fits(const proa_compiled *c, const proa__variant *v, proa_tensors inputs)
{
    for (int32_t i = 0; i < v->n_inputs; i++)
        if (v->input_wants[i] != wants(inputs.at[i])) return false;
    int32_t k = 0;
    for (int32_t i = 0; i < c->n_persistables; i++) {
        bool listed = k < v->n_trained && v->trained[k] == c->persistables[i];
        if (listed != wants(c->persistables[i])) return false;
        k += listed;
    }
    return true;
}

/* ---- forward and backward in one program ----------------------------------------------- */

typedef struct joined {
    proa_program *program;
    proa_var **outputs, **seeds; /* seeds: gradients fed for the outputs, one for each floating output */
    proa_var **grads;            /* one for each want; NULL: no gradient arrives */
    int32_t n_outputs, n_seeds, n_grads;
} joined;

static proa_var **vars_capacity(int64_t n) { return proa_scope_alloc(((size_t)n + 1) * sizeof(proa_var *)); }

static proa_tensors list_capacity(int64_t n)
{
    return (proa_tensors){0, proa_scope_alloc(((size_t)n + 1) * sizeof(proa_tensor *))};
}

/* A new input of the program: the gradient that is fed for output v. */
static proa_tensor *new_seed(joined *j, const proa_var *v)
{
    proa_meta meta = proa_meta_of(v->handle);
    proa_var *seed = proa__var_new(proa__root(j->program), NULL, &meta);
    if (!seed) return NULL;
    seed->is_input = true;
    j->seeds[j->n_seeds++] = seed;
    return proa__var_tensor(seed);
}

static proa_status note_outputs(joined *j, proa_tensors outs)
{
    j->outputs = vars_capacity(outs.count);
    j->seeds = vars_capacity(outs.count);
    if (!j->outputs || !j->seeds) return proa_error();
    for (int64_t i = 0; i < outs.count; i++) {
        proa_tensor *t = outs.at[i];
        proa_var *v = !t || t == proa_none         ? NULL
                      : t->flags & PROA_T_SYMBOLIC ? proa__var_behind(j->program, t)
                                                   : proa__var_of_concrete(proa__root(j->program), t);
        if (!v)
            return proa_fail(PROA_ERR_BAD_STATE, "compile: output %lld is no tensor of the function",
                             (long long)i);
        j->outputs[j->n_outputs++] = v;
    }
    return PROA_OK;
}

static proa_status note_grads(joined *j, proa_tensors grads)
{
    j->grads = vars_capacity(grads.count);
    if (!j->grads) return proa_error();
    for (int64_t i = 0; i < grads.count; i++) {
        proa_tensor *g = grads.at[i];
        j->grads[j->n_grads++] = g == proa_none ? NULL
                                 : g->flags & PROA_T_SYMBOLIC
                                     ? proa__var_behind(j->program, g)
                                     : proa__var_of_concrete(proa__root(j->program), g);
    }
    return proa_error();
}

/* Makes seeds for the floating outputs. *targets and *seeds get the outputs through which a gradient flows,
 * and their seeds. */
static proa_status make_seeds(joined *j, proa_tensors outs, bool all, proa_tensors *targets,
                              proa_tensors *seeds)
{
    *targets = list_capacity(outs.count);
    *seeds = list_capacity(outs.count);
    if (!targets->at || !seeds->at) return proa_error();
    for (int64_t i = 0; i < outs.count; i++) {
        if (j->outputs[i]->handle->dtype < PROA_F16) continue;
        proa_tensor *seed = new_seed(j, j->outputs[i]);
        if (!seed) return proa_error();
        if (!all && proa_stop_gradient(outs.at[i])) continue;
        targets->at[targets->count++] = outs.at[i];
        seeds->at[seeds->count++] = seed;
    }
    return PROA_OK;
}

static proa_tensors nothing_for(int64_t n)
{
    proa_tensors none = list_capacity(n);
    for (; none.at && none.count < n; none.count++) none.at[none.count] = PROA_NONE;
    return none;
}

/* Calls the function once more on the tape, then backward, with capture open for both, so that hooks and
 * custom functions run as they do eagerly. */
static proa_status capture_joined(const proa_compiled *c, const proa__variant *v, joined *j)
{
    proa_block *b = proa__root(j->program);
    proa_tensors in = list_capacity(c->n_specs), xs = list_capacity(v->n_wants), targets, seeds, grads;
    proa_var **inputs = vars_capacity(c->n_specs);
    if (!in.at || !xs.at || !inputs) return proa_error();
    for (; in.count < c->n_specs; in.count++) {
        inputs[in.count] = proa__input_new(b, &c->specs[in.count], in.count);
        proa_tensor *t = inputs[in.count] ? proa__var_tensor(inputs[in.count]) : NULL;
        if (!t) return proa_error();
        if (v->input_wants[in.count]) PROA_TRY(proa_set_stop_gradient(t, false));
        in.at[in.count] = t;
        if (v->input_wants[in.count]) xs.at[xs.count++] = t;
    }
    PROA_TRY(proa__block_set_inputs(b, inputs, (int32_t)in.count));
    for (int32_t i = 0; i < v->n_trained; i++) xs.at[xs.count++] = v->trained[i];
    proa_block *was = proa__capture_into(b);
    proa_tensors outs = c->fn(in, c->context);
    proa_status status = proa_error();
    if (status == PROA_OK) status = note_outputs(j, outs);
    if (status == PROA_OK) status = make_seeds(j, outs, false, &targets, &seeds);
    if (status == PROA_OK) {
        j->program->role = 1;
        grads = targets.count && xs.count
                    ? proa_grad(targets, xs, seeds, (proa_grad_opts){.allow_unused = true})
                    : nothing_for(xs.count);
        j->program->role = 0;
        status = proa_error();
    }
    proa__capture_into(was);
    return status == PROA_OK ? note_grads(j, grads) : status;
}

/* capture_joined for a program that exists already: its ops are recorded on the tape, then backward is
 * captured. */
static proa_status append_joined(const proa_compiled *c, const proa__variant *v, joined *j,
                                 const proa__hash_map *map)
{
    const proa_block *from = proa__root(c->program);
    proa_tensors outs = list_capacity(from->n_outputs), xs = list_capacity(v->n_wants), targets, seeds,
                 none = {0, NULL};
    if (!outs.at || !xs.at) return proa_error();
    for (; outs.count < from->n_outputs; outs.count++) {
        const proa_var *copy = proa__hash_map_find(map, from->outputs[outs.count]);
        outs.at[outs.count] = copy->handle;
    }
    for (int32_t i = 0; i < from->n_inputs; i++)
        if (v->input_wants[i])
            xs.at[xs.count++] = ((proa_var *)proa__hash_map_find(map, from->inputs[i]))->handle;
    for (int32_t i = 0; i < v->n_trained; i++)
        xs.at[xs.count++] = proa__var_behind(j->program, v->trained[i])->handle;
    PROA_TRY(note_outputs(j, outs));
    PROA_TRY(make_seeds(j, outs, true, &targets, &seeds));
    proa_tensors grads = targets.count && xs.count
                             ? proa_program_gradients(j->program, targets, xs, seeds, none)
                             : nothing_for(xs.count);
    PROA_TRY(proa_error());
    return note_grads(j, grads);
}

/* ---- the cut --------------------------------------------------------------------------- */

static bool is_backward(const proa_instr *instr) { return instr->role & 1; }

typedef struct cutting {
    joined *j;
    proa__hash_map later; /* variables that the backward makes or is fed */
    proa__hash_map asked; /* variables that the backward reads of the forward's */
    proa__hash_map known; /* variables that are already in one of the lists */
    proa_var **saved;
    int32_t n_saved, saved_capacity;
    proa_tensor **read;
    int32_t n_read, read_capacity;
    bool *again; /* by op: a zero-cost view that the backward recomputes */
} cutting;

static proa_status note_made(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    cutting *c = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    return v ? proa__hash_map_put(&c->later, v, v) : PROA_OK;
}

static proa_status note_var(cutting *c, proa_var *v)
{
    if (v && proa__hash_map_find(&c->later, v)) return proa__hash_map_put(&c->asked, v, v);
    if (!v || proa__hash_map_find(&c->known, v)) return PROA_OK;
    PROA_TRY(proa__hash_map_put(&c->known, v, v));
    if (v->persistable) {
        PROA_TRY(proa__reserve(&c->read, c->n_read, &c->read_capacity, sizeof *c->read));
        c->read[c->n_read++] = v->value;
        return PROA_OK;
    }
    PROA_TRY(proa__reserve(&c->saved, c->n_saved, &c->saved_capacity, sizeof *c->saved));
    c->saved[c->n_saved++] = v;
    return PROA_OK;
}

static proa_status note_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    return note_var(context, proa__slot_var(*slot));
}

/* True for ops that only change the shape, which costs nothing on contiguous tensors. */
static bool is_reshape(const proa_op *op)
{
    static const char *const names[] = {"reshape", "squeeze", "unsqueeze", "flatten"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(op->name, names[i])) return true;
    return false;
}

static proa_var *view_of(const proa_instr *instr)
{
    return proa__slot_var(
        *proa_field_tensor(&instr->op->fields[instr->op->n_in + instr->op->n_attr], instr->args));
}

/* Marks the forward's free views: the backward makes them again from their bases, so that no copy of a view
 * is saved. */
static proa_status find_views(cutting *c)
{
    const proa_block *b = proa__root(c->j->program);
    proa__hash_map turned = {0}; /* variables that are not contiguous */
    proa_status status = PROA_OK;
    c->again = proa__calloc((size_t)b->n_ops + 1);
    if (!c->again) return proa_error();
    for (int32_t i = 0; i < b->n_ops && status == PROA_OK; i++) {
        const proa_op *op = b->ops[i].op;
        bool turns = !strcmp(op->name, "transpose");
        if (is_backward(&b->ops[i]) || (!turns && !is_reshape(op))) continue;
        const proa_var *x = proa__slot_var(*proa_field_tensor(op->fields, b->ops[i].args));
        proa_var *v = view_of(&b->ops[i]);
        if (!x || !v || v->persistable || (!turns && proa__hash_map_find(&turned, x))) continue;
        c->again[i] = true;
        if (turns || proa__hash_map_find(&turned, x)) status = proa__hash_map_put(&turned, v, v);
    }
    proa__hash_map_clear(&turned);
    return status;
}

/* Finds the forward's values that the backward reads. Where it reads a free view, the view's base is
 * saved. */
static proa_status find_saved(cutting *c)
{
    const proa_block *b = proa__root(c->j->program);
    PROA_TRY(find_views(c));
    for (int32_t i = 0; i < c->j->n_seeds; i++) PROA_TRY(proa__hash_map_put(&c->later, c->j->seeds[i], c));
    for (int32_t i = 0; i < b->n_ops; i++)
        if (is_backward(&b->ops[i]) || c->again[i])
            PROA_TRY(proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_OUT, note_made, c));
    for (int32_t i = 0; i < c->j->n_grads; i++)
        if (c->j->grads[i] && !c->j->grads[i]->persistable) PROA_TRY(note_var(c, c->j->grads[i]));
    for (int32_t i = b->n_ops - 1; i >= 0; i--) { /* readers come first */
        if (c->again[i]) c->again[i] = proa__hash_map_find(&c->asked, view_of(&b->ops[i]));
        if (is_backward(&b->ops[i]) || c->again[i])
            PROA_TRY(proa__args_visit_reads(b->ops[i].op, b->ops[i].args, note_read, c));
    }
    return PROA_OK;
}

/* Removes the ops of the other half; views that the backward recomputes stay in both. */
static void leave_ops(proa_block *b, bool backward, const bool *again)
{
    int32_t n = 0;
    for (int32_t i = 0; i < b->n_ops; i++) {
        if (is_backward(&b->ops[i]) != backward && !(backward && again[i])) proa__instr_clear(&b->ops[i]);
        else b->ops[n++] = b->ops[i];
    }
    b->n_ops = n;
}

/* Makes an executor of one half: a copy of the joint program without the other half's ops. */
static proa_executor *half(const cutting *c, bool backward, proa_var *const *inputs, int32_t n_inputs,
                           proa_var *const *outputs, int32_t n_outputs)
{
    const joined *j = c->j;
    proa__hash_map map = {0};
    proa_program *p = proa__program_copy(j->program, &map);
    proa_var **in = vars_capacity(n_inputs), **out = vars_capacity(n_outputs);
    proa_status status = p && in && out ? PROA_OK : proa_error();
    if (status == PROA_OK) {
        for (int32_t i = 0; i < n_inputs; i++) in[i] = proa__hash_map_find(&map, inputs[i]);
        for (int32_t i = 0; i < n_outputs; i++) {
            out[i] = proa__hash_map_find(&map, outputs[i]);
            if (out[i]) out[i]->stale = false; /* outputs were checked when they were captured */
        }
        leave_ops(proa__root(p), backward, c->again);
        p->differentiated = !backward;
        status = proa__block_set_inputs(proa__root(p), in, n_inputs);
    }
    if (status == PROA_OK) status = proa__block_set_outputs(proa__root(p), out, n_outputs);
    if (status == PROA_OK) status = proa__program_prune(p, true);
    if (status == PROA_OK) status = proa__passes_run(p, NULL, false);
    proa__hash_map_clear(&map);
    proa_executor *e = status == PROA_OK ? proa__executor_of(proa__root(p), p) : NULL;
    if (!e) proa_program_free(p);
    return e;
}

static proa_status make_forward(const cutting *c, proa__variant *v)
{
    const joined *j = c->j;
    const proa_block *b = proa__root(j->program);
    proa_var **out = vars_capacity(j->n_outputs + c->n_saved), **in = vars_capacity(v->n_inputs);
    if (!out || !in) return proa_error();
    for (int32_t i = 0; i < j->n_outputs; i++) out[i] = j->outputs[i];
    for (int32_t i = 0; i < c->n_saved; i++) out[j->n_outputs + i] = c->saved[i];
    for (int32_t i = 0; i < v->n_inputs; i++) in[i] = b->inputs[i];
    v->n_saved = c->n_saved;
    v->forward = half(c, false, in, v->n_inputs, out, j->n_outputs + c->n_saved);
    return v->forward ? PROA_OK : proa_error();
}

static proa_status make_backward(const cutting *c, proa__variant *v)
{
    const joined *j = c->j;
    proa_var **in = vars_capacity(c->n_saved + j->n_seeds), **out = vars_capacity(j->n_grads);
    v->result = proa__alloc(((size_t)v->n_wants + 1) * sizeof *v->result);
    v->want = proa__alloc(((size_t)v->n_wants + 1) * sizeof *v->want);
    if (!in || !out || !v->result || !v->want) return proa_error();
    for (int32_t i = 0; i < c->n_saved; i++) in[i] = c->saved[i];
    for (int32_t i = 0; i < j->n_seeds; i++) in[c->n_saved + i] = j->seeds[i];
    int32_t n = 0, at = 0;
    for (int32_t i = 0; i < v->n_wants; i++) {
        bool wanted = i >= v->n_inputs || v->input_wants[i];
        const proa_var *g = wanted ? j->grads[at++] : NULL;
        v->result[i] = g ? n : -1;
        if (!g) continue;
        v->want[n] = i;
        out[n++] = (proa_var *)(uintptr_t)g;
    }
    if (!n) return PROA_OK;
    v->backward = half(c, true, in, c->n_saved + j->n_seeds, out, n);
    if (!v->backward) return proa_error();
    proa__executor_announce(v->backward);
    return PROA_OK;
}

static proa_status cut(joined *j, proa__variant *v)
{
    cutting c = {.j = j};
    proa_status status = find_saved(&c);
    if (status == PROA_OK) status = make_forward(&c, v);
    if (status == PROA_OK) status = make_backward(&c, v);
    if (status == PROA_OK) proa__executor_keep(v->forward, v->n_saved, v->backward);
    v->read = c.read;
    v->n_read = c.n_read;
    proa__hash_map_clear(&c.later);
    proa__hash_map_clear(&c.asked);
    proa__hash_map_clear(&c.known);
    proa__free(c.saved);
    proa__free(c.again);
    return status;
}

/* Prunes the joint program and runs the passes that need forward and backward together, before the saved
 * values are chosen. */
static proa_status tidy(joined *j)
{
    proa_var **out = vars_capacity(j->n_outputs + j->n_grads);
    if (!out) return proa_error();
    int32_t n = 0;
    for (int32_t i = 0; i < j->n_outputs; i++) out[n++] = j->outputs[i];
    for (int32_t i = 0; i < j->n_grads; i++)
        if (j->grads[i]) out[n++] = j->grads[i];
    PROA_TRY(proa__block_set_outputs(proa__root(j->program), out, n));
    PROA_TRY(proa__program_prune(j->program, true));
    return proa__passes_run_whole(j->program);
}

/* ---- variants -------------------------------------------------------------------------- */

void proa__variant_release(proa__variant *v)
{
    if (!v || atomic_fetch_sub(&v->refs, 1) != 1) return;
    proa_executor_free(v->forward);
    proa_executor_free(v->backward);
    proa__free(v->input_wants);
    proa__free(v->trained);
    proa__free(v->result);
    proa__free(v->want);
    proa__free(v->read);
    proa__free(v);
}

static proa__variant *new_variant(const proa_compiled *c, proa_tensors inputs)
{
    proa__variant *v = proa__calloc(sizeof *v);
    if (!v) return NULL;
    atomic_init(&v->refs, 1);
    v->input_wants = proa__calloc((size_t)inputs.count + 1);
    v->trained = proa__calloc(((size_t)c->n_persistables + 1) * sizeof(proa_tensor *));
    if (!v->input_wants || !v->trained) {
        proa__variant_release(v);
        return NULL;
    }
    v->n_inputs = (int32_t)inputs.count;
    for (int32_t i = 0; i < v->n_inputs; i++) v->input_wants[i] = wants(inputs.at[i]);
    for (int32_t i = 0; i < c->n_persistables; i++)
        if (wants(c->persistables[i])) v->trained[v->n_trained++] = c->persistables[i];
    v->n_wants = v->n_inputs + v->n_trained;
    return v;
}

static proa_status build(const proa_compiled *c, proa__variant *v)
{
    joined j = {0};
    proa__hash_map map = {0};
    proa_status status;
    bool recording = proa_set_recording(c->fn != NULL);
    j.program = c->fn ? proa__program_new() : proa__program_copy(c->program, &map);
    PROA_SCOPE {
        status = !j.program ? proa_error() : c->fn ? capture_joined(c, v, &j) : append_joined(c, v, &j, &map);
        if (status == PROA_OK) status = tidy(&j);
        if (status == PROA_OK) status = cut(&j, v);
    }
    proa_set_recording(recording);
    proa_program_free(j.program);
    proa__hash_map_clear(&map);
    return status;
}

/* Drops the least recently used variant if PROA__VARIANTS are kept, to make space for one more. */
static void make_place(proa_compiled *c)
{
    int32_t oldest = 0;
    if (c->n_variants < PROA__VARIANTS) return;
    for (int32_t i = 1; i < c->n_variants; i++)
        if (c->variants[i]->used < c->variants[oldest]->used) oldest = i;
    proa__variant_release(c->variants[oldest]);
    c->variants[oldest] = c->variants[--c->n_variants];
}

proa__variant *proa__variant_for(proa_compiled *c, proa_tensors inputs)
{
    for (int32_t i = 0; i < c->n_variants; i++)
        if (fits(c, c->variants[i], inputs)) {
            c->variants[i]->used = ++c->clock;
            return c->variants[i];
        }
    if (proa__reserve(&c->variants, c->n_variants, &c->variants_capacity, sizeof *c->variants) != PROA_OK)
        return NULL;
    proa__variant *v = new_variant(c, inputs);
    if (!v || build(c, v) != PROA_OK) {
        proa__variant_release(v);
        return NULL;
    }
    make_place(c);
    v->used = ++c->clock;
    return c->variants[c->n_variants++] = v;
}
