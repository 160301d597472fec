/* Gradients of the shape and dtype of an input from what rules return: sums over the dims that the input was
 * broadcast along, also where only the run of a program knows which these are. May use core and ops. */
#include "autograd/backward.h"

#include <proa/ops.h>

proa_tensor *proa__fit_gradient(proa_tensor *g, const proa_meta *meta)
{
    int extra = g->ndim - meta->ndim;
    int64_t axes[PROA_MAX_DIMS];
    int n = 0;
    bool same = extra == 0, fits = extra >= 0;
    for (int i = 0; i < g->ndim; i++) {
        int64_t want = i < extra ? 1 : meta->shape[i - extra];
        if (i >= extra && want == g->shape[i]) continue;
        /* dims unknown until the run are taken as equal to the wanted ones; if one turns out to be 1, the sum
         * is right, too */
        if (i >= extra && (want < 0 || (g->shape[i] < 0 && want != 1))) continue;
        fits &= want == 1;
        same = false;
        axes[n++] = i;
    }
    if (!fits) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "backward: %s is no gradient of an input of shape %s; a custom backward returns one of the "
                  "input's shape, or of a shape that the input's broadcasts to",
                  proa__tensor_text(g), proa__shape_text(meta->shape, meta->ndim));
        return NULL;
    }
    if (!same) {
        if (n) g = proa_sum(g, .axis = ((proa_ints){n, axes, NULL, NULL}), .keepdim = true);
        if (g && extra > 0) {
            int64_t lead[PROA_MAX_DIMS];
            for (int i = 0; i < extra; i++) lead[i] = i;
            g = proa_squeeze(g, .axis = ((proa_ints){extra, lead, NULL, NULL}));
        }
    }
    if (!g || (proa_dtype)g->dtype == meta->dtype) return g;
    bool from_complex = g->dtype == PROA_C64 || g->dtype == PROA_C128;
    bool to_complex = meta->dtype == PROA_C64 || meta->dtype == PROA_C128;
    if (from_complex && !to_complex) g = proa_real(g);
    return !g || (proa_dtype)g->dtype == meta->dtype ? g : proa_cast(g, meta->dtype);
}

int proa__stretched_dims(const proa_op *op, const int64_t *shape, int ndim, const proa_meta *out)
{
    int kept = op->flags & PROA_OP_BATCHES ? 2 : 0, unknown = 0;
    bool longer = false;
    if (!(op->flags & (PROA_OP_BROADCASTS | PROA_OP_BATCHES)) || out->ndim < ndim) return 0;
    for (int i = 0; i < ndim - kept; i++) {
        unknown += shape[i] < 0;
        longer |= shape[i] < 0 && out->shape[out->ndim - ndim + i] >= 0;
    }
    return longer && ndim + unknown <= PROA_MAX_DIMS ? unknown : 0;
}

static proa_tensor *entry(proa_tensor *shape, int i)
{
    return proa_slice(shape, PROA_INTS(0), PROA_INTS(i), PROA_INTS(i + 1));
}

/* Sums g over the dims that only the run finds to be 1 in `like`: each unknown dim n of g is seen as n / m
 * times m, with m the dim of `like`, and the first of the two is summed. */
static proa_tensor *sum_stretched(const proa_op *op, proa_tensor *g, const proa_tensor *like)
{
    int kept = op->flags & PROA_OP_BATCHES ? 2 : 0, n = 0, summed = 0;
    int64_t numbers[PROA_MAX_DIMS] = {0}, axes[PROA_MAX_DIMS];
    proa_tensor *each[PROA_MAX_DIMS] = {0};
    proa_tensor *have = proa_shape(g), *want = proa_shape((proa_tensor *)(uintptr_t)like);
    for (int i = 0; i < like->ndim; i++) {
        numbers[n] = like->shape[i];
        if (like->shape[i] < 0) {
            proa_tensor *m = entry(want, i);
            if (i < like->ndim - kept) {
                axes[summed++] = n;
                proa_tensor *least = proa_maximum(m, proa_full(PROA_INTS(1), 1, .dtype = PROA_I32));
                each[n++] = proa_floor_divide(entry(have, i), least);
            }
            numbers[n] = 0;
            each[n] = m;
        }
        n++;
    }
    proa_tensor *seen = proa_reshape(g, ((proa_ints){n, numbers, NULL, each}));
    return proa_sum(seen, .axis = ((proa_ints){summed, axes, NULL, NULL}));
}

proa_tensor *proa__fit_stretched(const proa_node *n, const proa_edge *e, proa_tensor *g)
{
    const proa_node *from = e->node;
    bool unknown =
        from && from->needed && g && g != proa_none && n->metas && from->likes && from->likes[e->output];
    if (!unknown || !proa__stretched_dims(n->op, e->meta.shape, e->meta.ndim, &n->metas[0])) return g;
    g = proa__fit_gradient(g, &e->meta);
    return g ? sum_stretched(n->op, g, from->likes[e->output]) : NULL;
}
