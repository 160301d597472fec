/* Kernels of pad and pad3d. Constant padding fills the border and copies the inside; the other modes look up
 * the source index of each output index, per spatial axis. May use core and ops headers. */
#include "ops/scalar.h"
#include "ops/shape/accumulate.h"
#include "ops/shape/pad.h"
#include "impl/shape.h"

/* Narrows out and x to the elements that both have: out without its padding, x without what negative paddings
 * remove. */
static void inside(const proa_pad_plan *p, proa_tensor *out, proa_tensor *x)
{
    for (int i = 0; i < p->ndim; i++) {
        int64_t at = p->before[i] > 0 ? p->before[i] : 0, skip = p->before[i] < 0 ? -p->before[i] : 0;
        int64_t n = x->shape[i] - skip + (p->after[i] < 0 ? p->after[i] : 0);
        if (n < 0) n = 0;
        proa__narrow(out, i, at, n, 1);
        proa__narrow(x, i, skip, n, 1);
    }
}

static proa_status pad_constant(const proa_pad_plan *p, const proa_tensor *x, const proa_tensor *out,
                                double value)
{
    char one[16];
    proa_tensor dst = proa__window(out), src = proa__window(x);
    proa_scalar filler = proa_scalar_float(value);
    proa__scalar_to(&filler, (proa_dtype)x->dtype, 0, one);
    proa_tensor frame = dst;
    inside(p, &dst, &src);
    for (int i = 0; i < p->ndim; i++) { /* borders along axis i; along earlier axes only the inside */
        int64_t before = p->before[i] > 0 ? p->before[i] : 0, after = frame.shape[i] - before - dst.shape[i];
        proa_tensor low = frame, high = frame;
        proa__narrow(&low, i, 0, before, 1);
        proa__narrow(&high, i, frame.shape[i] - after, after, 1);
        proa__narrow(&frame, i, before, dst.shape[i], 1);
        PROA_TRY(proa__fill_window(&low, one));
        PROA_TRY(proa__fill_window(&high, one));
    }
    return proa__copy_window(&dst, &src);
}

PROA_KERNEL_ANYWHERE(pad_cpu, pad)
{
    proa_pad_plan p;
    PROA_TRY(proa__pad_plan("pad", a->x->ndim, &a->paddings, &p));
    return pad_constant(&p, a->x, a->out, a->pad_value);
}

/* ---- repeating modes -------------------------------------------------------------------- */

static int64_t source(proa_pad_mode mode, int64_t i, int64_t n)
{
    if (mode == PROA_PAD_MODE_REPLICATE) return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (mode == PROA_PAD_MODE_REFLECT) return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    return (i % n + n) % n;
}

/* x and out as [batch][D][H][W][chunk]: a channels-first batch holds the channels, a chunk is one element. */
typedef struct padding {
    const char *x;
    char *out;
    int64_t in[3], to[3], batch, chunk;
    int64_t *map[3];  /* per axis: x's index for each index of out */
    accumulator *acc; /* backward: adds out's elements to x's positions */
    int64_t item, elements;
} padding;

static void pad_row(const padding *p, int64_t out_row, int64_t x_row)
{
    const char *from = p->x + x_row * p->in[2] * p->chunk;
    char *to = p->out + out_row * p->to[2] * p->chunk;
    for (int64_t w = 0; w < p->to[2]; w++, to += p->chunk)
        memcpy(to, from + p->map[2][w] * p->chunk, (size_t)p->chunk);
}

static void unpad_row(const padding *p, int64_t out_row, int64_t x_row)
{
    const char *from = p->out + out_row * p->to[2] * p->chunk;
    char *to = p->acc->data + x_row * p->in[2] * p->elements * p->acc->item;
    for (int64_t w = 0; w < p->to[2]; w++, from += p->chunk)
        accumulate_row(p->acc, to + p->map[2][w] * p->elements * p->acc->item, p->acc->item, from, p->item,
                       p->elements);
}

