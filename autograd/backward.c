/* The backward engine: sorts the nodes behind the outputs topologically, runs each node's hooks and gradient
 * rule once all its gradients have arrived, and passes the results on. Leaves accumulate them; if targets are
 * given (proa_grad), these get them instead. Not recursive: chains may have any length. May use core and
 * ops. */
#include "autograd/backward.h"

#include "autograd/saved_hooks.h"
#include "core/args_visit.h"
#include "core/device.h"
#include "core/numerics.h"
#include "core/op_device.h"
#include "ops/selected_rows/selected_rows.h"

#include <proa/ops.h>

/* Each backward marks the nodes that it visits with a number of its own, so that marks need no clearing. */
static atomic_uint_fast64_t passes;

typedef struct node_list {
    proa_node **at;
    int64_t count, capacity;
} node_list;

static bool push(node_list *l, proa_node *n)
{
    if (l->count == l->capacity) {
        int64_t capacity = l->capacity ? 2 * l->capacity : 64;
        proa_node **at = proa__realloc(l->at, (size_t)capacity * sizeof *at);
        if (!at) return false;
        l->at = at;
        l->capacity = capacity;
    }
    l->at[l->count++] = n;
    return true;
}

/* ---- gradients on their way ------------------------------------------------------------ */

/* Adds g to *slot, which owns what it holds. */
static proa_status add_to(proa_tensor **slot, proa_tensor *g, bool create_graph)
{
    if (!*slot) {
        *slot = proa_keep(g);
        return PROA_OK;
    }
    bool dense = !(((*slot)->flags | g->flags) & PROA_T_NOT_DENSE);
    if (dense && !create_graph && proa__sole_owner(*slot))
        return proa_add_(*slot, g) ? PROA_OK : proa_error();
    proa_tensor *sum = dense ? proa_add(*slot, g) : proa__rows_add(*slot, g, proa__sole_owner(*slot));
    if (!sum) return proa_error();
    if (sum == *slot) return PROA_OK;
    proa_release(*slot);
    *slot = proa_keep(sum);
    return PROA_OK;
}

/* ---- ordering -------------------------------------------------------------------------- */

/* State of a node that an outer backward on this thread is running: one of that node's rules has started this
 * backward, which restores the state at its end. */
typedef struct held_node {
    proa_node *node;
    proa_tensor **grads;
    uint64_t pass;
    const proa_node *last_sender;
    bool needed, last;
} held_node;

typedef struct graph_walk {
    uint64_t pass, outermost; /* number of the first of the nested backwards; 0: this is the first */
    node_list all;
    held_node *held;
    int64_t n_held, capacity;
} graph_walk;

/* Number of the outermost backward that runs on this thread; 0: none does. */
static _Thread_local uint64_t outermost;

static bool hold(graph_walk *w, proa_node *n)
{
    if (w->n_held == w->capacity) {
        int64_t capacity = w->capacity ? 2 * w->capacity : 16;
        held_node *held = proa__realloc(w->held, (size_t)capacity * sizeof *held);
        if (!held) return false;
        w->held = held;
        w->capacity = capacity;
    }
    w->held[w->n_held++] = (held_node){n, n->grads, n->pass, n->last_sender, n->needed, n->last};
    n->grads = NULL;
    return true;
}

static void hand_back(graph_walk *w)
{
    for (int64_t i = 0; i < w->n_held; i++) {
        const held_node *h = &w->held[i];
        h->node->grads = h->grads;
        h->node->pass = h->pass;
        h->node->last_sender = h->last_sender;
        h->node->needed = h->needed;
        h->node->last = h->last;
    }
    proa__free(w->held);
}

static bool visit(graph_walk *w, proa_node *n)
{
    if (n->pass == w->pass) return true;
    if (w->outermost && n->pass >= w->outermost && !hold(w, n)) return false;
    n->pass = w->pass;
    n->pending = 0;
    n->needed = n->last = false;
    return push(&w->all, n);
}

/* Counts, for every node behind the roots, how many edges lead to it. */
static bool count_edges(graph_walk *w)
{
    for (int64_t i = 0; i < w->all.count; i++) {
        proa_node *n = w->all.at[i];
        for (int32_t e = 0; e < n->n_edges && !n->last; e++) {
            proa_node *to = n->edges[e].node;
            if (!to) continue;
            if (!visit(w, to)) return false;
            to->pending++;
        }
    }
    return true;
}

