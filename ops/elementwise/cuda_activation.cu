/* Formulas of the group activation as CUDA kernels. */
#define PROA_FORMULAS_ACTIVATION 1
#include "ops/elementwise/cuda.h"

#include "formulas_cuda.inc"
