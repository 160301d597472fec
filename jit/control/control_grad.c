/* Gradients of branches and loops: the op's sub-blocks are captured once more inside fresh blocks, where the
 * ordinary backward engine differentiates them. May use core, ops and autograd. */
#include "control.h"

#include "core/internal.h"

#include <proa/autograd.h>
#include <proa/ops.h>

/* A fresh block under construction, and the block to reopen afterwards. */
typedef struct making {
    proa_block *outer, *block;
    proa_var **inputs;
    int32_t n, capacity;
    bool recording;
} making;

static proa_status begin(making *m)
{
    m->outer = proa__capture_block();
    if (!m->outer)
        return proa_fail(PROA_ERR_BAD_STATE,
                         "backward: control flow is differentiated inside its program only");
    m->block = proa__block_new(m->outer->program, m->outer->index);
    if (!m->block) return proa_error();
    proa__capture_into(m->block);
    m->recording = proa_set_recording(true);
    return PROA_OK;
}

/* Closes the block, whose outputs become `results`. */
static proa_status finish(making *m, proa_tensors results)
{
    proa__capture_into(m->outer);
    proa_set_recording(m->recording);
    PROA_TRY(proa_error());
    proa__lambda_lift lift = {0};
    proa_var **vars;
    proa_status status = proa__block_set_inputs(m->block, m->inputs, m->n);
    if (status == PROA_OK) status = proa__lambda_lift_collect(&lift, m->block, results, &vars);
    if (status == PROA_OK && lift.n)
        status = proa_fail(PROA_ERR_UNSUPPORTED,
                           "backward: a gradient inside a branch or loop depends on %s, which is "
                           "no input of it",
                           lift.outer[0]->name);
    if (status == PROA_OK) status = proa__lambda_lift_apply(&lift, m->block, vars, results.count);
    proa__block_forget_reads(m->block);
    proa__hash_map_clear(&lift.known);
    proa__free(lift.outer);
    proa__free(lift.tensors);
    return status;
}

/* Adds an input with t's dtype and shape to the fresh block. */
static proa_tensor *add_input(making *m, const proa_tensor *t, bool wants_gradient)
{
    proa_meta meta = proa_meta_of(t);
    if (proa__reserve(&m->inputs, m->n, &m->capacity, sizeof *m->inputs) != PROA_OK) return NULL;
    proa_var *v = proa__var_new(m->block, NULL, &meta);
    proa_tensor *made = v ? proa__var_tensor(v) : NULL;
    if (!made) return NULL;
    m->inputs[m->n++] = v;
    if (wants_gradient && proa__floats(made)) proa_set_stop_gradient(made, false);
    return made;
}

static proa_tensors list_of(int64_t capacity)
{
    return (proa_tensors){0, proa_scope_alloc(((size_t)capacity + 1) * sizeof(proa_tensor *))};
}

/* Gradients with respect to the floating tensors of xs; d has one gradient for each floating tensor of
 * outs. */
static proa_tensors differentiate(proa_tensors outs, proa_tensors d, proa_tensors xs)
{
    proa_tensors from = list_of(outs.count), seeds = list_of(outs.count), to = list_of(xs.count);
    if (!from.at || !seeds.at || !to.at) return to;
    int64_t k = 0;
    for (int64_t i = 0; i < outs.count; i++) {
        if (!proa__floats(outs.at[i])) continue;
        proa_tensor *seed = d.at[k++];
        if (proa_stop_gradient(outs.at[i])) continue;
        from.at[from.count++] = outs.at[i];
        seeds.at[seeds.count++] = seed;
    }
    for (int64_t i = 0; i < xs.count; i++)
        if (proa__floats(xs.at[i])) to.at[to.count++] = xs.at[i];
    proa_tensors made = {to.count, NULL};
    if (from.count && to.count) made = proa_grad(from, to, seeds, (proa_grad_opts){.allow_unused = true});
    proa_tensors all = list_of(to.count);
    PROA_NO_GRAD;
    for (; all.at && all.count < to.count && proa_error() == PROA_OK; all.count++) {
        proa_tensor *g = made.at ? made.at[all.count] : proa_none;
        all.at[all.count] = g == proa_none ? proa_full_like(to.at[all.count], 0) : g;
    }
    return all;
}

/* Makes the block that computes b's gradient: its inputs are b's inputs and the gradients of its floating
 * outputs from output `first` on, its outputs the gradients of b's floating inputs. */
