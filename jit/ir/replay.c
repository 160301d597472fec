/* Program transforms by replay: sends a program's ops, in order, through the doors into fresh blocks that
 * replace the old ones. May use core and ops. */
#include "program.h"

#include "core/internal.h"
#include "core/op_device.h"
#include "core/run.h"
#include "core/args_visit.h"

typedef struct pair {
    proa_var *old, *fresh; /* `fresh` replaces `old` and takes over its name and identity */
} pair;

typedef struct replay {
    proa_program *program;
    const proa__replay_hook *hook;
    proa_block *old;        /* the blocks before the replay, by index */
    int32_t *shared;        /* how many variables, from the first on, each fresh block has from the old one */
    bool *opened;           /* blocks that have been replaced */
    proa__hash_map values;  /* old variable → tensor that now replaces it */
    proa__hash_map renamed; /* fresh variable → old one */
    proa__hash_map stale;   /* inputs that were marked stale; at the start of the replay none is */
    pair *pairs;
    int32_t n_pairs, pairs_capacity;
    proa_tensor **slots; /* of one op's outputs */
    int64_t n_slots, capacity;
} replay;

/* ---- blocks ---------------------------------------------------------------------------- */

/* Empties a block except for its inputs and persistables, whose variables stay. */
static proa_status open_block(replay *r, proa_block *b)
{
    proa_block *old = &r->old[b->index];
    *old = *b;
    r->opened[b->index] = true;
    b->ops = NULL;
    b->vars = NULL;
    b->n_ops = b->ops_capacity = b->n_vars = b->vars_capacity = 0;
    b->names = (proa__hash_map){.by_text = true};
    for (int32_t i = 0; i < old->n_vars; i++) {
        proa_var *v = old->vars[i];
        if (!v->persistable && !v->is_input) continue;
        PROA_TRY(proa__reserve(&b->vars, b->n_vars, &b->vars_capacity, sizeof *b->vars));
        PROA_TRY(proa__hash_map_put(&b->names, v->name, v));
        if (v->stale) PROA_TRY(proa__hash_map_put(&r->stale, v, v));
        v->stale = false;
        v->index = b->n_vars;
        b->vars[b->n_vars++] = v;
        r->shared[b->index] = b->n_vars;
    }
    return PROA_OK;
}

static void drop_ops(proa_block *b)
{
    for (int32_t i = 0; i < b->n_ops; i++) proa__instr_clear(&b->ops[i]);
    proa__free(b->ops);
}

/* Puts the old blocks back. */
static void undo(replay *r)
{
    for (int32_t k = 0; k < r->program->n_blocks; k++) {
        if (!r->opened[k]) continue;
        proa_block *b = r->program->blocks[k];
        drop_ops(b);
        for (int32_t i = 0; i < r->shared[k]; i++)
            b->vars[i]->stale = proa__hash_map_find(&r->stale, b->vars[i]) != NULL;
        for (int32_t i = r->shared[k]; i < b->n_vars; i++) proa__var_free(b->vars[i]);
        proa__free(b->vars);
        proa__hash_map_clear(&b->names);
        *b = r->old[k];
    }
    proa__program_reindex(r->program);
}

/* ---- one op ---------------------------------------------------------------------------- */

/* The tensor that replaces an old variable: its op's new result; for inputs and persistables the variable
 * itself. */
static proa_tensor *value_of(replay *r, proa_var *v)
{
    proa_tensor *t = proa__hash_map_find(&r->values, v);
    if (t) return t;
    if (v->persistable && v->value) return v->value;
    if (!v->persistable && !v->is_input) {
        proa_fail(PROA_ERR_BAD_STATE, "replay: %s is read before an op makes it", v->name);
        return NULL;
    }
    t = proa__var_tensor(v);
    return t && proa__hash_map_put(&r->values, v, t) == PROA_OK ? t : NULL;
}

static proa_status map_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    if (!v) return PROA_OK;
    proa_tensor *t = value_of(context, v);
    if (!t) return proa_error();
    proa__slot_set(slot, t);
    return PROA_OK;
}

static proa_status collect(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    replay *r = context;
    (void)f, (void)index;
    if (r->n_slots == r->capacity) {
        int64_t capacity = r->capacity ? r->capacity * 2 : 16;
        proa_tensor **grown = proa__realloc(r->slots, (size_t)capacity * sizeof(proa_tensor *));
        if (!grown) return proa_error();
        r->slots = grown;
        r->capacity = capacity;
    }
    r->slots[r->n_slots++] = *slot;
    return PROA_OK;
}

