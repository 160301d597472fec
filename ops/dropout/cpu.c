/* CPU kernels of dropout and its backward. The mask is drawn, then applied piece by piece; in the fused gelu
 * + dropout ops each piece first goes through gelu. May use core, kernels and ops. */
#include "impl/dropout.h"
#include "impl/elementwise.h"

#include "core/copy.h"
#include "kernels/iterator.h"
#include "kernels/nontemporal.h"
#include "kernels/philox16.h"
#include "kernels/rowwise.h"

typedef struct drop_work {
    proa_dtype dtype;
    const void *x;
    void *y;
    uint8_t *mask;          /* of y's shape; NULL: all kept */
    bool nontemporal;       /* results are written by non-temporal stores */
    const proa_walk *small; /* strides of a mask that broadcasts; else NULL */
    double scale;
    proa_rng_state stream;
    uint32_t threshold;
    proa_row gelu; /* gelu applied to x first; NULL: none */
    const void *args;
} drop_work;

extern const proa_rows PROA_LEVELED(gelu_rows), PROA_LEVELED(gelu_grad_rows);

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

/* Draws the mask and applies it piece by piece, while a piece is in cache. */
static void draw_apply(int64_t begin, int64_t end, void *context)
{
    for (int64_t i = begin; i < end; i += 4096) {
        int64_t stop = end - i < 4096 ? end : i + 4096;
        draw(i, stop, context);
        apply(i, stop, context);
    }
}

#if defined(__AVX512BW__)
/* ---- float32, 64 elements at a time: Philox bits form a vector mask; non-temporal stores if results exceed
 * the cache ---- */

enum { DROP_PIECE = 8 }; /* groups whose results are stored together: 2 KiB */

/* Processes n groups of 64 elements (1 or PHILOX16_GROUPS), whose random bits start at `block`; draws the
 * mask, or reads it if `draws` is false. */
static inline __attribute__((always_inline)) void some_groups(const drop_work *d, const philox16_keys *keys,
                                                              uint64_t block, const int n, const float *x,
                                                              float *y, char *mask, const bool draws)
{
    __m512 scale = _mm512_set1_ps((float)d->scale);
    __m512i one = _mm512_set1_epi8(1);
    uint64_t keep[PHILOX16_GROUPS];
    if (draws) philox16_groups(keys, block, philox16_lanes(d->threshold), n, keep);
#pragma GCC unroll 4
    for (int g = 0; g < n; g++) {
        if (draws) {
            _mm512_store_si512(mask + 64 * g, _mm512_maskz_mov_epi8(keep[g], one));
        } else {
            __m512i bytes = _mm512_load_si512(mask + 64 * g);
            keep[g] = _mm512_test_epi8_mask(bytes, bytes);
        }
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            __m512 lane = _mm512_loadu_ps(x + 64 * g + 16 * v);
            _mm512_store_ps(y + 64 * g + 16 * v,
                            _mm512_maskz_mul_ps((__mmask16)(keep[g] >> 16 * v), lane, scale));
        }
    }
}

/* n groups from group `at` on. */
static inline __attribute__((always_inline)) void groups_of(const drop_work *d, const philox16_keys *keys,
                                                            int64_t at, int64_t n, const float *x, float *y,
                                                            char *mask, const bool draws)
{
    uint64_t block = d->stream.offset + (uint64_t)at * 8;
    int64_t g = 0;
    for (; g + PHILOX16_GROUPS <= n; g += PHILOX16_GROUPS)
        some_groups(d, keys, block + (uint64_t)g * 8, PHILOX16_GROUPS, x + g * 64, y + g * 64, mask + g * 64,
                    draws);
    for (; g < n; g++)
        some_groups(d, keys, block + (uint64_t)g * 8, 1, x + g * 64, y + g * 64, mask + g * 64, draws);
}

