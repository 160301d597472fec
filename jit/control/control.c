/* cond, while_loop and functions with a backward of their own (pylayer), and shape inference of their ops. A
 * symbolic predicate captures cond and while_loop as ops with sub-blocks; a concrete one runs them as plain
 * calls. May use core and ops. */
#include "control.h"

#include "core/internal.h"
#include "core/args_visit.h"

#include <proa/ops.h>

/* ---- inference ------------------------------------------------------------------------- */

/* The meta that fits both branches' results: dims that differ are unknown. */
static proa_status merge(const proa_op *op, int64_t i, const proa_tensor *a, const proa_tensor *b,
                         proa_meta *meta)
{
    *meta = proa_meta_of(a);
    if (a->dtype != b->dtype || a->ndim != b->ndim)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, "out",
                             "result %lld is %s one way and %s the other; dtype and rank must agree",
                             (long long)i, proa__tensor_text(a), proa__tensor_text(b));
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) meta->shape[d] = -1;
    return PROA_OK;
}

static proa_meta state_meta(proa_dtype dtype, int64_t n)
{
    return (proa_meta){.dtype = dtype, .ndim = 1, .shape = {n}};
}

static proa_status check_pred(const proa_op *op, const char *name, const proa_tensor *t)
{
    if (t->dtype == PROA_BOOL && (t->numel == 1 || t->numel < 0)) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, name, "must be one bool, got %s",
                         proa__tensor_text(t));
}

proa_status branch_infer(const proa_branch_args *a, proa_branch_metas *m)
{
    const proa_block *t = a->then, *o = a->otherwise;
    const proa_op *op = &proa__op_branch;
    PROA_TRY(check_pred(op, "pred", a->pred));
    if (!t || !o || t->n_outputs != o->n_outputs || t->n_inputs != a->inputs.count ||
        o->n_inputs != t->n_inputs)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, "then",
                             "and otherwise must be blocks that take the inputs "
                             "and yield as many tensors");
    PROA_TRY(proa_metas_resize(&m->out, t->n_outputs));
    for (int32_t i = 0; i < t->n_outputs; i++)
        PROA_TRY(merge(op, i, t->outputs[i]->handle, o->outputs[i]->handle, &m->out.at[i]));
    m->rng_out = state_meta(PROA_I64, 2);
    return PROA_OK;
}

proa_status loop_infer(const proa_loop_args *a, proa_loop_metas *m)
{
    const proa_block *b = a->body;
    const proa_op *op = &proa__op_loop;
    PROA_TRY(check_pred(op, "condition", a->condition));
    if (!b || b->n_inputs != a->vars.count + a->inputs.count || b->n_outputs != a->vars.count + 1)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, "body",
                             "must be a block that takes vars and inputs and yields the condition and vars");
    PROA_TRY(proa_metas_resize(&m->out, a->vars.count));
    for (int64_t i = 0; i < a->vars.count; i++)
        PROA_TRY(merge(op, i, b->inputs[i]->handle, b->outputs[i + 1]->handle, &m->out.at[i]));
    m->steps = state_meta(PROA_U8, -1);
    return PROA_OK;
}

proa_status loop_grad_infer(const proa_loop_grad_args *a, proa_loop_grad_metas *m)
{
    if (!a->body)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &proa__op_loop_grad, "body", "must be a block");
    PROA_TRY(proa_metas_resize(&m->d, a->body->n_outputs));
    for (int32_t i = 0; i < a->body->n_outputs; i++) m->d.at[i] = proa_meta_of(a->body->outputs[i]->handle);
    return PROA_OK;
}

proa_status pylayer_infer(const proa_pylayer_args *a, proa_pylayer_metas *m)
{
    const proa_block *b = a->backward;
    if (!b || b->n_inputs != a->x.count + a->outer.count || b->n_outputs != a->inputs.count)
        return proa__op_fail(
            PROA_ERR_INVALID_ARGUMENT, &proa__op_pylayer, "backward",
            "must be a block that takes gradients of x, and outer, and yields one of each input");
    PROA_TRY(proa_metas_resize(&m->out, a->x.count));
    for (int64_t i = 0; i < a->x.count; i++) m->out.at[i] = proa_meta_of(a->x.at[i]);
    return PROA_OK;
}

/* ---- capturing blocks ------------------------------------------------------------------ */

static bool symbolic(const proa_tensor *t) { return t && t->flags & PROA_T_SYMBOLIC; }

