/* Pooling on a GPU: one thread per output forward; one thread per input backward, which gathers from the
 * outputs whose windows hold it, or, from given argmax indices, one block per plane that scans all outputs in
 * order. Where channels are last, a thread has 16 bytes of them. No atomics; sums are in window order, in
 * float or double. */
#include "devices/cuda/layout.h"
#include "devices/cuda/rows.h"

#define POOL_FN CUDA_FN __attribute__((unused))
#define POOL_DIV(n, by) cuda_div((n), (by))
#include "ops/padding.h"
#include "ops/pool/windows.h"

/* Position of vector i, of V channels, of a tensor with spatial sizes `size` (at). In the other tensor (input
 * for an output, output for an input) the plane of its image and first channel starts at element `plane`, and
 * pixels are `step` elements apart. */
struct pool_place {
    int64_t plane, step, at[3];
};

template <int V>
CUDA_FN pool_place pool_place_of(const pool_geometry &g, const int64_t *size, const int64_t *other, int64_t i)
{
    pool_place p;
    int64_t c = 0, outer = other[0] * other[1] * other[2];
    if (g.channels_last) c = cuda_split(i, g.channels / V) * V;
    for (int d = 2; d >= 0; d--) p.at[d] = size[d] == 1 ? 0 : cuda_split(i, size[d]);
    p.step = g.channels_last ? g.channels : 1;
    p.plane = g.channels_last ? i * outer * g.channels + c : i * outer;
    return p;
}

struct pool_box {
    int64_t from[3], to[3], full;
    CUDA_BOTH_MEMBER bool empty() const { return from[0] >= to[0] || from[1] >= to[1] || from[2] >= to[2]; }
};

CUDA_FN pool_box pool_box_of(const pool_geometry &g, const int64_t *out)
{
    pool_box b;
    b.full = 1;
    for (int d = 0; d < 3; d++) b.full *= pool_window(&g, d, out[d], &b.from[d], &b.to[d]);
    return b;
}

/* Divisor of an average; a window all in the padding is empty: its average is 0. */
CUDA_FN int64_t pool_area(const pool_geometry &g, const pool_box &b)
{
    int64_t area = b.full;
    if (g.exclusive) area = (b.to[0] - b.from[0]) * (b.to[1] - b.from[1]) * (b.to[2] - b.from[2]);
    return area > 0 ? area : 1;
}

/* use(v, at) for the pixels of a window in order, with the values of V channels; four are loaded at once. */
template <int V, class S, class Use>
CUDA_FN void pool_visit(const pool_geometry &g, const S *x, int64_t step, const pool_box &b, Use use)
{
    for (int64_t d = b.from[0]; d < b.to[0]; d++)
        for (int64_t h = b.from[1]; h < b.to[1]; h++)
            for (int64_t w = b.from[2]; w < b.to[2]; w += 4) {
                int64_t at = (d * g.in[1] + h) * g.in[2] + w;
                int many = b.to[2] - w < 4 ? (int)(b.to[2] - w) : 4;
                cuda_pack<S, V> in[4];
#pragma unroll
                for (int u = 0; u < 4; u++)
                    if (u < many) in[u] = *(const cuda_pack<S, V> *)(const void *)(x + (at + u) * step);
#pragma unroll
                for (int u = 0; u < 4; u++)
                    if (u < many) use(in[u], at + u);
            }
}

/* Indices of the first largest values, and those; index -1 if the window is empty. NaN is ignored unless it
 * comes first. */
template <int V, class P, class S, class A>
CUDA_FN void pool_largest(const pool_geometry &g, const S *x, int64_t step, const pool_box &b, A *value,
                          P *best)
{
    bool first = true;
    for (int k = 0; k < V; k++) value[k] = 0, best[k] = -1;
    pool_visit<V>(g, x, step, b, [&](const cuda_pack<S, V> &in, int64_t at) {
        for (int k = 0; k < V; k++) {
            A v = cuda_source<S>::get(in.at[k]);
            if (first || v > value[k]) value[k] = v, best[k] = (P)at;
        }
        first = false;
    });
}

