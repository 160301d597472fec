/* The losses other than softmax_with_cross_entropy and class_cross_entropy, and label_smooth and accuracy, on
 * a GPU: scalar formulas, and sums over all elements in double. */
#include "devices/cuda/total.h"
#include "ops/elementwise/cuda/elementwise.h"

/* ---- one loss an element --------------------------------------------------------------- */

template <class X> struct bce_fn {
    typedef X T;
    typedef X R;
    CUDA_CALL R operator()(T x, T label) const
    {
        T hit = log(x), miss = log(1 - x);
        hit = hit < -100 ? (T)-100 : hit;
        miss = miss < -100 ? (T)-100 : miss;
        return (label - 1) * miss - label * hit;
    }
};

CUDA_KERNEL(bce_loss, CUDA_IS(a->input, CUDA_FLOATS))
{
    proa_tensor *t[] = {a->out, a->input, a->label};
    if (cuda_look(a->input).dtype == PROA_F64) return cuda_map_run<2>(c, t, bce_fn<double>{});
    return cuda_map_run<2>(c, t, bce_fn<float>{});
}

template <class X> struct sigmoid_ce_fn {
    typedef X T;
    typedef X R;
    T ignore;
    CUDA_CALL R operator()(T x, T label, T weight) const
    {
        T tail = log1p(exp(x > 0 ? -x : x));
        return label == ignore ? (T)0 : (x > 0 ? x : (T)0) - x * label + tail * weight;
    }
    CUDA_CALL R operator()(T x, T label) const { return (*this)(x, label, (T)1); }
};

/* Divides by the number of labels that are not ignored. */
template <class X> struct sigmoid_ce_counts {
    const X *label;
    double ignore;
    CUDA_CALL double operator()(int64_t i) const { return cuda_cast<double>(label[i]) != ignore; }
};
struct sigmoid_ce_store {
    double *to;
    CUDA_CALL void operator()(double count) const { *to = count < 1e-5 ? 1e-5 : count; }
};
template <class X> __global__ void sigmoid_ce_divide_kernel(X *y, int64_t n, const double *by)
{
    for (CUDA_EACH(i, n)) y[i] = cuda_cast<X>(cuda_cast<double>(y[i]) / *by);
}

template <class T>
static proa_status sigmoid_ce(cuda_context *c, const proa_sigmoid_cross_entropy_with_logits_args *a)
{
    proa_tensor *t[] = {a->out, a->x, a->label, a->pos_weight};
    sigmoid_ce_fn<T> f = {(T)a->ignore_index};
    return cuda_given(a->pos_weight) ? cuda_map_run<3>(c, t, f) : cuda_map_run<2>(c, t, f);
}

CUDA_KERNEL(sigmoid_cross_entropy_with_logits, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor label = cuda_look(a->label), y = cuda_look(a->out);
    PROA_TRY(label.dtype == PROA_F64 ? sigmoid_ce<double>(c, a) : sigmoid_ce<float>(c, a));
    if (!a->normalize || y.numel == 0) return PROA_OK;
    double *count = (double *)cuda_scratch(c, sizeof *count);
    if (!count) return cuda_host->error();
    proa_status status = PROA_OK;
    CUDA_SWITCH_FLOAT(label.dtype, X, A, {
        (void)sizeof(A);
        sigmoid_ce_counts<X> counts = {label.as<X>(), (double)a->ignore_index};
        status = cuda_total<double>(c, y.numel, counts, sigmoid_ce_store{count});
        if (status == PROA_OK)
            status = cuda_launch(c, cuda_blocks(y.numel), CUDA_BLOCK, sigmoid_ce_divide_kernel<X>, y.as<X>(),
                                 y.numel, count);
    })
    cuda_scratch_free(c, count);
    return status;
}

template <class X, class A>
__global__ void huber_kernel(const X *x, const X *label, X *residual, X *out, int64_t n, A delta)
{
    for (CUDA_EACH(i, n)) {
        A d = cuda_cast<A>(label[i]) - cuda_cast<A>(x[i]), size = d < 0 ? -d : d;
        residual[i] = cuda_cast<X>(d);
        out[i] = cuda_cast<X>(size <= delta ? (A)0.5 * d * d : delta * (size - (A)0.5 * delta));
    }
}

CUDA_KERNEL(huber_loss, CUDA_IS(a->input, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->input), l = cuda_look(a->label), r = cuda_look(a->residual),
                y = cuda_look(a->out);
    if (x.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        return cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, (huber_kernel<X, A>), x.as<X>(), l.as<X>(),
                           r.as<X>(), y.as<X>(), x.numel, (A)a->delta);
    })
}

