/* The capture door (dispatch layer): while a block of a program is open, an op call appends an op to that
 * block, with fresh variables as outputs, instead of running a kernel. May use core and ops. */
#include "jit/ir/program.h"

#include "core/internal.h"
#include "core/run.h"
#include "core/args_visit.h"

static _Thread_local proa_block *open_block;

proa_block *proa__capture_block(void) { return open_block; }

proa_block *proa__capture_into(proa_block *b)
{
    proa_block *was = open_block;
    open_block = b;
    if (b) b->program->current = b->index;
    proa_door_set(PROA_DOOR_CAPTURE, b != NULL);
    return was;
}

/* An output slot of a call while it is captured. */
typedef struct result {
    proa_var *var;         /* in the stored args; NULL: absent */
    proa_tensor *handle;   /* in the caller's args */
    proa_var *overwritten; /* the version that an in-place op replaces, or the persistable written */
    proa_var *declared;    /* a declared variable without an op so far, which this op makes */
} result;

typedef struct recording {
    proa_block *block;
    proa_call *call;
    void *stored;
    result *results;
    int64_t count, at;
} recording;

/* ---- memory that variables share ------------------------------------------------------- */

static proa_var *root_of(proa_var *v) { return v->root ? v->root : v; }

/* Checks that overwriting `v` gives the same results in a program as in eager execution. */
static proa_status check_write(const proa_op *op, const proa_field *f, const proa_var *v)
{
    if (!v->root || !(v->root->persistable || v->root->is_input)) return PROA_OK;
    return proa__op_fail(PROA_ERR_BAD_STATE, op, f->name,
                         "writes in place to a view of %s, which a program cannot follow; "
                         "write with set_value or a scatter op instead",
                         v->root->name);
}

/* After a write to v's memory: marks the old version of v, and other variables in that memory, as
 * unreadable. */
static void mark_stale(proa_block *b, proa_var *v)
{
    proa_var *root = root_of(v);
    for (; b; b = b->parent >= 0 ? b->program->blocks[b->parent] : NULL)
        for (int32_t i = 0; i < b->n_vars; i++)
            if (b->vars[i] != v && root_of(b->vars[i]) == root) b->vars[i]->stale = true;
    if (!v->persistable) v->stale = true;
}

/* ---- outputs --------------------------------------------------------------------------- */

static bool fits(const proa_meta *m, const proa_tensor *t)
{
    if (m->dtype != (proa_dtype)t->dtype || m->ndim != t->ndim) return false;
    for (int i = 0; i < t->ndim; i++)
        if (m->shape[i] != t->shape[i] && m->shape[i] >= 0 && t->shape[i] >= 0) return false;
    return true;
}

/* Makes a new variable, and a handle on it for the caller. */
static proa_status make_result(recording *r, const proa_meta *meta, result *to)
{
    to->var = proa__var_new(r->block, NULL, meta);
    if (!to->var) return proa_error();
    if (!to->handle) to->handle = proa__var_tensor(to->var);
    return to->handle ? PROA_OK : proa_error();
}

/* Records an output in the memory of `t`. A persistable keeps its variable; anything else gets a new variable
 * as its next version, and t becomes a handle on that. */
static proa_status overwrite(recording *r, const proa_field *f, const proa_meta *meta, proa_tensor *t,
                             result *to)
{
    const proa_op *op = r->call->op;
    proa_meta same = proa_meta_of(t);
    proa_var *v = proa__var_behind(r->block->program, t);
    if (v && v->unmade && v->block == r->block->index) {
        to->handle = t;
        to->declared = v;
        return make_result(r, meta ? meta : &same, to);
    }
    v = proa__var_of(r->block, t, op, f->name);
    if (!v) return proa_error();
    bool reshapes = op->flags & PROA_OP_VIEW;
    to->handle = t;
    if (reshapes && v->persistable)
        return proa__op_fail(PROA_ERR_UNSUPPORTED, op, f->name,
                             "changes the shape of %s in place, which a program cannot keep", v->name);
    if (!reshapes) {
        PROA_TRY(check_write(op, f, v));
        if (meta && !fits(meta, t))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                                 "in place must be %s%s, but its memory is %s", proa_dtype_name(meta->dtype),
                                 proa__shape_text(meta->shape, meta->ndim), proa__tensor_text(t));
        to->overwritten = v;
    }
    if (v->persistable) {
        to->var = v;
        return PROA_OK;
    }
    PROA_TRY(make_result(r, reshapes && meta ? meta : &same, to));
    return PROA_OK;
}

