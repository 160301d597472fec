/* The profiler: number and duration of the calls of each op, as a table and as a trace for Chrome and
 * Perfetto. Covers all threads, eager calls and programs; costs nothing while it is off. */
#ifndef PROA_PROFILE_H
#define PROA_PROFILE_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Discards the former recording and starts a new one. BAD_STATE if it is recording already. */
PROA_API proa_status proa_profile_start(void);
/* Ends recording; its data stay until the next start. Does nothing when it is off. */
PROA_API proa_status proa_profile_stop(void);
/* Whether the profiler is recording. */
PROA_API bool proa_profile_is_on(void);

/* A user-defined interval in the profile, beside the ops: begin returns the start that end takes (0 while the
 * profiler is off, which end ignores). The name is copied. */
PROA_API int64_t proa_profile_begin(void);
PROA_API proa_status proa_profile_end(const char *name, int64_t began);

/* Statistics of one op on one kernel, or of the user's intervals of one name. Times are in seconds, from the
 * op's shape inference to its result; `self` excludes ops that a call made in turn (a loop's body).
 * Floating-point operations are counted for products, convolutions, attention and recurrent layers, a
 * multiply-add as two; bytes are those of all inputs and outputs once, and none for views. */
typedef struct proa_profile_row {
    const char *name; /* borrowed until the next start */
    bool is_op;
    int64_t count;
    double total, self, least, most;
    double flops, bytes;
    const char *kernel; /* static: "conv_onednn"; NULL for intervals, and for views, which run no kernel */
} proa_profile_row;

/* Copies at most `capacity` rows, in the order of first use; returns how many there are. */
PROA_API int64_t proa_profile_rows(proa_profile_row *rows, int64_t capacity);
/* Length of the recording in seconds: until stop, or until now. */
PROA_API double proa_profile_seconds(void);

/* Roofline of this machine with this thread's number of threads: peak GFLOP/s of a large matmul and GB/s of a
 * large addition, measured at the first call (some tenths of a second). BAD_STATE while recording. */
PROA_API proa_status proa_profile_roofline(double *gflops, double *gbs);

typedef enum proa_profile_order {
    PROA_PROFILE_BY_TOTAL = 0,
    PROA_PROFILE_BY_MEAN,
    PROA_PROFILE_BY_MAX,
    PROA_PROFILE_BY_MIN
} proa_profile_order;

/* Prints one line per op and kernel, longest first: kernel, calls, total, mean, share of the ops' time,
 * GFLOP/s, GB/s, and the fraction of the roofline, that is, the least time that peak arithmetic and bandwidth
 * allow divided by the time taken. Then the user's intervals. unit: "s", "ms", "us" or "ns"; NULL: ms. */
PROA_API proa_status proa_profile_print(FILE *to, proa_profile_order order, const char *unit);
/* The calls one by one, as JSON in Chrome's trace format; written whole or not at all. Calls beyond the
 * first million of a recording are in the table only; the file says how many. */
PROA_API proa_status proa_profile_write_trace(const char *path);

#ifdef __cplusplus
}
#endif
#endif