/* Forward: averages of `from`, or its values at the argmax of x (from = x, or the values to pick); mask:
 * NULL, or receives the argmax indices. */
template <class S, class P, int V>
__global__ void __launch_bounds__(CUDA_BLOCK, V == 1 ? 4 : 3)
    pool_forward_kernel(pool_geometry g, const S *x, const S *from, S *out, int32_t *mask, int64_t n)
{
    typedef decltype(cuda_source<S>::get(S())) A;
    for (CUDA_EACH(i, n / V)) {
        pool_place p = pool_place_of<V>(g, g.out, g.in, i);
        pool_box b = pool_box_of(g, p.at);
        A value[V] = {};
        if (g.type != PROA_POOLING_TYPE_MAX) {
            pool_visit<V>(g, from + p.plane, p.step, b, [&](const cuda_pack<S, V> &in, int64_t) {
                for (int k = 0; k < V; k++) value[k] += cuda_source<S>::get(in.at[k]);
            });
            A area = (A)pool_area(g, b);
            for (int k = 0; k < V; k++) value[k] /= area;
        } else {
            P best[V];
            pool_largest<V>(g, x + p.plane, p.step, b, value, best);
            for (int k = 0; k < V; k++) {
                if (best[k] < 0) value[k] = x == from ? (A)POOL_NOTHING : (A)0;
                else if (x != from) value[k] = cuda_source<S>::get(from[p.plane + best[k] * p.step + k]);
                if (mask) mask[i * V + k] = (int32_t)best[k];
            }
        }
        cuda_put_whole<V>(out + i * V, value);
    }
}

/* Writes and reads V indices by accesses of up to 16 bytes. */
template <int V, class P> CUDA_FN void pool_put_places(P *to, const P *from)
{
    enum { EACH = V * sizeof(P) <= 16 ? V : 16 / (int)sizeof(P) };
    for (int k = 0; k < V; k += EACH) cuda_put_whole<EACH>(to + k, from + k);
}
template <int V, class P> CUDA_FN void pool_take_places(const P *from, P *to)
{
    enum { EACH = V * sizeof(P) <= 16 ? V : 16 / (int)sizeof(P) };
    for (int k = 0; k < V; k += EACH) cuda_take<EACH>(from + k, to + k);
}

template <class S, class P, int V>
__global__ void __launch_bounds__(CUDA_BLOCK, V == 1 ? 4 : 3)
    pool_places_kernel(pool_geometry g, const S *x, P *places, int64_t n)
{
    for (CUDA_EACH(i, n / V)) {
        pool_place p = pool_place_of<V>(g, g.out, g.in, i);
        decltype(cuda_source<S>::get(S())) value[V];
        P best[V];
        pool_largest<V>(g, x + p.plane, p.step, pool_box_of(g, p.at), value, best);
        pool_put_places<V>(places + i * V, best);
    }
}

/* One thread per V inputs: sums d_out of the outputs whose windows contain them; for max pooling, of those
 * whose argmax in `places` they are. */
