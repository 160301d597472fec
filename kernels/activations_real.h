/* Activations of one floating type: included by activations.h with T (type) and F(name) (name with the
 * dtype's suffix). Branch-free where that keeps loops in vector registers. */
PROA_FORMULA T F(relu)(T x) { return x > 0 || x != x ? x : 0; }
PROA_FORMULA T F(relu6)(T x)
{
    T r = F(relu)(x);
    return r > 6 ? (T)6 : r;
}
PROA_FORMULA T F(sigmoid)(T x) { return 1 / (1 + F(m_exp)(-x)); }
/* log σ(x) = min(x, 0) − log(1 + e^−|x|) */
PROA_FORMULA T F(logsigmoid)(T x)
{
    return (x < 0 || x != x ? x : 0) - F(m_log1p_unit)(F(m_exp)(-F(m_abs)(x)));
}
PROA_FORMULA T F(leaky_relu)(T x, T alpha) { return x > 0 ? x : alpha * x; }
PROA_FORMULA T F(elu)(T x, T alpha) { return x > 0 ? x : alpha * F(m_expm1)(x < 0 || x != x ? x : 0); }
PROA_FORMULA T F(selu)(T x, T scale, T alpha) { return scale * F(elu)(x, alpha); }
PROA_FORMULA T F(celu)(T x, T alpha)
{
    T n = x < 0 || x != x ? x : 0;
    return (x > 0 ? x : 0) + alpha * F(m_expm1)(n / alpha);
}
PROA_FORMULA T F(silu)(T x) { return x / (1 + F(m_exp)(-x)); }
PROA_FORMULA T F(swish)(T x) { return F(silu)(x); }
PROA_FORMULA T F(softplus)(T x, T beta, T threshold)
{
    T z = x * beta, soft = ((z > 0 ? z : 0) + F(m_log1p_unit)(F(m_exp)(-F(m_abs)(z)))) / beta;
    return z > threshold || x != x ? x : soft;
}
/* e^x for tanh(softplus(x)) = n (n + 2) / (n (n + 2) + 2), which is 1 from x = 20 on. */
PROA_FORMULA T F(mish_exp)(T x) { return F(m_exp)(x > 20 ? (T)20 : x); }
/* tanh of softplus, which is x itself above the threshold. */
PROA_FORMULA T F(mish_tanh)(T x, T n, T threshold)
{
    T w = n * (n + 2);
    return x > threshold ? 1 - 2 / (n * n + 1) : w / (w + 2);
}
PROA_FORMULA T F(mish)(T x, T threshold) { return x * F(mish_tanh)(x, F(mish_exp)(x), threshold); }
PROA_FORMULA T F(softsign)(T x) { return x / (1 + F(m_abs)(x)); }
PROA_FORMULA T F(clamp_between)(T x, T low, T high)
{
    T r = x < low ? low : x;
    return r > high ? high : r;
}
PROA_FORMULA T F(hardsigmoid)(T x, T slope, T offset) { return F(clamp_between)(x * slope + offset, 0, 1); }
PROA_FORMULA T F(hardswish)(T x) { return x * F(clamp_between)(x + 3, 0, 6) / 6; }
PROA_FORMULA T F(hardtanh)(T x, T min, T max) { return F(clamp_between)(x, min, max); }
PROA_FORMULA T F(hardshrink)(T x, T threshold) { return x >= -threshold && x <= threshold ? 0 : x; }
PROA_FORMULA T F(softshrink)(T x, T threshold)
{
    return x > threshold ? x - threshold : x < -threshold ? x + threshold : x != x ? x : 0;
}
PROA_FORMULA T F(tanhshrink)(T x) { return x - F(m_tanh)(x); }
PROA_FORMULA T F(thresholded_relu)(T x, T threshold) { return x > threshold || x != x ? x : 0; }
PROA_FORMULA T F(stanh)(T x, T scale_a, T scale_b) { return scale_b * F(m_tanh)(scale_a * x); }
/* gelu_off: x Φ(x), exact. gelu_on, approximate: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))). */
PROA_FORMULA T F(gelu_inner)(T x) { return (T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x); }
PROA_FORMULA T F(gelu_on)(T x) { return (T)0.5 * x * (1 + F(m_tanh)(F(gelu_inner)(x))); }
PROA_FORMULA T F(gelu_off)(T x) { return x * F(m_phi)(x); }
