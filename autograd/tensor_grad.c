/* A tensor's gradient in the public API: stop_gradient, grad, hooks, detach; and proa_backward and proa_grad,
 * which translate tensors into the engine's endpoints. May use core and ops. */
#include "autograd/backward.h"
#include "core/device.h"

#include <proa/ops.h>

static bool may_want_gradient(const proa_tensor *t) { return t->dtype >= PROA_F16; }

static proa_status check_tensor(const char *who, const proa_tensor *t)
{
    if (t && t != proa_none) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the tensor is %s", who, t ? "PROA_NONE" : "NULL");
}

proa_status proa_set_stop_gradient(proa_tensor *t, bool stop)
{
    PROA_TRY(proa_error());
    PROA_TRY(check_tensor("set_stop_gradient", t));
    if (!stop && !may_want_gradient(t))
        return proa_fail(
            PROA_ERR_WRONG_TYPE,
            "set_stop_gradient: a %s tensor cannot have a gradient; expected a floating or complex dtype",
            proa_dtype_name((proa_dtype)t->dtype));
    if (!stop && t->flags & PROA_T_NOT_DENSE)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "set_stop_gradient: %s cannot have a gradient; it is not dense",
                         proa__tensor_text(t));
    if (stop) {
        t->flags &= ~(uint32_t)(PROA_T_GRAD | PROA_T_LEAF);
        return PROA_OK;
    }
    t->flags |= PROA_T_GRAD | (t->node ? 0 : PROA_T_LEAF);
    return PROA_OK;
}

bool proa_stop_gradient(const proa_tensor *t) { return !t || !(t->flags & PROA_T_GRAD); }
bool proa_is_leaf(const proa_tensor *t) { return !t || !t->node; }
bool proa_set_recording(bool on) { return proa_door_set(PROA_DOOR_RECORD, on); }
bool proa_recording(void) { return proa_door_is_open(PROA_DOOR_RECORD); }
void proa_restore_recording_(const bool *was) { proa_door_set(PROA_DOOR_RECORD, *was); }

proa_tensor *proa_grad_of(const proa_tensor *leaf)
{
    struct proa_grad_info *info = leaf ? leaf->grad : NULL;
    return info && info->grad ? proa__grad_now(info) : proa_none;
}

proa_tensor *proa__grad_now(struct proa_grad_info *info)
{
    if (info->zeroed) {
        info->zeroed = false;
        (void)proa__fill(info->grad, NULL);
    }
    return info->grad;
}

void proa_clear_grad(proa_tensor *leaf)
{
    if (!leaf || !leaf->grad) return;
    proa_release(leaf->grad->grad);
    leaf->grad->grad = NULL;
    leaf->grad->zeroed = leaf->grad->bound = false;
}

proa_status proa_zero_grad(proa_tensor *leaf)
{
    struct proa_grad_info *info = leaf ? leaf->grad : NULL;
    if (!info || !info->grad || info->zeroed) return PROA_OK;
    proa_tensor *g = info->grad;
    if (g->kind == PROA_ROWS) { /* as in Paddle, a SelectedRows gradient becomes no gradient */
        proa_clear_grad(leaf);
        return PROA_OK;
    }
    if (g->kind == PROA_DENSE &&
        (proa__sole_owner(g) || (info->alone && info->alone(info->stored_context, g)))) {
        info->zeroed = true;
        return PROA_OK;
    }
    bool plain = g->kind == PROA_DENSE && !g->node && !(g->flags & (PROA_T_STRIDED | PROA_T_SYMBOLIC));
    if (plain) { /* its memory has other owners: cleared in place, and they see the zeros, too */
        proa__bump_version(g);
        return proa__fill(g, NULL);
    }
    PROA_TRY(proa_error());
    PROA_SCOPED;
    PROA_NO_GRAD;
    proa_tensor *zeros = proa_full_like(leaf, 0);
    return zeros ? proa_set_grad(leaf, zeros) : proa_error();
}

proa_tensor *proa__take_zeroed(proa_tensor *leaf)
{
    struct proa_grad_info *info = leaf->grad;
    if (!info || !info->grad || !info->zeroed || info->bound || !proa__sole_owner(info->grad)) return NULL;
    proa_tensor *g = info->grad;
    info->grad = NULL;
    info->zeroed = false;
    return proa__scope_push(g) ? g : NULL;
}

