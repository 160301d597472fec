/* layer_norm, group_norm, instance_norm and their gradients on a GPU: one warp or block per row. layer_norm's
 * backward computes dx and partial sums of the parameter gradients in one pass if a row fits into a block's
 * registers; longer rows are read once more for the parameter gradients. */
#include "ops/norm/cuda/norm.h"

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
template <class X, class A, int G, int V>
__global__ void norm_rows_kernel(norm_shape n, const X *x, norm_parameter<X, A> weight,
                                 norm_parameter<X, A> bias, double epsilon, bool inverse, X *out, A *mean,
                                 A *deviation)
{
    int64_t first = (int64_t)(threadIdx.x % G) * V, size = n.size();
    for (CUDA_ROWS(G, row, n.rows)) {
        A v[V], sum = 0, squares = 0;
        for (int64_t i = first; i < size; i += G * V) {
            cuda_take<V>(x + n.at(row, i), v);
            for (int k = 0; k < V; k++) sum += v[k];
        }
        A m = cuda_group_reduce<G, cuda_sum>(sum) / (A)size;
        for (int64_t i = first; i < size; i += G * V) {
            cuda_take<V>(x + n.at(row, i), v);
            for (int k = 0; k < V; k++) squares += (v[k] - m) * (v[k] - m);
        }
        A variance = cuda_group_reduce<G, cuda_sum>(squares) / (A)size;
        A r = 1 / sqrt(variance + (A)epsilon);
        for (int64_t i = first; i < size; i += G * V) {
            int64_t at = n.at(row, i), w = n.weight(row, i);
            cuda_take<V>(x + at, v);
            for (int k = 0; k < V; k++) {
                v[k] = (v[k] - m) * r * weight[w] + bias[w];
                w += n.by_element;
            }
            cuda_put<V>(out + at, v);
        }
        if (threadIdx.x % G) continue;
        mean[row] = m;
        deviation[row] = inverse ? r : variance;
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
            cuda_put<V>(dx + at, v);
        }
    }
}

/* ---- layer_norm's gradient in one walk: a group of G threads a row, K columns a thread ------- */

enum { LAYER_SLICES = 512, LAYER_LONGEST = 8192 };

/* Threads of a block: a group, or eight warps with a slice of the rows each, which are summed at the end. */
template <int G> struct layer_threads {
    enum { N = G == 32 ? CUDA_BLOCK : G, GROUPS = N / G };
};

/* Columns are taken V at a time; a thread's k-th V stand G · V columns behind the ones before. */
template <class X, class A, int G, int K, int V>
__global__ void __launch_bounds__(layer_threads<G>::N)
    layer_grad_kernel(norm_shape n, const X *x, const X *d, norm_parameter<X, A> weight,
                      norm_statistics<X, A> of, X *dx, norm_sums *parts)
{
    enum { GROUPS = layer_threads<G>::GROUPS };
    double sum_g[K] = {0}, sum_gx[K] = {0};
    int64_t size = n.length, first = (int64_t)(threadIdx.x % G) * V;
    int64_t slice = (int64_t)blockIdx.x * GROUPS + threadIdx.x / G, slices = (int64_t)gridDim.x * GROUPS;
    for (int64_t row = n.rows * slice / slices; row < n.rows * (slice + 1) / slices; row++) {
        A mean = of.mean[row], r = of.scale(row), normal[K] = {}, g[K] = {}, gw = 0, gx = 0;
        for (int k = 0; k < K; k += V) {
            int64_t j = first + (int64_t)k * G;
            if (j >= size) break;
            cuda_take<V>(x + row * size + j, normal + k);
            cuda_take<V>(d + row * size + j, g + k);
            for (int i = k; i < k + V; i++) {
                normal[i] = (normal[i] - mean) * r;
                sum_g[i] += (double)g[i];
                sum_gx[i] += (double)(g[i] * normal[i]);
                g[i] *= weight[j + i - k];
                gw += g[i];
                gx += g[i] * normal[i];
            }
        }
        gw = cuda_group_reduce<G, cuda_sum>(gw) / (A)size;
        gx = cuda_group_reduce<G, cuda_sum>(gx) / (A)size;
        for (int k = 0; k < K; k += V) {
            int64_t j = first + (int64_t)k * G;
            if (j >= size) break;
            for (int i = k; i < k + V; i++) g[i] = r * (g[i] - gw - normal[i] * gx);
            cuda_put<V>(dx + row * size + j, g + k);
        }
    }
    if constexpr (GROUPS == 1) {
        for (int k = 0; k < K; k++) {
            int64_t j = first + (int64_t)(k / V) * V * G + k % V;
            if (j < size) parts[blockIdx.x * size + j] = {sum_g[k], sum_gx[k], 0};
        }
    } else {
        __shared__ double all_g[GROUPS * G * K], all_gx[GROUPS * G * K];
        for (int k = 0; k < K; k++) {
            int64_t at = (int64_t)(threadIdx.x / G) * G * K + first + (int64_t)(k / V) * V * G + k % V;
            all_g[at] = sum_g[k], all_gx[at] = sum_gx[k];
        }
        __syncthreads();
        for (int64_t j = threadIdx.x; j < size; j += blockDim.x) {
            norm_sums sum = {0, 0, 0};
            for (int q = 0; q < GROUPS; q++) sum.a += all_g[q * G * K + j], sum.b += all_gx[q * G * K + j];
            parts[blockIdx.x * size + j] = sum;
        }
    }
}