/* Puts the nodes in an order where each comes after everything that sends it a gradient. */
static bool sort_nodes(const node_list *all, node_list *order)
{
    for (int64_t i = 0; i < all->count; i++)
        if (all->at[i]->pending == 0 && !push(order, all->at[i])) return false;
    for (int64_t i = 0; i < order->count; i++) {
        proa_node *n = order->at[i];
        for (int32_t e = 0; e < n->n_edges && !n->last; e++) {
            proa_node *to = n->edges[e].node;
            if (!to || --to->pending) continue;
            to->last_sender = n;
            if (!push(order, to)) return false;
        }
    }
    return true;
}

/* With targets, marks the nodes from which a target can be reached; the others need not run. */
static void mark_needed(const proa__backward_call *call, const node_list *order)
{
    for (int64_t i = 0; i < call->n_targets; i++)
        if (call->targets[i].node) call->targets[i].node->needed = true;
    for (int64_t i = order->count - 1; i >= 0; i--) {
        proa_node *n = order->at[i];
        n->needed = n->needed || !call->targets;
        for (int32_t e = 0; e < n->n_edges && !n->needed; e++)
            n->needed = n->edges[e].node && n->edges[e].node->needed;
    }
}

/* ---- one node -------------------------------------------------------------------------- */

static proa_status grads_capacity(proa_node *n)
{
    if (n->grads) return PROA_OK;
    n->grads = proa__calloc((size_t)n->n_out * sizeof *n->grads);
    return n->grads ? PROA_OK : proa_error();
}

/* A hook's result must have the dtype and shape of the gradient it got; rows may become dense, and dims may
 * be unknown. */
static proa_status check_hooked(const proa_tensor *next, const proa_tensor *g)
{
    bool fits = next != proa_none && next->dtype == g->dtype;
    if (fits && !((next->flags | g->flags) & PROA_T_NOT_DENSE)) {
        fits = next->ndim == g->ndim;
        for (int i = 0; fits && i < g->ndim; i++)
            fits = next->shape[i] == g->shape[i] || next->shape[i] < 0 || g->shape[i] < 0;
    }
    if (fits) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "backward: a hook returned %s for the gradient %s; return one of its shape and dtype",
                     next == proa_none ? "PROA_NONE" : proa__tensor_text(next), proa__tensor_text(g));
}

static proa_status run_hooks(struct proa_grad_info *info, proa_tensor **slot)
{
    for (int32_t i = 0; info && i < info->n_hooks;) {
        const int64_t id = info->hooks[i].id;
        proa_tensor *next = info->hooks[i].fn(*slot, info->hooks[i].context);
        if (i < info->n_hooks && info->hooks[i].id == id) i++; /* unless the hook removed itself */
        if (!next) {
            proa_fail(PROA_ERR_BAD_STATE, "backward: a gradient hook returned NULL");
            return proa_error();
        }
        if (next == *slot) continue;
        PROA_TRY(check_hooked(next, *slot));
        proa_keep(next);
        proa_release(*slot);
        *slot = next;
    }
    return PROA_OK;
}

/* The gradient in the form that a leaf stores: contiguous, in memory that nobody else uses; g itself if it is
 * recorded (create_graph) or symbolic. */
static proa_tensor *own_gradient(proa_tensor *g, bool create_graph)
{
    if (create_graph || g->flags & PROA_T_SYMBOLIC) return proa_keep(g);
    if (proa__sole_owner(g)) return proa_keep(g);
    return proa_keep(proa_assign(g));
}

static proa_status store_gradient(struct proa_grad_info *info, proa_tensor **slot, bool create_graph)
{
    bool in_place = info->bound && !create_graph && !((*slot)->flags & PROA_T_NOT_DENSE);
    if (in_place) return proa_add_(proa__grad_now(info), *slot) ? PROA_OK : proa_error();
    if (info->grad && !info->zeroed) return add_to(&info->grad, *slot, create_graph);
    proa_release(info->grad);
    info->zeroed = info->bound = false;
    info->grad = own_gradient(*slot, create_graph);
    return info->grad ? PROA_OK : proa_error();
}

static proa_status run_leaf(proa_node *n, const proa__backward_call *call)
{
    if (!n->grads || !n->grads[0]) return PROA_OK;
    PROA_TRY(run_hooks(n->info, &n->grads[0]));
    if (call->targets) return PROA_OK;
    PROA_TRY(store_gradient(n->info, &n->grads[0], call->create_graph));
    return n->info->stored ? n->info->stored(n->info->stored_context) : PROA_OK;
}

