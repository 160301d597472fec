/* Time and memory of running an exported model from C: loads and optimizes it once, runs it on one input
 * repeatedly, and prints a line of JSON. Started by inference.py beside the frameworks' predictors. Usage:
 * predict PREFIX THREADS SECONDS float|int8 float32|int64 DIM...
 * int8: a model that was calibrated. */
#include "timing.h"

#include <proa.h>

#include <string.h>

enum { MAX_SAMPLES = 1 << 16, MIN_SAMPLES = 3 };

static double run(proa_executor *e, proa_tensor *x)
{
    double start = now();
    PROA_SCOPE {
        proa_tensors results = proa_executor_run(e, (proa_tensors){1, &x});
        if (results.count) opaque(proa_data(results.at[0]));
    }
    return now() - start;
}

/* Median of samples of about a millisecond, or of one longer run, as many as `seconds` hold. */
static double typical(proa_executor *e, proa_tensor *x, double seconds)
{
    static double samples[MAX_SAMPLES];
    double once = run(e, x), end = now() + seconds;
    int inner = once < 0.001 ? (int)(0.001 / once) : 1, n = 0;
    while (n < MIN_SAMPLES || (n < MAX_SAMPLES && now() < end)) {
        double start = now();
        for (int i = 0; i < inner; i++) run(e, x);
        samples[n++] = (now() - start) / inner;
    }
    return median(samples, (size_t)n);
}

/* Floats between -1 and 1, or integers below 50: any of which a model takes. */
static proa_tensor *numbers(proa_ints shape, proa_dtype dtype)
{
    proa_tensor *x = proa_full(shape, 0, .dtype = dtype);
    uint32_t state = 1;
    for (int64_t i = 0; x && i < proa_numel(x); i++) {
        state = state * 1664525u + 1013904223u;
        if (dtype == PROA_F32) ((float *)proa_data(x))[i] = (float)(state >> 8) * 0x1p-23f - 1;
        else ((int64_t *)proa_data(x))[i] = (state >> 8) % 50;
    }
    return x;
}

/* Bytes that this process occupied at most; 0 where /proc does not say. */
static long long peak_bytes(void)
{
    long long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld", &kib) == 1) break;
    if (f) fclose(f);
    return kib * 1024;
}

int main(int argc, char **argv)
{
    int64_t shape[PROA_MAX_DIMS];
    int dims = argc - 6;
    if (dims < 1 || dims > PROA_MAX_DIMS) {
        fprintf(stderr, "usage: predict PREFIX THREADS SECONDS float|int8 float32|int64 DIM...\n");
        return 2;
    }
    for (int i = 0; i < dims; i++) shape[i] = atoll(argv[6 + i]);
    long long idle = peak_bytes();
    proa_set_threads(atoi(argv[2]));
    proa_tensor *x =
        numbers((proa_ints){dims, shape, NULL, NULL}, strcmp(argv[5], "int64") == 0 ? PROA_I64 : PROA_F32);
    proa_program *p = proa_program_load(argv[1]);
    const char *passes = strcmp(argv[4], "float") == 0 ? NULL : "all,int8";
    proa_executor *e =
        p ? proa_executor_with(p, (proa_executor_opts){.frozen = true, .passes = passes}) : NULL;
    if (e && x) {
        double first = run(e, x), seconds = typical(e, x, atof(argv[3]));
        if (proa_error() == PROA_OK)
            printf("{\"seconds\": %.9g, \"first\": %.9g, \"idle_bytes\": %lld, \"peak_bytes\": %lld}\n",
                   seconds, first, idle, peak_bytes());
    }
    proa_executor_free(e);
    proa_program_free(p);
    return proa_finish(stderr);
}
