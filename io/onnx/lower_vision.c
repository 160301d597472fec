/* Lowerings of resampling and of rearrangements of images. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/regions.h"
#include "ops/ints.h"
#include "ops/vision/taps.h"
#include "ops/vision/vision.h"

#include <math.h>

/* ---- interpolation ------------------------------------------------------------------------------- */

/* The scale factor of a spatial axis; 0: the size was given. */
static double factor_of(const proa_interpolate_args *a, int axis)
{
    bool sized = a->size.count || proa__is_given(a->size.tensor);
    return sized || !a->scale.count ? 0 : a->scale.at[a->scale.count == 1 ? 0 : axis];
}

static void put_mode(onnx_graph *g, onnx_value *y, const proa_interpolate_args *a)
{
    bool nearest = a->mode == PROA_INTERP_METHOD_NEAREST, cubic = a->mode == PROA_INTERP_METHOD_BICUBIC;
    bool edge = nearest || (a->align_mode == 1 && !cubic);
    onnx_put_text(g, y, "mode", nearest ? "nearest" : cubic ? "cubic" : "linear");
    if (!onnx_from(g, 11)) return;
    onnx_put_text(g, y, "coordinate_transformation_mode",
                  a->align_corners ? "align_corners"
                  : edge           ? "asymmetric"
                                   : "pytorch_half_pixel");
    if (nearest) onnx_put_text(g, y, "nearest_mode", a->align_corners ? "round_prefer_ceil" : "floor");
    if (cubic) onnx_put_float(g, y, "cubic_coeff_a", -0.75);
}

/* Resize of x [N, C, spatial…]: from opset 11 on all of Paddle's modes. */
static onnx_value *resize(onnx_graph *g, const proa_interpolate_args *a, onnx_value *x, int first)
{
    int64_t none = 0, n = a->x->ndim - 2, size[3];
    onnx_value *empty = onnx_data(g, PROA_F32, 1, &none, NULL), *scales = empty, *sizes = NULL;
    if (factor_of(a, 0) > 0) {
        double all[5] = {1, 1};
        for (int64_t i = 0; i < n; i++) all[2 + i] = factor_of(a, (int)i);
        scales = onnx_numbers(g, PROA_F32, 2 + n, all);
    } else {
        onnx_value *parts[2] = {NULL}, *shape;
        bool known = true;
        for (int64_t i = 0; i < n; i++) known &= (size[i] = a->out->shape[first + i]) >= 0;
        parts[1] = known ? onnx_ints(g, n, size) : onnx_list_value(g, &a->size);
        shape = onnx_typed(ONNX_NODE(g, "Shape", x), PROA_I64);
        parts[0] = onnx_slice_one(g, shape, 0, 0, 2);
        sizes = onnx_concat(g, 2, parts, 0);
        if (onnx_from(g, 13)) scales = NULL;
    }
    onnx_value *y = ONNX_NODE(g, "Resize", x, onnx_from(g, 13) ? NULL : empty, scales, sizes);
    put_mode(g, y, a);
    return y;
}

/* Repeats each pixel a whole number of times: Upsample before opset 10. */
static onnx_value *upsample(onnx_graph *g, onnx_value *x, int64_t n, const double *scales)
{
    double all[5] = {1, 1};
    for (int64_t i = 0; i < n; i++) all[2 + i] = scales[i];
    onnx_value *input = onnx_from(g, 9) ? onnx_numbers(g, PROA_F32, 2 + n, all) : NULL;
    onnx_value *y = ONNX_NODE(g, onnx_from(g, 10) ? "Resize" : "Upsample", x, input);
    if (!input) onnx_put_floats(g, y, "scales", 2 + n, all);
    onnx_put_text(g, y, "mode", "nearest");
    return y;
}

