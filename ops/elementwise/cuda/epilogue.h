/* Epilogue of fused products (linear_fused, conv2d_fused) in one pass: adds a residual and applies an
 * activation. Needs PROA_FORMULAS_ACTIVATION and PROA_FORMULAS_TRIG before it. */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_EPILOGUE_H
#define PROA_OPS_ELEMENTWISE_CUDA_EPILOGUE_H

#include "ops/elementwise/cuda/elementwise.h"

template <class X> struct cuda_epilogue_fn;
#define CUDA_EPILOGUE(D, X)                                                                 \
    template <> struct cuda_epilogue_fn<X> {                                                \
        typedef X T;                                                                        \
        typedef X R;                                                                        \
        proa_fused_activation activation;                                                   \
        T alpha, beta;                                                                      \
        CUDA_CALL R operator()(T x) const                                                   \
        {                                                                                   \
            switch (activation) {                                                           \
            case PROA_FUSED_ACTIVATION_RELU: return relu_##D(x);                            \
            case PROA_FUSED_ACTIVATION_RELU6: return relu6_##D(x);                          \
            case PROA_FUSED_ACTIVATION_LEAKY_RELU: return leaky_relu_##D(x, alpha);         \
            case PROA_FUSED_ACTIVATION_ELU: return elu_##D(x, alpha);                       \
            case PROA_FUSED_ACTIVATION_SIGMOID: return sigmoid_##D(x);                      \
            case PROA_FUSED_ACTIVATION_TANH: return m_tanh_##D(x);                          \
            case PROA_FUSED_ACTIVATION_GELU: return gelu_off_##D(x);                        \
            case PROA_FUSED_ACTIVATION_GELU_TANH: return gelu_on_##D(x);                    \
            case PROA_FUSED_ACTIVATION_SILU: return silu_##D(x);                            \
            case PROA_FUSED_ACTIVATION_HARDSWISH: return hardswish_##D(x);                  \
            case PROA_FUSED_ACTIVATION_HARDSIGMOID: return hardsigmoid_##D(x, alpha, beta); \
            default: return x;                                                              \
            }                                                                               \
        }                                                                                   \
        CUDA_CALL R operator()(T x, T residual) const { return (*this)(x + residual); }     \
    };
CUDA_EPILOGUE(F32, float)
CUDA_EPILOGUE(F64, double)
#undef CUDA_EPILOGUE

/* Applies the epilogue to out in place; residual: PROA_NONE for none, else broadcast to out. */
static inline proa_status cuda_epilogue_run(cuda_context *c, proa_tensor *out, proa_tensor *residual,
                                            proa_fused_activation activation, double alpha, double beta)
{
    proa_tensor *t[] = {out, out, residual};
    bool wide = cuda_look(out).dtype == PROA_F64, adds = cuda_given(residual);
    cuda_epilogue_fn<double> f = {activation, alpha, beta};
    cuda_epilogue_fn<float> h = {activation, (float)alpha, (float)beta};
    if (!adds && activation == PROA_FUSED_ACTIVATION_NONE) return PROA_OK;
    if (wide) return adds ? cuda_map_run<2>(c, t, f) : cuda_map_run<1>(c, t, f);
    return adds ? cuda_map_run<2>(c, t, h) : cuda_map_run<1>(c, t, h);
}

#endif
