/* Queues of communication calls, each with a thread for asynchronous ones. A synchronous call waits until its
 * queue is idle and runs on the caller's thread. May use core. */
#include "dist/task.h"

#include "core/blocked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct proa_task {
    atomic_int refs; /* one of the caller, one of the queue */
    proa_task *next;
    struct proa__queue *queue;
    proa_message message; /* its tensors are kept until the task is freed */
    int64_t *counts;      /* copies of the message's */
    void *ready;          /* mark in the device's work, behind what computes its tensors; or NULL */
    bool done;            /* under the queue's lock */
    proa_status status;
    char text[512];
};

typedef struct proa__queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool ready, threaded, busy, ending;
    proa_task *first, *last;
} queue;

struct proa__queues {
    int size;
    atomic_bool parted;
    queue calls;
    queue *pairs; /* sends to each rank, then receives from each; initialized at first use */
};

/* ---- queues ---------------------------------------------------------------------------- */

static void make_ready(queue *q)
{
    if (q->ready) return;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->ready = true;
}

static void end_queue(queue *q)
{
    if (!q->ready) return;
    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (q->threaded) pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
}

proa__queues *proa__queues_new(int size)
{
    proa__queues *q = proa__calloc(sizeof *q);
    if (!q) return NULL;
    q->size = size;
    q->pairs = proa__calloc(2 * (size_t)size * sizeof *q->pairs);
    if (!q->pairs) {
        proa__free(q);
        return NULL;
    }
    make_ready(&q->calls);
    return q;
}

void proa__queues_free(proa__queues *q)
{
    if (!q) return;
    for (int i = 0; i < 2 * q->size; i++) end_queue(&q->pairs[i]);
    end_queue(&q->calls);
    proa__free(q->pairs);
    proa__free(q);
}

static queue *queue_at(const proa__ring *ring, int number)
{
    proa__queues *q = ring->queues;
    if (number == PROA__COLLECTIVES) return &q->calls;
    queue *pair = &q->pairs[number - PROA__SENDS];
    pthread_mutex_lock(&q->calls.lock);
    make_ready(pair);
    pthread_mutex_unlock(&q->calls.lock);
    return pair;
}

static queue *queue_of(const proa_message *m)
{
    const proa__ring *ring = m->group->context;
    if (m->kind != PROA_MESSAGE_SEND && m->kind != PROA_MESSAGE_RECV)
        return queue_at(ring, PROA__COLLECTIVES);
    int peer = proa__ring_rank_of(ring, m->peer);
    return queue_at(ring, PROA__SENDS + (m->kind == PROA_MESSAGE_SEND ? peer : ring->size + peer));
}

static void hold(queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->first || q->busy) pthread_cond_wait(&q->changed, &q->lock);
    q->busy = true;
    pthread_mutex_unlock(&q->lock);
}

