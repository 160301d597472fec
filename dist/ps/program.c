/* A program's look-ups in tables of parameter servers: a replay puts pulls in place of embeddings, one pull a
 * table for the look-ups of fed ids. May use core, ops and jit. */
#include "core/args_visit.h"
#include "core/hash_map.h"
#include "core/internal.h"
#include "jit/ir/program.h"

#include <proa/autograd.h>
#include <proa/ops.h>
#include <proa/ps.h>

typedef struct pulls {
    const proa_block *root;
    proa__hash_map tables; /* weight's variable → number of its table */
    proa__hash_map rows;   /* instruction of a look-up → what was pulled for it before it was reached */
    int64_t replaced;
    bool test, begun;
} pulls;

static const proa_embedding_args *lookup_of(const proa_instr *instr)
{
    return strcmp(instr->op->name, "embedding") == 0 ? instr->args : NULL;
}

static const int64_t *table_of(const pulls *p, const proa_embedding_args *a)
{
    return a ? proa__hash_map_find(&p->tables, proa__slot_var(a->weight)) : NULL;
}

/* Captures a pull for lists of ids; an empty list after an error. */
static proa_tensors pull(const pulls *p, proa_tensors ids, const proa_embedding_args *a, int64_t table)
{
    int64_t padding = a->padding_idx == 0 ? PROA_ZERO : a->padding_idx;
    proa_tensors rows = proa_distributed_lookup_table(ids, table, a->weight->shape[1], .padding_idx = padding,
                                                      .test = p->test);
    for (int64_t i = 0; i < rows.count && proa_error() == PROA_OK; i++)
        rows.at[i]->var->stop_gradient = false;
    return proa_error() == PROA_OK ? rows : (proa_tensors){0};
}

/* ---- look-ups of fed ids --------------------------------------------------------------- */

/* The instruction whose only output v is, if it reads one input of the program and changes its form alone;
 * else NULL. */
static const proa_instr *reshaped_input(const proa_block *b, const proa_var *v)
{
    static const char *const forms[] = {"squeeze", "unsqueeze", "reshape", "cast"};
    for (int32_t i = 0; i < b->n_ops; i++) {
        const proa_instr *instr = &b->ops[i];
        proa_tensor **out = proa__out_slot(instr->op, instr->args, 0, NULL);
        if (!out || proa__slot_var(*out) != v) continue;
        proa_tensor *const *x = instr->args; /* the first field */
        bool changes_form = false;
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
            changes_form = changes_form || strcmp(instr->op->name, forms[k]) == 0;
        const proa_var *read = changes_form ? proa__slot_var(*x) : NULL;
        return read && read->is_input ? instr : NULL;
    }
    return NULL;
}

/* Whether a look-up's ids are there at the start of the program; *by: what changes their form (NULL:
 * nothing). */
static bool is_fed(const proa_block *b, const proa_embedding_args *a, const proa_instr **by)
{
    const proa_var *v = proa__slot_var(a->x);
    *by = NULL;
    if (!v) return false;
    if (!v->is_input) *by = reshaped_input(b, v);
    return v->is_input || *by;
}

/* The ids of such a look-up, in the fresh block. */
static proa_tensor *fed_ids(const proa_embedding_args *a, const proa_instr *by)
{
    if (!by) return proa__var_tensor(proa__slot_var(a->x));
    void *args = proa_scope_alloc(by->op->args_size);
    if (!args) return NULL;
    memcpy(args, by->args, by->op->args_size);
    proa_tensor **x = args, **out = proa__out_slot(by->op, args, 0, NULL);
    *x = proa__var_tensor(proa__slot_var(*x));
    *out = NULL;
    return proa_call_op(by->op, args) == PROA_OK ? *out : NULL;
}

static bool form_sequences(const proa_embedding_args *a)
{
    const proa_var *v = proa__slot_var(a->x);
    return v && v->lod_level > 0;
}

/* Captures one pull for the look-ups of fed ids in the table that `first` reads, from `first` on; sequences
 * and others are pulls of their own. */
