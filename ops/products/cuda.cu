/* cross, kron and its gradient, and renorm on a GPU, computed in int64, double or complex double whatever the
 * dtype. */
#include "devices/cuda/kernel.h"

template <class A> CUDA_FN A conjugate(A v) { return v; }
CUDA_FN cuda_c_C128 conjugate(cuda_c_C128 v) { return {v.re, -v.im}; }

/* ---- cross ------------------------------------------------------------------------------- */

struct cross_plan {
    const char *x, *y;
    char *out;
    proa_dtype dtype;
    int64_t item, inner, total; /* total: number of 3-vectors */
};
template <class A> __global__ void cross_kernel(cross_plan p)
{
    for (CUDA_EACH(i, p.total)) {
        int64_t outer = i, in = cuda_split(outer, p.inner), first = outer * 3 * p.inner + in;
        A x[3], y[3];
        for (int k = 0; k < 3; k++) {
            x[k] = cuda_load<A>(p.x + (first + k * p.inner) * p.item, p.dtype);
            y[k] = cuda_load<A>(p.y + (first + k * p.inner) * p.item, p.dtype);
        }
        for (int k = 0; k < 3; k++)
            cuda_store<A>(p.out + (first + k * p.inner) * p.item, p.dtype,
                          x[(k + 1) % 3] * y[(k + 2) % 3] - x[(k + 2) % 3] * y[(k + 1) % 3]);
    }
}

CUDA_KERNEL(cross, true)
{
    cuda_tensor x = cuda_look(a->x);
    int axis = (int)(a->axis < 0 ? a->axis + x.ndim : a->axis);
    for (int i = x.ndim - 1; a->axis == 9 && i >= 0; i--) /* the first of length 3 */
        if (x.shape[i] == 3) axis = i;
    cross_plan p = {x.data, cuda_look(a->y).data, cuda_look(a->out).data, x.dtype, cuda_item(x.dtype),
                    1,      x.numel / 3};
    for (int i = axis + 1; i < x.ndim; i++) p.inner *= x.shape[i];
    if (p.total == 0) return PROA_OK;
    CUDA_SWITCH_SUM(x.dtype, A, return cuda_launch(c, cuda_blocks(p.total), CUDA_BLOCK, cross_kernel<A>, p););
}

/* ---- kron -------------------------------------------------------------------------------- */

/* Operands of kron, the shorter shape with leading ones. Along each dim, element i of x and j of y give
 * element i · (y's length) + j of the product. */
struct kron_plan {
    int ndim;
    const char *x, *y;
    char *out;
    proa_dtype dtype;
    int64_t item, numel;
    int64_t x_shape[PROA_MAX_DIMS], y_shape[PROA_MAX_DIMS], out_shape[PROA_MAX_DIMS];
    int64_t x_step[PROA_MAX_DIMS], y_step[PROA_MAX_DIMS], out_step[PROA_MAX_DIMS]; /* elements */
};

static kron_plan kron_plan_of(const proa_tensor *x_, const proa_tensor *y_)
{
    cuda_tensor x = cuda_look(x_), y = cuda_look(y_);
    kron_plan p = {x.ndim > y.ndim ? x.ndim : y.ndim, x.data, y.data, NULL, x.dtype, cuda_item(x.dtype), 1};
    int64_t x_step = 1, y_step = 1;
    for (int i = p.ndim - 1; i >= 0; i--) {
        int at_x = i - (p.ndim - x.ndim), at_y = i - (p.ndim - y.ndim);
        p.x_shape[i] = at_x < 0 ? 1 : x.shape[at_x];
        p.y_shape[i] = at_y < 0 ? 1 : y.shape[at_y];
        p.out_shape[i] = p.x_shape[i] * p.y_shape[i];
        p.x_step[i] = x_step, p.y_step[i] = y_step, p.out_step[i] = p.numel;
        x_step *= p.x_shape[i], y_step *= p.y_shape[i], p.numel *= p.out_shape[i];
    }
    return p;
}

template <class A> __global__ void kron_kernel(kron_plan p)
{
    for (CUDA_EACH(i, p.numel)) {
        int64_t rest = i, x = 0, y = 0;
        for (int d = p.ndim - 1; d >= 0; d--) {
            int64_t at = cuda_split(rest, p.out_shape[d]), of_y = cuda_split(at, p.y_shape[d]);
            x += at * p.x_step[d], y += of_y * p.y_step[d];
        }
        cuda_store<A>(p.out + i * p.item, p.dtype,
                      cuda_load<A>(p.x + x * p.item, p.dtype) * cuda_load<A>(p.y + y * p.item, p.dtype));
    }
}

