/* batch_norm and its gradient on a GPU: several blocks sum slices of a channel for its statistics, then one
 * elementwise pass follows. The slices depend on the shape alone. */
#include "ops/norm/cuda/norm.h"

#include "devices/cuda/layout.h"

/* Moments of a slice: its mean, then the squares about it. */
template <class X>
__global__ void batch_moments_kernel(norm_channels s, norm_slices p, const X *x, norm_sums *parts)
{
    for (int64_t item = blockIdx.x; item < norm_items(s, p); item += gridDim.x) {
        norm_walk w(s, p, item);
        int64_t n = s.images * s.pixels, from = w.slice * p.each, to = from + p.each < n ? from + p.each : n;
        double count = to > from ? (double)(to - from) : 0, sum = 0, squares = 0;
        for (int64_t i = w.begin; i < w.end; i += w.step)
            sum += cuda_cast<double>(x[norm_at(s, w.channel, i)]);
        double mean = count > 0 ? norm_walk_sum(s, sum) / count : norm_walk_sum(s, sum);
        for (int64_t i = w.begin; i < w.end; i += w.step) {
            double v = cuda_cast<double>(x[norm_at(s, w.channel, i)]) - mean;
            squares += v * v;
        }
        squares = norm_walk_sum(s, squares);
        if (w.first(s)) parts[w.channel * p.count + w.slice] = {mean, squares, count};
    }
}

/* Running statistics before and after a step, and the batch's own that are saved for backward. */
struct batch_running {
    norm_place mean_in, variance_in, mean_out, variance_out, saved_mean, saved_inverse;
    double momentum, epsilon;
};

/* The batch's statistics; running = momentum · running + (1 − momentum) · batch's. */
__global__ void batch_statistics_kernel(const norm_sums *parts, int64_t channels, int64_t slices,
                                        batch_running r)
{
    for (CUDA_EACH(c, channels)) {
        norm_sums all = {0, 0, 0};
        for (int64_t s = 0; s < slices; s++) all = norm_join_moments(all, parts[c * slices + s]);
        double variance = all.b / all.count;
        r.saved_mean.set(c, all.a);
        r.saved_inverse.set(c, 1 / sqrt(variance + r.epsilon));
        r.mean_out.set(c, r.momentum * r.mean_in.get(c) + (1 - r.momentum) * all.a);
        r.variance_out.set(c, r.momentum * r.variance_in.get(c) + (1 - r.momentum) * variance);
    }
}

/* Saves the running statistics as the batch's: mean, and 1 / deviation. */
__global__ void batch_fixed_kernel(int64_t channels, batch_running r)
{
    for (CUDA_EACH(c, channels)) {
        r.saved_mean.set(c, r.mean_in.get(c));
        r.saved_inverse.set(c, 1 / sqrt(r.variance_in.get(c) + r.epsilon));
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

/* V elements at i are of one channel where V divides the pixels; of V channels where they are last. */
template <class X, class A, int V>
__global__ void batch_apply_kernel(norm_channels s, int64_t n, const X *x, norm_parameter<X, A> weight,
                                   norm_parameter<X, A> bias, const A *mean, const A *inverse, X *out)
{
    for (CUDA_EACH(j, n / V)) {
        int64_t i = j * V, c = s.last ? i % s.channels : i / s.pixels % s.channels;
        A v[V];
        cuda_take<V>(x + i, v);
        for (int k = 0; k < V; k++) {
            int64_t of = s.last ? c + k : c;
            v[k] = (v[k] - mean[of]) * (inverse[of] * weight[of]) + bias[of];
        }
        cuda_put<V>(out + i, v);
    }
}

/* dx = r · w · (g − mean(g) − x̂ · mean(g·x̂)); with fixed statistics r · w · g. */
template <class X, class A, int V>
__global__ void batch_grad_kernel(norm_channels s, int64_t n, const X *x, const X *d,
                                  norm_parameter<X, A> weight, norm_parameter<X, A> mean,
                                  norm_parameter<X, A> inverse, const norm_sums *sums, bool fixed, X *dx)
{
    double count = (double)(s.images * s.pixels);
    for (CUDA_EACH(j, n / V)) {
        int64_t i = j * V, c = s.last ? i % s.channels : i / s.pixels % s.channels;
        A v[V], g[V];
        cuda_take<V>(x + i, v);
        cuda_take<V>(d + i, g);
        for (int k = 0; k < V; k++) {
            int64_t of = s.last ? c + k : c;
            A r = inverse[of], mean_g = fixed ? 0 : (A)(sums[of].a / count);
            A mean_gx = fixed ? 0 : (A)(sums[of].b / count);
            v[k] = r * weight[of] * (g[k] - mean_g - (v[k] - mean[of]) * r * mean_gx);
        }
        cuda_put<V>(dx + i, v);
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

template <class X, class A>
static proa_status batch_forward(cuda_context *c, const proa_batch_norm_args *a, const cuda_tensor &x,
                                 const cuda_tensor &out, norm_channels s, const batch_running &r, bool fixed)
{
    const A *mean = cuda_look(a->saved_mean).as<A>(), *inverse = cuda_look(a->saved_variance).as<A>();
    norm_slices p = norm_slice(s);
    if (!fixed && s.images * s.pixels == 1)
        return cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, batch_pass_kernel<X>, s.channels,
                           x.as<X>(), out.as<X>(), r);
    if (fixed) {
        PROA_TRY(cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, batch_fixed_kernel, s.channels, r));
    } else {
        norm_sums *parts = (norm_sums *)cuda_scratch(c, (size_t)(s.channels * p.count) * sizeof *parts);
        if (!parts) return cuda_host->error();
        proa_status status = cuda_launch(c, cuda_blocks(norm_items(s, p), 1), CUDA_BLOCK,
                                         batch_moments_kernel<X>, s, p, x.as<X>(), parts);
        if (status == PROA_OK)
            status = cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, batch_statistics_kernel, parts,
                                 s.channels, p.count, r);
        cuda_scratch_free(c, parts);
        PROA_TRY(status);
    }
    if (x.numel == 0) return PROA_OK;
    norm_parameter<X, A> w = norm_parameter_of<X, A>(a->weight, x.dtype, 1),
                         b = norm_parameter_of<X, A>(a->bias, x.dtype, 0);
    enum { V = 16 / sizeof(X) };
    if (packs<X>(s, x, out, NULL))
        return cuda_launch(c, cuda_blocks(x.numel / V), CUDA_BLOCK, (batch_apply_kernel<X, A, V>), s, x.numel,
                           x.as<X>(), w, b, mean, inverse, out.as<X>());
    return cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, (batch_apply_kernel<X, A, 1>), s, x.numel,
                       x.as<X>(), w, b, mean, inverse, out.as<X>());
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
    CUDA_SWITCH_FLOAT(x.dtype, X, A, { PROA_TRY((batch_forward<X, A>(c, a, x, out, s, r, fixed))); })
    return layout.give(a->out, out);
}