static proa_status pull_together(pulls *p, int32_t first)
{
    const proa_block *b = p->root;
    const proa_embedding_args *a = b->ops[first].args;
    size_t most = (size_t)(b->n_ops - first);
    const proa_instr **whose = proa_scope_alloc(most * sizeof *whose),
                     **by = proa_scope_alloc(most * sizeof *by);
    proa_tensors ids = {0, proa_scope_alloc(most * sizeof(proa_tensor *))};
    if (!whose || !by || !ids.at) return proa_error();
    for (int32_t i = first; i < b->n_ops; i++) {
        const proa_embedding_args *other = lookup_of(&b->ops[i]);
        bool same = other && proa__slot_var(other->weight) == proa__slot_var(a->weight) &&
                    other->padding_idx == a->padding_idx && form_sequences(other) == form_sequences(a);
        if (!same || !is_fed(b, other, &by[ids.count])) continue;
        whose[ids.count++] = &b->ops[i];
    }
    if (ids.count < 2 || whose[0] != &b->ops[first]) return PROA_OK;
    for (int64_t i = 0; i < ids.count; i++) {
        ids.at[i] = fed_ids(whose[i]->args, by[i]);
        if (!ids.at[i]) return proa_error();
    }
    proa_tensors rows = pull(p, ids, a, *table_of(p, a));
    for (int64_t i = 0; i < rows.count; i++) {
        if (form_sequences(a)) PROA_TRY(proa__lod_share(rows.at[i]->var, ids.at[i]->var));
        PROA_TRY(proa__hash_map_put(&p->rows, whose[i], rows.at[i]));
    }
    return proa_error();
}

/* ---- the replay ------------------------------------------------------------------------ */

static proa_status pull_instead(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    pulls *p = context;
    (void)block;
    if (!p->begun) {
        p->begun = true;
        for (int32_t i = 0; i < p->root->n_ops; i++)
            if (table_of(p, lookup_of(&p->root->ops[i])) && !proa__hash_map_find(&p->rows, &p->root->ops[i]))
                PROA_TRY(pull_together(p, i));
    }
    const proa_embedding_args *before = lookup_of(instr);
    const int64_t *table = table_of(p, before);
    if (!table) return proa_call_op(instr->op, args);
    proa_embedding_args *now = args;
    now->out = proa__hash_map_find(&p->rows, instr);
    if (!now->out) {
        proa_tensors ids = {1, &now->x}, rows = pull(p, ids, before, *table);
        now->out = rows.count ? rows.at[0] : NULL;
    }
    p->replaced++;
    return proa_error();
}

/* The program's weights by variable, after checks. */
static proa_status collect(pulls *found, proa_program *p, proa_tensors weights, proa_ints tables)
{
    for (int64_t i = 0; i < weights.count; i++) {
        proa_var *v = proa__var_behind(p, weights.at[i]);
        if (!v || v->handle->ndim != 2 || v->handle->shape[1] < 1 || v->handle->dtype != PROA_F32)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "program_pull_rows: weight %lld must be a variable of the program, float32, of "
                             "shape [rows, width]",
                             (long long)i);
        PROA_TRY(proa__hash_map_put(&found->tables, v, (void *)&tables.at[i]));
    }
    return PROA_OK;
}

proa_status proa_program_pull_rows(proa_program *p, proa_tensors weights, proa_ints tables, bool test,
                                   int64_t *replaced)
{
    PROA_TRY(proa_error());
    PROA_SCOPED;
    PROA_NO_GRAD;
    if (replaced) *replaced = 0;
    if (!p || weights.count != tables.count)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "program_pull_rows: %lld weights and %lld tables; expected a program, and a table "
                         "for each weight",
                         (long long)weights.count, (long long)tables.count);
    proa_block old = *proa__root(p); /* the replay fills a fresh one */
    pulls found = {.test = test, .root = &old};
    proa__replay_hook hook = {pull_instead, &found};
    int32_t role = p->role;
    proa_status status = collect(&found, p, weights, tables);
    if (status == PROA_OK) status = proa__program_replay(p, &hook);
    p->role = role;
    proa__hash_map_clear(&found.tables);
    proa__hash_map_clear(&found.rows);
    if (replaced && status == PROA_OK) *replaced = found.replaced;
    return status;
}
