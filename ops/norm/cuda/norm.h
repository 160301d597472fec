/* Shared parts of the GPU's normalization kernels: parameters in the dtype of x or of the accumulator, and
 * sums over slices of a channel. */
#ifndef PROA_OPS_NORM_CUDA_NORM_H
#define PROA_OPS_NORM_CUDA_NORM_H

#include "devices/cuda/kernel.h"

/* A parameter or statistic of x's dtype X or of the accumulator's A; absent: every value is `other`. */
template <class X, class A> struct norm_parameter {
    const char *data;
    bool narrow; /* of dtype X */
    A other;
    __device__ __forceinline__ A operator[](int64_t i) const
    {
        if (!data) return other;
        return narrow ? cuda_cast<A>(((const X *)(const void *)data)[i]) : ((const A *)(const void *)data)[i];
    }
    /* V of them from i on, a multiple of V; V > 1: data is aligned to 16 bytes */
    template <int V> __device__ __forceinline__ void take(int64_t i, A *to) const
    {
        enum { WIDE = V * sizeof(A) <= 16 ? V : 16 / (int)sizeof(A) };
        if (!data) {
            for (int k = 0; k < V; k++) to[k] = other;
        } else if (narrow) {
            cuda_take<V>((const X *)(const void *)data + i, to);
        } else {
            for (int k = 0; k < V; k += WIDE) cuda_take<WIDE>((const A *)(const void *)data + i + k, to + k);
        }
    }
};
template <class X, class A>
static norm_parameter<X, A> norm_parameter_of(const proa_tensor *t, proa_dtype x, A other)
{
    norm_parameter<X, A> p = {NULL, false, other};
    if (!cuda_given(t)) return p;
    cuda_tensor f = cuda_look(t);
    p.data = f.data;
    p.narrow = f.dtype == x;
    return p;
}

/* Memory of a gradient or a statistic: element i is `step` bytes after element i − 1. */
struct norm_place {
    char *data;
    proa_dtype dtype;
    int64_t step;
    __device__ __forceinline__ double get(int64_t i) const
    {
        const char *at = data + i * step;
        return dtype == PROA_F32 ? *(const float *)(const void *)at : cuda_load<double>(at, dtype);
    }
    __device__ __forceinline__ void set(int64_t i, double v) const
    {
        char *at = data + i * step;
        if (dtype == PROA_F32) *(float *)(void *)at = (float)v;
        else cuda_store<double>(at, dtype, v);
    }
};
static inline norm_place norm_place_of(const proa_tensor *t)
{
    if (!cuda_given(t)) return {NULL, PROA_F32, 0};
    cuda_tensor f = cuda_look(t);
    return {f.data, f.dtype, f.ndim ? f.strides[f.ndim - 1] : cuda_item(f.dtype)};
}

/* x as images × channels × pixels (or, `last`, images × pixels × channels). */
struct norm_channels {
    int64_t images, channels, pixels;
    bool last;
    __device__ __forceinline__ int64_t at(int64_t image, int64_t channel, int64_t pixel) const
    {
        return last ? (image * pixels + pixel) * channels + channel
                    : (image * channels + channel) * pixels + pixel;
    }
};

/* Sums of a slice of a channel: of x (moments: mean and squares about it) or of a gradient (Σ g and Σ
 * g·x̂). `count` elements. */
struct norm_sums {
    double a, b, count;
};

/* Mean and squares of two sets together (Chan, Golub and LeVeque, 1979). */
CUDA_FN norm_sums norm_join_moments(norm_sums x, norm_sums y)
{
    if (y.count == 0) return x;
    if (x.count == 0) return y;
    double n = x.count + y.count, d = y.a - x.a;
    return {x.a + d * (y.count / n), x.b + y.b + d * d * (x.count * y.count / n), n};
}

/* The columns of a block of CUDA_BLOCK threads where channels are last: 32 channels, 8 elements of each. */
enum { NORM_COLUMNS = 32, NORM_LINES = CUDA_BLOCK / NORM_COLUMNS };

/* The slices of a channel: elements (image, pixel) in order, `each` a slice. */
struct norm_slices {
    int64_t count, each;
};
static inline norm_slices norm_slice(const norm_channels &s)
{
    int64_t n = s.images * s.pixels,
            units = s.last ? (s.channels + NORM_COLUMNS - 1) / NORM_COLUMNS : s.channels;
    int64_t count = 2048 / (units ? units : 1) + 1, most = n / 1024 + 1;
    if (count > most) count = most;
    return {count, (n + count - 1) / count};
}

