/* Comparisons and logic of two numbers, for integers and floats alike: included by formulas_integer.h and
 * formulas_real.h with their T and F(name). */

PROA_FORMULA uint8_t F(equal)(T x, T y) { return x == y; }
PROA_FORMULA uint8_t F(not_equal)(T x, T y) { return x != y; }
PROA_FORMULA uint8_t F(less_than)(T x, T y) { return x < y; }
PROA_FORMULA uint8_t F(less_equal)(T x, T y) { return x <= y; }
PROA_FORMULA uint8_t F(greater_than)(T x, T y) { return x > y; }
PROA_FORMULA uint8_t F(greater_equal)(T x, T y) { return x >= y; }
PROA_FORMULA uint8_t F(logical_and)(T x, T y) { return (x != 0) & (y != 0); }
PROA_FORMULA uint8_t F(logical_or)(T x, T y) { return (x != 0) | (y != 0); }
PROA_FORMULA uint8_t F(logical_xor)(T x, T y) { return (x != 0) ^ (y != 0); }
PROA_FORMULA uint8_t F(logical_not)(T x) { return x == 0; }
