/* Creation, reference counts and freeing of tape nodes and of tensors' gradient infos. Freeing uses a work
 * list, so that long chains of nodes do not recurse. May use core. */
#include "autograd/saved_hooks.h"
#include "core/args.h"

/* Clears field by field, which the compiler merges to wide stores; memset of the whole struct would cost more
 * than the rest of making a node. Fields that only custom functions use are cleared for them alone; a
 * backward sets `pending` and `needed` itself. */
static inline void clear(proa_node *n)
{
    n->op = NULL;
    n->args = NULL;
    n->freed = false;
    n->device = 0;
    n->in_place = false;
    n->n_saved = 0;
    n->packed = NULL;
    n->metas = NULL;
    n->likes = NULL;
    n->infos = NULL;
    n->info = NULL;
    n->pass = 0;
    n->grads = NULL;
    if (n->kind != PROA_NODE_FUNCTION) return;
    n->function = (proa_function){0};
    n->context = NULL;
    n->inputs = n->outputs = (proa_tensors){0, NULL};
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
    char *payload = block + sizeof(proa_node);
    n->edges = (proa_edge *)(void *)payload;
    for (int32_t i = 0; i < n_edges; i++) n->edges[i].node = NULL;
    n->saved = (proa_saved_version *)(void *)(payload + (size_t)n_edges * sizeof(proa_edge));
    n->args_capacity = n->saved + n_saved;
    return n;
}

bool proa__node_set_outputs(proa_node *n, int32_t n_out)
{
    n->n_out = n_out;
    return n_out <= 1 || proa__node_add_metas(n);
}

bool proa__node_add_metas(proa_node *n)
{
    n->metas = proa__alloc((size_t)n->n_out * sizeof *n->metas);
    for (int32_t i = 0; n->metas && i < n->n_out; i++) n->metas[i].ndim = -1;
    return n->metas != NULL;
}

static inline atomic_int *owners(proa_node *n)
{
    return n->kind == PROA_NODE_LEAF ? &n->info->refs : &n->refs;
}

proa_node *proa__node_retain(proa_node *n)
{
    if (n) atomic_fetch_add_explicit(owners(n), 1, memory_order_relaxed);
    return n;
}

/* Removes one reference; true if it was the last. A sole owner needs no locked instruction: nobody else can
 * retain meanwhile. */
static inline bool uncount(atomic_int *refs)
{
    return atomic_load_explicit(refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
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
    for (int32_t i = 0; n->likes && i < n->n_out; i++) proa_release(n->likes[i]);
    proa__free(n->likes);
    n->likes = NULL;
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
    proa__release_packed(n);
    n->n_saved = 0;
}

static void free_one(proa_node *n)
{
    if (!n->freed) proa__node_free_saved(n);
    for (int32_t i = 0; i < n->n_edges; i++)
        if (n->edges[i].node) proa__node_release(n->edges[i].node);
    if (n->infos) {
        for (int32_t i = 0; i < n->n_out; i++) proa__info_release(n->infos[i]);
        proa__free(n->infos);
    }
    if (n->grads) {
        for (int32_t i = 0; i < n->n_out; i++) proa_release(n->grads[i]);
        proa__free(n->grads);
    }
    if (n->metas) proa__free(n->metas);
    proa__free(n);
}

void proa__node_release(proa_node *n)
{
    static _Thread_local proa_node *waiting __attribute__((tls_model("initial-exec")));
    static _Thread_local bool freeing __attribute__((tls_model("initial-exec")));
    if (!n) return;
    if (n->kind == PROA_NODE_LEAF) {
        proa__info_release(n->info);
        return;
    }
    if (!uncount(&n->refs)) return;
    n->next_free = waiting;
    waiting = n;
    if (freeing) return; /* the outer call's loop frees it, too: long chains do not recurse */
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
    if (!info || !uncount(&info->refs)) return;
    proa_release(info->grad);
    for (int32_t i = 0; i < info->n_hooks; i++)
        if (info->hooks[i].release) info->hooks[i].release(info->hooks[i].context);
    proa__free(info->hooks);
    proa__free(info->leaf);
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

/* The leaf's node of t, created when first needed. */
static proa_node *leaf_of(proa_tensor *t)
{
    struct proa_grad_info *info = proa__grad_info(t);
    if (!info || info->leaf) return info ? info->leaf : NULL;
    info->leaf = proa__node_new(PROA_NODE_LEAF, 0, 1, 0, 0);
    if (info->leaf) info->leaf->info = info;
    return info->leaf;
}

bool proa__gradient_edge(proa_tensor *t, proa_node **node, uint32_t *output)
{
    *node = NULL;
    *output = 0;
    if (!(t->flags & PROA_T_GRAD)) return true;
    *node = proa__node_retain(t->node ? t->node : leaf_of(t));
    if (t->node) *output = t->node_output;
    return *node != NULL;
}

bool proa__edge_to(proa_edge *e, proa_tensor *t)
{
    proa_node *leaf = t->node ? NULL : leaf_of(t);
    if (leaf && atomic_load_explicit(&leaf->info->refs, memory_order_acquire) == 1) {
        proa__count_new(&leaf->info->refs); /* owned by t alone, and only one thread records with a leaf */
        e->node = leaf;
        e->output = 0;
    } else if (!proa__gradient_edge(t, &e->node, &e->output)) {
        return false;
    }
    e->meta.dtype = (proa_dtype)t->dtype;
    e->meta.ndim = t->ndim;
    for (int d = 0; d < t->ndim; d++) e->meta.shape[d] = t->shape[d];
    return true;
}

__attribute__((constructor)) static void install(void)
{
    proa__tensor_hooks.free_node = proa__node_release;
    proa__tensor_hooks.free_grad = proa__info_release;
}