proa_status proa__watch_gradient(proa_tensor *leaf, proa_status (*fn)(void *context), void *context,
                                 bool early)
{
    struct proa_grad_info *info = proa__grad_info(leaf);
    if (!info) return proa_error();
    info->stored = fn;
    info->stored_context = context;
    info->stored_early = early;
    info->alone = NULL;
    return PROA_OK;
}

void proa__watcher_shares(proa_tensor *leaf, bool (*alone)(const void *context, const proa_tensor *grad))
{
    leaf->grad->alone = alone;
}

/* A user's hook may do anything, and runs behind the whole function. */
static bool takes_early(const struct proa_grad_info *info)
{
    return info && info->stored && info->stored_early && !info->n_hooks;
}

bool proa__takes_early(const proa_tensor *leaf) { return takes_early(leaf->grad); }

static _Thread_local proa__backward_end *ends;

void proa__at_backward_end(proa__backward_end *end)
{
    end->next = ends;
    ends = end;
}

static proa_status run_ends(proa_status status)
{
    while (ends) {
        proa__backward_end *end = ends;
        ends = end->next;
        status = end->fn(end->context, status);
    }
    return status;
}

static proa_status check_saved(const proa_node *n)
{
    const char *name = n->op ? n->op->name : n->function.name ? n->function.name : "a custom function";
    if (n->freed)
        return proa_fail(PROA_ERR_BAD_STATE,
                         "backward: what %s saved was freed by an earlier backward; run that one with "
                         "retain_graph = true",
                         name);
    for (int32_t i = 0; i < n->n_saved; i++) {
        uint32_t now = proa__guarded_version(n->saved[i].tensor);
        if (now != n->saved[i].version)
            return proa_fail(
                PROA_ERR_BAD_STATE,
                "backward: %s saved a %s that was changed in place afterwards: received tensor_version:%u != "
                "wrapper_version_snapshot:%u; use the op without _ there",
                name, proa__tensor_text(n->saved[i].tensor), now, n->saved[i].version);
    }
    return PROA_OK;
}

/* A SelectedRows gradient stays so for a leaf; for any other tensor it is made dense. */
static proa_tensor *fit_rows(const proa_edge *e, proa_tensor *g)
{
    bool leaf = e->node->kind == PROA_NODE_LEAF && e->meta.dtype == (proa_dtype)g->dtype;
    if (leaf && proa__rows_fit(g, e->meta.shape, e->meta.ndim)) return g;
    proa_tensor *whole = proa_rows_to_dense(g);
    return whole ? proa__fit_gradient(whole, &e->meta) : NULL;
}

/* Passes gradient g of the input behind edge e to that edge's node. */
static proa_status send(const proa_edge *e, proa_tensor *g, bool create_graph)
{
    if (!e->node || !e->node->needed || !g || g == proa_none) return PROA_OK;
    if (g->kind == PROA_ROWS) g = fit_rows(e, g);
    else g = proa__fit_gradient(g, &e->meta);
    if (!g) return proa_error();
    PROA_TRY(grads_capacity(e->node));
    return add_to(&e->node->grads[e->output], g, create_graph);
}

/* Gradient of output i for the rule: the one that arrived, or zeros; PROA_NONE if the rule accepts that. */
static proa_tensor *output_gradient(const proa_node *n, int32_t i)
{
    if (n->grads && n->grads[i]) return n->grads[i];
    if (n->kind == PROA_NODE_FUNCTION || n->op->flags & PROA_OP_LAZY_GRADS || !n->metas) return proa_none;
    const proa_meta *m = &n->metas[i];
    if (m->ndim < 0 || !(m->dtype >= PROA_F16)) return proa_none;
    if (n->likes && n->likes[i]) return proa_full_like(n->likes[i], 0);
    return proa_full(((proa_ints){m->ndim, m->shape, NULL, NULL}), 0, .dtype = m->dtype);
}

/* Restores the history of saved outputs while the rule runs. */
static proa_status reattach_outputs(const proa_node *n, void *args)
{
    const proa_op *op = n->op;
    uint32_t index = 0;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensor **at = proa__field_one(f, args);
        if (!at) {
            index += (uint32_t)(n->n_out - (op->n_out - 1));
            continue;
        }
        if (*at && *at != proa_none && !((*at)->flags & PROA_T_META)) {
            proa_tensor *t = proa__tensor_alias(*at);
            if (!t) return proa_error();
            proa__attach(t, proa__node_retain((proa_node *)(uintptr_t)n), index);
            *at = t;
        }
        index++;
    }
    return PROA_OK;
}

