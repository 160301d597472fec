/* Portable kernels of dropout and its backward: the mask is drawn, then applied piece by piece.
 * May use core and the helpers of ops/. */
#include "ops_impl.h"

#include "ops/iterator.h"
#include "ops/philox16.h"
#include "ops/rows.h"

typedef struct drop_work {
    proa_dtype dtype;
    const void *x;
    void *y;
    uint8_t *mask;          /* of y's shape; NULL: all kept */
    const proa_walk *small; /* a mask that broadcasts */
    double scale;
    proa_rng_state stream;
    uint32_t threshold;
} drop_work;

#define T float
#include "cpu.inc"
#undef T
#define T double
#include "cpu.inc"
#undef T

static void draw(int64_t begin, int64_t end, void *context)
{
    const drop_work *d = context;
    philox16_keep(d->stream, begin, end - begin, d->threshold, d->mask + begin);
}

static void apply(int64_t begin, int64_t end, void *context)
{
    const drop_work *d = context;
    (d->dtype == PROA_F64 ? apply_double : apply_float)(d, begin, end);
}

/* Draws and applies while a piece is in cache. */
static void draw_apply(int64_t begin, int64_t end, void *context)
{
    for (int64_t i = begin; i < end; i += 4096) {
        int64_t stop = end - i < 4096 ? end : i + 4096;
        draw(i, stop, context);
        apply(i, stop, context);
    }
}

static void apply_mask(drop_work *d, const proa_tensor *mask, const proa_tensor *like)
{
    proa_walk walk;
    if (mask && mask->numel != like->numel) {
        proa__walk_init(&walk, mask, like->ndim, like->shape);
        d->small = &walk;
        d->mask = NULL;
    }
    proa__parallel(like->numel, rows_grain(1), apply, d);
    d->small = NULL;
}

static double kept_scale(double p, proa_dropout_mode mode)
{
    if (mode == PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER) return 1;
    return p < 1 ? 1 / (1 - p) : 0;
}

PROA_KERNEL(dropout_cpu, dropout)
{
    drop_work d = {.dtype = (proa_dtype)a->x->dtype, .x = a->x->data, .y = a->out->data, .scale = 1};
    if (!a->training) {
        if (a->mode == PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER) d.scale = 1 - a->p;
        apply_mask(&d, NULL, a->x);
        return PROA_OK;
    }
    d.mask = (uint8_t *)a->mask->data;
    d.scale = kept_scale(a->p, a->mode);
    d.threshold = philox16_threshold(a->p);
    d.stream = a->fix_seed ? (proa_rng_state){(uint64_t)a->seed, 0}
                           : proa__rng_reserve(philox16_blocks(a->mask->numel));
    if (a->mask->numel == a->x->numel) {
        proa__parallel(a->x->numel, rows_grain(1), draw_apply, &d);
        return PROA_OK;
    }
    proa__parallel(a->mask->numel, rows_grain(1), draw, &d);
    apply_mask(&d, a->mask, a->x);
    return PROA_OK;
}

PROA_KERNEL(dropout_grad_cpu, dropout_grad)
{
    drop_work d = {.dtype = (proa_dtype)a->d_out->dtype,
                   .x = a->d_out->data,
                   .y = a->d_x->data,
                   .mask = (uint8_t *)a->mask->data,
                   .scale = kept_scale(a->p, a->mode)};
    apply_mask(&d, a->mask, a->d_out);
    return PROA_OK;
}
