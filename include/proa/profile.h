/* The profiler: how often each op was called and what it took, as a table and as a trace that Chrome and
 * Perfetto show. Covers every thread, eager calls and programs alike; costs nothing while it is off. */
#ifndef PROA_PROFILE_H
#define PROA_PROFILE_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Forgets what was recorded before and records from now on. BAD_STATE if it is recording already. */
PROA_API proa_status proa_profile_start(void);
/* Ends recording; what was recorded stays until the next start. Does nothing when it is off. */
PROA_API proa_status proa_profile_stop(void);
/* Whether it is recording. */
PROA_API bool proa_profile_is_on(void);

/* A stretch of the user's own, beside the ops: begin gives what end takes (0 while the profiler is off, which
 * end ignores). The name is copied. */
PROA_API int64_t proa_profile_begin(void);
PROA_API proa_status proa_profile_end(const char *name, int64_t began);

/* Statistics of one op on one kernel, or of the user's stretches of one name. Times are in seconds, from the
 * op's inference to its result; `self` leaves out the ops that a call made in turn (a loop's body).
 * Arithmetic is counted for products, convolutions, attention and recurrent layers, a multiply-add as two;
 * bytes are those of all inputs and outputs once, and none for views. */
typedef struct proa_profile_row {
    const char *name; /* borrowed until the next start */
    bool is_op;
    int64_t count;
    double total, self, least, most;
    double flops, bytes;
    const char *kernel; /* static: "conv_onednn"; NULL for stretches, and for views, which run none */
} proa_profile_row;

/* Copies at most `capacity` rows, in the order of first use; returns how many there are. */
PROA_API int64_t proa_profile_rows(proa_profile_row *rows, int64_t capacity);
/* Seconds recorded: until stop, or until now. */
PROA_API double proa_profile_seconds(void);

/* Peak rates of this machine with this thread's number of threads, measured when first asked for (some tenths
 * of a second): a large matmul and a large addition of Proa's own. BAD_STATE while recording. */
PROA_API proa_status proa_profile_roofline(double *gflops, double *gbs);

typedef enum proa_profile_order {
    PROA_PROFILE_BY_TOTAL = 0,
    PROA_PROFILE_BY_MEAN,
    PROA_PROFILE_BY_MAX,
    PROA_PROFILE_BY_MIN
} proa_profile_order;

/* One line an op and kernel, longest first: kernel, calls, total, mean, share of the ops' time, GFLOP/s,
 * GB/s, and the fraction of the roofline, that is, the least time that the machine's arithmetic and
 * bandwidth allow over the time taken. Then the user's stretches. unit: "s", "ms", "us" or "ns"; NULL:
 * ms. */
PROA_API proa_status proa_profile_print(FILE *to, proa_profile_order order, const char *unit);
/* The calls one by one, as JSON in Chrome's trace format; written whole or not at all. Calls beyond the
 * first million of a recording are in the table only; the file says how many. */
PROA_API proa_status proa_profile_write_trace(const char *path);

#ifdef __cplusplus
}
#endif
#endif