/* x resampled along its last axis, by a product with the weights [in, out]. */
static onnx_value *resample_last(onnx_graph *g, const proa_interpolate_args *a, onnx_value *x, int64_t in,
                                 int64_t out, double factor)
{
    int taps = a->mode == PROA_INTERP_METHOD_NEAREST ? 1 : a->mode == PROA_INTERP_METHOD_BICUBIC ? 4 : 2;
    int64_t shape[] = {in, out};
    float step = taps_step(in, out, a->align_corners, (float)factor);
    float *weights = onnx_alloc(g, (size_t)in * (size_t)out, sizeof *weights);
    if (!weights || !x) return NULL;
    for (int64_t i = 0; i < out; i++) {
        int64_t at[TAPS_MAX];
        float w[TAPS_MAX];
        taps_of(taps, i, in, step, a->align_corners, a->align_mode == 0 && !a->align_corners, at, w);
        for (int k = 0; k < taps; k++) weights[at[k] * out + i] += w[k];
    }
    return ONNX_NODE(g, "MatMul", x, onnx_cast(g, onnx_data(g, PROA_F32, 2, shape, weights), x->dtype));
}

/* Before opset 11 ONNX has none of Paddle's alignments; with known sizes each axis is a product. */
static onnx_value *resample(onnx_graph *g, const proa_interpolate_args *a, onnx_value *x, int first)
{
    int n = a->x->ndim - 2;
    bool whole = a->mode == PROA_INTERP_METHOD_NEAREST && !a->align_corners, known = true;
    double scales[3];
    for (int i = 0; i < n; i++) {
        int64_t in = a->x->shape[first + i], out = a->out->shape[first + i];
        known &= in > 0 && out > 0;
        scales[i] = factor_of(a, i) > 0 ? factor_of(a, i) : in > 0 ? (double)out / (double)in : 0;
        whole &= scales[i] >= 1 && scales[i] == floor(scales[i]);
    }
    if (whole) return upsample(g, x, n, scales);
    if (!known && onnx_needs(g, 11)) return NULL;
    for (int i = 0; i < n; i++) {
        int64_t in = a->x->shape[first + i], out = a->out->shape[first + i];
        x = onnx_swap_axes(g, x, n + 2, 2 + i, n + 1);
        x = onnx_swap_axes(g, resample_last(g, a, x, in, out, factor_of(a, i)), n + 2, 2 + i, n + 1);
    }
    return x;
}

ONNX_LOWER(lower_interpolate, interpolate)
{
    bool last = proa__channels_last(a->data_format);
    int first = last ? 1 : 2;
    onnx_value *x = onnx_in(g, a->x);
    if (last) x = onnx_to_channels_first(g, x, a->x->ndim);
    onnx_value *y = onnx_from(g, 11) ? resize(g, a, x, first) : resample(g, a, x, first);
    onnx_bind(g, a->out, last ? onnx_to_channels_last(g, y, a->out->ndim) : y);
}

/* ---- sampling ------------------------------------------------------------------------------------- */

ONNX_LOWER(lower_grid_sample, grid_sample)
{
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    bool nearest = a->mode == PROA_SAMPLE_MODE_NEAREST;
    if (a->x->ndim == 5 && onnx_needs(g, 20)) return;
    onnx_value *y = ONNX_NODE(g, "GridSample", onnx_in(g, a->x), onnx_in(g, a->grid));
    onnx_put_text(g, y, "mode", nearest ? "nearest" : onnx_from(g, 20) ? "linear" : "bilinear");
    onnx_put_text(g, y, "padding_mode", paddings[a->padding_mode]);
    onnx_put_int(g, y, "align_corners", a->align_corners);
    onnx_bind(g, a->out, y);
}

/* Positions of one axis of an image of n pixels: from −1 to 1, at the outermost pixels' centres or edges. */
static double position(int64_t i, int64_t n, bool align_corners)
{
    if (align_corners) return n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1 : -1;
    return (2.0 * (double)i + 1) / (double)n - 1;
}

