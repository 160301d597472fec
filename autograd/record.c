/* The record door (dispatch layer): makes a tape node for a call of which some input wants a gradient. What
 * the gradient rule needs of the inputs is saved before the call, what it needs of the outputs after it. May
 * use core and ops. */
#include "autograd/record.h"

#include "autograd/cycles.h"
#include "autograd/node.h"
#include "autograd/saved_hooks.h"
#include "core/args.h"
#include "core/copy.h"
#include "core/op_device.h"

#include "impl/elementwise.h"
#include "impl/shape.h"

#include <stdlib.h>

static bool is_differentiable(proa_dtype d) { return d >= PROA_F16; } /* floating and complex */

static int64_t field_count(const proa_field *f, const void *args)
{
    return f->kind == PROA_FIELD_TENSOR ? 1 : proa_field_tensors(f, args)->count;
}

static proa_tensor **field_items(const proa_field *f, const void *args)
{
    return f->kind == PROA_FIELD_TENSOR ? proa_field_tensor(f, args) : proa_field_tensors(f, args)->at;
}

/* ---- refusals -------------------------------------------------------------------------- */

/* A recorded view may not be used after its base was changed: its history is outdated. */
static proa_status check_views(const proa_call *call)
{
    for (int i = 0; i < call->op->n_in; i++) {
        const proa_field *f = &call->op->fields[i];
        proa_tensor **at = field_items(f, call->args);
        for (int64_t k = 0, n = field_count(f, call->args); k < n; k++) {
            const proa_tensor *t = at[k];
            if (!(t->flags & PROA_T_STALE_BASE) || t->base_version == proa__guarded_version(t)) continue;
            return proa__op_fail(
                PROA_ERR_BAD_STATE, call->op, f->name,
                "is a view that was taken before its base was changed in place; take the view "
                "again after the change");
        }
    }
    return PROA_OK;
}

/* Finds outputs that will be written in place; an error if one is a leaf. */
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
                PROA_ERR_INVALID_ARGUMENT, op, f->name,
                "is a leaf that wants a gradient, which cannot be changed in place; use the op without _, "
                "or change it where nothing is recorded (no_grad)");
    }
    return PROA_OK;
}

/* ---- making a node --------------------------------------------------------------------- */

static int32_t count_inputs(const proa_call *call)
{
    if (call->op->flags & PROA_OP_FLAT) return call->op->n_in;
    int64_t n = 0;
    for (int i = 0; i < call->op->n_in; i++) n += field_count(&call->op->fields[i], call->args);
    return (int32_t)n;
}

/* Returns whether the gradient rule needs the value of the field, its meta, or nothing. */
static inline uint8_t how_saved(const proa_call *call, const proa_field *f)
{
    if (!(f->flags & PROA_FIELD_SAVED))
        return f->flags & PROA_FIELD_SAVED_META ? PROA_KEEP_META : PROA_KEEP_NOTHING;
    if (f->saved_for < 0) return PROA_KEEP_VALUE;
    const proa_tensor *wants = *proa_field_tensor(&call->op->fields[f->saved_for], call->args);
    return wants->flags & PROA_T_GRAD ? PROA_KEEP_VALUE : PROA_KEEP_META;
}

/* True in calls that write t in place; saving t itself would then make it own itself through the node. */
static bool is_output(const proa_call *call, const proa_tensor *t)
{
    const proa_op *op = call->op;
    for (int o = op->n_in + op->n_attr; o < op->n_fields; o++)
        if (op->fields[o].kind == PROA_FIELD_TENSOR && t == *proa_field_tensor(&op->fields[o], call->args))
            return true;
    return false;
}

static bool keep_alias(proa_tensor *t, proa_tensor **kept)
{
    proa_tensor *alias = proa__tensor_alias(t);
    *kept = proa_retain(alias);
    if (alias) proa_drop(alias);
    return alias != NULL;
}

/* Saves the value that the call is about to overwrite. For a variable of a program, whose versions are
 * distinct, an alias. */
