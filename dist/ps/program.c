/* A program's look-ups in tables of parameter servers: a replay puts pulls in place of embeddings. May use
 * core, ops and jit. */
#include "core/hash_map.h"
#include "core/internal.h"
#include "jit/ir/program.h"

#include <proa/autograd.h>
#include <proa/ops.h>
#include <proa/ps.h>

typedef struct pulls {
    proa__hash_map tables; /* weight's variable → number of its table */
    int64_t replaced;
    bool test;
} pulls;

static proa_status pull_instead(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    pulls *p = context;
    (void)block;
    if (strcmp(instr->op->name, "embedding") != 0) return proa_call_op(instr->op, args);
    const proa_embedding_args *before = instr->args;
    proa_embedding_args *now = args;
    const int64_t *table = proa__hash_map_find(&p->tables, proa__slot_var(before->weight));
    if (!table) return proa_call_op(instr->op, args);
    int64_t width = before->weight->shape[1];
    proa_tensors ids = {1, &now->x};
    proa_tensors rows = proa_distributed_lookup_table(ids, *table, width, .padding_idx = before->padding_idx,
                                                      .test = p->test);
    if (proa_error() != PROA_OK) return proa_error();
    now->out = rows.at[0];
    now->out->var->stop_gradient = false;
    p->replaced++;
    return PROA_OK;
}

proa_status proa_program_pull_rows(proa_program *p, proa_tensors weights, proa_ints tables, bool test,
                                   int64_t *replaced)
{
    PROA_TRY(proa_error());
    PROA_SCOPED;
    PROA_NO_GRAD;
    pulls found = {.test = test};
    if (replaced) *replaced = 0;
    if (!p || weights.count != tables.count)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "program_pull_rows: %lld weights and %lld tables; expected a "
                         "program, and a table for each weight",
                         (long long)weights.count, (long long)tables.count);
    for (int64_t i = 0; i < weights.count; i++) {
        proa_var *v = proa__var_behind(p, weights.at[i]);
        if (!v || v->handle->ndim != 2 || v->handle->shape[1] < 1 || v->handle->dtype != PROA_F32)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "program_pull_rows: weight %lld must be a variable of the "
                             "program, float32, of shape [rows, width]",
                             (long long)i);
        PROA_TRY(proa__hash_map_put(&found.tables, v, (void *)&tables.at[i]));
    }
    proa__replay_hook hook = {pull_instead, &found};
    int32_t role = p->role;
    proa_status status = proa__program_replay(p, &hook);
    p->role = role;
    proa__hash_map_clear(&found.tables);
    if (replaced) *replaced = found.replaced;
    return status;
}
