/* softmax_with_cross_entropy, class_cross_entropy and their gradients on a GPU: one warp or block per row, or
 * one thread per slice where the axis is not the last. Index arithmetic is in 64 bits. */
#include "devices/cuda/rows.h"

/* Logits as outer × n × inner, n the classes; label and loss have one entry a row. */
struct ce_problem {
    int64_t outer, n, inner, ignore;
    const char *label;
    proa_dtype label_dtype;
    bool soft, use_softmax;
    cuda_report report;
};

/* The row's class; −1 if it contributes no loss: ignored, or out of range, which is reported. */
CUDA_FN int64_t ce_class(const ce_problem &p, int64_t row)
{
    int64_t label = cuda_index(p.label, p.label_dtype, row);
    if (label == p.ignore) return -1;
    if (label >= 0 && label < p.n) return label;
    cuda_raise(p.report, row, label, 0, p.n - 1);
    return -1;
}

/* A logarithm that stays finite, as Paddle has it: of 0 it is −1e20. */
template <class A> CUDA_FN A ce_finite_log(A p)
{
    A v = log(p);
    return v == (A)-INFINITY ? (A)-1e20 : v == (A)INFINITY ? (A)1e20 : v;
}

/* Loss of a class whose target probability is 1. */
template <class A> CUDA_FN A ce_cost(const ce_problem &p, A x, A top, A log_sum)
{
    return p.use_softmax ? log_sum + top - x : -ce_finite_log(x);
}

/* Labels that are classes, of logits. */
template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS, sizeof(A) == 8 ? 1 : T::RESIDENT)
    ce_held_kernel(ce_problem p, const X *x, X *softmax, X *loss)
{
    for (CUDA_GROUPS(T, row, p.outer)) {
        cuda_held<A, T> held;
        A top, sum;
        held.load(x + row * p.n, (int)p.n, (A)-INFINITY);
        cuda_held_sum<true, X>(held, &top, &sum);
        A scale = 1 / sum;
        held.each([&](A &v) { v *= scale; });
        held.store(softmax + row * p.n, (int)p.n);
        if (T::thread()) continue;
        int64_t label = ce_class(p, row);
        A cost = label < 0 ? (A)0 : log(sum) + top - cuda_cast<A>(x[row * p.n + label]);
        loss[row] = cuda_cast<X>(cost);
    }
}

/* Any labels, and rows that registers do not hold. */
template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS) ce_rows_kernel(ce_problem p, const X *x, X *softmax, X *loss)
{
    for (CUDA_GROUPS(T, row, p.outer)) {
        const X *from = x + row * p.n, *target = (const X *)(const void *)p.label + (p.soft ? row * p.n : 0);
        A top, sum, cost = 0;
        cuda_row_sum<T>(from, p.n, &top, &sum);
        A log_sum = log(sum), scale = 1 / sum;
        cuda_row<true, T, A>(from, softmax + row * p.n, p.n, true, [&](auto width, A *v, int64_t i) {
            enum { W = decltype(width)::value };
            A l[W];
            if (p.soft) cuda_take<W>(target + i, l);
            for (int k = 0; k < W && p.soft; k++) cost += l[k] * ce_cost(p, v[k], top, log_sum);
            for (int k = 0; k < W && p.use_softmax; k++) v[k] = cuda_exp<X>::of(v[k] - top) * scale;
        });
        if (p.soft) cost = T::template reduce<cuda_sum>(cost);
        if (T::thread()) continue;
        int64_t label = p.soft ? -1 : ce_class(p, row);
        if (label >= 0) cost = ce_cost(p, cuda_cast<A>(from[label]), top, log_sum);
        loss[row] = cuda_cast<X>(cost);
    }
}

template <class X, class A> __global__ void ce_slices_kernel(ce_problem p, const X *x, X *softmax, X *loss)
{
    for (CUDA_EACH(row, p.outer * p.inner)) {
        int64_t at = row / p.inner * p.n * p.inner + row % p.inner;
        A top = (A)-INFINITY, sum = 0, cost = 0;
        for (int64_t k = 0, j = at; k < p.n; k++, j += p.inner) top = cuda_max::join(top, cuda_cast<A>(x[j]));
        for (int64_t k = 0, j = at; k < p.n; k++, j += p.inner) sum += exp(cuda_cast<A>(x[j]) - top);
        A log_sum = log(sum), scale = 1 / sum;
        for (int64_t k = 0, j = at; k < p.n; k++, j += p.inner) {
            A v = cuda_cast<A>(x[j]);
            if (p.soft)
                cost += cuda_cast<A>(((const X *)(const void *)p.label)[j]) * ce_cost(p, v, top, log_sum);
            softmax[j] = p.use_softmax ? cuda_cast<X>(exp(v - top) * scale) : x[j];
        }
        int64_t label = p.soft ? -1 : ce_class(p, row);
        if (label >= 0) cost = ce_cost(p, cuda_cast<A>(x[at + label * p.inner]), top, log_sum);
        loss[row] = cuda_cast<X>(cost);
    }
}

