/* unfold (im2col), fold (col2im) and maxout on a GPU: one thread per element of the result, which gathers its
 * inputs. */
#include "devices/cuda/kernel.h"

/* Windows of unfold and fold over images of size in[2]; out[2] windows each way. Elements are `lanes` numbers
 * each: complex ones two. */
struct fold_plan {
    int64_t kernel[2], stride[2], before[2], dilation[2], in[2], out[2], lanes;
};

/* columns: [image, channel, ky, kx, oy, ox]. */
template <class S> __global__ void unfold_kernel(fold_plan w, const S *x, S *columns, int64_t n)
{
    for (CUDA_EACH(i, n)) {
        int64_t rest = i, o[2], k[2], at[2];
        for (int d = 1; d >= 0; d--) o[d] = rest % w.out[d], rest /= w.out[d];
        for (int d = 1; d >= 0; d--) k[d] = rest % w.kernel[d], rest /= w.kernel[d];
        for (int d = 0; d < 2; d++) at[d] = o[d] * w.stride[d] - w.before[d] + k[d] * w.dilation[d];
        bool inside = at[0] >= 0 && at[0] < w.in[0] && at[1] >= 0 && at[1] < w.in[1];
        S zero;
        memset(&zero, 0, sizeof zero);
        columns[i] = inside ? x[(rest * w.in[0] + at[0]) * w.in[1] + at[1]] : zero;
    }
}

/* The window along d that has pixel `at` at its kernel position k; -1: none. */
CUDA_FN int64_t fold_window(const fold_plan &w, int d, int64_t at, int64_t k)
{
    int64_t start = at + w.before[d] - k * w.dilation[d];
    if (start < 0 || start % w.stride[d] || start / w.stride[d] >= w.out[d]) return -1;
    return start / w.stride[d];
}

template <class S> __global__ void fold_kernel(fold_plan w, const S *columns, S *x, int64_t n)
{
    typedef decltype(cuda_source<S>::get(*x)) T;
    for (CUDA_EACH(i, n)) {
        int64_t lane = i % w.lanes, rest = i / w.lanes, at[2];
        for (int d = 1; d >= 0; d--) at[d] = rest % w.in[d], rest /= w.in[d];
        T sum = 0;
        for (int64_t ky = 0; ky < w.kernel[0]; ky++) {
            int64_t oy = fold_window(w, 0, at[0], ky);
            for (int64_t kx = 0; oy >= 0 && kx < w.kernel[1]; kx++) {
                int64_t ox = fold_window(w, 1, at[1], kx);
                if (ox < 0) continue;
                int64_t row = (rest * w.kernel[0] + ky) * w.kernel[1] + kx;
                int64_t from = (row * w.out[0] + oy) * w.out[1] + ox;
                sum = (T)(sum + cuda_source<S>::get(columns[from * w.lanes + lane]));
            }
        }
        x[i] = cuda_cast<S>(sum);
    }
}

static fold_plan plan_of(const proa_ints &kernel, const proa_ints &stride, const proa_ints &padding,
                         const proa_ints &dilation, const int64_t *in)
{
    fold_plan w = {};
    w.lanes = 1;
    for (int d = 0; d < 2; d++) {
        w.kernel[d] = kernel.at[d], w.stride[d] = stride.at[d];
        w.before[d] = padding.at[d], w.dilation[d] = dilation.at[d], w.in[d] = in[d];
        int64_t span = in[d] + w.before[d] + padding.at[d + 2] - w.dilation[d] * (w.kernel[d] - 1) - 1;
        w.out[d] = span / w.stride[d] + 1;
    }
    return w;
}

struct fold_bytes16 {
    uint64_t lo, hi;
};