/* The maps are applied to all positions, which are constants: [1, points, 3 or 4] · thetaᵀ. */
ONNX_LOWER(lower_affine_grid, affine_grid)
{
    int64_t size[5], n = onnx_known(g, &a->out_shape, size, 5), dims = n - 2, points = 1;
    int64_t shape[3] = {1}, out[5] = {-1};
    if (n < 4 || a->theta->ndim != 3) {
        onnx_refuse(g, "out_shape comes from a tensor, which ONNX does not allow: give numbers");
        return;
    }
    for (int64_t i = 0; i < dims; i++) points *= out[1 + i] = size[2 + i];
    out[1 + dims] = dims;
    float *base = onnx_alloc(g, (size_t)(points * (dims + 1)), sizeof *base);
    if (!base) return;
    for (int64_t p = 0; p < points; p++) {
        for (int64_t i = dims - 1, rest = p; i >= 0; rest /= size[2 + i], i--) /* x first: the last axis */
            base[p * (dims + 1) + dims - 1 - i] =
                (float)position(rest % size[2 + i], size[2 + i], a->align_corners);
        base[p * (dims + 1) + dims] = 1;
    }
    shape[1] = points;
    shape[2] = dims + 1;
    onnx_value *theta = onnx_swap_axes(g, onnx_in(g, a->theta), 3, 1, 2);
    if (!theta) return;
    onnx_value *grid = onnx_cast(g, onnx_data(g, PROA_F32, 3, shape, base), theta->dtype);
    onnx_bind(g, a->out, onnx_reshape(g, ONNX_NODE(g, "MatMul", grid, theta), dims + 2, out));
}

/* The image that each box is of: how many images end before it. */
static onnx_value *image_of_box(onnx_graph *g, const proa_roi_align_args *a, onnx_value *boxes)
{
    const int64_t last = 1;
    onnx_value *n = onnx_dim(g, a->boxes, boxes, 0);
    if (a->x->shape[0] == 1) return onnx_expand(g, onnx_int(g, 0), n);
    if (onnx_needs(g, 11)) return NULL;
    onnx_value *ends =
        ONNX_NODE(g, "CumSum", onnx_cast(g, onnx_in(g, a->boxes_num), PROA_I64), onnx_whole(g, PROA_I64, 0));
    onnx_value *all = ONNX_NODE(g, "Range", onnx_whole(g, PROA_I64, 0), onnx_reshape(g, n, 0, NULL),
                                onnx_whole(g, PROA_I64, 1));
    onnx_value *behind = onnx_not(g, onnx_test(g, "Less", onnx_unsqueeze(g, all, 1, &last), ends));
    return onnx_reduce(g, "ReduceSum", onnx_cast(g, behind, PROA_I64), 1, &last, false);
}

ONNX_LOWER(lower_roi_align, roi_align)
{
    if (!proa__is_given(a->boxes_num) && a->x->shape[0] != 1) {
        onnx_refuse(g, "boxes need boxes_num: ONNX has no sequences (LoD)");
        return;
    }
    if (a->aligned && onnx_needs(g, 16)) return;
    onnx_value *boxes = onnx_in(g, a->boxes);
    onnx_value *y = ONNX_NODE(g, "RoiAlign", onnx_in(g, a->x), boxes, image_of_box(g, a, boxes));
    onnx_put_int(g, y, "output_height", a->pooled_height);
    onnx_put_int(g, y, "output_width", a->pooled_width);
    onnx_put_int(g, y, "sampling_ratio", a->sampling_ratio > 0 ? a->sampling_ratio : 0);
    onnx_put_float(g, y, "spatial_scale", a->spatial_scale);
    if (onnx_from(g, 16))
        onnx_put_text(g, y, "coordinate_transformation_mode",
                      a->aligned ? "half_pixel" : "output_half_pixel");
    onnx_bind(g, a->out, y);
}

/* ---- rearrangements -------------------------------------------------------------------------------- */

/* x with channels second, reshaped, transposed and reshaped again; ~i in a shape is dim i of x. */
static void rearrange(onnx_graph *g, const proa_tensor *t, bool last, const proa_tensor *out, int n,
                      const int64_t *apart, const int64_t *perm, const int64_t *joined)
{
    proa_tensor first = proa__shallow_copy(t);
    onnx_value *x = onnx_in(g, t);
    if (last) {
        x = onnx_to_channels_first(g, x, t->ndim);
        for (int i = 1; i < t->ndim; i++) first.shape[i] = t->shape[i == 1 ? t->ndim - 1 : i - 1];
    }
    onnx_value *y = onnx_transpose(g, onnx_reshape_by(g, x, &first, x, n, apart), n, perm);
    y = onnx_reshape_by(g, y, &first, x, out->ndim, joined);
    onnx_bind(g, out, last ? onnx_to_channels_last(g, y, out->ndim) : y);
}