static void pad_batches(int64_t begin, int64_t end, void *context)
{
    const padding *p = context;
    for (int64_t b = begin; b < end; b++)
        for (int64_t d = 0; d < p->to[0]; d++)
            for (int64_t h = 0; h < p->to[1]; h++) {
                int64_t out_row = (b * p->to[0] + d) * p->to[1] + h;
                int64_t x_row = (b * p->in[0] + p->map[0][d]) * p->in[1] + p->map[1][h];
                if (p->acc) unpad_row(p, out_row, x_row);
                else pad_row(p, out_row, x_row);
            }
}

/* Fills sizes and maps for tensors of the given shapes; *maps is the scratch to free. */
static proa_status pad_maps(padding *p, const proa_pad_plan *plan, const int64_t *x, const int64_t *out,
                            proa_pad_mode mode, proa_data_format format, int64_t **maps)
{
    bool last = proa__channels_last(format);
    int first = last ? 1 : 2, spatial = plan->ndim - 2;
    p->batch = last ? x[0] : x[0] * x[1];
    p->elements = last ? x[plan->ndim - 1] : 1;
    int64_t total = 0, before[3] = {0, 0, 0};
    for (int k = 0; k < 3; k++) {
        int axis = first + k - (3 - spatial);
        bool real = k >= 3 - spatial;
        p->in[k] = real ? x[axis] : 1;
        p->to[k] = real ? out[axis] : 1;
        before[k] = real ? plan->before[axis] : 0;
        total += p->to[k];
    }
    size_t bytes;
    if (!proa__mul_size((size_t)total, sizeof(int64_t), &bytes)) return proa_error();
    int64_t *at = *maps = proa_scratch(bytes);
    if (!at) return proa_error();
    for (int k = 0; k < 3; at += p->to[k++]) {
        p->map[k] = at;
        for (int64_t i = 0; i < p->to[k]; i++) at[i] = source(mode, i - before[k], p->in[k]);
    }
    p->chunk = p->elements * p->item;
    return PROA_OK;
}

PROA_KERNEL(pad3d_cpu, pad3d)
{
    proa_pad_plan plan;
    int64_t *maps = NULL;
    PROA_TRY(proa__pad_spatial_plan("pad3d", a->x->ndim, &a->paddings, a->data_format, &plan));
    if (a->mode == PROA_PAD_MODE_CONSTANT) return pad_constant(&plan, a->x, a->out, a->value);
    padding p = {
        .x = a->x->data, .out = a->out->data, .item = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype)};
    if (!a->out->numel) return PROA_OK;
    PROA_TRY(pad_maps(&p, &plan, a->x->shape, a->out->shape, a->mode, a->data_format, &maps));
    proa__parallel(p.batch, 1 + (1 << 15) / (p.to[0] * p.to[1] * p.to[2] * p.elements), pad_batches, &p);
    proa_scratch_free(maps);
    return PROA_OK;
}

PROA_KERNEL(pad3d_grad_cpu, pad3d_grad)
{
    proa_pad_plan plan;
    accumulator acc;
    int64_t *maps = NULL;
    PROA_TRY(proa__pad_spatial_plan("pad3d_grad", a->d_x->ndim, &a->paddings, a->data_format, &plan));
    if (a->mode == PROA_PAD_MODE_CONSTANT) {
        proa_tensor all = proa__window(a->d_x), src = proa__window(a->d_out), dst = all;
        PROA_TRY(proa__fill_window(&all, NULL));
        inside(&plan, &src, &dst);
        return proa__copy_window(&dst, &src);
    }
    PROA_TRY(accumulate_begin(&acc, a->d_x, NULL));
    padding p = {
        .out = a->d_out->data, .acc = &acc, .item = (int64_t)proa_dtype_size((proa_dtype)a->d_x->dtype)};
    if (a->d_out->numel) {
        proa_status status =
            pad_maps(&p, &plan, a->d_x->shape, a->d_out->shape, a->mode, a->data_format, &maps);
        if (status != PROA_OK) {
            proa_scratch_free(acc.scratch);
            return status;
        }
        proa__parallel(p.batch, 1 + (1 << 15) / (p.to[0] * p.to[1] * p.to[2] * p.elements), pad_batches, &p);
    }
    proa_scratch_free(maps);
    return accumulate_end(&acc);
}
