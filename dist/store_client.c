/* A rank's connection to the store: any thread sends requests; one thread reads the replies, records which
 * ranks have ended, and pings the server as this rank's sign of life. May use core. */
#define _GNU_SOURCE
#include "core/internal.h"
#include "dist/store.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PING_MILLISECONDS = 2000, SLACK_SECONDS = 1 };

typedef struct pending {
    struct pending *next;
    uint32_t id;
    bool done;
    proa__store_answer answer;
    char *value; /* with a zero behind its end */
    size_t bytes;
} pending;

struct proa__store {
    int fd, wake, rank, size;
    double timeout;
    char address[NI_MAXHOST];
    pthread_t thread;
    bool reading;         /* the thread runs */
    pthread_mutex_t lock; /* of what follows, and of writing to fd */
    pthread_cond_t answered;
    pending *waiting;
    uint32_t next_id;
    bool lost, no_memory;
    atomic_bool closing;
    _Atomic(uint8_t) *lives; /* proa__life, one a rank */
};

const char *proa__life_text(proa__life life)
{
    switch (life) {
    case PROA__LIFE_LEFT: return "has left the job";
    case PROA__LIFE_DIED: return "has died";
    case PROA__LIFE_UNSEEN: return "cannot be seen, as this rank's connection to the store is gone,";
    default: return "is here";
    }
}

/* ---- reading --------------------------------------------------------------------------- */

static void note_gone(proa__store *s, const char *value, size_t bytes)
{
    if (bytes < 5) return;
    uint32_t rank = proa__get_u32(value);
    if (rank < (uint32_t)s->size)
        atomic_store(&s->lives[rank], (uint8_t)(value[4] ? PROA__LIFE_LEFT : PROA__LIFE_DIED));
}

static void note_answer(proa__store *s, proa__store_answer answer, uint32_t id, const char *value, size_t n)
{
    pthread_mutex_lock(&s->lock);
    for (pending *p = s->waiting; p; p = p->next) {
        if (p->id != id || p->done) continue;
        p->value = proa__alloc(n + 1);
        if (p->value) {
            if (n) memcpy(p->value, value, n);
            p->value[n] = 0;
        }
        p->bytes = n;
        p->answer = answer;
        p->done = true;
        pthread_cond_broadcast(&s->answered);
    }
    pthread_mutex_unlock(&s->lock);
    proa_clear_error();
}

static bool understand(proa__store *s, proa__bytes *in)
{
    size_t used = 0;
    while (in->count - used >= PROA__STORE_REPLY_HEAD) {
        const char *m = in->at + used;
        size_t length = proa__get_u32(m);
        if (length < 5 || length > PROA__STORE_MESSAGE_MAX) return false;
        if (in->count - used - 4 < length) break;
        proa__store_answer answer = (proa__store_answer)(uint8_t)m[4];
        if (answer == PROA__STORE_GONE) note_gone(s, m + PROA__STORE_REPLY_HEAD, length - 5);
        else note_answer(s, answer, proa__get_u32(m + 5), m + PROA__STORE_REPLY_HEAD, length - 5);
        used += 4 + length;
    }
    proa__bytes_drop_front(in, used);
    return true;
}

