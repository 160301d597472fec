/* layer_norm, group_norm, instance_norm and their gradients on a GPU: one warp or block per row. layer_norm
 * holds rows in registers; its backward (layer.h) then has the sums of the parameter gradients from the same
 * pass. */
#include "ops/norm/cuda/layer.h"

/* Row r (image r / groups, group r % groups) starts at image · image_step + group · group_step and has
 * segments of `length` elements. Element j of segment s has weight group · group_weights + s · by_segment +
 * j · by_element. */
struct norm_shape {
    int64_t rows, groups, image_step, group_step, segments, segment_step, length;
    int64_t group_weights, by_segment, by_element;
    __device__ __forceinline__ int64_t size() const { return segments * length; }
    __device__ __forceinline__ int64_t at(int64_t row, int64_t i) const
    {
        int64_t start = row / groups * image_step + row % groups * group_step;
        return segments == 1 ? start + i : start + i / length * segment_step + i % length;
    }
    __device__ __forceinline__ int64_t weight(int64_t row, int64_t i) const
    {
        int64_t of = row % groups * group_weights;
        return segments == 1 ? of + i * by_element : of + i / length * by_segment + i % length * by_element;
    }
};

/* Rows and weights of layer_norm; then of group_norm (and instance_norm, with as many groups as channels). */
static norm_shape layer_shape(const cuda_tensor &x, int64_t axis)
{
    norm_shape n = {1, 1, 0, 0, 1, 0, 1, 0, 0, 1};
    for (int d = 0; d < x.ndim; d++) (d < axis ? n.rows : n.length) *= x.shape[d];
    n.image_step = n.length;
    return n;
}

static norm_channels channels_of(const cuda_tensor &x, bool last)
{
    norm_channels s = {x.shape[0], last ? x.dim(-1) : x.shape[1], 1, last};
    for (int d = last ? 1 : 2; d < (last ? x.ndim - 1 : x.ndim); d++) s.pixels *= x.shape[d];
    return s;
}

static norm_shape group_shape(const norm_channels &s, int64_t groups)
{
    int64_t each = s.channels / groups;
    norm_shape n = {s.images * groups, groups, s.channels * s.pixels};
    n.group_weights = each;
    n.group_step = s.last ? each : each * s.pixels;
    n.segments = s.last ? s.pixels : each;
    n.segment_step = s.last ? s.channels : s.pixels;
    n.length = s.last ? each : s.pixels;
    n.by_element = s.last;
    n.by_segment = !s.last;
    return n;
}

/* inverse: the saved statistic is 1 / deviation; else the variance. */
template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS)
    norm_rows_kernel(norm_shape n, const X *x, norm_parameter<X, A> weight, norm_parameter<X, A> bias,
                     double epsilon, bool inverse, X *out, A *mean, A *deviation)
{
    enum { V = T::V };
    int64_t first = (int64_t)T::thread() * V, size = n.size();
    for (CUDA_GROUPS(T, row, n.rows)) {
        A v[V], sum = 0, squares = 0;
        for (int64_t i = first; i < size; i += T::G * V) {
            cuda_take<V>(x + n.at(row, i), v);
            for (int k = 0; k < V; k++) sum += v[k];
        }
        A m = T::template reduce<cuda_sum>(sum) / (A)size;
        for (int64_t i = first; i < size; i += T::G * V) {
            cuda_take<V>(x + n.at(row, i), v);
            for (int k = 0; k < V; k++) squares += (v[k] - m) * (v[k] - m);
        }
        A variance = T::template reduce<cuda_sum>(squares) / (A)size;
        A r = 1 / sqrt(variance + (A)epsilon);
        for (int64_t i = first; i < size; i += T::G * V) {
            int64_t at = n.at(row, i), w = n.weight(row, i);
            cuda_take<V>(x + at, v);
            for (int k = 0; k < V; k++) {
                v[k] = (v[k] - m) * r * weight[w] + bias[w];
                w += n.by_element;
            }
            cuda_put_whole<V>(out + at, v);
        }
        if (T::thread()) continue;
        mean[row] = m;
        deviation[row] = inverse ? r : variance;
    }
}

