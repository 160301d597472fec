/* One executor, many runs over many input shapes: its plans are a bounded cache, so the process must not
 * grow. Short by default; PROA_TEST_SOAK set (make soak): 10^5 runs over 1,000 shapes, and then resident
 * memory stays within 2 % of what it was after the first 5,000 runs. */
#define _GNU_SOURCE
#include "soak.h"

/* The k-th of `shapes` input shapes: batch, height and width vary. */
static proa_tensor *input(int k, int shapes)
{
    int64_t n = 1 + k % 10, h = 4 + k / 10 % 10, w = 4 + k * 10 / shapes;
    return proa_full(PROA_SHAPE(n, SOAK_CHANNELS, h, w), 0.25 + 0.001 * k);
}

START_TEST(memory_stays_flat)
{
    bool is_long = soak_is_long();
    int runs = is_long ? 100000 : 2000, warm = is_long ? 5000 : 500, shapes = is_long ? 1000 : 100;
    proa_seed(1);
    proa_tensor *w[] = SOAK_WEIGHTS;
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, SOAK_CHANNELS, -1, -1)};
    proa_program *p = proa_capture(soak_network, &spec, 1, w);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    proa_executor *e = proa_executor_new(p);
    ck_assert_msg(e != NULL, "%s", proa_error_message());
    double resident = 0;
    int64_t live = 0;
    for (int i = 0; i < runs; i++) {
        PROA_SCOPED;
        proa_tensor *x = input((int)((int64_t)i * 7919 % shapes), shapes);
        proa_tensors out = proa_executor_run(e, (proa_tensors){1, &x});
        ck_assert_msg(out.count == 1, "run %d: %s", i, proa_error_message());
        if (i == warm) resident = soak_resident(), live = proa_memory_get_stats().live_bytes;
    }
    double now = soak_resident();
    int64_t live_now = proa_memory_get_stats().live_bytes;
    if (is_long) printf("resident: %.0f KiB after %d runs, %.0f KiB after %d\n", resident, warm, now, runs);
    ck_assert_msg(!is_long || now <= resident * 1.02, "resident memory grew from %.0f to %.0f KiB", resident,
                  now);
    ck_assert_msg(live_now <= live + live / 10 + 65536, "live bytes grew from %lld to %lld", (long long)live,
                  (long long)live_now);
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

SUITE("soak", memory_stays_flat)
