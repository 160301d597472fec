/* Scalar formulas for one signed integer type: included by formulas.h with T, U (its unsigned twin) and
 * F(name). Arithmetic is done unsigned, so that overflow wraps instead of being undefined. */

PROA_FORMULA T F(add)(T x, T y) { return (T)((U)x + (U)y); }
PROA_FORMULA T F(subtract)(T x, T y) { return (T)((U)x - (U)y); }
PROA_FORMULA T F(multiply)(T x, T y) { return (T)((U)x * (U)y); }
/* Division by zero gives 0; the least number divided by −1 wraps to itself. */
PROA_FORMULA T F(divide)(T x, T y) { return y == 0 ? 0 : y == -1 ? (T)(0 - (U)x) : x / y; }
PROA_FORMULA T F(floor_divide)(T x, T y)
{
    if (y == 0) return 0;
    if (y == -1) return (T)(0 - (U)x);
    T q = x / y;
    return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}
PROA_FORMULA T F(remainder)(T x, T y)
{
    if (y == 0 || y == -1) return 0;
    T r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
PROA_FORMULA T F(maximum)(T x, T y) { return x > y ? x : y; }
PROA_FORMULA T F(minimum)(T x, T y) { return x < y ? x : y; }
PROA_FORMULA T F(fmax)(T x, T y) { return x > y ? x : y; }
PROA_FORMULA T F(fmin)(T x, T y) { return x < y ? x : y; }
PROA_FORMULA T F(heaviside)(T x, T y) { return x == 0 ? y : (T)(x > 0); }
/* Negative exponents: only ±1 have an inverse. */
PROA_FORMULA T F(elementwise_pow)(T x, T y)
{
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    U r = 1, b = (U)x;
    for (; y; y >>= 1, b *= b)
        if (y & 1) r *= b;
    return (T)r;
}

#include "ops/elementwise/formulas_tests.h"
PROA_FORMULA T F(bitwise_and)(T x, T y) { return x & y; }
PROA_FORMULA T F(bitwise_or)(T x, T y) { return x | y; }
PROA_FORMULA T F(bitwise_xor)(T x, T y) { return x ^ y; }
PROA_FORMULA T F(bitwise_not)(T x) { return ~x; }

PROA_FORMULA T F(abs)(T x) { return x < 0 ? (T)(0 - (U)x) : x; }
PROA_FORMULA T F(neg)(T x) { return (T)(0 - (U)x); }
PROA_FORMULA T F(sign)(T x) { return (T)((x > 0) - (x < 0)); }
PROA_FORMULA T F(square)(T x) { return (T)((U)x * (U)x); }
PROA_FORMULA T F(trunc)(T x) { return x; }
PROA_FORMULA T F(conj)(T x) { return x; }