/* Reads the value of a concrete predicate. */
static proa_status truth(const char *who, proa_tensor *t, bool *yes)
{
    if (proa__slot_empty(t) || t->numel != 1 || t->dtype != PROA_BOOL)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the predicate must be one bool, got %s", who,
                         proa__slot_empty(t) ? "nothing" : proa__tensor_text(t));
    return proa_copy_out(t, yes, 1);
}

/* Captures fn into a new sub-block of b; *results: fn's results. */
static proa_block *capture_block(proa_block *b, proa_block_fn fn, proa_tensors inputs, void *context,
                                 proa_tensors *results)
{
    proa_block *made = proa__block_new(b->program, b->index);
    if (!made) return NULL;
    proa__capture_into(made);
    *results = fn(inputs, context);
    proa__capture_into(b);
    return proa_error() == PROA_OK ? made : NULL;
}

/* Ends the capture of an op's blocks, those from first_block on, which an error drops: goes on in b, and
 * frees what lifting needed. */
static void end_capture(proa_block *b, int32_t first_block, proa__lambda_lift *lift, proa_status status)
{
    proa_program *p = b->program;
    proa__capture_into(b);
    if (status != PROA_OK) proa__program_drop_blocks(p, first_block);
    for (int32_t i = first_block; i < p->n_blocks; i++) proa__block_forget_reads(p->blocks[i]);
    proa__hash_map_clear(&lift->known);
    proa__free(lift->outer);
    proa__free(lift->tensors);
}

/* Adds an input to a block under construction for each meta. */
static proa_status add_inputs(proa_block *made, const proa_meta *metas, int64_t n, proa_tensors *in)
{
    *in = (proa_tensors){0, proa_scope_alloc(((size_t)n + 1) * sizeof *in->at)};
    proa_var **vars = proa_scope_alloc(((size_t)n + 1) * sizeof *vars);
    if (!in->at || !vars) return proa_error();
    for (; in->count < n; in->count++) {
        vars[in->count] = proa__var_new(made, NULL, &metas[in->count]);
        in->at[in->count] = vars[in->count] ? proa__var_tensor(vars[in->count]) : NULL;
        if (!in->at[in->count]) return proa_error();
    }
    return proa__block_set_inputs(made, vars, (int32_t)n);
}

/* ---- branches -------------------------------------------------------------------------- */

static proa_status capture_cond(proa_block *b, proa_tensor *pred, proa_block_fn then, proa_block_fn otherwise,
                                void *context, proa__lambda_lift *lift, proa_tensors *out)
{
    proa_tensors none = {0, NULL}, yes, no;
    proa_var **yes_vars, **no_vars;
    proa_block *t = capture_block(b, then, none, context, &yes);
    proa_block *o = t ? capture_block(b, otherwise, none, context, &no) : NULL;
    if (!o) return proa_error();
    if (yes.count != no.count)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "cond: one branch returns %lld tensors, the other %lld",
                         (long long)yes.count, (long long)no.count);
    PROA_TRY(proa__lambda_lift_collect(lift, t, yes, &yes_vars));
    PROA_TRY(proa__lambda_lift_collect(lift, o, no, &no_vars));
    PROA_TRY(proa__lambda_lift_apply(lift, t, yes_vars, yes.count));
    PROA_TRY(proa__lambda_lift_apply(lift, o, no_vars, no.count));
    proa_tensors inputs = {lift->n, lift->tensors};
    *out = proa_branch(pred, inputs, PROA_NONE, t, o).out;
    return proa_error();
}

proa_tensors proa_cond(proa_tensor *pred, proa_block_fn then, proa_block_fn otherwise, void *context)
{
    proa_tensors out = {0, NULL}, none = {0, NULL};
    bool yes = false;
    if (proa_error() != PROA_OK) return none;
    if (!then || !otherwise) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "cond: needs two functions");
        return none;
    }
    proa_block *b = proa__capture_block();
    if (!b || !symbolic(pred)) {
        if (truth("cond", pred, &yes) != PROA_OK) return none;
        return (yes ? then : otherwise)(none, context);
    }
    proa__lambda_lift lift = {0};
    int32_t n_blocks = b->program->n_blocks;
    proa_status status = capture_cond(b, pred, then, otherwise, context, &lift, &out);
    end_capture(b, n_blocks, &lift, status);
    return status == PROA_OK ? out : none;
}

/* ---- loops ----------------------------------------------------------------------------- */

typedef struct loop_fns {
    proa_block_fn condition, body;
    void *context;
} loop_fns;

