/* softmax, log_softmax and their gradients on a GPU: one warp or block per row where the axis is the last,
 * otherwise one thread per slice, so that accesses coalesce. Maximum and sum come from one pass (Milakov and
 * Gimelshein, 2018). */
#include "devices/cuda/kernel.h"

/* A tensor as outer × n × inner, with n the axis. */
struct softmax_shape {
    int64_t outer, n, inner;
};

static softmax_shape shape_of(const cuda_tensor &t, int64_t axis)
{
    softmax_shape s = {1, 1, 1};
    if (axis < 0) axis += t.ndim;
    for (int d = 0; d < t.ndim; d++) (d < axis ? s.outer : d == axis ? s.n : s.inner) *= t.shape[d];
    return s;
}

/* sum = Σ e^(x − top) so far; more elements may raise top. */
template <class A> struct softmax_state {
    A top, sum;
};
template <class A, int V> CUDA_FN void softmax_add(softmax_state<A> *s, const A *x)
{
    A top = s->top;
    for (int k = 0; k < V; k++) top = cuda_max::join(top, x[k]);
    if (top == (A)-INFINITY) return;
    s->sum *= exp(s->top - top);
    for (int k = 0; k < V; k++) s->sum += exp(x[k] - top);
    s->top = top;
}

template <class X, class A, int G, int V>
__global__ void softmax_rows_kernel(const X *x, X *y, int64_t rows, int64_t n, bool is_log)
{
    for (CUDA_ROWS(G, row, rows)) {
        const X *from = x + row * n;
        softmax_state<A> s = {(A)-INFINITY, 0};
        A v[V];
        for (int64_t i = (int64_t)(threadIdx.x % G) * V; i < n; i += G * V) {
            cuda_take<V>(from + i, v);
            softmax_add<A, V>(&s, v);
        }
        A top = cuda_group_reduce<G, cuda_max>(s.top);
        A sum = cuda_group_reduce<G, cuda_sum>(s.top == top ? s.sum : s.sum * exp(s.top - top));
        A shift = is_log ? log(sum) : 1 / sum;
        for (int64_t i = (int64_t)(threadIdx.x % G) * V; i < n; i += G * V) {
            cuda_take<V>(from + i, v);
            for (int k = 0; k < V; k++) v[k] = is_log ? v[k] - top - shift : exp(v[k] - top) * shift;
            cuda_put<V>(y + row * n + i, v);
        }
    }
}

template <class X, class A>
__global__ void softmax_slices_kernel(const X *x, X *y, softmax_shape shape, bool is_log)
{
    for (CUDA_EACH(i, shape.outer * shape.inner)) {
        int64_t at = i / shape.inner * shape.n * shape.inner + i % shape.inner;
        softmax_state<A> s = {(A)-INFINITY, 0};
        for (int64_t k = 0; k < shape.n; k++) {
            A v = cuda_cast<A>(x[at + k * shape.inner]);
            softmax_add<A, 1>(&s, &v);
        }
        A shift = is_log ? log(s.sum) : 1 / s.sum;
        for (int64_t k = 0; k < shape.n; k++) {
            A v = cuda_cast<A>(x[at + k * shape.inner]);
            v = is_log ? v - s.top - shift : exp(v - s.top) * shift;
            y[at + k * shape.inner] = cuda_cast<X>(v);
        }
    }
}

/* dx = y · (d − Σ d·y); of the logarithm dx = d − e^y · Σ d. */
template <class X, class A, int G, int V>
__global__ void softmax_grad_rows_kernel(const X *y, const X *d, X *dx, int64_t rows, int64_t n, bool is_log)
{
    for (CUDA_ROWS(G, row, rows)) {
        const X *yr = y + row * n, *dr = d + row * n;
        A a[V], b[V], sum = 0;
        for (int64_t i = (int64_t)(threadIdx.x % G) * V; i < n; i += G * V) {
            cuda_take<V>(yr + i, a);
            cuda_take<V>(dr + i, b);
            for (int k = 0; k < V; k++) sum += is_log ? b[k] : a[k] * b[k];
        }
        sum = cuda_group_reduce<G, cuda_sum>(sum);
        for (int64_t i = (int64_t)(threadIdx.x % G) * V; i < n; i += G * V) {
            cuda_take<V>(yr + i, a);
            cuda_take<V>(dr + i, b);
            for (int k = 0; k < V; k++) a[k] = is_log ? b[k] - exp(a[k]) * sum : a[k] * (b[k] - sum);
            cuda_put<V>(dx + row * n + i, a);
        }
    }
}

