/* GPU kernels that move rows of sequences, for ops whose result size does not depend on the offsets. One
 * thread per element of the result; backward adds the copies of a row in order. */
#include "ops/lod/cuda/lod.h"

/* ---- moves: elements are bits of 4 or 8 bytes ------------------------------------------ */

template <class S> __global__ void lod_reverse_kernel(lod_offsets of, const S *x, S *out, int64_t w)
{
    for (CUDA_EACH(i, of.rows * w)) {
        int64_t row = i / w, from, to;
        lod_part(of, lod_sequence(of, row), &from, &to);
        bool inside = row >= from && row < to;
        out[i] = x[(inside ? from + to - 1 - row : row) * w + i % w];
    }
}

/* Row s of x for every row of sequence s. */
template <class S> __global__ void lod_expand_kernel(lod_offsets of, const S *x, S *out, int64_t w)
{
    for (CUDA_EACH(i, of.rows * w)) out[i] = x[lod_sequence(of, i / w) * w + i % w];
}

template <class S>
__global__ void lod_enumerate_kernel(lod_offsets of, const S *x, S *out, int64_t width, S pad)
{
    for (CUDA_EACH(i, of.rows * width)) {
        int64_t row = i / width, from, to, at = row + i % width;
        lod_part(of, lod_sequence(of, row), &from, &to);
        out[i] = at < to ? x[at] : pad;
    }
}

CUDA_KERNEL(sequence_reverse, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_reverse", "offsets", a->offsets, x.shape[0], &of));
    if (x.numel == 0 || of.n < 1) return PROA_OK;
    LOD_BY_SIZE(x.dtype, S,
                cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, lod_reverse_kernel<S>, of, x.as<S>(),
                            out.as<S>(), lod_width(x)));
}

/* One sequence of y for each row of x. */
static proa_status check_expanded(const char *op, const cuda_tensor &x, const lod_offsets &of)
{
    if (of.n == x.shape[0]) return PROA_OK;
    return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                     "%s: y_offsets has %lld sequences; expected one for each of x's %lld", op,
                     (long long)of.n, (long long)x.shape[0]);
}

CUDA_KERNEL(sequence_expand_as, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_expand_as", "y_offsets", a->y_offsets, out.shape[0], &of));
    PROA_TRY(check_expanded("sequence_expand_as", x, of));
    if (out.numel == 0 || of.n < 1) return PROA_OK;
    LOD_BY_SIZE(x.dtype, S,
                cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, lod_expand_kernel<S>, of, x.as<S>(),
                            out.as<S>(), lod_width(x)));
}

CUDA_KERNEL(sequence_enumerate, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_enumerate", "offsets", a->offsets, x.shape[0], &of));
    if (out.numel == 0 || of.n < 1) return PROA_OK;
    LOD_BY_SIZE(x.dtype, S,
                cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, lod_enumerate_kernel<S>, of, x.as<S>(),
                            out.as<S>(), a->win_size, (S)a->pad_value));
}

static proa_status move(cuda_context *c, const cuda_tensor &to, const cuda_tensor &from)
{
    if (to.numel == 0) return PROA_OK;
    size_t bytes = (size_t)(to.numel * cuda_item(to.dtype));
    return cuda_check(c, c->driver->copy(to.data, from.data, bytes, CUDA_ON_DEVICE, c->stream), "a copy",
                      false);
}

template <class S> __global__ void lod_offsets_kernel(const S *from, int64_t n, int64_t *to)
{
    for (CUDA_EACH(i, n)) to[i] = from[i];
}

/* Writes the n offsets that y's sequences, y's integers or target_lod say. */
static proa_status write_offsets(cuda_context *c, const proa_lod_reset_args *a, int64_t n, int64_t *to)
{
    if (!cuda_given(a->y_offsets) && !cuda_given(a->y))
        return cuda_write(c, to, a->target_lod.at, (size_t)n * sizeof *to);
    cuda_tensor from = cuda_look(cuda_given(a->y_offsets) ? a->y_offsets : a->y);
    if (from.dtype == PROA_I32)
        return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, lod_offsets_kernel<int32_t>, from.as<int32_t>(), n,
                           to);
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, lod_offsets_kernel<int64_t>, from.as<int64_t>(), n, to);
}

