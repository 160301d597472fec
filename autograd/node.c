/* Making, sharing and freeing nodes and gradient infos. Graphs are freed with a work list, so that a
 * chain of any length needs no stack. May use core. */
#include "autograd/node.h"
#include "core/args.h"

/* Field by field: stores that the compiler joins, where clearing the struct as a whole would become a
 * string instruction, which costs more than the rest of making a node. */
static inline void clear(proa_node *n)
{
    n->op = NULL;
    n->args = NULL;
    n->function.name = NULL;
    n->function.release = NULL;
    n->context = NULL;
    n->inputs.count = 0;
    n->inputs.at = NULL;
    n->outputs.count = 0;
    n->outputs.at = NULL;
    n->freed = false;
    n->in_place = false;
    n->n_saved = 0;
    n->metas = NULL;
    n->infos = NULL;
    n->info = NULL;
    n->pass = 0;
    n->pending = 0;
    n->needed = false;
    n->grads = NULL;
    n->next_free = NULL;
}

proa_node *proa__node_new(proa_node_kind kind, int32_t n_edges, int32_t n_out, int32_t n_saved,
                          size_t args_bytes)
{
    size_t bytes = sizeof(proa_node) + (size_t)n_edges * sizeof(proa_edge) +
                   (size_t)n_saved * sizeof(proa_saved_version) + args_bytes;
    char *block = proa__alloc(bytes);
    if (!block) return NULL;
    proa_node *n = (proa_node *)(void *)block;
    atomic_init(&n->refs, 1);
    n->kind = kind;
    n->n_edges = n_edges;
    n->n_out = n_out;
    clear(n);
    char *room = block + sizeof(proa_node);
    n->edges = (proa_edge *)(void *)room;
    for (int32_t i = 0; i < n_edges; i++) n->edges[i].node = NULL;
    n->saved = (proa_saved_version *)(void *)(room + (size_t)n_edges * sizeof(proa_edge));
    n->args_room = n->saved + n_saved;
    return n;
}

bool proa__node_set_outputs(proa_node *n, int32_t n_out)
{
    n->n_out = n_out;
    if (n_out <= 1) return true;
    n->metas = proa__alloc((size_t)n_out * sizeof *n->metas);
    for (int32_t i = 0; n->metas && i < n_out; i++) n->metas[i].ndim = -1;
    return n->metas != NULL;
}

