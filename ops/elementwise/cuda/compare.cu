/* Formulas of the group compare as CUDA kernels. */
#define PROA_FORMULAS_COMPARE 1
#include "ops/elementwise/cuda/elementwise.h"

#include "formulas_cuda.inc"