/* Spatial sizes of an image, which a rearrangement multiplies; false with an error. */
static bool known_image(onnx_graph *g, const proa_tensor *t, bool last, int64_t *channels, int64_t *rows,
                        int64_t *columns)
{
    *channels = t->shape[last ? 3 : 1];
    *rows = t->shape[last ? 1 : 2];
    *columns = t->shape[last ? 2 : 3];
    if (*channels >= 0 && *rows >= 0 && *columns >= 0) return true;
    onnx_refuse(g, "channels and sizes of the image must be known: give them in input_spec");
    return false;
}

ONNX_LOWER(lower_pixel_shuffle, pixel_shuffle)
{
    bool last = proa__channels_last(a->data_format);
    const int64_t r = a->upscale_factor, perm[] = {0, 1, 4, 2, 5, 3};
    int64_t c_in, rows, columns;
    if (onnx_from(g, 11)) {
        onnx_value *x = onnx_in(g, a->x),
                   *y = ONNX_NODE(g, "DepthToSpace", last ? onnx_to_channels_first(g, x, 4) : x);
        onnx_put_int(g, y, "blocksize", r);
        onnx_put_text(g, y, "mode", "CRD");
        onnx_bind(g, a->out, last ? onnx_to_channels_last(g, y, 4) : y);
        return;
    }
    if (!known_image(g, a->x, last, &c_in, &rows, &columns)) return;
    const int64_t apart[] = {~0, c_in / (r * r), r, r, rows, columns},
                  joined[] = {~0, c_in / (r * r), rows * r, columns * r};
    rearrange(g, a->x, last, a->out, 6, apart, perm, joined);
}

ONNX_LOWER(lower_pixel_unshuffle, pixel_unshuffle)
{
    bool last = proa__channels_last(a->data_format);
    const int64_t r = a->downscale_factor, perm[] = {0, 1, 3, 5, 2, 4};
    int64_t c_in, rows, columns;
    if (!known_image(g, a->x, last, &c_in, &rows, &columns)) return;
    const int64_t apart[] = {~0, c_in, rows / r, r, columns / r, r},
                  joined[] = {~0, c_in * r * r, rows / r, columns / r};
    rearrange(g, a->x, last, a->out, 6, apart, perm, joined);
}

ONNX_LOWER(lower_channel_shuffle, channel_shuffle)
{
    bool last = proa__channels_last(a->data_format);
    const int64_t channels = a->x->shape[last ? 3 : 1], perm[] = {0, 2, 1, 3, 4};
    if (channels < 0) {
        onnx_refuse(g, "the number of channels must be known");
        return;
    }
    const int64_t apart[] = {~0, a->groups, channels / a->groups, ~2, ~3}, joined[] = {~0, channels, ~2, ~3};
    rearrange(g, a->x, last, a->out, 5, apart, perm, joined);
}

/* Channels [from, to) moved by one frame, with zeros where there is none. x: [N, T, C, H, W]. */
static onnx_value *shifted(onnx_graph *g, onnx_value *x, int64_t from, int64_t to, int64_t by)
{
    int64_t pads[10] = {0};
    onnx_value *part = onnx_slice_one(g, x, 2, from, to);
    pads[by > 0 ? 1 : 6] = 1;
    return onnx_pad(g, onnx_slice_one(g, part, 1, by > 0 ? 0 : 1, by > 0 ? -1 : INT64_MAX), "constant", 5,
                    pads, 0);
}

