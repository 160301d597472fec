/* Pooling, softmax and convolution over sequences on a GPU: one thread per element of the result, and for
 * softmax one block per sequence. */
#include "ops/lod/cuda/lod.h"

CUDA_FN double lod_divisor(proa_sequence_pool_type type, int64_t n)
{
    if (type == PROA_SEQUENCE_POOL_TYPE_AVERAGE) return (double)n;
    return type == PROA_SEQUENCE_POOL_TYPE_SQRT ? sqrt((double)n) : 1.0;
}

template <class T>
__global__ void lod_pool_kernel(lod_offsets of, proa_sequence_pool_type type, T pad, const T *x, T *out,
                                int32_t *index, int64_t w)
{
    for (CUDA_EACH(i, of.n * w)) {
        int64_t k = i % w, from, to, best;
        lod_part(of, i / w, &from, &to);
        best = type == PROA_SEQUENCE_POOL_TYPE_LAST ? to - 1 : from;
        if (from == to) {
            out[i] = pad;
            if (index) index[i] = -1;
            continue;
        }
        if (type == PROA_SEQUENCE_POOL_TYPE_MAX) {
            for (int64_t r = from + 1; r < to; r++)
                if (x[r * w + k] > x[best * w + k]) best = r;
            if (index) index[i] = (int32_t)best;
        }
        if (type == PROA_SEQUENCE_POOL_TYPE_MAX || type == PROA_SEQUENCE_POOL_TYPE_FIRST ||
            type == PROA_SEQUENCE_POOL_TYPE_LAST) {
            out[i] = x[best * w + k];
            continue;
        }
        T sum = 0;
        for (int64_t r = from; r < to; r++) sum += x[r * w + k];
        out[i] = sum / (T)lod_divisor(type, to - from);
    }
}

template <class T>
__global__ void lod_pool_back_kernel(lod_offsets of, proa_sequence_pool_type type, const T *d_out,
                                     const int32_t *index, T *d_x, int64_t w)
{
    for (CUDA_EACH(i, of.rows * w)) {
        int64_t row = i / w, k = i % w, from = 0, to = 0, s = of.n ? lod_sequence(of, row) : 0;
        if (of.n) lod_part(of, s, &from, &to);
        bool mine = row >= from && row < to;
        if (type == PROA_SEQUENCE_POOL_TYPE_FIRST) mine = mine && row == from;
        if (type == PROA_SEQUENCE_POOL_TYPE_LAST) mine = mine && row == to - 1;
        if (type == PROA_SEQUENCE_POOL_TYPE_MAX) mine = mine && index[s * w + k] == row;
        d_x[i] = mine ? d_out[s * w + k] / (T)lod_divisor(type, to - from) : 0;
    }
}

/* A block a sequence; each sums its elements in one fixed tree. */
template <class T> __global__ void lod_softmax_kernel(lod_offsets of, const T *x, T *out)
{
    for (int64_t s = blockIdx.x; s < of.n; s += gridDim.x) {
        int64_t from, to;
        T top = -(T)INFINITY, sum = 0;
        lod_part(of, s, &from, &to);
        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x) top = x[i] > top ? x[i] : top;
        top = cuda_block_reduce<cuda_max>(top);
        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x)
            sum += out[i] = (T)exp((double)(x[i] - top));
        sum = cuda_block_reduce<cuda_sum>(sum);
        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x) out[i] /= sum;
    }
}

template <class T> __global__ void lod_softmax_back_kernel(lod_offsets of, const T *y, const T *d, T *d_x)
{
    for (int64_t s = blockIdx.x; s < of.n; s += gridDim.x) {
        int64_t from, to;
        T dot = 0;
        lod_part(of, s, &from, &to);
        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x) dot += y[i] * d[i];
        dot = cuda_block_reduce<cuda_sum>(dot);
        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x) d_x[i] = y[i] * (d[i] - dot);
    }
}

/* A row of x has d elements, one of the result m; filter [length · d, m]. */
struct lod_conv {
    lod_offsets of;
    int64_t d, m, length, start;
};

/* Whether row `at` belongs to the same sequence as `row`. */
CUDA_FN bool lod_same(const lod_offsets &of, int64_t row, int64_t at)
{
    int64_t from, to;
    if (of.n < 1) return false;
    lod_part(of, lod_sequence(of, row), &from, &to);
    return row >= from && row < to && at >= from && at < to;
}

template <class T> __global__ void lod_conv_kernel(lod_conv c, const T *x, const T *filter, T *out)
{
    for (CUDA_EACH(i, c.of.rows * c.m)) {
        int64_t row = i / c.m, k = i % c.m;
        T sum = 0;
        for (int64_t j = 0; j < c.length; j++) {
            int64_t from = row + c.start + j;
            if (!lod_same(c.of, row, from)) continue;
            for (int64_t q = 0; q < c.d; q++) sum += x[from * c.d + q] * filter[(j * c.d + q) * c.m + k];
        }
        out[i] = sum;
    }
}

