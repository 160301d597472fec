/* The store's server: one thread polls all connections, replies to requests, and delays the reply to a GET
 * until its key is set, its deadline passes or a rank dies. May use core. */
#define _GNU_SOURCE
#include "core/internal.h"
#include "dist/store.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUCKETS = 256,
    STRANGER_BYTES = 4096, /* of a message of a connection whose token is not verified */
    STRANGER_SECONDS = 10,
    SILENT_SECONDS = 5 /* clients ping every two seconds */
};

typedef struct entry {
    struct entry *next;
    proa__bytes value;
    size_t key_bytes;
    char key[];
} entry;

typedef struct waiter {
    struct waiter *next;
    uint32_t client, id; /* serial number of the connection; id of the request */
    double deadline;
    size_t key_bytes;
    char key[];
} waiter;

typedef struct client {
    int fd;
    uint32_t number;
    int rank; /* −1: an observer */
    bool known, leaving, broken;
    double heard;
    proa__bytes in, out;
} client;

struct proa__store_server {
    int listening, wake, port;
    char *token;
    pthread_t thread;
    _Atomic double closing; /* time at which it ends even with ranks connected; 0: not closing */
    entry *buckets[BUCKETS];
    waiter *waiters;
    client *clients;
    struct pollfd *polls; /* of the clients, of listening and of wake */
    uint32_t n_clients, capacity, next_number;
    int first_death; /* rank that died first; −1: none */
};

/* ---- keys ------------------------------------------------------------------------------ */

static entry **find(proa__store_server *s, const char *key, size_t n)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)key[i]) * 16777619u;
    entry **at = &s->buckets[hash % BUCKETS];
    while (*at && ((*at)->key_bytes != n || memcmp((*at)->key, key, n) != 0)) at = &(*at)->next;
    return at;
}

/* Sets a key. Out of memory (NULL) leaves the key as it was. */
static entry *set_value(proa__store_server *s, const char *key, size_t n, const void *value, size_t bytes)
{
    entry **at = find(s, key, n), *e = *at;
    proa__bytes made = {0};
    if (!proa__bytes_add(&made, value, bytes)) return NULL;
    if (!e) e = proa__calloc(sizeof *e + n);
    if (!e) {
        proa__free(made.at);
        return NULL;
    }
    proa__free(e->value.at);
    e->value = made;
    e->key_bytes = n;
    memcpy(e->key, key, n);
    return *at = e;
}

static void remove_entry(entry **at)
{
    entry *e = *at;
    *at = e->next;
    proa__free(e->value.at);
    proa__free(e);
}

/* ---- answers --------------------------------------------------------------------------- */

static void reply(client *c, proa__store_answer answer, uint32_t id, const void *value, size_t n)
{
    char head[PROA__STORE_REPLY_HEAD];
    proa__put_u32(head, (uint32_t)(5 + n));
    head[4] = (char)answer;
    proa__put_u32(head + 5, id);
    if (!proa__bytes_add(&c->out, head, sizeof head) || !proa__bytes_add(&c->out, value, n)) {
        proa_clear_error();
        c->broken = true;
    }
}

static client *by_number(proa__store_server *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->n_clients; i++)
        if (s->clients[i].number == number) return &s->clients[i];
    return NULL;
}

static void reply_rank(client *c, uint32_t id, int rank)
{
    char text[4];
    proa__put_u32(text, (uint32_t)rank);
    reply(c, PROA__STORE_DEAD, id, text, sizeof text);
}

/* Replies to the requests that wait for the key of e (may be NULL) or are past their deadline; to all of them
 * once a rank has died. */
static void answer_waiters(proa__store_server *s, const entry *e, double now)
{
    for (waiter **at = &s->waiters; *at;) {
        waiter *w = *at;
        bool ready = e && w->key_bytes == e->key_bytes && memcmp(w->key, e->key, e->key_bytes) == 0;
        bool dead = s->first_death >= 0, late = now >= w->deadline;
        if (!ready && !dead && !late) {
            at = &w->next;
            continue;
        }
        client *c = by_number(s, w->client);
        if (c && ready) reply(c, PROA__STORE_OK, w->id, e->value.at, e->value.count);
        else if (c && dead) reply_rank(c, w->id, s->first_death);
        else if (c) reply(c, PROA__STORE_LATE, w->id, NULL, 0);
        *at = w->next;
        proa__free(w);
    }
}