template <class S, class P, int V>
__global__ void __launch_bounds__(CUDA_BLOCK, V == 1 ? 4 : 3)
    pool_backward_kernel(pool_geometry g, const P *places, const S *d_out, S *d_x, int64_t n)
{
    typedef decltype(cuda_source<S>::get(S())) A;
    for (CUDA_EACH(i, n / V)) {
        pool_place p = pool_place_of<V>(g, g.in, g.out, i);
        int64_t from[3], to[3], o[3];
        P me = (P)((p.at[0] * g.in[1] + p.at[1]) * g.in[2] + p.at[2]);
        for (int d = 0; d < 3; d++) {
            from[d] = 0, to[d] = 1;
            if (d >= 3 - g.dims) pool_reached(&g, d, p.at[d], &from[d], &to[d]);
        }
        A sum[V] = {};
        for (o[0] = from[0]; o[0] < to[0]; o[0]++)
            for (o[1] = from[1]; o[1] < to[1]; o[1]++)
                for (o[2] = from[2]; o[2] < to[2]; o[2]++) {
                    int64_t at = p.plane + ((o[0] * g.out[1] + o[1]) * g.out[2] + o[2]) * p.step;
                    A v[V];
                    P best[V];
                    cuda_take<V>(d_out + at, v);
                    if (places) pool_take_places<V>(places + at, best);
                    A area = places ? 1 : (A)pool_area(g, pool_box_of(g, o));
                    for (int k = 0; k < V; k++)
                        if (!places) sum[k] += v[k] / area;
                        else if (best[k] == me) sum[k] += v[k];
                }
        cuda_put_whole<V>(d_x + i * V, sum);
    }
}

/* d_x[mask[o]] += d_out[o], one block per plane. Each thread owns some inputs and scans all outputs in order;
 * indices outside the plane are ignored. T: the type in which d_x is summed. */
template <class S, class T>
__global__ void pool_scatter_kernel(const int32_t *mask, const S *d_out, T *d_x, int64_t planes, int64_t in,
                                    int64_t out)
{
    for (int64_t p = blockIdx.x; p < planes; p += gridDim.x) {
        for (int64_t i = threadIdx.x; i < in; i += CUDA_BLOCK) d_x[p * in + i] = 0;
        for (int64_t o = 0; o < out; o++) {
            int64_t at = mask[p * out + o];
            if (at < 0 || at >= in || at % CUDA_BLOCK != threadIdx.x) continue;
            d_x[p * in + at] += cuda_source<S>::get(d_out[p * out + o]);
        }
    }
}

template <class S, class T> __global__ void pool_narrow_kernel(const T *from, S *to, int64_t n)
{
    for (CUDA_EACH(i, n)) to[i] = cuda_cast<S>(from[i]);
}

/* ---- geometry -------------------------------------------------------------------------- */

static int64_t pixels(const int64_t *size) { return size[0] * size[1] * size[2]; }

/* Attributes of an op of the family; those that it lacks are NULL or zero. Inference has checked them. */
struct pool_attributes {
    int dims;
    const proa_tensor *in, *out;
    const proa_ints *kernel, *stride, *padding;
    bool exclusive, adaptive;
    proa_pooling_type type;
    proa_data_format format;
    proa_padding_algorithm algorithm;
};

static bool pool_says_last(proa_data_format f)
{
    return f == PROA_DATA_FORMAT_NHWC || f == PROA_DATA_FORMAT_NLC || f == PROA_DATA_FORMAT_NDHWC;
}
/* True if the kernel works on channels-last memory although the op's attribute says channels first, as x is
 * stored so. */
static bool pool_is_channels_last(const proa_tensor *x, proa_data_format f)
{
    return cuda_is_channels_last(x) && !pool_says_last(f);
}
static void padding_of(const pool_attributes &a, pool_geometry *g)
{
    for (int i = 0; i < a.dims; i++) {
        int at = 3 - a.dims + i;
        if (a.algorithm == PROA_PADDING_ALGORITHM_SAME)
            proa__same_padding(g->in[at], g->kernel[at], g->stride[at], &g->before[at], &g->after[at]);
        if (a.algorithm != PROA_PADDING_ALGORITHM_EXPLICIT) continue;
        int each = a.padding->count == a.dims ? 1 : 2;
        g->before[at] = a.padding->at[i * each];
        g->after[at] = a.padding->at[i * each + each - 1];
    }
}

