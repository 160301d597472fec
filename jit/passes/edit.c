/* Queries and edits of a block for passes; see edit.h. May use core and ops. */
#include "edit.h"

#include "core/blocked.h"
#include "core/group.h"
#include "core/internal.h"

/* ---- finding --------------------------------------------------------------------------- */

typedef struct finding {
    proa__uses *uses;
    int32_t at;
} finding;

proa__use *proa__use_of(const proa__uses *u, const proa_var *v)
{
    return v && v->index < u->n_vars && u->block->vars[v->index] == v ? &u->of[v->index] : NULL;
}

static proa_status note_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const finding *to = context;
    (void)f, (void)index;
    proa__use *use = proa__use_of(to->uses, proa__slot_var(*slot));
    if (!use) return PROA_OK;
    use->n_reads++;
    use->last_read = to->at;
    return PROA_OK;
}

static proa_status note_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const finding *to = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    proa__use *use = proa__use_of(to->uses, v);
    if (!use) return PROA_OK;
    if (!v->persistable) {
        use->maker = to->at;
        return PROA_OK;
    }
    if (use->first_write == PROA__NOBODY) use->first_write = to->at;
    use->last_write = to->at;
    use->n_writes++;
    return PROA_OK;
}

static void note_overwritten(const proa__uses *u, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    if (!(op->flags & PROA_OP_MUTATES)) return;
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        if (!(f->flags & PROA_FIELD_MUTATED)) continue;
        const proa_tensors all = proa__field_all(&op->fields[f->alias], instr->args);
        for (int64_t k = 0; k < all.count; k++) {
            proa__use *use = proa__use_of(u, proa__slot_var(all.at[k]));
            if (use) use->overwritten = true;
        }
    }
}

static proa_status note_kept(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    proa__use *use = proa__use_of(context, proa__slot_var(*slot));
    if (use) use->kept = true;
    return PROA_OK;
}

/* Notes persistables that another block writes: they may change at any op. */
static proa_status note_foreign_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const finding *to = context;
    (void)f, (void)index;
    proa__use *use = proa__use_of(to->uses, proa__slot_var(*slot));
    if (!use) return PROA_OK;
    use->first_write = 0;
    use->last_write = INT32_MAX;
    use->n_writes++;
    return PROA_OK;
}

static void look_at_others(proa__uses *u)
{
    const proa_program *p = u->block->program;
    finding to = {u, 0};
    for (int32_t k = 0; k < p->n_blocks; k++) {
        const proa_block *other = p->blocks[k];
        for (int32_t i = 0; other != u->block && i < other->n_ops; i++) {
            const proa_instr *instr = &other->ops[i];
            proa__args_visit_reads(instr->op, instr->args, note_kept, u);
            proa__args_visit(instr->op, instr->args, PROA_OUT, note_kept, u);
            proa__args_visit(instr->op, instr->args, PROA_OUT, note_foreign_write, &to);
        }
        for (int32_t i = 0; other != u->block && i < other->n_outputs; i++) {
            proa__use *use = proa__use_of(u, other->outputs[i]);
            if (use) use->kept = true;
        }
    }
}

proa_status proa__uses_find(proa__uses *u, proa_block *b)
{
    *u = (proa__uses){.block = b, .n_vars = b->n_vars};
    u->of = proa__calloc(((size_t)b->n_vars + 1) * sizeof *u->of);
    u->instead = proa__calloc(((size_t)b->n_vars + 1) * sizeof *u->instead);
    if (!u->of || !u->instead) {
        proa__uses_free(u);
        return proa_error();
    }
    for (int32_t i = 0; i < b->n_vars; i++) {
        proa__use *use = &u->of[i];
        use->maker = use->last_read = use->first_write = use->last_write = PROA__NOBODY;
        use->kept = b->vars[i]->is_input;
    }
    finding to = {u, 0};
    for (; to.at < b->n_ops; to.at++) {
        const proa_instr *instr = &b->ops[to.at];
        proa__args_visit_reads(instr->op, instr->args, note_read, &to);
        proa__args_visit(instr->op, instr->args, PROA_OUT, note_write, &to);
        note_overwritten(u, instr);
    }
    look_at_others(u);
    for (int32_t i = 0; i < b->n_outputs; i++) {
        proa__use *use = proa__use_of(u, b->outputs[i]);
        if (use) use->kept = true;
    }
    for (int32_t i = 0; i < b->n_inputs; i++) {
        proa__use *use = proa__use_of(u, b->inputs[i]);
        if (use) use->kept = true;
    }
    return PROA_OK;
}

