/* The record door: turns a call whose inputs want gradients into a node, before the call for what its
 * inputs are, after it for its outputs. May use core and ops. */
#include "autograd/node.h"
#include "core/args.h"

#include "ops_impl.h"

static bool is_differentiable(proa_dtype d)
{
    return d == PROA_F32 || d == PROA_F64 || d == PROA_F16 || d == PROA_BF16 || d == PROA_C64 ||
           d == PROA_C128;
}

static int64_t field_count(const proa_field *f, const void *args)
{
    return f->kind == PROA_FIELD_TENSOR ? 1 : proa_field_tensors(f, args)->count;
}

static proa_tensor **field_items(const proa_field *f, const void *args)
{
    return f->kind == PROA_FIELD_TENSOR ? proa_field_tensor(f, args) : proa_field_tensors(f, args)->at;
}

/* ---- refusals -------------------------------------------------------------------------- */

/* A recorded view may not be used once its base changed under it: its history is stale. */
static proa_status check_views(const proa_call *call)
{
    for (int i = 0; i < call->op->n_in; i++) {
        const proa_field *f = &call->op->fields[i];
        proa_tensor **at = field_items(f, call->args);
        for (int64_t k = 0, n = field_count(f, call->args); k < n; k++) {
            const proa_tensor *t = at[k];
            if (!(t->flags & PROA_T_STALE_BASE) || t->base_version == proa__version(t)) continue;
            return proa__op_fail(
                PROA_ERR_BAD_STATE, call->op, f->name,
                "is a view that was taken before its base was changed in place; take the view "
                "again after the change");
        }
    }
    return PROA_OK;
}

/* Finds outputs that are to be written in place and refuses leaves. */
static proa_status check_in_place(const proa_call *call, bool *in_place)
{
    const proa_op *op = call->op;
    *in_place = false;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        if (f->kind != PROA_FIELD_TENSOR || f->flags & PROA_FIELD_MUTATED) continue;
        const proa_tensor *t = *proa_field_tensor(f, call->args);
        if (!t || t == proa_none) continue;
        *in_place = true;
        const proa_tensor *base = t->base ? t->base : t;
        if ((base->flags & PROA_T_GRAD && !base->node) || (t->flags & PROA_T_GRAD && !t->node))
            return proa__op_fail(
                PROA_ERR_BAD_STATE, op, f->name,
                "a leaf that wants a gradient cannot be changed in place; use the op without _, "
                "or change it where nothing is recorded (PROA_NO_GRAD)");
    }
    return PROA_OK;
}

/* ---- making a node --------------------------------------------------------------------- */

static int32_t count_inputs(const proa_call *call)
{
    int64_t n = 0;
    for (int i = 0; i < call->op->n_in; i++) n += field_count(&call->op->fields[i], call->args);
    return (int32_t)n;
}

static bool fill_edges(const proa_call *call, proa_node *node)
{
    proa_edge *e = node->edges;
    for (int i = 0; i < call->op->n_in; i++) {
        const proa_field *f = &call->op->fields[i];
        proa_tensor **at = field_items(f, call->args);
        for (int64_t k = 0, n = field_count(f, call->args); k < n; k++, e++) {
            proa_node *target = NULL;
            if (f->flags & PROA_FIELD_NO_GRAD || !(at[k]->flags & PROA_T_GRAD)) continue;
            if (!proa__gradient_edge(at[k], &target, &e->output)) return false;
            bool is_new =
                atomic_load_explicit(&target->refs, memory_order_relaxed) == 0; /* a leaf's, just made */
            e->node = is_new ? proa__node_retain_new(target) : proa__node_retain(target);
            e->meta.dtype = (proa_dtype)at[k]->dtype;
            e->meta.ndim = at[k]->ndim;
            for (int d = 0; d < at[k]->ndim; d++) e->meta.shape[d] = at[k]->shape[d];
        }
    }
    return true;
}

