/* softmax, log_softmax and their gradients on a GPU: one warp or block per row where the axis is the last,
 * which registers hold where they can; otherwise one thread per slice, so that accesses coalesce. */
#include "devices/cuda/rows.h"

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

template <class X, class A, class T, bool LOG>
__global__ void __launch_bounds__(T::THREADS, sizeof(A) == 8 ? 1 : T::RESIDENT)
    softmax_held_kernel(const X *x, X *y, int64_t rows, int64_t n)
{
    for (CUDA_GROUPS(T, row, rows)) {
        cuda_held<A, T> held;
        A top, sum;
        held.load(x + row * n, (int)n, (A)-INFINITY);
        cuda_held_sum<!LOG, X>(held, &top, &sum);
        A shift = LOG ? log(sum) : 1 / sum;
        held.each([&](A &v) { v = LOG ? v - top - shift : v * shift; });
        held.store(y + row * n, (int)n);
    }
}

/* The second pass reads backward: a cache still holds the row's end. */
template <class X, class A, class T, bool LOG>
__global__ void __launch_bounds__(T::THREADS) softmax_rows_kernel(const X *x, X *y, int64_t rows, int64_t n)
{
    for (CUDA_GROUPS(T, row, rows)) {
        A top, sum;
        cuda_row_sum<T>(x + row * n, n, &top, &sum);
        A shift = LOG ? log(sum) : 1 / sum;
        cuda_row<true, T, A>(x + row * n, y + row * n, n, true, [&](auto width, A *v, int64_t) {
            for (int k = 0; k < decltype(width)::value; k++)
                v[k] = LOG ? v[k] - top - shift : cuda_exp<X>::of(v[k] - top) * shift;
        });
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
template <class X, bool LOG, class A> CUDA_FN A softmax_slope(A y, A d, A sum)
{
    return LOG ? d - cuda_exp<X>::of(y) * sum : y * (d - sum);
}
template <class X, class A, class T, bool LOG>
__global__ void __launch_bounds__(T::THREADS, sizeof(A) == 8 ? 1 : T::RESIDENT - 1)
    softmax_grad_held_kernel(const X *y, const X *d, X *dx, int64_t rows, int64_t n)
{
    for (CUDA_GROUPS(T, row, rows)) {
        cuda_held<A, T> a, b;
        A sum = 0;
        a.load(y + row * n, (int)n, 0);
        b.load(d + row * n, (int)n, 0);
        for (int k = 0; k < T::K; k++)
            for (int j = 0; j < T::V; j++) sum += LOG ? b.v[k][j] : a.v[k][j] * b.v[k][j];
        sum = T::template reduce<cuda_sum>(sum);
        for (int k = 0; k < T::K; k++)
            for (int j = 0; j < T::V; j++) a.v[k][j] = softmax_slope<X, LOG>(a.v[k][j], b.v[k][j], sum);
        a.store(dx + row * n, (int)n);
    }
}

template <class X, class A, class T, bool LOG>
__global__ void __launch_bounds__(T::THREADS)
    softmax_grad_rows_kernel(const X *y, const X *d, X *dx, int64_t rows, int64_t n)
{
    for (CUDA_GROUPS(T, row, rows)) {
        const X *yr = y + row * n;
        A sum = 0;
        cuda_row<false, T, A>(d + row * n, (X *)NULL, n, false, [&](auto width, A *v, int64_t i) {
            enum { W = decltype(width)::value };
            A a[W];
            if (!LOG) cuda_take<W>(yr + i, a);
            for (int k = 0; k < W; k++) sum += LOG ? v[k] : a[k] * v[k];
        });
        sum = T::template reduce<cuda_sum>(sum);
        cuda_row<true, T, A>(d + row * n, dx + row * n, n, true, [&](auto width, A *v, int64_t i) {
            enum { W = decltype(width)::value };
            A a[W];
            cuda_take<W>(yr + i, a);
            for (int k = 0; k < W; k++) v[k] = softmax_slope<X, LOG>(a[k], v[k], sum);
        });
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

template <class X, class A, bool LOG>
static proa_status forward_rows(cuda_context *c, const X *x, X *y, int64_t rows, int64_t n)
{
    auto held = [&](auto group) {
        typedef decltype(group) T;
        return cuda_launch(c, T::blocks(rows), T::THREADS, (softmax_held_kernel<X, A, T, LOG>), x, y, rows,
                           n);
    };
    auto visit = [&](auto group) {
        typedef decltype(group) T;
        return cuda_launch(c, T::blocks(rows), T::THREADS, (softmax_rows_kernel<X, A, T, LOG>), x, y, rows,
                           n);
    };
    return cuda_hold<X, 512>(n, cuda_packs<X>(n, x, y, NULL), cuda_alike(x, y, y), held, visit);
}

template <bool LOG>
static proa_status forward(cuda_context *c, const proa_tensor *from, const proa_tensor *to, int64_t axis)
{
    cuda_tensor x = cuda_look(from), y = cuda_look(to);
    softmax_shape s = shape_of(x, axis);
    if (x.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        if (s.inner > 1)
            return cuda_launch(c, cuda_blocks(s.outer * s.inner), CUDA_BLOCK, (softmax_slices_kernel<X, A>),
                               x.as<X>(), y.as<X>(), s, LOG);
        return forward_rows<X, A, LOG>(c, x.as<X>(), y.as<X>(), s.outer, s.n);
    })
}

template <class X, class A, bool LOG>
static proa_status backward_rows(cuda_context *c, const X *y, const X *d, X *dx, int64_t rows, int64_t n)
{
    auto held = [&](auto group) {
        typedef decltype(group) T;
        return cuda_launch(c, T::blocks(rows), T::THREADS, (softmax_grad_held_kernel<X, A, T, LOG>), y, d, dx,
                           rows, n);
    };
    auto visit = [&](auto group) {
        typedef decltype(group) T;
        return cuda_launch(c, T::blocks(rows), T::THREADS, (softmax_grad_rows_kernel<X, A, T, LOG>), y, d, dx,
                           rows, n);
    };
    return cuda_hold<X, 256>(n, cuda_packs<X>(n, y, d, dx), cuda_alike(y, d, dx), held, visit);
}

template <bool LOG>
static proa_status backward(cuda_context *c, const proa_tensor *out, const proa_tensor *d_out,
                            const proa_tensor *to, int64_t axis)
{
    cuda_tensor y = cuda_look(out), d = cuda_look(d_out), dx = cuda_look(to);
    softmax_shape s = shape_of(y, axis);
    if (y.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(y.dtype, X, A, {
        if (s.inner > 1)
            return cuda_launch(c, cuda_blocks(s.outer * s.inner), CUDA_BLOCK,
                               (softmax_grad_slices_kernel<X, A>), y.as<X>(), d.as<X>(), dx.as<X>(), s, LOG);
        return backward_rows<X, A, LOG>(c, y.as<X>(), d.as<X>(), dx.as<X>(), s.outer, s.n);
    })
}

CUDA_KERNEL(softmax, CUDA_IS(a->x, CUDA_FLOATS)) { return forward<false>(c, a->x, a->out, a->axis); }
CUDA_KERNEL(log_softmax, CUDA_IS(a->x, CUDA_FLOATS)) { return forward<true>(c, a->x, a->out, a->axis); }
CUDA_KERNEL(softmax_grad, CUDA_IS(a->out, CUDA_FLOATS))
{
    return backward<false>(c, a->out, a->d_out, a->d_x, a->axis);
}
CUDA_KERNEL(log_softmax_grad, CUDA_IS(a->out, CUDA_FLOATS))
{
    return backward<true>(c, a->out, a->d_out, a->d_x, a->axis);
}