static proa_status fill_given(const proa_node *n, const void *args, char *grads)
{
    const proa_op *op = n->op;
    int32_t index = 0;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        void *at = grads + f->grad_offset;
        if (proa__field_one(f, args)) {
            proa_tensor *g = output_gradient(n, index++);
            if (!g) return proa_error();
            *(proa_tensor **)at = g;
            continue;
        }
        /* list output (the generator allows one per op): gets the outputs behind the single ones */
        proa_tensors *list = at;
        list->count = n->n_out - (op->n_out - 1);
        list->at = proa_scope_alloc((size_t)list->count * sizeof *list->at);
        if (!list->at) return proa_error();
        for (int64_t k = 0; k < list->count; k++)
            if (!(list->at[k] = output_gradient(n, index++))) return proa_error();
    }
    return PROA_OK;
}

/* Sets which inputs want a gradient, and allocates the lists of gradients of list inputs. */
static proa_status fill_wanted(const proa_node *n, const void *args, char *grads)
{
    const proa_edge *e = n->edges;
    for (int i = 0; i < n->op->n_in; i++) {
        const proa_field *f = &n->op->fields[i];
        const int64_t count = proa__field_all(f, args).count;
        bool want = false;
        for (int64_t k = 0; k < count; k++, e++) want = want || (e->node && e->node->needed);
        if (f->want_offset == 0xffff) continue;
        *(bool *)(grads + f->want_offset) = want;
        if (proa__field_one(f, args) || !want) continue;
        proa_tensors *list = (proa_tensors *)(void *)(grads + f->grad_offset);
        list->count = count;
        list->at = proa_scope_alloc((size_t)count * sizeof *list->at);
        if (!list->at) return proa_error();
        memset(list->at, 0, (size_t)count * sizeof *list->at);
    }
    return PROA_OK;
}

/* Shows what a rule has made to the inspector of results. */
static proa_status inspect_made(const proa_op *op, const void *args, const char *grads)
{
    for (int i = 0; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        if (f->grad_offset == 0xffff) continue;
        const void *at = grads + f->grad_offset;
        bool one = proa__field_one(f, args) != NULL;
        const int64_t count = proa__field_all(f, args).count;
        proa_tensor *const *made = one ? (proa_tensor *const *)at : ((const proa_tensors *)at)->at;
        for (int64_t k = 0; made && k < count; k++) PROA_TRY(proa__inspect_gradient(op, args, made[k]));
    }
    return PROA_OK;
}

/* Calls an op's rule. An inspector of results sees the gradients, not the ops that the rule is made of. */
static proa_status apply_rule(const proa_op *op, const void *args, char *grads)
{
    bool inspected = proa__inspecting();
    bool held = inspected && proa__hold_inspection(true);
    proa_status status = op->vjp(args, grads);
    if (inspected) (void)proa__hold_inspection(held);
    PROA_TRY(status);
    PROA_TRY(proa_error());
    return inspected ? inspect_made(op, args, grads) : PROA_OK;
}

static proa_status run_rule(proa_node *n, bool create_graph)
{
    if (!n->op->vjp)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "backward: %s is not differentiable: it has no gradient rule; detach its result "
                         "(proa_detach) if none is needed",
                         n->op->name);
    _Alignas(16) char grads[PROA_GRADS_MAX] = {0}, args[PROA_ARGS_MAX];
    if (n->op->grads_size > sizeof grads)
        return proa__op_fail(PROA_ERR_INTERNAL, n->op, NULL, "has too large a grads struct");
    memcpy(args, n->args, n->op->args_size);
    if (create_graph) PROA_TRY(reattach_outputs(n, args));
    PROA_TRY(fill_given(n, args, grads));
    PROA_TRY(fill_wanted(n, args, grads));
    PROA_TRY(apply_rule(n->op, args, grads));
    const proa_edge *e = n->edges;
    for (int i = 0; i < n->op->n_in; i++) {
        const proa_field *f = &n->op->fields[i];
        const int64_t count = proa__field_all(f, args).count;
        if (f->grad_offset == 0xffff) {
            e += count;
            continue;
        }
        void *at = grads + f->grad_offset;
        proa_tensor **made = proa__field_one(f, args) ? (proa_tensor **)at : ((proa_tensors *)at)->at;
        for (int64_t k = 0; k < count; k++, e++)
            if (made) PROA_TRY(send(e, proa__fit_stretched(n, e, made[k]), create_graph));
    }
    return PROA_OK;
}