/* Gradient of one logit: y is its softmax, target its probability in the label. */
template <class A> CUDA_FN A ce_slope(const ce_problem &p, A y, A target, A scale)
{
    if (scale == 0) return 0;
    if (p.use_softmax) return (y - target) * scale;
    return target == 0 ? 0 : -target / y * scale;
}

/* Index of a label among W elements from i on; -1: it is none of them. */
template <int W> CUDA_FN int ce_within(int64_t label, int64_t i)
{
    return label >= i && label < i + W ? (int)(label - i) : -1;
}

template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS)
    ce_grad_rows_kernel(ce_problem p, const X *softmax, const X *d_loss, X *d_x)
{
    for (CUDA_GROUPS(T, row, p.outer)) {
        const X *target = (const X *)(const void *)p.label + (p.soft ? row * p.n : 0);
        int64_t label = p.soft ? -1 : ce_class(p, row), at = row * p.n;
        A scale = !p.soft && label < 0 ? 0 : cuda_cast<A>(d_loss[row]);
        cuda_row<true, T, A>(softmax + at, d_x + at, p.n, false, [&](auto width, A *v, int64_t i) {
            enum { W = decltype(width)::value };
            int hit = ce_within<W>(label, i);
            A l[W];
            if (p.soft) cuda_take<W>(target + i, l);
            for (int k = 0; k < W; k++) v[k] = ce_slope(p, v[k], p.soft ? l[k] : (A)(k == hit), scale);
        });
    }
}

template <class X, class A>
__global__ void ce_grad_slices_kernel(ce_problem p, const X *softmax, const X *d_loss, X *d_x)
{
    for (CUDA_EACH(row, p.outer * p.inner)) {
        int64_t at = row / p.inner * p.n * p.inner + row % p.inner, label = p.soft ? -1 : ce_class(p, row);
        A scale = !p.soft && label < 0 ? 0 : cuda_cast<A>(d_loss[row]);
        for (int64_t k = 0, j = at; k < p.n; k++, j += p.inner) {
            A target = p.soft ? cuda_cast<A>(((const X *)(const void *)p.label)[j]) : (A)(k == label);
            d_x[j] = cuda_cast<X>(ce_slope(p, cuda_cast<A>(softmax[j]), target, scale));
        }
    }
}

static ce_problem problem_of(cuda_context *c, const cuda_tensor &x, const proa_tensor *label, int64_t axis,
                             int64_t ignore, bool soft, bool use_softmax)
{
    cuda_tensor l = cuda_look(label);
    ce_problem p = {1, 1, 1, ignore, l.data, l.dtype, soft, use_softmax, cuda_reports(c, "label")};
    if (axis < 0) axis += x.ndim;
    for (int d = 0; d < x.ndim; d++) (d < axis ? p.outer : d == axis ? p.n : p.inner) *= x.shape[d];
    return p;
}

static proa_status check_classes(const ce_problem &p, int64_t axis)
{
    if (p.n > 0) return PROA_OK;
    return cuda_fail(PROA_ERR_INVALID_ARGUMENT, "%s: has no classes along axis %lld", p.report.op,
                     (long long)axis);
}

template <class X, class A>
static proa_status ce_forward_rows(cuda_context *c, const ce_problem &p, const X *x, X *y, X *loss)
{
    bool alike = cuda_alike(x, y, p.soft ? p.label : (const char *)(const void *)x);
    auto visit = [&](auto group) {
        typedef decltype(group) T;
        return cuda_launch(c, T::blocks(p.outer), T::THREADS, (ce_rows_kernel<X, A, T>), p, x, y, loss);
    };
    if (p.soft || !p.use_softmax) return cuda_visit<X, true, true>(p.n, alike, visit);
    auto held = [&](auto group) {
        typedef decltype(group) T;
        return cuda_launch(c, T::blocks(p.outer), T::THREADS, (ce_held_kernel<X, A, T>), p, x, y, loss);
    };
    return cuda_hold<X, 512>(p.n, cuda_packs<X>(p.n, x, y, NULL), alike, held, visit);
}

CUDA_KERNEL(softmax_with_cross_entropy, CUDA_IS(a->logits, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->logits), y = cuda_look(a->softmax), loss = cuda_look(a->loss);
    ce_problem p = problem_of(c, x, a->label, a->axis, a->ignore_index, a->soft_label, a->use_softmax);
    if (p.outer * p.inner == 0) return PROA_OK;
    PROA_TRY(check_classes(p, a->axis));
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        if (p.inner > 1)
            return cuda_launch(c, cuda_blocks(p.outer * p.inner), CUDA_BLOCK, (ce_slices_kernel<X, A>), p,
                               x.as<X>(), y.as<X>(), loss.as<X>());
        return ce_forward_rows<X, A>(c, p, x.as<X>(), y.as<X>(), loss.as<X>());
    })
}