static proa_status plan_tensor(recording *r, const proa_field *f, const proa_meta *meta)
{
    result *to = &r->results[r->count++];
    proa_tensor **out = proa_field_tensor(f, r->call->args);
    if (f->flags & PROA_FIELD_MUTATED)
        *out = *proa_field_tensor(&r->call->op->fields[f->alias], r->call->args);
    if (!proa__slot_empty(*out)) return overwrite(r, f, meta->ndim < 0 ? NULL : meta, *out, to);
    if (meta->ndim < 0 || f->flags & PROA_FIELD_MUTATED) {
        *out = to->handle = proa_none;
        return PROA_OK;
    }
    PROA_TRY(make_result(r, meta, to));
    *out = to->handle;
    return PROA_OK;
}

static proa_status plan_list(recording *r, const proa_field *f, const proa_metas *metas)
{
    proa_tensors *list = proa_field_tensors(f, r->call->args);
    if (f->flags & PROA_FIELD_MUTATED)
        *list = *proa_field_tensors(&r->call->op->fields[f->alias], r->call->args);
    if (list->at) {
        for (int64_t i = 0; i < list->count; i++) {
            result *to = &r->results[r->count++];
            if (proa__absent(list->at[i])) to->handle = proa_none;
            else PROA_TRY(overwrite(r, f, NULL, list->at[i], to));
        }
        return PROA_OK;
    }
    if (!metas->count) return PROA_OK;
    list->at = proa_scope_alloc((size_t)metas->count * sizeof *list->at);
    if (!list->at) return proa_error();
    for (; list->count < metas->count; list->count++) {
        result *to = &r->results[r->count++];
        to->handle = NULL;
        if (metas->at[list->count].ndim < 0) to->handle = proa_none;
        else PROA_TRY(make_result(r, &metas->at[list->count], to));
        list->at[list->count] = to->handle;
    }
    return PROA_OK;
}

/* An upper bound of the number of the call's output slots. */
static int64_t count_slots(const proa_call *call, void *metas)
{
    const proa_op *op = call->op;
    proa__meta_ref m = proa__meta_first(metas);
    int64_t n = 0;
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        if (!proa__makes_list(f)) n++;
        else if (f->flags & PROA_FIELD_MUTATED)
            n += proa_field_tensors(&op->fields[f->alias], call->args)->count;
        else n += m.list->count + proa_field_tensors(f, call->args)->count;
        m = proa__meta_next(m, f);
    }
    return n;
}

static proa_status plan_outputs(recording *r, void *metas)
{
    const proa_op *op = r->call->op;
    int64_t n = count_slots(r->call, metas);
    r->results = proa_scope_alloc(((size_t)n + 1) * sizeof *r->results);
    if (!r->results) return proa_error();
    memset(r->results, 0, ((size_t)n + 1) * sizeof *r->results);
    proa__meta_ref m = proa__meta_first(metas);
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        PROA_TRY(proa__makes_list(f) ? plan_list(r, f, m.list) : plan_tensor(r, f, m.one));
        m = proa__meta_next(m, f);
    }
    return PROA_OK;
}

/* ---- storing the op -------------------------------------------------------------------- */

static proa_status store_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const recording *r = context;
    (void)index;
    if (proa__slot_empty(*slot)) return PROA_OK;
    if ((*slot)->kind != PROA_DENSE)
        return proa__op_fail(PROA_ERR_UNSUPPORTED, r->call->op, f->name,
                             "is no dense tensor; a program's constants are dense");
    proa_var *v = proa__var_of(r->block, *slot, r->call->op, f->name);
    if (!v) return proa_error();
    if (v->block != r->block->index) PROA_TRY(proa__block_reads(r->block, v, *slot));
    proa__slot_set(slot, v->handle);
    return PROA_OK;
}

static proa_status store_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    recording *r = context;
    (void)f, (void)index;
    const result *to = &r->results[r->at++];
    proa__slot_set(slot, to->var ? to->var->handle : proa_none);
    return PROA_OK;
}