static proa_block *backward_of(const proa_block *b, int32_t first)
{
    making m = {0};
    proa_tensors outs = {0, NULL}, results = {0, NULL};
    proa_tensors xs = list_of(b->n_inputs), d = list_of(b->n_outputs);
    proa_status status = xs.at && d.at ? begin(&m) : proa_error();
    if (status != PROA_OK) return NULL;
    for (; xs.count < b->n_inputs && proa_error() == PROA_OK; xs.count++)
        xs.at[xs.count] = add_input(&m, b->inputs[xs.count]->handle, true);
    for (int32_t i = first; i < b->n_outputs && proa_error() == PROA_OK; i++)
        if (proa__floats(b->outputs[i]->handle))
            d.at[d.count++] = add_input(&m, b->outputs[i]->handle, false);
    if (proa_error() == PROA_OK && proa__block_inline(b, xs, NULL, &outs) == PROA_OK) {
        outs = (proa_tensors){outs.count - first, outs.at + first};
        results = differentiate(outs, d, xs);
    }
    status = finish(&m, results);
    proa__free(m.inputs);
    return status == PROA_OK ? m.block : NULL;
}

static proa_tensors floating(proa_tensors list)
{
    proa_tensors some = list_of(list.count);
    for (int64_t i = 0; some.at && i < list.count; i++)
        if (!proa__absent(list.at[i]) && proa__floats(list.at[i])) some.at[some.count++] = list.at[i];
    return some;
}

/* Distributes `made`, gradients of the floating tensors of `of` only, to a list with one entry for each
 * tensor. */
static void spread(proa_tensors of, proa_tensors made, int64_t first, proa_tensors *d)
{
    for (int64_t i = 0, k = first; d->at && i < of.count; i++)
        d->at[i] = proa__floats(of.at[i]) ? made.at[k++] : PROA_NONE;
}

proa_status branch_vjp(const proa_branch_args *a, proa_branch_grads *g)
{
    if (!g->want_inputs) return PROA_OK;
    proa_block *then = backward_of(a->then, 0);
    proa_block *otherwise = then ? backward_of(a->otherwise, 0) : NULL;
    if (!otherwise) return proa_error();
    proa_tensors d = floating(g->d_out), inputs = list_of(a->inputs.count + d.count);
    if (!inputs.at || !d.at) return proa_error();
    for (int64_t i = 0; i < a->inputs.count; i++) inputs.at[inputs.count++] = a->inputs.at[i];
    for (int64_t i = 0; i < d.count; i++) inputs.at[inputs.count++] = d.at[i];
    proa_tensors made = proa_branch(a->pred, inputs, a->rng_out, then, otherwise).out;
    PROA_TRY(proa_error());
    spread(a->inputs, made, 0, &g->d_inputs);
    return PROA_OK;
}

proa_status loop_vjp(const proa_loop_args *a, proa_loop_grads *g)
{
    proa_block *body = backward_of(a->body, 1);
    if (!body) return proa_error();
    proa_tensors d = floating(g->d_out);
    if (!d.at) return proa_error();
    proa_tensors made = proa_loop_grad(d, a->steps, a->inputs, body);
    PROA_TRY(proa_error());
    if (g->want_vars) spread(a->vars, made, 0, &g->d_vars);
    if (g->want_inputs) spread(a->inputs, made, d.count, &g->d_inputs);
    return PROA_OK;
}

/* The backward of the layer, called on the gradients of its results: zeros for results that nothing used. */
proa_status pylayer_vjp(const proa_pylayer_args *a, proa_pylayer_grads *g)
{
    if (!g->want_inputs) return PROA_OK;
    if (!proa__capture_block())
        return proa_fail(PROA_ERR_BAD_STATE, "backward: pylayer is differentiated inside its program only");
    proa_tensors in = list_of(a->x.count + a->outer.count), made;
    if (!in.at) return proa_error();
    for (int64_t i = 0; i < a->x.count; i++) {
        proa_tensor *d = g->d_out.at[i];
        in.at[in.count++] = proa__absent(d) ? proa_full_like(a->x.at[i], 0) : d;
    }
    for (int64_t i = 0; i < a->outer.count; i++) in.at[in.count++] = a->outer.at[i];
    PROA_TRY(proa_error());
    PROA_TRY(proa__block_inline(a->backward, in, NULL, &made));
    for (int64_t i = 0; i < made.count; i++)
        g->d_inputs.at[i] = proa__floats(made.at[i]) ? made.at[i] : PROA_NONE;
    return PROA_OK;
}
