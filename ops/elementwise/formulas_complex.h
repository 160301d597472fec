/* Scalar formulas for one complex type: included with T (the type), R (its real type), F(name) (the name with
 * the dtype's suffix) and C(name) (the library's function). */

PROA_FORMULA T F(m_complex)(R re, R im)
{
    T z;
    __real__ z = re;
    __imag__ z = im;
    return z;
}
PROA_FORMULA T F(add)(T x, T y) { return x + y; }
PROA_FORMULA T F(subtract)(T x, T y) { return x - y; }
PROA_FORMULA T F(multiply)(T x, T y)
{
    R a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;
    return F(m_complex)(a * c - b * d, a * d + b * c);
}
PROA_FORMULA T F(divide)(T x, T y) { return x / y; }
PROA_FORMULA uint8_t F(equal)(T x, T y) { return x == y; }
PROA_FORMULA uint8_t F(not_equal)(T x, T y) { return x != y; }
PROA_FORMULA uint8_t F(logical_and)(T x, T y) { return (x != 0) & (y != 0); }
PROA_FORMULA uint8_t F(logical_or)(T x, T y) { return (x != 0) | (y != 0); }
PROA_FORMULA uint8_t F(logical_xor)(T x, T y) { return (x != 0) ^ (y != 0); }
PROA_FORMULA uint8_t F(logical_not)(T x) { return x == 0; }

PROA_FORMULA R F(abs)(T x) { return C(hypot)(__real__ x, __imag__ x); }
PROA_FORMULA R F(angle)(T x) { return C(atan2)(__imag__ x, __real__ x); }
PROA_FORMULA R F(real)(T x) { return __real__ x; }
PROA_FORMULA R F(imag)(T x) { return __imag__ x; }
PROA_FORMULA T F(conj)(T x) { return F(m_complex)(__real__ x, -__imag__ x); }
PROA_FORMULA T F(log)(T x) { return C(clog)(x); }
PROA_FORMULA T F(sqrt)(T x) { return C(csqrt)(x); }
PROA_FORMULA T F(rsqrt)(T x) { return 1 / C(csqrt)(x); }
PROA_FORMULA T F(square)(T x) { return F(multiply)(x, x); }
PROA_FORMULA T F(reciprocal)(T x) { return 1 / x; }
PROA_FORMULA T F(neg)(T x) { return -x; }
PROA_FORMULA T F(exp)(T x) { return C(cexp)(x); }
/* e^(a+ib) − 1 = expm1(a) cos b − 2 sin²(b/2) + i e^a sin b */
PROA_FORMULA T F(expm1)(T x)
{
    R a = __real__ x, b = __imag__ x, h = C(sin)(b / 2);
    return F(m_complex)(C(expm1)(a) * C(cos)(b) - 2 * h * h, C(exp)(a) * C(sin)(b));
}
PROA_FORMULA T F(sin)(T x) { return C(csin)(x); }
PROA_FORMULA T F(cos)(T x) { return C(ccos)(x); }
PROA_FORMULA T F(tan)(T x) { return C(ctan)(x); }
PROA_FORMULA T F(asin)(T x) { return C(casin)(x); }
PROA_FORMULA T F(acos)(T x) { return C(cacos)(x); }
PROA_FORMULA T F(atan)(T x) { return C(catan)(x); }
PROA_FORMULA T F(sinh)(T x) { return C(csinh)(x); }
PROA_FORMULA T F(cosh)(T x) { return C(ccosh)(x); }
PROA_FORMULA T F(tanh)(T x) { return C(ctanh)(x); }
PROA_FORMULA T F(asinh)(T x) { return C(casinh)(x); }
PROA_FORMULA T F(acosh)(T x) { return C(cacosh)(x); }
PROA_FORMULA T F(atanh)(T x) { return C(catanh)(x); }
PROA_FORMULA T F(sigmoid)(T x) { return 1 / (1 + C(cexp)(-x)); }
PROA_FORMULA T F(silu)(T x) { return x / (1 + C(cexp)(-x)); }

/* Terms that the next two share, for z = a + ib and e = e^−|a|, which cannot overflow: log(1 + e^−|a| e^±ib)
 * = log1p(e (2 cos b + e)) / 2 ± i atan2(e sin b, 1 + e cos b). */
PROA_FORMULA R F(m_log_modulus)(R e, R b) { return C(log1p)(e * (2 * C(cos)(b) + e)) / 2; }
PROA_FORMULA R F(m_log_argument)(R e, R b) { return C(atan2)(e * C(sin)(b), 1 + e * C(cos)(b)); }
/* As in Paddle: x − log(1 + e^x) left of the imaginary axis, −log(1 + e^−x) elsewhere. */
PROA_FORMULA T F(logsigmoid)(T x)
{
    R a = __real__ x, b = __imag__ x, e = C(exp)(-C(fabs)(a)), turn = F(m_log_argument)(e, b);
    return F(m_complex)((a < 0 ? a : 0) - F(m_log_modulus)(e, b), a < 0 ? b - turn : turn);
}
/* The principal logarithm of 1 + e^(beta x), over beta; real parts alone are compared with the threshold. */
PROA_FORMULA T F(softplus)(T x, T beta, T threshold)
{
    T z = F(multiply)(x, beta);
    R a = __real__ z, b = __imag__ z, e = C(exp)(-C(fabs)(a));
    if (a > __real__ threshold) return x;
    R argument = a > 0 ? C(atan2)(C(sin)(b), e + C(cos)(b)) : F(m_log_argument)(e, b);
    T soft = F(m_complex)((a > 0 ? a : 0) + F(m_log_modulus)(e, b), argument);
    return soft / __real__ beta;
}
PROA_FORMULA T F(softsign)(T x) { return x / (1 + F(abs)(x)); }
/* x + 3 is clamped by its real part: 0 or 6 replaces the whole of it. */
PROA_FORMULA T F(hardswish)(T x)
{
    R a = __real__ x;
    T gate = a < -3 ? 0 : a > 3 ? (T)6 : x + 3;
    return F(multiply)(x, gate) / 6;
}
PROA_FORMULA T F(stanh)(T x, T scale_a, T scale_b)
{
    return __real__ scale_b * C(ctanh)(__real__ scale_a * x);
}
