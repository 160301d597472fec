/* interpolate and its gradient on a GPU. Source indices and weights of each axis are written into scratch;
 * then one thread per output mixes its taps, and backward one thread per input gathers from the outputs that
 * read it. Compiled without fused multiply-add contraction (cmake/cuda.cmake), so that source positions equal
 * Paddle's bit for bit. */
#include "devices/cuda/kernel.h"

#define TAPS_FN static __host__ __device__ __forceinline__ __attribute__((unused))
#include "ops/vision/taps.h"

/* One axis. In device memory: n source indices and weights per output, and for each input the outputs that
 * read it, [first, end). */
template <class W> struct resize_axis {
    int n;
    int64_t in, out;
    float step;
    double exact_step;
    int64_t *at, *first, *end;
    W *weight;
};

/* float64 images have weights in double, all others in float. */
template <class S> struct resize_weight {
    typedef float type;
};
template <> struct resize_weight<double> {
    typedef double type;
};

/* Images as [outer, depth, height, width, inner]; absent axes are of length 1. */
template <class W> struct resize_plan {
    int64_t outer, inner;
    bool align_corners, middle;
    resize_axis<W> axis[3];
};
template <class S> using resize_plan_of = resize_plan<typename resize_weight<S>::type>;

__global__ void resize_taps_kernel(resize_axis<float> x, bool align_corners, bool middle)
{
    for (CUDA_EACH(i, x.out))
        taps_of(x.n, i, x.in, x.step, align_corners, middle, x.at + i * x.n, x.weight + i * x.n);
}
__global__ void resize_exact_taps_kernel(resize_axis<double> x, bool align_corners, bool middle)
{
    for (CUDA_EACH(i, x.out))
        taps_of_exact(x.n, i, x.in, x.step, x.exact_step, align_corners, middle, x.at + i * x.n,
                      x.weight + i * x.n);
}

/* The least output whose tap k reads source index `place` or a greater one; indices never decrease. */
template <class W> CUDA_FN int64_t resize_search(const resize_axis<W> &x, int k, int64_t place)
{
    int64_t low = 0, high = x.out;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (x.at[middle * x.n + k] >= place) high = middle;
        else low = middle + 1;
    }
    return low;
}

template <class W> __global__ void resize_readers_kernel(resize_axis<W> x)
{
    for (CUDA_EACH(i, x.in)) {
        x.first[i] = resize_search(x, x.n - 1, i);
        x.end[i] = resize_search(x, 0, i + 1);
    }
}

struct resize_place {
    int64_t image, at[3], c;
};
template <class W> CUDA_FN resize_place resize_place_of(const resize_plan<W> &p, int64_t i, bool source)
{
    resize_place r;
    r.c = i % p.inner;
    i /= p.inner;
    for (int k = 2; k >= 0; k--) {
        int64_t n = source ? p.axis[k].in : p.axis[k].out;
        r.at[k] = i % n;
        i /= n;
    }
    r.image = i;
    return r;
}

template <class S> __global__ void resize_kernel(resize_plan_of<S> p, const S *from, S *to, int64_t n)
{
    typedef decltype(cuda_source<S>::get(*from)) T;
    for (CUDA_EACH(i, n)) {
        resize_place r = resize_place_of(p, i, false);
        const auto *x = p.axis;
        T sum = 0;
        for (int64_t d = r.at[0] * x[0].n; d < (r.at[0] + 1) * x[0].n; d++)
            for (int64_t h = r.at[1] * x[1].n; h < (r.at[1] + 1) * x[1].n; h++) {
                T by = (T)(x[0].weight[d] * x[1].weight[h]);
                const S *row =
                    from + ((r.image * x[0].in + x[0].at[d]) * x[1].in + x[1].at[h]) * x[2].in * p.inner;
                for (int64_t w = r.at[2] * x[2].n; w < (r.at[2] + 1) * x[2].n; w++)
                    sum += by * (T)x[2].weight[w] * cuda_source<S>::get(row[x[2].at[w] * p.inner + r.c]);
            }
        to[i] = cuda_cast<S>(sum);
    }
}

