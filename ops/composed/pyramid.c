/* Spatial pyramid pooling (He et al., 2014) as a composition of poolings. May use public ops and
 * proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/pool.h"

#include <string.h>

enum { LEVELS = 16 }; /* 2¹⁵ cells a side: more than any image has pixels */

/* x pooled to `cells` · `cells` windows side by side, which begin in the padding, as [N, C · cells²]. */
static proa_tensor *level(proa_tensor *x, int64_t cells, bool largest)
{
    int64_t kernel[2], padding[2];
    for (int i = 0; i < 2; i++) {
        int64_t size = x->shape[2 + i];
        kernel[i] = (size + cells - 1) / cells;
        padding[i] = (kernel[i] * cells - size + 1) / 2;
    }
    proa_ints sizes = {2, kernel, NULL, NULL}, before = {2, padding, NULL, NULL};
    proa_tensor *made = largest ? proa_max_pool2d(x, sizes, .stride = sizes, .padding = before)
                                : proa_avg_pool2d(x, sizes, .stride = sizes, .padding = before);
    return proa_flatten(made, .start_axis = 1);
}

proa_status spp_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *made[LEVELS];
    int64_t height = proa_wire_int(r, "pyramid_height", 1);
    const char *type = proa_wire_string(r, "pooling_type", "max");
    if (!x || !type) return proa_error();
    if (x->ndim != 4 || x->shape[2] < 1 || x->shape[3] < 1)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "spp: X is %s; expected [N, C, H, W] of a known height and width",
                         proa__tensor_text(x));
    if (height < 1 || height > LEVELS)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "spp: pyramid_height is %lld; expected 1 to %d",
                         (long long)height, LEVELS);
    bool largest = strcmp(type, "max") == 0;
    if (!largest && strcmp(type, "avg") != 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "spp: pooling_type is '%s'; expected max or avg", type);
    for (int64_t i = 0; i < height; i++)
        if (!(made[i] = level(x, (int64_t)1 << i, largest))) return proa_error();
    proa_tensors levels = {height, made};
    return proa_wire_result(r, "Out", proa_concat(levels, .axis = 1));
}