static void wait_for(proa__store_server *s, client *c, uint32_t id, double deadline, const char *key,
                     size_t n)
{
    waiter *w = proa__alloc(sizeof *w + n);
    if (!w) {
        c->broken = true;
        return;
    }
    *w = (waiter){.next = s->waiters, .client = c->number, .id = id, .deadline = deadline, .key_bytes = n};
    memcpy(w->key, key, n);
    s->waiters = w;
}

/* ---- requests -------------------------------------------------------------------------- */

/* Compares in constant time, so that timing does not tell how many bytes were right. */
static bool same_token(const char *a, const char *b, size_t n)
{
    unsigned difference = 0;
    for (size_t i = 0; i < n; i++) difference |= (unsigned)(uint8_t)(a[i] ^ b[i]);
    return difference == 0;
}

/* A token, "job/start/secret". */
typedef struct token_parts {
    size_t job, secret; /* bytes before the number of the start, and after it */
    uint64_t start;
    bool whole;
} token_parts;

static token_parts parts_of(const char *token, size_t n)
{
    token_parts p = {0};
    const char *slash = memrchr(token, '/', n);
    const char *before = slash ? memrchr(token, '/', (size_t)(slash - token)) : NULL;
    if (!before) return p;
    p.job = (size_t)(before + 1 - token);
    p.secret = n - (size_t)(slash - token);
    p.whole = slash > before + 1;
    for (const char *c = before + 1; c < slash; c++) {
        p.whole = p.whole && *c >= '0' && *c <= '9';
        p.start = 10 * p.start + (uint64_t)(*c - '0');
    }
    return p;
}

/* Whether the token is that of a later start of this job. */
static bool of_later_start(const proa__store_server *s, const char *token, size_t n)
{
    size_t own = strlen(s->token);
    token_parts a = parts_of(s->token, own), b = parts_of(token, n);
    return a.whole && b.whole && a.job == b.job && a.secret == b.secret && b.start > a.start &&
           same_token(s->token, token, a.job) &&
           same_token(s->token + own - a.secret, token + n - b.secret, a.secret);
}

static void hello(proa__store_server *s, client *c, uint32_t id, const char *key, size_t n, const char *value,
                  size_t bytes)
{
    bool right = n == strlen(s->token) && same_token(key, s->token, n) && bytes == 4;
    bool later = !right && of_later_start(s, key, n);
    int rank = right ? (int)proa__get_u32(value) : -1;
    for (uint32_t i = 0; right && rank >= 0 && i < s->n_clients; i++)
        right = !s->clients[i].known || s->clients[i].rank != rank;
    reply(c, right ? PROA__STORE_OK : later ? PROA__STORE_EARLIER : PROA__STORE_REFUSED, id, NULL, 0);
    c->known = right;
    c->leaving = !right;
    c->rank = rank;
}

static void silent_ranks(proa__store_server *s, client *c, uint32_t id, double now)
{
    char text[256] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_clients; i++) {
        const client *other = &s->clients[i];
        if (other->known && other->rank >= 0 && now - other->heard > SILENT_SECONDS && n + 16 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", n ? ", " : "", other->rank);
    }
    reply(c, PROA__STORE_OK, id, text, n);
}