/* Bytes, their taps added in Paddle's order: in images width is outermost, in volumes depth. */
__global__ void resize_bytes_kernel(resize_plan<float> p, const uint8_t *from, uint8_t *to, int64_t n)
{
    const auto *x = p.axis;
    const int outer = x[0].n > 1 ? 1 : 2, inner = x[0].n > 1 ? 2 : 1;
    for (CUDA_EACH(i, n)) {
        resize_place r = resize_place_of(p, i, false);
        int tap[3];
        float sum = 0;
        for (tap[0] = 0; tap[0] < x[0].n; tap[0]++)
            for (tap[outer] = 0; tap[outer] < x[outer].n; tap[outer]++)
                for (tap[inner] = 0; tap[inner] < x[inner].n; tap[inner]++) {
                    int64_t k[3], at = r.image;
                    for (int a = 0; a < 3; a++) {
                        k[a] = r.at[a] * x[a].n + tap[a];
                        at = at * x[a].in + x[a].at[k[a]];
                    }
                    float v = from[at * p.inner + r.c];
                    for (int a = 0; a < 3; a++) v *= x[a].weight[k[a]];
                    sum += v;
                }
        to[i] = (uint8_t)sum;
    }
}

template <class S> __global__ void resize_nearest_kernel(resize_plan_of<S> p, const S *from, S *to, int64_t n)
{
    for (CUDA_EACH(i, n)) {
        resize_place r = resize_place_of(p, i, false);
        int64_t at = r.image;
        for (int k = 0; k < 3; k++) at = at * p.axis[k].in + p.axis[k].at[r.at[k]];
        to[i] = from[at * p.inner + r.c];
    }
}

/* Weight of input `place` in output `o` along an axis. */
template <class W> CUDA_FN W resize_share(const resize_axis<W> &x, int64_t o, int64_t place)
{
    W sum = 0;
    for (int k = 0; k < x.n; k++)
        if (x.at[o * x.n + k] == place) sum += x.weight[o * x.n + k];
    return sum;
}

template <class S> __global__ void resize_back_kernel(resize_plan_of<S> p, const S *from, S *to, int64_t n)
{
    typedef decltype(cuda_source<S>::get(*from)) T;
    for (CUDA_EACH(i, n)) {
        resize_place r = resize_place_of(p, i, true);
        const auto *x = p.axis;
        T sum = 0;
        for (int64_t d = x[0].first[r.at[0]]; d < x[0].end[r.at[0]]; d++)
            for (int64_t h = x[1].first[r.at[1]]; h < x[1].end[r.at[1]]; h++) {
                T by = (T)(resize_share(x[0], d, r.at[0]) * resize_share(x[1], h, r.at[1]));
                const S *row = from + ((r.image * x[0].out + d) * x[1].out + h) * x[2].out * p.inner;
                for (int64_t w = x[2].first[r.at[2]]; w < x[2].end[r.at[2]]; w++)
                    sum +=
                        by * (T)resize_share(x[2], w, r.at[2]) * cuda_source<S>::get(row[w * p.inner + r.c]);
            }
        to[i] = cuda_cast<S>(sum);
    }
}

/* ---- plans ----------------------------------------------------------------------------- */

/* Sizes and steps; returns the bytes of all tables. */
template <class A, class W>
static size_t plan_of(const A *a, const cuda_tensor &in, const cuda_tensor &out, resize_plan<W> *p)
{
    bool last = a->data_format == PROA_DATA_FORMAT_NHWC || a->data_format == PROA_DATA_FORMAT_NLC ||
                a->data_format == PROA_DATA_FORMAT_NDHWC;
    int spatial = in.ndim - 2, first = last ? 1 : 2;
    int taps = a->mode == PROA_INTERP_METHOD_NEAREST ? 1 : a->mode == PROA_INTERP_METHOD_BICUBIC ? 4 : 2;
    int64_t sizes[3], words = 0;
    bool sized = cuda_ints(&a->size, 3, sizes) > 0;
    p->outer = last ? in.shape[0] : in.shape[0] * in.shape[1];
    p->inner = last ? in.shape[in.ndim - 1] : 1;
    p->align_corners = a->align_corners;
    p->middle = a->align_mode == 0 && !a->align_corners;
    for (int k = 0; k < 3; k++) {
        resize_axis<W> *x = &p->axis[k];
        int axis = k - (3 - spatial);
        x->n = axis < 0 ? 1 : taps;
        x->in = axis < 0 ? 1 : in.shape[first + axis];
        x->out = axis < 0 ? 1 : out.shape[first + axis];
        double factor = sized || axis < 0 ? 0 : a->scale.at[a->scale.count == 1 ? 0 : axis];
        x->step = taps_step(x->in, x->out, a->align_corners, (float)factor);
        x->exact_step = taps_step_exact(x->in, x->out, a->align_corners, factor);
        words += 2 * x->out * x->n + 2 * x->in; /* indices, weights (8 bytes at most), readers */
    }
    return (size_t)words * sizeof(int64_t);
}

