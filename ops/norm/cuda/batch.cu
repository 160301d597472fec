/* batch_norm and its gradient on a GPU: blocks sum slices of the channels, a block a channel joins them, and
 * an elementwise pass follows. The slices depend on the shape alone. */
#include "ops/norm/cuda/share.h"

#include "devices/cuda/layout.h"

/* The mean of a slice and the squares about it. A thread sums about its first element, so nothing cancels. */
template <class X, class A, int V, int N>
__global__ void __launch_bounds__(CUDA_BLOCK, 4)
    batch_moments_kernel(norm_share h, const X *x, norm_pair *parts)
{
    for (int64_t item = blockIdx.x; item < h.items; item += gridDim.x) {
        norm_share_walk<V, N> w(h, item);
        cuda_pack<X, V> in[SHARE_FLIGHT];
        A base[N] = {}, sum[N] = {}, squares[N] = {};
        bool fresh = true;
        norm_share_visit<SHARE_FLIGHT>(
            w, [&](int u, int64_t at) { in[u] = *(const cuda_pack<X, V> *)(const void *)(x + at); },
            [&](int u, int64_t) {
                A v[V], total = 0;
                for (int k = 0; k < V; k++) v[k] = cuda_cast<A>(in[u].at[k]);
                for (int k = 0; k < N && fresh; k++) base[k] = v[k] - v[k] == 0 ? v[k] : (A)0; /* finite */
                fresh = false;
                for (int k = 0; k < V; k++) {
                    A d = v[k] - base[k % N];
                    (N == V ? sum[k % N] : total) += d;
                    squares[k % N] += d * d;
                }
                if (N < V) sum[0] += total;
            });
        __shared__ double first[SHARE_WIDTH * N];
        norm_share_sums<N> sums;
        int column = (int)threadIdx.x % h.width;
        double count = w.count * (V / N), each = w.count ? 1 / count : 0, n = (double)h.elements(w.slice);
        for (int k = 0; k < N && w.leads; k++)
            first[column * N + k] = (double)base[k] + (double)sum[k] * each;
        __syncthreads();
        for (int k = 0; k < N; k++) {
            double s = (double)sum[k], d = (double)base[k] + s * each - first[column * N + k];
            if (w.count == 0) d = 0;
            sums.set(k, {count * d, (double)squares[k] - s * s * each + count * d * d});
        }
        sums.sum(h.width);
        for (int k = 0; k < N && w.leads; k++) {
            norm_pair all = sums.get(k);
            parts[(w.channel + k) * h.slices + w.slice] = {first[column * N + k] + all.a / n,
                                                           all.b - all.a * all.a / n};
        }
    }
}

/* Running statistics before and after a step, and the batch's own that are saved for backward. */
struct batch_running {
    norm_place mean_in, variance_in, mean_out, variance_out, saved_mean, saved_inverse;
    double momentum, epsilon;
};

/* Coefficients of a channel in the elementwise pass: out = (x − mean) · scale + shift, or
 * dx = scale · (g − shift − (x − mean) · slope). */
template <class A> struct alignas(4 * sizeof(A)) batch_terms {
    A mean, scale, shift, slope;
};

/* A channel's parameters in any floating dtype. */
struct batch_affine {
    norm_place weight, bias;
    template <class A> __device__ __forceinline__ batch_terms<A> terms(int64_t c, double mean, double r) const
    {
        A w = weight.data ? (A)weight.get(c) : 1, b = bias.data ? (A)bias.get(c) : 0;
        return {(A)mean, (A)r * w, b, 0};
    }
};