template <class X> struct kldiv_fn {
    typedef X T;
    typedef X R;
    CUDA_CALL R operator()(T x, T target) const { return target <= 0 ? (T)0 : target * (log(target) - x); }
};
template <class X, class A> struct kldiv_term {
    const X *x, *target;
    CUDA_CALL double operator()(int64_t i) const
    {
        return kldiv_fn<A>{}(cuda_cast<A>(x[i]), cuda_cast<A>(target[i]));
    }
};
template <class X> struct kldiv_end {
    X *to;
    double by;
    CUDA_CALL void operator()(double sum) const { *to = cuda_cast<X>(sum / by); }
};

CUDA_KERNEL(kldiv_loss, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x), target = cuda_look(a->target), loss = cuda_look(a->loss);
    proa_tensor *t[] = {a->loss, a->x, a->target};
    if (a->reduction == PROA_LOSS_REDUCTION_NONE)
        return x.dtype == PROA_F64 ? cuda_map_run<2>(c, t, kldiv_fn<double>{})
                                   : cuda_map_run<2>(c, t, kldiv_fn<float>{});
    double by = 1;
    if (a->reduction == PROA_LOSS_REDUCTION_MEAN) by = (double)x.numel;
    if (a->reduction == PROA_LOSS_REDUCTION_BATCHMEAN && x.shape[0] > 0) by = (double)x.shape[0];
    CUDA_SWITCH_FLOAT(x.dtype, X, A, {
        kldiv_term<X, A> term = {x.as<X>(), target.as<X>()};
        return cuda_total<double>(c, x.numel, term, kldiv_end<X>{loss.as<X>(), by});
    })
}

/* ---- nll_loss: input [N, C, rest], label [N, rest] -------------------------------------- */

template <class T> struct nll_problem {
    const char *label;
    proa_dtype label_dtype;
    const T *input, *weight; /* weight NULL: all 1 */
    int64_t classes, inner, ignore;
    T *each; /* the losses, where they are wanted */
    cuda_report report;

    CUDA_CALL int64_t at(int64_t i, int64_t label_) const
    {
        return (i / inner * classes + label_) * inner + i % inner;
    }
    /* −1: contributes no loss */
    CUDA_CALL int64_t label_of(int64_t i) const
    {
        int64_t l = cuda_index(label, label_dtype, i);
        if (l == ignore) return -1;
        if (l >= 0 && l < classes) return l;
        cuda_raise(report, i, l, 0, classes - 1);
        return -1;
    }
    CUDA_CALL double weight_of(int64_t l) const { return weight ? (double)weight[l] : 1; }
    /* loss and weight of entry i */
    CUDA_CALL cuda_pair operator()(int64_t i) const
    {
        int64_t l = label_of(i);
        double w = l < 0 ? 0 : weight_of(l), loss = l < 0 ? 0 : -w * (double)input[at(i, l)];
        if (each) each[i] = (T)loss;
        return {loss, w};
    }
};

template <class T> struct nll_end {
    T *out, *total; /* out NULL: each entry has its own */
    bool mean;
    CUDA_CALL void operator()(cuda_pair sums) const
    {
        if (out) *out = (T)(!mean ? sums.a : sums.b != 0 ? sums.a / sums.b : 0);
        *total = (T)(out ? sums.b : 0);
    }
};

/* Describes a whole problem, except `each`. */
template <class T>
static nll_problem<T> nll_of(cuda_context *c, const proa_tensor *input, const proa_tensor *label,
                             const proa_tensor *weight, int64_t ignore)
{
    cuda_tensor x = cuda_look(input), l = cuda_look(label);
    nll_problem<T> p = {
        l.data, l.dtype, x.as<T>(), NULL, x.shape[1], 1, ignore, NULL, cuda_reports(c, "label")};
    if (cuda_given(weight)) p.weight = cuda_look(weight).as<T>();
    for (int d = 2; d < x.ndim; d++) p.inner *= x.shape[d];
    return p;
}

template <class T> static proa_status nll(cuda_context *c, const proa_nll_loss_args *a)
{
    nll_problem<T> p = nll_of<T>(c, a->input, a->label, a->weight, a->ignore_index);
    bool alone = a->reduction == PROA_LOSS_REDUCTION_NONE;
    T *out = cuda_look(a->out).as<T>();
    if (alone) p.each = out;
    nll_end<T> end = {alone ? NULL : out, cuda_look(a->total_weight).as<T>(),
                      a->reduction == PROA_LOSS_REDUCTION_MEAN};
    return cuda_total<cuda_pair>(c, cuda_look(a->label).numel, p, end);
}

