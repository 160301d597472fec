/* Worker threads, and how a caller hands them the members (shares) of a job: one atomic word per worker says
 * whether the worker has no member, one that is posted, or one that it has taken. Uses pthread; wait.c does
 * the waiting. */
#define _GNU_SOURCE
#include "core/team.h"

#include "core/colocate.h"
#include "core/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

/* Values of a worker's word: it has no member, a member is posted for it, it has taken the member. */
enum { FREE, POSTED, TAKEN };

typedef struct worker {
    _Alignas(64) proa__signal signal;
    proa__job *job; /* set before the word becomes POSTED */
    int index;
    int join;                /* core to move to after the member; −1: none */
    atomic_int crowded_core; /* proa__crowded_core() of this worker */
    struct worker *next;     /* in the list of idle workers that belong to no team; under the lock */
} worker;

struct proa__team {
    int count, capacity;
    worker **workers; /* workers[i] runs member i + 1 */
};

proa__team_counts proa__team_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static worker *unused;

/* ---- a worker's life ------------------------------------------------------------------- */

static void run_member(proa__job *job, int index)
{
    proa__denormals_apply(job->flush_denormals);
    job->run(job, index);
}

static void *work(void *p)
{
    worker *w = p;
#if defined(__linux__)
    prctl(PR_SET_NAME, "proa worker", 0, 0, 0);
#endif
    for (;;) {
        unsigned word = proa__wait_while(&w->signal, FREE, &proa__team_count.worker_sleeps);
        if (word != POSTED || !atomic_compare_exchange_strong(&w->signal.word, &word, TAKEN)) continue;
        run_member(w->job, w->index);
        int join = w->join;
        atomic_store_explicit(&w->crowded_core, proa__crowded_core(), memory_order_relaxed);
        atomic_store(&w->signal.word, FREE);
        proa__wake_sleepers(&w->signal);
        proa__join_core(join);
    }
    return NULL;
}

/* Starts a worker with all signals blocked: the program's own threads handle signals. */
static bool start(worker *w)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attr) != 0) return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, &attr, work, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return ok;
}

static worker *make_worker(void)
{
    pthread_mutex_lock(&lock);
    worker *w = unused;
    if (w) unused = w->next;
    pthread_mutex_unlock(&lock);
    if (w) return w;
    w = aligned_alloc(64, sizeof *w);
    if (!w) return NULL;
    memset(w, 0, sizeof *w);
    atomic_init(&w->crowded_core, -1);
    if (!start(w)) {
        free(w);
        return NULL;
    }
    atomic_fetch_add_explicit(&proa__team_count.workers, 1, memory_order_relaxed);
    return w;
}

/* ---- teams ----------------------------------------------------------------------------- */

static bool grow(proa__team *team, int workers)
{
    if (workers <= team->capacity) return true;
    worker **more = realloc(team->workers, (size_t)workers * sizeof *more);
    if (!more) return false;
    team->workers = more, team->capacity = workers;
    return true;
}

int proa__team_reserve(int n)
{
    proa__thread *me = n > 1 ? proa__me() : NULL;
    if (!me) return 1;
    if (PROA__LIKELY(me->team && me->team->count >= n - 1)) return n;
    if (!me->team) me->team = calloc(1, sizeof *me->team);
    if (!me->team || !grow(me->team, n - 1)) return 1;
    while (me->team->count < n - 1) {
        worker *w = make_worker();
        if (!w) break;
        me->team->workers[me->team->count++] = w;
    }
    return me->team->count + 1;
}

void proa__team_release(proa__team *team)
{
    if (!team) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < team->count; i++) team->workers[i]->next = unused, unused = team->workers[i];
    pthread_mutex_unlock(&lock);
    free(team->workers);
    free(team);
}

void proa__team_forget(void)
{
    pthread_mutex_init(&lock, NULL); /* the thread that held it is not in this process */
    unused = NULL;
    atomic_store(&proa__team_count.workers, 0);
    if (proa__thread_self) proa__thread_self->team = NULL; /* leaked: the copy of the parent's, and small */
}

/* ---- jobs ------------------------------------------------------------------------------ */

void proa__team_begin(proa__job *job, int n)
{
    proa__thread *me = proa__thread_self;
    job->flush_denormals = me->flush_denormals;
    int beside = proa__crowded_core(); /* member 1 joins the caller, 3 joins 2, and so on */
    for (int i = 1; i < n; i++) {
        worker *w = me->team->workers[i - 1];
        w->job = job, w->index = i, w->join = i % 2 ? beside : -1;
        beside = atomic_load_explicit(&w->crowded_core, memory_order_relaxed);
        atomic_store(&w->signal.word, POSTED);
    }
    for (int i = 1; i < n; i++) proa__wake_sleepers(&me->team->workers[i - 1]->signal);
}

void proa__team_end(proa__job *job, int n)
{
    proa__team *team = proa__thread_self->team;
    if (!team) return; /* this is a child forked within the job: it has no workers */
    for (int i = 1; i < n; i++) {
        unsigned posted = POSTED;
        if (!atomic_compare_exchange_strong(&team->workers[i - 1]->signal.word, &posted, FREE)) continue;
        if (job->helpers) continue;
        job->run(job, i);
        atomic_fetch_add_explicit(&proa__team_count.stolen, 1, memory_order_relaxed);
    }
    for (int i = 1; i < n; i++)
        proa__wait_while(&team->workers[i - 1]->signal, TAKEN, &proa__team_count.caller_sleeps);
}
