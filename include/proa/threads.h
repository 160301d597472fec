/* Number of kernel threads, its reason, and the waits of one thread for another. Implemented by core/. */
#ifndef PROA_THREADS_H
#define PROA_THREADS_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts are the process's since it started. */
typedef struct proa_thread_stats {
    int threads;           /* proa_threads() */
    const char *reason;    /* what decided it, as "cgroup quota of 1.5 of 8 cores"; borrowed, static */
    int workers;           /* threads that were started */
    int64_t worker_sleeps; /* times that a worker waited in vain for work and went to sleep in the kernel */
    int64_t caller_sleeps; /* times that a caller did, who waited for the last parts of its workers */
    int64_t stolen; /* parts of work that another thread did than planned, because that one had no core */
    bool contended; /* others want the same cores: threads sleep at once instead of spinning */
} proa_thread_stats;

/* The number is, in this order: what proa_set_threads was given on this thread; 1 in a child made by fork;
 * FLAGS_num_threads; PROA_NUM_THREADS; OMP_NUM_THREADS; the cores of the affinity mask, or as many as the
 * cgroup's quota can keep busy. */
PROA_API proa_thread_stats proa_threads_info(void);

#ifdef __cplusplus
}
#endif

#endif