template <class X, class A>
static proa_status batch_backward(cuda_context *c, const proa_batch_norm_grad_args *a, const cuda_tensor &x,
                                  const cuda_tensor &d, const cuda_tensor &dx, norm_channels s)
{
    norm_parameter<X, A> w = norm_parameter_of<X, A>(a->weight, x.dtype, 1),
                         mean = norm_parameter_of<X, A>(a->saved_mean, x.dtype, 0),
                         inverse = norm_parameter_of<X, A>(a->saved_variance, x.dtype, 0);
    norm_slices p = norm_slice(s);
    if (!FIXED(a) && s.images * s.pixels == 1)
        return cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, batch_grad_pass_kernel<X>, s.channels,
                           d.as<X>(), dx.as<X>(), norm_place_of(a->d_weight), norm_place_of(a->d_bias));
    norm_sums *parts = (norm_sums *)cuda_scratch(c, (size_t)(s.channels * (p.count + 1)) * sizeof *parts);
    if (!parts) return cuda_host->error();
    norm_sums *sums = parts + s.channels * p.count;
    proa_status status =
        cuda_launch(c, cuda_blocks(norm_items(s, p), 1), CUDA_BLOCK, (norm_pairs_kernel<X, A>), s, p,
                    x.as<X>(), d.as<X>(), mean, inverse, false, 0.0, 0, 1, parts);
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, norm_pairs_end_kernel<norm_sums>, parts,
                             s.channels, p.count, norm_place_of(a->d_weight), norm_place_of(a->d_bias), sums);
    enum { V = 16 / sizeof(X) };
    if (status == PROA_OK && x.numel && packs<X>(s, x, d, dx.data))
        status = cuda_launch(c, cuda_blocks(x.numel / V), CUDA_BLOCK, (batch_grad_kernel<X, A, V>), s,
                             x.numel, x.as<X>(), d.as<X>(), w, mean, inverse, sums, FIXED(a), dx.as<X>());
    else if (status == PROA_OK && x.numel)
        status = cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, (batch_grad_kernel<X, A, 1>), s, x.numel,
                             x.as<X>(), d.as<X>(), w, mean, inverse, sums, FIXED(a), dx.as<X>());
    cuda_scratch_free(c, parts);
    return status;
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
    CUDA_SWITCH_FLOAT(x.dtype, X, A, { PROA_TRY((batch_backward<X, A>(c, a, x, d, dx, s))); })
    return layout.give(a->d_x, dx);
}
