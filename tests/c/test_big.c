/* Sizes at the edges: an op over 2^31 + 8 elements, where 32-bit arithmetic would go wrong, and shapes of
 * 2^63 bytes and more, which are refused. The first needs 5 GiB and runs where PROA_TEST_BIG is set, as make
 * soak does; the second always. */
#include "suite.h"

#include <proa.h>

#include <string.h>

START_TEST(more_elements_than_int_has)
{
    if (!getenv("PROA_TEST_BIG")) return;
    const int64_t n = (INT64_C(1) << 31) + 8;
    proa_tensor *x = proa_full(PROA_SHAPE(n), 3, .dtype = PROA_U8);
    ck_assert_msg(x != NULL, "%s", proa_error_message());
    uint8_t *p = proa_data(x);
    p[0] = 7;
    p[n - 1] = 9;
    proa_touch(x);
    proa_tensor *y = proa_add(x, x);
    ck_assert_msg(y != NULL, "%s", proa_error_message());
    ck_assert_int_eq(proa_numel(y), n);
    const uint8_t *q = proa_data(y);
    ck_assert_int_eq(q[0], 14);
    ck_assert_int_eq(q[n - 1], 18);
    ck_assert_int_eq(q[n - 2], 6);
    ck_assert_int_eq(q[INT64_C(1) << 31], 6);
    int64_t wrong = 0;
    for (int64_t i = 1; i < n - 1; i++) wrong += q[i] != 6;
    ck_assert_int_eq(wrong, 0);
    proa_drop(y);
    proa_tensor *tail = proa_slice(x, PROA_INTS(0), PROA_INTS(n - 4), PROA_INTS(n));
    ck_assert_int_eq(proa_numel(tail), 4);
    ck_assert_int_eq(((const uint8_t *)proa_data(tail))[3], 9);
    proa_tensor *last = proa_strided_slice(x, PROA_INTS(0), PROA_INTS(0), PROA_INTS(n), PROA_INTS(n - 1));
    uint8_t ends[2];
    ck_assert_int_eq(proa_copy_out(last, ends, sizeof ends), PROA_OK);
    ck_assert(ends[0] == 7 && ends[1] == 9);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static void expect_refusal(const proa_tensor *t)
{
    ck_assert_ptr_null(t);
    ck_assert_msg(proa_error() == PROA_ERR_OVERFLOW || proa_error() == PROA_ERR_OUT_OF_MEMORY, "%d: %s",
                  (int)proa_error(), proa_error_message());
    ck_assert_int_ne((int)strlen(proa_error_message()), 0);
    proa_clear_error();
}

START_TEST(sizes_beyond_memory_are_refused)
{
    const int64_t huge = INT64_C(1) << 40;
    int64_t live = proa_memory_get_stats().live_bytes;
    expect_refusal(proa_empty(PROA_SHAPE(INT64_C(1) << 61), PROA_F32)); /* 2^63 bytes */
    expect_refusal(proa_empty(PROA_SHAPE(INT64_MAX), PROA_U8));
    expect_refusal(proa_empty(PROA_SHAPE(huge, huge), PROA_U8)); /* 2^80 elements */
    expect_refusal(proa_full(PROA_SHAPE(huge, huge, 0 + 1), 1.0));
    proa_tensor *x = proa_full(PROA_SHAPE(1, 1), 1.0);
    expect_refusal(proa_expand(x, PROA_INTS(INT64_C(1) << 32, INT64_C(1) << 32)));
    expect_refusal(proa_tile(x, PROA_INTS(huge, huge)));
    proa_tensor *empty = proa_empty(PROA_SHAPE(huge, 0, huge), PROA_F64); /* nothing to hold: allowed */
    ck_assert_int_eq(proa_numel(empty), 0);
    ck_assert_int_eq(proa_finish(stderr), 0);
    ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
}
END_TEST

SUITE("big", more_elements_than_int_has, sizes_beyond_memory_are_refused)
