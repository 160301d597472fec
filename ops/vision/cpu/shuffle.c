/* Kernels that move pixels: pixel and channel shuffles as one strided copy, temporal_shift, unfold (im2col)
 * and fold (col2im), and maxout. May use core and kernels only. */
#include "kernels/rowwise.h"
#include "ops/shape/accumulate.h"
#include "ops/vision/vision.h"
#include "kernels/upcast.h"

/* ---- shuffles ---------------------------------------------------------------------------- */

/* View of contiguous t as `shape` of n axes, permuted to `order`. */
static proa_tensor permuted(const proa_tensor *t, int n, const int64_t *shape, const int *order)
{
    proa_tensor w = proa__window(t);
    int64_t strides[PROA_MAX_DIMS], step = (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape[i];
    }
    w.ndim = (int8_t)n;
    for (int i = 0; i < n; i++) w.shape[i] = shape[order[i]], w.strides[i] = strides[order[i]];
    return w;
}

/* Wide images [N, C, H·r, W·r] and deep ones [N, C·r², H, W], both seen as [N, C, H, r, W, r]. */
static proa_status pixels(proa_tensor *to, proa_tensor *from, int64_t r, proa_data_format format, bool widen)
{
    static const int straight[] = {0, 1, 2, 3, 4, 5}, taken[] = {0, 1, 4, 2, 5, 3};
    const proa_tensor *deep = widen ? from : to;
    bool last = proa__channels_last(format);
    int64_t n = deep->shape[0], c = deep->shape[last ? 3 : 1] / (r * r);
    int64_t h = deep->shape[last ? 1 : 2], w = deep->shape[last ? 2 : 3];
    if (to->numel == 0) return PROA_OK;
    proa_tensor wide_view, deep_view;
    if (last) { /* wide: N H r W r C; deep: N H W C r r */
        wide_view = permuted(widen ? to : from, 6, (int64_t[]){n, h, r, w, r, c}, straight);
        deep_view = permuted(deep, 6, (int64_t[]){n, h, w, c, r, r}, taken);
    } else { /* wide: N C H r W r; deep: N C r r H W */
        wide_view = permuted(widen ? to : from, 6, (int64_t[]){n, c, h, r, w, r}, straight);
        deep_view = permuted(deep, 6, (int64_t[]){n, c, r, r, h, w}, taken);
    }
    return widen ? proa__copy_window(&wide_view, &deep_view) : proa__copy_window(&deep_view, &wide_view);
}

PROA_KERNEL_ANYWHERE(pixel_shuffle_cpu, pixel_shuffle)
{
    return pixels(a->out, a->x, a->upscale_factor, a->data_format, true);
}

PROA_KERNEL_ANYWHERE(pixel_unshuffle_cpu, pixel_unshuffle)
{
    return pixels(a->out, a->x, a->downscale_factor, a->data_format, false);
}

PROA_KERNEL_ANYWHERE(channel_shuffle_cpu, channel_shuffle)
{
    const proa_tensor *x = a->x;
    int channels = proa__channels_last(a->data_format) ? 3 : 1;
    if (x->numel == 0) return PROA_OK;
    rows_around r = rows_split(x, channels);
    int64_t each = r.n / a->groups;
    proa_tensor from = permuted(x, 4, (int64_t[]){r.outer, a->groups, each, r.inner}, (int[]){0, 2, 1, 3});
    proa_tensor to = permuted(a->out, 4, (int64_t[]){r.outer, each, a->groups, r.inner}, (int[]){0, 1, 2, 3});
    return proa__copy_window(&to, &from);
}

/* ---- temporal_shift ---------------------------------------------------------------------- */