/* Hands on the sequence offsets (LoD) of an input's rows to the outputs, for ops that keep sequences. */
static proa_status share_lod(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const proa_tensor *like = context;
    proa_var *out = proa__slot_var(*slot);
    (void)f, (void)index;
    if (out && out != like->var && out->handle->ndim > 0 && out->handle->shape[0] == like->shape[0])
        return proa__lod_share(out, like->var);
    return PROA_OK;
}

static proa_status keep_lod(const proa_op *op, void *stored)
{
    const proa_field *f = op->fields;
    if (!(op->flags & PROA_OP_LOD_SHARE) || op->n_in == 0) return PROA_OK;
    const proa_tensors all = proa__field_all(f, stored);
    proa_tensor *first = all.count ? all.at[0] : NULL;
    const proa_var *v = proa__slot_var(first);
    return v && proa__lod_level(v, 0) ? proa__args_visit(op, stored, PROA_OUT, share_lod, first) : PROA_OK;
}

/* Notes that outputs of a view op share the memory of the op's input. */
static proa_status share_roots(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const recording *r = context;
    (void)index;
    proa_var *out = proa__slot_var(*slot);
    if (!out || !(f->flags & PROA_FIELD_VIEW) || f->alias < 0) return PROA_OK;
    proa_var *base = proa__slot_var(*proa_field_tensor(&r->call->op->fields[f->alias], r->stored));
    if (base && base != out) out->root = root_of(base);
    if (!r->call->op->vjp) out->stop_gradient = true; /* detached */
    return PROA_OK;
}

static void commit(recording *r)
{
    const proa_op *op = r->call->op;
    proa__args_visit(op, r->stored, PROA_OUT, share_roots, r);
    for (int64_t i = 0; i < r->count; i++) {
        const result *to = &r->results[i];
        if (to->overwritten) {
            mark_stale(r->block, to->overwritten);
            if (!(to->handle->flags & PROA_T_SYMBOLIC)) proa__bump_version(to->handle);
        }
        if (to->declared) proa__var_define(r->block, to->declared, to->var);
        if (to->var && to->handle->flags & PROA_T_SYMBOLIC) proa__var_show(to->handle, to->var);
    }
}

/* Stores the thread's default dtype in an op that creates a tensor and is given no dtype: the one at capture,
 * not at the run. */
static void resolve_dtype(const proa_op *op, void *stored, void *metas)
{
    if (op->n_in || !op->n_out || proa__makes_list(&op->fields[op->n_attr])) return;
    for (const proa_field *f = op->fields; f < op->fields + op->n_attr; f++) {
        if (f->kind != PROA_FIELD_DTYPE) continue;
        proa_dtype *dtype = proa_field_at(f, stored);
        if (*dtype == PROA_NODTYPE) *dtype = proa__meta_first(metas).one->dtype;
    }
}

static proa_status store(recording *r)
{
    const proa_op *op = r->call->op;
    char metas[PROA_METAS_MAX] __attribute__((aligned(16)));
    memset(metas, 0, sizeof metas);
    PROA_TRY(proa__infer_call(r->call, metas));
    PROA_TRY(plan_outputs(r, metas));
    r->stored = proa__args_copy(op, r->call->args);
    if (!r->stored) return proa_error();
    resolve_dtype(op, r->stored, metas);
    proa_status status = proa__args_visit_reads(op, r->stored, store_read, r);
    if (status == PROA_OK) status = proa__args_visit(op, r->stored, PROA_OUT, store_write, r);
    if (status != PROA_OK) {
        proa__args_free(op, r->stored);
        return status;
    }
    PROA_TRY(proa__block_take(r->block, op, r->stored));
    commit(r);
    return keep_lod(op, r->stored);
}

static proa_status capture_door(proa_call *call)
{
    if (!open_block) return proa_call_inner(PROA_DOOR_CAPTURE, call);
    const proa_op *op = call->op;
    if (op->args_size > PROA_ARGS_MAX || op->metas_size > PROA_METAS_MAX)
        return proa__op_fail(PROA_ERR_INTERNAL, op, NULL, "has too large an args struct");
    char given[PROA_ARGS_MAX] __attribute__((aligned(16)));
    memcpy(given, call->args, op->args_size);
    recording r = {.block = open_block, .call = call};
    proa_status status = store(&r);
    if (status != PROA_OK) memcpy(call->args, given, op->args_size);
    return status;
}

