/* Kernels of branches and loops: each runs its op's sub-blocks with its own executors, which are made when
 * the kernel is prepared. May use core and ops. */
#include "control.h"
#include "core/copy.h"
#include "core/device.h"
#include "jit/plan/plan.h"

#include <proa/ops.h>

typedef struct blocks {
    proa_executor *first, *second;
} blocks;

static void blocks_release(void *state)
{
    blocks *b = state;
    proa_executor_free(b->first);
    proa_executor_free(b->second);
    proa__free(b);
}

static proa_status blocks_new(const proa_op *op, const proa_block *first, const proa_block *second,
                              void **state)
{
    if (!first)
        return proa__op_fail(PROA_ERR_BAD_STATE, op, NULL, "has no block: it only works inside a program");
    blocks *b = proa__calloc(sizeof *b);
    if (!b) return proa_error();
    b->first = proa__executor_of(first, NULL);
    b->second = second && b->first ? proa__executor_of(second, NULL) : NULL;
    *state = b;
    if (b->first && (b->second || !second)) return PROA_OK;
    blocks_release(b);
    *state = NULL;
    return proa_error();
}

static proa_status holds(const proa_op *op, const proa_tensor *condition, bool *yes)
{
    if (condition->numel != 1 || condition->dtype != PROA_BOOL)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, "condition", "must be one bool, got %s",
                             proa__tensor_text(condition));
    return proa_copy_out(condition, yes, 1);
}

static proa_tensors join(proa_tensors a, proa_tensors b, proa_tensors c)
{
    proa_tensors all = {
        0, proa_scope_alloc(((size_t)(a.count + b.count + c.count) + 1) * sizeof(proa_tensor *))};
    const proa_tensors parts[] = {a, b, c};
    for (int k = 0; k < 3 && all.at; k++)
        for (int64_t i = 0; i < parts[k].count; i++) all.at[all.count++] = parts[k].at[i];
    return all;
}

/* Moves results to the op's output slots, as far as these are present. */
static void give(const proa_tensors *out, int64_t at, proa_tensors results)
{
    for (int64_t i = 0; i < results.count; i++)
        if (!proa__absent(out->at[at + i])) out->at[at + i] = results.at[i];
}

/* ---- branch ---------------------------------------------------------------------------- */

static proa_status branch_prepare(const void *args, void **state)
{
    const proa_branch_args *a = args;
    return blocks_new(&proa__op_branch, a->then, a->otherwise, state);
}

/* Stores a random state as a tensor. */
static proa_tensor *state_tensor(proa_rng_state s)
{
    int64_t at[2] = {(int64_t)s.seed, (int64_t)s.offset};
    return proa_from_data(at, PROA_SHAPE(2), PROA_I64);
}

static proa_status set_state(const proa_tensor *t)
{
    int64_t at[2];
    PROA_TRY(proa_copy_out(t, at, sizeof at));
    proa_rng_set((proa_rng_state){(uint64_t)at[0], (uint64_t)at[1]});
    return PROA_OK;
}

PROA_KERNEL_OF(branch_any, branch, branch_prepare, blocks_release, true, NULL)
{
    const blocks *b = run->state;
    bool yes;
    PROA_TRY(holds(&proa__op_branch, a->pred, &yes));
    proa_rng_state before = proa_rng_get();
    bool again = !proa__absent(a->rng);
    if (again) PROA_TRY(set_state(a->rng));
    proa_tensors results = proa_executor_run(yes ? b->first : b->second, a->inputs);
    if (again) proa_rng_set(before);
    PROA_TRY(proa_error());
    give(&a->out, 0, results);
    if (proa__absent(a->rng_out)) return PROA_OK;
    ((proa_branch_args *)(uintptr_t)a)->rng_out = state_tensor(before);
    return proa_error();
}

/* ---- loop ----------------------------------------------------------------------------- */

static proa_status loop_prepare(const void *args, void **state)
{
    const proa_loop_args *a = args;
    return blocks_new(&proa__op_loop, a->body, NULL, state);
}

typedef struct looping {
    const proa_loop_args *a;
    proa_executor *body;
    proa_tensors vars; /* owned through references of the loop */
    proa_tensor *condition;
    proa__loop_tape steps;
} looping;

/* Runs one iteration: replaces the variables and the condition by the next ones. */
static proa_status step(looping *l)
{
    PROA_SCOPED;
    proa_tensors none = {0, NULL};
    proa_tensors inputs = join(l->vars, l->a->inputs, none);
    if (!inputs.at) return proa_error();
    if (!proa__absent(l->a->steps)) PROA_TRY(proa__loop_tape_add(&l->steps, l->vars));
    proa_tensors results = proa_executor_run(l->body, inputs);
    PROA_TRY(proa_error());
    proa_keep(results.at[0]);
    proa_release(l->condition);
    l->condition = results.at[0];
    for (int64_t i = 0; i < l->vars.count; i++) {
        proa_keep(results.at[i + 1]);
        proa_release(l->vars.at[i]);
        l->vars.at[i] = results.at[i + 1];
    }
    return PROA_OK;
}