ONNX_LOWER(lower_temporal_shift, temporal_shift)
{
    bool last = proa__channels_last(a->data_format);
    int64_t channels, rows, columns, back, ahead, n = 0;
    onnx_value *x = onnx_in(g, a->x), *parts[3];
    if (!known_image(g, a->x, last, &channels, &rows, &columns)) return;
    if (last) x = onnx_to_channels_first(g, x, 4);
    vision_shift_channels(channels, a->shift_ratio, &back, &ahead);
    x = ONNX_RESHAPE(g, x, -1, a->seg_num, channels, rows, columns);
    if (back > 0) parts[n++] = shifted(g, x, 0, back, 1);
    if (ahead > back) parts[n++] = shifted(g, x, back, ahead, -1);
    if (channels > ahead) parts[n++] = onnx_slice_one(g, x, 2, ahead, channels);
    onnx_value *y = ONNX_RESHAPE(g, onnx_concat(g, n, parts, 2), -1, channels, rows, columns);
    onnx_bind(g, a->out, last ? onnx_to_channels_last(g, y, 4) : y);
}

/* ---- windows ----------------------------------------------------------------------------------------- */

/* Windows along an axis: [kernel, windows] places of the padded axis, as an index for Gather. */
static onnx_value *window_index(onnx_graph *g, const vision_windows *w, int k)
{
    int64_t shape[] = {w->kernel[k], w->out[k]},
            *at = onnx_alloc(g, (size_t)(shape[0] * shape[1]), sizeof *at);
    for (int64_t i = 0; at && i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++) at[i * shape[1] + j] = i * w->dilation[k] + j * w->stride[k];
    return at ? onnx_data(g, PROA_I64, 2, shape, at) : NULL;
}

ONNX_LOWER(lower_unfold, unfold)
{
    const proa_ints lists[] = {a->kernel_sizes, a->strides, a->paddings, a->dilations};
    const int64_t perm[] = {0, 1, 2, 4, 3, 5};
    int64_t channels, in[2];
    vision_windows w;
    if (!known_image(g, a->x, false, &channels, &in[0], &in[1]) ||
        proa__windows("unfold", lists, in, &w) != PROA_OK)
        return;
    const int64_t pads[] = {0, 0, w.before[0], w.before[1], 0, 0, w.after[0], w.after[1]};
    onnx_value *x = onnx_pad(g, onnx_in(g, a->x), "constant", 4, pads, 0);
    x = onnx_gather(g, onnx_gather(g, x, window_index(g, &w, 0), 2), window_index(g, &w, 1), 4);
    x = onnx_transpose(g, x, 6, perm);
    onnx_bind(g, a->out, ONNX_RESHAPE(g, x, 0, channels * w.kernel[0] * w.kernel[1], w.out[0] * w.out[1]));
}

ONNX_LOWER(lower_fold, fold)
{
    const proa_ints lists[] = {a->kernel_sizes, a->strides, a->paddings, a->dilations};
    const int64_t in[] = {a->output_sizes.at[0], a->output_sizes.at[1]};
    vision_windows w;
    if (proa__windows("fold", lists, in, &w) != PROA_OK) return;
    const int64_t pads[] = {w.before[0], w.before[1], w.after[0], w.after[1]};
    onnx_value *y = ONNX_NODE(g, "Col2Im", onnx_in(g, a->x), onnx_ints(g, 2, in), onnx_ints(g, 2, w.kernel));
    onnx_put_ints(g, y, "strides", 2, w.stride);
    onnx_put_ints(g, y, "dilations", 2, w.dilation);
    onnx_put_ints(g, y, "pads", 4, pads);
    onnx_bind(g, a->out, y);
}

const onnx_rule onnx_rules_vision[] = {
    {"interpolate", lower_interpolate, NULL, 0, 0},
    {"grid_sample", lower_grid_sample, NULL, 16, 0},
    {"affine_grid", lower_affine_grid, NULL, 0, 0},
    {"roi_align", lower_roi_align, NULL, 10, 0},
    {"pixel_shuffle", lower_pixel_shuffle, NULL, 0, 0},
    {"pixel_unshuffle", lower_pixel_unshuffle, NULL, 0, 0},
    {"channel_shuffle", lower_channel_shuffle, NULL, 0, 0},
    {"temporal_shift", lower_temporal_shift, NULL, 0, 0},
    {"unfold", lower_unfold, NULL, 0, 0},
    {"fold", lower_fold, NULL, 18, 0},
    {0},
};

#else
typedef int proa__no_onnx_vision; /* C wants a declaration in every file */
#endif