void proa__uses_free(proa__uses *u)
{
    proa__free(u->of);
    proa__free(u->instead);
    u->of = NULL;
    u->instead = NULL;
}

/* ---- queries ---------------------------------------------------------------------------- */

bool proa__is_value(const proa__uses *u, const proa_var *v)
{
    if (!v) return false;
    if (!v->persistable) return true;
    const proa__use *use = proa__use_of(u, v);
    if (use) return use->first_write == PROA__NOBODY;
    if (v->index < u->block->n_vars && u->block->vars[v->index] == v) return true; /* made by a pass */
    /* A variable of an outer block: the outer ops that write it run before or after this block as a whole,
     * and no op here writes it. */
    return u->block->parent >= 0;
}

bool proa__may_move(const proa__uses *u, const proa_var *v, int32_t from, int32_t to)
{
    if (proa__is_value(u, v)) return true;
    const proa__use *use = proa__use_of(u, v);
    return use && (use->first_write > to || use->last_write < from);
}

bool proa__all_may_move(const proa__uses *u, proa_tensor *const *slots, int n, int32_t from, int32_t to)
{
    for (int i = 0; i < n; i++) {
        const proa_var *v = proa__slot_var(slots[i]);
        if (v && !proa__may_move(u, v, from, to)) return false;
    }
    return true;
}

int32_t proa__only_reader(const proa__uses *u, const proa_var *v)
{
    const proa__use *use = proa__use_of(u, v);
    if (!use || use->kept || v->persistable || v->is_input || use->n_reads != 1) return PROA__NOBODY;
    return use->last_read;
}

bool proa__is_unused(const proa__uses *u, const proa_var *v)
{
    if (!v) return true;
    const proa__use *use = proa__use_of(u, v);
    return use && !use->kept && !v->persistable && use->n_reads == 0;
}

bool proa__same_shape(const proa_tensor *a, const proa_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

bool proa__is_pure(const proa_op *op)
{
    if (op->flags & (PROA_OP_RANDOM | PROA_OP_MUTATES) || !op->n_out) return false;
    if (proa__op_communicates(op)) return false;
    for (int i = 0; i < op->n_fields; i++)
        if (op->fields[i].kind == PROA_FIELD_BLOCK) return false;
    return true;
}

bool proa__is_step(const proa_instr *instr)
{
    size_t n = instr->args ? strlen(instr->op->name) : 0;
    return n > 5 && strcmp(instr->op->name + n - 5, "_step") == 0 && instr->op->flags & PROA_OP_MUTATES &&
           proa__field_list(&instr->op->fields[0], instr->args);
}

/* ---- edits ------------------------------------------------------------------------------ */

proa_var *proa__instead_of(const proa__uses *u, proa_var *v)
{
    return v && v->index < u->n_vars && u->block->vars[v->index] == v && u->instead[v->index]
               ? u->instead[v->index]
               : v;
}

bool proa__may_replace(const proa__uses *u, const proa_var *v, const proa_var *by)
{
    const proa__use *of = proa__use_of(u, v), *with = proa__use_of(u, by);
    return of && !of->overwritten && !(with && with->overwritten);
}

void proa__replace(proa__uses *u, proa_var *v, proa_var *by)
{
    by = proa__instead_of(u, by);
    u->instead[v->index] = by;
    proa__use *from = proa__use_of(u, v), *to = proa__use_of(u, by);
    if (!to) return;
    to->n_reads += from->n_reads;
    if (from->last_read > to->last_read) to->last_read = from->last_read;
    to->kept |= from->kept;
}

static proa_status read_other(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot), *by = proa__instead_of(context, v);
    if (by != v) proa__slot_set(slot, by->handle);
    return PROA_OK;
}