static proa_status run_packed_rule(proa_node *n, bool create_graph)
{
    if (create_graph)
        return proa_fail(
            PROA_ERR_UNSUPPORTED,
            "backward: %s saved its tensors by hooks (saved_tensors_hooks), whose results have no history; "
            "run it without create_graph, or record the op outside of the hooks",
            n->op->name);
    proa_status status = proa__unpack_saved(n);
    if (status == PROA_OK) status = run_rule(n, false);
    proa__repack_saved(n);
    return status;
}

static _Thread_local bool retains;

bool proa__backward_retains(void) { return retains; }

/* The custom function whose backward this thread runs. */
static _Thread_local struct running {
    proa_node *node;
    const proa__backward_call *call;
} running;

static proa_status run_function(proa_node *n, const proa__backward_call *call)
{
    bool create_graph = call->create_graph;
    proa_tensors given = {n->n_out, proa_scope_alloc((size_t)n->n_out * sizeof(proa_tensor *))};
    if (!given.at) return proa_error();
    for (int32_t i = 0; i < n->n_out; i++) given.at[i] = output_gradient(n, i);
    proa_tensors outputs = n->outputs;
    if (create_graph && outputs.count) { /* with history, so that fn's ops are recorded */
        outputs.at = proa_scope_alloc((size_t)outputs.count * sizeof *outputs.at);
        if (!outputs.at) return proa_error();
        for (int64_t i = 0; i < outputs.count; i++) {
            proa_tensor *t = n->outputs.at[i];
            outputs.at[i] = t == proa_none ? t : proa__tensor_alias(t);
            if (!outputs.at[i]) return proa_error();
            if (t != proa_none && t->dtype >= PROA_F16)
                proa__attach(outputs.at[i], proa__node_retain(n), (uint32_t)i);
        }
    }
    bool was = retains;
    struct running outer = running;
    retains = call->retain_graph;
    running = (struct running){n, call};
    proa_tensors made = n->function.backward(n->inputs, outputs, given, n->context);
    retains = was;
    running = outer;
    PROA_TRY(proa_error());
    if (made.count != n->n_edges)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "backward: custom function %s returned %lld gradients for %d inputs; return one each "
            "(PROA_NONE for none)",
            n->function.name, (long long)made.count, n->n_edges);
    for (int32_t i = 0; i < n->n_edges; i++) PROA_TRY(send(&n->edges[i], made.at[i], create_graph));
    return PROA_OK;
}

static bool has_gradient(const proa_node *n)
{
    for (int32_t i = 0; n->grads && i < n->n_out; i++)
        if (n->grads[i]) return true;
    return false;
}

static proa_status run_node(proa_node *n, const proa__backward_call *call)
{
    PROA_SCOPED;
    if (n->last) return PROA_OK;
    if (n->kind == PROA_NODE_LEAF) return run_leaf(n, call);
    if (!n->needed || !has_gradient(n)) return PROA_OK;
    for (int32_t i = 0; n->infos && i < n->n_out; i++) {
        if (!n->infos[i] || !n->grads[i]) continue;
        PROA_TRY(run_hooks(n->infos[i], &n->grads[i]));
        if (n->infos[i]->retain && !call->targets)
            PROA_TRY(store_gradient(n->infos[i], &n->grads[i], call->create_graph));
    }
    bool on_the_way = !call->targets;
    for (int32_t e = 0; e < n->n_edges && !on_the_way; e++)
        on_the_way = n->edges[e].node && n->edges[e].node->needed;
    if (!on_the_way) return PROA_OK;
    PROA_TRY(check_saved(n));
    for (int32_t i = 0; i < n->n_out; i++) /* the rule makes constants on the gradients' device */
        if (n->grads[i]) proa_device_use(proa__device_id(n->grads[i]));
    if (n->packed) return run_packed_rule(n, call->create_graph);
    if (n->kind == PROA_NODE_OP) return run_rule(n, call->create_graph);
    return run_function(n, call);
}

/* Stores the gradients that arrived at targets, before the node's gradients are released. */
static void collect_targets(const proa__backward_call *call, const proa_node *n)
{
    for (int64_t i = 0; i < call->n_targets; i++)
        if (call->targets[i].node == n && n->grads && n->grads[call->targets[i].output])
            call->targets[i].grad = proa_keep(n->grads[call->targets[i].output]);
}