/* The columns' sums over the slices: NORM_COLUMNS columns a block. */
__global__ void layer_grad_end_kernel(const norm_sums *parts, int64_t n, int64_t slices, norm_place d_weight,
                                      norm_place d_bias)
{
    int64_t j = (int64_t)blockIdx.x * NORM_COLUMNS + threadIdx.x % NORM_COLUMNS;
    double g = 0, gx = 0;
    for (int64_t s = threadIdx.x / NORM_COLUMNS; j < n && s < slices; s += NORM_LINES)
        g += parts[s * n + j].a, gx += parts[s * n + j].b;
    g = norm_column_sum(g);
    gx = norm_column_sum(gx);
    if (j >= n || threadIdx.x >= NORM_COLUMNS) return;
    d_weight.set(j, gx);
    d_bias.set(j, g);
}

/* ---- calls -------------------------------------------------------------------------------- */

template <class X> static bool packs(const norm_shape &n, const char *a, const char *b, const char *d)
{
    int64_t v = 16 / sizeof(X);
    bool steps =
        n.image_step % v == 0 && n.group_step % v == 0 && (n.segments == 1 || n.segment_step % v == 0);
    return steps && cuda_packs<X>(n.length, a, b, d);
}

static proa_status forward(cuda_context *c, const norm_shape &n, const proa_tensor *from,
                           const proa_tensor *weight, const proa_tensor *bias, double epsilon, bool inverse,
                           const proa_tensor *to, const proa_tensor *mean, const proa_tensor *deviation)
{
    cuda_tensor x = cuda_look(from), out = cuda_look(to), m = cuda_look(mean), v = cuda_look(deviation);
    int64_t size = n.segments * n.length;
    if (x.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        norm_parameter<X, A> w = norm_parameter_of<X, A>(weight, x.dtype, 1),
                             b = norm_parameter_of<X, A>(bias, x.dtype, 0);
        CUDA_SWITCH_ROWS(X, size, packs<X>(n, x.data, out.data, NULL), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, n.rows), CUDA_BLOCK, (norm_rows_kernel<X, A, G, V>), n,
                               x.as<X>(), w, b, epsilon, inverse, out.as<X>(), m.as<A>(), v.as<A>());
        });
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

template <class X, class A, int G, int K, int V>
static proa_status layer_launch(cuda_context *c, const norm_shape &n, const norm_backward &b,
                                norm_parameter<X, A> weight, norm_statistics<X, A> of)
{
    const X *x = cuda_look(b.x).as<X>(), *d = cuda_look(b.d_out).as<X>();
    X *dx = cuda_look(b.d_x).as<X>();
    int64_t groups = layer_threads<G>::GROUPS, blocks = (n.rows + groups - 1) / groups;
    if (blocks > LAYER_SLICES) blocks = LAYER_SLICES;
    norm_sums *parts = (norm_sums *)cuda_scratch(c, (size_t)(blocks * n.length) * sizeof *parts);
    if (!parts) return cuda_host->error();
    proa_status status = cuda_launch(c, (unsigned)blocks, layer_threads<G>::N,
                                     (layer_grad_kernel<X, A, G, K, V>), n, x, d, weight, of, dx, parts);
    if (status == PROA_OK)
        status = cuda_launch(c, (unsigned)((n.length + NORM_COLUMNS - 1) / NORM_COLUMNS), CUDA_BLOCK,
                             layer_grad_end_kernel, parts, n.length, blocks, norm_place_of(b.d_weight),
                             norm_place_of(b.d_bias));
    cuda_scratch_free(c, parts);
    return status;
}

/* Rows of up to LAYER_LONGEST elements, which a block's registers hold. */
template <class X, class A, int V>
static proa_status layer_backward(cuda_context *c, const norm_shape &n, const norm_backward &b,
                                  norm_parameter<X, A> weight, norm_statistics<X, A> of)
{
    if (n.length <= 8 * 32) return layer_launch<X, A, 32, 8, V>(c, n, b, weight, of);
    if (n.length <= 8 * 128) return layer_launch<X, A, 128, 8, V>(c, n, b, weight, of);
    if (n.length <= 16 * 256) return layer_launch<X, A, 256, 16, V>(c, n, b, weight, of);
    return layer_launch<X, A, 512, 16, V>(c, n, b, weight, of);
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
        if (layer && x.numel && size <= LAYER_LONGEST)
            return packs<X>(n, x.data, d.data, dx.data) ? layer_backward<X, A, 16 / sizeof(X)>(c, n, b, w, of)
                                                        : layer_backward<X, A, 1>(c, n, b, w, of);
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
    return forward(c, layer_shape(cuda_look(a->x), a->begin_norm_axis), a->x, a->weight, a->bias, a->epsilon,
                   false, a->out, a->mean, a->variance);
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
    return forward(c, group_shape(s, a->num_groups), a->x, a->weight, a->bias, a->epsilon, false, a->out,
                   a->mean, a->variance);
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
    return forward(c, group_shape(s, s.channels ? s.channels : 1), a->x, a->weight, a->bias, a->epsilon, true,
                   a->out, a->saved_mean, a->saved_variance);
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
