/* float16 and bfloat16 against a slow reference that follows the definition. */
#include "core/half.h"
#include "suite.h"

#include <math.h>

/* The value of a binary format with `mantissa` fraction bits and `exponent` exponent bits. */
static double decode(uint32_t bits, int mantissa, int exponent)
{
    int bias = (1 << (exponent - 1)) - 1, e = (int)(bits >> mantissa) & ((1 << exponent) - 1);
    double m = (double)(bits & ((1u << mantissa) - 1)), sign = bits >> (mantissa + exponent) & 1 ? -1.0 : 1.0;
    if (e == (1 << exponent) - 1) return m > 0 ? (double)NAN : sign * (double)INFINITY;
    return sign *
           (e == 0 ? ldexp(m, 1 - bias - mantissa) : ldexp(m + ldexp(1, mantissa), e - bias - mantissa));
}

/* The nearest value of that format, ties to even. */
static uint32_t encode(double v, int mantissa, int exponent)
{
    int bias = (1 << (exponent - 1)) - 1, e;
    uint32_t sign = signbit(v) ? 1u << (mantissa + exponent) : 0, infinity = ((1u << exponent) - 1)
                                                                             << mantissa;
    v = fabs(v);
    if (isinf(v)) return sign | infinity;
    if (v == 0) return sign;
    (void)frexp(v, &e);
    if (e - 1 < 1 - bias) e = 2 - bias;                      /* subnormals share the lowest exponent */
    double quanta = nearbyint(ldexp(v, mantissa - (e - 1))); /* exact, then one rounding */
    double value = ldexp(quanta, e - 1 - mantissa);
    if (value >= ldexp(1, bias + 1)) return sign | infinity;
    if (value < ldexp(1, 1 - bias)) return sign | (uint32_t)quanta;
    (void)frexp(value, &e);
    uint32_t fraction = (uint32_t)ldexp(value, mantissa - (e - 1)) - (1u << mantissa);
    return sign | (uint32_t)(e - 1 + bias) << mantissa | fraction;
}

START_TEST(every_float16_decodes)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float got = proa__f16_to_f32((uint16_t)h);
        double want = decode(h, 10, 5);
        if (isnan(want)) ck_assert_msg(isnan(got), "%x", h);
        else ck_assert_msg((double)got == want && !signbit(got) == !signbit(want), "%x", h);
        if (!isnan(want)) ck_assert_uint_eq(proa__f32_to_f16(got), h);
        else ck_assert(isnan(proa__f16_to_f32(proa__f32_to_f16(got))));
    }
}
END_TEST

START_TEST(every_bfloat16_decodes)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float got = proa__bf16_to_f32((uint16_t)h);
        double want = decode(h, 7, 8);
        if (isnan(want)) ck_assert_msg(isnan(got), "%x", h);
        else ck_assert_msg((double)got == want && !signbit(got) == !signbit(want), "%x", h);
        if (!isnan(want)) ck_assert_uint_eq(proa__f32_to_bf16(got), h);
        else ck_assert(isnan(proa__bf16_to_f32(proa__f32_to_bf16(got))));
    }
}
END_TEST

static void check_f32(uint32_t bits)
{
    float f = proa__f32_from_bits(bits);
    uint16_t half = proa__f32_to_f16(f), brain = proa__f32_to_bf16(f);
    if (isnan(f)) {
        ck_assert_msg(isnan(proa__f16_to_f32(half)) && isnan(proa__bf16_to_f32(brain)), "%x", bits);
        return;
    }
    if (half != encode((double)f, 10, 5)) ck_abort_msg("float16 of %x: %x", bits, half);
    if (brain != encode((double)f, 7, 8)) ck_abort_msg("bfloat16 of %x: %x", bits, brain);
}

/* Around every value and every midpoint of both formats: where rounding decides. */
START_TEST(rounding_is_to_nearest_even)
{
    for (uint32_t h = 0; h < 65536; h++) {
        uint32_t half = proa__f32_bits(proa__f16_to_f32((uint16_t)h)), brain = h << 16;
        for (uint32_t d = 0; d < 3; d++) {
            check_f32(half + d - 1);
            check_f32(half + 0x1000 + d - 1);
            check_f32(brain + d - 1);
            check_f32(brain + 0x8000 + d - 1);
        }
    }
    for (uint32_t h = 0; h < 0x400; h++) { /* midpoints of float16's subnormals */
        uint32_t middle = proa__f32_bits(((float)h + 0.5f) * 0x1p-24f);
        for (uint32_t d = 0; d < 3; d++) check_f32(middle + d - 1);
    }
}
END_TEST

START_TEST(samples_of_all_float32)
{
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 1021) check_f32((uint32_t)bits);
}
END_TEST

START_TEST(rows_agree_with_single_values)
{
    enum { N = 65536 + 5 };
    static uint16_t from[N], back[N];
    static float wide[N];
    for (int i = 0; i < N; i++) from[i] = (uint16_t)i;
    proa__f16_to_f32_row(from, wide, N);
    proa__f32_to_f16_row(wide, back, N);
    for (int i = 0; i < N; i++) {
        float want = proa__f16_to_f32(from[i]);
        ck_assert_uint_eq(proa__f32_bits(wide[i]), proa__f32_bits(want));
        ck_assert_uint_eq(back[i], proa__f32_to_f16(want));
    }
    proa__bf16_to_f32_row(from, wide, N);
    proa__f32_to_bf16_row(wide, back, N);
    for (int i = 0; i < N; i++) ck_assert_uint_eq(back[i], proa__f32_to_bf16(proa__bf16_to_f32(from[i])));
}
END_TEST

SUITE("core_half", every_float16_decodes, every_bfloat16_decodes, rounding_is_to_nearest_even,
      samples_of_all_float32, rows_agree_with_single_values)
