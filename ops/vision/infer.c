/* Shapes of the image ops. May use core and ops. */
#include "ops/vision/vision.h"

#include "ops/shape/slice.h"

/* dim times factor, rounded down, unless it is unknown. */
static int64_t scaled(int64_t dim, double factor) { return dim < 0 ? -1 : (int64_t)((double)dim * factor); }

/* ---- interpolate ------------------------------------------------------------------------- */

proa_status proa__resized(const vision_resize *r, int ndim, const int64_t *shape, int64_t *out)
{
    static const int dims_of[] = {0, 2, 2, 3, 1};
    int spatial = ndim - 2, want = dims_of[r->mode], first = proa__channels_last(r->format) ? 1 : 2;
    int64_t count;
    if (ndim < 3 || ndim > 5 || (want && spatial != want))
        return OP_FAIL(r->who, INVALID_ARGUMENT, "x", "has %d axes; this mode needs %s", ndim,
                       want == 1   ? "3"
                       : want == 2 ? "4"
                       : want == 3 ? "5"
                                   : "3, 4 or 5");
    PROA_TRY(proa__ints_count(r->who, "size", r->size, &count));
    for (int i = 0; i < ndim; i++) out[i] = shape[i];
    if (count ? count != spatial : r->scale->count != 1 && r->scale->count != spatial)
        return OP_FAIL(r->who, INVALID_ARGUMENT, count ? "size" : "scale", "has %lld entries; expected %d",
                       (long long)(count ? count : r->scale->count), spatial);
    for (int i = 0; i < spatial; i++) {
        double factor = count ? 0 : r->scale->at[r->scale->count == 1 ? 0 : i];
        int64_t size = count ? proa__ints_at(r->size, i) : 0;
        if (!count && !(factor > 0 && factor < 1e9))
            return OP_FAIL(r->who, INVALID_ARGUMENT, "scale", "is %g; expected a number above 0", factor);
        out[first + i] = size == PROA_UNKNOWN ? -1 : count ? size : scaled(shape[first + i], (float)factor);
        if (size != PROA_UNKNOWN && out[first + i] < (shape[first + i] < 0 && !count ? -1 : 1) &&
            shape[first + i] != 0)
            return OP_FAIL(r->who, INVALID_ARGUMENT, count ? "size" : "scale",
                           "gives axis %d the length %lld; expected 1 or more", first + i,
                           (long long)out[first + i]);
        if (shape[first + i] == 0 && out[first + i] > 0)
            return OP_FAIL(r->who, INVALID_ARGUMENT, "x", "has no pixels along axis %d", first + i);
    }
    return PROA_OK;
}

proa_status interpolate_infer(const proa_interpolate_args *a, proa_interpolate_metas *m)
{
    m->out = proa_meta_of(a->x);
    bool whole = a->x->dtype < PROA_F16, mixes = a->mode != PROA_INTERP_METHOD_NEAREST;
    if (whole && mixes && (a->x->dtype != PROA_U8 || a->mode == PROA_INTERP_METHOD_BICUBIC))
        return OP_FAIL(
            "interpolate", INVALID_ARGUMENT, "x",
            "is %s; nearest takes U8, I32 and I64, linear, bilinear and trilinear U8, and all modes "
            "floating numbers: cast it",
            proa_dtype_name((proa_dtype)a->x->dtype));
    return proa__resized(&VISION_RESIZE("interpolate", a), a->x->ndim, a->x->shape, m->out.shape);
}

