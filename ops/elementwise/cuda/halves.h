/* gelu and its gradient for halves: in float32 by the GPU's approximate 2^x and 1/x, with relative errors of
 * 2e-5, where a half's rounding makes 5e-4 or more. Compiled by nvcc and by NVRTC; needs
 * ops/elementwise/formulas.h before it. */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_HALVES_H
#define PROA_OPS_ELEMENTWISE_CUDA_HALVES_H

#include "devices/cuda/approximate.h"

CUDA_FN float half_sigmoid(float x)
{
    return cuda_approximate_inverse(1 + cuda_approximate_exp2(x * -1.44269504f));
}

/* Φ(x); *e: e^(−x²/2). */
CUDA_FN float half_phi(float x, float *e)
{
    float t = cuda_approximate_inverse(1 + 0.31f * m_abs_F32(x));
    float p = -7.392915180e-02f; /* Φ(−a) e^(a²/2) / t for t = 1 / (1 + 0.31 a), a ≤ 13.5: 4.9e-6 */
    p = p * t + 1.804503733e-01f;
    p = p * t + 1.574468656e-02f;
    p = p * t + 1.334297936e-01f;
    p = p * t + 1.204412749e-01f;
    p = p * t + 1.238607022e-01f;
    *e = cuda_approximate_exp2(x * x * -0.721347520f);
    float tail = p * t * *e;
    return x < 0 ? tail : 1 - tail;
}

CUDA_FN float gelu_off_half(float x)
{
    float e;
    return x * half_phi(x, &e);
}
CUDA_FN float gelu_grad_off_half(float x, float g)
{
    x = saturated_F32(x);
    float e, phi = half_phi(x, &e);
    return g * (phi + x * e * 0.398942280f);
}
/* With s = σ(2u), tanh u = 2s − 1 and 1 − tanh² u = 4 s (1 − s). */
CUDA_FN float gelu_on_half(float x) { return x * half_sigmoid(2 * gelu_inner_F32(x)); }
CUDA_FN float gelu_grad_on_half(float x, float g)
{
    x = saturated_F32(x);
    float s = half_sigmoid(2 * gelu_inner_F32(x)), inner = 1.59576912f * (1 + 0.134145f * x * x);
    return g * (s + x * (s * (1 - s)) * inner);
}

#endif