/* dx = r · (g − mean(g) − x̂ · mean(g·x̂)), where g = d_out · weight. */
template <class X, class A, int G, int V>
__global__ void norm_grad_rows_kernel(norm_shape n, const X *x, const X *d, norm_parameter<X, A> weight,
                                      norm_statistics<X, A> of, X *dx)
{
    int64_t first = (int64_t)(threadIdx.x % G) * V, size = n.size();
    for (CUDA_ROWS(G, row, n.rows)) {
        A mean = of.mean[row], r = of.scale(row), v[V], g[V], sum_g = 0, sum_gx = 0;
        for (int64_t i = first; i < size; i += G * V) {
            int64_t at = n.at(row, i), w = n.weight(row, i);
            cuda_take<V>(x + at, v);
            cuda_take<V>(d + at, g);
            for (int k = 0; k < V; k++, w += n.by_element) {
                A gw = g[k] * weight[w];
                sum_g += gw;
                sum_gx += gw * ((v[k] - mean) * r);
            }
        }
        A mean_g = cuda_group_reduce<G, cuda_sum>(sum_g) / (A)size;
        A mean_gx = cuda_group_reduce<G, cuda_sum>(sum_gx) / (A)size;
        for (int64_t i = first; i < size; i += G * V) {
            int64_t at = n.at(row, i), w = n.weight(row, i);
            cuda_take<V>(x + at, v);
            cuda_take<V>(d + at, g);
            for (int k = 0; k < V; k++, w += n.by_element)
                v[k] = r * (g[k] * weight[w] - mean_g - (v[k] - mean) * r * mean_gx);
            cuda_put_whole<V>(dx + at, v);
        }
    }
}

/* ---- calls -------------------------------------------------------------------------------- */

template <class X> static bool packs(const norm_shape &n, const char *a, const char *b, const char *d)
{
    int64_t v = 16 / sizeof(X);
    bool steps =
        n.image_step % v == 0 && n.group_step % v == 0 && (n.segments == 1 || n.segment_step % v == 0);
    return steps && cuda_packs<X>(n.length, a, b, d);
}

/* layer: rows of contiguous elements, each with its weight */
static proa_status forward(cuda_context *c, const norm_shape &n, bool layer, const proa_tensor *from,
                           const proa_tensor *weight, const proa_tensor *bias, double epsilon, bool inverse,
                           const proa_tensor *to, const proa_tensor *mean, const proa_tensor *deviation)
{
    cuda_tensor x = cuda_look(from), out = cuda_look(to), m = cuda_look(mean), v = cuda_look(deviation);
    int64_t size = n.segments * n.length;
    if (x.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        norm_parameter<X, A> w = norm_parameter_of<X, A>(weight, x.dtype, 1),
                             b = norm_parameter_of<X, A>(bias, x.dtype, 0);
        bool packed = packs<X>(n, x.data, out.data, NULL);
        auto visit = [&](auto group) {
            typedef decltype(group) T;
            return cuda_launch(c, T::blocks(n.rows), T::THREADS, (norm_rows_kernel<X, A, T>), n, x.as<X>(), w,
                               b, epsilon, inverse, out.as<X>(), m.as<A>(), v.as<A>());
        };
        if (!layer) return cuda_visit<X, true, false>(size, packed, visit);
        auto held = [&](auto group) {
            typedef decltype(group) T;
            return cuda_launch(c, T::blocks(n.rows), T::THREADS, (layer_held_kernel<X, A, T>), n.rows,
                               n.length, x.as<X>(), w, b, epsilon, out.as<X>(), m.as<A>(), v.as<A>());
        };
        return cuda_hold<X, 512>(size, packed && layer_aligned(w, b), packed, held, visit);
    })
}

/* Operands of a gradient op, results included. */
struct norm_backward {
    const proa_tensor *x, *weight, *mean, *deviation, *d_out, *d_x, *d_weight, *d_bias;
    double epsilon;
    bool inverse;
    norm_channels channels; /* x by channels; the statistic of image i, channel c is */
    int64_t groups, each;   /* number i · groups + c / each */
};

/* The gradients of weight and bias, which read x and d_out once more. */
template <class X, class A> static proa_status parameters(cuda_context *c, const norm_backward &b)
{
    cuda_tensor x = cuda_look(b.x), d = cuda_look(b.d_out);
    norm_channels s = b.channels;
    norm_slices p = norm_slice(s);
    if (s.channels == 0) return PROA_OK;
    norm_sums *parts = (norm_sums *)cuda_scratch(c, (size_t)(s.channels * p.count) * sizeof *parts);
    if (!parts) return cuda_host->error();
    norm_parameter<X, A> mean = norm_parameter_of<X, A>(b.mean, x.dtype, 0),
                         deviation = norm_parameter_of<X, A>(b.deviation, x.dtype, 0);
    proa_status status =
        cuda_launch(c, cuda_blocks(norm_items(s, p), 1), CUDA_BLOCK, (norm_pairs_kernel<X, A>), s, p,
                    x.as<X>(), d.as<X>(), mean, deviation, !b.inverse, b.epsilon, b.groups, b.each, parts);
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(s.channels), CUDA_BLOCK, norm_pairs_end_kernel<norm_sums>, parts,
                             s.channels, p.count, norm_place_of(b.d_weight), norm_place_of(b.d_bias),
                             (norm_sums *)NULL);
    cuda_scratch_free(c, parts);
    return status;
}