static void handle(proa__store_server *s, client *c, const char *m, size_t length, double now)
{
    proa__store_request request = (proa__store_request)(uint8_t)m[0];
    uint32_t id = proa__get_u32(m + 1), wait = proa__get_u32(m + 5), n = proa__get_u32(m + 9);
    if (n > length - 13 || (!c->known && request != PROA__STORE_HELLO)) {
        c->broken = true;
        return;
    }
    const char *key = m + 13, *value = key + n;
    size_t bytes = length - 13 - n;
    entry **at = find(s, key, n), *e = *at;
    switch (request) {
    case PROA__STORE_HELLO: hello(s, c, id, key, n, value, bytes); break;
    case PROA__STORE_SET:
        e = set_value(s, key, n, value, bytes);
        if (!e) {
            c->broken = true;
            break;
        }
        reply(c, PROA__STORE_OK, id, NULL, 0);
        answer_waiters(s, e, now);
        break;
    case PROA__STORE_GET:
        if (e) reply(c, PROA__STORE_OK, id, e->value.at, e->value.count);
        else if (s->first_death >= 0) reply_rank(c, id, s->first_death);
        else wait_for(s, c, id, now + wait / 1000.0, key, n);
        break;
    case PROA__STORE_ADD: {
        int64_t by = 0, sum = 0;
        if (bytes == sizeof by) memcpy(&by, value, sizeof by);
        if (e && e->value.count == sizeof sum) memcpy(&sum, e->value.at, sizeof sum);
        sum = (int64_t)((uint64_t)sum + (uint64_t)by);
        e = bytes == sizeof by ? set_value(s, key, n, &sum, sizeof sum) : NULL;
        if (!e) {
            c->broken = true;
            break;
        }
        reply(c, PROA__STORE_OK, id, &sum, sizeof sum);
        answer_waiters(s, e, now);
        break;
    }
    case PROA__STORE_DELETE:
        reply(c, e ? PROA__STORE_OK : PROA__STORE_MISSING, id, NULL, 0);
        if (e) remove_entry(at);
        break;
    case PROA__STORE_CHECK: reply(c, e ? PROA__STORE_OK : PROA__STORE_MISSING, id, NULL, 0); break;
    case PROA__STORE_PING: break;
    case PROA__STORE_SILENT: silent_ranks(s, c, id, now); break;
    case PROA__STORE_BYE: c->leaving = true; break;
    default: c->broken = true; break;
    }
    proa_clear_error(); /* out of memory: the connection is closed, and no caller reads this thread's error */
}

/* ---- connections ----------------------------------------------------------------------- */

static void tell_gone(proa__store_server *s, int rank, bool in_order)
{
    char text[5];
    proa__put_u32(text, (uint32_t)rank);
    text[4] = (char)in_order;
    for (uint32_t i = 0; i < s->n_clients; i++)
        if (s->clients[i].known) reply(&s->clients[i], PROA__STORE_GONE, 0, text, sizeof text);
}

static void end_client(proa__store_server *s, uint32_t i, double now)
{
    client gone = s->clients[i];
    close(gone.fd);
    proa__free(gone.in.at);
    proa__free(gone.out.at);
    s->clients[i] = s->clients[--s->n_clients];
    if (!gone.known || gone.rank < 0) return;
    if (!gone.leaving && s->first_death < 0) s->first_death = gone.rank;
    tell_gone(s, gone.rank, gone.leaving);
    answer_waiters(s, NULL, now);
}

/* Grows the arrays of clients and of poll's descriptors for one more connection. */
static bool reserve_connection(proa__store_server *s)
{
    if (s->n_clients < s->capacity) return true;
    uint32_t capacity = s->capacity ? 2 * s->capacity : 16;
    client *clients = proa__realloc(s->clients, capacity * sizeof *clients);
    if (clients) s->clients = clients;
    struct pollfd *polls = clients ? proa__realloc(s->polls, (capacity + 2) * sizeof *polls) : NULL;
    if (!polls) return false;
    s->polls = polls;
    s->capacity = capacity;
    return true;
}

static void accept_client(proa__store_server *s, double now)
{
    int fd = accept4(s->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!reserve_connection(s)) {
        proa_clear_error();
        close(fd);
        return;
    }
    s->clients[s->n_clients++] = (client){.fd = fd, .number = s->next_number++, .rank = -1, .heard = now};
}

static void read_client(proa__store_server *s, uint32_t at, double now)
{
    char buffer[65536];
    client *c = &s->clients[at];
    ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) c->broken = true;
    if (n <= 0) return;
    if (c->known) c->heard = now; /* before its token is verified, time counts from the accept */
    if (!proa__bytes_add(&c->in, buffer, (size_t)n)) {
        proa_clear_error();
        c->broken = true;
        return;
    }
    size_t used = 0;
    while (!c->broken && c->in.count - used >= 4) {
        size_t length = proa__get_u32(c->in.at + used);
        if (length < 13 || length > (c->known ? PROA__STORE_MESSAGE_MAX : STRANGER_BYTES)) c->broken = true;
        if (c->broken || c->in.count - used - 4 < length) break;
        handle(s, c, c->in.at + used + 4, length, now);
        used += 4 + length;
    }
    proa__bytes_drop_front(&c->in, used);
}

static void write_client(client *c)
{
    ssize_t n = send(c->fd, c->out.at, c->out.count, MSG_NOSIGNAL);
    if (n > 0) proa__bytes_drop_front(&c->out, (size_t)n);
    else if (errno != EAGAIN && errno != EINTR) c->broken = true;
}