/* Clears the outputs of owned args, except a single output that is written to a persistable. An output that
 * overwrites an input is cleared, too: the call takes it from the input. */
static proa_status clear_outputs(replay *r, const proa_instr *instr, void *args)
{
    const proa_op *op = instr->op;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensor **slot = proa__field_one(f, args);
        proa_var *v = slot ? proa__slot_var(*slot) : NULL;
        bool in_place = v && v->persistable && !(f->flags & PROA_FIELD_MUTATED);
        proa_tensor *given = in_place ? value_of(r, v) : NULL;
        if (in_place && !given) return proa_error();
        if (in_place) proa__slot_set(slot, given);
        else proa__output_clear(f, args);
    }
    return PROA_OK;
}

typedef struct outcome {
    replay *replay;
    proa_block *block;
    int64_t at;
} outcome;

/* Notes which new tensor replaces an old output. */
static proa_status note_output(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    outcome *o = context;
    replay *r = o->replay;
    (void)f, (void)index;
    proa_tensor *t = o->at < r->n_slots ? r->slots[o->at] : NULL;
    o->at++;
    proa_var *old = proa__slot_var(*slot);
    if (!old || old->persistable) return PROA_OK;
    /* no longer made (dropout's mask in a clone for testing): a reader of it fails in value_of */
    if (proa__slot_empty(t)) return PROA_OK;
    PROA_TRY(proa__hash_map_put(&r->values, old, t));
    if (old->is_input)
        return PROA_OK; /* an overwritten input stays the input; its new version is another variable */
    proa_var *fresh = t->flags & PROA_T_SYMBOLIC ? t->var : NULL;
    if (!fresh || fresh->persistable || fresh->is_input || proa__hash_map_find(&r->renamed, fresh))
        return PROA_OK;
    if (fresh->index >= o->block->n_vars || o->block->vars[fresh->index] != fresh) return PROA_OK;
    PROA_TRY(proa__reserve(&r->pairs, r->n_pairs, &r->pairs_capacity, sizeof *r->pairs));
    PROA_TRY(proa__hash_map_put(&r->renamed, fresh, old));
    r->pairs[r->n_pairs++] = (pair){old, fresh};
    return PROA_OK;
}

static proa_status replay_ops(replay *r, int32_t index);

/* Replays the op's sub-blocks first, since the op's outputs depend on theirs. */
static proa_status replay_inner(replay *r, const proa_instr *instr, int32_t index)
{
    for (int i = 0; i < instr->op->n_fields; i++) {
        const proa_field *f = &instr->op->fields[i];
        if (f->kind != PROA_FIELD_BLOCK) continue;
        const proa_block *inner = *(proa_block *const *)proa_field_at(f, instr->args);
        if (inner && inner->index != index && !r->opened[inner->index]) PROA_TRY(replay_ops(r, inner->index));
    }
    return PROA_OK;
}

static proa_status replay_op(replay *r, proa_block *b, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    char args[PROA_ARGS_MAX] __attribute__((aligned(16)));
    PROA_TRY(replay_inner(r, instr, b->index));
    void *owned = proa__args_copy(op, instr->args);
    if (!owned) return proa_error();
    r->program->role = instr->role;
    r->program->marks = instr->marks;
    proa__op_device = instr->device;
    proa_status status = proa__args_visit_reads(op, owned, map_read, r);
    if (status == PROA_OK) status = clear_outputs(r, instr, owned);
    memcpy(args, owned, op->args_size);
    if (status == PROA_OK)
        status =
            r->hook && r->hook->op ? r->hook->op(b, instr, args, r->hook->context) : proa_call_op(op, args);
    r->n_slots = 0;
    if (status == PROA_OK) status = proa__args_visit(op, args, PROA_OUT, collect, r);
    outcome o = {r, b, 0};
    if (status == PROA_OK) status = proa__args_visit(op, instr->args, PROA_OUT, note_output, &o);
    proa__args_free(op, owned);
    return status;
}

static proa_status replay_ops(replay *r, int32_t index)
{
    proa_block *b = r->program->blocks[index];
    PROA_TRY(open_block(r, b));
    proa_block *was = proa__capture_into(b);
    proa_status status = PROA_OK;
    const proa_block *old = &r->old[index];
    for (int32_t i = 0; status == PROA_OK && i < old->n_ops; i++) status = replay_op(r, b, &old->ops[i]);
    proa__capture_into(was);
    return status;
}