/* A block a channel: the batch's statistics; running = momentum · running + (1 − momentum) · batch's. */
template <class A>
__global__ void batch_statistics_kernel(norm_share h, const norm_pair *parts, batch_running r, batch_affine f,
                                        batch_terms<A> *terms)
{
    double n = (double)(h.vectors * h.per);
    for (int64_t c = blockIdx.x; c < h.s.channels; c += gridDim.x) {
        const norm_pair *of = parts + c * h.slices;
        double base = of[0].a;
        norm_pair sum = {0, 0};
        for (int64_t i = threadIdx.x; i < h.slices; i += blockDim.x) {
            double count = (double)h.elements(i), d = of[i].a - base;
            sum = sum + norm_pair{count * d, of[i].b + count * d * d};
        }
        double mean_in = r.mean_in.get(c), variance_in = r.variance_in.get(c);
        sum = cuda_block_reduce<cuda_sum>(sum);
        if (threadIdx.x) continue;
        double mean = base + sum.a / n, variance = (sum.b - sum.a * sum.a / n) / n;
        double inverse = 1 / sqrt(variance + r.epsilon);
        terms[c] = f.terms<A>(c, mean, inverse);
        r.saved_mean.set(c, mean);
        r.saved_inverse.set(c, inverse);
        r.mean_out.set(c, r.momentum * mean_in + (1 - r.momentum) * mean);
        r.variance_out.set(c, r.momentum * variance_in + (1 - r.momentum) * variance);
    }
}

/* Saves the running statistics as the batch's: mean, and 1 / deviation. */
template <class A>
__global__ void batch_fixed_kernel(int64_t channels, batch_running r, batch_affine f, batch_terms<A> *terms)
{
    for (CUDA_EACH(c, channels)) {
        double mean = r.mean_in.get(c), inverse = 1 / sqrt(r.variance_in.get(c) + r.epsilon);
        terms[c] = f.terms<A>(c, mean, inverse);
        r.saved_mean.set(c, mean);
        r.saved_inverse.set(c, inverse);
    }
}

/* Each channel has one value: x is copied to out, running statistics are copied unchanged, and saved
 * statistics are zeros. */
template <class X> __global__ void batch_pass_kernel(int64_t channels, const X *x, X *out, batch_running r)
{
    for (CUDA_EACH(c, channels)) {
        out[c] = x[c];
        r.saved_mean.set(c, 0);
        r.saved_inverse.set(c, 0);
        r.mean_out.set(c, r.mean_in.get(c));
        r.variance_out.set(c, r.variance_in.get(c));
    }
}

template <class X>
__global__ void batch_grad_pass_kernel(int64_t channels, const X *d, X *dx, norm_place d_weight,
                                       norm_place d_bias)
{
    for (CUDA_EACH(c, channels)) {
        dx[c] = d[c];
        d_weight.set(c, 0);
        d_bias.set(c, 0);
    }
}

/* The terms of a walk's channels. */
template <int V, int N, class A>
CUDA_FN void batch_terms_of(const norm_share_walk<V, N> &w, const batch_terms<A> *terms, batch_terms<A> *to)
{
    const batch_terms<A> *from = terms + (w.live ? w.channel : 0);
    for (int k = 0; k < N; k++) to[k] = from[k];
}

template <class X, class A, int V, int N>
__global__ void __launch_bounds__(CUDA_BLOCK, 4)
    batch_apply_kernel(norm_share h, const X *x, const batch_terms<A> *terms, X *out)
{
    for (int64_t item = blockIdx.x; item < h.items; item += gridDim.x) {
        norm_share_walk<V, N> w(h, item);
        cuda_pack<X, V> in[SHARE_FLIGHT];
        batch_terms<A> of[N];
        batch_terms_of(w, terms, of);
        norm_share_visit<SHARE_FLIGHT>(
            w, [&](int u, int64_t at) { in[u] = *(const cuda_pack<X, V> *)(const void *)(x + at); },
            [&](int u, int64_t at) {
                A v[V];
                for (int k = 0; k < V; k++)
                    v[k] = (cuda_cast<A>(in[u].at[k]) - of[k % N].mean) * of[k % N].scale + of[k % N].shift;
                cuda_put_whole<V>(out + at, v);
            });
    }
}

