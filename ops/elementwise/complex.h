/* Scalar formulas for C's complex types (formulas_complex.h for both precisions); on a GPU CUDA's own complex
 * type takes their place. Needs nothing of Proa. */
#ifndef PROA_OPS_ELEMENTWISE_COMPLEX_H
#define PROA_OPS_ELEMENTWISE_COMPLEX_H

#include <complex.h>
#include <math.h>
#include <stdint.h>

#ifndef PROA_FORMULA
#define PROA_FORMULA static inline __attribute__((unused, always_inline))
#endif

#define T float _Complex
#define R float
#define F(name) name##_C64
#define C(name) name##f
#include "ops/elementwise/formulas_complex.h"
#undef T
#undef R
#undef F
#undef C
#define T double _Complex
#define R double
#define F(name) name##_C128
#define C(name) name
#include "ops/elementwise/formulas_complex.h"
#undef T
#undef R
#undef F
#undef C

#endif
