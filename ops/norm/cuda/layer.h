/* layer_norm of rows in registers, and its gradient: dx and sums of the parameter gradients in one pass. A
 * group takes rows one after the other and sums the columns; another kernel joins the sums of the blocks. */
#ifndef PROA_OPS_NORM_CUDA_LAYER_H
#define PROA_OPS_NORM_CUDA_LAYER_H

#include "devices/cuda/rows.h"
#include "ops/norm/cuda/share.h"

template <class X, class A>
static bool layer_aligned(const norm_parameter<X, A> &weight, const norm_parameter<X, A> &bias)
{
    return ((uintptr_t)weight.data | (uintptr_t)bias.data) % 16 == 0;
}

template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS, sizeof(A) == 8 ? 1 : T::RESIDENT)
    layer_held_kernel(int64_t rows, int64_t n, const X *x, norm_parameter<X, A> weight,
                      norm_parameter<X, A> bias, double epsilon, X *out, A *mean, A *variance)
{
    for (CUDA_GROUPS(T, row, rows)) {
        cuda_held<A, T> held;
        A sum = 0, squares = 0;
        held.load(x + row * n, (int)n, 0);
        held.each([&](A &v) { sum += v; });
        A m = T::template reduce<cuda_sum>(sum) / (A)n;
#pragma unroll
        for (int k = 0; k < T::K; k++)
            for (int j = 0; j < T::V && held.index(k) < n; j++) {
                held.v[k][j] -= m;
                squares += held.v[k][j] * held.v[k][j];
            }
        A all = T::template reduce<cuda_sum>(squares) / (A)n, r = 1 / sqrt(all + (A)epsilon);
#pragma unroll
        for (int k = 0; k < T::K; k++) {
            A w[T::V], b[T::V];
            if (held.index(k) >= n) continue;
            weight.template take<T::V>(held.index(k), w);
            bias.template take<T::V>(held.index(k), b);
            for (int j = 0; j < T::V; j++) held.v[k][j] = held.v[k][j] * r * w[j] + b[j];
        }
        held.store(out + row * n, (int)n);
        if (T::thread()) continue;
        mean[row] = m;
        variance[row] = all;
    }
}

/* The statistics of a row, as the forward op handed them on. */
template <class X, class A> struct norm_statistics {
    norm_parameter<X, A> mean, deviation;
    bool inverse;
    A epsilon;
    __device__ __forceinline__ A scale(int64_t row) const
    {
        return inverse ? deviation[row] : 1 / sqrt(deviation[row] + epsilon);
    }
};

/* ---- backward ----------------------------------------------------------------------------- */

/* Rows that a thread sums in A before the block's sums, doubles, take them; columns and lines of the kernel
 * that joins those. */
enum { LAYER_LONGEST = 8192, LAYER_RUN = 64, LAYER_COLUMNS = 8, LAYER_LINES = CUDA_BLOCK / LAYER_COLUMNS };

/* A warp a row in blocks of four, or a block a row. BLOCKS are about as many as a GPU runs at a time. */
template <int THREADS_A_ROW, int WIDTH, int COUNT>
struct layer_group : cuda_group<THREADS_A_ROW, WIDTH, COUNT / WIDTH> {
    enum {
        THREADS = THREADS_A_ROW == 32 ? 128 : THREADS_A_ROW,
        GROUPS = THREADS / THREADS_A_ROW,
        RESIDENT = THREADS_A_ROW == 32    ? (COUNT > 24 ? 2 : 3)
                   : THREADS_A_ROW == 256 ? 2
                                          : 1,
        BLOCKS = 132 * RESIDENT
    };
};

template <class X, class A> struct layer_gradients {
    int64_t rows;
    int n;
    const X *x, *d;
    X *dx;
    norm_parameter<X, A> weight;
    norm_statistics<X, A> of;
    norm_place d_weight, d_bias;
};

template <class A> struct layer_pair {
    A a, b;
    CUDA_MEMBER layer_pair operator+(layer_pair o) const { return {a + o.a, b + o.b}; }
};

/* One row: dx, and g and g·x̂ added to the columns' sums. */
template <class X, class A, class T>
CUDA_FN void layer_grad_row(const layer_gradients<X, A> &p, int64_t row, cuda_held<A, T> &sum_g,
                            cuda_held<A, T> &sum_gx)
{
    cuda_held<A, T> x, g;
    x.load(p.x + row * p.n, p.n, 0);
    g.load(p.d + row * p.n, p.n, 0);
    A mean = p.of.mean[row], r = p.of.scale(row);
    layer_pair<A> sum = {0, 0};
#pragma unroll
    for (int k = 0; k < T::K; k++) {
        A w[T::V];
        if (x.index(k) >= p.n) continue;
        p.weight.template take<T::V>(x.index(k), w);
        for (int j = 0; j < T::V; j++) {
            A normal = (x.v[k][j] - mean) * r, slope = g.v[k][j];
            sum_g.v[k][j] += slope;
            sum_gx.v[k][j] += slope * normal;
            slope *= w[j];
            sum.a += slope;
            sum.b += slope * normal;
            x.v[k][j] = normal, g.v[k][j] = slope;
        }
    }
    sum = T::template reduce<cuda_sum>(sum);
    A mean_g = sum.a / (A)p.n, mean_gx = sum.b / (A)p.n;
#pragma unroll
    for (int k = 0; k < T::K; k++)
        for (int j = 0; j < T::V; j++) x.v[k][j] = r * (g.v[k][j] - mean_g - x.v[k][j] * mean_gx);
    x.store(p.dx + row * p.n, p.n);
}

