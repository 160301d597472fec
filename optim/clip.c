/* Gradient clipping: by value, by each gradient's norm, by the norm over all. Gradients themselves stay as
 * backward left them. Uses optim/optimizer.h. */
#include "optim/optimizer.h"

/* The op scales in place: it gets copies. */
static proa_status clip_global(double max, proa_tensors grads)
{
    proa_tensor *squared = proa_global_squared_norm(grads);
    for (int64_t i = 0; i < grads.count && !proa_error(); i++) grads.at[i] = proa_assign(grads.at[i]);
    return squared && !proa_error() ? proa_clip_by_global_norm(grads, squared, max) : proa_error();
}

proa_status proa__clip_grads(proa_clip clip, proa_tensors grads)
{
    if (clip.kind == PROA_CLIP_NONE || grads.count == 0) return proa_error();
    if (clip.kind == PROA_CLIP_GLOBAL_NORM) return clip_global(clip.max, grads);
    for (int64_t i = 0; i < grads.count && !proa_error(); i++)
        grads.at[i] = clip.kind == PROA_CLIP_NORM ? proa_clip_by_norm(grads.at[i], clip.max)
                                                  : proa_clip(grads.at[i], .min = PROA_SCALAR(-clip.max),
                                                              .max = PROA_SCALAR(clip.max));
    return proa_error();
}