static void note_version(proa_node *node, const proa_tensor *t)
{
    if (t && t != proa_none && (t->storage || t->var))
        node->saved[node->n_saved++] = (proa_saved_version){t, proa__version(t)};
}

/* In-place calls: a saved input that is the output's handle would keep itself alive through the node. */
static bool unshare_outputs(const proa_call *call, void *saved)
{
    const proa_op *op = call->op;
    for (int i = 0; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        if (f->kind != PROA_FIELD_TENSOR || !(f->flags & PROA_FIELD_SAVED)) continue;
        proa_tensor **at = proa_field_tensor(f, saved);
        for (int o = op->n_in + op->n_attr; o < op->n_fields; o++) {
            if (op->fields[o].kind != PROA_FIELD_TENSOR || !*at || *at == proa_none ||
                *at != *proa_field_tensor(&op->fields[o], call->args))
                continue;
            proa_tensor *alias = proa__tensor_alias(*at);
            if (!alias) return false;
            proa_release(*at);
            *at = proa_keep(alias);
            proa_drop(alias);
        }
    }
    return true;
}

/* Whether the rule needs the field's value, its meta, or nothing of it. */
static uint8_t how_saved(const proa_call *call, const proa_field *f)
{
    if (!(f->flags & PROA_FIELD_SAVED))
        return f->flags & PROA_FIELD_SAVED_META ? PROA_KEEP_META : PROA_KEEP_NOTHING;
    if (f->saved_for < 0) return PROA_KEEP_VALUE;
    const proa_tensor *wants = *proa_field_tensor(&call->op->fields[f->saved_for], call->args);
    return wants->flags & PROA_T_GRAD ? PROA_KEEP_VALUE : PROA_KEEP_META;
}

/* The node as far as the inputs go. Outputs are saved after the call. */
static proa_node *begin_node(const proa_call *call, bool in_place)
{
    const proa_op *op = call->op;
    int32_t n_edges = count_inputs(call), n_saved = n_edges + op->n_out;
    proa_node *node =
        proa__node_new(PROA_NODE_OP, n_edges, op->n_out, n_saved, proa__args_bytes(op, call->args));
    if (!node) return NULL;
    node->op = op;
    node->in_place = in_place;
    uint8_t keep[256]; /* of attributes it says nothing: they are copied */
    bool any_saved = false;
    for (int i = 0; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        keep[i] = how_saved(call, f);
        any_saved |= keep[i] == PROA_KEEP_VALUE;
        if (keep[i] == PROA_KEEP_NOTHING && f->kind == PROA_FIELD_TENSOR &&
            *proa_field_tensor(f, call->args) == proa_none)
            keep[i] = PROA_KEEP_VALUE; /* absence is known to the rule */
    }
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) keep[i] = PROA_KEEP_NOTHING;
    if (proa__args_copy_to(op, call->args, keep, node->args_room)) node->args = node->args_room;
    if (!node->args || !fill_edges(call, node) || (in_place && !unshare_outputs(call, node->args))) {
        proa__node_release(node);
        return NULL;
    }
    for (int i = 0; i < op->n_in && any_saved; i++) {
        const proa_field *f = &op->fields[i];
        if (!(f->flags & PROA_FIELD_SAVED)) continue;
        proa_tensor **at = field_items(f, node->args);
        for (int64_t k = 0, n = field_count(f, node->args); k < n; k++) note_version(node, at[k]);
    }
    return node;
}

/* Keeps what the rule needs of the outputs: as handles without history, or the node would own itself. */
static bool save_outputs(const proa_call *call, proa_node *node)
{
    const proa_op *op = call->op;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        uint8_t how = how_saved(call, f);
        if (how == PROA_KEEP_NOTHING || f->kind != PROA_FIELD_TENSOR) continue;
        proa_tensor *t = *proa_field_tensor(f, call->args), *kept = t;
        if (t != proa_none && how == PROA_KEEP_VALUE) {
            kept = proa__tensor_alias(t);
        } else if (t != proa_none) {
            proa_meta meta = proa_meta_of(t);
            kept = proa__tensor_bare(&meta, PROA_T_META);
        }
        if (!kept) return false;
        *proa_field_tensor(f, node->args) = proa_keep(kept);
        if (kept != t) proa_drop(kept);
        if (how == PROA_KEEP_VALUE) note_version(node, kept);
    }
    return true;
}

