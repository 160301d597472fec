/* Access to the profiler's recorded events (profile/recorder.c), for the report (io/profile_report.c). May
 * use core only. */
#ifndef PROA_PROFILE_RECORDER_H
#define PROA_PROFILE_RECORDER_H

#include <proa/profile.h>

/* One call, or one stretch of the user's. Times are nanoseconds since the recording began. */
typedef struct proa__profile_event {
    int32_t row, thread; /* row: as proa_profile_rows counts */
    int64_t begin, length;
    double flops, bytes;
} proa__profile_event;

/* The events, while recording is off: the array stays until the next start. *lost: how many did not fit. */
const proa__profile_event *proa__profile_events(int64_t *count, int64_t *lost);

#endif