proa_status proa_set_grad(proa_tensor *leaf, proa_tensor *grad)
{
    PROA_TRY(proa_error());
    PROA_TRY(check_tensor("set_grad", leaf));
    PROA_TRY(check_tensor("set_grad", grad));
    bool fits = grad->dtype == leaf->dtype && grad->ndim == leaf->ndim &&
                (grad->kind == PROA_ROWS
                     ? proa__rows_fit(grad, leaf->shape, leaf->ndim)
                     : !memcmp(grad->shape, leaf->shape, (size_t)leaf->ndim * sizeof *leaf->shape));
    if (!fits)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "set_grad: the gradient is %s, the tensor %s; they must agree",
                         proa__tensor_text(grad), proa__tensor_text(leaf));
    struct proa_grad_info *info = proa__grad_info(leaf);
    if (!info) return proa_error();
    proa_keep(grad);
    proa_release(info->grad);
    info->grad = grad;
    info->zeroed = info->bound = false;
    return PROA_OK;
}

proa_status proa_bind_grad(proa_tensor *leaf, proa_tensor *grad)
{
    PROA_TRY(proa_error());
    PROA_TRY(check_tensor("bind_grad", grad));
    if (grad->kind != PROA_DENSE || grad->node ||
        grad->flags & (PROA_T_STRIDED | PROA_T_SYMBOLIC | PROA_T_META))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "bind_grad: grad is %s; expected a dense, contiguous tensor without history",
                         proa__tensor_text(grad));
    PROA_TRY(proa_set_grad(leaf, grad));
    leaf->grad->bound = true;
    return PROA_OK;
}

proa_status proa_retain_grad(proa_tensor *t)
{
    PROA_TRY(proa_error());
    PROA_TRY(check_tensor("retain_grad", t));
    if (!(t->flags & PROA_T_GRAD))
        return proa_fail(PROA_ERR_BAD_STATE,
                         "retain_grad: no gradient flows to this tensor (stop_gradient is true)");
    struct proa_grad_info *info = proa__grad_info(t);
    if (!info) return proa_error();
    info->retain = true;
    return PROA_OK;
}

int64_t proa_register_hook(proa_tensor *t, proa_hook_fn fn, void *context, void (*release)(void *))
{
    if (proa_error() || check_tensor("register_hook", t) != PROA_OK) return 0;
    if (!fn || !(t->flags & PROA_T_GRAD)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  !fn ? "register_hook: fn is NULL"
                      : "register_hook: no gradient flows to this tensor (stop_gradient "
                        "is true)");
        return 0;
    }
    struct proa_grad_info *info = proa__grad_info(t);
    if (!info) return 0;
    proa_hook *hooks = proa__realloc(info->hooks, (size_t)(info->n_hooks + 1) * sizeof *hooks);
    if (!hooks) return 0;
    info->hooks = hooks;
    hooks[info->n_hooks++] = (proa_hook){info->next_hook, fn, context, release};
    return info->next_hook++;
}

bool proa_remove_hook(proa_tensor *t, int64_t id)
{
    struct proa_grad_info *info = t ? t->grad : NULL;
    for (int32_t i = 0; info && i < info->n_hooks; i++) {
        if (info->hooks[i].id != id) continue;
        proa_hook gone = info->hooks[i];
        info->n_hooks--;
        memmove(&info->hooks[i], &info->hooks[i + 1], (size_t)(info->n_hooks - i) * sizeof gone);
        if (gone.release) gone.release(gone.context);
        return true;
    }
    return false;
}

proa_tensor *proa_detach(proa_tensor *t)
{
    if (proa_error() || check_tensor("detach", t) != PROA_OK) return NULL;
    return t->flags & PROA_T_SYMBOLIC ? proa_share_data(t) : proa__tensor_alias(t);
}

/* ---- backward and grad ----------------------------------------------------------------- */

/* Makes the root for one output: its node, and the given gradient or ones. */
static proa_status root_of(const char *who, proa_tensor *t, proa_tensor *given, proa__endpoint *root)
{
    PROA_TRY(check_tensor(who, t));
    if (!proa__gradient_edge(t, &root->node, &root->output)) return proa_error();
    if (!root->node)
        return proa_fail(PROA_ERR_BAD_STATE,
                         "%s: the output has no history; did its inputs stop_gradient, or was recording off?",
                         who);
    if (given && given != proa_none) {
        bool same = given->ndim == t->ndim;
        for (int i = 0; same && i < t->ndim; i++) /* sizes unknown until a run are taken as equal */
            same = given->shape[i] == t->shape[i] || given->shape[i] < 0 || t->shape[i] < 0;
        if (!same)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the gradient given is %s for an output %s", who,
                             proa__tensor_text(given), proa__tensor_text(t));
        root->grad = given;
        return PROA_OK;
    }
    bool record = proa_set_recording(false);
    root->grad = proa_full_like(t, 1);
    proa_set_recording(record);
    return root->grad ? PROA_OK : proa_error();
}