CUDA_KERNEL(unfold, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    fold_plan w = plan_of(a->kernel_sizes, a->strides, a->paddings, a->dilations, x.shape + 2);
    if (out.numel == 0) return PROA_OK;
#define UNFOLD(S) \
    cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, unfold_kernel<S>, w, x.as<S>(), out.as<S>(), out.numel)
    switch (cuda_item(x.dtype)) {
    case 1: return UNFOLD(uint8_t);
    case 2: return UNFOLD(uint16_t);
    case 4: return UNFOLD(uint32_t);
    case 8: return UNFOLD(uint64_t);
    default: return UNFOLD(fold_bytes16);
    }
}

CUDA_KERNEL(fold, !CUDA_IS(a->x, CUDA_BIT(BOOL)))
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    fold_plan w = plan_of(a->kernel_sizes, a->strides, a->paddings, a->dilations, out.shape + 2);
    bool complex = x.dtype == PROA_C64 || x.dtype == PROA_C128;
    w.lanes = complex ? 2 : 1;
    int64_t n = out.numel * w.lanes;
    if (n == 0) return PROA_OK;
#define FOLD(S) cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, fold_kernel<S>, w, x.as<S>(), out.as<S>(), n)
    switch (x.dtype) {
    case PROA_U8: return FOLD(uint8_t);
    case PROA_I8: return FOLD(int8_t);
    case PROA_I16: return FOLD(int16_t);
    case PROA_I32: return FOLD(int32_t);
    case PROA_I64: return FOLD(int64_t);
    case PROA_F16: return FOLD(cuda_f16);
    case PROA_BF16: return FOLD(cuda_bf16);
    case PROA_F32:
    case PROA_C64: return FOLD(float);
    default: return FOLD(double);
    }
}

/* ---- maxout ---------------------------------------------------------------------------- */

/* out: [outer, channels, inner]; x has `groups` channels for each of its own. */
template <class T>
__global__ void maxout_kernel(const char *x, char *out, proa_dtype d, int64_t item, int64_t groups,
                              int64_t inner, int64_t n)
{
    for (CUDA_EACH(i, n)) {
        const char *at = x + ((i / inner * groups) * inner + i % inner) * item;
        T best = cuda_load<T>(at, d);
        for (int64_t k = 1; k < groups; k++) {
            T v = cuda_load<T>(at + k * inner * item, d);
            if ((v > best || v != v) && best == best) best = v;
        }
        cuda_store<T>(out + i * item, d, best);
    }
}

template <class T>
__global__ void maxout_back_kernel(const char *x, const char *out, const char *d_out, char *d_x, proa_dtype d,
                                   int64_t item, int64_t groups, int64_t inner, int64_t n)
{
    for (CUDA_EACH(i, n)) {
        int64_t at = ((i / inner * groups) * inner + i % inner) * item;
        T best = cuda_load<T>(out + i * item, d), g = cuda_load<T>(d_out + i * item, d);
        bool found = false;
        for (int64_t k = 0; k < groups; k++, at += inner * item) {
            bool is = !found && cuda_load<T>(x + at, d) == best;
            cuda_store<T>(d_x + at, d, is ? g : 0);
            found = found || is;
        }
    }
}

static int64_t inner_of(const cuda_tensor &t, int64_t axis)
{
    int64_t inner = 1;
    for (int i = (int)(axis < 0 ? axis + t.ndim : axis) + 1; i < t.ndim; i++) inner *= t.shape[i];
    return inner;
}

CUDA_KERNEL(maxout, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    int64_t inner = inner_of(out, a->axis), item = cuda_item(x.dtype);
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, maxout_kernel<T>, x.data, out.data, x.dtype,
                           item, a->groups, inner, out.numel);
    });
}

CUDA_KERNEL(maxout_grad, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out), d_out = cuda_look(a->d_out),
                d_x = cuda_look(a->d_x);
    int64_t inner = inner_of(out, a->axis), item = cuda_item(x.dtype);
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, maxout_back_kernel<T>, x.data, out.data,
                           d_out.data, d_x.data, x.dtype, item, a->groups, inner, out.numel);
    });
}
