/* AVX-512 versions of float32 exp, sigmoid, SiLU, tanh and GELU, and of the derivatives of the last three,
 * sixteen numbers at a time, where they are much faster than the compiled scalar formulas. Equally accurate,
 * but not bit-identical to them. Empty without AVX-512. Needs only the intrinsics; for kernel files. */
#ifndef PROA_KERNELS_SIMD_ACTIVATIONS_H
#define PROA_KERNELS_SIMD_ACTIVATIONS_H

#if defined(__AVX512F__)
#include <immintrin.h>

/* e^r − 1 for |r| ≤ ln 2 / 2 or little more. */
static inline __m512 simd_expm1_near(__m512 r)
{
    __m512 p = _mm512_set1_ps(1.395297012e-03f); /* (e^r − 1 − r) / r²: 3.6e-9 */
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.370321568e-03f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.166616799e-02f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.666650670e-01f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.000000107e-01f));
    return _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
}

/* Argument reduction x = k ln 2 + r; returns r. */
static inline __m512 simd_split(__m512 x, __m512 *k)
{
    *k = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
    __m512 r = _mm512_fnmadd_ps(*k, _mm512_set1_ps(0.693145752f), x);
    return _mm512_fnmadd_ps(*k, _mm512_set1_ps(1.42860677e-6f), r);
}

/* e^x for x at most 89 or NaN: 2 ulp. vscalefps multiplies by 2^k in one instruction. */
static inline __m512 vexp_lanes(__m512 x)
{
    __m512 k, r = simd_split(_mm512_max_ps(_mm512_set1_ps(-104.0f), x), &k);
    return _mm512_scalef_ps(_mm512_add_ps(simd_expm1_near(r), _mm512_set1_ps(1.0f)), k);
}

/* e^x: 2 ulp. min returns its second operand if either is NaN, so NaN passes. */
static inline __m512 simd_exp(__m512 x) { return vexp_lanes(_mm512_min_ps(_mm512_set1_ps(89.0f), x)); }

static inline __m512 simd_negative(__m512 x) { return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f)); }
/* y ≥ 0 with the sign of x. */
static inline __m512 simd_signed(__m512 y, __m512 x)
{
    return _mm512_or_ps(y, _mm512_and_ps(x, _mm512_set1_ps(-0.0f)));
}

/* 1 + e^−x: denominator of sigmoid and SiLU. */
static inline __m512 simd_logistic(__m512 x)
{
    return _mm512_add_ps(_mm512_set1_ps(1.0f), simd_exp(simd_negative(x)));
}
static inline __m512 simd_sigmoid(__m512 x) { return _mm512_div_ps(_mm512_set1_ps(1.0f), simd_logistic(x)); }
static inline __m512 simd_silu(__m512 x) { return _mm512_div_ps(x, simd_logistic(x)); }
static inline __m512 simd_swish(__m512 x) { return simd_silu(x); }
/* x clamped to [−1000, 1000], as `saturated` of ops/elementwise/formulas_real.h. min and max return their
 * second operand for NaN, so NaN passes. */
static inline __m512 simd_saturated(__m512 x)
{
    return _mm512_max_ps(_mm512_set1_ps(-1000.0f), _mm512_min_ps(_mm512_set1_ps(1000.0f), x));
}
static inline __m512 simd_silu_grad(__m512 x, __m512 g)
{
    x = simd_saturated(x);
    __m512 one = _mm512_set1_ps(1.0f), s = simd_sigmoid(x);
    return _mm512_mul_ps(_mm512_mul_ps(g, s), _mm512_fmadd_ps(x, _mm512_sub_ps(one, s), one));
}

/* tanh x = t / (t + 2) with t = e^2|x| − 1 = 2^k (e^r − 1) + (2^k − 1): 3 ulp, tiny numbers included. */
static inline __m512 simd_tanh(__m512 x)
{
    __m512 one = _mm512_set1_ps(1.0f), a = _mm512_min_ps(_mm512_set1_ps(10.0f), _mm512_abs_ps(x)), k;
    __m512 near = simd_expm1_near(simd_split(_mm512_add_ps(a, a), &k)), power = _mm512_scalef_ps(one, k);
    __m512 t = _mm512_fmadd_ps(near, power, _mm512_sub_ps(power, one));
    __m512 y = _mm512_div_ps(t, _mm512_add_ps(t, _mm512_set1_ps(2.0f)));
    return simd_signed(y, x);
}

/* Piecewise polynomials about 0, step, 2 step, … 15 step, highest power first: minimax fits, errors beside
 * them. */