template <class X, class A>
__global__ void softmax_grad_slices_kernel(const X *y, const X *d, X *dx, softmax_shape shape, bool is_log)
{
    for (CUDA_EACH(i, shape.outer * shape.inner)) {
        int64_t at = i / shape.inner * shape.n * shape.inner + i % shape.inner;
        A sum = 0;
        for (int64_t k = 0, j = at; k < shape.n; k++, j += shape.inner)
            sum += is_log ? cuda_cast<A>(d[j]) : cuda_cast<A>(d[j]) * cuda_cast<A>(y[j]);
        for (int64_t k = 0, j = at; k < shape.n; k++, j += shape.inner) {
            A a = cuda_cast<A>(y[j]), b = cuda_cast<A>(d[j]);
            dx[j] = cuda_cast<X>(is_log ? b - exp(a) * sum : a * (b - sum));
        }
    }
}

static proa_status forward(cuda_context *c, const proa_tensor *from, const proa_tensor *to, int64_t axis,
                           bool is_log)
{
    cuda_tensor x = cuda_look(from), y = cuda_look(to);
    softmax_shape s = shape_of(x, axis);
    if (x.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        if (s.inner > 1)
            return cuda_launch(c, cuda_blocks(s.outer * s.inner), CUDA_BLOCK, (softmax_slices_kernel<X, A>),
                               x.as<X>(), y.as<X>(), s, is_log);
        CUDA_SWITCH_ROWS(X, s.n, cuda_packs<X>(s.n, x.data, y.data, NULL), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, s.outer), CUDA_BLOCK, (softmax_rows_kernel<X, A, G, V>),
                               x.as<X>(), y.as<X>(), s.outer, s.n, is_log);
        });
    })
}

static proa_status backward(cuda_context *c, const proa_tensor *out, const proa_tensor *d_out,
                            const proa_tensor *to, int64_t axis, bool is_log)
{
    cuda_tensor y = cuda_look(out), d = cuda_look(d_out), dx = cuda_look(to);
    softmax_shape s = shape_of(y, axis);
    if (y.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(y.dtype, X, A, {
        if (s.inner > 1)
            return cuda_launch(c, cuda_blocks(s.outer * s.inner), CUDA_BLOCK,
                               (softmax_grad_slices_kernel<X, A>), y.as<X>(), d.as<X>(), dx.as<X>(), s,
                               is_log);
        CUDA_SWITCH_ROWS(X, s.n, cuda_packs<X>(s.n, y.data, d.data, dx.data), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, s.outer), CUDA_BLOCK,
                               (softmax_grad_rows_kernel<X, A, G, V>), y.as<X>(), d.as<X>(), dx.as<X>(),
                               s.outer, s.n, is_log);
        });
    })
}

CUDA_KERNEL(softmax, CUDA_IS(a->x, CUDA_FLOATS)) { return forward(c, a->x, a->out, a->axis, false); }
CUDA_KERNEL(log_softmax, CUDA_IS(a->x, CUDA_FLOATS)) { return forward(c, a->x, a->out, a->axis, true); }
CUDA_KERNEL(softmax_grad, CUDA_IS(a->out, CUDA_FLOATS))
{
    return backward(c, a->out, a->d_out, a->d_x, a->axis, false);
}
CUDA_KERNEL(log_softmax_grad, CUDA_IS(a->out, CUDA_FLOATS))
{
    return backward(c, a->out, a->d_out, a->d_x, a->axis, true);
}