static inline __attribute__((always_inline)) void simd_of(const drop_work *d, int64_t begin, int64_t end,
                                                          const bool draws)
{
    const float *x = (const float *)d->x + begin * 64;
    float *y = (float *)d->y + begin * 64;
    char *mask = (char *)d->mask + begin * 64;
    philox16_keys keys;
    philox16_keys_of(d->stream, &keys);
    if (!d->nontemporal && !d->gelu) {
        groups_of(d, &keys, begin, end - begin, x, y, mask, draws);
        return;
    }
    _Alignas(64) float stage[DROP_PIECE * 64], taken[DROP_PIECE * 64];
    _Alignas(64) char drawn[DROP_PIECE * 64];
    for (int64_t g = begin, n; g < end; g += n, x += n * 64, y += n * 64, mask += n * 64) {
        n = end - g < DROP_PIECE ? end - g : DROP_PIECE;
        if (d->gelu) d->gelu((char *[]){(char *)taken, (char *)(uintptr_t)x}, n * 64, d->args);
        const float *from = d->gelu ? taken : x;
        groups_of(d, &keys, g, n, from, d->nontemporal ? stage : y, draws && d->nontemporal ? drawn : mask,
                  draws);
        if (!d->nontemporal) continue;
        nontemporal_copy_prefetching(y, stage, n * 256, x + n * 64);
        if (draws) nontemporal_copy(mask, drawn, n * 64);
    }
    if (d->nontemporal) proa__copy_nontemporal_end();
}

static void draw_lanes(int64_t begin, int64_t end, void *context) { simd_of(context, begin, end, true); }
static void apply_lanes(int64_t begin, int64_t end, void *context) { simd_of(context, begin, end, false); }

static bool on_line(const void *p) { return (uintptr_t)p % 64 == 0; }

/* Processes whole groups of a mask that does not broadcast; returns the number of elements done. */
static int64_t by_lanes(drop_work *d, int64_t n, bool draws)
{
    if (d->dtype != PROA_F32 || !d->mask || d->threshold > 0xffffu || !on_line(d->y) || !on_line(d->mask))
        return 0;
    d->nontemporal = proa__nontemporal_pays(n * 4, n * 9) && d->y != d->x; /* the mask, too */
    proa__parallel(n / 64, rows_grain(ROWS_COSTLY * 64), draws ? draw_lanes : apply_lanes, d);
    return n / 64 * 64;
}
#else
static int64_t by_lanes(drop_work *d, int64_t n, bool draws)
{
    (void)d, (void)n, (void)draws;
    return 0;
}
#endif

/* Runs `body` on the elements from `from` on: all of them, or those after the last whole group. */
static void rest(drop_work *d, int64_t from, int64_t n, proa_range_fn body)
{
    if (from) body(from, n, d);
    else proa__parallel(n, rows_grain(ROWS_COSTLY), body, d);
}

static void apply_mask(drop_work *d, const proa_tensor *mask, const proa_tensor *like)
{
    proa_walk walk;
    if (mask && mask->numel != like->numel) {
        proa__args_visit_init(&walk, mask, like->ndim, like->shape);
        d->small = &walk;
        d->mask = NULL;
    }
    rest(d, by_lanes(d, like->numel, false), like->numel, apply);
    d->small = NULL;
}

static double kept_scale(double p, proa_dropout_mode mode)
{
    if (mode == PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER) return 1;
    return p < 1 ? 1 / (1 - p) : 0;
}

/* Forward in training: draws the mask and applies it to d->x. */
static proa_status train(drop_work *d, const proa_dropout_args *a)
{
    d->mask = (uint8_t *)a->mask->data;
    d->scale = kept_scale(a->p, a->mode);
    d->threshold = philox16_threshold(a->p);
    d->stream = a->fix_seed ? (proa_rng_state){(uint64_t)a->seed, 0}
                            : proa__rng_reserve(philox16_blocks(a->mask->numel));
    if (a->mask->numel == a->x->numel) {
        rest(d, by_lanes(d, a->x->numel, true), a->x->numel, draw_apply);
        return PROA_OK;
    }
    proa__parallel(a->mask->numel, rows_grain(ROWS_COSTLY), draw, d);
    apply_mask(d, a->mask, a->x);
    return PROA_OK;
}

