/* A saved program as a chain of layers for `proa plan`: floating-point operations as the op table counts
 * them, bytes of inputs and outputs. Uses plan.h. */
#include "plan.h"

#include <string.h>

enum { BACKWARD = 1, OPTIMIZE = 2, SCHEDULE = 16 }; /* roles of ops that a forward does not have */

/* Elements of a variable, with dims that are unknown until a run taken to be 1 long. */
static double elements(const proa_tensor *t)
{
    double n = 1;
    for (int i = 0; i < proa_ndim(t); i++) n *= proa_shape_of(t)[i] < 0 ? 1 : (double)proa_shape_of(t)[i];
    return n;
}

typedef struct totals {
    double bytes, parameters; /* bytes of variables; elements of persistables first used here */
} totals;

static totals sum_slots(const cli_model *m, const cli_slot *slots, int64_t n, bool *used)
{
    totals sum = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < slots[i].count; k++) {
            const proa_var_info *v = cli_find(m, 0, slots[i].vars[k]);
            if (!v) continue; /* between wire ops that represent one op */
            if (!v->persistable) {
                sum.bytes += elements(v->tensor) * (double)proa_dtype_size(proa_dtype_of(v->tensor));
                continue;
            }
            bool *seen = &used[v - m->blocks[0].vars];
            if (!*seen) sum.parameters += elements(v->tensor);
            *seen = true;
        }
    return sum;
}

/* Rows of a batch that the program's shapes are for: 1 where the batch is unknown. */
static double rows_of(const proa_program *p)
{
    const proa_tensor *x = proa_program_input_count(p) > 0 ? proa_program_input(p, 0) : NULL;
    return x && proa_ndim(x) > 0 && proa_shape_of(x)[0] > 0 ? (double)proa_shape_of(x)[0] : 1;
}

/* Adds a wire op to the layer of the op that it represents, or is a part of. */
static proa_status add(const plan_request *q, const cli_op *op, double rows, bool *used, proa_plan_layer *l)
{
    const cli_model *m = &q->program;
    double flops = cli_flops(m, 0, op, 1);
    if (flops < 0)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "%s: the shapes of op %s do not say its floating-point operations", m->path,
                         op->type);
    totals in = sum_slots(m, op->inputs, op->n_inputs, used),
           out = sum_slots(m, op->outputs, op->n_outputs, used);
    l->flops += flops / rows;
    l->parameters += in.parameters;
    l->input += in.bytes / rows;
    l->output += out.bytes / rows;
    l->activations += out.bytes / rows;
    l->traffic += (in.bytes + out.bytes) / rows;
    return PROA_OK;
}

proa_status plan_program(plan_request *q)
{
    const cli_model *m = &q->program;
    const proa_plan_machine *machine = &q->machine;
    if (m->n_blocks > 1)
        return proa_fail(PROA_ERR_UNSUPPORTED, "%s: a program with branches or loops is not predicted",
                         m->path);
    const cli_block *b = &m->blocks[0];
    int64_t n = 0, last = -1;
    double rows = rows_of(m->program);
    bool *used = cli_array((size_t)b->n_vars + 1, sizeof *used);
    proa_plan_layer *chain = cli_array((size_t)b->n_ops + 1, sizeof *chain);
    if (!used || !chain) return proa_error();
    for (int64_t i = 0; i < b->n_ops; i++) {
        const cli_op *op = b->ops[i];
        if (op->role & (BACKWARD | OPTIMIZE | SCHEDULE)) continue;
        if (strcmp(op->type, "feed") == 0 || strcmp(op->type, "fetch") == 0) continue;
        if (op->at != last) n++;
        last = op->at;
        PROA_TRY(add(q, op, rows, used, &chain[n - 1]));
    }
    if (!n) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the program has no forward ops", m->path);
    for (int64_t i = 0; i < n; i++) {
        double bandwidth = machine->memory_bandwidth;
        chain[i].weight =
            chain[i].flops / machine->flops + (bandwidth > 0 ? chain[i].traffic / bandwidth : 0);
    }
    q->model = (proa_plan_model){.chain = chain, .n_chain = n};
    return PROA_OK;
}
