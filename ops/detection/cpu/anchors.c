/* CPU kernels of anchor boxes: generation, overlaps and matching, decoding and clipping; and
 * polygon_box_transform. May use core only. */
#include "ops/detection/detection.h"

#include "ops/lod/offsets.h"

#include <math.h>

#define T float
#define EXP expf
#define SQRT sqrtf
#define ROUND roundf
#include "ops/detection/cpu/anchors.inc"
#undef T
#undef EXP
#undef SQRT
#undef ROUND
#define T double
#define EXP exp
#define SQRT sqrt
#define ROUND round
#include "ops/detection/cpu/anchors.inc"

#define WIDE(t) ((t)->dtype == PROA_F64)

PROA_KERNEL(anchor_generator_cpu, anchor_generator)
{
    if (WIDE(a->input)) anchors_double(a);
    else anchors_float(a);
    return PROA_OK;
}

PROA_KERNEL(density_prior_box_cpu, density_prior_box)
{
    if (WIDE(a->input)) density_double(a);
    else density_float(a);
    return PROA_OK;
}

PROA_KERNEL(iou_similarity_cpu, iou_similarity)
{
    proa__parallel(a->out->shape[0], rows_grain(4 * a->out->shape[1]),
                   WIDE(a->x) ? similar_double : similar_float, (void *)(uintptr_t)a);
    return PROA_OK;
}

PROA_KERNEL(bipartite_match_cpu, bipartite_match)
{
    int64_t rows = a->dist->shape[0], one[2] = {0, rows};
    offsets parts = {one, 1};
    if (!proa__absent(a->offsets))
        PROA_TRY(offsets_of("bipartite_match", "offsets", a->offsets, rows, &parts));
    bool *taken = proa_scratch((size_t)rows + 1);
    if (!taken) return proa_error();
    for (int64_t i = 0; i < parts.n; i++) {
        int64_t first = parts.at[i], n = parts.at[i + 1] - first;
        if (WIDE(a->dist)) match_double(a, i, first, n, taken);
        else match_float(a, i, first, n, taken);
    }
    proa_scratch_free(taken);
    return PROA_OK;
}

PROA_KERNEL(box_clip_cpu, box_clip)
{
    offsets parts;
    PROA_TRY(offsets_of("box_clip", "offsets", a->offsets, a->input->shape[0], &parts));
    for (int64_t i = 0; i < parts.n; i++)
        if (WIDE(a->input)) clip_double(a, i, parts.at[i], parts.at[i + 1]);
        else clip_float(a, i, parts.at[i], parts.at[i + 1]);
    return PROA_OK;
}

PROA_KERNEL(box_decoder_and_assign_cpu, box_decoder_and_assign)
{
    if (WIDE(a->prior_box)) assign_double(a);
    else assign_float(a);
    return PROA_OK;
}

PROA_KERNEL(polygon_box_transform_cpu, polygon_box_transform)
{
    if (WIDE(a->input)) polygon_double(a);
    else polygon_float(a);
    return PROA_OK;
}