/* ---- outputs --------------------------------------------------------------------------- */

/* After an in-place call through a view: the base's history goes on through a set_strided node. */
static proa_status rebase(proa_tensor *view)
{
    proa_tensor *base = view->base;
    const proa_op *op = proa_find_op("set_strided");
    proa_set_strided_args a = {.x = base, .value = view};
    a.shape = (proa_ints){view->ndim, view->shape, NULL, NULL};
    int64_t strides[PROA_MAX_DIMS], item = (int64_t)proa_dtype_size((proa_dtype)view->dtype);
    for (int d = 0; d < view->ndim; d++) strides[d] = view->strides[d] / item;
    a.strides = (proa_ints){view->ndim, strides, NULL, NULL};
    a.offset = (view->data - base->data) / item;
    proa_call call = {op, &a, base->flags | view->flags};
    proa_node *node = begin_node(&call, true);
    if (!node) return proa_error();
    proa__attach(base, node, 0);
    view->base_version = proa__version(view);
    if (base->flags & PROA_T_STALE_BASE) base->base_version = proa__version(base);
    return PROA_OK;
}

static proa_status attach_output(const proa_call *call, proa_node *node, proa_tensor *t, uint32_t index)
{
    if (!t || t == proa_none) return PROA_OK;
    if (node->metas) node->metas[index] = proa_meta_of(t);
    if (!is_differentiable((proa_dtype)t->dtype)) return PROA_OK;
    bool through_view = node->in_place && t->base;
    proa__attach(t, proa__node_retain_new(node), index);
    if (through_view) return rebase(t);
    if (!(call->op->flags & PROA_OP_VIEW) || node->in_place) return PROA_OK;
    proa_tensor *x = *proa_field_tensor(&call->op->fields[0], call->args);
    if (t->storage && t->storage == x->storage && !t->base) {
        t->base = proa_retain(x->base ? x->base : x);
        t->base_version = proa__version(t);
        t->flags |= PROA_T_STALE_BASE;
    }
    return PROA_OK;
}

static proa_status attach_outputs(const proa_call *call, proa_node *node)
{
    const proa_op *op = call->op;
    int64_t n_out = 0;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++)
        n_out += field_count(&op->fields[i], call->args);
    if (!proa__node_set_outputs(node, (int32_t)n_out)) return proa_error();
    uint32_t index = 0;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensor **at = field_items(f, call->args);
        for (int64_t k = 0, n = field_count(f, call->args); k < n; k++, index++)
            if (!(f->flags & (PROA_FIELD_MUTATED | PROA_FIELD_NO_GRAD)))
                PROA_TRY(attach_output(call, node, at[k], index));
    }
    return PROA_OK;
}

static proa_status record(proa_call *call)
{
    const proa_op *op = call->op;
    if (!(call->any & PROA_T_GRAD) || op->flags & PROA_OP_NO_GRAD)
        return proa_call_inner(PROA_DOOR_RECORD, call);
    if (call->any & PROA_T_STALE_BASE) PROA_TRY(check_views(call));
    bool in_place = false;
    if (op->flags & PROA_OP_INPLACE) PROA_TRY(check_in_place(call, &in_place));
    proa_node *node = begin_node(call, in_place);
    if (!node) return proa_error();
    proa_status status = proa_call_inner(PROA_DOOR_RECORD, call);
    if (status == PROA_OK && !save_outputs(call, node)) status = proa_error();
    if (status == PROA_OK) status = attach_outputs(call, node);
    proa__node_release_new(node);
    return status;
}

__attribute__((constructor)) static void install(void) { proa_door_install(PROA_DOOR_RECORD, record); }