static proa_status loop(looping *l)
{
    bool yes;
    PROA_TRY(holds(&proa__op_loop, l->condition, &yes));
    bool never = !yes;
    while (yes) {
        PROA_TRY(step(l));
        PROA_TRY(holds(&proa__op_loop, l->condition, &yes));
    }
    for (int64_t i = 0; i < l->vars.count; i++) {
        proa_tensor *t = l->vars.at[i];
        /* Without any iteration the variables are the op's inputs, whose memory belongs to others: copy
         * them. */
        proa_tensor *out = never ? proa_assign(t) : proa__tensor_alias(t);
        if (!out) return proa_error();
        give(&l->a->out, i, (proa_tensors){1, &out});
    }
    return PROA_OK;
}

PROA_KERNEL_OF(loop_any, loop, loop_prepare, blocks_release, true, NULL)
{
    const blocks *b = run->state;
    looping l = {.a = a, .body = b->first, .condition = proa_retain(a->condition)};
    l.vars.at = proa_scope_alloc(((size_t)a->vars.count + 1) * sizeof *l.vars.at);
    for (; l.vars.at && l.vars.count < a->vars.count; l.vars.count++)
        l.vars.at[l.vars.count] = proa_retain(a->vars.at[l.vars.count]);
    proa_status status = l.vars.at ? loop(&l) : proa_error();
    if (status == PROA_OK && !proa__absent(a->steps)) {
        proa_tensor *record = proa__loop_tape_finish(&l.steps);
        if (record) ((proa_loop_args *)(uintptr_t)a)->steps = record;
        else status = proa_error();
    }
    proa_release(l.condition);
    for (int64_t i = 0; i < l.vars.count; i++) proa_release(l.vars.at[i]);
    proa__loop_tape_free(&l.steps);
    return status;
}

/* ---- loop, backwards ----------------------------------------------------------------- */

static proa_status loop_grad_prepare(const void *args, void **state)
{
    const proa_loop_grad_args *a = args;
    return blocks_new(&proa__op_loop_grad, a->body, NULL, state);
}

/* Runs the backward of one iteration: gradients of the loop's variables replace those of the next iteration,
 * gradients of other inputs are added up. */
static proa_status step_back(const proa_loop_grad_args *a, const proa_tensor *steps, proa_executor *body,
                             int64_t i, proa_tensors d)
{
    PROA_SCOPED;
    proa_tensors vars, next = {a->d_out.count, d.at};
    proa_rng_state rng, before = proa_rng_get();
    PROA_TRY(proa__loop_tape_get(steps, i, proa__executor_inputs(body) - a->inputs.count - a->d_out.count,
                                 &vars, &rng));
    proa_tensors inputs = join(vars, a->inputs, next);
    if (!inputs.at) return proa_error();
    proa_rng_set(rng);
    proa_tensors results = proa_executor_run(body, inputs);
    proa_rng_set(before);
    PROA_TRY(proa_error());
    for (int64_t k = 0; k < d.count; k++) {
        proa_tensor *sum = k < a->d_out.count || !d.at[k] ? results.at[k] : proa_add(d.at[k], results.at[k]);
        if (!sum) return proa_error();
        proa_keep(sum);
        proa_release(d.at[k]);
        d.at[k] = sum;
    }
    return PROA_OK;
}

/* Gives zeros to the floating inputs that have no gradient, as in a loop without iterations. */
static proa_status fill_missing(const proa_loop_grad_args *a, proa_tensors d)
{
    int64_t k = a->d_out.count;
    for (int64_t i = 0; i < a->inputs.count; i++) {
        if (!proa__floats(a->inputs.at[i])) continue;
        if (!d.at[k]) {
            proa_tensor *zeros = proa_full_like(a->inputs.at[i], 0);
            if (!zeros) return proa_error();
            d.at[k] = proa_keep(zeros);
        }
        k++;
    }
    return PROA_OK;
}

PROA_KERNEL_OF(loop_grad_any, loop_grad, loop_grad_prepare, blocks_release, true, NULL)
{
    const blocks *b = run->state;
    proa_tensors d = {a->d.count, proa_scope_alloc(((size_t)a->d.count + 1) * sizeof(proa_tensor *))};
    if (!d.at) return proa_error();
    for (int64_t k = 0; k < d.count; k++) d.at[k] = k < a->d_out.count ? proa_retain(a->d_out.at[k]) : NULL;
    const proa_tensor *steps = proa__copy_to(a->steps, PROA_CPU); /* the loop's tape is read by the host */
    proa_status status = steps ? PROA_OK : proa_error();
    for (int64_t i = steps ? proa__loop_tape_count(steps) - 1 : -1; i >= 0 && status == PROA_OK; i--)
        status = step_back(a, steps, b->first, i, d);
    if (status == PROA_OK) status = fill_missing(a, d);
    for (int64_t k = 0; k < d.count; k++) {
        proa_tensor *out = status == PROA_OK ? proa_assign(d.at[k]) : NULL;
        if (out) give(&a->d, k, (proa_tensors){1, &out});
        else status = proa_error();
        proa_release(d.at[k]);
    }
    return status;
}

/* ---- pylayer ----------------------------------------------------------------------------- */

PROA_KERNEL_ANYWHERE(pylayer_any, pylayer)
{
    for (int64_t i = 0; i < a->x.count; i++)
        if (!proa__absent(a->out.at[i])) PROA_TRY(proa__copy(a->out.at[i], a->x.at[i]));
    return PROA_OK;
}