/* Channels [from, to) of every frame, taken from `by` frames away; zeros at the ends. */
static proa_status shift(proa_tensor *out, proa_tensor *x, int64_t segments, int channels, int64_t from,
                         int64_t to, int64_t by)
{
    int64_t frames = x->shape[0] / segments, move = by < 0 ? -by : by;
    if (to <= from || x->numel == 0) return PROA_OK;
    for (int64_t n = 0; n < frames; n++) {
        proa_tensor d = proa__window(out), s = proa__window(x);
        proa__narrow(&d, channels, from, to - from, 1);
        proa__narrow(&s, channels, from, to - from, 1);
        proa_tensor end = d;
        proa__narrow(&end, 0, n * segments + (by < 0 ? 0 : segments - move), move, 1);
        proa__narrow(&d, 0, n * segments + (by < 0 ? move : 0), segments - move, 1);
        proa__narrow(&s, 0, n * segments + (by < 0 ? 0 : move), segments - move, 1);
        if (move) PROA_TRY(proa__fill_window(&end, NULL));
        if (segments > move) PROA_TRY(proa__copy_window(&d, &s));
    }
    return PROA_OK;
}

static proa_status shift_all(proa_tensor *out, proa_tensor *x, int64_t segments, double ratio,
                             proa_data_format format, int64_t direction)
{
    int channels = proa__channels_last(format) ? 3 : 1;
    int64_t first, second, c = x->shape[channels];
    vision_shift_channels(c, ratio, &first, &second);
    PROA_TRY(shift(out, x, segments, channels, 0, first, -direction));
    PROA_TRY(shift(out, x, segments, channels, first, second, direction));
    return shift(out, x, segments, channels, second, c, 0);
}

PROA_KERNEL_ANYWHERE(temporal_shift_cpu, temporal_shift)
{
    return shift_all(a->out, a->x, a->seg_num, a->shift_ratio, a->data_format, 1);
}

PROA_KERNEL_ANYWHERE(temporal_shift_grad_cpu, temporal_shift_grad)
{
    return shift_all(a->d_x, a->d_out, a->seg_num, a->shift_ratio, a->data_format, -1);
}

/* ---- unfold, fold ------------------------------------------------------------------------ */

/* Outputs [*first, *end) along d whose input at kernel position k is inside the image. */
static void inside(const vision_windows *w, int d, int64_t k, int64_t *first, int64_t *end)
{
    int64_t start = w->before[d] - k * w->dilation[d], s = w->stride[d];
    *first = start > 0 ? (start + s - 1) / s : 0;
    int64_t last = w->in[d] - 1 + start;
    *end = last < 0 ? 0 : last / s + 1;
    if (*end > w->out[d]) *end = w->out[d];
    if (*first > *end) *first = *end;
}

/* Row `row` = (n, c, ky, kx) of the columns and the pixels of the image that it holds, as windows [rows,
 * columns]; false if all of them are padding. */
static bool column_row(const vision_windows *w, proa_tensor *columns, proa_tensor *image, int64_t row,
                       proa_tensor *c, proa_tensor *i)
{
    int64_t square = w->kernel[0] * w->kernel[1], item = (int64_t)proa_dtype_size((proa_dtype)image->dtype);
    int64_t k[2] = {row % square / w->kernel[1], row % w->kernel[1]}, first[2], end[2];
    for (int d = 0; d < 2; d++) inside(w, d, k[d], &first[d], &end[d]);
    *c = proa__window(columns), *i = proa__window(image);
    c->ndim = i->ndim = 2;
    for (int d = 0; d < 2; d++) c->shape[d] = i->shape[d] = end[d] - first[d];
    int64_t y = first[0] * w->stride[0] - w->before[0] + k[0] * w->dilation[0];
    int64_t x = first[1] * w->stride[1] - w->before[1] + k[1] * w->dilation[1];
    if (c->shape[0] <= 0 || c->shape[1] <= 0) return false;
    c->data += (row * w->out[0] * w->out[1] + first[0] * w->out[1] + first[1]) * item;
    i->data += (row / square * w->in[0] * w->in[1] + y * w->in[1] + x) * item;
    c->strides[0] = w->out[1] * item, c->strides[1] = item;
    i->strides[0] = w->stride[0] * w->in[1] * item, i->strides[1] = w->stride[1] * item;
    return true;
}

