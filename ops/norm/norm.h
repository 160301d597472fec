/* Geometry of every normalization: a row is all elements that share a mean and a deviation; it is a set of
 * contiguous segments of one length, with one weight and bias for a row, for each segment or for each
 * element. May use core only. */
#ifndef PROA_OPS_NORM_NORM_H
#define PROA_OPS_NORM_NORM_H

#include "impl/norm.h"

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/windows.h"

/* Row r = (image r / groups, group r % groups) starts at image · image_step + group · group_step; its
 * segment s at s · segment_step more. Element j of it has weight group · group_weights + s ·
 * by_segment + j · by_element. */
typedef struct norm_rows {
    int64_t rows, groups, image_step, group_step;
    int64_t segments, segment_step, length;
    int64_t group_weights, by_segment, by_element, weights;
} norm_rows;

static inline int64_t norm_start(const norm_rows *n, int64_t row)
{
    return row / n->groups * n->image_step + row % n->groups * n->group_step;
}

/* True when batch_norm uses the running statistics. */
#define BATCH_NORM_FIXED(a) (((a)->is_test && !(a)->trainable_statistics) || (a)->use_global_stats)

/* True when each channel of x has exactly one value and the statistics would be those of the batch: there is
 * nothing to normalize, so, as in Paddle, x passes unchanged and the running statistics stay. */
#define BATCH_NORM_PASSES(a) \
    (!BATCH_NORM_FIXED(a) && proa__one_per_channel((a)->x, (proa_data_format)(a)->data_format))
bool proa__one_per_channel(const proa_tensor *x, proa_data_format f);

/* Channels of x; dim 1, or the last. 2-D x has channels last either way. */
int64_t proa__norm_channels(const proa_tensor *x, proa_data_format f);
/* norm_rows of an x with known dims, for batch, layer, group and instance norm. */
norm_rows proa__batch_rows(const proa_tensor *x, proa_data_format f);
norm_rows proa__layer_rows(const proa_tensor *x, int64_t begin_norm_axis);
norm_rows proa__group_rows(const proa_tensor *x, int64_t groups, proa_data_format f);

#endif