/* Σ g and Σ g · (x − mean) of a slice. A thread sums in A. */
template <class X, class A, int V, int N>
__global__ void __launch_bounds__(CUDA_BLOCK, 4)
    batch_pairs_kernel(norm_share h, const X *x, const X *d, norm_parameter<X, A> mean, norm_pair *parts)
{
    for (int64_t item = blockIdx.x; item < h.items; item += gridDim.x) {
        norm_share_walk<V, N> w(h, item);
        cuda_pack<X, V> in[SHARE_FLIGHT / 2], slope[SHARE_FLIGHT / 2];
        A m[N], sum[N] = {}, sum_x[N] = {};
        for (int k = 0; k < N; k++) m[k] = w.live ? mean[w.channel + k] : (A)0;
        norm_share_visit<SHARE_FLIGHT / 2>(
            w,
            [&](int u, int64_t at) {
                in[u] = *(const cuda_pack<X, V> *)(const void *)(x + at);
                slope[u] = *(const cuda_pack<X, V> *)(const void *)(d + at);
            },
            [&](int u, int64_t) {
                A total = 0, total_x = 0;
                for (int k = 0; k < V; k++) {
                    A g = cuda_cast<A>(slope[u].at[k]);
                    (N == V ? sum[k % N] : total) += g;
                    (N == V ? sum_x[k % N] : total_x) += g * (cuda_cast<A>(in[u].at[k]) - m[k % N]);
                }
                if (N < V) sum[0] += total, sum_x[0] += total_x;
            });
        norm_share_sums<N> sums;
        for (int k = 0; k < N; k++) sums.set(k, {(double)sum[k], (double)sum_x[k]});
        sums.sum(h.width);
        for (int k = 0; k < N && w.leads; k++) parts[(w.channel + k) * h.slices + w.slice] = sums.get(k);
    }
}

/* A block a channel: the gradients of weight and bias, and what dx needs. `fixed`: the statistics are no
 * function of x. */
template <class X, class A>
__global__ void batch_slopes_kernel(norm_share h, const norm_pair *parts, norm_parameter<X, A> weight,
                                    norm_parameter<X, A> mean, norm_parameter<X, A> inverse, bool fixed,
                                    norm_place d_weight, norm_place d_bias, batch_terms<A> *terms)
{
    double n = (double)(h.vectors * h.per);
    for (int64_t c = blockIdx.x; c < h.s.channels; c += gridDim.x) {
        norm_pair sum = {0, 0};
        for (int64_t i = threadIdx.x; i < h.slices; i += blockDim.x) sum = sum + parts[c * h.slices + i];
        A r = inverse[c], m = mean[c], w = weight[c];
        sum = cuda_block_reduce<cuda_sum>(sum);
        if (threadIdx.x) continue;
        sum.b *= (double)r;
        terms[c] = {m, r * w, fixed ? (A)0 : (A)(sum.a / n), fixed ? (A)0 : r * (A)(sum.b / n)};
        d_weight.set(c, sum.b);
        d_bias.set(c, sum.a);
    }
}

/* dx = r · w · (g − mean(g) − x̂ · mean(g·x̂)); with fixed statistics r · w · g. */
template <class X, class A, int V, int N>
__global__ void __launch_bounds__(CUDA_BLOCK, 3)
    batch_grad_kernel(norm_share h, const X *x, const X *d, const batch_terms<A> *terms, X *dx)
{
    for (int64_t item = blockIdx.x; item < h.items; item += gridDim.x) {
        norm_share_walk<V, N> w(h, item);
        cuda_pack<X, V> in[SHARE_FLIGHT / 2], slope[SHARE_FLIGHT / 2];
        batch_terms<A> of[N];
        batch_terms_of(w, terms, of);
        norm_share_visit<SHARE_FLIGHT / 2>(
            w,
            [&](int u, int64_t at) {
                in[u] = *(const cuda_pack<X, V> *)(const void *)(x + at);
                slope[u] = *(const cuda_pack<X, V> *)(const void *)(d + at);
            },
            [&](int u, int64_t at) {
                A v[V];
                for (int k = 0; k < V; k++) {
                    const batch_terms<A> &t = of[k % N];
                    A g = cuda_cast<A>(slope[u].at[k]), x0 = cuda_cast<A>(in[u].at[k]) - t.mean;
                    v[k] = t.scale * (g - t.shift - x0 * t.slope);
                }
                cuda_put_whole<V>(dx + at, v);
            });
    }
}

static bool says_last(proa_data_format f)
{
    return f == PROA_DATA_FORMAT_NHWC || f == PROA_DATA_FORMAT_NDHWC || f == PROA_DATA_FORMAT_NLC;
}