/* The loop's body: its results are the condition, then the variables. */
static proa_tensors loop_body(proa_tensors vars, void *context)
{
    const loop_fns *f = context;
    proa_tensors none = {0, NULL}, next = f->body(vars, f->context);
    if (proa_error() != PROA_OK) return none;
    if (next.count != vars.count) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "while_loop: the body takes %lld tensors and returns %lld",
                  (long long)vars.count, (long long)next.count);
        return none;
    }
    proa_tensors condition = f->condition(next, f->context);
    if (proa_error() != PROA_OK) return none;
    if (condition.count != 1) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "while_loop: the condition must return one tensor, got %lld",
                  (long long)condition.count);
        return none;
    }
    proa_tensors all = {vars.count + 1, proa_scope_alloc(((size_t)vars.count + 1) * sizeof *all.at)};
    if (!all.at) return none;
    all.at[0] = condition.at[0];
    for (int64_t i = 0; i < vars.count; i++) all.at[i + 1] = next.at[i];
    return all;
}

/* Captures the body for variables with these metas. */
static proa_block *capture_body(proa_block *b, const loop_fns *fns, const proa_meta *metas, int64_t n,
                                proa_tensors *results)
{
    proa_block *made = proa__block_new(b->program, b->index);
    proa_tensors in;
    if (!made || add_inputs(made, metas, n, &in) != PROA_OK) return NULL;
    proa__capture_into(made);
    *results = loop_body(in, (void *)(uintptr_t)fns);
    proa__capture_into(b);
    return proa_error() == PROA_OK ? made : NULL;
}

/* True for an array without items: its rank is not known until the body first writes to it. */
static bool begins_empty(const proa_meta *meta, const proa_tensor *t)
{
    return meta->ndim == 1 && meta->shape[0] == 0 && t->ndim > 1 && meta->dtype == (proa_dtype)t->dtype;
}

/* Makes unknown those dims of the variables that the body changes; *same: no dim had to be changed. */
static proa_status widen(proa_meta *metas, int64_t n, proa_tensors results, bool *same)
{
    *same = true;
    for (int64_t i = 0; i < n; i++) {
        const proa_tensor *t = results.at[i + 1];
        if (!proa__slot_empty(t) && begins_empty(&metas[i], t)) {
            metas[i] = proa_meta_of(t);
            for (int d = 0; d < t->ndim; d++)
                if (d == 0 || t->shape[d] < 0) metas[i].shape[d] = 0;
            *same = false;
            continue;
        }
        if (proa__slot_empty(t) || metas[i].dtype != (proa_dtype)t->dtype || metas[i].ndim != t->ndim)
            return proa_fail(
                PROA_ERR_INVALID_ARGUMENT,
                "while_loop: variable %lld is %s%s, and the body makes %s of it; dtype and rank must stay "
                "(cast or reshape it)",
                (long long)i, proa_dtype_name(metas[i].dtype),
                proa__shape_text(metas[i].shape, metas[i].ndim),
                proa__slot_empty(t) ? "nothing" : proa__tensor_text(t));
        for (int d = 0; d < t->ndim; d++) {
            if (metas[i].shape[d] == t->shape[d] || metas[i].shape[d] < 0) continue;
            metas[i].shape[d] = -1;
            *same = false;
        }
    }
    return PROA_OK;
}

/* Gives arrays that are empty at the start the rank of their items. */
static proa_status shape_empty(const proa_meta *metas, proa_tensors *vars)
{
    proa_tensor **at = proa_scope_alloc(((size_t)vars->count + 1) * sizeof *at);
    if (!at) return proa_error();
    for (int64_t i = 0; i < vars->count; i++) {
        at[i] = vars->at[i];
        if (at[i]->ndim == metas[i].ndim) continue;
        int64_t shape[PROA_MAX_DIMS];
        for (int d = 1; d < metas[i].ndim; d++) shape[d - 1] = metas[i].shape[d] > 0 ? metas[i].shape[d] : 0;
        at[i] = proa_array_create(.dtype = metas[i].dtype, .item = {metas[i].ndim - 1, shape, NULL, NULL});
        if (!at[i]) return proa_error();
    }
    vars->at = at;
    return PROA_OK;
}