static bool keep_before(proa_tensor *t, proa_tensor **kept)
{
    if (!t->storage) return keep_alias(t, kept);
    proa_meta meta = proa_meta_of(t);
    proa_tensor *copy = proa__tensor_new(&meta);
    bool copied = copy && proa__copy(copy, t) == PROA_OK;
    *kept = copied ? proa_retain(copy) : NULL;
    if (copy) proa_drop(copy);
    return copied;
}

/* True for a recorded view that is not contiguous, of which the op gets a copy: saved as a copy, it may be
 * written to later, x[:, 0:1] = norm(x[:, 0:1]). */
static inline bool is_copied(const proa_op *op, const proa_tensor *t)
{
    bool view = t->flags & PROA_T_STRIDED && t->base && t->storage && t->kind == PROA_DENSE;
    return view && !(op->flags & PROA_OP_STRIDED) && (t->node || !(t->flags & PROA_T_GRAD));
}

/* Saves a contiguous copy with the history of t. */
static bool keep_copy(proa_tensor *t, proa_tensor **kept)
{
    if (!keep_before(t, kept)) return false;
    if (t->node) proa__attach(*kept, proa__node_retain(t->node), t->node_output);
    return true;
}

/* Keeps what the rule needs of t, and the version that a kept value had. */
static inline bool save(proa_node *node, proa_tensor *t, uint8_t how,
                        bool (*keep)(proa_tensor *, proa_tensor **), proa_tensor **kept)
{
    if (proa__saved_hooks.pack && how == PROA_KEEP_VALUE && t != proa_none && t->storage) {
        return proa__pack_saved(node, t, kept);
    } else if (keep && how == PROA_KEEP_VALUE && t != proa_none) {
        if (!keep(t, kept)) return false;
    } else if (!proa__args_keep(t, how, kept)) {
        return false;
    } else if (how == PROA_KEEP_VALUE) {
        atomic_store_explicit(&t->is_saved, true, memory_order_relaxed);
    }
    if (how == PROA_KEEP_VALUE && t != proa_none && (t->storage || t->var))
        node->saved[node->n_saved++] = (proa_saved_version){*kept, proa__guarded_version(*kept)};
    return true;
}

/* Records one input tensor in the node: what is saved of it, and the edge. */
static inline bool take_input(const proa_call *call, proa_node *node, const proa_field *f, proa_tensor *t,
                              proa_tensor **kept, proa_edge *e)
{
    bool written = node->in_place && is_output(call, t);
    bool copied = call->any & PROA_T_STRIDED && !written && is_copied(call->op, t);
    if (!save(node, t, how_saved(call, f), written ? keep_before : copied ? keep_copy : NULL, kept))
        return false;
    return !(t->flags & PROA_T_GRAD) || f->flags & PROA_FIELD_NO_GRAD || proa__edge_to(e, t);
}

static bool take_inputs(const proa_call *call, proa_node *node)
{
    proa_edge *e = node->edges;
    for (const proa_field *f = call->op->fields, *end = f + call->op->n_in; f < end; f++) {
        if (f->kind == PROA_FIELD_TENSOR) {
            proa_tensor **kept = proa_field_tensor(f, node->args);
            if (!take_input(call, node, f, *proa_field_tensor(f, call->args), kept, e++)) return false;
            continue;
        }
        const proa_tensors *list = proa_field_tensors(f, call->args);
        proa_tensors *copy = proa_field_tensors(f, node->args);
        while (copy->count < list->count) {
            int64_t k = copy->count++;
            copy->at[k] = NULL;
            if (!take_input(call, node, f, list->at[k], &copy->at[k], e++)) return false;
        }
    }
    return true;
}

/* Makes the node with its inputs. Outputs are saved after the call. */
static proa_node *begin_node(const proa_call *call, bool in_place)
{
    const proa_op *op = call->op;
    int32_t n_edges = count_inputs(call), n_saved = n_edges + op->n_out;
    proa_node *node =
        proa__node_new(PROA_NODE_OP, n_edges, op->n_out, n_saved, proa__args_bytes(op, call->args));
    if (!node) return NULL;
    node->op = op;
    node->in_place = in_place;
    proa__args_copy_values(op, call->args, node->args_capacity);
    node->args = node->args_capacity;
    if (take_inputs(call, node)) return node;
    proa__node_release(node);
    return NULL;
}

/* ---- outputs --------------------------------------------------------------------------- */