static const float simd_phi[6][16] = {
    /* Φ(x) − 1/2, step 0.375: 1.6e-8 */
    {0.00990054756f, 0.00669655064f, -0.000123018937f, -0.00522380229f, -0.00582953915f, -0.00328559265f,
     -0.000480331306f, 0.000952843286f, 0.00110199058f, 0.000720286916f, 0.000344080821f, 0.000129321037f,
     3.95202005e-05f, 9.9986928e-06f, 2.11783481e-06f, 3.78379696e-07f},
    {0.0f, 0.0164747648f, 0.0227779094f, 0.0171562564f, 0.00610553008f, -0.00269733323f, -0.00608474296f,
     -0.00539874705f, -0.00332964933f, -0.00159265392f, -0.000616479665f, -0.000197308837f, -5.28811579e-05f,
     -1.19654942e-05f, -2.29869784e-06f, -3.76463902e-07f},
    {-0.066489093f, -0.0532595217f, -0.0219584405f, 0.00937872473f, 0.0269820131f, 0.0288400501f,
     0.0214907769f, 0.0124925654f, 0.00590925617f, 0.00232249964f, 0.000767585705f, 0.000214952728f,
     5.12668048e-05f, 1.04518949e-05f, 1.8263878e-06f, 2.74108913e-07f},
    {0.0f, -0.0697209984f, -0.112924419f, -0.119179703f, -0.0971386507f, -0.0644881055f, -0.0357078016f,
     -0.0167006981f, -0.00664769672f, -0.00226300303f, -0.000661024125f, -0.00016607107f, -3.59477199e-05f,
     -6.7130859e-06f, -1.08265488e-06f, -1.50912356e-07f},
    {0.398942262f, 0.37185508f, 0.301137447f, 0.211876646f, 0.1295176f, 0.0687862784f, 0.0317396484f,
     0.0127241798f, 0.00443184795f, 0.00134111894f, 0.000352595933f, 8.05406235e-05f, 1.59838219e-05f,
     2.75596994e-06f, 4.12854462e-07f, 5.37339453e-08f},
    {0.0f, 0.146169767f, 0.27337265f, 0.369705468f, 0.43319279f, 0.469603628f, 0.487775534f, 0.495667547f,
     0.498650104f, 0.499630928f, 0.499911577f, 0.499981463f, 0.499996603f, 0.499999464f, 0.499999911f, 0.5f},
};
static const float simd_gelu_slope[7][16] = {
    /* Φ(x) + x φ(x) − 1/2, step 0.40625: 2.9e-8 */
    {0.0f, -0.0207757819f, -0.0171086844f, 0.00167187641f, 0.0115456134f, 0.00715661235f, -0.000191712112f,
     -0.00272478489f, -0.00166096725f, -0.000327158108f, 0.000160060488f, 0.000155467089f, 6.78701981e-05f,
     2.00288796e-05f, 4.40841222e-06f, 7.54778227e-07f},
    {0.0591573119f, 0.0303969681f, -0.0210707802f, -0.0402560644f, -0.0208421592f, 0.00389819383f,
     0.0118047567f, 0.00717333145f, 0.00149443804f, -0.000781121198f, -0.000829295779f, -0.000398148288f,
     -0.000129971639f, -3.17957529e-05f, -6.07437551e-06f, -9.26545056e-07f},
    {0.0f, 0.100797363f, 0.108483367f, 0.0372848175f, -0.0293830205f, -0.0444587134f, -0.0250430182f,
     -0.0046083089f, 0.00367607875f, 0.00377483387f, 0.00191654754f, 0.000674934185f, 0.00017989552f,
     3.76848875e-05f, 6.33230547e-06f, 8.64291167e-07f},
    {-0.265947402f, -0.175827533f, 0.00884813257f, 0.132594675f, 0.133375809f, 0.0663991794f, 0.00780733814f,
     -0.014913165f, -0.0140786897f, -0.00741232f, -0.00278880727f, -0.000805974996f, -0.000184815173f,
     -3.42299973e-05f, -5.17762237e-06f, -6.44366366e-07f},
    {0.0f, -0.286151797f, -0.389115393f, -0.290892184f, -0.11767073f, 0.00648616953f, 0.0483928621f,
     0.040655192f, 0.0216378961f, 0.00854496658f, 0.00264205108f, 0.000656133925f, 0.000132777917f,
     2.20942693e-05f, 3.04171795e-06f, 3.47972815e-07f},
    {0.797884464f, 0.674060822f, 0.384249359f, 0.0976969376f, -0.0682510734f, -0.10777653f, -0.0806123093f,
     -0.042584952f, -0.0173737202f, -0.00567205297f, -0.00150874979f, -0.000330431038f, -5.99850064e-05f,
     -9.06751484e-06f, -1.14508669e-06f, -1.21101365e-07f},
    {0.0f, 0.306953818f, 0.524761796f, 0.619888544f, 0.621043384f, 0.581859529f, 0.542458773f, 0.517665982f,
     0.506017387f, 0.501696289f, 0.500398338f, 0.500078261f, 0.500012875f, 0.500001788f, 0.500000179f, 0.5f},
};