/* `channels_last`: the memory is channels last, whatever the op's attribute says. */
static pool_geometry geometry_of(const pool_attributes &a, bool channels_last)
{
    pool_geometry g = {};
    cuda_tensor in = cuda_look(a.in), out = cuda_look(a.out);
    g.dims = a.dims;
    g.channels_last = pool_says_last(a.format);
    g.adaptive = a.adaptive;
    g.exclusive = a.exclusive || a.adaptive;
    g.type = a.type;
    g.batch = in.shape[0];
    g.channels = in.shape[g.channels_last ? a.dims + 1 : 1];
    int first = g.channels_last ? 1 : 2;
    for (int i = 0; i < 3; i++) g.in[i] = g.out[i] = g.kernel[i] = g.stride[i] = 1;
    for (int i = 0; i < a.dims; i++) {
        int at = 3 - a.dims + i;
        g.in[at] = in.shape[first + i];
        g.out[at] = out.shape[first + i];
        g.kernel[at] = a.kernel->at[i];
        g.stride[at] = a.stride && a.stride->count ? a.stride->at[i] : a.kernel->at[i];
    }
    if (!a.adaptive) padding_of(a, &g);
    g.channels_last = g.channels_last || channels_last;
    return g;
}

/* body with S the C type of floating dtype d. */
#define SWITCH_STORED(d, S, ...) \
    do {                         \
        switch (d) {             \
        case PROA_F16: {         \
            typedef cuda_f16 S;  \
            __VA_ARGS__          \
        }                        \
        case PROA_BF16: {        \
            typedef cuda_bf16 S; \
            __VA_ARGS__          \
        }                        \
        case PROA_F32: {         \
            typedef float S;     \
            __VA_ARGS__          \
        }                        \
        default: {               \
            typedef double S;    \
            __VA_ARGS__          \
        }                        \
        }                        \
    } while (0)

/* launch(index, vector) with the type of an index in a plane and a pool_vector of a thread's channels. */
template <int V> struct pool_vector {
    enum { value = V };
};
template <class S, class F>
static proa_status pool_vectors(const pool_geometry &g, const void *a, const void *b, const void *d, F launch)
{
    if (pixels(g.in) > INT32_MAX) return launch(int64_t(), pool_vector<1>());
    if (g.channels_last && cuda_packs<S>(g.channels, a, b, d))
        return launch(int32_t(), pool_vector<16 / (int)sizeof(S)>());
    return launch(int32_t(), pool_vector<1>());
}

static proa_status pool_forward(cuda_context *c, const pool_attributes &a, const proa_tensor *from,
                                proa_tensor *out, proa_tensor *mask)
{
    cuda_layout layout(c, !mask &&
                              pool_is_channels_last(a.in, a.format)); /* argmax indices are channels-first */
    pool_geometry g = geometry_of(a, layout.last);
    cuda_tensor x = cuda_look(a.in), v = cuda_look(from), y = cuda_look(out);
    int32_t *places = mask ? cuda_look(mask).as<int32_t>() : NULL;
    if (mask && pixels(g.in) > INT32_MAX)
        return cuda_fail(PROA_ERR_OVERFLOW,
                         "%s: x has planes of more than 2^31 elements, too many for an int32 mask",
                         c->running ? c->running->name : "pooling");
    if (y.numel == 0) return PROA_OK;
    PROA_TRY(layout.take(&x));
    if (from == a.in) v = x;
    else PROA_TRY(layout.take(&v));
    PROA_TRY(layout.place(&y));
    SWITCH_STORED(x.dtype, S, {
        PROA_TRY(pool_vectors<S>(g, x.data, v.data, y.data, [&](auto index, auto vector) {
            typedef decltype(index) P;
            enum { V = decltype(vector)::value };
            return cuda_launch(c, cuda_blocks(y.numel / V), CUDA_BLOCK, (pool_forward_kernel<S, P, V>), g,
                               x.as<S>(), v.as<S>(), y.as<S>(), places, y.numel);
        }));
        return layout.give(out, y);
    });
}

