/* CPU kernels of frame (overlapping windows of a signal) and overlap_add (their sum). Compiled once per CPU
 * level; static functions and the kernels. */
#include "ops/fft/fft.h"
#include "kernels/iterator.h"
#include "kernels/upcast.h"

/* Sizes of the windows t, [.., size, frames] or [frames, size, ..], that come from signals of `length`. */
static fft_frames frames_of(const proa_tensor *t, int64_t axis, int64_t hop, int64_t length)
{
    fft_frames f = {.outer = 1, .inner = 1, .length = length, .hop = hop, .last = axis != 0};
    f.frames = t->shape[f.last ? t->ndim - 1 : 0];
    f.size = t->shape[f.last ? t->ndim - 2 : 1];
    for (int i = 0; f.last && i < t->ndim - 2; i++) f.outer *= t->shape[i];
    for (int i = 2; !f.last && i < t->ndim; i++) f.inner *= t->shape[i];
    return f;
}

typedef struct frame_job {
    fft_frames f;
    const char *x;
    char *out;
    size_t item;
} frame_job;

#define FRAME_ROW(T) \
    for (int64_t k = 0; k < f->frames; k++) ((T *)(void *)to)[k] = ((const T *)(const void *)from)[k * f->hop]

/* Rows [begin, end) of out: one of `size` of a signal, or one window. */
static void frame_range(int64_t begin, int64_t end, void *context)
{
    const frame_job *j = context;
    const fft_frames *f = &j->f;
    for (int64_t r = begin; r < end; r++) {
        if (!f->last) {
            size_t bytes = (size_t)(f->size * f->inner) * j->item;
            memcpy(j->out + (size_t)r * bytes, j->x + (size_t)(r * f->hop * f->inner) * j->item, bytes);
            continue;
        }
        const char *from = j->x + (size_t)(r / f->size * f->length + r % f->size) * j->item;
        char *to = j->out + (size_t)(r * f->frames) * j->item;
        if (j->item == 2) FRAME_ROW(uint16_t);
        else if (j->item == 4) FRAME_ROW(uint32_t);
        else if (j->item == 8) FRAME_ROW(uint64_t);
        else
            for (int64_t k = 0; k < f->frames; k++)
                memcpy(to + (size_t)k * j->item, from + (size_t)(k * f->hop) * j->item, j->item);
    }
}

PROA_KERNEL(frame_cpu, frame)
{
    int64_t length = a->x->shape[a->axis ? a->x->ndim - 1 : 0];
    frame_job j = {
        .f = frames_of(a->out, a->axis, a->hop_length, length), .x = a->x->data, .out = a->out->data};
    j.item = proa_dtype_size((proa_dtype)a->x->dtype);
    if (a->out->numel == 0) return PROA_OK;
    int64_t rows = j.f.last ? j.f.outer * j.f.size : j.f.frames, each = a->out->numel / rows;
    proa__parallel(rows, PROA_GRAIN / (each + 1) + 1, frame_range, &j);
    return PROA_OK;
}

/* Each range of outer signals, or of positions within a window's row, is summed window after window. */
#define NAME overlap_integers
#define T uint64_t
#include "ops/fft/overlap.inc"
#define NAME overlap_floats
#define T float
#include "ops/fft/overlap.inc"
#define NAME overlap_doubles
#define T double
#include "ops/fft/overlap.inc"
#define NAME overlap_complex
#define T double _Complex
#include "ops/fft/overlap.inc"

PROA_KERNEL(overlap_add_cpu, overlap_add)
{
    proa_dtype own = (proa_dtype)a->x->dtype;
    proa_dtype d = own <= PROA_I64   ? PROA_I64
                   : own == PROA_F64 ? PROA_F64
                   : own < PROA_F64  ? PROA_F32
                                     : PROA_C128;
    proa_upcast w[2] = {0};
    if (a->out->numel == 0) return PROA_OK;
    proa_status s = proa__upcast_read(&w[0], a->x, d);
    if (!s) s = proa__upcast_write(&w[1], a->out, d);
    if (!s) {
        int64_t length = a->out->shape[a->axis ? a->out->ndim - 1 : 0];
        frame_job j = {
            .f = frames_of(a->x, a->axis, a->hop_length, length), .x = w[0].data, .out = w[1].data};
        memset(j.out, 0, (size_t)a->out->numel * proa_dtype_size(d));
        int64_t n = j.f.last ? j.f.outer : j.f.inner, each = a->x->numel / n;
        proa__parallel(n, PROA_GRAIN / (each + 1) + 1,
                       d == PROA_I64   ? overlap_integers
                       : d == PROA_F32 ? overlap_floats
                       : d == PROA_F64 ? overlap_doubles
                                       : overlap_complex,
                       &j);
    }
    proa__upcast_end(w, 2, s == PROA_OK);
    return s;
}