static bool finished(const proa__store_server *s, double now)
{
    double closing = atomic_load(&s->closing);
    return closing > 0 && (s->n_clients == 0 || now >= closing);
}

static void *serve(void *context)
{
    proa__store_server *s = context;
    for (double now = proa__monotonic(); !finished(s, now); now = proa__monotonic()) {
        uint32_t n = s->n_clients;
        struct pollfd *polls = s->polls;
        polls[n] = (struct pollfd){.fd = s->listening, .events = POLLIN};
        polls[n + 1] = (struct pollfd){.fd = s->wake, .events = POLLIN};
        for (uint32_t i = 0; i < n; i++)
            polls[i] = (struct pollfd){.fd = s->clients[i].fd,
                                       .events = (short)(POLLIN | (s->clients[i].out.count ? POLLOUT : 0))};
        bool timed = s->waiters || atomic_load(&s->closing) > 0;
        if (poll(polls, n + 2, timed ? 20 : 1000) < 0 && errno != EINTR) break;
        now = proa__monotonic();
        for (uint32_t i = 0; i < n; i++) {
            if (polls[i].revents & (POLLIN | POLLHUP | POLLERR)) read_client(s, i, now);
            if (!s->clients[i].broken && s->clients[i].out.count) write_client(&s->clients[i]);
        }
        for (uint32_t i = s->n_clients; i-- > 0;) {
            const client *c = &s->clients[i];
            bool stranger = !c->known && now - c->heard > STRANGER_SECONDS;
            if (c->broken || stranger || (c->leaving && !c->out.count)) end_client(s, i, now);
        }
        if (s->waiters) answer_waiters(s, NULL, now);
        uint64_t woken;
        if (polls[n + 1].revents & POLLIN && read(s->wake, &woken, sizeof woken) < 0) break;
        if (polls[n].revents & POLLIN) accept_client(s, now); /* may reallocate polls */
    }
    proa_clear_error();
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------ */

static void release(proa__store_server *s)
{
    for (uint32_t i = 0; i < s->n_clients; i++) {
        close(s->clients[i].fd);
        proa__free(s->clients[i].in.at);
        proa__free(s->clients[i].out.at);
    }
    for (int i = 0; i < BUCKETS; i++)
        while (s->buckets[i]) remove_entry(&s->buckets[i]);
    while (s->waiters) {
        waiter *w = s->waiters;
        s->waiters = w->next;
        proa__free(w);
    }
    if (s->listening >= 0) close(s->listening);
    if (s->wake >= 0) close(s->wake);
    proa__free(s->clients);
    proa__free(s->polls);
    proa__free(s->token);
    proa__free(s);
}

static proa_status listen_on(proa__store_server *s, const char *host, int port)
{
    s->listening = proa__tcp_listen(host, port);
    if (s->listening < 0)
        return proa_fail(PROA_ERR_UNAVAILABLE, "store: cannot listen on %s:%d: %s", host, port,
                         strerror(errno));
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    if (getsockname(s->listening, (struct sockaddr *)&address, &bytes) != 0)
        return proa_fail(PROA_ERR_IO, "store: getsockname: %s", strerror(errno));
    s->port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                  : ((struct sockaddr_in *)&address)->sin_port);
    s->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return s->wake < 0 ? proa_fail(PROA_ERR_IO, "store: eventfd: %s", strerror(errno)) : PROA_OK;
}

proa__store_server *proa__store_serve(const char *host, int port, const char *token)
{
    proa__store_server *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    s->listening = s->wake = -1;
    s->first_death = -1;
    s->token = proa__strdup(token);
    if (!s->token || !reserve_connection(s) || listen_on(s, host, port) != PROA_OK) {
        release(s);
        return NULL;
    }
    int why = pthread_create(&s->thread, NULL, serve, s);
    if (why) {
        proa_fail(PROA_ERR_UNAVAILABLE, "store: no thread for the server: %s", strerror(why));
        release(s);
        return NULL;
    }
    return s;
}

int proa__store_server_port(const proa__store_server *s) { return s->port; }

void proa__store_server_close(proa__store_server *s, double seconds)
{
    if (!s) return;
    atomic_store(&s->closing, proa__monotonic() + seconds);
    uint64_t one = 1;
    if (write(s->wake, &one, sizeof one) < 0) seconds = 0; /* then poll's timeout ends the server */
    pthread_join(s->thread, NULL);
    release(s);
}