/* `channels_last`: the memory is channels last although the op's attribute says channels first. */
static norm_channels channels_of(const cuda_tensor &x, proa_data_format f, bool channels_last)
{
    bool last = says_last(f);
    norm_channels s = {x.shape[0], last ? x.dim(-1) : x.shape[1], 1, last || channels_last};
    for (int d = last ? 1 : 2; d < (last ? x.ndim - 1 : x.ndim); d++) s.pixels *= x.shape[d];
    if (s.pixels == 1 && x.ndim == 2) s.last = true; /* the same memory, read along the channels */
    return s;
}

/* True if V elements may be loaded and stored at once: addresses are aligned, and V divides a channel's
 * run. */
template <class X>
static bool packs(const norm_channels &s, const cuda_tensor &a, const cuda_tensor &b, const char *d)
{
    return cuda_packs<X>(s.last ? s.channels : s.pixels, a.data, b.data, d);
}

/* Blocks of the passes that sum, of which four are on a multiprocessor, and of the others. */
enum { BATCH_SUM_BLOCKS = 528, BATCH_PASS_BLOCKS = 1056, BATCH_CHANNEL_THREADS = 128 };

/* Scratch memory of a call: terms of every channel, then the sums of `slices` slices of each. */
template <class A> static batch_terms<A> *scratch_of(cuda_context *c, int64_t channels, int64_t slices)
{
    return (batch_terms<A> *)cuda_scratch(
        c, (size_t)channels * (sizeof(batch_terms<A>) + (size_t)slices * sizeof(norm_pair)));
}

template <class X, class A, int V, int N>
static proa_status forward_as(cuda_context *c, const proa_batch_norm_args *a, const cuda_tensor &x,
                              const cuda_tensor &out, norm_channels s, const batch_running &r, bool fixed)
{
    norm_share h = norm_share_of(s, V, BATCH_SUM_BLOCKS, SHARE_FLIGHT);
    batch_affine f = {norm_place_of(a->weight), norm_place_of(a->bias)};
    batch_terms<A> *terms = scratch_of<A>(c, s.channels, fixed ? 0 : h.slices);
    if (!terms) return cuda_host->error();
    norm_pair *parts = (norm_pair *)(void *)(terms + s.channels);
    proa_status status = PROA_OK;
    if (fixed) {
        status = cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, batch_fixed_kernel<A>, s.channels, r, f,
                             terms);
    } else {
        status = cuda_launch(c, cuda_blocks(h.items, 1), CUDA_BLOCK, (batch_moments_kernel<X, A, V, N>), h,
                             x.as<X>(), parts);
        if (status == PROA_OK)
            status = cuda_launch(c, cuda_blocks(s.channels, 1), BATCH_CHANNEL_THREADS,
                                 batch_statistics_kernel<A>, h, parts, r, f, terms);
    }
    h = norm_share_of(s, V, BATCH_PASS_BLOCKS, 1);
    if (status == PROA_OK && x.numel)
        status = cuda_launch(c, cuda_blocks(h.items, 1), CUDA_BLOCK, (batch_apply_kernel<X, A, V, N>), h,
                             x.as<X>(), terms, out.as<X>());
    cuda_scratch_free(c, terms);
    return status;
}

/* Vectors of 16 bytes where they may be accessed, of one channel each or of as many as they have elements. */
template <class X, class A>
static proa_status batch_forward(cuda_context *c, const proa_batch_norm_args *a, const cuda_tensor &x,
                                 const cuda_tensor &out, norm_channels s, const batch_running &r, bool fixed)
{
    enum { V = 16 / sizeof(X) };
    if (!packs<X>(s, x, out, NULL)) return forward_as<X, A, 1, 1>(c, a, x, out, s, r, fixed);
    return s.last ? forward_as<X, A, V, V>(c, a, x, out, s, r, fixed)
                  : forward_as<X, A, V, 1>(c, a, x, out, s, r, fixed);
}

#define FIXED(a) (((a)->is_test && !(a)->trainable_statistics) || (a)->use_global_stats)