template <class S, class P, int V>
static proa_status backward_as(cuda_context *c, const pool_geometry &g, const cuda_tensor &x,
                               const cuda_tensor &d, const cuda_tensor &to)
{
    P *places = NULL;
    if (g.type == PROA_POOLING_TYPE_MAX) {
        places = (P *)cuda_scratch(c, (size_t)d.numel * sizeof *places);
        if (!places) return cuda_host->error();
    }
    proa_status status = PROA_OK;
    if (places && d.numel)
        status = cuda_launch(c, cuda_blocks(d.numel / V), CUDA_BLOCK, (pool_places_kernel<S, P, V>), g,
                             x.as<S>(), places, d.numel);
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(to.numel / V), CUDA_BLOCK, (pool_backward_kernel<S, P, V>), g,
                             places, d.as<S>(), to.as<S>(), to.numel);
    if (places) cuda_scratch_free(c, places);
    return status;
}

static proa_status pool_backward(cuda_context *c, const pool_attributes &a, proa_tensor *d_x)
{
    cuda_layout layout(c, pool_is_channels_last(a.in, a.format));
    pool_geometry g = geometry_of(a, layout.last);
    cuda_tensor x = cuda_look(a.in), d = cuda_look(a.out), to = cuda_look(d_x);
    if (to.numel == 0) return PROA_OK;
    PROA_TRY(layout.take(&x));
    PROA_TRY(layout.take(&d));
    PROA_TRY(layout.place(&to));
    SWITCH_STORED(x.dtype, S, {
        PROA_TRY(pool_vectors<S>(g, x.data, d.data, to.data, [&](auto index, auto vector) {
            return backward_as<S, decltype(index), decltype(vector)::value>(c, g, x, d, to);
        }));
        return layout.give(d_x, to);
    });
}

template <class S>
static proa_status scatter(cuda_context *c, const cuda_tensor &mask, const cuda_tensor &d,
                           const cuda_tensor &to, int64_t planes)
{
    typedef decltype(cuda_source<S>::get(S())) T;
    int64_t in = to.numel / planes, out = d.numel / planes;
    bool narrow = sizeof(S) < sizeof(T);
    T *sums = narrow ? (T *)cuda_scratch(c, (size_t)to.numel * sizeof(T)) : to.as<T>();
    if (!sums) return cuda_host->error();
    proa_status status = cuda_launch(c, cuda_blocks(planes, 1), CUDA_BLOCK, (pool_scatter_kernel<S, T>),
                                     mask.as<int32_t>(), d.as<S>(), sums, planes, in, out);
    if (!narrow) return status;
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(to.numel), CUDA_BLOCK, (pool_narrow_kernel<S, T>), sums,
                             to.as<S>(), to.numel);
    cuda_scratch_free(c, sums);
    return status;
}

static proa_status pool_scatter(cuda_context *c, const proa_tensor *mask, const proa_tensor *d_out,
                                proa_tensor *d_x)
{
    cuda_tensor m = cuda_look(mask), d = cuda_look(d_out), to = cuda_look(d_x);
    if (to.numel == 0) return PROA_OK;
    SWITCH_STORED(to.dtype, S, { return scatter<S>(c, m, d, to, to.shape[0] * to.shape[1]); });
}

/* ---- the ops --------------------------------------------------------------------------- */

#define CAN_POOL CUDA_IS(a->x, CUDA_FLOATS)
#define POOL_IS_CHANNELS_LAST pool_is_channels_last(a->x, a->data_format)
static int rank_of(const proa_tensor *x) { return cuda_look(x).ndim - 2; }

/* Attributes of an op with windows of a size, and of one with windows for a number of outputs. */
template <class A>
static pool_attributes windows_of(const A *a, const proa_tensor *out, bool exclusive, bool adaptive,
                                  proa_pooling_type type)
{
    return {rank_of(a->x), a->x,     out,  &a->kernel_size, &a->stride,          &a->padding,
            exclusive,     adaptive, type, a->data_format,  a->padding_algorithm};
}
template <class A> static pool_attributes adaptive_of(const A *a, proa_pooling_type type)
{
    return {rank_of(a->x),
            a->x,
            a->out,
            &a->output_size,
            NULL,
            NULL,
            true,
            true,
            type,
            a->data_format,
            PROA_PADDING_ALGORITHM_VALID};
}