static proa_status fill_taps(cuda_context *c, const resize_plan<float> &p, resize_axis<float> x)
{
    return cuda_launch(c, cuda_blocks(x.out), CUDA_BLOCK, resize_taps_kernel, x, p.align_corners, p.middle);
}
static proa_status fill_taps(cuda_context *c, const resize_plan<double> &p, resize_axis<double> x)
{
    return cuda_launch(c, cuda_blocks(x.out), CUDA_BLOCK, resize_exact_taps_kernel, x, p.align_corners,
                       p.middle);
}

template <class W> static proa_status fill_tables(cuda_context *c, resize_plan<W> *p, void *memory, bool back)
{
    int64_t *at = (int64_t *)memory;
    for (int k = 0; k < 3; k++) {
        resize_axis<W> *x = &p->axis[k];
        x->at = at;
        x->weight = (W *)(at + x->out * x->n);
        x->first = at + 2 * x->out * x->n;
        x->end = x->first + x->in;
        at = x->end + x->in;
        resize_axis<W> axis = *x;
        PROA_TRY(fill_taps(c, *p, axis));
        if (back) PROA_TRY(cuda_launch(c, cuda_blocks(x->in), CUDA_BLOCK, resize_readers_kernel<W>, axis));
    }
    return PROA_OK;
}

#define RESIZE(S, kernel) \
    cuda_launch(c, cuda_blocks(to.numel), CUDA_BLOCK, kernel<S>, p, from.as<S>(), to.as<S>(), to.numel)

static proa_status resize_integers(cuda_context *c, const resize_plan<float> &p, const cuda_tensor &from,
                                   const cuda_tensor &to)
{
    if (p.axis[2].n > 1)
        return cuda_launch(c, cuda_blocks(to.numel), CUDA_BLOCK, resize_bytes_kernel, p, from.as<uint8_t>(),
                           to.as<uint8_t>(), to.numel);
    switch (cuda_item(to.dtype)) {
    case 1: return RESIZE(uint8_t, resize_nearest_kernel);
    case 4: return RESIZE(int32_t, resize_nearest_kernel);
    default: return RESIZE(int64_t, resize_nearest_kernel);
    }
}

static proa_status resize(cuda_context *c, const resize_plan<double> &p, const cuda_tensor &from,
                          const cuda_tensor &to, bool back)
{
    return back ? RESIZE(double, resize_back_kernel) : RESIZE(double, resize_kernel);
}

static proa_status resize(cuda_context *c, const resize_plan<float> &p, const cuda_tensor &from,
                          const cuda_tensor &to, bool back)
{
    if (to.dtype <= PROA_I64) return resize_integers(c, p, from, to);
    switch (to.dtype) {
    case PROA_F16: return back ? RESIZE(cuda_f16, resize_back_kernel) : RESIZE(cuda_f16, resize_kernel);
    case PROA_BF16: return back ? RESIZE(cuda_bf16, resize_back_kernel) : RESIZE(cuda_bf16, resize_kernel);
    default: return back ? RESIZE(float, resize_back_kernel) : RESIZE(float, resize_kernel);
    }
}

template <class W, class A>
static proa_status run_as(cuda_context *c, const A *a, const proa_tensor *small, const proa_tensor *large,
                          bool back)
{
    static const double zero = 0;
    cuda_tensor in = cuda_look(small), out = cuda_look(large);
    const cuda_tensor &from = back ? out : in, &to = back ? in : out;
    if (to.numel == 0) return PROA_OK;
    if (from.numel == 0) return cuda_fill(c, to.data, &zero, (size_t)cuda_item(to.dtype), to.numel);
    resize_plan<W> p = {};
    void *memory = cuda_scratch(c, plan_of(a, in, out, &p));
    if (!memory) return cuda_host->error();
    proa_status status = fill_tables(c, &p, memory, back);
    if (status == PROA_OK) status = resize(c, p, from, to, back);
    cuda_scratch_free(c, memory);
    return status;
}

template <class A>
static proa_status run(cuda_context *c, const A *a, const proa_tensor *small, const proa_tensor *large,
                       bool back)
{
    return cuda_look(small).dtype == PROA_F64 ? run_as<double>(c, a, small, large, back)
                                              : run_as<float>(c, a, small, large, back);
}

CUDA_KERNEL(interpolate, true) { return run(c, a, a->x, a->out, false); }
CUDA_KERNEL(interpolate_grad, CUDA_IS(a->d_x, CUDA_FLOATS)) { return run(c, a, a->d_x, a->d_out, true); }
