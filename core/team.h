/* Teams: the worker threads that help one calling thread. The caller itself runs the members (shares of a
 * job) that no worker has begun, or drops them where they are optional, so it never waits for a thread that
 * has no core yet. Private to core. */
#ifndef PROA_CORE_TEAM_H
#define PROA_CORE_TEAM_H

#include "core/thread.h"
#include "core/wait.h"

enum { PROA__MAX_THREADS = 1024 };

/* Work for several threads. `run` is called once for each member `index` (0: the caller's), on any thread of
 * the team. Members may wait for one another: a thread takes a second member only after its first has
 * returned. */
typedef struct proa__job {
    void (*run)(struct proa__job *job, int index);
    bool helpers; /* members above 0 are optional: those not started when member 0 returns are dropped */
    bool flush_denormals; /* set by proa__team_begin: workers use their caller's setting */
} proa__job;

/* Starts workers until the calling thread can run jobs of n members. Returns how many members it can have:
 * fewer than n only where the system refuses threads. */
int proa__team_reserve(int n);
/* Offers members 1 to n − 1 to the workers, n being reserved. The caller runs member 0, then ends the job. */
void proa__team_begin(proa__job *job, int n);
void proa__team_end(proa__job *job, int n);

typedef struct proa__team proa__team;
/* Called when a thread ends: its workers go to the next thread that reserves some. Accepts NULL. */
void proa__team_release(proa__team *team);
/* Called in a child made by fork, to which no worker belongs: forgets the parent's teams. */
void proa__team_forget(void);

/* A thread's number within the job and OpenMP regions that it is running, for omp_get_thread_num and its
 * like. */
typedef struct proa__position {
    bool inside;                     /* in a job: jobs started from here run on this thread alone */
    int member, members;             /* omp_get_thread_num, omp_get_num_threads; 0 members: 1 */
    int serial;                      /* nested one-thread OpenMP regions around this point */
    int outer_member, outer_members; /* outside those regions */
    int limit;                       /* threads that the next OpenMP region may have; 0: proa_threads() */
    struct proa__region *region;     /* the OpenMP region */
    long trip;                       /* chunks of the region's current loop that this member has done */
} proa__position;

extern PROA__TLS proa__position proa__position_self;
/* Counts since the process started: workers made, and times that workers and callers slept in the kernel. */
typedef struct proa__team_counts {
    atomic_int workers;
    atomic_llong worker_sleeps, caller_sleeps;
    atomic_llong stolen; /* members and pieces done by another thread than planned */
} proa__team_counts;
extern proa__team_counts proa__team_count;

#endif