/* Makes a node of this op the new producer of t. */
static proa_status continue_with(const proa_op *op, void *args, uint32_t any, bool in_place, proa_tensor *t)
{
    proa_call call = {op, args, any};
    proa_node *node = begin_node(&call, in_place);
    if (!node || proa__open_cycles(node, t) != PROA_OK) {
        proa__node_release(node);
        return proa_error();
    }
    proa__attach(t, node, 0);
    return PROA_OK;
}

/* After a write to value, a view of x's memory: records a set_strided node as the new producer of x. */
static proa_status continue_with_part(proa_tensor *x, proa_tensor *value)
{
    proa_set_strided_args a = {.x = x, .value = value};
    a.shape = (proa_ints){value->ndim, value->shape, NULL, NULL};
    int64_t strides[PROA_MAX_DIMS], item = (int64_t)proa_dtype_size((proa_dtype)value->dtype);
    for (int d = 0; d < value->ndim; d++) strides[d] = value->strides[d] / item;
    a.strides = (proa_ints){value->ndim, strides, NULL, NULL};
    a.offset = (value->data - x->data) / item;
    return continue_with(proa_find_op("set_strided"), &a, x->flags | value->flags, true, x);
}

/* continue_with_part where one of the tensors is complex and the other is a real view of it (pairs, or one
 * part). */
static proa_status continue_as_pairs(proa_tensor *base, proa_tensor *view)
{
    proa_tensor *x = base->dtype >= PROA_C64 ? proa_as_real(base) : base;
    proa_tensor *value = view->dtype >= PROA_C64 ? proa_as_real(view) : view;
    if (!x || !value) return proa_error();
    if (x->dtype != value->dtype)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "a %s view of a tensor of %s was written in place where gradients are recorded; "
                         "there is no gradient of that: write to the tensor itself, or under no_grad",
                         proa_dtype_name((proa_dtype)view->dtype), proa_dtype_name((proa_dtype)base->dtype));
    PROA_TRY(continue_with_part(x, value));
    if (x == base) return PROA_OK;
    proa_as_complex_args a = {.x = x};
    return continue_with(proa_find_op("as_complex"), &a, x->flags, false, base);
}

/* True if t may contain an element twice: some stride is shorter than the extent of the dims with smaller
 * strides. */
static bool may_overlap(const proa_tensor *t)
{
    int64_t reach = (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    for (uint32_t done = 0;;) {
        int next = -1;
        for (int d = 0; d < t->ndim; d++) {
            if (done >> d & 1 || t->shape[d] <= 1) continue;
            if (next < 0 || llabs(t->strides[d]) < llabs(t->strides[next])) next = d;
        }
        if (next < 0) return false;
        if (llabs(t->strides[next]) < reach) return true;
        reach += llabs(t->strides[next]) * (t->shape[next] - 1);
        done |= 1u << next;
    }
}

/* After an in-place call through a view: makes the written values part of the base's history. */
static proa_status rebase(proa_tensor *view)
{
    proa_tensor *base = view->base;
    if (may_overlap(view))
        return proa_fail(
            PROA_ERR_UNSUPPORTED,
            "a view of shape %s that shows elements of its base several times (overlapping windows) "
            "was written in place where gradients are recorded; clone it first, or write under no_grad",
            proa__shape_text(view->shape, view->ndim));
    view->base_version = proa__guarded_version(view);
    bool same = view->dtype == base->dtype;
    PROA_TRY(same ? continue_with_part(base, view) : continue_as_pairs(base, view));
    if (base->flags & PROA_T_STALE_BASE) base->base_version = proa__guarded_version(base);
    return PROA_OK;
}

/* Saves a handle of an output whose shape is not known yet: zeros for its gradient are made like it. */
static proa_status keep_like(proa_node *node, proa_tensor *t, uint32_t index)
{
    if (!node->likes) node->likes = proa__calloc((size_t)node->n_out * sizeof(proa_tensor *));
    return node->likes && keep_alias(t, &node->likes[index]) ? PROA_OK : proa_error();
}

static proa_status attach_output(const proa_call *call, proa_node *node, proa_tensor *t, uint32_t index,
                                 bool shows)
{
    if (!t || t == proa_none) return PROA_OK;
    if (t->flags & PROA_T_SYMBOLIC && !node->metas && !proa__node_add_metas(node)) return proa_error();
    if (node->metas) {
        node->metas[index] = proa_meta_of(t);
        if (t->numel < 0) PROA_TRY(keep_like(node, t, index));
    }
    if (!is_differentiable((proa_dtype)t->dtype)) return PROA_OK;
    bool through_view = node->in_place && t->base;
    if (node->in_place) PROA_TRY(proa__open_cycles(node, t));
    proa__attach(t, proa__node_retain_new(node), index);
    if (through_view) return rebase(t);
    if (!shows || node->in_place) return PROA_OK;
    proa_tensor *x = *proa_field_tensor(&call->op->fields[0], call->args);
    if (t->storage && t->storage == x->storage && !t->base) {
        t->base = proa_retain(x->base ? x->base : x);
        t->base_version = proa__guarded_version(t);
        t->flags |= PROA_T_STALE_BASE;
    }
    return PROA_OK;
}

/* Saves an output as far as the rule needs it: as a handle without history, since the node would own
 * itself. */
static inline bool save_output(const proa_call *call, proa_node *node, const proa_field *f)
{
    if (!(f->flags & (PROA_FIELD_SAVED | PROA_FIELD_SAVED_META)) || f->kind != PROA_FIELD_TENSOR) return true;
    proa_tensor *t = *proa_field_tensor(f, call->args);
    return save(node, t, how_saved(call, f), keep_alias, proa_field_tensor(f, node->args));
}

static bool count_outputs(const proa_call *call, proa_node *node)
{
    const proa_op *op = call->op;
    int64_t n = 0;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) n += field_count(&op->fields[i], call->args);
    return proa__node_set_outputs(node, (int32_t)n);
}