/* Adds a run's sums to the block's, of one group or of several. */
template <class A, class T>
CUDA_FN void layer_grad_flush_one(int n, const cuda_held<A, T> &sum_g, const cuda_held<A, T> &sum_gx,
                                  bool first, norm_pair *parts)
{
    for (int k = 0; k < T::K; k++)
        for (int j = 0; j < T::V && sum_g.index(k) < n; j++) {
            norm_pair *to = parts + sum_g.index(k) + j, before = first ? norm_pair{0, 0} : *to;
            *to = before + norm_pair{(double)sum_g.v[k][j], (double)sum_gx.v[k][j]};
        }
}
template <class A, class T>
CUDA_FN void layer_grad_flush(int n, const cuda_held<A, T> &sum_g, const cuda_held<A, T> &sum_gx, bool first,
                              norm_pair *parts)
{
    __shared__ A g[T::THREADS * T::K * T::V], gx[T::THREADS * T::K * T::V];
    enum { EACH = T::G * T::K * T::V };
    int at = (int)threadIdx.x / T::G * EACH;
    __syncthreads();
    for (int k = 0; k < T::K; k++)
        for (int j = 0; j < T::V; j++) {
            g[at + sum_g.index(k) + j] = sum_g.v[k][j];
            gx[at + sum_g.index(k) + j] = sum_gx.v[k][j];
        }
    __syncthreads();
    for (int j = (int)threadIdx.x; j < n; j += T::THREADS) {
        norm_pair sum = first ? norm_pair{0, 0} : parts[j];
        for (int q = 0; q < T::GROUPS; q++)
            sum = sum + norm_pair{(double)g[q * EACH + j], (double)gx[q * EACH + j]};
        parts[j] = sum;
    }
}

template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    layer_grad_kernel(layer_gradients<X, A> p, norm_pair *parts)
{
    int64_t slices = (int64_t)gridDim.x * T::GROUPS, longest = (p.rows + slices - 1) / slices;
    int64_t slice = (int64_t)blockIdx.x * T::GROUPS + threadIdx.x / T::G;
    int64_t row = p.rows * slice / slices, end = p.rows * (slice + 1) / slices;
    for (int64_t run = 0; run < longest; run += LAYER_RUN) {
        cuda_held<A, T> sum_g = {}, sum_gx = {};
        int64_t stop = row + LAYER_RUN < end ? row + LAYER_RUN : end;
        for (; row < stop; row++) layer_grad_row(p, row, sum_g, sum_gx);
        norm_pair *to = parts + (int64_t)blockIdx.x * p.n;
        if constexpr (T::GROUPS == 1) layer_grad_flush_one(p.n, sum_g, sum_gx, run == 0, to);
        else layer_grad_flush(p.n, sum_g, sum_gx, run == 0, to);
    }
}

/* The columns' sums over the blocks. */
__global__ void layer_grad_end_kernel(const norm_pair *parts, int64_t n, int64_t blocks, norm_place d_weight,
                                      norm_place d_bias)
{
    int64_t j = (int64_t)blockIdx.x * LAYER_COLUMNS + threadIdx.x % LAYER_COLUMNS;
    norm_share_sums<1> sums;
    norm_pair mine = {0, 0};
    for (int64_t s = threadIdx.x / LAYER_COLUMNS; j < n && s < blocks; s += LAYER_LINES)
        mine = mine + parts[s * n + j];
    sums.set(0, mine);
    sums.sum(LAYER_COLUMNS);
    if (j >= n || threadIdx.x >= LAYER_COLUMNS) return;
    d_weight.set(j, sums.get(0).b);
    d_bias.set(j, sums.get(0).a);
}

template <class T, class X, class A>
static proa_status layer_launch(cuda_context *c, const layer_gradients<X, A> &g)
{
    int64_t blocks = (g.rows + T::GROUPS - 1) / T::GROUPS;
    if (blocks > T::BLOCKS) blocks = T::BLOCKS;
    norm_pair *parts = (norm_pair *)cuda_scratch(c, (size_t)(blocks * g.n) * sizeof *parts);
    if (!parts) return cuda_host->error();
    proa_status status = cuda_launch(c, (unsigned)blocks, T::THREADS, (layer_grad_kernel<X, A, T>), g, parts);
    if (status == PROA_OK)
        status = cuda_launch(c, (unsigned)((g.n + LAYER_COLUMNS - 1) / LAYER_COLUMNS), CUDA_BLOCK,
                             layer_grad_end_kernel, parts, g.n, blocks, g.d_weight, g.d_bias);
    cuda_scratch_free(c, parts);
    return status;
}

/* Rows of up to LAYER_LONGEST elements, which a block's registers hold. */
template <int V, class X, class A>
static proa_status layer_widths(cuda_context *c, const layer_gradients<X, A> &g)
{
    if (g.n <= 8 * 32) return layer_launch<layer_group<32, V, 8>>(c, g);
    if (g.n <= 16 * 32) return layer_launch<layer_group<32, V, 16>>(c, g);
    if constexpr (sizeof(A) == 4) {
        if (g.n <= 24 * 32) return layer_launch<layer_group<32, V, 24>>(c, g);
        if (g.n <= 32 * 32) return layer_launch<layer_group<32, V, 32>>(c, g);
    }
    if (g.n <= 16 * 256) return layer_launch<layer_group<256, V, 16>>(c, g);
    return layer_launch<layer_group<512, V, 16>>(c, g);
}
template <class X, class A>
static proa_status layer_backward(cuda_context *c, const layer_gradients<X, A> &g, bool packed)
{
    return packed ? layer_widths<16 / (int)sizeof(X)>(c, g) : layer_widths<1>(c, g);
}

#endif
