/* Custom functions with a backward of their own, and eager recompute (activation checkpointing) built on
 * them. May use core and ops. */
#include "autograd/backward.h"

#include <proa/ops.h>

static bool keep_list(proa_tensors *to, proa_tensors from, bool as_alias)
{
    to->count = 0;
    to->at = from.count ? proa__alloc((size_t)from.count * sizeof *to->at) : NULL;
    if (from.count && !to->at) return false;
    for (; to->count < from.count; to->count++) {
        proa_tensor *t = from.at[to->count];
        proa_tensor *kept = as_alias && t != proa_none ? proa__tensor_alias(t) : t;
        if (!kept) return false;
        to->at[to->count] = proa_keep(kept);
        if (kept != t) proa_drop(kept);
        else atomic_store_explicit(&t->is_saved, true, memory_order_relaxed);
    }
    return true;
}

static proa_status check_list(const char *who, const char *what, proa_tensors list)
{
    if (list.count < 0 || (list.count > 0 && !list.at))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %s is a list of %lld tensors at NULL", who, what,
                         (long long)list.count);
    for (int64_t i = 0; i < list.count; i++)
        if (!list.at[i])
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %s %lld is NULL", who, what, (long long)i);
    return PROA_OK;
}

static bool any_gradient(proa_tensors list)
{
    for (int64_t i = 0; i < list.count; i++)
        if (list.at[i]->flags & PROA_T_GRAD) return true;
    return false;
}

/* Replaces outputs that are inputs returned unchanged by new handles; otherwise the inputs would get this
 * node's history. */
static proa_status fresh_outputs(proa_tensors inputs, proa_tensors *outputs)
{
    proa_tensor **at = proa_scope_alloc((size_t)(outputs->count + 1) * sizeof *at);
    if (!at) return proa_error();
    for (int64_t i = 0; i < outputs->count; i++) {
        at[i] = outputs->at[i];
        bool passed = at[i] != proa_none && at[i]->flags & PROA_T_GRAD;
        for (int64_t k = 0; k < inputs.count && !passed; k++) passed = inputs.at[k] == at[i];
        if (passed && at[i] != proa_none) at[i] = proa__tensor_alias(at[i]);
        if (!at[i]) return proa_error();
    }
    outputs->at = at;
    return PROA_OK;
}

static proa_status make_node(const proa_function *fn, proa_tensors inputs, proa_tensors outputs,
                             void *context, bool watched)
{
    proa_node *n = proa__node_new(PROA_NODE_FUNCTION, (int32_t)inputs.count, 0, (int32_t)inputs.count, 0);
    if (!n) return proa_error();
    bool ok = (fn->forget_inputs || keep_list(&n->inputs, inputs, false)) &&
              (fn->forget_outputs || keep_list(&n->outputs, outputs, true)) &&
              proa__node_set_outputs(n, (int32_t)outputs.count);
    for (int32_t i = 0; ok && i < n->n_edges; i++) {
        proa_tensor *t = inputs.at[i];
        if (t == proa_none || !(t->flags & PROA_T_GRAD)) continue;
        ok = proa__edge_to(&n->edges[i], t);
        if (t->storage && !fn->forget_inputs && watched)
            n->saved[n->n_saved++] = (proa_saved_version){t, proa__guarded_version(t)};
    }
    if (!ok) {
        proa__node_release(n);
        return proa_error();
    }
    n->function = *fn;
    n->context = context;
    for (int32_t i = 0; i < n->n_out; i++) {
        proa_tensor *t = outputs.at[i];
        if (t == proa_none) continue;
        if (n->metas) n->metas[i] = proa_meta_of(t);
        if (t->dtype >= PROA_F16) proa__attach(t, proa__node_retain_new(n), (uint32_t)i);
    }
    proa__node_release(n);
    return PROA_OK;
}

static proa_tensors apply(const proa_function *fn, proa_tensors inputs, void *context, bool always,
                          bool watched)
{
    proa_tensors none = {0, NULL};
    bool record = proa_recording() && (always || any_gradient(inputs));
    bool was = proa_set_recording(false);
    proa_tensors outputs = fn->forward(inputs, context);
    proa_set_recording(was);
    proa_status status = proa_error();
    if (status == PROA_OK) status = check_list(fn->name, "output", outputs);
    if (status == PROA_OK) status = fresh_outputs(inputs, &outputs);
    if (status == PROA_OK && record) {
        status = make_node(fn, inputs, outputs, context, watched);
        if (status == PROA_OK) return outputs; /* the node owns the context now */
    }
    if (fn->release) fn->release(context);
    return status == PROA_OK ? outputs : none;
}

