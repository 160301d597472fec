/* Dead-code elimination: removes ops and variables that no output needs. Ops without outputs, and sub-blocks
 * as a whole, stay; on request also ops that write persistables or communicate with other ranks. May use core
 * and ops. */
#include "program.h"

#include "core/group.h"
#include "core/internal.h"
#include "core/args_visit.h"

typedef struct pruning {
    proa_program *program;
    uint8_t **needed; /* by block and variable; bit 0: its value is needed; bit 1: see mark_named */
    bool keep_writes, live, found;
} pruning;

static uint8_t *mark_of(pruning *p, const proa_var *v)
{
    for (int32_t k = 0; k < p->program->n_blocks; k++) {
        const proa_block *b = p->program->blocks[k];
        if (v->index < b->n_vars && b->vars[v->index] == v) return &p->needed[k][v->index];
    }
    return NULL;
}

static proa_status mark_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    uint8_t *mark = v ? mark_of(context, v) : NULL;
    if (mark) *mark |= 1;
    return PROA_OK;
}

/* Sets bit 1 (named): a remaining op names the variable, which must then stay even if nobody reads it. */
static proa_status mark_named(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    uint8_t *mark = v ? mark_of(context, v) : NULL;
    if (mark) *mark |= 2;
    return PROA_OK;
}

static proa_status look_output(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    pruning *p = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    uint8_t *mark = v ? mark_of(p, v) : NULL;
    if (mark && (*mark & 1 || (p->keep_writes && v->persistable))) p->live = true;
    return PROA_OK;
}

static void prune_ops(pruning *p, proa_block *b)
{
    for (int32_t i = b->n_ops - 1; i >= 0; i--) {
        proa_instr *instr = &b->ops[i];
        p->live = !instr->op->n_out || (p->keep_writes && proa__op_communicates(instr->op));
        proa__args_visit(instr->op, instr->args, PROA_OUT, look_output, p);
        if (p->live) {
            proa__args_visit_reads(instr->op, instr->args, mark_read, p);
            proa__args_visit(instr->op, instr->args, PROA_OUT, mark_named, p);
        } else {
            proa__instr_clear(instr);
        }
    }
    int32_t n = 0;
    for (int32_t i = 0; i < b->n_ops; i++)
        if (b->ops[i].args) b->ops[n++] = b->ops[i];
    b->n_ops = n;
}

/* Forgets the roots that will be removed; called while the variables' indices are still valid. */
static void prune_roots(pruning *p, proa_block *b)
{
    for (int32_t i = 0; i < b->n_vars; i++) {
        proa_var *v = b->vars[i];
        const uint8_t *root = v->root ? mark_of(p, v->root) : NULL;
        if (v->root && (!root || (!*root && !v->root->is_input))) v->root = NULL;
    }
}

static void prune_vars(pruning *p, proa_block *b)
{
    const uint8_t *needed = p->needed[b->index];
    int32_t n = 0;
    for (int32_t i = 0; i < b->n_vars; i++) {
        if (needed[i] || b->vars[i]->is_input) b->vars[n++] = b->vars[i];
        else proa__var_free(b->vars[i]);
    }
    b->n_vars = n;
}

proa_status proa__program_prune(proa_program *program, bool keep_writes)
{
    PROA_TRY(proa_error());
    pruning p = {.program = program, .keep_writes = keep_writes};
    proa_status status = PROA_OK;
    p.needed = proa__calloc((size_t)program->n_blocks * sizeof *p.needed);
    if (!p.needed) return proa_error();
    for (int32_t k = 0; k < program->n_blocks; k++) {
        p.needed[k] = proa__calloc((size_t)program->blocks[k]->n_vars + 1);
        if (!p.needed[k]) status = proa_error();
    }
    if (status == PROA_OK) {
        for (int32_t i = 0; i < proa__root(program)->n_outputs; i++)
            *mark_of(&p, proa__root(program)->outputs[i]) |= 1;
        /* Sub-blocks are kept whole: all that they read is needed. They come before the blocks that enclose
         * them. */
        for (int32_t k = program->n_blocks - 1; k > 0; k--) {
            proa_block *b = program->blocks[k];
            for (int32_t i = 0; i < b->n_ops; i++) {
                proa__args_visit_reads(b->ops[i].op, b->ops[i].args, mark_read, &p);
                proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_OUT, mark_named, &p);
            }
        }
        prune_ops(&p, program->blocks[0]);
        for (int32_t k = 0; k < program->n_blocks; k++) prune_roots(&p, program->blocks[k]);
        for (int32_t k = 0; k < program->n_blocks; k++) prune_vars(&p, program->blocks[k]);
        status = proa__program_reindex(program);
    }
    for (int32_t k = 0; k < program->n_blocks; k++) proa__free(p.needed[k]);
    proa__free(p.needed);
    return status;
}
