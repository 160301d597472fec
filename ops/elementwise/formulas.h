/* Scalar formulas of all elementwise ops: <op>_<DTYPE>(x, …) for floats, doubles and integers. C11 that
 * CUDA compiles; may use kernels/activations.h. */
#ifndef PROA_OPS_ELEMENTWISE_FORMULAS_H
#define PROA_OPS_ELEMENTWISE_FORMULAS_H

#include "kernels/activations.h"

#include "ops/elementwise/formulas_special.h"

/* ---- the ops, for float and double --------------------------------------------------------- */

#define T float
#define F(name) name##_F32
#define C(name) name##f
#include "ops/elementwise/formulas_real.h"
#undef T
#undef F
#undef C
#define T double
#define F(name) name##_F64
#define C(name) name
#include "ops/elementwise/formulas_real.h"
#undef T
#undef F
#undef C

#if !defined(__CUDACC__)
PROA_FORMULA int m_remainder_is_quick_F32(float x, float y) { return m_fmod_is_quick_F32(x, y); }
PROA_FORMULA float m_remainder_quick_F32(float x, float y)
{
    return m_floored_F32(m_fmod_quick_F32(x, y), y);
}
/* e^(a + ib) = e^a (cos b + i sin b) where e^a is neither denormal nor infinite. */
PROA_FORMULA int m_exp_is_quick_C64(float _Complex z)
{
    return (m_abs_F32(__real__ z) < 87.0f) & m_sin_is_quick_F32(__imag__ z);
}
PROA_FORMULA float _Complex m_exp_quick_C64(float _Complex z)
{
    float _Complex y;
    float e = m_exp_F32(__real__ z);
    __real__ y = e * m_cos_quick_F32(__imag__ z);
    __imag__ y = e * m_sin_quick_F32(__imag__ z);
    return y;
}
#endif

/* ---- the ops, for integers: sums and products wrap round ------------------------------------ */

#define T int32_t
#define U uint32_t
#define F(name) name##_I32
#include "ops/elementwise/formulas_integer.h"
#undef T
#undef U
#undef F
#define T int64_t
#define U uint64_t
#define F(name) name##_I64
#include "ops/elementwise/formulas_integer.h"
#undef T
#undef U
#undef F

/* Bytes, for bool and uint8. */
PROA_FORMULA uint8_t equal_U8(uint8_t x, uint8_t y) { return x == y; }
PROA_FORMULA uint8_t not_equal_U8(uint8_t x, uint8_t y) { return x != y; }
PROA_FORMULA uint8_t less_than_U8(uint8_t x, uint8_t y) { return x < y; }
PROA_FORMULA uint8_t less_equal_U8(uint8_t x, uint8_t y) { return x <= y; }
PROA_FORMULA uint8_t greater_than_U8(uint8_t x, uint8_t y) { return x > y; }
PROA_FORMULA uint8_t greater_equal_U8(uint8_t x, uint8_t y) { return x >= y; }
PROA_FORMULA uint8_t logical_and_U8(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
PROA_FORMULA uint8_t logical_or_U8(uint8_t x, uint8_t y) { return (x != 0) | (y != 0); }
PROA_FORMULA uint8_t logical_xor_U8(uint8_t x, uint8_t y) { return (x != 0) ^ (y != 0); }
PROA_FORMULA uint8_t logical_not_U8(uint8_t x) { return x == 0; }

#endif
