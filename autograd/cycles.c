/* Prevents reference cycles through in-place calls: the overwritten tensor owns its new node, behind which a
 * node may have saved the same handle, as sin does in y.add_(sin(y)). That node gets another handle on the
 * same memory; its saved version still shows that the value changed. May use core. */
#include "autograd/cycles.h"

#include "autograd/backward.h"
#include "core/args_visit.h"

typedef struct walk {
    proa_node **at;
    int64_t n, capacity;
    uint64_t pass;
    proa_tensor *tensor, *alias;
} walk;

static proa_status reach(walk *w, proa_node *n)
{
    if (!n || n->pass == w->pass) return PROA_OK;
    n->pass = w->pass;
    if (w->n == w->capacity) {
        int64_t capacity = w->capacity ? 2 * w->capacity : 64;
        proa_node **grown = proa__realloc(w->at, (size_t)capacity * sizeof *grown);
        if (!grown) return proa_error();
        w->at = grown;
        w->capacity = capacity;
    }
    w->at[w->n++] = n;
    return PROA_OK;
}

static void swap(const walk *w, proa_node *n, proa_tensor **slot)
{
    if (*slot != w->tensor) return;
    *slot = proa_retain(w->alias);
    for (int32_t i = 0; i < n->n_saved; i++)
        if (n->saved[i].tensor == w->tensor) n->saved[i].tensor = w->alias;
    proa_release(w->tensor); /* does not free it: the caller owns it, too */
}

static void swap_list(const walk *w, proa_node *n, const proa_tensors *list)
{
    for (int64_t i = 0; i < list->count; i++) swap(w, n, &list->at[i]);
}

static void swap_all(const walk *w, proa_node *n)
{
    if (n->kind == PROA_NODE_FUNCTION) swap_list(w, n, &n->inputs);
    if (n->kind != PROA_NODE_OP || !n->args) return;
    for (const proa_field *f = n->op->fields, *end = f + n->op->n_fields; f < end; f++) {
        const proa_tensors all = proa__field_all(f, n->args);
        swap_list(w, n, &all);
    }
}

proa_status proa__open_cycles(proa_node *made, proa_tensor *t)
{
    if (!atomic_load_explicit(&t->is_saved, memory_order_relaxed)) return PROA_OK;
    walk w = {.tensor = t, .alias = proa__tensor_alias(t), .pass = proa__backward_new_pass()};
    proa_status status = w.alias ? reach(&w, made) : proa_error();
    while (status == PROA_OK && w.n) {
        proa_node *n = w.at[--w.n];
        swap_all(&w, n);
        for (int32_t e = 0; e < n->n_edges && status == PROA_OK; e++) status = reach(&w, n->edges[e].node);
    }
    if (w.alias) proa_drop(w.alias);
    proa__free(w.at);
    /* Cleared only if nobody else owns t: another owner may be a node that the next in-place call will be in
     * front of. */
    if (status == PROA_OK && atomic_load_explicit(&t->refs, memory_order_relaxed) == 1)
        atomic_store_explicit(&t->is_saved, false, memory_order_relaxed);
    return status;
}
