/* Special functions in double, for formulas.h; the float32 versions round their results. C library only. */
#ifndef PROA_OPS_ELEMENTWISE_FORMULAS_SPECIAL_H
#define PROA_OPS_ELEMENTWISE_FORMULAS_SPECIAL_H

/* e^−a·I_ν(a) for a ≥ 0, ν 0 or 1: the power series Σ (a²/4)^k / (k! (k + ν)!) up to 20, then the
 * asymptotic one in 1/(8a) (Abramowitz and Stegun 9.6.10, 9.7.1). */
PROA_FORMULA double m_bessel_scaled(double a, int order)
{
    if (!(a <= 20)) {
        double term = 1, sum = 1;
        if (a != a || isinf(a)) return a != a ? a : 0;
        for (int k = 1; k < 40; k++) {
            term *= ((2. * k - 1) * (2. * k - 1) - 4. * order) / (8 * a * k);
            sum += term;
            if (fabs(term) < 1e-17) break;
        }
        return sum / sqrt(6.28318530717958647692 * a);
    }
    double q = 0.25 * a * a, term = order ? 0.5 * a : 1, sum = term;
    for (int k = 1; k < 100 && term > 1e-17 * sum; k++) {
        term *= q / ((double)k * (k + order));
        sum += term;
    }
    return sum * exp(-a);
}

PROA_FORMULA double m_i0e(double x) { return m_bessel_scaled(fabs(x), 0); }
PROA_FORMULA double m_i1e(double x) { return copysign(m_bessel_scaled(fabs(x), 1), x); }
PROA_FORMULA double m_bessel(double a, int order)
{
    return isinf(a) ? a : m_bessel_scaled(a, order) * exp(0.5 * a) * exp(0.5 * a);
}
PROA_FORMULA double m_i0(double x) { return m_bessel(fabs(x), 0); }
PROA_FORMULA double m_i1(double x) { return copysign(m_bessel(fabs(x), 1), x); }

/* Hurwitz' ζ(s, q) = Σ (q + k)^−s for q > 0, s ≥ 2: summed up to 10 + s, then Euler and Maclaurin. */
PROA_FORMULA double m_zeta_positive(double s, double q)
{
    /* B_2k / (2k)! */
    static const double b[] = {1. / 12,          -1. / 720,     1. / 30240,
                               -1. / 1209600,    1. / 47900160, -691. / 1307674368000.,
                               1. / 74724249600.};
    double sum = 0;
    for (; q < 10 + s; q += 1) sum += pow(q, -s);
    double power = pow(q, -s), factor = s * power / q;
    sum += power * q / (s - 1) + 0.5 * power;
    for (int k = 0; k < 7; k++) {
        sum += b[k] * factor;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
    }
    return sum;
}

/* The n-th derivative of digamma, (−1)^(n+1) n! ζ(n + 1, x); terms left of 0 are a difference of two ζ. */
PROA_FORMULA double m_polygamma(double x, int n)
{
    double s = n + 1., zeta, down = floor(x), at = x - down;
    if (x != x) return x;
    if (x > 0) {
        zeta = m_zeta_positive(s, x);
    } else if (at == 0) {
        zeta = INFINITY;
    } else {
        double left = m_zeta_positive(s, 1 - at) - m_zeta_positive(s, 1 - at - down);
        zeta = m_zeta_positive(s, at) + (n % 2 ? left : -left);
    }
    return (n % 2 ? 1 : -1) * tgamma(s) * zeta;
}

#endif
