/* Number of threads that kernels use, the reason for that number, and counts of waits between threads.
 * Implemented by core/. */
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
    int workers;           /* worker threads started */
    int64_t worker_sleeps; /* times that a worker found no work while it spun and slept in the kernel */
    int64_t caller_sleeps; /* times that a caller, waiting for the last parts of its workers, slept in the
                            * kernel */
    int64_t stolen; /* parts of work done by another thread than the planned one, because that one had no
                     * core */
    bool contended; /* others want the same cores: threads sleep at once instead of spinning */
} proa_thread_stats;

/* The number is the first of these that is set: proa_set_threads on this thread; 1 in a child made by fork;
 * FLAGS_num_threads; PROA_NUM_THREADS; OMP_NUM_THREADS; the cores of the affinity mask, limited to those that
 * the cgroup's CPU quota can keep busy. */
PROA_API proa_thread_stats proa_threads_info(void);

#ifdef __cplusplus
}
#endif

#endif