PROA_KERNEL(unfold_cpu, unfold)
{
    const proa_ints lists[] = {a->kernel_sizes, a->strides, a->paddings, a->dilations};
    vision_windows w;
    PROA_TRY(proa__windows("unfold", lists, a->x->shape + 2, &w));
    proa_tensor all = proa__window(a->out), c, i;
    PROA_TRY(proa__fill_window(&all, NULL));
    for (int64_t row = 0; row < a->out->shape[0] * a->out->shape[1]; row++)
        if (a->x->numel && column_row(&w, a->out, a->x, row, &c, &i)) PROA_TRY(proa__copy_window(&c, &i));
    return PROA_OK;
}

PROA_KERNEL(fold_cpu, fold)
{
    const proa_ints lists[] = {a->kernel_sizes, a->strides, a->paddings, a->dilations};
    vision_windows w;
    accumulator acc;
    PROA_TRY(proa__windows("fold", lists, a->output_sizes.at, &w));
    PROA_TRY(accumulate_begin(&acc, a->out, NULL));
    proa_tensor sums = proa__window(a->out), c, i;
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)a->out->dtype);
    for (int64_t row = 0; row < a->x->shape[0] * a->x->shape[1] && a->x->numel; row++) {
        if (!column_row(&w, a->x, &sums, row, &c, &i)) continue;
        int64_t strides[2] = {i.strides[0] / item * acc.item, i.strides[1] / item * acc.item};
        char *to = acc.data + (i.data - sums.data) / item * acc.item;
        accumulate_strided(&acc, to, strides, c.data, c.strides, c.shape, 2);
    }
    return accumulate_end(&acc);
}

/* ---- maxout ------------------------------------------------------------------------------ */

typedef struct maxout_job {
    rows_around r; /* of out: [outer, channels, inner] */
    int64_t groups;
    const void *x, *out_in, *d_out;
    void *out, *d_x;
} maxout_job;

#define T float
#include "ops/vision/cpu/maxout.inc"
#define T double
#include "ops/vision/cpu/maxout.inc"

PROA_KERNEL(maxout_cpu, maxout)
{
    maxout_job j = {.r = rows_split(a->out, a->axis), .groups = a->groups};
    proa_dtype as = proa__upcast_dtype(a->x);
    proa_upcast w[2] = {0};
    if (a->out->numel == 0) return PROA_OK;
    proa_status s = proa__upcast_read(&w[0], a->x, as);
    if (!s) s = proa__upcast_write(&w[1], a->out, as);
    j.x = w[0].data, j.out = w[1].data;
    proa_range_fn body = as == PROA_F64 ? maxout_double : maxout_float;
    if (!s) proa__parallel(a->out->numel, rows_grain(j.groups), body, &j);
    proa__upcast_end(w, 2, s == PROA_OK);
    return s;
}

PROA_KERNEL(maxout_grad_cpu, maxout_grad)
{
    maxout_job j = {.r = rows_split(a->out, a->axis), .groups = a->groups};
    proa_dtype as = proa__upcast_dtype(a->x);
    proa_upcast w[4] = {0};
    if (a->out->numel == 0) return PROA_OK;
    proa_status s = proa__upcast_read(&w[0], a->x, as);
    if (!s) s = proa__upcast_read(&w[1], a->out, as);
    if (!s) s = proa__upcast_read(&w[2], a->d_out, as);
    if (!s) s = proa__upcast_write(&w[3], a->d_x, as);
    j.x = w[0].data, j.out_in = w[1].data, j.d_out = w[2].data, j.d_x = w[3].data;
    proa_range_fn body = as == PROA_F64 ? maxout_back_double : maxout_back_float;
    if (!s) proa__parallel(a->out->numel, rows_grain(j.groups), body, &j);
    proa__upcast_end(w, 4, s == PROA_OK);
    return s;
}
