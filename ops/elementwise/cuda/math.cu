/* CUDA kernels of unary mathematics and of powers, generated from the scalar formulas. */
#define PROA_FORMULAS_MATH 1
#define PROA_FORMULAS_POWER 1
#include "ops/elementwise/cuda/elementwise.h"

#include "formulas_cuda.inc"