#define NARROW_FLOATS (CUDA_BIT(F32) | CUDA_BIT(F64))

CUDA_KERNEL(nll_loss, CUDA_IS(a->input, NARROW_FLOATS))
{
    return cuda_look(a->input).dtype == PROA_F64 ? nll<double>(c, a) : nll<float>(c, a);
}

template <class T>
__global__ void nll_grad_kernel(nll_problem<T> p, const T *d_out, const T *total, bool each, bool mean,
                                T *d_input, int64_t n)
{
    for (CUDA_EACH(i, n)) {
        int64_t l = p.label_of(i);
        double over = mean ? (double)*total : 1, d = (double)d_out[each ? i : 0];
        for (int64_t k = 0; k < p.classes; k++)
            d_input[p.at(i, k)] = k == l && over != 0 ? (T)(-p.weight_of(l) * d / over) : (T)0;
    }
}

template <class T> static proa_status nll_grad(cuda_context *c, const proa_nll_loss_grad_args *a)
{
    nll_problem<T> p = nll_of<T>(c, a->input, a->label, a->weight, a->ignore_index);
    int64_t n = cuda_look(a->label).numel;
    if (n == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, nll_grad_kernel<T>, p, cuda_look(a->d_out).as<T>(),
                       cuda_look(a->total_weight).as<T>(), a->reduction == PROA_LOSS_REDUCTION_NONE,
                       a->reduction == PROA_LOSS_REDUCTION_MEAN, cuda_look(a->d_input).as<T>(), n);
}

CUDA_KERNEL(nll_loss_grad, CUDA_IS(a->input, NARROW_FLOATS))
{
    return cuda_look(a->input).dtype == PROA_F64 ? nll_grad<double>(c, a) : nll_grad<float>(c, a);
}

/* ---- label_smooth, accuracy -------------------------------------------------------------- */

template <class X>
__global__ void label_smooth_kernel(const X *label, const X *prior, X *out, int64_t n, int64_t classes,
                                    double epsilon)
{
    for (CUDA_EACH(i, n)) {
        double share = prior ? cuda_cast<double>(prior[i % classes]) : 1.0 / (double)classes;
        out[i] = cuda_cast<X>((1 - epsilon) * cuda_cast<double>(label[i]) + epsilon * share);
    }
}

CUDA_KERNEL(label_smooth, CUDA_IS(a->label, CUDA_FLOATS))
{
    cuda_tensor label = cuda_look(a->label), out = cuda_look(a->out);
    char *prior = cuda_given(a->prior_dist) ? cuda_look(a->prior_dist).data : NULL;
    if (label.numel == 0) return PROA_OK;
    CUDA_SWITCH_FLOAT(label.dtype, X, A, {
        (void)sizeof(A);
        return cuda_launch(c, cuda_blocks(label.numel), CUDA_BLOCK, label_smooth_kernel<X>, label.as<X>(),
                           (const X *)(const void *)prior, out.as<X>(), label.numel, label.dim(-1),
                           a->epsilon);
    })
}

struct accuracy_hit {
    const char *indices, *label;
    proa_dtype indices_dtype, label_dtype;
    int64_t k;
    CUDA_CALL double operator()(int64_t row) const
    {
        int64_t want = cuda_index(label, label_dtype, row);
        for (int64_t j = 0; j < k; j++)
            if (cuda_index(indices, indices_dtype, row * k + j) == want) return 1;
        return 0;
    }
};
struct accuracy_end {
    float *accuracy;
    int32_t *correct, *total, rows;
    CUDA_CALL void operator()(double hits) const
    {
        *accuracy = rows ? (float)hits / (float)rows : 0;
        *correct = (int32_t)hits;
        *total = rows;
    }
};

CUDA_KERNEL(accuracy, true)
{
    cuda_tensor indices = cuda_look(a->indices), label = cuda_look(a->label);
    int64_t rows = indices.shape[0];
    if (rows > INT32_MAX)
        return cuda_fail(PROA_ERR_OVERFLOW, "accuracy: indices: has %lld rows; counts are int32",
                         (long long)rows);
    accuracy_hit hit = {indices.data, label.data, indices.dtype, label.dtype, indices.shape[1]};
    accuracy_end end = {cuda_look(a->accuracy).as<float>(), cuda_look(a->correct).as<int32_t>(),
                        cuda_look(a->total).as<int32_t>(), (int32_t)rows};
    return cuda_total<double>(c, rows, hit, end);
}