__attribute__((constructor)) void proa__jit_init(void) { proa_door_install(PROA_DOOR_CAPTURE, capture_door); }

/* ---- capturing a function -------------------------------------------------------------- */

proa_var *proa__input_new(proa_block *b, const proa_input_spec *spec, int64_t i)
{
    proa_dtype dtype = spec->dtype ? spec->dtype : PROA_F32;
    if (spec->shape.count < 0 || spec->shape.count > PROA_MAX_DIMS ||
        (spec->shape.count && !spec->shape.at)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "capture: input %lld needs a shape of at most %d dims",
                  (long long)i, PROA_MAX_DIMS);
        return NULL;
    }
    proa_meta meta = {.dtype = dtype, .ndim = (int8_t)spec->shape.count};
    for (int d = 0; d < meta.ndim; d++) {
        meta.shape[d] = spec->shape.at[d];
        if (meta.shape[d] >= -1) continue;
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "capture: input %lld has the length %lld along axis %d; use -1 "
                  "for any length",
                  (long long)i, (long long)meta.shape[d], d);
        return NULL;
    }
    char name[32] = "x";
    if (spec->name) return proa__var_new(b, spec->name, &meta);
    for (int64_t k = 0; proa__var_find(b, name); k++) snprintf(name, sizeof name, "x_%lld", (long long)k + 1);
    return proa__var_new(b, name, &meta);
}

static proa_status make_inputs(proa_block *b, const proa_input_spec *specs, int64_t n, proa_tensors *to)
{
    proa_var **vars = proa_scope_alloc(((size_t)n + 1) * sizeof *vars);
    to->at = proa_scope_alloc(((size_t)n + 1) * sizeof *to->at);
    if (!vars || !to->at) return proa_error();
    for (; to->count < n; to->count++) {
        vars[to->count] = proa__input_new(b, &specs[to->count], to->count);
        if (!vars[to->count]) return proa_error();
        to->at[to->count] = proa__var_tensor(vars[to->count]);
        if (!to->at[to->count]) return proa_error();
    }
    return proa__block_set_inputs(b, vars, (int32_t)n);
}

static proa_status take_outputs(proa_block *b, proa_tensors outs)
{
    PROA_TRY(proa_error());
    if (outs.count < 1 || outs.count > INT32_MAX || !outs.at)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "capture: the function returned no tensors");
    proa_var **vars = proa_scope_alloc((size_t)outs.count * sizeof *vars);
    if (!vars) return proa_error();
    for (int64_t i = 0; i < outs.count; i++) {
        proa_tensor *t = outs.at[i];
        if (proa__slot_empty(t))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "capture: output %lld is %s", (long long)i,
                             t ? "PROA_NONE" : "NULL");
        vars[i] = t->flags & PROA_T_SYMBOLIC ? proa__var_behind(b->program, t) : proa__var_of_concrete(b, t);
        if (!vars[i])
            return proa_fail(PROA_ERR_BAD_STATE, "capture: output %lld belongs to another program",
                             (long long)i);
    }
    return proa__block_set_outputs(b, vars, (int32_t)outs.count);
}

proa_program *proa_capture(proa_tensors (*fn)(proa_tensors inputs, void *context),
                           const proa_input_spec *inputs, int64_t n_inputs, void *context)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!fn || n_inputs < 0 || n_inputs > INT32_MAX || (n_inputs && !inputs)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "capture: needs a function and the specs of its inputs");
        return NULL;
    }
    proa_program *p = proa__program_new();
    if (!p) return NULL;
    PROA_SCOPE {
        proa_tensors in = {0, NULL};
        if (make_inputs(p->blocks[0], inputs, n_inputs, &in) != PROA_OK) break;
        proa_block *was = proa__capture_into(p->blocks[0]);
        proa_tensors outs = fn(in, context);
        proa__capture_into(was);
        if (take_outputs(p->blocks[0], outs) == PROA_OK) proa__program_prune(p, true);
    }
    if (proa_error() == PROA_OK) return p;
    proa_program_free(p);
    return NULL;
}

proa_status proa_program_prune(proa_program *p)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_prune: NULL");
    return proa__program_prune(p, true);
}
