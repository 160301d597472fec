/* Drives fuzz_planner.c with random bytes and no instrumentation, thousands of programs a second, which runs
 * guided by coverage are far from.
 *   stress_planner RUNS SEED     prints how many ran; a failure prints the bytes and ends it
 *   stress_planner BYTE,BYTE,…   runs these again */
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern int64_t fuzz_planner_stepped;

enum { MAX = 43 };
static uint8_t bytes[MAX];
static int n_bytes;

static void tell(int signal_number)
{
    (void)fprintf(stderr, "stress_planner: signal %d; run again with ", signal_number);
    for (int i = 0; i < n_bytes; i++) (void)fprintf(stderr, i ? ",%d" : "%d", bytes[i]);
    (void)fprintf(stderr, "\n");
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void run_again(const char *text)
{
    for (char *end; n_bytes < MAX && *text; text = *end ? end + 1 : end)
        bytes[n_bytes++] = (uint8_t)strtol(text, &end, 10);
    (void)LLVMFuzzerTestOneInput(bytes, (size_t)n_bytes);
}

int main(int argc, char **argv)
{
    (void)signal(SIGSEGV, tell);
    (void)signal(SIGBUS, tell);
    (void)signal(SIGFPE, tell);
    (void)signal(SIGABRT, tell);
    if (argc == 2) {
        run_again(argv[1]);
        return 0;
    }
    if (argc != 3) {
        (void)fprintf(stderr, "stress_planner RUNS SEED, or the bytes of one run\n");
        return 2;
    }
    int64_t runs = strtoll(argv[1], NULL, 10);
    uint64_t state = strtoull(argv[2], NULL, 10) * 0x9E3779B97F4A7C15u + 1;
    for (int64_t i = 0; i < runs; i++) {
        n_bytes = 4 + (int)(next(&state) % (MAX - 3));
        for (int k = 0; k < n_bytes; k++) bytes[k] = (uint8_t)(next(&state) >> 24);
        (void)LLVMFuzzerTestOneInput(bytes, (size_t)n_bytes);
    }
    printf("stress_planner: %" PRId64 " executions, %" PRId64
           " of them with an optimizer's steps, nothing found\n",
           runs, fuzz_planner_stepped);
    return runs >= 10000 && !fuzz_planner_stepped;
}
