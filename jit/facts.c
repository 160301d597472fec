/* What a block says before any shape is known: last uses, who reads what how; see plan.h. May use core. */
#include "plan.h"

#include "walk.h"

typedef struct visit {
    proa__facts *facts;
    const proa_op *op;
    int32_t at;
    int32_t *wrote; /* the first op that writes a persistable */
    bool flag;
} visit;

bool proa__is_shape_op(const proa_op *op)
{
    return strcmp(op->name, "shape") == 0 || strcmp(op->name, "size") == 0;
}

/* Only variables of the block itself: a sub-block's op may name outer ones. */
static bool mine(const proa__facts *facts, const proa_var *v)
{
    return v && v->index < facts->n_vars && facts->block->vars[v->index] == v;
}

static proa_status note_use(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const visit *to = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)index;
    if (!mine(to->facts, v)) return PROA_OK;
    if (to->facts->last_use[v->index] < to->at) to->facts->last_use[v->index] = to->at;
    if (to->facts->written[v->index] && to->wrote[v->index] < to->at)
        to->facts->touched_later[v->index] = true;
    if (f->role != PROA_OUT) to->facts->read[v->index] = true;
    if (f->role == PROA_IN && !(to->op->flags & PROA_OP_STRIDED)) to->facts->wants_dense[v->index] = true;
    if (f->role == PROA_ATTR) to->facts->feeds_attr[v->index] = to->facts->wants_dense[v->index] = true;
    if (f->role == PROA_OUT && v->persistable && !to->facts->written[v->index]) {
        to->facts->written[v->index] = true;
        to->wrote[v->index] = to->at;
    }
    return PROA_OK;
}

static proa_status look_feeds(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    visit *to = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)f, (void)index;
    if (mine(to->facts, v) && to->facts->feeds_attr[v->index]) to->flag = true;
    return PROA_OK;
}

static proa_status note_feeds(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const visit *to = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)f, (void)index;
    if (mine(to->facts, v)) to->facts->feeds_attr[v->index] = true;
    return PROA_OK;
}

static proa_status fill(proa__facts *facts, int32_t *wrote)
{
    const proa_block *b = facts->block;
    visit to = {.facts = facts, .wrote = wrote};
    for (int32_t i = 0; i < b->n_vars; i++) facts->last_use[i] = -1;
    for (to.at = 0; to.at < b->n_ops; to.at++) {
        const proa_instr *instr = &b->ops[to.at];
        to.op = instr->op;
        PROA_TRY(proa__walk_reads(to.op, instr->args, note_use, &to));
        PROA_TRY(proa__walk(to.op, instr->args, PROA_OUT, note_use, &to));
    }
    for (to.at = b->n_ops - 1; to.at >= 0; to.at--) {
        const proa_instr *instr = &b->ops[to.at];
        to.flag = false;
        if (proa__is_shape_op(instr->op)) continue;
        PROA_TRY(proa__walk(instr->op, instr->args, PROA_OUT, look_feeds, &to));
        if (to.flag) PROA_TRY(proa__walk_reads(instr->op, instr->args, note_feeds, &to));
    }
    for (int32_t i = 0; i < b->n_outputs; i++) {
        facts->is_output[b->outputs[i]->index] = facts->read[b->outputs[i]->index] = true;
        facts->last_use[b->outputs[i]->index] = INT32_MAX;
    }
    return PROA_OK;
}

bool proa__is_differentiated(const proa_program *p)
{
    const proa_block *root = proa__root(p);
    for (int32_t i = root->n_ops - 1; i >= 0; i--)
        if (root->ops[i].role & 1) return true;
    return p->differentiated;
}

proa_status proa__facts_find(proa__facts *facts, const proa_block *b)
{
    size_t n = (size_t)b->n_vars + 1;
    *facts = (proa__facts){.block = b, .n_vars = b->n_vars, .n_handed = b->n_outputs};
    facts->last_use = proa__calloc(n * sizeof(int32_t));
    facts->wants_dense = proa__calloc(n);
    facts->feeds_attr = proa__calloc(n);
    facts->read = proa__calloc(n);
    facts->written = proa__calloc(n);
    facts->is_output = proa__calloc(n);
    facts->touched_later = proa__calloc(n);
    int32_t *wrote = proa__calloc(n * sizeof *wrote);
    bool all = facts->last_use && facts->wants_dense && facts->feeds_attr && facts->read && facts->written &&
               facts->is_output && facts->touched_later && wrote;
    facts->differentiated = proa__is_differentiated(b->program);
    proa_status status = all ? fill(facts, wrote) : proa_error();
    proa__free(wrote);
    if (status != PROA_OK) proa__facts_free(facts);
    return status;
}

void proa__facts_free(proa__facts *facts)
{
    proa__free(facts->last_use);
    proa__free(facts->wants_dense);
    proa__free(facts->feeds_attr);
    proa__free(facts->read);
    proa__free(facts->written);
    proa__free(facts->is_output);
    proa__free(facts->touched_later);
    *facts = (proa__facts){0};
}
