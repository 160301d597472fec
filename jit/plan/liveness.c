/* Liveness of a block's variables before any shape is known: last uses, and how each variable is read; see
 * plan.h. May use core. */
#include "plan.h"

#include "core/args_visit.h"

typedef struct visit {
    proa__liveness *facts;
    const proa_op *op;
    int32_t at;
    bool flag;
    int32_t *next; /* by variable: the op that writes it next */
} visit;

bool proa__is_shape_op(const proa_op *op)
{
    return strcmp(op->name, "shape") == 0 || strcmp(op->name, "size") == 0;
}

/* True for variables of the block itself: an op with sub-blocks may name outer ones. */
static bool mine(const proa__liveness *facts, const proa_var *v)
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
    if (to->facts->first_write[v->index] < to->at) to->facts->touched_later[v->index] = true;
    if (f->role != PROA_OUT) to->facts->read[v->index] = true;
    if (f->role == PROA_IN) {
        bool strided = to->op->flags & PROA_OP_STRIDED;
        *(strided ? &to->facts->reads_strided[v->index] : &to->facts->reads_dense[v->index]) = true;
    }
    if (f->role == PROA_ATTR) to->facts->feeds_attr[v->index] = to->facts->supplies[v->index] = true;
    if (f->role == PROA_OUT && v->persistable && to->facts->first_write[v->index] == INT32_MAX)
        to->facts->first_write[v->index] = to->at;
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

static proa_status note_next(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const visit *to = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)f, (void)index;
    if (mine(to->facts, v)) to->next[v->index] = to->at;
    return PROA_OK;
}

static proa_status fill_next_writes(proa__liveness *facts)
{
    const proa_block *b = facts->block;
    visit to = {.facts = facts, .next = proa__alloc(((size_t)b->n_vars + 1) * sizeof(int32_t))};
    proa_status status = to.next ? PROA_OK : proa_error();
    for (int32_t i = 0; to.next && i < b->n_vars; i++) to.next[i] = INT32_MAX;
    for (to.at = b->n_ops - 1; to.at >= 0 && status == PROA_OK; to.at--) {
        const proa_op *op = b->ops[to.at].op;
        proa_tensor **one = op->n_in ? proa__field_one(op->fields, b->ops[to.at].args) : NULL;
        const proa_var *first = one ? proa__slot_var(*one) : NULL;
        facts->next_write[to.at] = mine(facts, first) ? to.next[first->index] : INT32_MAX;
        status = proa__args_visit(op, b->ops[to.at].args, PROA_OUT, note_next, &to);
    }
    proa__free(to.next);
    return status;
}

static proa_status fill(proa__liveness *facts)
{
    const proa_block *b = facts->block;
    visit to = {.facts = facts};
    for (int32_t i = 0; i < b->n_vars; i++) facts->last_use[i] = -1, facts->first_write[i] = INT32_MAX;
    for (to.at = 0; to.at < b->n_ops; to.at++) {
        const proa_instr *instr = &b->ops[to.at];
        to.op = instr->op;
        PROA_TRY(proa__args_visit_reads(to.op, instr->args, note_use, &to));
        PROA_TRY(proa__args_visit(to.op, instr->args, PROA_OUT, note_use, &to));
    }
    for (to.at = b->n_ops - 1; to.at >= 0; to.at--) {
        const proa_instr *instr = &b->ops[to.at];
        to.flag = false;
        if (proa__is_shape_op(instr->op)) continue;
        PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, look_feeds, &to));
        if (to.flag) PROA_TRY(proa__args_visit_reads(instr->op, instr->args, note_feeds, &to));
    }
    for (int32_t i = 0; i < b->n_outputs; i++) {
        facts->is_output[b->outputs[i]->index] = facts->read[b->outputs[i]->index] = true;
        facts->last_use[b->outputs[i]->index] = INT32_MAX;
    }
    return fill_next_writes(facts);
}

bool proa__is_differentiated(const proa_program *p)
{
    const proa_block *root = proa__root(p);
    for (int32_t i = root->n_ops - 1; i >= 0; i--)
        if (root->ops[i].role & 1) return true;
    return p->differentiated;
}

enum { FLAGS = 7 };

/* The k-th of the bool arrays with one entry per variable. */
static bool **flag_of(proa__liveness *facts, int k)
{
    bool **all[FLAGS] = {&facts->reads_dense, &facts->reads_strided, &facts->supplies,     &facts->feeds_attr,
                         &facts->read,        &facts->is_output,     &facts->touched_later};
    return all[k];
}

proa_status proa__liveness_find(proa__liveness *facts, const proa_block *b)
{
    size_t n = (size_t)b->n_vars + 1;
    *facts = (proa__liveness){.block = b, .n_vars = b->n_vars, .n_handed = b->n_outputs};
    facts->last_use = proa__calloc(n * sizeof(int32_t));
    facts->first_write = proa__calloc(n * sizeof(int32_t));
    facts->next_write = proa__calloc(((size_t)b->n_ops + 1) * sizeof(int32_t));
    bool all = facts->last_use && facts->first_write && facts->next_write;
    for (int k = 0; k < FLAGS; k++) all &= (*flag_of(facts, k) = proa__calloc(n)) != NULL;
    facts->differentiated = proa__is_differentiated(b->program);
    proa_status status = all ? fill(facts) : proa_error();
    if (status != PROA_OK) proa__liveness_free(facts);
    return status;
}

void proa__liveness_free(proa__liveness *facts)
{
    proa__free(facts->last_use);
    proa__free(facts->first_write);
    proa__free(facts->next_write);
    for (int k = 0; k < FLAGS; k++) proa__free(*flag_of(facts, k));
    *facts = (proa__liveness){0};
}
