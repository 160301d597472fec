/* Deep copies of programs, also in evaluation or training mode. Persistable variables of the copy share the
 * original's tensors. May use core and ops. */
#include "program.h"

#include "core/internal.h"
#include "core/args_visit.h"

typedef struct cloning {
    const proa_program *from;
    proa_program *to;
    proa__hash_map *vars; /* old variable → new one */
} cloning;

static proa_status copy_var(cloning *c, proa_block *b, const proa_var *v)
{
    proa_meta meta = proa_meta_of(v->handle);
    proa_var *fresh = proa__var_new(b, v->name, &meta);
    if (!fresh) return proa_error();
    PROA_TRY(proa__hash_map_put(c->vars, v, fresh));
    fresh->persistable = v->persistable;
    fresh->stale = v->stale;
    fresh->unmade = v->unmade;
    fresh->stop_gradient = v->stop_gradient;
    fresh->is_parameter = v->is_parameter;
    fresh->lod_level = v->lod_level;
    fresh->is_lod = v->is_lod;
    return v->value ? proa__var_set_value(b, fresh, v->value) : PROA_OK;
}

static proa_status map_slot(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const cloning *c = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (!v) return PROA_OK;
    const proa_var *fresh = proa__hash_map_find(c->vars, v);
    if (!fresh) return proa_fail(PROA_ERR_INTERNAL, "clone: %s is in no block", v->name);
    proa__slot_set(slot, fresh->handle);
    return PROA_OK;
}

static proa_status copy_op(cloning *c, proa_block *b, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    proa_instr made = *instr;
    made.args = proa__args_copy(op, instr->args);
    if (!made.args) return proa_error();
    proa_status status = proa__args_visit_reads(op, made.args, map_slot, c);
    if (status == PROA_OK) status = proa__args_visit(op, made.args, PROA_OUT, map_slot, c);
    for (int i = 0; i < op->n_fields; i++) {
        if (op->fields[i].kind != PROA_FIELD_BLOCK) continue;
        proa_block **sub = proa_field_at(&op->fields[i], made.args);
        if (*sub) *sub = c->to->blocks[(*sub)->index];
    }
    if (status == PROA_OK) status = proa__reserve(&b->ops, b->n_ops, &b->ops_capacity, sizeof *b->ops);
    if (status != PROA_OK) proa__instr_clear(&made);
    else b->ops[b->n_ops++] = made;
    return status;
}

/* Copies the inputs or outputs of a block. */
static proa_status copy_list(const cloning *c, proa_block *b, proa_var *const *vars, int32_t n,
                             proa_status (*set)(proa_block *, proa_var *const *, int32_t))
{
    proa_var **fresh = proa_scope_alloc(((size_t)n + 1) * sizeof *fresh);
    if (!fresh) return proa_error();
    for (int32_t i = 0; i < n; i++) fresh[i] = proa__hash_map_find(c->vars, vars[i]);
    return set(b, fresh, n);
}

static proa_status copy_blocks(cloning *c)
{
    for (int32_t k = 0; k < c->from->n_blocks; k++) {
        const proa_block *b = c->from->blocks[k];
        if (k && !proa__block_new(c->to, b->parent)) return proa_error();
        for (int32_t i = 0; i < b->n_vars; i++) PROA_TRY(copy_var(c, c->to->blocks[k], b->vars[i]));
    }
    for (int32_t k = 0; k < c->from->n_blocks; k++) {
        const proa_block *b = c->from->blocks[k];
        proa_block *fresh = c->to->blocks[k];
        for (int32_t i = 0; i < b->n_vars; i++) {
            const proa_var *root = b->vars[i]->root;
            fresh->vars[i]->root = root ? proa__hash_map_find(c->vars, root) : NULL;
            if (!b->vars[i]->lod) continue;
            PROA_TRY(proa__lod_reserve(fresh->vars[i]));
            for (int level = 0; level < PROA__LOD_MAX; level++) {
                const proa_var *of = b->vars[i]->lod[level];
                fresh->vars[i]->lod[level] = of ? proa__hash_map_find(c->vars, of) : NULL;
            }
        }
        for (int32_t i = 0; i < b->n_ops; i++) PROA_TRY(copy_op(c, fresh, &b->ops[i]));
        PROA_TRY(copy_list(c, fresh, b->inputs, b->n_inputs, proa__block_set_inputs));
        PROA_TRY(copy_list(c, fresh, b->outputs, b->n_outputs, proa__block_set_outputs));
    }
    return PROA_OK;
}

proa_program *proa__program_copy(const proa_program *p, proa__hash_map *map)
{
    if (proa_error() != PROA_OK) return NULL;
    proa__hash_map own = {0};
    cloning c = {p, proa__program_new(), map ? map : &own};
    if (!c.to) return NULL;
    c.to->next_temporary = p->next_temporary;
    c.to->role = p->role;
    c.to->marks = p->marks;
    c.to->differentiated = p->differentiated;
    proa_status status;
    PROA_SCOPE {
        status = copy_blocks(&c);
    }
    proa__hash_map_clear(&own);
    if (status == PROA_OK) return c.to;
    proa_program_free(c.to);
    return NULL;
}

/* ---- for evaluation, for training ------------------------------------------------------ */

/* Sets the attribute that says whether an op behaves as in training (`training` or `is_test`). */
static void set_mode(const proa_op *op, void *args, bool training)
{
    for (int i = op->n_in; i < op->n_in + op->n_attr; i++) {
        const proa_field *f = &op->fields[i];
        if (f->kind != PROA_FIELD_BOOL) continue;
        if (strcmp(f->name, "training") == 0) *(bool *)proa_field_at(f, args) = training;
        if (strcmp(f->name, "is_test") == 0) *(bool *)proa_field_at(f, args) = !training;
    }
}

static bool only_trains(const proa_instr *instr) { return instr->role & (1 | 2 | 16); }

static void make_test(proa_program *p)
{
    for (int32_t k = 0; k < p->n_blocks; k++) {
        proa_block *b = p->blocks[k];
        int32_t n = 0;
        for (int32_t i = 0; i < b->n_ops; i++) {
            if (only_trains(&b->ops[i])) {
                proa__instr_clear(&b->ops[i]);
                continue;
            }
            set_mode(b->ops[i].op, b->ops[i].args, false);
            b->ops[n++] = b->ops[i];
        }
        b->n_ops = n;
    }
}

proa_program *proa_program_clone(const proa_program *p, bool for_test)
{
    if (!p) proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_clone: the program is NULL");
    proa_program *copy = p ? proa__program_copy(p, NULL) : NULL;
    if (copy && for_test) make_test(copy);
    return copy;
}

/* Sends the op through the doors again, so that outputs that only training has (a dropout's mask) are
 * made. */
static proa_status train_op(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    (void)block, (void)context;
    set_mode(instr->op, args, true);
    return proa_call_op(instr->op, args);
}

proa_program *proa_program_clone_to_train(const proa_program *p)
{
    if (!p) proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_clone_to_train: the program is NULL");
    proa_program *copy = p ? proa__program_copy(p, NULL) : NULL;
    if (!copy || proa__program_replay(copy, &(proa__replay_hook){train_op, NULL}) == PROA_OK) return copy;
    proa_program_free(copy);
    return NULL;
}
