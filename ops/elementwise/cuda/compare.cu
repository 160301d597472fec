/* CUDA kernels of comparisons, logical and bitwise ops, generated from the scalar formulas. */
#define PROA_FORMULAS_COMPARE 1
#include "ops/elementwise/cuda/elementwise.h"

#include "formulas_cuda.inc"
