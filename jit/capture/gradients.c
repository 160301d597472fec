/* append_backward: records the ops of a block on the autograd tape without running them, then runs the
 * ordinary backward engine with capture open, which appends the gradient's ops to the block. May use core,
 * ops and autograd. */
#include "jit/ir/program.h"

#include "autograd/record.h"
#include "core/internal.h"
#include "core/op_device.h"
#include "core/args_visit.h"

#include <proa/autograd.h>

typedef struct differentiation {
    proa_program *program;
    proa_block *block;
    proa_tensors targets, inputs, seeds; /* variables' own handles */
    proa__hash_map stops;                /* variables that stop gradients */
} differentiation;

/* ---- the tape of a block ---------------------------------------------------------------- */

static proa_status cut(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const differentiation *d = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    if (v && (v->stop_gradient || proa__hash_map_find(&d->stops, v))) proa__forget_history(*slot);
    return PROA_OK;
}

/* Records the block's ops on the tape; inputs are leaves that want gradients. */
static proa_status record_block(differentiation *d, int32_t n_ops)
{
    for (int64_t i = 0; i < d->inputs.count; i++) PROA_TRY(proa_set_stop_gradient(d->inputs.at[i], false));
    for (int32_t i = 0; i < n_ops; i++) {
        const proa_instr *instr = &d->block->ops[i];
        proa__op_device = instr->device;
        PROA_TRY(proa__record_again(instr->op, instr->args));
        PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, cut, d));
    }
    return PROA_OK;
}

static void forget_block(const proa_block *b)
{
    for (int32_t i = 0; i < b->n_vars; i++) proa__forget_history(b->vars[i]->handle);
}

/* ---- names ----------------------------------------------------------------------------- */

static proa_status name_gradient(proa_block *b, const proa_var *of, proa_tensor *gradient)
{
    proa_var *v = proa__var_behind(b->program, gradient);
    size_t capacity = strlen(of->name) + 8;
    char *name = proa_scope_alloc(capacity);
    if (!name) return proa_error();
    snprintf(name, capacity, "%s@GRAD", of->name);
    bool fresh = v && !v->persistable && !v->is_input && strncmp(v->name, "tmp_", 4) == 0;
    if (!fresh || proa__var_find(b, name)) return PROA_OK;
    PROA_TRY(proa__var_rename(b, v, name));
    return proa_set_name(gradient, name);
}

/* ---- the call -------------------------------------------------------------------------- */

/* The handles that a program's variables own, for a user's list of handles. */
static proa_status own_handles(const differentiation *d, proa_tensors given, const char *what,
                               proa_tensors *to)
{
    to->at = proa_scope_alloc(((size_t)given.count + 1) * sizeof *to->at);
    if (!to->at) return proa_error();
    for (to->count = 0; to->count < given.count; to->count++) {
        proa_tensor *t = given.at[to->count];
        if (t == proa_none) {
            to->at[to->count] = t;
            continue;
        }
        const proa_var *v = t ? proa__var_behind(d->program, t) : NULL;
        if (!v)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "program_gradients: %s %lld is no variable of the program", what,
                             (long long)to->count);
        to->at[to->count] = v->handle;
    }
    return PROA_OK;
}

/* Runs the engine from those targets that depend on some input. */
static proa_tensors engine(const differentiation *d)
{
    proa_tensors targets = {0, proa_scope_alloc(((size_t)d->targets.count + 1) * sizeof *targets.at)};
    proa_tensors seeds = {0, proa_scope_alloc(((size_t)d->targets.count + 1) * sizeof *seeds.at)};
    proa_tensors none = {d->inputs.count, proa_scope_alloc(((size_t)d->inputs.count + 1) * sizeof *none.at)};
    if (!targets.at || !seeds.at || !none.at) return none;
    for (int64_t i = 0; i < none.count; i++) none.at[i] = PROA_NONE;
    for (int64_t i = 0; i < d->targets.count; i++) {
        if (proa_stop_gradient(d->targets.at[i])) continue;
        targets.at[targets.count++] = d->targets.at[i];
        seeds.at[seeds.count++] = i < d->seeds.count ? d->seeds.at[i] : PROA_NONE;
    }
    if (!targets.count) return none;
    return proa_grad(targets, d->inputs, seeds, (proa_grad_opts){.allow_unused = true});
}

static proa_status run(differentiation *d, proa_tensors *result)
{
    int32_t n_ops = d->block->n_ops, role = d->program->role, device = proa__op_device;
    proa_status status = record_block(d, n_ops);
    proa__op_device = device;
    PROA_TRY(status);
    proa_block *was = proa__capture_into(d->block);
    d->program->role = 1;
    *result = engine(d);
    d->program->role = role;
    proa__capture_into(was);
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < result->count; i++) {
        proa_tensor *g = result->at[i];
        if (g == proa_none) continue;
        if (g->flags & PROA_T_SYMBOLIC) PROA_TRY(name_gradient(d->block, d->inputs.at[i]->var, g));
    }
    return PROA_OK;
}

static proa_status prepare(differentiation *d, proa_tensors targets, proa_tensors inputs, proa_tensors seeds,
                           proa_tensors no_grad)
{
    proa_tensors stops;
    PROA_TRY(own_handles(d, targets, "target", &d->targets));
    PROA_TRY(own_handles(d, inputs, "input", &d->inputs));
    PROA_TRY(own_handles(d, seeds, "target gradient", &d->seeds));
    PROA_TRY(own_handles(d, no_grad, "no_grad variable", &stops));
    for (int64_t i = 0; i < stops.count; i++)
        if (stops.at[i] != proa_none) PROA_TRY(proa__hash_map_put(&d->stops, stops.at[i]->var, d));
    if (d->targets.count && d->inputs.count) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "program_gradients: needs targets and inputs, got %lld and %lld",
                     (long long)targets.count, (long long)inputs.count);
}

proa_tensors proa_program_gradients(proa_program *p, proa_tensors targets, proa_tensors inputs,
                                    proa_tensors target_grads, proa_tensors no_grad)
{
    proa_tensors result = {0, NULL}, none = {0, NULL};
    if (proa_error() != PROA_OK) return none;
    if (!p) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_gradients: the program is NULL");
        return none;
    }
    differentiation d = {.program = p, .block = proa__root(p)};
    proa_status status = prepare(&d, targets, inputs, target_grads, no_grad);
    if (status == PROA_OK) status = run(&d, &result);
    forget_block(d.block);
    proa__hash_map_clear(&d.stops);
    return status == PROA_OK ? result : none;
}