proa_node *proa__node_retain(proa_node *n)
{
    if (n) atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

static void release_list(proa_tensors *list)
{
    for (int64_t i = 0; i < list->count; i++) proa_release(list->at[i]);
    proa__free(list->at);
    *list = (proa_tensors){0, NULL};
}

void proa__node_free_saved(proa_node *n)
{
    n->freed = true;
    if (n->kind == PROA_NODE_OP) {
        if (n->args) proa__args_drop(n->op, n->args);
        n->args = NULL;
    } else if (n->kind == PROA_NODE_FUNCTION) {
        release_list(&n->inputs);
        release_list(&n->outputs);
        if (n->function.release) n->function.release(n->context);
        n->function.release = NULL;
        n->context = NULL;
    }
    n->n_saved = 0;
}

static void free_one(proa_node *n)
{
    if (!n->freed && n->kind != PROA_NODE_LEAF) proa__node_free_saved(n);
    for (int32_t i = 0; i < n->n_edges; i++) proa__node_release(n->edges[i].node);
    if (n->infos) {
        for (int32_t i = 0; i < n->n_out; i++) proa__info_release(n->infos[i]);
        proa__free(n->infos);
    }
    if (n->grads) {
        for (int32_t i = 0; i < n->n_out; i++) proa_release(n->grads[i]);
        proa__free(n->grads);
    }
    proa__free(n->metas);
    struct proa_grad_info *info = n->info;
    if (info && atomic_load_explicit(&info->refs, memory_order_acquire) > 1) {
        atomic_store_explicit(&n->refs, 0, memory_order_relaxed);
        n->info = NULL; /* the tensor lives on: its next recording finds the node there, without owners */
        n->grads = NULL;
        n->metas = NULL;
        proa__info_release(info);
        return;
    }
    if (info) info->leaf = NULL;
    proa__info_release(info);
    proa__free(n);
}

void proa__node_release(proa_node *n)
{
    static _Thread_local proa_node *waiting __attribute__((tls_model("initial-exec")));
    static _Thread_local bool freeing __attribute__((tls_model("initial-exec")));
    /* A sole owner needs no locked instruction: nobody else can retain meanwhile. */
    if (!n || (atomic_load_explicit(&n->refs, memory_order_acquire) != 1 &&
               atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1))
        return;
    n->next_free = waiting;
    waiting = n;
    if (freeing) return; /* an outer call takes it from the list */
    freeing = true;
    while (waiting) {
        proa_node *next = waiting;
        waiting = next->next_free;
        free_one(next);
    }
    freeing = false;
}

struct proa_grad_info *proa__info_retain(struct proa_grad_info *info)
{
    if (info) atomic_fetch_add_explicit(&info->refs, 1, memory_order_relaxed);
    return info;
}

void proa__info_release(struct proa_grad_info *info)
{
    if (!info || atomic_fetch_sub_explicit(&info->refs, 1, memory_order_acq_rel) != 1) return;
    proa_release(info->grad);
    for (int32_t i = 0; i < info->n_hooks; i++)
        if (info->hooks[i].release) info->hooks[i].release(info->hooks[i].context);
    proa__free(info->hooks);
    proa__free(info->leaf); /* without owners, or it would own this */
    proa__free(info);
}

struct proa_grad_info *proa__grad_info(proa_tensor *t)
{
    if (t->grad) return t->grad;
    struct proa_grad_info *info = proa__calloc(sizeof *info);
    if (!info) return NULL;
    atomic_init(&info->refs, 1);
    info->next_hook = 1;
    t->grad = info;
    if (!t->node) return info;
    proa_node *n = t->node;
    if (!n->infos) n->infos = proa__calloc((size_t)n->n_out * sizeof *n->infos);
    if (!n->infos) {
        t->grad = NULL;
        proa__info_release(info);
        return NULL;
    }
    proa__info_release(n->infos[t->node_output]);
    n->infos[t->node_output] = proa__info_retain(info);
    return info;
}

bool proa__gradient_edge(proa_tensor *t, proa_node **node, uint32_t *output)
{
    *node = NULL;
    *output = 0;
    if (!(t->flags & PROA_T_GRAD)) return true;
    if (t->node) {
        *node = t->node;
        *output = t->node_output;
        return true;
    }
    struct proa_grad_info *info = proa__grad_info(t);
    if (!info) return false;
    if (!info->leaf) {
        info->leaf = proa__node_new(PROA_NODE_LEAF, 0, 1, 0, 0);
        if (!info->leaf) return false;
        atomic_store_explicit(&info->leaf->refs, 0, memory_order_relaxed);
    }
    if (!info->leaf->info)
        info->leaf->info = proa__info_retain(info); /* the caller's edge is its first owner */
    *node = info->leaf;
    return true;
}

void proa__attach(proa_tensor *t, proa_node *n, uint32_t output)
{
    proa_node *before = t->node;
    t->node = n;
    t->node_output = output;
    t->flags = (t->flags | PROA_T_GRAD) & ~(uint32_t)PROA_T_LEAF;
    if (t->grad) { /* hooks and gradient belonged to the value that was overwritten */
        proa__info_release(t->grad);
        t->grad = NULL;
    }
    proa__node_release(before);
}

__attribute__((constructor)) static void install(void)
{
    proa__tensor_hooks.free_node = proa__node_release;
    proa__tensor_hooks.free_grad = proa__info_release;
}
