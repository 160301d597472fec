/* The per-thread struct: allocated at first use, torn down at thread exit; and fork handlers. Uses pthread,
 * and memory.c for the list of threads. */
#define _GNU_SOURCE
#include "core/team.h"
#include "core/thread.h"

#include <pthread.h>
#include <stdlib.h>

PROA__TLS proa__thread *proa__thread_self;
PROA__TLS int proa__thread_error;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;
static atomic_bool forked;
static atomic_uint ordinal;

bool proa__forked(void) { return atomic_load_explicit(&forked, memory_order_relaxed); }

static void thread_exit(void *p)
{
    proa__thread *me = p;
    proa__thread_self = me; /* set here, since releasing the scopes' tensors needs the allocation cache */
    proa__scope_leave_all(me);
    proa__team_release(me->team);
    proa__free(me->region);
    proa__memory_retire(me);
    proa__thread_self = NULL;
    free(me);
}

static void after_fork(void)
{
    atomic_store_explicit(&forked, true, memory_order_relaxed);
    proa__memory_unlock();
    proa__team_forget();
    if (proa__thread_self) proa__thread_self->threads = 0;
}

static void setup(void)
{
    have_key = pthread_key_create(&key, thread_exit) == 0;
    pthread_atfork(proa__memory_lock, proa__memory_unlock, after_fork);
}

proa__thread *proa__thread_make(void)
{
    pthread_once(&once, setup);
    size_t bytes = (sizeof(proa__thread) + 63) & ~(size_t)63;
    proa__thread *me = aligned_alloc(64, bytes);
    if (!me) return NULL;
    memset(me, 0, sizeof *me);
    me->stack = me->inline_stack;
    me->capacity = PROA__SCOPE_INLINE;
    me->default_dtype = PROA_F32;
    me->rng.seed = atomic_fetch_add_explicit(&ordinal, 1, memory_order_relaxed);
    proa__memory_adopt(me);
    proa__thread_self = me;
    if (have_key) pthread_setspecific(key, me);
    proa__flags_ready();
    return me;
}
