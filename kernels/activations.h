/* Scalar activations of float32 and float64 (relu_F32, gelu_on_F64, …) for elementwise ops and epilogues.
 * C11 that CUDA compiles; may use kernels/scalar_math.h. */
#ifndef PROA_KERNELS_ACTIVATIONS_H
#define PROA_KERNELS_ACTIVATIONS_H

#include "kernels/scalar_math.h"

#define T float
#define F(name) name##_F32
#include "kernels/activations_real.h"
#undef T
#undef F
#define T double
#define F(name) name##_F64
#include "kernels/activations_real.h"
#undef T
#undef F

#endif
