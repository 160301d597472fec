/* Kernels of pad and pad3d. pad fills the border and copies the inside; pad3d makes out row by row, from the
 * source index of each output index per spatial axis. May use core and ops headers. */
#include "core/copy.h"
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

/* ---- spatial axes ------------------------------------------------------------------------- */

/* The index of x for index i of out, less the padding before it; −1: the constant. */
static int64_t source(proa_pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) return i;
    if (mode == PROA_PAD_MODE_CONSTANT) return -1;
    if (mode == PROA_PAD_MODE_REPLICATE) return i < 0 ? 0 : n - 1;
    if (mode == PROA_PAD_MODE_REFLECT) return i < 0 ? -i : 2 * (n - 1) - i;
    return (i % n + n) % n;
}

/* x and out as [batch][D][H][W][chunk]: a channels-first batch holds the channels, a chunk is one element. */
typedef struct padding {
    const char *x;
    char *out;
    int64_t in[3], to[3], batch, chunk;
    int64_t *map[3];            /* per axis: x's index for each index of out */
    int64_t before, first, end; /* along W: the padding, and the indices of out between the paddings */
    const char *filler;         /* a row of constants, for constant padding */
    accumulator *acc;           /* backward: adds out's elements to x's positions */
    int64_t item, elements;
    bool nontemporal; /* out is written by non-temporal stores */
} padding;

#define PAD_CHUNKS(T)                                                                                        \
    for (int64_t w = begin; w < end; w++)                                                                    \
        ((T *)(void *)to)[w] =                                                                               \
            p->filler ? *(const T *)(const void *)p->filler : ((const T *)(const void *)from)[p->map[2][w]]; \
    break

/* Indices [begin, end) of a row, in one of its paddings. */
static inline void pad_border(const padding *p, char *restrict to, const char *restrict from, int64_t begin,
                              int64_t end)
{
    switch (p->chunk) {
    case 2: PAD_CHUNKS(uint16_t);
    case 4: PAD_CHUNKS(uint32_t);
    case 8: PAD_CHUNKS(uint64_t);
    default:
        if (p->filler) memcpy(to + begin * p->chunk, p->filler, (size_t)((end - begin) * p->chunk));
        else
            for (int64_t w = begin; w < end; w++)
                memcpy(to + w * p->chunk, from + p->map[2][w] * p->chunk, (size_t)p->chunk);
    }
}

/* Row x_row of x, or the constant if that is negative. */
static void pad_row(const padding *p, char *to, int64_t x_row)
{
    int64_t first = p->first, end = p->end;
    const char *from = p->x + x_row * p->in[2] * p->chunk, *run = from + (first - p->before) * p->chunk;
    if (x_row < 0) first = 0, end = p->to[2], run = p->filler;
    const int64_t bytes = (end - first) * p->chunk;
    if (p->nontemporal) proa__copy_nontemporal(to + first * p->chunk, run, bytes);
    else proa__copy_bytes(to + first * p->chunk, run, (size_t)bytes);
    pad_border(p, to, from, 0, first);
    pad_border(p, to, from, end, p->to[2]);
}

static void pad_rows(int64_t begin, int64_t end, void *context)
{
    const padding *p = context;
    const int64_t planes = p->to[0], rows = p->to[1];
    int64_t b = begin / (planes * rows), d = begin / rows % planes, h = begin % rows;
    char *to = p->out + begin * p->to[2] * p->chunk;
    for (int64_t r = begin; r < end; r++, to += p->to[2] * p->chunk) {
        int64_t plane = p->map[0][d], row = p->map[1][h];
        pad_row(p, to, plane < 0 || row < 0 ? -1 : (b * p->in[0] + plane) * p->in[1] + row);
        if (++h < rows) continue;
        h = 0;
        if (++d < planes) continue;
        d = 0, b++;
    }
    if (p->nontemporal) proa__copy_nontemporal_end();
}