proa_status proa__read_instead(const proa__uses *u, proa_instr *instr)
{
    return proa__args_visit_reads(instr->op, instr->args, read_other, (void *)(uintptr_t)u);
}

void proa__uses_apply(proa__uses *u)
{
    proa_block *b = u->block;
    for (int32_t i = 0; i < b->n_outputs; i++) b->outputs[i] = proa__instead_of(u, b->outputs[i]);
    int32_t n = 0;
    for (int32_t i = 0; i < b->n_ops; i++)
        if (b->ops[i].args) b->ops[n++] = b->ops[i];
    b->n_ops = n;
    b->program->version++;
}

proa_status proa__rewrite_ops(proa_block *b, const proa__pass_context *context, proa__rewrite rewrite)
{
    proa__uses u;
    PROA_TRY(proa__uses_find(&u, b));
    proa_status status = PROA_OK;
    for (int32_t i = 0; i < b->n_ops && status == PROA_OK; i++)
        if (b->ops[i].args) status = rewrite(&u, i, context);
    proa__uses_apply(&u);
    proa__uses_free(&u);
    return status != PROA_OK ? status : proa_error();
}

proa_status proa__instr_become(proa_instr *instr, const proa_op *op, const void *args)
{
    if (!op) return proa_fail(PROA_ERR_INTERNAL, "a pass knows an op that is not in the table");
    void *copy = proa__args_copy(op, args);
    if (!copy) return proa_error();
    if (instr->args) proa__instr_clear(instr);
    instr->op = op;
    instr->args = copy;
    return PROA_OK;
}

proa_status proa__emit(proa_block *b, const char *name, const void *args, const proa_instr *like)
{
    const proa_op *op = proa_find_op(name);
    proa_instr made = {.op = op, .role = like->role, .marks = like->marks};
    made.args = op ? proa__args_copy(op, args) : NULL;
    if (!made.args) return proa_error() ? proa_error() : proa_fail(PROA_ERR_INTERNAL, "pass: no op %s", name);
    return proa__emit_old(b, &made);
}

proa_instr *proa__take_ops(proa_block *b, int32_t *n)
{
    proa_instr *ops = b->ops;
    *n = b->n_ops;
    b->ops = NULL;
    b->n_ops = b->ops_capacity = 0;
    return ops;
}

proa_status proa__emit_old(proa_block *b, proa_instr *instr)
{
    proa_status status = proa__reserve(&b->ops, b->n_ops, &b->ops_capacity, sizeof *b->ops);
    if (status == PROA_OK) b->ops[b->n_ops++] = *instr;
    else proa__instr_clear(instr);
    instr->args = NULL;
    return status;
}

void proa__drop_ops(proa_instr *ops, int32_t at, int32_t n)
{
    for (int32_t i = at; i < n; i++)
        if (ops[i].args) proa__instr_clear(&ops[i]);
    proa__free(ops);
}

proa_tensor *proa__constant_of(const proa__uses *u, const proa_tensor *slot)
{
    const proa_var *v = proa__slot_var(slot);
    const proa__use *use = proa__use_of(u, v);
    return use && v->persistable && v->value && use->first_write == PROA__NOBODY ? v->value : NULL;
}

const void *proa__constant_data(const proa_tensor *t)
{
    if (t->flags & (PROA_T_STRIDED | PROA_T_DEVICE) || proa__plain(t) != PROA_OK) return NULL;
    return t->data;
}

proa_tensor *proa__new_constant(proa_block *b, proa_tensor *value)
{
    proa_var *v = value ? proa__var_of_concrete(b, value) : NULL;
    return v ? v->handle : NULL;
}

bool proa__same_ints(const proa_ints *a, const proa_ints *b)
{
    return a->count == b->count && !memcmp(a->at, b->at, (size_t)a->count * sizeof *a->at);
}

bool proa__all_are(const proa_ints *v, int64_t value)
{
    for (int64_t i = 0; i < v->count; i++)
        if (v->at[i] != value) return false;
    return true;
}