proa_status interpolate_grad_infer(const proa_interpolate_grad_args *a, proa_interpolate_grad_metas *m)
{
    static const char who[] = "interpolate_grad";
    int64_t out[PROA_MAX_DIMS];
    PROA_TRY(proa__dims_meta(who, "shape", &a->shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(proa__resized(&VISION_RESIZE(who, a), m->d_x.ndim, m->d_x.shape, out));
    bool fits = a->d_out->ndim == m->d_x.ndim && proa__shapes_agree(out, a->d_out->shape, m->d_x.ndim);
    if (fits) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "d_out", "is %s; expected shape %s", proa__tensor_text(a->d_out),
                   proa__shape_text(out, m->d_x.ndim));
}

/* ---- grid_sample, affine_grid ------------------------------------------------------------ */

static proa_status check_grid(const char *who, const proa_tensor *x, const proa_tensor *grid, proa_meta *out)
{
    bool fits = (x->ndim == 4 || x->ndim == 5) && grid->ndim == x->ndim && grid->dtype == x->dtype;
    fits = fits && (grid->shape[x->ndim - 1] < 0 || grid->shape[x->ndim - 1] == x->ndim - 2);
    fits = fits && (x->shape[0] < 0 || grid->shape[0] < 0 || x->shape[0] == grid->shape[0]);
    if (!fits)
        return OP_FAIL(who, INVALID_ARGUMENT, "grid",
                       "is %s for x %s; expected x's dtype, [N, C, H, W] with [N, H', W', 2] or "
                       "[N, C, D, H, W] with [N, D', H', W', 3]",
                       proa__tensor_text(grid), proa__tensor_text(x));
    for (int i = 2; i < x->ndim; i++)
        if (x->shape[i] == 0 && grid->numel != 0)
            return OP_FAIL(who, INVALID_ARGUMENT, "x", "is %s and has no pixels", proa__tensor_text(x));
    *out = proa_meta_of(x);
    for (int i = 2; i < x->ndim; i++) out->shape[i] = grid->shape[i - 1];
    return PROA_OK;
}

proa_status grid_sample_infer(const proa_grid_sample_args *a, proa_grid_sample_metas *m)
{
    return check_grid("grid_sample", a->x, a->grid, &m->out);
}

proa_status grid_sample_grad_infer(const proa_grid_sample_grad_args *a, proa_grid_sample_grad_metas *m)
{
    proa_meta out;
    PROA_TRY(check_grid("grid_sample_grad", a->x, a->grid, &out));
    bool fits = a->d_out->ndim == out.ndim && a->d_out->dtype == out.dtype &&
                proa__shapes_agree(out.shape, a->d_out->shape, out.ndim);
    if (!fits)
        return OP_FAIL("grid_sample_grad", INVALID_ARGUMENT, "d_out", "is %s; expected shape %s of x's dtype",
                       proa__tensor_text(a->d_out), proa__shape_text(out.shape, out.ndim));
    m->d_x = proa_meta_of(a->x);
    m->d_grid = proa_meta_of(a->grid);
    return PROA_OK;
}

proa_status affine_grid_infer(const proa_affine_grid_args *a, proa_affine_grid_metas *m)
{
    static const char who[] = "affine_grid";
    const proa_tensor *t = a->theta;
    int64_t dims[PROA_MAX_DIMS], count;
    int n, spatial = t->ndim == 3 && t->shape[1] == 3 ? 3 : 2;
    if (t->ndim != 3 || (t->shape[1] >= 0 && t->shape[1] != spatial) ||
        (t->shape[2] >= 0 && t->shape[2] != spatial + 1))
        return OP_FAIL(who, INVALID_ARGUMENT, "theta", "is %s; expected [N, 2, 3] or [N, 3, 4]",
                       proa__tensor_text(t));
    PROA_TRY(proa__ints_count(who, "out_shape", &a->out_shape, &count));
    if (count != spatial + 2)
        return OP_FAIL(who, INVALID_ARGUMENT, "out_shape", "has %lld entries; expected %d for theta %s",
                       (long long)count, spatial + 2, proa__tensor_text(t));
    PROA_TRY(proa__ints_list(who, "out_shape", &a->out_shape, PROA_MAX_DIMS, dims, &n));
    m->out = (proa_meta){.dtype = (proa_dtype)t->dtype, .ndim = (int8_t)(spatial + 2)};
    m->out.shape[0] = t->shape[0];
    for (int i = 0; i < n; i++) {
        if (dims[i] == PROA_UNKNOWN) dims[i] = -1;
        else if (dims[i] < 0)
            return OP_FAIL(who, INVALID_ARGUMENT, "out_shape", "has the length %lld", (long long)dims[i]);
        if (i >= 2) m->out.shape[i - 1] = dims[i];
    }
    m->out.shape[spatial + 1] = spatial;
    if (dims[0] >= 0 && t->shape[0] >= 0 && dims[0] != t->shape[0])
        return OP_FAIL(who, INVALID_ARGUMENT, "out_shape", "is for a batch of %lld, but theta is %s",
                       (long long)dims[0], proa__tensor_text(t));
    return PROA_OK;
}

/* ---- channels ---------------------------------------------------------------------------- */

/* Checks that x is a batch of images and `value` above 0; returns the channels' axis. */
static proa_status image_axes(const char *who, const proa_tensor *x, const char *arg, int64_t value,
                              proa_data_format format, int *channels)
{
    if (x->ndim != 4)
        return OP_FAIL(who, INVALID_ARGUMENT, "x", "is %s; expected 4 axes", proa__tensor_text(x));
    if (value < 1 || value > 1 << 15)
        return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %lld; expected 1 or more", (long long)value);
    *channels = proa__channels_last(format) ? 3 : 1;
    return PROA_OK;
}

static proa_status indivisible(const char *who, const proa_tensor *x, int axis, int64_t by)
{
    return OP_FAIL(who, INVALID_ARGUMENT, "x", "is %s; axis %d cannot be divided by %lld",
                   proa__tensor_text(x), axis, (long long)by);
}

/* Infers a pixel shuffle: divides the channels by r² and multiplies height and width by r (widen), or the
 * reverse. */
static proa_status shuffled(const char *who, const proa_tensor *x, const char *arg, int64_t r,
                            proa_data_format format, bool widen, proa_meta *m)
{
    int c = 0;
    PROA_TRY(image_axes(who, x, arg, r, format, &c));
    *m = proa_meta_of(x);
    for (int i = 1; i < 4; i++) {
        int64_t by = i == c ? r * r : r, dim = x->shape[i];
        if (dim < 0) continue;
        if ((i == c) == widen) {
            if (dim % by) return indivisible(who, x, i, by);
            m->shape[i] = dim / by;
        } else if (__builtin_mul_overflow(dim, by, &m->shape[i])) {
            return OP_FAIL(who, OVERFLOW, arg, "is %lld for x %s", (long long)r, proa__tensor_text(x));
        }
    }
    return PROA_OK;
}

proa_status pixel_shuffle_infer(const proa_pixel_shuffle_args *a, proa_pixel_shuffle_metas *m)
{
    return shuffled("pixel_shuffle", a->x, "upscale_factor", a->upscale_factor, a->data_format, true,
                    &m->out);
}

proa_status pixel_unshuffle_infer(const proa_pixel_unshuffle_args *a, proa_pixel_unshuffle_metas *m)
{
    return shuffled("pixel_unshuffle", a->x, "downscale_factor", a->downscale_factor, a->data_format, false,
                    &m->out);
}

proa_status channel_shuffle_infer(const proa_channel_shuffle_args *a, proa_channel_shuffle_metas *m)
{
    int c = 0;
    PROA_TRY(image_axes("channel_shuffle", a->x, "groups", a->groups, a->data_format, &c));
    if (a->x->shape[c] >= 0 && a->x->shape[c] % a->groups)
        return indivisible("channel_shuffle", a->x, c, a->groups);
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

static proa_status check_shift(const char *who, const proa_tensor *x, const char *arg, int64_t segments,
                               double ratio, proa_data_format format, proa_meta *m)
{
    int c;
    PROA_TRY(image_axes(who, x, "seg_num", segments, format, &c));
    if (x->shape[0] >= 0 && x->shape[0] % segments)
        return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %s; its first axis cannot be divided by seg_num %lld",
                       proa__tensor_text(x), (long long)segments);
    if (!(ratio > 0 && ratio <= 0.5))
        return OP_FAIL(who, INVALID_ARGUMENT, "shift_ratio", "is %g; expected above 0 to 0.5", ratio);
    *m = proa_meta_of(x);
    return PROA_OK;
}

proa_status temporal_shift_infer(const proa_temporal_shift_args *a, proa_temporal_shift_metas *m)
{
    return check_shift("temporal_shift", a->x, "x", a->seg_num, a->shift_ratio, a->data_format, &m->out);
}

proa_status temporal_shift_grad_infer(const proa_temporal_shift_grad_args *a,
                                      proa_temporal_shift_grad_metas *m)
{
    return check_shift("temporal_shift_grad", a->d_out, "d_out", a->seg_num, a->shift_ratio, a->data_format,
                       &m->d_x);
}

static proa_status maxout_shape(const char *who, const proa_tensor *x, int64_t groups, int64_t axis,
                                proa_meta *m)
{
    int at;
    if (x->ndim != 4)
        return OP_FAIL(who, INVALID_ARGUMENT, "x", "is %s; expected 4 axes", proa__tensor_text(x));
    PROA_TRY(proa__axis(who, "axis", axis, x->ndim, &at));
    if (groups < 1)
        return OP_FAIL(who, INVALID_ARGUMENT, "groups", "is %lld for x %s; expected 1 or more",
                       (long long)groups, proa__tensor_text(x));
    *m = proa_meta_of(x);
    if (x->shape[at] < 0) return PROA_OK;
    if (x->shape[at] % groups) return indivisible(who, x, at, groups);
    m->shape[at] /= groups;
    return PROA_OK;
}

proa_status maxout_infer(const proa_maxout_args *a, proa_maxout_metas *m)
{
    return maxout_shape("maxout", a->x, a->groups, a->axis, &m->out);
}

proa_status maxout_grad_infer(const proa_maxout_grad_args *a, proa_maxout_grad_metas *m)
{
    proa_meta out;
    PROA_TRY(maxout_shape("maxout_grad", a->x, a->groups, a->axis, &out));
    const proa_tensor *like[] = {a->out, a->d_out};
    for (int k = 0; k < 2; k++) {
        bool fits = like[k]->ndim == out.ndim && like[k]->dtype == out.dtype &&
                    proa__shapes_agree(out.shape, like[k]->shape, out.ndim);
        if (!fits)
            return OP_FAIL("maxout_grad", INVALID_ARGUMENT, k ? "d_out" : "out",
                           "is %s; expected shape %s of x's dtype", proa__tensor_text(like[k]),
                           proa__shape_text(out.shape, out.ndim));
    }
    m->d_x = proa_meta_of(a->x);
    return PROA_OK;
}

/* ---- unfold, fold ------------------------------------------------------------------------ */

proa_status proa__windows(const char *who, const proa_ints lists[4], const int64_t in[2], vision_windows *w)
{
    static const char *const names[] = {"kernel_sizes", "strides", "paddings", "dilations"};
    for (int k = 0; k < 4; k++) {
        int64_t want = k == 2 ? 4 : 2, least = k == 2 ? 0 : 1;
        if (lists[k].count != want)
            return OP_FAIL(who, INVALID_ARGUMENT, names[k], "has %lld entries; expected %lld",
                           (long long)lists[k].count, (long long)want);
        for (int64_t i = 0; i < want; i++)
            if (lists[k].at[i] < least || lists[k].at[i] > INT32_MAX)
                return OP_FAIL(who, INVALID_ARGUMENT, names[k], "has the entry %lld; expected %lld or more",
                               (long long)lists[k].at[i], (long long)least);
    }
    for (int d = 0; d < 2; d++) {
        w->kernel[d] = lists[0].at[d], w->stride[d] = lists[1].at[d];
        w->before[d] = lists[2].at[d], w->after[d] = lists[2].at[d + 2];
        w->dilation[d] = lists[3].at[d], w->in[d] = in[d];
        int64_t span = in[d] + w->before[d] + w->after[d] - w->dilation[d] * (w->kernel[d] - 1) - 1;
        w->out[d] = in[d] < 0 ? -1 : span / w->stride[d] + 1;
        if (in[d] >= 0 && span < 0)
            return OP_FAIL(who, INVALID_ARGUMENT, "kernel_sizes",
                           "with dilation spans more than the padded image's %lld along axis %d",
                           (long long)(in[d] + w->before[d] + w->after[d]), d + 2);
    }
    return PROA_OK;
}

proa_status unfold_infer(const proa_unfold_args *a, proa_unfold_metas *m)
{
    const proa_tensor *x = a->x;
    const proa_ints lists[] = {a->kernel_sizes, a->strides, a->paddings, a->dilations};
    vision_windows w;
    if (x->ndim != 4)
        return OP_FAIL("unfold", INVALID_ARGUMENT, "x", "is %s; expected [N, C, H, W]", proa__tensor_text(x));
    PROA_TRY(proa__windows("unfold", lists, x->shape + 2, &w));
    m->out = (proa_meta){.dtype = (proa_dtype)x->dtype, .ndim = 3};
    m->out.shape[0] = x->shape[0];
    m->out.shape[1] = x->shape[1] < 0 ? -1 : x->shape[1] * w.kernel[0] * w.kernel[1];
    m->out.shape[2] = w.out[0] < 0 || w.out[1] < 0 ? -1 : w.out[0] * w.out[1];
    return PROA_OK;
}

proa_status fold_infer(const proa_fold_args *a, proa_fold_metas *m)
{
    const proa_tensor *x = a->x;
    const proa_ints lists[] = {a->kernel_sizes, a->strides, a->paddings, a->dilations};
    vision_windows w;
    if (x->ndim != 3)
        return OP_FAIL("fold", INVALID_ARGUMENT, "x", "is %s; expected [N, C·kh·kw, windows]",
                       proa__tensor_text(x));
    if (a->output_sizes.count != 2 || a->output_sizes.at[0] < 1 || a->output_sizes.at[1] < 1)
        return OP_FAIL("fold", INVALID_ARGUMENT, "output_sizes", "must be the image's height and width");
    PROA_TRY(proa__windows("fold", lists, a->output_sizes.at, &w));
    int64_t windows = w.out[0] * w.out[1], square = w.kernel[0] * w.kernel[1];
    if (x->shape[2] >= 0 && x->shape[2] != windows)
        return OP_FAIL("fold", INVALID_ARGUMENT, "x", "is %s; the sizes give %lld windows",
                       proa__tensor_text(x), (long long)windows);
    if (x->shape[1] >= 0 && x->shape[1] % square) return indivisible("fold", x, 1, square);
    m->out = (proa_meta){.dtype = (proa_dtype)x->dtype, .ndim = 4};
    m->out.shape[0] = x->shape[0];
    m->out.shape[1] = x->shape[1] < 0 ? -1 : x->shape[1] / square;
    m->out.shape[2] = w.in[0], m->out.shape[3] = w.in[1];
    return PROA_OK;
}