CUDA_KERNEL_CHANNELS_LAST(batch_norm, CUDA_IS(a->x, CUDA_FLOATS), out,
                          cuda_is_channels_last(a->x) && !says_last(a->data_format))
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    cuda_layout layout(c, x.channels_last && !says_last(a->data_format));
    PROA_TRY(layout.take(&x));
    PROA_TRY(layout.place(&out));
    batch_running r = {norm_place_of(a->running_mean),
                       norm_place_of(a->running_var),
                       norm_place_of(a->mean_out),
                       norm_place_of(a->variance_out),
                       norm_place_of(a->saved_mean),
                       norm_place_of(a->saved_variance),
                       a->momentum,
                       a->epsilon};
    norm_channels s = channels_of(x, a->data_format, layout.last);
    if (s.channels == 0) return PROA_OK;
    bool fixed = FIXED(a) || x.numel == 0;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        if (!fixed && s.images * s.pixels == 1)
            PROA_TRY(cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, batch_pass_kernel<X>, s.channels,
                                 x.as<X>(), out.as<X>(), r));
        else PROA_TRY((batch_forward<X, A>(c, a, x, out, s, r, fixed)));
    })
    return layout.give(a->out, out);
}

template <class X, class A, int V, int N>
static proa_status backward_as(cuda_context *c, const proa_batch_norm_grad_args *a, const cuda_tensor &x,
                               const cuda_tensor &d, const cuda_tensor &dx, norm_channels s)
{
    norm_parameter<X, A> weight = norm_parameter_of<X, A>(a->weight, x.dtype, 1),
                         mean = norm_parameter_of<X, A>(a->saved_mean, x.dtype, 0),
                         inverse = norm_parameter_of<X, A>(a->saved_variance, x.dtype, 0);
    norm_share h = norm_share_of(s, V, BATCH_SUM_BLOCKS, SHARE_FLIGHT);
    batch_terms<A> *terms = scratch_of<A>(c, s.channels, h.slices);
    if (!terms) return cuda_host->error();
    norm_pair *parts = (norm_pair *)(void *)(terms + s.channels);
    proa_status status = cuda_launch(c, cuda_blocks(h.items, 1), CUDA_BLOCK, (batch_pairs_kernel<X, A, V, N>),
                                     h, x.as<X>(), d.as<X>(), mean, parts);
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(s.channels, 1), BATCH_CHANNEL_THREADS,
                             (batch_slopes_kernel<X, A>), h, parts, weight, mean, inverse, FIXED(a),
                             norm_place_of(a->d_weight), norm_place_of(a->d_bias), terms);
    h = norm_share_of(s, V, BATCH_PASS_BLOCKS, 1);
    if (status == PROA_OK && x.numel)
        status = cuda_launch(c, cuda_blocks(h.items, 1), CUDA_BLOCK, (batch_grad_kernel<X, A, V, N>), h,
                             x.as<X>(), d.as<X>(), terms, dx.as<X>());
    cuda_scratch_free(c, terms);
    return status;
}

template <class X, class A>
static proa_status batch_backward(cuda_context *c, const proa_batch_norm_grad_args *a, const cuda_tensor &x,
                                  const cuda_tensor &d, const cuda_tensor &dx, norm_channels s)
{
    enum { V = 16 / sizeof(X) };
    if (!packs<X>(s, x, d, dx.data)) return backward_as<X, A, 1, 1>(c, a, x, d, dx, s);
    return s.last ? backward_as<X, A, V, V>(c, a, x, d, dx, s) : backward_as<X, A, V, 1>(c, a, x, d, dx, s);
}

CUDA_KERNEL_CHANNELS_LAST(batch_norm_grad, CUDA_IS(a->x, CUDA_FLOATS), d_x,
                          cuda_is_channels_last(a->x) && !says_last(a->data_format))
{
    cuda_tensor x = cuda_look(a->x), d = cuda_look(a->d_out), dx = cuda_look(a->d_x);
    cuda_layout layout(c, x.channels_last && !says_last(a->data_format));
    PROA_TRY(layout.take(&x));
    PROA_TRY(layout.take(&d));
    PROA_TRY(layout.place(&dx));
    norm_channels s = channels_of(x, a->data_format, layout.last);
    if (s.channels == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        if (!FIXED(a) && s.images * s.pixels == 1)
            PROA_TRY(cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, batch_grad_pass_kernel<X>,
                                 s.channels, d.as<X>(), dx.as<X>(), norm_place_of(a->d_weight),
                                 norm_place_of(a->d_bias)));
        else PROA_TRY((batch_backward<X, A>(c, a, x, d, dx, s)));
    })
    return layout.give(a->d_x, dx);
}
