/* Teams: the worker threads that help one calling thread. The caller does the members of workers that have
 * not come, so that it never waits for a thread that has no core yet. Private to core. */
#ifndef PROA_CORE_TEAM_H
#define PROA_CORE_TEAM_H

#include "core/thread.h"
#include "core/wait.h"

enum { PROA__MAX_THREADS = 1024 };

/* Work for several threads. `run` does member `index` (0: the caller's) once, on any thread of the team. A
 * job whose members wait for one another is safe: a thread takes a second member only after its first has
 * ended. */
typedef struct proa__job {
    void (*run)(struct proa__job *job, int index);
    bool helpers; /* members above 0 only help: those that nobody has begun when member 0 ends are dropped */
    bool flush_denormals; /* set by proa__team_begin: workers follow their caller */
} proa__job;

/* Starts workers until the calling thread can run jobs of n members. Returns how many members it can have:
 * fewer than n only where the system refuses threads. */
int proa__team_reserve(int n);
/* Offers members 1 to n − 1 to the workers, n being reserved. The caller runs member 0, then ends the job. */
void proa__team_begin(proa__job *job, int n);
void proa__team_end(proa__job *job, int n);

typedef struct proa__team proa__team;
/* A thread ends: its workers serve the next thread that asks. Accepts NULL. */
void proa__team_release(proa__team *team);
/* In a child made by fork, which has none of the workers. */
void proa__team_forget(void);

/* Position of this thread among the members of a job and in the OpenMP regions around it, as OpenMP's
 * functions give it. */
typedef struct proa__position {
    bool inside;                     /* a job: what starts another runs it alone */
    int member, members;             /* as OpenMP's functions give them; 0 members: 1 */
    int serial;                      /* OpenMP regions of one thread around this point */
    int outer_member, outer_members; /* outside those */
    int limit;                       /* threads that the next OpenMP region may have; 0: proa_threads() */
    struct proa__region *region;     /* the OpenMP region */
    long trip;                       /* chunks of its loop that this member has done */
} proa__position;

extern PROA__TLS proa__position proa__position_self;
/* Counts since the process started. */
typedef struct proa__team_counts {
    atomic_int workers;
    atomic_llong worker_sleeps, caller_sleeps;
    atomic_llong stolen; /* members and pieces done by another thread than the one that they were meant for */
} proa__team_counts;
extern proa__team_counts proa__team_count;

#endif
