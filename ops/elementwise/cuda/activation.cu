/* CUDA kernels of activations, generated from the scalar formulas, and of prelu. */
#define PROA_FORMULAS_ACTIVATION 1
#include "ops/elementwise/cuda/elementwise.h"

/* ---- for halves ------------------------------------------------------------------------- */

struct gelu_half {
    typedef float T;
    typedef float R;
    bool approximate;
    template <class F> explicit gelu_half(const F &f) : approximate(f.approximate) {}
    CUDA_CALL R operator()(T x) const { return approximate ? gelu_on_half(x) : gelu_off_half(x); }
};
struct gelu_grad_half {
    typedef float T;
    typedef float R;
    bool approximate;
    template <class F> explicit gelu_grad_half(const F &f) : approximate(f.approximate) {}
    CUDA_CALL R operator()(T x, T g) const
    {
        return approximate ? gelu_grad_on_half(x, g) : gelu_grad_off_half(x, g);
    }
};
template <> struct cuda_map_half<struct gelu_F32_cuda> {
    typedef gelu_half type;
};
template <> struct cuda_map_half<struct gelu_grad_F32_cuda> {
    typedef gelu_grad_half type;
};

/* ---- all others -------------------------------------------------------------------------- */

#include "formulas_cuda.inc"

/* ---- prelu ----------------------------------------------------------------------------- */

template <class X> struct prelu_fn {
    typedef X T;
    typedef X R;
    CUDA_CALL R operator()(T x, T alpha) const { return x > 0 ? x : alpha * x; }
};

/* Alpha, contiguous, as an operand that broadcasts with x: one for all, one a channel (dim `channel`), or
 * one an element of a sample. */
static proa_status prelu(cuda_context *c, const proa_prelu_args *a, char *alpha)
{
    proa_tensor *t[] = {a->out, a->x, a->x};
    cuda_tensor x = cuda_look(a->x);
    cuda_map<2> m;
    if (x.numel == 0) return PROA_OK;
    int64_t item = cuda_item(x.dtype), step = item;
    bool last = a->data_format == PROA_DATA_FORMAT_NHWC || a->data_format == PROA_DATA_FORMAT_NLC ||
                a->data_format == PROA_DATA_FORMAT_NDHWC;
    cuda_map_operands<2>(&m, t);
    m.at[2].data = alpha;
    for (int d = x.ndim - 1; d >= 0; step *= x.shape[d--])
        m.at[2].strides[d] = a->mode == PROA_PRELU_MODE_CHANNEL   ? (d == (last ? x.ndim - 1 : 1) ? item : 0)
                             : a->mode == PROA_PRELU_MODE_ELEMENT ? (d > 0 ? step : 0)
                                                                  : 0;
    cuda_map_merge(&m);
    if (x.dtype == PROA_F64) return cuda_map_start<2>(c, &m, prelu_fn<double>{});
    return cuda_map_start<2>(c, &m, prelu_fn<float>{});
}

CUDA_KERNEL(prelu, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor alpha = cuda_look(a->alpha);
    void *copy = NULL;
    PROA_TRY(cuda_pack_tensor(c, &alpha, &copy));
    proa_status status = prelu(c, a, alpha.data);
    if (copy) cuda_scratch_free(c, copy);
    return status;
}