static proa_status backward(cuda_context *c, const norm_shape &n, const norm_backward &b)
{
    cuda_tensor x = cuda_look(b.x), d = cuda_look(b.d_out), dx = cuda_look(b.d_x);
    int64_t size = n.segments * n.length;
    bool layer = n.groups == 1 && n.segments == 1 && n.by_element;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        norm_parameter<X, A> w = norm_parameter_of<X, A>(b.weight, x.dtype, 1);
        norm_statistics<X, A> of = {norm_parameter_of<X, A>(b.mean, x.dtype, 0),
                                    norm_parameter_of<X, A>(b.deviation, x.dtype, 0), b.inverse,
                                    (A)b.epsilon};
        if (layer && x.numel && size <= LAYER_LONGEST) {
            layer_gradients<X, A> g = {n.rows,
                                       (int)size,
                                       x.as<X>(),
                                       d.as<X>(),
                                       dx.as<X>(),
                                       w,
                                       of,
                                       norm_place_of(b.d_weight),
                                       norm_place_of(b.d_bias)};
            return layer_backward(c, g, packs<X>(n, x.data, d.data, dx.data) && layer_aligned(w, w));
        }
        PROA_TRY((parameters<X, A>(c, b)));
        if (x.numel == 0) return PROA_OK;
        CUDA_SWITCH_ROWS(X, size, packs<X>(n, x.data, d.data, dx.data), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, n.rows), CUDA_BLOCK, (norm_grad_rows_kernel<X, A, G, V>),
                               n, x.as<X>(), d.as<X>(), w, of, dx.as<X>());
        });
    })
}

static bool channels_last(proa_data_format f)
{
    return f == PROA_DATA_FORMAT_NHWC || f == PROA_DATA_FORMAT_NLC || f == PROA_DATA_FORMAT_NDHWC;
}

CUDA_KERNEL(layer_norm, CUDA_IS(a->x, CUDA_FLOATS))
{
    return forward(c, layer_shape(cuda_look(a->x), a->begin_norm_axis), true, a->x, a->weight, a->bias,
                   a->epsilon, false, a->out, a->mean, a->variance);
}

CUDA_KERNEL(layer_norm_grad, CUDA_IS(a->x, CUDA_FLOATS))
{
    norm_shape n = layer_shape(cuda_look(a->x), a->begin_norm_axis);
    norm_channels s = {n.rows, n.length, 1, true};
    norm_backward b = {a->x,
                       a->weight,
                       a->mean,
                       a->variance,
                       a->d_out,
                       a->d_x,
                       a->d_weight,
                       a->d_bias,
                       a->epsilon,
                       false,
                       s,
                       1,
                       n.length ? n.length : 1};
    return backward(c, n, b);
}

CUDA_KERNEL(group_norm, CUDA_IS(a->x, CUDA_FLOATS))
{
    norm_channels s = channels_of(cuda_look(a->x), channels_last(a->data_format));
    return forward(c, group_shape(s, a->num_groups), false, a->x, a->weight, a->bias, a->epsilon, false,
                   a->out, a->mean, a->variance);
}

CUDA_KERNEL(group_norm_grad, CUDA_IS(a->x, CUDA_FLOATS))
{
    norm_channels s = channels_of(cuda_look(a->x), channels_last(a->data_format));
    int64_t each = s.channels / a->num_groups;
    norm_backward b = {a->x,   a->weight,     a->mean,        a->variance, a->d_out,
                       a->d_x, a->d_weight,   a->d_bias,      a->epsilon,  false,
                       s,      a->num_groups, each ? each : 1};
    return backward(c, group_shape(s, a->num_groups), b);
}

CUDA_KERNEL(instance_norm, CUDA_IS(a->x, CUDA_FLOATS))
{
    norm_channels s = channels_of(cuda_look(a->x), false);
    return forward(c, group_shape(s, s.channels ? s.channels : 1), false, a->x, a->weight, a->bias,
                   a->epsilon, true, a->out, a->saved_mean, a->saved_variance);
}

CUDA_KERNEL(instance_norm_grad, CUDA_IS(a->x, CUDA_FLOATS))
{
    norm_channels s = channels_of(cuda_look(a->x), false);
    norm_backward b = {a->x,
                       a->weight,
                       a->saved_mean,
                       a->saved_variance,
                       a->d_out,
                       a->d_x,
                       a->d_weight,
                       a->d_bias,
                       a->epsilon,
                       true,
                       s,
                       s.channels,
                       1};
    return backward(c, group_shape(s, s.channels ? s.channels : 1), b);
}
