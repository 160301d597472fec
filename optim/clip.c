/* Gradient clipping: by value, by each gradient's norm, or by the global norm. Makes new tensors; the
 * gradients that backward stored are unchanged. Uses optim/optimizer.h. */
#include "optim/optimizer.h"

/* Fills *elements with the tensors to take norms of: gradients, for SelectedRows merged values. */
static proa_status merge(proa_tensors grads, proa_tensors *elements)
{
    elements->at = proa_scope_alloc((size_t)grads.count * sizeof *elements->at);
    if (!elements->at) return proa_error();
    for (elements->count = 0; elements->count < grads.count && !proa_error(); elements->count++) {
        proa_tensor **g = &grads.at[elements->count];
        bool rows = proa_is_rows(*g);
        if (rows) *g = proa_rows_merge(*g);
        elements->at[elements->count] = rows ? proa_rows_values(*g) : *g;
    }
    return proa_error();
}

/* Clips by the global norm. The op scales its operands in place, so it gets copies of the gradients. */
static proa_status clip_global(double max, proa_tensors grads, proa_tensors elements)
{
    proa_tensor *squared = proa_global_squared_norm(elements);
    for (int64_t i = 0; i < grads.count && !proa_error(); i++) {
        grads.at[i] = proa_assign(grads.at[i]);
        elements.at[i] = proa_is_rows(grads.at[i]) ? proa_rows_values(grads.at[i]) : grads.at[i];
    }
    return squared && !proa_error() ? proa_clip_by_global_norm(elements, squared, max) : proa_error();
}

static proa_tensor *clip_one(proa_clip clip, proa_tensor *x)
{
    if (clip.kind == PROA_CLIP_NORM) return proa_clip_by_norm(x, clip.max);
    return proa_clip(x, .min = PROA_SCALAR(-clip.max), .max = PROA_SCALAR(clip.max));
}

proa_status proa__clip_grads(proa_clip clip, proa_tensors grads)
{
    if (clip.kind == PROA_CLIP_NONE || grads.count == 0) return proa_error();
    proa_tensors elements;
    PROA_TRY(merge(grads, &elements));
    if (clip.kind == PROA_CLIP_GLOBAL_NORM) return clip_global(clip.max, grads, elements);
    for (int64_t i = 0; i < grads.count && !proa_error(); i++) {
        proa_tensor *g = grads.at[i], *clipped = clip_one(clip, elements.at[i]);
        bool rows = clipped && proa_is_rows(g);
        grads.at[i] = rows ? proa_rows_new(proa_rows_index(g), clipped, proa_rows_height(g)) : clipped;
    }
    return proa_error();
}
