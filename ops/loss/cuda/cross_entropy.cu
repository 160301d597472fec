/* softmax_with_cross_entropy, class_cross_entropy and their gradients on a GPU: one warp or block per row, or
 * one thread per slice where the axis is not the last. Index arithmetic is in 64 bits. */
#include "devices/cuda/kernel.h"

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

/* A row's largest logit and Σ e^(x − it), for every thread of the row's group. */
template <class A, int G, int V, class X>
CUDA_FN void ce_row_sums(const ce_problem &p, const X *from, A *largest, A *total)
{
    A top = (A)-INFINITY, sum = 0, v[V];
    for (int64_t i = (int64_t)(threadIdx.x % G) * V; i < p.n; i += G * V) {
        cuda_take<V>(from + i, v);
        A higher = top;
        for (int k = 0; k < V; k++) higher = cuda_max::join(higher, v[k]);
        if (higher == (A)-INFINITY) continue;
        sum *= exp(top - higher);
        for (int k = 0; k < V; k++) sum += exp(v[k] - higher);
        top = higher;
    }
    *largest = cuda_group_reduce<G, cuda_max>(top);
    *total = cuda_group_reduce<G, cuda_sum>(top == *largest ? sum : sum * exp(top - *largest));
}

template <class X, class A, int G, int V>
__global__ void ce_rows_kernel(ce_problem p, const X *x, X *softmax, X *loss)
{
    for (CUDA_ROWS(G, row, p.outer)) {
        const X *from = x + row * p.n;
        int64_t first = (int64_t)(threadIdx.x % G) * V;
        A top, sum, cost = 0, v[V], l[V];
        ce_row_sums<A, G, V>(p, from, &top, &sum);
        A log_sum = log(sum), scale = 1 / sum;
        for (int64_t i = first; i < p.n; i += G * V) {
            cuda_take<V>(from + i, v);
            if (p.soft) cuda_take<V>((const X *)(const void *)p.label + row * p.n + i, l);
            for (int k = 0; k < V; k++) {
                if (p.soft) cost += l[k] * ce_cost(p, v[k], top, log_sum);
                if (p.use_softmax) v[k] = exp(v[k] - top) * scale;
            }
            cuda_put<V>(softmax + row * p.n + i, v);
        }
        if (p.soft) cost = cuda_group_reduce<G, cuda_sum>(cost);
        if (threadIdx.x % G) continue;
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

template <class X, class A, int G, int V>
__global__ void ce_grad_rows_kernel(ce_problem p, const X *softmax, const X *d_loss, X *d_x)
{
    for (CUDA_ROWS(G, row, p.outer)) {
        int64_t label = p.soft ? -1 : ce_class(p, row);
        A scale = !p.soft && label < 0 ? 0 : cuda_cast<A>(d_loss[row]), v[V], l[V];
        for (int64_t i = (int64_t)(threadIdx.x % G) * V; i < p.n; i += G * V) {
            cuda_take<V>(softmax + row * p.n + i, v);
            if (p.soft) cuda_take<V>((const X *)(const void *)p.label + row * p.n + i, l);
            for (int k = 0; k < V; k++) v[k] = ce_slope(p, v[k], p.soft ? l[k] : (A)(i + k == label), scale);
            cuda_put<V>(d_x + row * p.n + i, v);
        }
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
        CUDA_SWITCH_ROWS(X, p.n, cuda_packs<X>(p.n, x.data, y.data, p.soft ? p.label : NULL), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, p.outer), CUDA_BLOCK, (ce_rows_kernel<X, A, G, V>), p,
                               x.as<X>(), y.as<X>(), loss.as<X>());
        });
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
        CUDA_SWITCH_ROWS(X, p.n, cuda_packs<X>(p.n, y.data, dx.data, p.soft ? p.label : NULL), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, p.outer), CUDA_BLOCK, (ce_grad_rows_kernel<X, A, G, V>),
                               p, y.as<X>(), d.as<X>(), dx.as<X>());
        });
    })
}

/* ---- without the probabilities ---------------------------------------------------------- */

template <class X, class A, int G, int V>
__global__ void ce_class_kernel(ce_problem p, const X *x, X *sums, X *loss)
{
    for (CUDA_ROWS(G, row, p.outer)) {
        A top, sum;
        ce_row_sums<A, G, V>(p, x + row * p.n, &top, &sum);
        if (threadIdx.x % G) continue;
        int64_t label = ce_class(p, row);
        A cost = label < 0 ? (A)0 : log(sum) + top - cuda_cast<A>(x[row * p.n + label]);
        sums[2 * row] = cuda_cast<X>(top), sums[2 * row + 1] = cuda_cast<X>(sum);
        loss[row] = cuda_cast<X>(cost);
    }
}

template <class X, class A, int G, int V>
__global__ void ce_class_grad_kernel(ce_problem p, const X *x, const X *sums, const X *d_loss, X *d_x)
{
    for (CUDA_ROWS(G, row, p.outer)) {
        int64_t label = ce_class(p, row);
        A d = label < 0 ? (A)0 : cuda_cast<A>(d_loss[row]), v[V];
        A top = cuda_cast<A>(sums[2 * row]), scale = 1 / cuda_cast<A>(sums[2 * row + 1]);
        for (int64_t i = (int64_t)(threadIdx.x % G) * V; i < p.n; i += G * V) {
            cuda_take<V>(x + row * p.n + i, v);
            for (int k = 0; k < V; k++)
                v[k] = d == 0 ? (A)0 : (exp(v[k] - top) * scale - (A)(i + k == label)) * d;
            cuda_put<V>(d_x + row * p.n + i, v);
        }
    }
}

CUDA_KERNEL(class_cross_entropy, CUDA_IS(a->logits, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->logits), sums = cuda_look(a->sums), loss = cuda_look(a->loss);
    ce_problem p = problem_of(c, x, a->label, -1, a->ignore_index, false, true);
    if (p.outer == 0) return PROA_OK;
    PROA_TRY(check_classes(p, -1));
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        CUDA_SWITCH_ROWS(X, p.n, cuda_packs<X>(p.n, x.data, NULL, NULL), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, p.outer), CUDA_BLOCK, (ce_class_kernel<X, A, G, V>), p,
                               x.as<X>(), sums.as<X>(), loss.as<X>());
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
        CUDA_SWITCH_ROWS(X, p.n, cuda_packs<X>(p.n, x.data, dx.data, NULL), G, V, {
            return cuda_launch(c, CUDA_ROW_BLOCKS(G, p.outer), CUDA_BLOCK, (ce_class_grad_kernel<X, A, G, V>),
                               p, x.as<X>(), sums.as<X>(), d.as<X>(), dx.as<X>());
        });
    })
}