static void let_go(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->busy = false;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

struct proa__queue *proa__queues_enter(const proa__ring *ring, int number)
{
    queue *q = queue_at(ring, number);
    hold(q);
    return q;
}

void proa__queue_leave(struct proa__queue *q) { let_go(q); }

/* ---- ranks that are apart -------------------------------------------------------------- */

void proa__ring_part(const proa__ring *ring)
{
    if (ring->size > 1) atomic_store(&ring->queues->parted, true);
}

proa_status proa__ring_check(const proa__ring *ring)
{
    if (!atomic_load(&ring->queues->parted)) return PROA_OK;
    return proa_fail(
        PROA_ERR_BAD_STATE,
        "group %d cannot be used any more: an earlier error made rank %d leave out calls that the "
        "others make; end the job and resume from a checkpoint",
        ring->id, proa__global_rank(ring, ring->rank));
}

proa_status proa__ring_note(const proa__ring *ring, proa_status status)
{
    if (status == PROA_ERR_OUT_OF_MEMORY) proa__ring_part(ring);
    return status;
}

/* ---- tasks ----------------------------------------------------------------------------- */

static void release_task(proa_task *t)
{
    if (atomic_fetch_sub(&t->refs, 1) != 1) return;
    if (t->message.in) proa_release(t->message.in);
    if (t->message.out) proa_release(t->message.out);
    proa__free(t->counts);
    proa__free(t);
}

static void finish(proa_task *t, proa_status status)
{
    proa__message_unmark(&t->message, t->ready);
    pthread_mutex_lock(&t->queue->lock);
    t->status = status;
    if (status) snprintf(t->text, sizeof t->text, "%s", proa_error_message());
    t->done = true;
    pthread_cond_broadcast(&t->queue->changed);
    pthread_mutex_unlock(&t->queue->lock);
    proa_clear_error();
    release_task(t);
}

static void *work(void *context)
{
    queue *q = context;
    proa_set_threads(1); /* one core; the others run kernels of the calling thread */
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while ((!q->first || q->busy) && !(q->ending && !q->first)) pthread_cond_wait(&q->changed, &q->lock);
        proa_task *t = q->first;
        if (!t) break;
        q->first = t->next;
        q->busy = true;
        pthread_mutex_unlock(&q->lock);
        finish(t, proa__message_run(&t->message, t->ready));
        pthread_mutex_lock(&q->lock);
        q->busy = false;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static proa_status start_thread(queue *q)
{
    if (q->threaded) return PROA_OK;
    int why = pthread_create(&q->thread, NULL, work, q);
    if (why) return proa_fail(PROA_ERR_UNAVAILABLE, "communicate_later: no thread: %s", strerror(why));
    q->threaded = true;
    return PROA_OK;
}

static bool copy_counts(proa_task *t, const proa_message *m)
{
    size_t n = (size_t)m->group->size;
    if (!m->in_counts && !m->out_counts) return true;
    t->counts = proa__alloc(2 * n * sizeof *t->counts);
    if (!t->counts) return false;
    if (m->in_counts) t->message.in_counts = memcpy(t->counts, m->in_counts, n * sizeof *t->counts);
    if (m->out_counts) t->message.out_counts = memcpy(t->counts + n, m->out_counts, n * sizeof *t->counts);
    return true;
}

static proa_task *put(queue *q, const proa_message *m)
{
    proa_task *t = proa__calloc(sizeof *t);
    if (!t) return NULL;
    t->message = *m;
    t->queue = q;
    if (!copy_counts(t, m)) {
        proa__free(t);
        return NULL;
    }
    atomic_init(&t->refs, 2);
    if (m->in) proa_keep(m->in);
    if (m->out) proa_keep(m->out);
    t->ready = proa__message_mark(m);
    pthread_mutex_lock(&q->lock);
    proa_status status = start_thread(q);
    if (status == PROA_OK) {
        if (q->first) q->last->next = t;
        else q->first = t;
        q->last = t;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    if (status == PROA_OK) return t;
    proa__message_unmark(m, t->ready);
    release_task(t);
    release_task(t);
    return NULL;
}

proa_task *proa_communicate_later(const proa_message *message)
{
    proa_message m = *message;
    if (proa_error() || proa__message_check(&m) != PROA_OK) return NULL;
    proa_task *t = NULL;
    /* deferred elements are read here: on the group's thread reading them might wait for a call of the same
     * group */
    if (!(m.in && proa__plain(m.in)) && !(m.out && proa__plain_to_write(m.out))) t = put(queue_of(&m), &m);
    if (!t) proa__ring_part(m.group->context);
    return t;
}

proa_status proa_communicate(const proa_message *message)
{
    proa_message m = *message;
    PROA_TRY(proa_error());
    PROA_TRY(proa__message_check(&m));
    queue *q = queue_of(&m);
    hold(q);
    proa_status status = proa__message_run(&m, NULL);
    let_go(q);
    return status;
}

void proa__task_end(proa_task *t)
{
    pthread_mutex_lock(&t->queue->lock);
    while (!t->done) pthread_cond_wait(&t->queue->changed, &t->queue->lock);
    pthread_mutex_unlock(&t->queue->lock);
}

proa_status proa_task_wait(proa_task *t)
{
    PROA_TRY(proa_error());
    if (!t) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "task_wait: task is NULL");
    proa__task_end(t);
    return t->status ? proa_fail(t->status, "%s", t->text) : PROA_OK;
}

proa_status proa__task_finish(proa_task *t)
{
    proa__task_end(t);
    proa_status status = t->status ? proa_fail(t->status, "%s", t->text) : PROA_OK;
    release_task(t);
    return status;
}

bool proa_task_done(proa_task *t)
{
    if (!t) return true;
    pthread_mutex_lock(&t->queue->lock);
    bool done = t->done;
    pthread_mutex_unlock(&t->queue->lock);
    return done;
}

void proa_task_free(proa_task *t)
{
    if (t) release_task(t);
}
