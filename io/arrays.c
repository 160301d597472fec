/* Finds the variables of a program that are tensor arrays: the IR stores an array as one tensor [items, …],
 * Paddle's files as a variable of type LOD_TENSOR_ARRAY. May use jit, core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_write.h"

#include "core/args_visit.h"
#include "impl/control.h"
#include "impl/elementwise.h"

typedef struct marking {
    proa__hash_map *arrays;
    bool changed;
} marking;

static proa_status mark(marking *m, const proa_tensor *t)
{
    proa_var *v = proa__slot_var(t);
    if (!v || proa__hash_map_find(m->arrays, v)) return PROA_OK;
    m->changed = true;
    return proa__hash_map_put(m->arrays, v, v);
}

/* Marks a and b as arrays if one of them is: an operand outside a sub-block and the value that it has
 * inside. */
static proa_status tie(marking *m, const proa_tensor *a, const proa_tensor *b)
{
    const proa_var *v = proa__slot_var(a), *w = proa__slot_var(b);
    if (v && proa__hash_map_find(m->arrays, v)) PROA_TRY(mark(m, b));
    return w && proa__hash_map_find(m->arrays, w) ? mark(m, a) : PROA_OK;
}

static proa_status tie_inputs(marking *m, const proa_tensors *given, const proa_block *b, int32_t first)
{
    for (int64_t i = 0; i < given->count; i++) PROA_TRY(tie(m, given->at[i], b->inputs[first + i]->handle));
    return PROA_OK;
}

static proa_status through_branch(marking *m, const proa_branch_args *a)
{
    PROA_TRY(tie_inputs(m, &a->inputs, a->then, 0));
    PROA_TRY(tie_inputs(m, &a->inputs, a->otherwise, 0));
    for (int64_t i = 0; i < a->out.count; i++) {
        PROA_TRY(tie(m, a->out.at[i], a->then->outputs[i]->handle));
        PROA_TRY(tie(m, a->then->outputs[i]->handle, a->otherwise->outputs[i]->handle));
    }
    return PROA_OK;
}

static proa_status through_loop(marking *m, const proa_loop_args *a)
{
    PROA_TRY(tie_inputs(m, &a->vars, a->body, 0));
    PROA_TRY(tie_inputs(m, &a->inputs, a->body, (int32_t)a->vars.count));
    for (int64_t i = 0; i < a->out.count; i++) {
        PROA_TRY(tie(m, a->body->inputs[i]->handle, a->body->outputs[i + 1]->handle));
        PROA_TRY(tie(m, a->body->outputs[i + 1]->handle, a->out.at[i]));
    }
    return PROA_OK;
}

static proa_status visit(marking *m, const proa_instr *instr)
{
    const char *name = instr->op->name;
    if (strcmp(name, "branch") == 0) return through_branch(m, instr->args);
    if (strcmp(name, "loop") == 0) return through_loop(m, instr->args);
    if (strcmp(name, "assign") == 0) {
        const proa_assign_args *a = instr->args;
        return tie(m, a->x, a->out);
    }
    if (strncmp(name, "array_", 6) != 0) return PROA_OK;
    for (int i = 0; i < instr->op->n_fields; i++) {
        const proa_field *f = &instr->op->fields[i];
        bool array =
            strcmp(f->name, "array") == 0 || (f->role == PROA_OUT && strcmp(name, "array_write") == 0);
        proa_tensor **one = array ? proa__field_one(f, instr->args) : NULL;
        if (one) PROA_TRY(mark(m, *one));
    }
    return PROA_OK;
}

proa_status proa__arrays_find(const proa_program *p, proa__hash_map *arrays)
{
    marking m = {arrays, true};
    while (m.changed) {
        m.changed = false;
        for (int32_t k = 0; k < p->n_blocks; k++)
            for (int32_t i = 0; i < p->blocks[k]->n_ops; i++) PROA_TRY(visit(&m, &p->blocks[k]->ops[i]));
    }
    return PROA_OK;
}

#else
typedef int proa__no_arrays; /* C wants a declaration in every file */
#endif
