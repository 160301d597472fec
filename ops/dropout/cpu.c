/* Portable kernels of dropout and its backward: the mask is drawn, then applied piece by piece.
 * May use core and the helpers of ops/. */
#include "ops_impl.h"

#include "core/copy.h"
#include "ops/iterator.h"
#include "ops/past.h"
#include "ops/philox16.h"
#include "ops/rows.h"

typedef struct drop_work {
    proa_dtype dtype;
    const void *x;
    void *y;
    uint8_t *mask;          /* of y's shape; NULL: all kept */
    bool past;              /* results go past the caches */
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

#if defined(__AVX512BW__)
/* ---- float32 by 64 elements: bits of Philox are a vector's mask at once, results go past the caches
 * where they would not stay there ---- */

enum { DROP_PIECE = 8 }; /* groups whose results leave together: 2 KiB */

/* n groups of 64 elements from group `at` on; the mask is drawn, or read when `draws` is false. */
static inline __attribute__((always_inline)) void groups_of(const drop_work *d, int64_t at, int64_t n,
                                                            const float *x, float *y, char *mask,
                                                            const bool draws)
{
    __m512 scale = _mm512_set1_ps((float)d->scale);
    __m512i threshold = philox16_lanes(d->threshold), one = _mm512_set1_epi8(1);
    for (int64_t g = 0; g < n; g++, x += 64, y += 64, mask += 64) {
        uint64_t keep;
        if (draws) {
            keep = philox16_keep_64(d->stream, (uint64_t)(at + g) * 8, threshold);
            _mm512_store_si512(mask, _mm512_maskz_mov_epi8(keep, one));
        } else {
            __m512i bytes = _mm512_load_si512(mask);
            keep = _mm512_test_epi8_mask(bytes, bytes);
        }
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++)
            _mm512_store_ps(y + 16 * v, _mm512_maskz_mul_ps((__mmask16)(keep >> 16 * v),
                                                            _mm512_loadu_ps(x + 16 * v), scale));
    }
}

static inline __attribute__((always_inline)) void lanes_of(const drop_work *d, int64_t begin, int64_t end,
                                                           const bool draws)
{
    const float *x = (const float *)d->x + begin * 64;
    float *y = (float *)d->y + begin * 64;
    char *mask = (char *)d->mask + begin * 64;
    if (!d->past) {
        groups_of(d, begin, end - begin, x, y, mask, draws);
        return;
    }
    _Alignas(64) float stage[DROP_PIECE * 64];
    _Alignas(64) char drawn[DROP_PIECE * 64];
    for (int64_t g = begin, n; g < end; g += n, x += n * 64, y += n * 64, mask += n * 64) {
        n = end - g < DROP_PIECE ? end - g : DROP_PIECE;
        groups_of(d, g, n, x, stage, draws ? drawn : mask, draws);
        past_copy_asking(y, stage, n * 256, x + n * 64);
        if (draws) past_copy(mask, drawn, n * 64);
    }
    proa__copy_past_end();
}

static void draw_lanes(int64_t begin, int64_t end, void *context) { lanes_of(context, begin, end, true); }
static void apply_lanes(int64_t begin, int64_t end, void *context) { lanes_of(context, begin, end, false); }

static bool on_line(const void *p) { return (uintptr_t)p % 64 == 0; }

/* Does whole groups of a mask that does not broadcast; returns how many elements that were. */
static int64_t by_lanes(drop_work *d, int64_t n, bool draws)
{
    if (d->dtype != PROA_F32 || !d->mask || d->threshold > 0xffffu || !on_line(d->y) || !on_line(d->mask))
        return 0;
    d->past = n * 4 >= PROA__PAST_BYTES;
    proa__parallel(n / 64, rows_grain(64), draws ? draw_lanes : apply_lanes, d);
    return n / 64 * 64;
}
#else
static int64_t by_lanes(drop_work *d, int64_t n, bool draws)
{
    (void)d, (void)n, (void)draws;
    return 0;
}
#endif

/* What is left from element `from` on: all, or less than a group. */
static void rest(drop_work *d, int64_t from, int64_t n, proa_range_fn body)
{
    if (from) body(from, n, d);
    else proa__parallel(n, rows_grain(1), body, d);
}

static void apply_mask(drop_work *d, const proa_tensor *mask, const proa_tensor *like)
{
    proa_walk walk;
    if (mask && mask->numel != like->numel) {
        proa__walk_init(&walk, mask, like->ndim, like->shape);
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
        rest(&d, by_lanes(&d, a->x->numel, true), a->x->numel, draw_apply);
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
