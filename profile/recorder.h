/* Access to the profiler's recorded events (profile/recorder.c), for the report (io/profile_report.c). May
 * use core only. */
#ifndef PROA_PROFILE_RECORDER_H
#define PROA_PROFILE_RECORDER_H

#include <proa/profile.h>

/* One call, or one user-named interval. Times are nanoseconds since the recording began. */
typedef struct proa__profile_event {
    int32_t row, thread; /* row: index as in proa_profile_rows */
    int64_t begin, length;
    double flops, bytes;
} proa__profile_event;

/* The recorded events, only while recording is off; valid until the next start. *lost: number of events
 * beyond the limit. */
const proa__profile_event *proa__profile_events(int64_t *count, int64_t *lost);

#endif