PROA_KERNEL(dropout_cpu, dropout)
{
    drop_work d = {.dtype = (proa_dtype)a->x->dtype, .x = a->x->data, .y = a->out->data, .scale = 1};
    if (a->training) return train(&d, a);
    if (a->mode == PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER) d.scale = 1 - a->p;
    apply_mask(&d, NULL, a->x);
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

/* ---- with the gelu before it ---- */

/* The args of the dropout part, on x. */
static proa_dropout_args dropout_in(const proa_gelu_dropout_args *a, proa_tensor *x)
{
    return (proa_dropout_args){.x = x,
                               .p = a->p,
                               .training = true,
                               .mode = a->mode,
                               .seed = a->seed,
                               .fix_seed = a->fix_seed,
                               .out = a->out,
                               .mask = a->mask};
}

PROA_KERNEL(gelu_dropout_cpu, gelu_dropout)
{
    proa_gelu_args gelu = {.approximate = a->approximate};
    drop_work d = {.dtype = (proa_dtype)a->x->dtype, .x = a->x->data, .y = a->out->data, .args = &gelu};
    d.gelu = PROA_LEVELED(gelu_rows).at[d.dtype];
    const proa_dropout_args drop = dropout_in(a, a->x);
    return train(&d, &drop);
}

typedef struct gelu_drop_work {
    drop_work drop; /* dropout of the current piece */
    const proa_gelu_dropout_grad_args *a;
    int64_t item;
} gelu_drop_work;

/* Masks n elements of `from`, which start at index i of the tensor. */
static void mask_piece(const gelu_drop_work *g, int64_t i, int64_t n, const void *from, void *to)
{
    drop_work d = g->drop;
    d.x = from, d.y = to;
    d.mask = (uint8_t *)g->a->mask->data + i;
    apply(0, n, &d);
}

/* d_x may alias d_out, and out may alias x: each piece of x is read for the last time when out is written. */
static void gelu_drop_range(int64_t begin, int64_t end, void *context)
{
    const gelu_drop_work *g = context;
    const proa_gelu_args gelu = {.approximate = g->a->approximate};
    const proa_gelu_grad_args slope = {.approximate = g->a->approximate};
    proa_row gelu_row = PROA_LEVELED(gelu_rows).at[g->drop.dtype],
             slope_row = PROA_LEVELED(gelu_grad_rows).at[g->drop.dtype];
    enum { PIECE = 512 };
    _Alignas(64) char stage[PIECE * sizeof(double)];
    for (int64_t i = begin, n; i < end; i += n) {
        n = end - i < PIECE ? end - i : PIECE;
        char *x = g->a->x->data + i * g->item;
        mask_piece(g, i, n, g->a->d_out->data + i * g->item, stage);
        slope_row((char *[]){g->a->d_x->data + i * g->item, x, stage}, n, &slope);
        gelu_row((char *[]){stage, x}, n, &gelu);
        mask_piece(g, i, n, stage, g->a->out->data + i * g->item);
    }
}

PROA_KERNEL(gelu_dropout_grad_cpu, gelu_dropout_grad)
{
    proa_dtype dtype = (proa_dtype)a->x->dtype;
    gelu_drop_work g = {.drop = {.dtype = dtype, .scale = kept_scale(a->p, a->mode)},
                        .a = a,
                        .item = (int64_t)proa_dtype_size(dtype)};
    proa__parallel(a->x->numel, rows_grain(ROWS_COSTLY), gelu_drop_range, &g);
    return PROA_OK;
}

/* ---- the composition, on any device ---- */

static proa_status call(const char *op, void *args)
{
    return proa_call_from(PROA_DOOR_RUN, proa_find_op(op), args);
}

PROA_KERNEL_ANYWHERE(gelu_dropout_composed_cpu, gelu_dropout)
{
    proa_gelu_args gelu = {.x = a->x, .approximate = a->approximate, .out = a->out};
    PROA_TRY(call("gelu", &gelu));
    proa_dropout_args drop = dropout_in(a, a->out);
    return call("dropout", &drop);
}

PROA_KERNEL_ANYWHERE(gelu_dropout_grad_composed_cpu, gelu_dropout_grad)
{
    proa_dropout_grad_args drop = {
        .mask = a->mask, .d_out = a->d_out, .p = a->p, .training = true, .mode = a->mode, .d_x = a->d_x};
    PROA_TRY(call("dropout_grad", &drop));
    proa_gelu_grad_args slope = {.x = a->x, .d_out = a->d_x, .approximate = a->approximate, .d_x = a->d_x};
    PROA_TRY(call("gelu_grad", &slope));
    proa_gelu_args gelu = {.x = a->x, .approximate = a->approximate, .out = a->out};
    PROA_TRY(call("gelu", &gelu));
    drop.d_out = drop.d_x = a->out;
    return call("dropout_grad", &drop);
}