CUDA_KERNEL(lod_reset, true)
{
    cuda_tensor x = cuda_look(a->x), to = cuda_look(a->out_offsets);
    const char *name = cuda_given(a->y_offsets) ? "y_offsets" : cuda_given(a->y) ? "y" : "target_lod";
    lod_offsets of;
    PROA_TRY(write_offsets(c, a, to.numel, to.as<int64_t>()));
    PROA_TRY(lod_take(c, "lod_reset", name, a->out_offsets, x.shape[0], &of));
    return move(c, cuda_look(a->out), x);
}

/* ---- reshape --------------------------------------------------------------------------- */

/* Offsets of the reshaped sequences: from rows of `width` elements to rows of `new_dim`. */
__global__ void lod_reshape_kernel(const int64_t *at, int64_t n, int64_t width, int64_t new_dim, int64_t *to,
                                   cuda_report report)
{
    for (CUDA_EACH(i, n)) {
        int64_t items = at[i] * width;
        if (items % new_dim) cuda_raise(report, i, at[i], 0, 0);
        to[i] = items / new_dim;
    }
}

CUDA_KERNEL(sequence_reshape, true)
{
    cuda_tensor x = cuda_look(a->x), to = cuda_look(a->out_offsets);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_reshape", "offsets", a->offsets, x.shape[0], &of));
    PROA_TRY(cuda_launch(c, cuda_blocks(of.n + 1), CUDA_BLOCK, lod_reshape_kernel, of.at, of.n + 1,
                         x.shape[1], a->new_dim, to.as<int64_t>(), cuda_reports(c, "offsets")));
    return move(c, cuda_look(a->out), x);
}

CUDA_KERNEL(sequence_reshape_grad, cuda_look(a->d_out).numel == cuda_look(a->d_x).numel)
{
    return move(c, cuda_look(a->d_x), cuda_look(a->d_out));
}

/* ---- backward -------------------------------------------------------------------------- */

template <class T> __global__ void lod_expand_back_kernel(lod_offsets of, const T *d_out, T *d_x, int64_t w)
{
    for (CUDA_EACH(i, of.n * w)) {
        int64_t from, to;
        T sum = 0;
        lod_part(of, i / w, &from, &to);
        for (int64_t row = from; row < to; row++) sum += d_out[row * w + i % w];
        d_x[i] = sum;
    }
}

/* d_x from d_out [sequences, length, w]: copies the rows that are not padding. */
template <class T>
__global__ void lod_pad_back_kernel(lod_offsets of, const T *d_out, T *d_x, int64_t length, int64_t w)
{
    for (CUDA_EACH(i, of.rows * w)) {
        int64_t row = i / w, s = lod_sequence(of, row), place = row - lod_clamped(of.at[s], 0, of.rows);
        d_x[i] = place >= 0 && place < length ? d_out[(s * length + place) * w + i % w] : 0;
    }
}

CUDA_KERNEL(sequence_expand_as_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x), d = cuda_look(a->d_out);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_expand_as_grad", "y_offsets", a->y_offsets, d.shape[0], &of));
    PROA_TRY(check_expanded("sequence_expand_as_grad", d_x, of));
    if (d_x.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(d.dtype, T, {
        return cuda_launch(c, cuda_blocks(d_x.numel), CUDA_BLOCK, lod_expand_back_kernel<T>, of, d.as<T>(),
                           d_x.as<T>(), lod_width(d_x));
    });
}

CUDA_KERNEL(sequence_pad_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x), d = cuda_look(a->d_out);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_pad_grad", "offsets", a->offsets, d_x.shape[0], &of));
    if (d.numel != of.n * d.shape[1] * lod_width(d_x))
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                         "sequence_pad_grad: d_out is %s; expected one padded sequence for "
                         "each of %lld, with rows as those of %s",
                         cuda_host->text(a->d_out), (long long)of.n, cuda_host->text(a->d_x));
    if (d_x.numel == 0 || of.n < 1) return PROA_OK;
    CUDA_SWITCH_WIDE(d.dtype, T, {
        return cuda_launch(c, cuda_blocks(d_x.numel), CUDA_BLOCK, lod_pad_back_kernel<T>, of, d.as<T>(),
                           d_x.as<T>(), d.shape[1], lod_width(d_x));
    });
}