/* ---- replacing the old blocks ------------------------------------------------------------ */

/* Maps the program's outputs to the new variables; nothing can fail after this. */
static proa_status map_outputs(replay *r)
{
    proa_program *p = r->program;
    for (int32_t i = 0; i < proa__root(p)->n_outputs; i++) {
        proa_tensor *t = value_of(r, proa__root(p)->outputs[i]);
        if (!t) return proa_error();
        proa_var *v = t->flags & PROA_T_SYMBOLIC ? t->var : proa__var_of_concrete(p->blocks[0], t);
        if (!v) return proa_error();
        PROA_TRY(collect(&v->handle, NULL, 0, r));
    }
    return PROA_OK;
}

/* The old variable takes the fresh one's index, handle and shape, and gives the handle its name. */
static void take_identity(proa_var *old, proa_var *fresh)
{
    char *name = old->handle->name;
    old->handle->name = fresh->handle->name;
    fresh->handle->name = name;
    old->handle->var = NULL;
    proa_release(old->handle);
    old->handle = fresh->handle;
    old->handle->var = old;
    old->handle->var_serial = old->serial;
    old->root = fresh->root;
    old->stale = fresh->stale;
    fresh->handle = NULL;
    proa__var_free(fresh);
}

static void adopt(replay *r)
{
    proa_program *p = r->program;
    for (int32_t k = 0; k < p->n_blocks; k++) {
        proa_block *b = p->blocks[k];
        for (int32_t i = 0; i < b->n_vars; i++) {
            proa_var *root = b->vars[i]->root;
            proa_var *renamed = root ? proa__hash_map_find(&r->renamed, root) : NULL;
            if (renamed) b->vars[i]->root = renamed;
        }
        for (int32_t i = 0; i < b->n_vars; i++) {
            proa_var *fresh = b->vars[i], *old = proa__hash_map_find(&r->renamed, fresh);
            if (!old) continue;
            take_identity(old, fresh);
            b->vars[i] = old;
        }
    }
}

static void finish(replay *r)
{
    proa_program *p = r->program;
    for (int32_t i = 0; i < proa__root(p)->n_outputs; i++) { /* collected by map_outputs */
        proa_var *v = r->slots[i]->var, *old = proa__hash_map_find(&r->renamed, v);
        proa__root(p)->outputs[i] = old ? old : v;
    }
    for (int32_t k = 0; k < p->n_blocks; k++) {
        if (!r->opened[k]) continue;
        proa_block *old = &r->old[k];
        drop_ops(old);
        for (int32_t i = 0; i < old->n_vars; i++) {
            proa_var *v = old->vars[i];
            if (!v->persistable && !v->is_input && proa__hash_map_find(&r->values, v) != r) proa__var_free(v);
        }
        proa__free(old->vars);
        proa__hash_map_clear(&old->names);
    }
}

static proa_status replay_all(replay *r)
{
    proa_program *p = r->program;
    for (int32_t k = 0; k < p->n_blocks; k++)
        if (!r->opened[k]) PROA_TRY(replay_ops(r, k));
    r->n_slots = 0;
    PROA_TRY(map_outputs(r));
    return proa_error();
}

proa_status proa__program_replay(proa_program *p, const proa__replay_hook *hook)
{
    PROA_TRY(proa_error());
    size_t n = (size_t)p->n_blocks;
    replay r = {.program = p, .hook = hook};
    r.old = proa__calloc(n * sizeof *r.old);
    r.shared = proa__calloc(n * sizeof *r.shared);
    r.opened = proa__calloc(n * sizeof *r.opened);
    int32_t role = p->role, device = proa__op_device;
    uint32_t marks = p->marks;
    bool recording = proa_door_set(PROA_DOOR_RECORD, false);
    proa_status status = r.old && r.shared && r.opened ? PROA_OK : proa_error();
    PROA_SCOPE {
        if (status == PROA_OK) {
            status = replay_all(&r);
            if (status == PROA_OK) {
                /* Marks the old variables that survive; their keys exist already, so this cannot fail. */
                for (int32_t i = 0; i < r.n_pairs; i++) proa__hash_map_put(&r.values, r.pairs[i].old, &r);
                finish(&r);
                adopt(&r);
                status = proa__program_reindex(p);
            } else {
                undo(&r);
            }
        }
    }
    proa_door_set(PROA_DOOR_RECORD, recording);
    p->role = role;
    p->marks = marks;
    proa__op_device = device;
    proa__hash_map_clear(&r.values);
    proa__hash_map_clear(&r.renamed);
    proa__hash_map_clear(&r.stale);
    proa__free(r.pairs);
    proa__free(r.slots);
    proa__free(r.old);
    proa__free(r.shared);
    proa__free(r.opened);
    return status;
}