template <class T> __global__ void lod_conv_input_kernel(lod_conv c, const T *filter, const T *d_out, T *d_x)
{
    for (CUDA_EACH(i, c.of.rows * c.d)) {
        int64_t row = i / c.d, q = i % c.d;
        T sum = 0;
        for (int64_t j = 0; j < c.length; j++) {
            int64_t to = row - c.start - j;
            if (!lod_same(c.of, row, to)) continue;
            for (int64_t k = 0; k < c.m; k++) sum += d_out[to * c.m + k] * filter[(j * c.d + q) * c.m + k];
        }
        d_x[i] = sum;
    }
}

template <class T> __global__ void lod_conv_filter_kernel(lod_conv c, const T *x, const T *d_out, T *d_filter)
{
    for (CUDA_EACH(i, c.length * c.d * c.m)) {
        int64_t k = i % c.m, q = i / c.m % c.d, j = i / c.m / c.d;
        T sum = 0;
        for (int64_t row = 0; row < c.of.rows; row++) {
            int64_t from = row + c.start + j;
            if (lod_same(c.of, row, from)) sum += d_out[row * c.m + k] * x[from * c.d + q];
        }
        d_filter[i] = sum;
    }
}

/* ---- the ops --------------------------------------------------------------------------- */

CUDA_KERNEL(sequence_pool, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    int32_t *index = cuda_given(a->max_index) ? cuda_look(a->max_index).as<int32_t>() : NULL;
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_pool", "offsets", a->offsets, x.shape[0], &of));
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, lod_pool_kernel<T>, of, a->pooltype,
                           (T)a->pad_value, x.as<T>(), out.as<T>(), index, lod_width(x));
    });
}

CUDA_KERNEL(sequence_pool_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x), d = cuda_look(a->d_out);
    const int32_t *index = cuda_given(a->max_index) ? cuda_look(a->max_index).as<int32_t>() : NULL;
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_pool_grad", "offsets", a->offsets, d_x.shape[0], &of));
    if (d.numel != of.n * lod_width(d_x))
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                         "sequence_pool_grad: d_out is %s; expected a row a sequence, %lld",
                         cuda_host->text(a->d_out), (long long)of.n);
    if (d_x.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(d_x.dtype, T, {
        return cuda_launch(c, cuda_blocks(d_x.numel), CUDA_BLOCK, lod_pool_back_kernel<T>, of, a->pooltype,
                           d.as<T>(), index, d_x.as<T>(), lod_width(d_x));
    });
}

CUDA_KERNEL(sequence_softmax, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_softmax", "offsets", a->offsets, x.shape[0], &of));
    if (x.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return cuda_launch(c, cuda_blocks(of.n, 1), CUDA_BLOCK, lod_softmax_kernel<T>, of, x.as<T>(),
                           out.as<T>());
    });
}

CUDA_KERNEL(sequence_softmax_grad, true)
{
    cuda_tensor y = cuda_look(a->out), d = cuda_look(a->d_out), d_x = cuda_look(a->d_x);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_softmax_grad", "offsets", a->offsets, y.shape[0], &of));
    if (y.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(y.dtype, T, {
        return cuda_launch(c, cuda_blocks(of.n, 1), CUDA_BLOCK, lod_softmax_back_kernel<T>, of, y.as<T>(),
                           d.as<T>(), d_x.as<T>());
    });
}

CUDA_KERNEL(sequence_conv, true)
{
    cuda_tensor x = cuda_look(a->x), filter = cuda_look(a->filter), out = cuda_look(a->out);
    lod_conv v = {{}, x.shape[1], filter.shape[1], a->length, a->start};
    PROA_TRY(lod_take(c, "sequence_conv", "offsets", a->offsets, x.shape[0], &v.of));
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, lod_conv_kernel<T>, v, x.as<T>(),
                           filter.as<T>(), out.as<T>());
    });
}

CUDA_KERNEL(sequence_conv_grad, true)
{
    cuda_tensor x = cuda_look(a->x), filter = cuda_look(a->filter), d = cuda_look(a->d_out);
    cuda_tensor d_x = cuda_look(a->d_x), d_filter = cuda_look(a->d_filter);
    lod_conv v = {{}, x.shape[1], filter.shape[1], a->length, a->start};
    PROA_TRY(lod_take(c, "sequence_conv_grad", "offsets", a->offsets, x.shape[0], &v.of));
    CUDA_SWITCH_WIDE(x.dtype, T, {
        if (d_x.numel)
            PROA_TRY(cuda_launch(c, cuda_blocks(d_x.numel), CUDA_BLOCK, lod_conv_input_kernel<T>, v,
                                 filter.as<T>(), d.as<T>(), d_x.as<T>()));
        if (!d_filter.numel) return PROA_OK;
        return cuda_launch(c, cuda_blocks(d_filter.numel), CUDA_BLOCK, lod_conv_filter_kernel<T>, v,
                           x.as<T>(), d.as<T>(), d_filter.as<T>());
    });
}