CUDA_KERNEL_CHANNELS_LAST(max_pool1d, CAN_POOL, out, POOL_IS_CHANNELS_LAST)
{
    return pool_forward(c, windows_of(a, a->out, false, false, PROA_POOLING_TYPE_MAX), a->x, a->out, NULL);
}
CUDA_KERNEL_ALSO(max_pool2d, max_pool1d)
CUDA_KERNEL_ALSO(max_pool3d, max_pool1d)

CUDA_KERNEL_CHANNELS_LAST(avg_pool1d, CAN_POOL, out, POOL_IS_CHANNELS_LAST)
{
    pool_attributes v = windows_of(a, a->out, a->exclusive, false, PROA_POOLING_TYPE_AVG);
    return pool_forward(c, v, a->x, a->out, NULL);
}
CUDA_KERNEL_ALSO(avg_pool2d, avg_pool1d)
CUDA_KERNEL_ALSO(avg_pool3d, avg_pool1d)

CUDA_KERNEL_CHANNELS_LAST(adaptive_max_pool1d, CAN_POOL, out, POOL_IS_CHANNELS_LAST)
{
    return pool_forward(c, adaptive_of(a, PROA_POOLING_TYPE_MAX), a->x, a->out, NULL);
}
CUDA_KERNEL_ALSO(adaptive_max_pool2d, adaptive_max_pool1d)
CUDA_KERNEL_ALSO(adaptive_max_pool3d, adaptive_max_pool1d)

CUDA_KERNEL_CHANNELS_LAST(adaptive_avg_pool1d, CAN_POOL, out, POOL_IS_CHANNELS_LAST)
{
    return pool_forward(c, adaptive_of(a, PROA_POOLING_TYPE_AVG), a->x, a->out, NULL);
}
CUDA_KERNEL_ALSO(adaptive_avg_pool2d, adaptive_avg_pool1d)
CUDA_KERNEL_ALSO(adaptive_avg_pool3d, adaptive_avg_pool1d)

CUDA_KERNEL_CHANNELS_LAST(pool2d_grad, CAN_POOL, d_x, POOL_IS_CHANNELS_LAST)
{
    return pool_backward(c, windows_of(a, a->d_out, a->exclusive, a->adaptive, a->pooling_type), a->d_x);
}
CUDA_KERNEL_ALSO(pool3d_grad, pool2d_grad)

CUDA_KERNEL_CHANNELS_LAST(pool2d_double_grad, CAN_POOL, out, POOL_IS_CHANNELS_LAST)
{
    pool_attributes v = windows_of(a, a->out, a->exclusive, a->adaptive, a->pooling_type);
    return pool_forward(c, v, a->v, a->out, NULL);
}
CUDA_KERNEL_ALSO(pool3d_double_grad, pool2d_double_grad)

CUDA_KERNEL(max_pool2d_with_index, CAN_POOL)
{
    pool_attributes v = {rank_of(a->x),
                         a->x,
                         a->out,
                         &a->kernel_size,
                         &a->stride,
                         &a->padding,
                         false,
                         a->adaptive,
                         PROA_POOLING_TYPE_MAX,
                         PROA_DATA_FORMAT_NCHW,
                         PROA_PADDING_ALGORITHM_EXPLICIT};
    return pool_forward(c, v, a->x, a->out, a->mask);
}
CUDA_KERNEL_ALSO(max_pool3d_with_index, max_pool2d_with_index)

CUDA_KERNEL(max_pool2d_with_index_grad, CAN_POOL) { return pool_scatter(c, a->mask, a->d_out, a->d_x); }
CUDA_KERNEL_ALSO(max_pool3d_with_index_grad, max_pool2d_with_index_grad)
