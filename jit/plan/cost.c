/* FLOPs of a program's ops without a run: infers shapes, with one length that the caller gives for all
 * unknown dims. May use core and ops. */
#include "jit/ir/program.h"

#include "core/internal.h"
#include "core/run.h"
#include "core/call_cost.h"
#include "core/args_visit.h"

/* Replaces the tensor in the slot by one of the same dtype and shape whose unknown dims have the length
 * *context. */
static proa_status fix_dims(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    if (proa__slot_empty(*slot)) return PROA_OK;
    proa_meta meta = proa_meta_of(*slot);
    for (int d = 0; d < meta.ndim; d++)
        if (meta.shape[d] < 0) meta.shape[d] = *(const int64_t *)context;
    proa_tensor *t = proa__tensor_bare(&meta, PROA_T_SYMBOLIC);
    if (t) proa__slot_set(slot, t);
    return t ? PROA_OK : proa_error();
}

/* Gives outputs that are single tensors their inferred shapes. */
static proa_status fill_outputs(const proa_op *op, void *args, void *metas)
{
    proa__meta_ref m = proa__meta_first(metas);
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        proa_tensor **one = proa__field_one(f, args);
        proa_tensor *t = !one || m.one->ndim < 0 ? proa_none : proa__tensor_bare(m.one, PROA_T_SYMBOLIC);
        if (!t) return proa_error();
        if (one) proa__slot_set(one, t);
        m = proa__meta_next(m, f);
    }
    return PROA_OK;
}

static double flops_of(const proa_instr *instr, int64_t unknown)
{
    const proa_op *op = instr->op;
    if (!proa__counts_flops(op)) return 0;
    void *args = proa__args_copy(op, instr->args);
    if (!args) return -1;
    char metas[PROA_METAS_MAX] __attribute__((aligned(16)));
    memset(metas, 0, sizeof metas);
    proa_call call = {op, args, PROA_T_SYMBOLIC};
    proa_status status = proa__args_visit(op, args, PROA_IN, fix_dims, &unknown);
    if (status == PROA_OK) status = proa__infer_call(&call, metas);
    if (status == PROA_OK) status = fill_outputs(op, args, metas);
    if (status != PROA_OK && status != PROA_ERR_OUT_OF_MEMORY) {
        proa_clear_error(); /* inference failed for these lengths: outputs stay unknown */
        status = PROA_OK;
    }
    double n = status == PROA_OK ? proa__call_flops(op, args) : -1;
    proa__args_free(op, args);
    return n;
}

double proa_program_op_flops(const proa_program *p, int64_t block, int64_t i, int64_t unknown)
{
    if (proa_error() != PROA_OK || !proa_program_op(p, block, i, NULL)) return -1;
    if (unknown < 0) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "program_op_flops: unknown dims are taken as %lld; expected a length", (long long)unknown);
        return -1;
    }
    PROA_SCOPED;
    return flops_of(&p->blocks[block]->ops[i], unknown);
}
