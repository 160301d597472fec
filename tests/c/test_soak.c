/* One executor, many runs over many input shapes: its plans are a bounded cache, so the process must not
 * grow. Short by default; PROA_TEST_SOAK set (make soak): 10^5 runs over 1,000 shapes, and then resident
 * memory stays within 2 % of what it was after the first 5,000 runs. */
#define _GNU_SOURCE
#include "suite.h"

#include <proa.h>

#include <stdio.h>
#include <unistd.h>

static proa_tensors network(proa_tensors in, void *context)
{
    proa_tensor **w = context;
    proa_tensor *h = proa_relu(proa_conv2d(in.at[0], w[0], PROA_NONE, .padding = PROA_INTS(1, 1)));
    proa_tensor *flat = proa_mean(h, .axis = PROA_INTS(2, 3));
    proa_tensors out = {1, proa_scope_alloc(sizeof(proa_tensor *))};
    if (out.at) out.at[0] = proa_softmax(proa_matmul(flat, w[1]));
    return out;
}

static double resident_mib(void)
{
    long pages = 0, ignored = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &ignored, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* The k-th of `shapes` input shapes: batch, height and width vary. */
static proa_tensor *input(int k, int shapes)
{
    int64_t n = 1 + k % 10, h = 4 + k / 10 % 10, w = 4 + k * 10 / shapes;
    return proa_full(PROA_SHAPE(n, 3, h, w), 0.25 + 0.001 * k);
}

START_TEST(memory_stays_flat)
{
    bool is_long = getenv("PROA_TEST_SOAK") != NULL;
    int runs = is_long ? 100000 : 2000, warm = is_long ? 5000 : 500, shapes = is_long ? 1000 : 100;
    proa_seed(1);
    proa_tensor *w[] = {proa_gaussian(PROA_SHAPE(4, 3, 3, 3)), proa_gaussian(PROA_SHAPE(4, 5))};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3, -1, -1)};
    proa_program *p = proa_capture(network, &spec, 1, w);
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
        if (i == warm) resident = resident_mib(), live = proa_memory_get_stats().live_bytes;
    }
    double now = resident_mib();
    int64_t live_now = proa_memory_get_stats().live_bytes;
    if (is_long) printf("resident: %.1f MiB after %d runs, %.1f MiB after %d\n", resident, warm, now, runs);
    ck_assert_msg(!is_long || now <= resident * 1.02, "resident memory grew from %.1f to %.1f MiB", resident,
                  now);
    ck_assert_msg(live_now <= live + live / 10 + 65536, "live bytes grew from %lld to %lld", (long long)live,
                  (long long)live_now);
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

SUITE("soak", memory_stays_flat)