static bool send_all(int fd, const char *at, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* The caller holds the lock. */
static bool send_request(proa__store *s, proa__store_request request, uint32_t id, double seconds,
                         const char *key, const void *value, size_t bytes)
{
    size_t n = strlen(key);
    char head[PROA__STORE_REQUEST_HEAD];
    proa__put_u32(head, (uint32_t)(13 + n + bytes));
    head[4] = (char)request;
    proa__put_u32(head + 5, id);
    proa__put_u32(head + 9, seconds < 4e6 ? (uint32_t)(seconds * 1000) : UINT32_MAX);
    proa__put_u32(head + 13, (uint32_t)n);
    return send_all(s->fd, head, sizeof head) && send_all(s->fd, key, n) && send_all(s->fd, value, bytes);
}

/* The connection is gone. Rank 0 serves the store, or a launcher that ends with all ranks. */
static void note_lost(proa__store *s)
{
    int first = s->rank == 0 ? 1 : 0, count = s->rank == 0 ? s->size : 1;
    for (int r = first; r < count; r++)
        if (atomic_load(&s->lives[r]) == PROA__LIFE_HERE)
            atomic_store(&s->lives[r], (uint8_t)(r ? PROA__LIFE_UNSEEN : PROA__LIFE_DIED));
}

static void *read_answers(void *context)
{
    proa__store *s = context;
    proa__bytes in = {0};
    char buffer[65536];
    double pinged = proa__monotonic();
    bool fine = true, no_memory = false;
    while (fine && !atomic_load(&s->closing)) {
        struct pollfd polls[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
        if (poll(polls, 2, PING_MILLISECONDS) < 0 && errno != EINTR) break;
        if (proa__monotonic() - pinged > PING_MILLISECONDS / 1000.0) {
            pinged = proa__monotonic();
            pthread_mutex_lock(&s->lock);
            fine = send_request(s, PROA__STORE_PING, 0, 0, "", NULL, 0);
            pthread_mutex_unlock(&s->lock);
        }
        if (!(polls[0].revents & (POLLIN | POLLHUP | POLLERR))) continue;
        ssize_t n = recv(s->fd, buffer, sizeof buffer, 0);
        if (n < 0 && errno == EINTR) continue;
        if (fine && n > 0 && !proa__bytes_add(&in, buffer, (size_t)n)) no_memory = true;
        fine = fine && n > 0 && !no_memory && understand(s, &in);
    }
    proa_clear_error();
    proa__free(in.at);
    pthread_mutex_lock(&s->lock);
    s->lost = true;
    s->no_memory = no_memory;
    if (!atomic_load(&s->closing) && !no_memory) note_lost(s);
    pthread_cond_broadcast(&s->answered);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- requests -------------------------------------------------------------------------- */

static proa_status lost(const proa__store *s, bool no_memory, const char *key)
{
    if (no_memory)
        return proa_fail(PROA_ERR_OUT_OF_MEMORY,
                         "store: no memory for the answers to rank %d; its connection has ended (key \"%s\")",
                         s->rank, key);
    return proa_fail(
        PROA_ERR_UNAVAILABLE,
        "store: the connection of rank %d to the process that serves the store is gone (key \"%s\"): "
        "rank 0 or the launcher has ended",
        s->rank, key);
}

/* Waits for the reply; the caller holds the lock. The server enforces the deadline; this side only waits
 * somewhat longer for a server that does not reply, as when the link to it is down. */
static void await(proa__store *s, pending *p, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + SLACK_SECONDS;
    while (!p->done && !s->lost)
        if (pthread_cond_timedwait(&s->answered, &s->lock, &until) == ETIMEDOUT) break;
}

static proa_status ask(proa__store *s, proa__store_request request, double seconds, const char *key,
                       const void *value, size_t bytes, pending *p)
{
    if (strlen(key) + bytes + 64 > PROA__STORE_MESSAGE_MAX)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "store: the value of \"%s\" has %zu bytes; at most %d MiB fit", key, bytes,
                         PROA__STORE_MESSAGE_MAX >> 20);
    pthread_mutex_lock(&s->lock);
    *p = (pending){.next = s->waiting, .id = ++s->next_id};
    s->waiting = p;
    bool sent = !s->lost && send_request(s, request, p->id, seconds, key, value, bytes);
    if (sent) await(s, p, seconds);
    for (pending **at = &s->waiting; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    bool was_lost = s->lost || !sent, no_memory = s->no_memory;
    pthread_mutex_unlock(&s->lock);
    if (!p->done) {
        if (was_lost) return lost(s, no_memory, key);
        return proa_fail(
            PROA_ERR_TIMEOUT,
            "store: no answer about \"%s\" within %.0f s from rank 0 or the launcher, which serves it", key,
            seconds + SLACK_SECONDS);
    }
    if (!p->value) return proa_fail(PROA_ERR_OUT_OF_MEMORY, "store: no memory for \"%s\"", key);
    if (p->answer == PROA__STORE_OK || p->answer == PROA__STORE_MISSING || p->answer == PROA__STORE_EARLIER)
        return PROA_OK;
    if (p->answer == PROA__STORE_LATE) {
        proa_fail(PROA_ERR_TIMEOUT, "store: no rank has set \"%s\" within %.3g s; is every rank running?",
                  key, seconds);
    } else if (p->answer == PROA__STORE_DEAD) {
        proa_fail(PROA_ERR_UNAVAILABLE, "store: rank %d has died, and \"%s\" is not set",
                  (int)proa__get_u32(p->value), key);
    } else {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "store: refused: the token is not this job's (or of an earlier start of it), or rank %d is "
                  "connected already",
                  s->rank);
    }
    proa__free(p->value);
    return proa_error();
}

static proa_status ask_plainly(proa__store *s, proa__store_request request, const char *key,
                               const void *value, size_t bytes)
{
    pending p;
    PROA_TRY(ask(s, request, s->timeout, key, value, bytes, &p));
    proa__free(p.value);
    return PROA_OK;
}

proa_status proa__store_set(proa__store *s, const char *key, const void *value, size_t bytes)
{
    return ask_plainly(s, PROA__STORE_SET, key, value, bytes);
}

proa_status proa__store_get(proa__store *s, const char *key, double seconds, char **value, size_t *bytes)
{
    pending p;
    PROA_TRY(ask(s, PROA__STORE_GET, seconds > 0 ? seconds : s->timeout, key, NULL, 0, &p));
    *value = p.value;
    if (bytes) *bytes = p.bytes;
    return PROA_OK;
}

proa_status proa__store_add(proa__store *s, const char *key, int64_t by, int64_t *sum)
{
    pending p;
    PROA_TRY(ask(s, PROA__STORE_ADD, s->timeout, key, &by, sizeof by, &p));
    if (p.bytes == sizeof *sum) memcpy(sum, p.value, sizeof *sum);
    proa__free(p.value);
    return PROA_OK;
}

proa_status proa__store_delete(proa__store *s, const char *key)
{
    return ask_plainly(s, PROA__STORE_DELETE, key, NULL, 0);
}

proa_status proa__store_check(proa__store *s, const char *key, bool *there)
{
    pending p;
    PROA_TRY(ask(s, PROA__STORE_CHECK, s->timeout, key, NULL, 0, &p));
    *there = p.answer == PROA__STORE_OK;
    proa__free(p.value);
    return PROA_OK;
}

const char *proa__store_silent(proa__store *s)
{
    static _Thread_local char text[256];
    pending p;
    text[0] = 0;
    /* called while an error is being composed: must not set another */
    if (ask(s, PROA__STORE_SILENT, 1, "", NULL, 0, &p) != PROA_OK) {
        proa_clear_error();
        snprintf(text, sizeof text, "0 or the launcher, which serves the store");
        return text;
    }
    snprintf(text, sizeof text, "%s", p.value);
    proa__free(p.value);
    return text;
}

proa_status proa__store_barrier(proa__store *s, const char *key, int size)
{
    int64_t here = 0;
    char done[256], *value;
    PROA_TRY(proa__store_add(s, key, 1, &here));
    snprintf(done, sizeof done, "%s/all", key);
    if (here == size) return proa__store_set(s, done, "1", 1);
    PROA_TRY(proa__store_get(s, done, 0, &value, NULL));
    proa__free(value);
    return PROA_OK;
}

double proa__store_timeout(const proa__store *s) { return s->timeout; }
const char *proa__store_address(const proa__store *s) { return s->address; }

proa__life proa__store_life(const proa__store *s, int rank)
{
    return rank >= 0 && rank < s->size ? (proa__life)atomic_load(&s->lives[rank]) : PROA__LIFE_HERE;
}

/* ---- life ------------------------------------------------------------------------------ */

static void release(proa__store *s)
{
    if (s->fd >= 0) close(s->fd);
    if (s->wake >= 0) close(s->wake);
    pthread_cond_destroy(&s->answered);
    pthread_mutex_destroy(&s->lock);
    proa__free((void *)s->lives);
    proa__free(s);
}

/* Connects to the server, with retries until the timeout, as the server may not run yet. */
static proa_status reach(proa__store *s, const char *host, int port)
{
    double until = proa__monotonic() + s->timeout;
    for (;;) {
        s->fd = proa__tcp_connect(host, port, until);
        if (s->fd >= 0) break;
        int why = errno;
        if (proa__monotonic() >= until)
            return proa_fail(
                PROA_ERR_TIMEOUT,
                "store: rank %d could not reach %s:%d within %.3g s: %s; is rank 0 (or the launcher) "
                "running?",
                s->rank, host, port, s->timeout, strerror(why));
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    if (getsockname(s->fd, (struct sockaddr *)&address, &bytes) != 0 ||
        getnameinfo((struct sockaddr *)&address, bytes, s->address, sizeof s->address, NULL, 0,
                    NI_NUMERICHOST))
        return proa_fail(PROA_ERR_IO, "store: the connection to %s:%d has no address", host, port);
    return PROA_OK;
}

static proa_status begin(proa__store *s, const char *token, bool *again)
{
    s->wake = eventfd(0, EFD_CLOEXEC);
    if (s->wake < 0) return proa_fail(PROA_ERR_IO, "store: eventfd: %s", strerror(errno));
    int why = pthread_create(&s->thread, NULL, read_answers, s);
    if (why) return proa_fail(PROA_ERR_UNAVAILABLE, "store: no thread for its answers: %s", strerror(why));
    s->reading = true;
    char rank[4];
    pending p;
    proa__put_u32(rank, (uint32_t)s->rank);
    proa_status status = ask(s, PROA__STORE_HELLO, s->timeout, token, rank, sizeof rank, &p);
    if (status == PROA_ERR_UNAVAILABLE) { /* the server has just ended */
        proa_clear_error();
        *again = true;
        return PROA_OK;
    }
    PROA_TRY(status);
    *again = p.answer == PROA__STORE_EARLIER;
    proa__free(p.value);
    return PROA_OK;
}

proa__store *proa__store_try(const char *host, int port, const char *token, int rank, int size,
                             double timeout, bool *again)
{
    *again = false;
    proa__store *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    *s = (proa__store){.fd = -1, .wake = -1, .rank = rank, .size = size, .timeout = timeout};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->answered, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&s->lock, NULL);
    s->lives = proa__calloc((size_t)size * sizeof *s->lives);
    if (s->lives && reach(s, host, port) == PROA_OK && begin(s, token, again) == PROA_OK && !*again) return s;
    proa__store_close(s);
    return NULL;
}

proa__store *proa__store_connect(const char *host, int port, const char *token, int rank, int size,
                                 double timeout)
{
    bool again;
    for (double until = proa__monotonic() + timeout;;) {
        proa__store *s = proa__store_try(host, port, token, rank, size, timeout, &again);
        if (!again) return s;
        if (proa__monotonic() >= until) break;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    proa_fail(
        PROA_ERR_TIMEOUT,
        "store: %s:%d has been served for %.3g s by an earlier start of this job, which must end, or by "
        "what is no store",
        host, port, timeout);
    return NULL;
}

void proa__store_close(proa__store *s)
{
    if (!s) return;
    if (s->reading) {
        pthread_mutex_lock(&s->lock);
        if (!s->lost) send_request(s, PROA__STORE_BYE, 0, 0, "", NULL, 0);
        pthread_mutex_unlock(&s->lock);
        atomic_store(&s->closing, true);
        uint64_t one = 1;
        if (write(s->wake, &one, sizeof one) < 0) shutdown(s->fd, SHUT_RDWR);
        pthread_join(s->thread, NULL);
    }
    release(s);
}
