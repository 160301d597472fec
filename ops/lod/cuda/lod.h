/* Sequence offsets on a GPU, read in device memory. A kernel checks them and reports an error at the next
 * synchronization; other kernels clamp them, so that wrong offsets never cause an access out of bounds. */
#ifndef PROA_OPS_LOD_CUDA_LOD_H
#define PROA_OPS_LOD_CUDA_LOD_H

#include "devices/cuda/kernel.h"

struct lod_offsets {
    const int64_t *at; /* n + 1 */
    int64_t n, rows;   /* sequences; the rows that they cover */
};

CUDA_FN int64_t lod_clamped(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Rows [*from, *to) of sequence s. */
CUDA_FN void lod_part(const lod_offsets &of, int64_t s, int64_t *from, int64_t *to)
{
    *from = lod_clamped(of.at[s], 0, of.rows);
    *to = lod_clamped(of.at[s + 1], *from, of.rows);
}

/* The sequence of a row: the last that begins at or before it. */
CUDA_FN int64_t lod_sequence(const lod_offsets &of, int64_t row)
{
    int64_t low = 0, high = of.n - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (of.at[middle] <= row) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* Offsets begin at 0, never fall, and end at the rows. A template, so that several files may launch it. */
template <class Offsets> __global__ void lod_check_kernel(Offsets of, cuda_report report)
{
    for (CUDA_EACH(i, of.n + 1)) {
        int64_t low = i == 0 ? 0 : i == of.n ? of.rows : of.at[i - 1], high = i == 0 ? 0 : of.rows;
        if (of.at[i] < low || of.at[i] > high) cuda_raise(report, i, of.at[i], low, high);
    }
}

static inline proa_status lod_take(cuda_context *c, const char *op, const char *name, const proa_tensor *t,
                                   int64_t rows, lod_offsets *to)
{
    cuda_tensor f = cuda_look(t);
    *to = {f.as<int64_t>(), f.shape[0] - 1, rows};
    if (to->n < 0)
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                         "%s: %s is empty; expected where each sequence begins, and 0", op, name);
    lod_offsets of = *to;
    return cuda_launch(c, cuda_blocks(of.n + 1), CUDA_BLOCK, lod_check_kernel<lod_offsets>, of,
                       cuda_reports(c, name));
}

/* Makes output `index` of an op whose outputs its kernel sizes; *to describes it. */
static inline proa_status lod_output(cuda_context *c, const void *args, int index, const proa_meta &meta,
                                     cuda_tensor *to)
{
    proa_tensor *t = cuda_host->output_resize((void *)(uintptr_t)args, c->running, index, &meta);
    *to = {};
    if (!t) return cuda_host->error();
    *to = cuda_look(t);
    return PROA_OK;
}

/* Makes the calling function return `...`, in which S is uint64_t for dtypes of 8 bytes, else uint32_t. */
#define LOD_BY_SIZE(dtype, S, ...)   \
    do {                             \
        if (cuda_item(dtype) == 8) { \
            typedef uint64_t S;      \
            return __VA_ARGS__;      \
        }                            \
        typedef uint32_t S;          \
        return __VA_ARGS__;          \
    } while (0)

/* Elements of a row. */
static inline int64_t lod_width(const cuda_tensor &t)
{
    int64_t n = 1;
    for (int i = 1; i < t.ndim; i++) n *= t.shape[i];
    return n;
}

#endif