/* The piecewise polynomial of `table` at a ≥ 0; constant beyond its last piece. */
static inline __attribute__((always_inline)) __m512 simd_table(const float (*table)[16], int degree,
                                                               float step, __m512 a)
{
    __m512 magic = _mm512_set1_ps(12582912.0f); /* 1.5·2^23: the sum's low bits are the index of the nearest
                                                 * piece */
    __m512 c = _mm512_min_ps(_mm512_set1_ps(15.49f * step), a);
    __m512 shifted = _mm512_fmadd_ps(c, _mm512_set1_ps(1.0f / step), magic);
    __m512 d = _mm512_fnmadd_ps(_mm512_sub_ps(shifted, magic), _mm512_set1_ps(step), c);
    __m512i at = _mm512_castps_si512(shifted); /* its low four bits are the index */
    __m512 p = _mm512_permutexvar_ps(at, _mm512_loadu_ps(table[0]));
#pragma GCC unroll 8
    for (int i = 1; i <= degree; i++)
        p = _mm512_fmadd_ps(p, d, _mm512_permutexvar_ps(at, _mm512_loadu_ps(table[i])));
    return p;
}

/* 1/2 + f(x) for an odd f of the tables. */
#define LANES_ODD(table, degree, step, x) \
    _mm512_add_ps(_mm512_set1_ps(0.5f), simd_signed(simd_table(table, degree, step, _mm512_abs_ps(x)), x))

/* Exact GELU, x Φ(x), and its gradient: to 1e-7 |x| and 1e-7. (`off` and `on`: without and with the tanh
 * approximation.) */
static inline __m512 simd_gelu_off(__m512 x) { return _mm512_mul_ps(x, LANES_ODD(simd_phi, 5, 0.375f, x)); }
static inline __m512 simd_gelu_grad_off(__m512 x, __m512 g)
{
    return _mm512_mul_ps(g, LANES_ODD(simd_gelu_slope, 6, 0.40625f, x));
}

/* tanh(√(2/π) (x + 0.044715 x³)) of GELU's approximation (Hendrycks and Gimpel, 2016); square: x². */
static inline __m512 simd_gelu_tanh(__m512 x, __m512 square)
{
    __m512 inner = _mm512_fmadd_ps(square, _mm512_set1_ps(0.0356774081f), _mm512_set1_ps(0.797884561f));
    return simd_tanh(_mm512_mul_ps(x, inner));
}
static inline __m512 simd_gelu_on(__m512 x)
{
    __m512 t = simd_gelu_tanh(x, _mm512_mul_ps(x, x)), half = _mm512_mul_ps(x, _mm512_set1_ps(0.5f));
    return _mm512_mul_ps(half, _mm512_add_ps(_mm512_set1_ps(1.0f), t));
}
static inline __m512 simd_gelu_grad_on(__m512 x, __m512 g)
{
    x = simd_saturated(x);
    __m512 one = _mm512_set1_ps(1.0f), s = _mm512_mul_ps(x, x), t = simd_gelu_tanh(x, s);
    __m512 inner = _mm512_fmadd_ps(s, _mm512_set1_ps(0.107032224f), _mm512_set1_ps(0.797884561f));
    __m512 slope = _mm512_mul_ps(_mm512_mul_ps(x, inner), _mm512_fnmadd_ps(t, t, one));
    slope = _mm512_add_ps(slope, _mm512_add_ps(one, t));
    return _mm512_mul_ps(_mm512_mul_ps(g, _mm512_set1_ps(0.5f)), slope);
}

/* Ops without transcendental functions, for non-temporal stores from registers. */
static inline __m512 simd_add(__m512 x, __m512 y) { return _mm512_add_ps(x, y); }
static inline __m512 simd_multiply(__m512 x, __m512 y) { return _mm512_mul_ps(x, y); }
static inline __m512 simd_relu(__m512 x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ), x);
}
static inline __m512 simd_tanh_grad(__m512 out, __m512 g)
{
    return _mm512_mul_ps(g, _mm512_fnmadd_ps(out, out, _mm512_set1_ps(1.0f)));
}
#endif

#endif