static proa_status make_roots(const char *who, proa_tensors outputs, proa_tensors grads,
                              proa__endpoint **roots)
{
    if (outputs.count <= 0 || !outputs.at)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: no outputs were given", who);
    if (grads.count && grads.count != outputs.count)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %lld gradients were given for %lld outputs", who,
                         (long long)grads.count, (long long)outputs.count);
    *roots = proa_scope_alloc((size_t)outputs.count * sizeof **roots);
    if (!*roots) return proa_error();
    memset(*roots, 0, (size_t)outputs.count * sizeof **roots);
    for (int64_t i = 0; i < outputs.count; i++)
        PROA_TRY(root_of(who, outputs.at[i], grads.count ? grads.at[i] : NULL, &(*roots)[i]));
    return PROA_OK;
}

static void drop_roots(proa__endpoint *roots, int64_t n)
{
    for (int64_t i = 0; roots && i < n; i++) proa__node_release(roots[i].node);
}

proa_status proa_backward_all(proa_tensors outputs, proa_tensors grads, proa_backward_opts opts)
{
    PROA_TRY(proa_error());
    PROA_SCOPED;
    proa__endpoint *roots = NULL;
    proa_status status = make_roots("backward", outputs, grads, &roots);
    proa__backward_call call = {.roots = roots, .n_roots = outputs.count, .create_graph = opts.create_graph};
    call.retain_graph = opts.retain_graph || opts.create_graph;
    if (status == PROA_OK) status = proa__backward_run(&call);
    drop_roots(roots, outputs.count);
    return status;
}

proa_status proa_backward(proa_tensor *loss)
{
    PROA_TRY(proa_error());
    PROA_TRY(check_tensor("backward", loss));
    return proa_backward_all((proa_tensors){1, &loss}, (proa_tensors){0, NULL}, (proa_backward_opts){0});
}

/* Result for input i: the gradient that arrived, or PROA_NONE where that is allowed. */
static proa_tensor *target_result(const proa__endpoint *target, int64_t i, bool allow_unused)
{
    if (target->grad) return target->grad;
    if (allow_unused) return proa_none;
    proa_fail(PROA_ERR_INVALID_ARGUMENT,
              "grad: input %lld is not used by the outputs; pass allow_unused = true to get none for it",
              (long long)i);
    return NULL;
}

static proa_status find_targets(proa_tensors inputs, proa__endpoint *targets)
{
    for (int64_t i = 0; i < inputs.count; i++) {
        PROA_TRY(check_tensor("grad", inputs.at[i]));
        if (!(inputs.at[i]->flags & PROA_T_GRAD))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "grad: input %lld has stop_gradient true",
                             (long long)i);
        if (!proa__gradient_edge(inputs.at[i], &targets[i].node, &targets[i].output)) return proa_error();
    }
    return PROA_OK;
}

static proa_tensors gradients(proa_tensors outputs, proa_tensors inputs, proa_tensors grads,
                              proa_grad_opts opts, bool inside)
{
    proa_tensors none = {0, NULL}, result = {inputs.count, NULL};
    if (proa_error()) return none;
    if (inputs.count <= 0 || !inputs.at) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "grad: no inputs were given");
        return none;
    }
    result.at = proa_scope_alloc((size_t)inputs.count * sizeof *result.at);
    if (!result.at) return none;
    PROA_SCOPED;
    proa__endpoint *roots = NULL, *targets = proa_scope_alloc((size_t)inputs.count * sizeof *targets);
    if (!targets) return none;
    memset(targets, 0, (size_t)inputs.count * sizeof *targets);
    proa_status status = find_targets(inputs, targets);
    if (status == PROA_OK) status = make_roots("grad", outputs, grads, &roots);
    proa__backward_call call = {.roots = roots,
                                .n_roots = outputs.count,
                                .targets = targets,
                                .n_targets = inputs.count,
                                .create_graph = opts.create_graph,
                                .retain_graph = opts.retain_graph || opts.create_graph,
                                .inside = inside};
    if (status == PROA_OK) status = proa__backward_run(&call);
    for (int64_t i = 0; i < inputs.count; i++) {
        proa_tensor *g = status == PROA_OK ? target_result(&targets[i], i, opts.allow_unused) : NULL;
        if (!g) status = proa_error();
        /* moves to the caller's scope, unless an outer scope holds it; a seed that is itself the result (an
         * output that is an input) is in this scope */
        bool homeless = g && g != proa_none && g->scope_slot == 0;
        if (!homeless || proa__scope_push(proa_retain(g))) proa_return(g);
        result.at[i] = g;
        proa_release(targets[i].grad);
        proa__node_release(targets[i].node);
    }
    drop_roots(roots, outputs.count);
    return status == PROA_OK ? result : none;
}

proa_tensors proa_grad(proa_tensors outputs, proa_tensors inputs, proa_tensors grads, proa_grad_opts opts)
{
    return gradients(outputs, inputs, grads, opts, false);
}

proa_tensors proa__grad_inside(proa_tensors outputs, proa_tensors inputs, proa_tensors grads)
{
    return gradients(outputs, inputs, grads, (proa_grad_opts){.create_graph = true, .allow_unused = true},
                     true);
}
