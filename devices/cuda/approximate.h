/* 2^x and 1/x by the GPU's instructions: relative errors of about 2^−22, subnormal results are 0. For results
 * that are rounded to halves or TF32. Compiled by nvcc and NVRTC; the emulator computes them exactly. */
#ifndef PROA_CUDA_APPROXIMATE_H
#define PROA_CUDA_APPROXIMATE_H

#include "devices/cuda/device.h"

#if defined(CUDA_EMULATED)
CUDA_FN float cuda_approximate_exp2(float x) { return exp2f(x); }
CUDA_FN float cuda_approximate_inverse(float x) { return 1 / x; }
#else
CUDA_FN float cuda_approximate_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
CUDA_FN float cuda_approximate_inverse(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif

#endif
