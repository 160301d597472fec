/* CUDA kernels of complex numbers: the formulas of formulas_complex.h over CUDA's complex type, and the ops
 * between complex numbers and their real and imaginary parts. */
#include "ops/elementwise/cuda/elementwise.h"

#if defined(CUDA_EMULATED)
#include <complex>
namespace library = std;
#else
#include <cuda/std/complex>
namespace library = cuda::std;
#endif

enum { CUDA_COMPLEX = 1 << PROA_C64 | 1 << PROA_C128 };

template <class F> using number = library::complex<F>;
template <class F> CUDA_FN number<F> number_of(cuda_complex<F> v) { return number<F>(v.re, v.im); }
/* Conversion of a value to the type that it is stored in. */
template <class F> CUDA_FN cuda_complex<F> stored(number<F> v) { return {v.real(), v.imag()}; }
CUDA_FN float stored(float v) { return v; }
CUDA_FN double stored(double v) { return v; }
CUDA_FN uint8_t stored(bool v) { return v; }

/* ---- one operand --------------------------------------------------------------------------- */

/* GIVES: what the formula makes of x, a number<F>: T (complex), F (its real type) or uint8_t. */
#define COMPLEX_OF_ONE(op, GIVES, ...)                                                              \
    template <class F> struct op##_complex {                                                        \
        typedef cuda_complex<F> T;                                                                  \
        typedef GIVES R;                                                                            \
        CUDA_MEMBER R operator()(T v) const                                                         \
        {                                                                                           \
            number<F> x = number_of(v);                                                             \
            return stored(__VA_ARGS__);                                                             \
        }                                                                                           \
    };                                                                                              \
    CUDA_KERNEL(op, CUDA_IS(a->x, CUDA_COMPLEX))                                                    \
    {                                                                                               \
        proa_tensor *t[] = {a->out, a->x};                                                          \
        if (cuda_look(a->x).dtype == PROA_C64) return cuda_map_run<1>(c, t, op##_complex<float>{}); \
        return cuda_map_run<1>(c, t, op##_complex<double>{});                                       \
    }

/* e^(a+ib) − 1 = expm1(a) cos b − 2 sin²(b/2) + i e^a sin b */
template <class F> CUDA_FN number<F> complex_expm1(number<F> x)
{
    F a = x.real(), b = x.imag(), h = sin(b / 2);
    return number<F>(expm1(a) * cos(b) - 2 * h * h, exp(a) * sin(b));
}
/* log(1 + e^−|a| e^±ib) = log1p(e (2 cos b + e)) / 2 ± i atan2(e sin b, 1 + e cos b), with e = e^−|a| */
template <class F> CUDA_FN F log_modulus(F e, F b) { return log1p(e * (2 * cos(b) + e)) / 2; }
template <class F> CUDA_FN F log_argument(F e, F b) { return atan2(e * sin(b), 1 + e * cos(b)); }
/* x − log(1 + e^x) left of the imaginary axis, −log(1 + e^−x) elsewhere. */
template <class F> CUDA_FN number<F> complex_logsigmoid(number<F> x)
{
    F a = x.real(), b = x.imag(), e = exp(-fabs(a)), turn = log_argument(e, b);
    return number<F>((a < 0 ? a : 0) - log_modulus(e, b), a < 0 ? b - turn : turn);
}
/* x + 3 is clamped by its real part: 0 or 6 replaces the whole of it. */
template <class F> CUDA_FN number<F> complex_hardswish(number<F> x)
{
    F a = x.real();
    number<F> gate = a < -3 ? number<F>(0) : a > 3 ? number<F>(6) : x + F(3);
    return x * gate / F(6);
}

COMPLEX_OF_ONE(abs, F, F(hypot(x.real(), x.imag())))
COMPLEX_OF_ONE(angle, F, F(atan2(x.imag(), x.real())))
COMPLEX_OF_ONE(real, F, x.real())
COMPLEX_OF_ONE(imag, F, x.imag())
COMPLEX_OF_ONE(logical_not, uint8_t, x == number<F>(0))
COMPLEX_OF_ONE(log, T, library::log(x))
COMPLEX_OF_ONE(sqrt, T, library::sqrt(x))
COMPLEX_OF_ONE(rsqrt, T, F(1) / library::sqrt(x))
COMPLEX_OF_ONE(square, T, x *x)
COMPLEX_OF_ONE(reciprocal, T, F(1) / x)
COMPLEX_OF_ONE(neg, T, -x)
COMPLEX_OF_ONE(exp, T, library::exp(x))
COMPLEX_OF_ONE(expm1, T, complex_expm1(x))
COMPLEX_OF_ONE(sin, T, library::sin(x))
COMPLEX_OF_ONE(cos, T, library::cos(x))
COMPLEX_OF_ONE(tan, T, library::tan(x))
COMPLEX_OF_ONE(asin, T, library::asin(x))
COMPLEX_OF_ONE(acos, T, library::acos(x))
COMPLEX_OF_ONE(atan, T, library::atan(x))
COMPLEX_OF_ONE(sinh, T, library::sinh(x))
COMPLEX_OF_ONE(cosh, T, library::cosh(x))
COMPLEX_OF_ONE(tanh, T, library::tanh(x))
COMPLEX_OF_ONE(asinh, T, library::asinh(x))
COMPLEX_OF_ONE(acosh, T, library::acosh(x))
COMPLEX_OF_ONE(atanh, T, library::atanh(x))
COMPLEX_OF_ONE(sigmoid, T, F(1) / (F(1) + library::exp(-x)))
COMPLEX_OF_ONE(silu, T, x / (F(1) + library::exp(-x)))
COMPLEX_OF_ONE(softsign, T, x / F(1 + hypot(x.real(), x.imag())))
COMPLEX_OF_ONE(logsigmoid, T, complex_logsigmoid(x))
COMPLEX_OF_ONE(hardswish, T, complex_hardswish(x))

/* ---- two operands -------------------------------------------------------------------------- */

#define COMPLEX_OF_TWO(op, GIVES, ...)                                          \
    template <class F> struct op##_complex {                                    \
        typedef cuda_complex<F> T;                                              \
        typedef GIVES R;                                                        \
        CUDA_MEMBER R operator()(T v, T w) const                                \
        {                                                                       \
            number<F> x = number_of(v), y = number_of(w);                       \
            return stored(__VA_ARGS__);                                         \
        }                                                                       \
    };                                                                          \
    CUDA_KERNEL(op, CUDA_IS(a->x, CUDA_COMPLEX) || CUDA_IS(a->y, CUDA_COMPLEX)) \
    {                                                                           \
        proa_tensor *t[] = {a->out, a->x, a->y};                                \
        if (CUDA_IS(a->x, CUDA_BIT(C128)) || CUDA_IS(a->y, CUDA_BIT(C128)))     \
            return cuda_map_run<2>(c, t, op##_complex<double>{});               \
        return cuda_map_run<2>(c, t, op##_complex<float>{});                    \
    }

COMPLEX_OF_TWO(add, T, x + y)
COMPLEX_OF_TWO(subtract, T, x - y)
COMPLEX_OF_TWO(multiply, T,
               number<F>(x.real() * y.real() - x.imag() * y.imag(),
                         x.real() * y.imag() + x.imag() * y.real()))
COMPLEX_OF_TWO(divide, T, x / y)
COMPLEX_OF_TWO(equal, uint8_t, x == y)
COMPLEX_OF_TWO(not_equal, uint8_t, !(x == y))
COMPLEX_OF_TWO(logical_and, uint8_t, x != number<F>(0) && y != number<F>(0))
COMPLEX_OF_TWO(logical_or, uint8_t, x != number<F>(0) || y != number<F>(0))
COMPLEX_OF_TWO(logical_xor, uint8_t, (x != number<F>(0)) != (y != number<F>(0)))

/* ---- numbers beside the operand ------------------------------------------------------------ */

template <class F> struct scale_complex {
    typedef cuda_complex<F> T;
    typedef T R;
    T by, plus;
    bool after;
    CUDA_MEMBER R operator()(T x) const { return after ? x * by + plus : (x + plus) * by; }
};
template <class F> static proa_status scale_numbers(cuda_context *c, const proa_scale_args *a)
{
    proa_tensor *t[] = {a->out, a->x};
    proa_scalar one = {PROA_SCALAR_INT, 1};
    scale_complex<F> f = {{0, 0}, {(F)a->bias, 0}, a->bias_after_scale};
    cuda_scalar_to(a->scale.kind == PROA_SCALAR_NONE ? &one : &a->scale,
                   sizeof(F) == 8 ? PROA_C128 : PROA_C64, &f.by);
    return cuda_map_run<1>(c, t, f);
}
CUDA_KERNEL(scale, CUDA_IS(a->x, CUDA_COMPLEX))
{
    return cuda_look(a->x).dtype == PROA_C64 ? scale_numbers<float>(c, a) : scale_numbers<double>(c, a);
}

template <class F> struct stanh_complex {
    typedef cuda_complex<F> T;
    typedef T R;
    F in, out;
    CUDA_MEMBER R operator()(T x) const { return stored(out * library::tanh(in * number_of(x))); }
};
CUDA_KERNEL(stanh, CUDA_IS(a->x, CUDA_COMPLEX))
{
    proa_tensor *t[] = {a->out, a->x};
    if (cuda_look(a->x).dtype == PROA_C64)
        return cuda_map_run<1>(c, t, stanh_complex<float>{(float)a->scale_a, (float)a->scale_b});
    return cuda_map_run<1>(c, t, stanh_complex<double>{a->scale_a, a->scale_b});
}

/* The principal logarithm of 1 + e^(beta x), over beta; real parts alone are compared with the threshold. */
template <class F> struct softplus_complex {
    typedef cuda_complex<F> T;
    typedef T R;
    F beta, threshold;
    CUDA_MEMBER R operator()(T v) const
    {
        F a = v.re * beta, b = v.im * beta, e = exp(-fabs(a));
        if (a > threshold) return v;
        F argument = a > 0 ? F(atan2(sin(b), e + cos(b))) : log_argument(e, b);
        return {((a > 0 ? a : 0) + log_modulus(e, b)) / beta, argument / beta};
    }
};
CUDA_KERNEL(softplus, CUDA_IS(a->x, CUDA_COMPLEX))
{
    proa_tensor *t[] = {a->out, a->x};
    if (cuda_look(a->x).dtype == PROA_C64)
        return cuda_map_run<1>(c, t, softplus_complex<float>{(float)a->beta, (float)a->threshold});
    return cuda_map_run<1>(c, t, softplus_complex<double>{a->beta, a->threshold});
}

/* ---- parts, conversions -------------------------------------------------------------------- */

template <class F> struct pair_fn {
    typedef F T;
    typedef cuda_complex<F> R;
    CUDA_MEMBER R operator()(T re, T im) const { return {re, im}; }
};
CUDA_KERNEL(complex, true)
{
    proa_tensor *t[] = {a->out, a->real, a->imag};
    if (cuda_look(a->out).dtype == PROA_C64) return cuda_map_run<2>(c, t, pair_fn<float>{});
    return cuda_map_run<2>(c, t, pair_fn<double>{});
}

static proa_status same_bytes(cuda_context *c, const proa_tensor *out, const proa_tensor *x)
{
    cuda_tensor to = cuda_look(out);
    return cuda_move(c, to.data, cuda_look(x).data, (size_t)(to.numel * cuda_item(to.dtype)));
}
CUDA_KERNEL(as_complex, true) { return same_bytes(c, a->out, a->x); }
CUDA_KERNEL(as_real, true) { return same_bytes(c, a->out, a->x); }

/* conj: real numbers are copied, complex ones conjugated. keep_fn also serves cast. */
template <class X> struct keep_fn {
    typedef X T;
    typedef X R;
    CUDA_MEMBER R operator()(T x) const { return x; }
};
template <class F> struct conj_fn {
    typedef cuda_complex<F> T;
    typedef T R;
    CUDA_MEMBER R operator()(T x) const { return {x.re, -x.im}; }
};
CUDA_KERNEL(conj, true)
{
    proa_tensor *t[] = {a->out, a->x};
    proa_dtype d = cuda_look(a->x).dtype;
    if (d == PROA_C64) return cuda_map_run<1>(c, t, conj_fn<float>{});
    if (d == PROA_C128) return cuda_map_run<1>(c, t, conj_fn<double>{});
    if (d <= PROA_I64) return cuda_map_run<1>(c, t, keep_fn<int64_t>{});
    if (d == PROA_F64) return cuda_map_run<1>(c, t, keep_fn<double>{});
    return cuda_map_run<1>(c, t, keep_fn<float>{});
}

/* To BOOL an imaginary part counts; to other real dtypes it is dropped. */
struct truth_fn {
    typedef cuda_c_C128 T;
    typedef uint8_t R;
    CUDA_MEMBER R operator()(T x) const { return x.re != 0 || x.im != 0; }
};
CUDA_KERNEL(cast, CUDA_IS(a->x, CUDA_COMPLEX) || CUDA_IS(a->out, CUDA_COMPLEX))
{
    proa_tensor *t[] = {a->out, a->x};
    proa_dtype from = cuda_look(a->x).dtype, to = cuda_look(a->out).dtype;
    if (to == PROA_BOOL) return cuda_map_run<1>(c, t, truth_fn{});
    if (from == PROA_C64 || (to == PROA_C64 && from <= PROA_F32 && from >= PROA_F16))
        return cuda_map_run<1>(c, t, keep_fn<cuda_c_C64>{});
    return cuda_map_run<1>(c, t, keep_fn<cuda_c_C128>{});
}
