/* Gradients of the image ops. Those of resampling and of windows are ops that scatter back; those of shuffles
 * are the inverse shuffles. May use public ops. */
#include "ops/vision/vision.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/reduce.h"
#include "impl/shape.h"
#include "impl/vision.h"

proa_status interpolate_vjp(const proa_interpolate_args *a, proa_interpolate_grads *g)
{
    g->d_x = proa_interpolate_grad(g->d_out, proa__shape_like(a->x), .size = a->size, .scale = a->scale,
                                   .mode = a->mode, .align_corners = a->align_corners,
                                   .align_mode = a->align_mode, .data_format = a->data_format);
    return proa_error();
}

proa_status interpolate_grad_vjp(const proa_interpolate_grad_args *a, proa_interpolate_grad_grads *g)
{
    g->d_d_out = proa_interpolate(g->d_d_x, .size = a->size, .scale = a->scale, .mode = a->mode,
                                  .align_corners = a->align_corners, .align_mode = a->align_mode,
                                  .data_format = a->data_format);
    return proa_error();
}

proa_status grid_sample_vjp(const proa_grid_sample_args *a, proa_grid_sample_grads *g)
{
    proa_grid_sample_grad_result r =
        proa_grid_sample_grad(a->x, a->grid, g->d_out, .mode = a->mode, .padding_mode = a->padding_mode,
                              .no_align_corners = !a->align_corners);
    g->d_x = r.d_x;
    g->d_grid = r.d_grid;
    return proa_error();
}

/* Entry i of a shape that variables supply, as one. */
static proa_tensor *length_of(const proa_ints *v, int64_t i)
{
    if (proa__is_given(v->tensor)) return proa_slice(v->tensor, PROA_INTS(0), PROA_INTS(i), PROA_INTS(i + 1));
    if (v->tensors && proa__is_given(v->tensors[i])) return v->tensors[i];
    return proa_full(PROA_INTS(1), (double)v->at[i], .dtype = PROA_I64);
}

/* out = theta · [base; 1], where base is what the identity makes: d_theta = d_outᵀ · [base; 1]. */
proa_status affine_grid_vjp(const proa_affine_grid_args *a, proa_affine_grid_grads *g)
{
    int64_t n = a->theta->shape[1] == 3 ? 3 : 2, shape[PROA_MAX_DIMS], count;
    int64_t rows[] = {a->theta->shape[0], -1, n};
    proa_tensor *one =
        proa_unsqueeze(proa_eye(n, .num_columns = n + 1, .dtype = (proa_dtype)a->theta->dtype), PROA_INTS(0));
    proa_tensor *each[PROA_MAX_DIMS] = {0};
    bool unknown = proa__ints_unknown(&a->out_shape);
    PROA_TRY(proa__ints_count("affine_grid", "out_shape", &a->out_shape, &count));
    for (int64_t i = 1; i < count; i++) {
        shape[i] = unknown ? 0 : proa__ints_at(&a->out_shape, i);
        if (unknown) each[i] = length_of(&a->out_shape, i);
    }
    shape[0] = 1;
    proa_tensor *base = proa_affine_grid(one, ((proa_ints){count, shape, NULL, unknown ? each : NULL}),
                                         .no_align_corners = !a->align_corners);
    base = proa_reshape(base, PROA_INTS(1, -1, n));
    proa_tensor *ones = proa_full_like(proa_slice(base, PROA_INTS(2), PROA_INTS(0), PROA_INTS(1)), 1);
    base = proa_concat(PROA_LIST(base, ones), .axis = 2);
    proa_tensor *d = proa_reshape(g->d_out, ((proa_ints){3, rows, NULL, NULL}));
    g->d_theta = proa_matmul(d, base, .transpose_x = true);
    return proa_error();
}

proa_status pixel_shuffle_vjp(const proa_pixel_shuffle_args *a, proa_pixel_shuffle_grads *g)
{
    g->d_x = proa_pixel_unshuffle(g->d_out, a->upscale_factor, .data_format = a->data_format);
    return proa_error();
}

proa_status pixel_unshuffle_vjp(const proa_pixel_unshuffle_args *a, proa_pixel_unshuffle_grads *g)
{
    g->d_x = proa_pixel_shuffle(g->d_out, a->downscale_factor, .data_format = a->data_format);
    return proa_error();
}

proa_status channel_shuffle_vjp(const proa_channel_shuffle_args *a, proa_channel_shuffle_grads *g)
{
    int64_t channels = a->x->shape[proa__channels_last(a->data_format) ? 3 : 1];
    g->d_x = proa_channel_shuffle(g->d_out, channels / a->groups, .data_format = a->data_format);
    return proa_error();
}

proa_status temporal_shift_vjp(const proa_temporal_shift_args *a, proa_temporal_shift_grads *g)
{
    g->d_x = proa_temporal_shift_grad(g->d_out, a->seg_num, .shift_ratio = a->shift_ratio,
                                      .data_format = a->data_format);
    return proa_error();
}

proa_status temporal_shift_grad_vjp(const proa_temporal_shift_grad_args *a, proa_temporal_shift_grad_grads *g)
{
    g->d_d_out = proa_temporal_shift(g->d_d_x, a->seg_num, .shift_ratio = a->shift_ratio,
                                     .data_format = a->data_format);
    return proa_error();
}

proa_status maxout_vjp(const proa_maxout_args *a, proa_maxout_grads *g)
{
    g->d_x = proa_maxout_grad(a->x, a->out, g->d_out, a->groups, .axis = a->axis ? a->axis : PROA_ZERO);
    return proa_error();
}

/* Linear in d_out: its gradient sums, over each group, what arrives at the chosen channel. */
proa_status maxout_grad_vjp(const proa_maxout_grad_args *a, proa_maxout_grad_grads *g)
{
    int64_t axis = a->axis < 0 ? a->axis + a->x->ndim : a->axis, shape[PROA_MAX_DIMS + 1];
    int n = 0;
    if (a->x->ndim == PROA_MAX_DIMS)
        return OP_FAIL("maxout_grad", UNSUPPORTED, "x", "has too many axes for a second gradient");
    for (int i = 0; i < a->x->ndim; i++) {
        shape[n++] = i == axis ? (a->x->shape[i] < 0 ? -1 : a->x->shape[i] / a->groups) : a->x->shape[i];
        if (i == axis) shape[n++] = a->groups;
    }
    proa_tensor *chosen = proa_maxout_grad(a->x, a->out, proa_full_like(a->out, 1), a->groups,
                                           .axis = a->axis ? a->axis : PROA_ZERO);
    proa_tensor *split = proa_reshape(proa_multiply(g->d_d_x, chosen), ((proa_ints){n, shape, NULL, NULL}));
    g->d_d_out = proa_sum(split, .axis = PROA_INTS(axis + 1));
    return proa_error();
}

proa_status unfold_vjp(const proa_unfold_args *a, proa_unfold_grads *g)
{
    g->d_x = proa_fold(g->d_out, PROA_INTS(a->x->shape[2], a->x->shape[3]), a->kernel_sizes, a->strides,
                       a->paddings, a->dilations);
    return proa_error();
}

proa_status fold_vjp(const proa_fold_args *a, proa_fold_grads *g)
{
    g->d_x = proa_unfold(g->d_out, a->kernel_sizes, a->strides, a->paddings, a->dilations);
    return proa_error();
}
