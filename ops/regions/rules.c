/* Gradients of RoI pooling and of deformable convolution, each an op of its own. May use public ops. */
#include "ops/regions/regions.h"

proa_status roi_align_vjp(const proa_roi_align_args *a, proa_roi_align_grads *g)
{
    g->d_x = proa_roi_align_grad(a->x, a->boxes, a->boxes_num, a->offsets, g->d_out,
                                 .pooled_height = a->pooled_height, .pooled_width = a->pooled_width,
                                 .spatial_scale = rows_option_float(a->spatial_scale),
                                 .sampling_ratio = rows_option(a->sampling_ratio), .aligned = a->aligned);
    return proa_error();
}

proa_status roi_pool_vjp(const proa_roi_pool_args *a, proa_roi_pool_grads *g)
{
    g->d_x = proa_roi_pool_grad(a->x, a->boxes, a->boxes_num, a->offsets, a->arg_max, g->d_out,
                                .pooled_height = a->pooled_height, .pooled_width = a->pooled_width,
                                .spatial_scale = rows_option_float(a->spatial_scale));
    return proa_error();
}

proa_status psroi_pool_vjp(const proa_psroi_pool_args *a, proa_psroi_pool_grads *g)
{
    g->d_x = proa_psroi_pool_grad(a->x, a->boxes, a->boxes_num, a->offsets, g->d_out,
                                  .pooled_height = a->pooled_height, .pooled_width = a->pooled_width,
                                  .output_channels = a->output_channels,
                                  .spatial_scale = rows_option_float(a->spatial_scale));
    return proa_error();
}

proa_status prroi_pool_vjp(const proa_prroi_pool_args *a, proa_prroi_pool_grads *g)
{
    proa_prroi_pool_grad_result r = proa_prroi_pool_grad(
        a->x, a->boxes, a->boxes_num, a->offsets, g->d_out, .pooled_height = a->pooled_height,
        .pooled_width = a->pooled_width, .spatial_scale = rows_option_float(a->spatial_scale));
    if (g->want_x) g->d_x = r.d_x;
    if (g->want_boxes) g->d_boxes = r.d_boxes;
    return proa_error();
}

proa_status deformable_conv_vjp(const proa_deformable_conv_args *a, proa_deformable_conv_grads *g)
{
    proa_deformable_conv_grad_result r = proa_deformable_conv_grad(
        a->x, a->offset, a->weight, a->mask, g->d_out, .stride = a->stride, .padding = a->padding,
        .dilation = a->dilation, .deformable_groups = a->deformable_groups, .groups = a->groups);
    g->d_x = r.d_x;
    g->d_offset = r.d_offset;
    g->d_weight = r.d_weight;
    g->d_mask = r.d_mask;
    return proa_error();
}