/* ---- mixed precision ------------------------------------------------------------------- */

static proa_status recast_op(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    const bool *marked_only = context;
    (void)block;
    bool was = proa_door_set(PROA_DOOR_CONVERT, !*marked_only || instr->marks & 1);
    proa_status status = proa_call_op(instr->op, args);
    proa_door_set(PROA_DOOR_CONVERT, was);
    return status;
}

proa_status proa_program_recast(proa_program *p, bool marked_only)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_recast: NULL");
    p->version++;
    return proa__program_replay(p, &(proa__replay_hook){recast_op, &marked_only});
}

/* ---- inputs of another shape or dtype --------------------------------------------------- */

static void take_shape(proa_tensor *handle, const proa_tensor *like)
{
    handle->dtype = like->dtype;
    handle->ndim = like->ndim;
    handle->numel = like->numel;
    memcpy(handle->shape, like->shape, sizeof handle->shape);
    memcpy(handle->strides, like->strides, sizeof handle->strides);
}

/* Gives the variable of an input another meta; *was gets a tensor of the old one. */
static proa_status change_input(proa_program *p, const proa_tensor *input, proa_ints shape, proa_dtype dtype,
                                proa_var **changed, const proa_tensor **was)
{
    proa_var *v = input ? proa__var_behind(p, input) : NULL;
    if (!v || !v->is_input || shape.count < 0 || shape.count > PROA_MAX_DIMS)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "program_reshape_inputs: needs inputs of the program and at most %d dims",
                         PROA_MAX_DIMS);
    proa_meta before = proa_meta_of(v->handle),
              meta = {.dtype = dtype ? dtype : before.dtype, .ndim = (int8_t)shape.count};
    for (int i = 0; i < meta.ndim; i++) meta.shape[i] = shape.at[i];
    const proa_tensor *now = proa__tensor_bare(&meta, PROA_T_SYMBOLIC);
    if (!now || !(*was = proa__tensor_bare(&before, PROA_T_SYMBOLIC))) return proa_error();
    take_shape(v->handle, now);
    *changed = v;
    return PROA_OK;
}

proa_status proa_program_reshape_inputs(proa_program *p, proa_tensors inputs, const proa_ints *shapes,
                                        const proa_dtype *dtypes)
{
    PROA_TRY(proa_error());
    if (!p || inputs.count < 0 || (inputs.count && (!shapes || !dtypes)))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "program_reshape_inputs: needs a program, and a shape and a dtype an input");
    PROA_SCOPED;
    size_t n = (size_t)inputs.count + 1;
    proa_var **changed = proa_scope_alloc(n * sizeof(proa_var *));
    const proa_tensor **was = proa_scope_alloc(n * sizeof(proa_tensor *));
    if (!changed || !was) return proa_error();
    int64_t done = 0;
    proa_status status = PROA_OK;
    for (; done < inputs.count && status == PROA_OK; done += status == PROA_OK)
        status = change_input(p, inputs.at[done], shapes[done], dtypes[done], &changed[done], &was[done]);
    p->version++;
    if (status == PROA_OK) status = proa__program_replay(p, NULL);
    while (status != PROA_OK && done-- > 0) take_shape(changed[done]->handle, was[done]);
    return status;
}

proa_status proa_program_reshape_input(proa_program *p, const proa_tensor *input, proa_ints shape,
                                       proa_dtype dtype)
{
    proa_tensor *one = (proa_tensor *)(uintptr_t)input;
    return proa_program_reshape_inputs(p, (proa_tensors){.count = 1, .at = &one}, &shape, &dtype);
}

/* ---- marks ------------------------------------------------------------------------------- */

bool proa_program_mark(proa_program *p, bool mark)
{
    bool was = p && p->marks & 1;
    if (p) p->marks = mark;
    return was;
}
