/* Number of cores that this process may use, and the default number of threads with the reason for it.
 * Private to core. */
#ifndef PROA_CORE_CORES_H
#define PROA_CORE_CORES_H

#include <stdbool.h>

typedef struct proa__cores {
    int affinity; /* cores of the affinity mask, ≥ 1 */
    double quota; /* CPU quota of the tightest cgroup, in cores; 0: none */
    int threads;  /* default number of kernel threads */
    char reason[96];
} proa__cores;

/* Reads the environment, the affinity mask and the cgroup quotas. `root` is prefixed to /proc and
 * /sys/fs/cgroup: "" except in tests. */
proa__cores proa__cores_look(const char *root);
/* proa__cores_look("") of this process, read once and cached. */
const proa__cores *proa__cores_here(void);

#endif