CUDA_KERNEL(kron, true)
{
    kron_plan p = kron_plan_of(a->x, a->y);
    p.out = cuda_look(a->out).data;
    if (p.numel == 0) return PROA_OK;
    CUDA_SWITCH_SUM(p.dtype, A, return cuda_launch(c, cuda_blocks(p.numel), CUDA_BLOCK, kron_kernel<A>, p););
}

/* One block per element of one operand: the sum of d_out times the other operand's conjugates. d_out is
 * p.out. */
template <class A>
__global__ void kron_grad_kernel(kron_plan p, bool of_x, char *to, int64_t count, int64_t terms)
{
    const int64_t *mine = of_x ? p.x_shape : p.y_shape, *other = of_x ? p.y_shape : p.x_shape;
    const char *from = of_x ? p.y : p.x;
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        A sum = {};
        for (int64_t k = threadIdx.x; k < terms; k += CUDA_BLOCK) {
            int64_t own = b, rest = k, at = 0;
            for (int d = p.ndim - 1; d >= 0; d--) {
                int64_t i = cuda_split(own, mine[d]), j = cuda_split(rest, other[d]);
                at += (of_x ? i * p.y_shape[d] + j : j * p.y_shape[d] + i) * p.out_step[d];
            }
            sum = sum + cuda_load<A>(p.out + at * p.item, p.dtype) *
                            conjugate(cuda_load<A>(from + k * p.item, p.dtype));
        }
        sum = cuda_block_reduce<cuda_sum>(sum);
        if (threadIdx.x == 0) cuda_store<A>(to + b * p.item, p.dtype, sum);
    }
}

CUDA_KERNEL(kron_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x), d_y = cuda_look(a->d_y);
    kron_plan p = kron_plan_of(a->x, a->y);
    p.out = cuda_look(a->d_out).data;
    proa_status s = PROA_OK;
    CUDA_SWITCH_SUM(p.dtype, A, {
        if (d_x.numel)
            s = cuda_launch(c, cuda_blocks(d_x.numel, 1), CUDA_BLOCK, kron_grad_kernel<A>, p, true, d_x.data,
                            d_x.numel, d_y.numel);
        if (d_y.numel && s == PROA_OK)
            s = cuda_launch(c, cuda_blocks(d_y.numel, 1), CUDA_BLOCK, kron_grad_kernel<A>, p, false, d_y.data,
                            d_y.numel, d_x.numel);
    });
    return s;
}

/* ---- renorm ------------------------------------------------------------------------------ */

struct renorm_plan {
    const char *x;
    char *out;
    proa_dtype dtype;
    int64_t item, n, inner, terms;
    double p, most;
    CUDA_MEMBER int64_t at(int64_t slice, int64_t k) const
    {
        int64_t in = cuda_split(k, inner);
        return ((k * n + slice) * inner + in) * item;
    }
};
/* One block per slice: computes its p-norm, then scales it. */
__global__ void renorm_kernel(renorm_plan r)
{
    for (int64_t slice = blockIdx.x; slice < r.n; slice += gridDim.x) {
        double sum = 0;
        for (int64_t k = threadIdx.x; k < r.terms; k += CUDA_BLOCK)
            sum += pow(fabs(cuda_load<double>(r.x + r.at(slice, k), r.dtype)), r.p);
        double norm = pow(cuda_block_reduce<cuda_sum>(sum), 1 / r.p),
               factor = norm > r.most ? r.most / norm : 1;
        for (int64_t k = threadIdx.x; k < r.terms; k += CUDA_BLOCK)
            cuda_store<double>(r.out + r.at(slice, k), r.dtype,
                               cuda_load<double>(r.x + r.at(slice, k), r.dtype) * factor);
    }
}

CUDA_KERNEL(renorm, true)
{
    cuda_tensor x = cuda_look(a->x);
    int axis = (int)(a->axis < 0 ? a->axis + x.ndim : a->axis);
    renorm_plan r = {
        x.data, cuda_look(a->out).data, x.dtype, cuda_item(x.dtype), x.shape[axis], 1, 0, a->p, a->max_norm};
    if (x.numel == 0) return PROA_OK;
    for (int i = axis + 1; i < x.ndim; i++) r.inner *= x.shape[i];
    r.terms = x.numel / r.n;
    return cuda_launch(c, cuda_blocks(r.n, 1), CUDA_BLOCK, renorm_kernel, r);
}
