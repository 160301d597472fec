/* Formulas of the group math and of powers as CUDA kernels. */
#define PROA_FORMULAS_MATH 1
#define PROA_FORMULAS_POWER 1
#include "ops/elementwise/cuda/elementwise.h"

#include "formulas_cuda.inc"