CUDA_KERNEL(softmax_with_cross_entropy_grad, CUDA_IS(a->softmax, CUDA_FLOATS))
{
    cuda_tensor y = cuda_look(a->softmax), d = cuda_look(a->d_loss), dx = cuda_look(a->d_logits);
    ce_problem p = problem_of(c, y, a->label, a->axis, a->ignore_index, a->soft_label, a->use_softmax);
    if (p.outer * p.inner == 0) return PROA_OK;
    PROA_TRY(check_classes(p, a->axis));
    CUDA_SWITCH_FLOAT(y.dtype, X, A, {
        if (p.inner > 1)
            return cuda_launch(c, cuda_blocks(p.outer * p.inner), CUDA_BLOCK, (ce_grad_slices_kernel<X, A>),
                               p, y.as<X>(), d.as<X>(), dx.as<X>());
        return cuda_visit<X, true, false>(
            p.n, cuda_alike(y.data, dx.data, p.soft ? p.label : y.data), [&](auto group) {
                typedef decltype(group) T;
                return cuda_launch(c, T::blocks(p.outer), T::THREADS, (ce_grad_rows_kernel<X, A, T>), p,
                                   y.as<X>(), d.as<X>(), dx.as<X>());
            });
    })
}

/* ---- without the probabilities ---------------------------------------------------------- */

template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS) ce_class_kernel(ce_problem p, const X *x, X *sums, X *loss)
{
    for (CUDA_GROUPS(T, row, p.outer)) {
        A top, sum;
        cuda_row_sum<T>(x + row * p.n, p.n, &top, &sum);
        if (T::thread()) continue;
        int64_t label = ce_class(p, row);
        A cost = label < 0 ? (A)0 : log(sum) + top - cuda_cast<A>(x[row * p.n + label]);
        sums[2 * row] = cuda_cast<X>(top), sums[2 * row + 1] = cuda_cast<X>(sum);
        loss[row] = cuda_cast<X>(cost);
    }
}

template <class X, class A, class T>
__global__ void __launch_bounds__(T::THREADS)
    ce_class_grad_kernel(ce_problem p, const X *x, const X *sums, const X *d_loss, X *d_x)
{
    for (CUDA_GROUPS(T, row, p.outer)) {
        int64_t label = ce_class(p, row), at = row * p.n;
        A d = label < 0 ? (A)0 : cuda_cast<A>(d_loss[row]);
        A top = cuda_cast<A>(sums[2 * row]), scale = 1 / cuda_cast<A>(sums[2 * row + 1]);
        cuda_row<true, T, A>(x + at, d_x + at, p.n, false, [&](auto width, A *v, int64_t i) {
            enum { W = decltype(width)::value };
            int hit = ce_within<W>(label, i);
            for (int k = 0; k < W; k++)
                v[k] = d == 0 ? (A)0 : (cuda_exp<X>::of(v[k] - top) * scale - (A)(k == hit)) * d;
        });
    }
}

CUDA_KERNEL(class_cross_entropy, CUDA_IS(a->logits, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->logits), sums = cuda_look(a->sums), loss = cuda_look(a->loss);
    ce_problem p = problem_of(c, x, a->label, -1, a->ignore_index, false, true);
    if (p.outer == 0) return PROA_OK;
    PROA_TRY(check_classes(p, -1));
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        return cuda_visit<X, true, false>(p.n, true, [&](auto group) {
            typedef decltype(group) T;
            return cuda_launch(c, T::blocks(p.outer), T::THREADS, (ce_class_kernel<X, A, T>), p, x.as<X>(),
                               sums.as<X>(), loss.as<X>());
        });
    })
}

CUDA_KERNEL(class_cross_entropy_grad, CUDA_IS(a->logits, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->logits), sums = cuda_look(a->sums), d = cuda_look(a->d_loss);
    cuda_tensor dx = cuda_look(a->d_logits);
    ce_problem p = problem_of(c, x, a->label, -1, a->ignore_index, false, true);
    if (p.outer == 0) return PROA_OK;
    PROA_TRY(check_classes(p, -1));
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        return cuda_visit<X, true, false>(p.n, cuda_alike(x.data, dx.data, dx.data), [&](auto group) {
            typedef decltype(group) T;
            return cuda_launch(c, T::blocks(p.outer), T::THREADS, (ce_class_grad_kernel<X, A, T>), p,
                               x.as<X>(), sums.as<X>(), d.as<X>(), dx.as<X>());
        });
    })
}