/* Sum over the lines of a column, which all its threads get. */
CUDA_FN double norm_column_sum(double v)
{
    __shared__ double part[CUDA_BLOCK];
    __syncthreads();
    part[threadIdx.x] = v;
    __syncthreads();
    double sum = 0;
    for (int line = 0; line < NORM_LINES; line++)
        sum += part[line * NORM_COLUMNS + threadIdx.x % NORM_COLUMNS];
    return sum;
}

/* A thread's elements in one work item, a slice of one channel (or of NORM_COLUMNS channels where they are
 * last). One block computes an item. */
struct norm_walk {
    int64_t channel, slice, begin, end, step;
    bool live;
    __device__ __forceinline__ norm_walk(const norm_channels &s, const norm_slices &p, int64_t item)
    {
        int64_t unit = item / p.count, n = s.images * s.pixels;
        slice = item % p.count;
        channel = s.last ? unit * NORM_COLUMNS + threadIdx.x % NORM_COLUMNS : unit;
        live = channel < s.channels;
        begin = slice * p.each + (s.last ? threadIdx.x / NORM_COLUMNS : threadIdx.x);
        step = s.last ? (int)NORM_LINES : (int)CUDA_BLOCK;
        end = (slice + 1) * p.each < n ? (slice + 1) * p.each : n;
        if (!live) end = begin;
    }
    /* true in the one thread that writes the channel's result */
    __device__ __forceinline__ bool first(const norm_channels &s) const
    {
        return live && (s.last ? threadIdx.x < NORM_COLUMNS : threadIdx.x == 0);
    }
};
CUDA_FN double norm_walk_sum(const norm_channels &s, double v)
{
    return s.last ? norm_column_sum(v) : cuda_block_reduce<cuda_sum>(v);
}
CUDA_BOTH int64_t norm_items(const norm_channels &s, const norm_slices &p)
{
    return (s.last ? (s.channels + NORM_COLUMNS - 1) / NORM_COLUMNS : s.channels) * p.count;
}

/* Offset of element i (image-major) of a channel. */
CUDA_FN int64_t norm_at(const norm_channels &s, int64_t channel, int64_t i)
{
    return s.at(i / s.pixels, channel, i % s.pixels);
}

/* Σ g and Σ g·x̂ of every slice of every channel into parts[channel · slices + slice]; statistic of image
 * i and channel c is number i · groups + c / each (batch_norm: groups 0, each 1). */
template <class X, class A>
__global__ void norm_pairs_kernel(norm_channels s, norm_slices p, const X *x, const X *d,
                                  norm_parameter<X, A> mean, norm_parameter<X, A> scale, bool variances,
                                  double epsilon, int64_t groups, int64_t each, norm_sums *parts)
{
    for (int64_t item = blockIdx.x; item < norm_items(s, p); item += gridDim.x) {
        norm_walk w(s, p, item);
        double g = 0, gx = 0;
        for (int64_t i = w.begin; i < w.end; i += w.step) {
            int64_t at = norm_at(s, w.channel, i), stat = i / s.pixels * groups + w.channel / each;
            A r = variances ? 1 / sqrt(scale[stat] + (A)epsilon) : scale[stat];
            A v = cuda_cast<A>(d[at]);
            g += (double)v;
            gx += (double)(v * ((cuda_cast<A>(x[at]) - mean[stat]) * r));
        }
        g = norm_walk_sum(s, g);
        gx = norm_walk_sum(s, gx);
        if (w.first(s)) parts[w.channel * p.count + w.slice] = {g, gx, (double)(w.end - w.begin)};
    }
}

/* The gradients of weight and bias out of the slices' sums; also kept in sums[channel], if wanted. */
template <class S>
__global__ void norm_pairs_end_kernel(const S *parts, int64_t channels, int64_t slices, norm_place d_weight,
                                      norm_place d_bias, S *sums)
{
    for (CUDA_EACH(c, channels)) {
        double g = 0, gx = 0;
        for (int64_t s = 0; s < slices; s++) g += parts[c * slices + s].a, gx += parts[c * slices + s].b;
        d_weight.set(c, gx);
        d_bias.set(c, g);
        if (sums) sums[c] = {g, gx, 0};
    }
}

#endif
