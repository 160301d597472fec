/* CPU kernel of affine_int8: 8-bit integers times a scale per channel, plus bias and residual, then ReLU or
 * ReLU6, rounded to 8 bits unless the result is float32. Compiled once per CPU level; static functions and
 * the kernel only. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/windows.h"
#include "impl/int8.h"

#include <math.h>

/* Elements that are converted at a time, and elements that are worth a thread. */
enum { PIECE = 256, GRAIN = 1 << 16 };

typedef struct affine {
    const proa_affine_int8_args *a;
    int64_t channels, pixels; /* pixels: elements of a plane; channels last: 1 */
    float outer, low, high, top;
} affine;

static void load(float *restrict to, const proa_tensor *t, int64_t at, int64_t n)
{
    const int8_t *i = (const int8_t *)t->data + at;
    const uint8_t *u = (const uint8_t *)t->data + at;
    if (t->dtype == PROA_F32) memcpy(to, (const float *)(const void *)t->data + at, (size_t)n * sizeof *to);
    else if (t->dtype == PROA_I8)
        for (int64_t k = 0; k < n; k++) to[k] = i[k];
    else
        for (int64_t k = 0; k < n; k++) to[k] = u[k];
}

/* A NaN becomes `low`. */
static void store(const affine *f, const float *restrict y, int64_t at, int64_t n)
{
    if (f->a->dtype == PROA_F32) {
        memcpy((float *)(void *)f->a->out->data + at, y, (size_t)n * sizeof *y);
        return;
    }
    uint8_t *restrict out = (uint8_t *)f->a->out->data + at;
    for (int64_t k = 0; k < n; k++) {
        float v = y[k] > f->low ? y[k] : f->low;
        out[k] = (uint8_t)(int32_t)rintf(v < f->high ? v : f->high);
    }
}

/* n elements from `at`, which are of one channel, or (channels last) of the channels from `c` on. */
static void piece(const affine *f, int64_t at, int64_t c, int64_t n)
{
    float y[PIECE], other[PIECE];
    const proa_affine_int8_args *a = f->a;
    const float *scale = (const float *)(const void *)a->scale->data + c;
    const float *bias = proa__absent(a->bias) ? NULL : (const float *)(const void *)a->bias->data + c;
    load(y, a->x, at, n);
    if (f->pixels > 1) {
        const float s = *scale, b = bias ? *bias : 0;
        for (int64_t k = 0; k < n; k++) y[k] = y[k] * s + b;
    } else {
        for (int64_t k = 0; k < n; k++) y[k] *= scale[k];
        for (int64_t k = 0; bias && k < n; k++) y[k] += bias[k];
    }
    if (!proa__absent(a->residual)) {
        load(other, a->residual, at, n);
        for (int64_t k = 0; k < n; k++) y[k] += other[k];
    }
    if (a->activation != PROA_FUSED_ACTIVATION_NONE)
        for (int64_t k = 0; k < n; k++) y[k] = y[k] < 0 ? 0 : y[k] > f->top ? f->top : y[k];
    for (int64_t k = 0; k < n; k++) y[k] *= f->outer;
    store(f, y, at, n);
}

/* Lines of one channel's pixels, or of one pixel's channels. */
static void lines(int64_t begin, int64_t end, void *context)
{
    const affine *f = context;
    const int64_t n = f->pixels > 1 ? f->pixels : f->channels;
    for (int64_t line = begin; line < end; line++)
        for (int64_t k = 0; k < n; k += PIECE)
            piece(f, line * n + k, f->pixels > 1 ? line % f->channels : k, n - k < PIECE ? n - k : PIECE);
}

PROA_KERNEL(affine_int8_cpu, affine_int8)
{
    affine f = {.a = a,
                .channels = a->scale->numel,
                .pixels = 1,
                .outer = (float)a->outer,
                .low = a->dtype == PROA_U8 ? 0 : -128,
                .high = (float)a->high,
                .top = a->activation == PROA_FUSED_ACTIVATION_RELU6 ? 6 : HUGE_VALF};
    if (a->out->numel == 0) return PROA_OK;
    if (!proa__channels_last(a->data_format))
        for (int i = 2; i < a->x->ndim; i++) f.pixels *= a->x->shape[i];
    int64_t n = f.pixels > 1 ? f.pixels : f.channels;
    proa__parallel(a->out->numel / n, 1 + GRAIN / n, lines, &f);
    return PROA_OK;
}