/* After the call: saves the outputs and makes them point to the node. */
static proa_status end_node(const proa_call *call, proa_node *node)
{
    const proa_op *op = call->op;
    bool single = op->n_out == 1 && op->flags & PROA_OP_FLAT; /* the node was made for one output */
    if (!single && !count_outputs(call, node)) return proa_error();
    uint32_t index = 0;
    for (const proa_field *end = op->fields + op->n_fields, *f = end - op->n_out; f < end; f++) {
        if (!save_output(call, node, f)) return proa_error();
        bool shows = f->flags & PROA_FIELD_VIEW; /* a view of the first input's memory */
        bool attach = !(f->flags & (PROA_FIELD_MUTATED | PROA_FIELD_NO_GRAD));
        if (f->kind == PROA_FIELD_TENSOR) {
            if (attach) PROA_TRY(attach_output(call, node, *proa_field_tensor(f, call->args), index, shows));
            index++;
            continue;
        }
        const proa_tensors *list = proa_field_tensors(f, call->args);
        for (int64_t k = 0; k < list->count; k++, index++)
            if (attach) PROA_TRY(attach_output(call, node, list->at[k], index, shows));
    }
    return PROA_OK;
}

proa_status proa__record_again(const proa_op *op, void *args)
{
    proa_call call = {op, args, 0};
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end; f++)
        for (int64_t k = 0, n = field_count(f, args); k < n; k++) call.any |= field_items(f, args)[k]->flags;
    if (!(call.any & PROA_T_GRAD) || op->flags & PROA_OP_NO_GRAD) return PROA_OK;
    proa_node *node = begin_node(&call, false);
    if (!node) return proa_error();
    node->device = proa__op_device;
    proa_status status = end_node(&call, node);
    proa__node_release_new(node);
    return status;
}

void proa__forget_history(proa_tensor *t)
{
    proa_node *node = t->node;
    struct proa_grad_info *grad = t->grad;
    t->node = NULL;
    t->grad = NULL;
    t->flags &= ~(uint32_t)(PROA_T_GRAD | PROA_T_LEAF);
    if (node) proa__node_release(node);
    if (grad) proa__info_release(grad);
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
    if (status == PROA_OK) status = end_node(call, node);
    proa__node_release_new(node);
    return status;
}

__attribute__((constructor)) static void install(void) { proa_door_install(PROA_DOOR_RECORD, record); }