static void drop_grads(proa_node *n)
{
    if (!n->grads) return;
    for (int32_t i = 0; i < n->n_out; i++) proa_release(n->grads[i]);
    proa__free(n->grads);
    n->grads = NULL;
}

/* True if the running function alone still owes gradients to the leaf at this input, and only one. */
static bool is_last(int64_t input)
{
    const proa_node *n = running.node, *to = n->edges[input].node;
    if (!to || to->kind != PROA_NODE_LEAF || !to->needed || to->last_sender != n) return false;
    for (int32_t e = 0; e < n->n_edges; e++)
        if (e != input && n->edges[e].node == to) return false;
    return true;
}

proa_status proa__gradient_early(int64_t input, proa_tensor *g, bool *taken)
{
    const proa__backward_call *call = running.call;
    *taken = false;
    if (!call || call->targets || call->create_graph || !is_last(input)) return PROA_OK;
    const proa_edge *e = &running.node->edges[input];
    if (!takes_early(e->node->info)) return PROA_OK;
    PROA_SCOPED;
    PROA_TRY(send(e, g, false));
    *taken = true;
    proa_drop(g); /* so that the leaf alone owns it */
    proa_status status = run_leaf(e->node, call);
    drop_grads(e->node);
    return status;
}

/* The ops of a gradient have the op_device of their op. */
static proa_status run_placed(proa_node *n, const proa__backward_call *call)
{
    if (!n->device) return run_node(n, call);
    int32_t device = proa__op_device;
    proa__op_device = n->device;
    proa_status status = run_node(n, call);
    proa__op_device = device;
    return status;
}

static proa_status run_order(const proa__backward_call *call, const node_list *order)
{
    proa_status status = PROA_OK;
    for (int64_t i = 0; i < order->count; i++) {
        proa_node *n = order->at[i];
        if (status == PROA_OK) status = run_placed(n, call);
        collect_targets(call, n);
        drop_grads(n);
        if (status == PROA_OK && !call->retain_graph && n->kind != PROA_NODE_LEAF && n->needed && !n->freed)
            proa__node_free_saved(n);
    }
    return status;
}

uint64_t proa__backward_new_pass(void) { return atomic_fetch_add(&passes, 1) + 1; }

static proa_status mark_last(const proa__backward_call *call, graph_walk *w)
{
    for (int64_t i = 0; call->inside && i < call->n_targets; i++) {
        proa_node *n = call->targets[i].node;
        if (!n) continue;
        if (!visit(w, n)) return proa_error();
        n->last = true;
    }
    return PROA_OK;
}

static proa_status seed_roots(const proa__backward_call *call, graph_walk *w)
{
    for (int64_t i = 0; i < call->n_roots; i++) {
        proa_node *n = call->roots[i].node;
        if (!visit(w, n)) return proa_error();
        PROA_TRY(grads_capacity(n));
        PROA_TRY(add_to(&n->grads[call->roots[i].output], call->roots[i].grad, call->create_graph));
    }
    return PROA_OK;
}

proa_status proa__backward_run(const proa__backward_call *call)
{
    graph_walk w = {.pass = proa__backward_new_pass(), .outermost = outermost};
    node_list order = {0};
    bool convert = proa_door_set(PROA_DOOR_CONVERT, false);
    bool record = proa_door_set(PROA_DOOR_RECORD, call->create_graph);
    int device = proa__stream()->device;
    if (!outermost) outermost = w.pass;
    proa_status status = mark_last(call, &w);
    if (status == PROA_OK) status = seed_roots(call, &w);
    if (status == PROA_OK && (!count_edges(&w) || !sort_nodes(&w.all, &order))) status = proa_error();
    /* nodes stay alive while their saved tensors are being freed */
    for (int64_t i = 0; i < w.all.count; i++) proa__node_retain(w.all.at[i]);
    if (status == PROA_OK) {
        mark_needed(call, &order);
        status = run_order(call, &order);
    } else {
        for (int64_t i = 0; i < w.all.count; i++) drop_grads(w.all.at[i]);
    }
    if (!w.outermost) status = run_ends(status);
    hand_back(&w);
    for (int64_t i = 0; i < w.all.count; i++) proa__node_release(w.all.at[i]);
    outermost = w.outermost;
    proa_device_use(device);
    proa_door_set(PROA_DOOR_CONVERT, convert);
    proa_door_set(PROA_DOOR_RECORD, record);
    proa__free(w.all.at);
    proa__free(order.at);
    return status;
}