static void unpad_row(const padding *p, int64_t out_row, int64_t x_row)
{
    const char *from = p->out + out_row * p->to[2] * p->chunk;
    const int64_t chunk = p->elements * p->acc->item;
    char *to = p->acc->data + x_row * p->in[2] * chunk;
    for (int64_t w = 0; w < p->to[2]; w++) {
        int64_t n = w == p->first && p->end > w ? p->end - w : 1;
        accumulate_row(p->acc, to + p->map[2][w] * chunk, p->acc->item, from + w * p->chunk, p->item,
                       n * p->elements);
        w += n - 1;
    }
}

static void unpad_batches(int64_t begin, int64_t end, void *context)
{
    const padding *p = context;
    for (int64_t b = begin; b < end; b++)
        for (int64_t d = 0; d < p->to[0]; d++)
            for (int64_t h = 0; h < p->to[1]; h++)
                unpad_row(p, (b * p->to[0] + d) * p->to[1] + h,
                          (b * p->in[0] + p->map[0][d]) * p->in[1] + p->map[1][h]);
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
    p->before = before[2];
    p->first = p->before < 0 ? 0 : p->before < p->to[2] ? p->before : p->to[2];
    p->end = p->before + p->in[2] < p->to[2] ? p->before + p->in[2] : p->to[2];
    if (p->end < p->first) p->end = p->first;
    return PROA_OK;
}

/* A row of out that is all `value`; NULL on failure. */
static char *constant_row(const padding *p, proa_dtype dtype, double value)
{
    char one[16];
    proa_scalar filler = proa_scalar_float(value);
    proa__scalar_to(&filler, dtype, 0, one);
    const int64_t bytes = p->to[2] * p->chunk;
    char *row = proa_scratch((size_t)bytes);
    for (int64_t i = 0; row && i < bytes; i += p->item) memcpy(row + i, one, (size_t)p->item);
    return row;
}

/* Shortest row, in bytes, for which non-temporal stores pay: rows begin and end inside of cache lines. */
enum { MIN_NONTEMPORAL = 4096 };

PROA_KERNEL(pad3d_cpu, pad3d)
{
    proa_pad_plan plan;
    int64_t *maps = NULL;
    char *filler = NULL;
    PROA_TRY(proa__pad_spatial_plan("pad3d", a->x->ndim, &a->paddings, a->data_format, &plan));
    padding p = {
        .x = a->x->data, .out = a->out->data, .item = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype)};
    if (!a->out->numel) return PROA_OK;
    PROA_TRY(pad_maps(&p, &plan, a->x->shape, a->out->shape, a->mode, a->data_format, &maps));
    bool constant = a->mode == PROA_PAD_MODE_CONSTANT;
    if (constant) p.filler = filler = constant_row(&p, (proa_dtype)a->x->dtype, a->value);
    const int64_t row = p.to[2] * p.chunk;
    p.nontemporal = row >= MIN_NONTEMPORAL && a->out->numel * p.item >= proa__nontemporal_bytes();
    if (!constant || filler) proa__parallel(p.batch * p.to[0] * p.to[1], 1 + (1 << 17) / row, pad_rows, &p);
    proa_scratch_free(maps);
    proa_scratch_free(filler);
    return constant && !filler ? proa_error() : PROA_OK;
}

PROA_KERNEL(pad3d_grad_cpu, pad3d_grad)
{
    proa_pad_plan plan;
    accumulator acc;
    int64_t *maps = NULL;
    PROA_TRY(proa__pad_spatial_plan("pad3d_grad", a->d_x->ndim, &a->paddings, a->data_format, &plan));
    if (a->mode == PROA_PAD_MODE_CONSTANT) {
        proa_tensor all = proa__window(a->d_x), src = proa__window(a->d_out), dst = all;
        inside(&plan, &src, &dst);
        for (int i = 0; i < plan.ndim; i++)
            if (plan.before[i] < 0 || plan.after[i] < 0) { /* removed elements */
                PROA_TRY(proa__fill_window(&all, NULL));
                break;
            }
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
        proa__parallel(p.batch, 1 + (1 << 15) / (p.to[0] * p.to[1] * p.to[2] * p.elements), unpad_batches,
                       &p);
    }
    proa_scratch_free(maps);
    return accumulate_end(&acc);
}