static proa_status capture_while(proa_block *b, proa_tensor *condition, const loop_fns *fns,
                                 proa_tensors vars, proa__lambda_lift *lift, proa_tensors *out)
{
    proa_meta *metas = proa_scope_alloc(((size_t)vars.count + 1) * sizeof *metas);
    if (!metas) return proa_error();
    for (int64_t i = 0; i < vars.count; i++) metas[i] = proa_meta_of(vars.at[i]);
    proa_tensors results = {0, NULL};
    proa_block *body;
    for (bool same = false; !same;) { /* terminates: each round makes at least one more dim unknown */
        int32_t n_blocks = b->program->n_blocks;
        body = capture_body(b, fns, metas, vars.count, &results);
        if (!body) return proa_error();
        PROA_TRY(widen(metas, vars.count, results, &same));
        if (!same) proa__program_drop_blocks(b->program, n_blocks);
    }
    PROA_TRY(shape_empty(metas, &vars));
    proa_var **result_vars;
    PROA_TRY(proa__lambda_lift_collect(lift, body, results, &result_vars));
    PROA_TRY(proa__lambda_lift_apply(lift, body, result_vars, results.count));
    proa_tensors inputs = {lift->n, lift->tensors};
    *out = proa_loop(condition, vars, inputs, body).out;
    return proa_error();
}

static proa_tensor *ask(const loop_fns *fns, proa_tensors vars)
{
    proa_tensors c = fns->condition(vars, fns->context);
    if (proa_error() != PROA_OK) return NULL;
    if (c.count == 1) return c.at[0];
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "while_loop: the condition must return one tensor, got %lld",
              (long long)c.count);
    return NULL;
}

proa_tensors proa_while_loop(proa_block_fn condition, proa_block_fn body, proa_tensors vars, void *context)
{
    const proa_tensors none = {0, NULL};
    if (proa_error() != PROA_OK) return none;
    if (!condition || !body || (vars.count && !vars.at)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "while_loop: needs a condition, a body and variables");
        return none;
    }
    loop_fns fns = {condition, body, context};
    proa_block *b = proa__capture_block();
    proa_tensor *holds = ask(&fns, vars);
    while (holds && !(b && symbolic(holds))) {
        bool yes;
        if (truth("while_loop", holds, &yes) != PROA_OK) return none;
        if (!yes) return vars;
        vars = body(vars, context);
        if (proa_error() != PROA_OK) return none;
        holds = ask(&fns, vars);
    }
    if (!holds) return none;
    proa__lambda_lift lift = {0};
    proa_tensors out = none;
    int32_t n_blocks = b->program->n_blocks;
    proa_status status = capture_while(b, holds, &fns, vars, &lift, &out);
    end_capture(b, n_blocks, &lift, status);
    return status == PROA_OK ? out : none;
}

/* ---- functions with a backward of their own ----------------------------------------------- */

static proa_status capture_pylayer(proa_block *b, proa_tensors x, proa_tensors inputs, proa_block_fn backward,
                                   void *context, proa__lambda_lift *lift, proa_tensors *out)
{
    proa_block *made = proa__block_new(b->program, b->index);
    proa_meta *metas = proa_scope_alloc(((size_t)x.count + 1) * sizeof *metas);
    proa_tensors d;
    if (!made || !metas) return proa_error();
    for (int64_t i = 0; i < x.count; i++) metas[i] = proa_meta_of(x.at[i]);
    PROA_TRY(add_inputs(made, metas, x.count, &d));
    proa__capture_into(made);
    proa_tensors results = backward(d, context);
    proa__capture_into(b);
    PROA_TRY(proa_error());
    proa_var **vars;
    PROA_TRY(proa__lambda_lift_collect(lift, made, results, &vars));
    PROA_TRY(proa__lambda_lift_apply(lift, made, vars, results.count));
    proa_tensors outer = {lift->n, lift->tensors};
    *out = proa_pylayer(x, inputs, outer, made);
    return proa_error();
}

proa_tensors proa_with_backward(proa_tensors x, proa_tensors inputs, proa_block_fn backward, void *context)
{
    proa_tensors none = {0, NULL}, out = none;
    if (proa_error() != PROA_OK) return none;
    proa_block *b = proa__capture_block();
    if (!b || !backward) {
        proa_fail(b ? PROA_ERR_INVALID_ARGUMENT : PROA_ERR_BAD_STATE,
                  "with_backward: needs a function, and a program that is being built");
        return none;
    }
    proa__lambda_lift lift = {0};
    int32_t n_blocks = b->program->n_blocks;
    proa_status status = capture_pylayer(b, x, inputs, backward, context, &lift, &out);
    end_capture(b, n_blocks, &lift, status);
    return status == PROA_OK ? out : none;
}
