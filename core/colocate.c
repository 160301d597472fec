/* Co-location of a worker with the thread that it helps. Beside another process on each of two cores the
 * worker gets half of one, but has work only while its caller runs, which is half of the time: a quarter of a
 * core is lost. With both threads on one core, and the other processes on the other, they take turns and lose
 * nothing. Linux's load balancing keeps that placement once it is there, but may take seconds to find it: the
 * worker's move is the first half of it. Uses wait.h for who had to wait. */
#define _GNU_SOURCE
#include "core/colocate.h"

#include "core/thread.h"
#include "core/wait.h"

#if defined(__linux__)
#include <sched.h>

enum {
    MAX_CORES = 8192,   /* in an affinity mask */
    BETWEEN = 100000000 /* ns between two moves (0.1 s), in which the scheduler moves the others */
};

/* Least parts of a window for which the thread waited (proa__waited_part): of the one that is helped, beside
 * another process all the time; of its worker, which waits only for what it is wanted for. Beside a single
 * process one of the two has a core of its own, and they stay apart. */
#define HELPED_WAITED 0.3f
#define WORKER_WAITED 0.2f

int proa__crowded_core(void)
{
    return PROA__UNLIKELY(proa__waited_part() >= HELPED_WAITED) ? sched_getcpu() : -1;
}

void proa__join_core(int core)
{
    static PROA__TLS int64_t moved; /* time of the last move, in ns */
    if (PROA__LIKELY(core < 0) || proa__waited_part() < WORKER_WAITED || core == sched_getcpu()) return;
    int64_t now = proa__wait_clock();
    if (now - moved < BETWEEN) return;
    moved = now;
    unsigned long all[MAX_CORES / (8 * sizeof(long))], one[MAX_CORES / (8 * sizeof(long))];
    cpu_set_t *may = (cpu_set_t *)all, *there = (cpu_set_t *)one;
    CPU_ZERO_S(sizeof all, may);
    if (sched_getaffinity(0, sizeof all, may) != 0 || !CPU_ISSET_S((size_t)core, sizeof all, may)) return;
    CPU_ZERO_S(sizeof one, there);
    CPU_SET_S((size_t)core, sizeof one, there);
    if (sched_setaffinity(0, sizeof one, there) == 0) sched_setaffinity(0, sizeof all, may);
}
#else
int proa__crowded_core(void) { return -1; }
void proa__join_core(int core) { (void)core; }
#endif