proa_tensors proa_apply(const proa_function *fn, proa_tensors inputs, void *context)
{
    proa_tensors none = {0, NULL};
    if (proa_error()) return none;
    if (!fn || !fn->forward || !fn->backward) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "apply: fn needs both forward and backward");
        return none;
    }
    if (check_list("apply", "input", inputs) != PROA_OK) return none;
    return apply(fn, inputs, context, false, true);
}

proa_tensors proa__apply_unwatched(const proa_function *fn, proa_tensors inputs, void *context)
{
    return apply(fn, inputs, context, false, false);
}

/* ---- recompute ------------------------------------------------------------------------- */

typedef struct recompute {
    proa_tensors (*fn)(proa_tensors inputs, void *context);
    void *context;
    void (*release)(void *);
    proa_rng_state rng;
    bool convert;
} recompute;

static proa_tensors recompute_forward(proa_tensors inputs, void *context)
{
    recompute *r = context;
    return r->fn(inputs, r->context);
}

/* Runs fn again on detached inputs with recording on, then backward through the recorded ops. */
static proa_status run_again(recompute *r, proa_tensors inputs, proa_tensors given, proa_tensors detached)
{
    for (int64_t i = 0; i < inputs.count; i++) {
        proa_tensor *t = inputs.at[i];
        detached.at[i] = t == proa_none ? t : proa_detach(t);
        if (!detached.at[i]) return proa_error();
        if (t != proa_none && t->flags & PROA_T_GRAD) PROA_TRY(proa_set_stop_gradient(detached.at[i], false));
    }
    proa_tensors outputs = r->fn(detached, r->context);
    PROA_TRY(proa_error());
    if (outputs.count != given.count)
        return proa_fail(PROA_ERR_BAD_STATE,
                         "recompute: the function returned %lld outputs at first and %lld now",
                         (long long)given.count, (long long)outputs.count);
    int64_t n = 0;
    for (int64_t i = 0; i < outputs.count; i++) {
        if (given.at[i] == proa_none || outputs.at[i] == proa_none || !(outputs.at[i]->flags & PROA_T_GRAD))
            continue;
        outputs.at[n] = outputs.at[i];
        given.at[n++] = given.at[i];
    }
    outputs.count = given.count = n;
    return n ? proa_backward_all(outputs, given, (proa_backward_opts){0}) : PROA_OK;
}

static proa_tensors recompute_backward(proa_tensors inputs, proa_tensors outputs, proa_tensors grads,
                                       void *context)
{
    (void)outputs;
    recompute *r = context;
    proa_tensors none = {0, NULL};
    proa_tensors detached = {inputs.count,
                             proa_scope_alloc((size_t)(inputs.count + 1) * sizeof(proa_tensor *))};
    proa_tensors made = {inputs.count, proa_scope_alloc((size_t)(inputs.count + 1) * sizeof(proa_tensor *))};
    if (!detached.at || !made.at) return none;
    if (proa_recording()) {
        proa_fail(PROA_ERR_UNSUPPORTED, "recompute: its backward cannot be recorded (create_graph)");
        return none;
    }
    proa_rng_state now = proa_rng_get();
    proa_rng_set(r->rng);
    bool convert = proa_door_set(PROA_DOOR_CONVERT, r->convert);
    bool record = proa_set_recording(true);
    proa_status status = run_again(r, inputs, grads, detached);
    proa_set_recording(record);
    proa_door_set(PROA_DOOR_CONVERT, convert);
    proa_rng_set(now);
    if (status != PROA_OK) return none;
    for (int64_t i = 0; i < inputs.count; i++) made.at[i] = proa_grad_of(detached.at[i]);
    return made;
}

static void recompute_release(void *context)
{
    recompute *r = context;
    if (r->release) r->release(r->context);
    proa__free(r);
}

static const proa_function recompute_function = {.name = "recompute",
                                                 .forward = recompute_forward,
                                                 .backward = recompute_backward,
                                                 .release = recompute_release};

proa_tensors proa_recompute(proa_tensors (*fn)(proa_tensors inputs, void *context), proa_tensors inputs,
                            void *context, void (*release)(void *))
{
    proa_tensors none = {0, NULL};
    if (proa_error()) return none;
    if (!fn) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "recompute: fn is NULL");
        return none;
    }
    if (check_list("recompute", "input", inputs) != PROA_OK) return none;
    recompute *r = proa__alloc(sizeof *r);
    if (!r) return none;
    *r = (recompute){fn, context, release, proa_rng_get(), proa_door_is_open(PROA_DOOR_CONVERT)};
    /* parameters inside fn may want gradients even where no input does */
    return apply(&recompute_function, inputs, r, true, true);
}
