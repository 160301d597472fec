/* A parameter server's life: one thread accepts connections, and each connection has a thread that replies to
 * its requests in their order. May use core. */
#define _GNU_SOURCE
#include "dist/ps/server.h"

#include "core/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    STRANGER_SECONDS = 10,
    CONNECTIONS_MAX = 4096,
    IDLE_REPLY = 1 << 20 /* bytes that a connection's buffers keep between requests */
};

/* ---- one connection -------------------------------------------------------------------- */

/* The rest of a request behind its length, at an address 6 behind one that is aligned to 16, so that ids and
 * values are aligned. NULL: the connection ends, or, with an error, there was no memory for the request. */
static char *receive(proa__ps_connection *c, proa__bytes *in, size_t *length)
{
    char head[4];
    double until = c->known ? 0 : proa__monotonic() + STRANGER_SECONDS;
    if (proa__ps_receive(c->fd, head, sizeof head, until) != PROA__PS_IO_OK) return NULL;
    size_t n = proa__get_u32(head);
    if (n < PROA__PS_HEAD - 4 || n > (c->known ? PROA__PS_MESSAGE_MAX : PROA__PS_STRANGER_MAX)) return NULL;
    if (in->capacity < n + 6 || in->capacity > IDLE_REPLY) {
        proa__free(in->at);
        *in = (proa__bytes){.at = proa__alloc(n + 6), .capacity = n + 6};
    }
    if (!in->at) {
        in->capacity = 0;
        if (proa__ps_skip(c->fd, n, until) != PROA__PS_IO_OK) proa_clear_error();
        return NULL;
    }
    *length = n;
    return proa__ps_receive(c->fd, in->at + 6, n, until) == PROA__PS_IO_OK ? in->at + 6 : NULL;
}

/* Replies with the thread's error, which takes no memory. */
static bool reply_error(proa__ps_connection *c, proa_status status)
{
    char reply[PROA__PS_REPLY_HEAD + 1024];
    size_t n = strlen(proa_error_message());
    if (n > sizeof reply - PROA__PS_REPLY_HEAD) n = sizeof reply - PROA__PS_REPLY_HEAD;
    memcpy(reply + PROA__PS_REPLY_HEAD, proa_error_message(), n);
    proa__put_u32(reply, (uint32_t)(n + 1));
    reply[4] = (char)status;
    proa_clear_error();
    return proa__ps_send(c->fd, reply, n + PROA__PS_REPLY_HEAD, 0) == PROA__PS_IO_OK;
}

static bool reply(proa__ps_connection *c, proa__bytes *out)
{
    proa__put_u32(out->at, (uint32_t)(out->count - 4));
    out->at[4] = PROA_OK;
    return proa__ps_send(c->fd, out->at, out->count, 0) == PROA__PS_IO_OK;
}

/* Handles a request, m, into `out`. */
static proa_status handle(proa__ps_connection *c, const char *m, size_t length, proa__bytes *out)
{
    static const char head[PROA__PS_REPLY_HEAD];
    proa__ps_request request = (proa__ps_request)(uint8_t)m[0];
    float number;
    memcpy(&number, m + 6, sizeof number);
    proa__ps_reader r = {.at = m + PROA__PS_HEAD - 4, .left = length - (PROA__PS_HEAD - 4)};
    if (out->capacity > IDLE_REPLY) {
        proa__free(out->at);
        *out = (proa__bytes){0};
    }
    out->count = 0;
    if (!proa__bytes_add(out, head, sizeof head)) return proa_error();
    PROA_TRY(proa__ps_handle(c, request, (uint8_t)m[1], proa__get_u32(m + 2), (double)number, &r, out));
    if (r.bad)
        return proa_fail(PROA_ERR_CORRUPT, "parameter server: request %d is shorter than it says", request);
    if (out->count > PROA__PS_MESSAGE_MAX)
        return proa_fail(PROA_ERR_OVERFLOW, "parameter server: a reply of more than %d bytes",
                         PROA__PS_MESSAGE_MAX);
    return PROA_OK;
}

/* Tells proa_ps_server_wait, behind which the process may end at once. */
static void stop(proa_ps_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static bool serve_one(proa__ps_connection *c, proa__bytes *in, proa__bytes *out)
{
    size_t length = 0;
    const char *m = receive(c, in, &length);
    if (!m && proa_error() == PROA_OK) return false;
    if (m && !c->known && m[0] != PROA__PS_HELLO) return false;
    proa_status status = m ? handle(c, m, length, out) : proa_error();
    bool sent = status == PROA_OK ? reply(c, out) : reply_error(c, status);
    if (c->stops) stop(c->server);
    return sent && c->known && !c->bye;
}

static void *serve(void *context)
{
    proa__ps_connection *c = context;
    proa__bytes in = {0}, out = {0};
    while (serve_one(c, &in, &out)) continue;
    proa_clear_error();
    proa__free(in.at);
    proa__free(out.at);
    proa__ps_gone(c);
    pthread_mutex_lock(&c->server->lock);
    shutdown(c->fd, SHUT_RDWR);
    c->done = true;
    pthread_mutex_unlock(&c->server->lock);
    return NULL;
}

/* ---- all connections ------------------------------------------------------------------- */

/* Joins threads that have ended, or all of them; the others are told to end first. Returns how many stay. */
static int reap(proa_ps_server *s, bool all)
{
    int left = 0;
    proa__ps_connection *ended = NULL;
    pthread_mutex_lock(&s->lock);
    for (proa__ps_connection **at = &s->connections; *at;) {
        proa__ps_connection *c = *at;
        if (!all && !c->done) {
            left++;
            at = &c->next;
            continue;
        }
        *at = c->next;
        c->next = ended;
        ended = c;
        shutdown(c->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&s->lock);
    for (proa__ps_connection *c = ended, *after; c; c = after) {
        after = c->next;
        pthread_join(c->thread, NULL);
        close(c->fd);
        proa__free(c);
    }
    return left;
}

static void take_in(proa_ps_server *s, int fd)
{
    proa__ps_connection *c = reap(s, false) < CONNECTIONS_MAX ? proa__calloc(sizeof *c) : NULL;
    if (c) {
        *c = (proa__ps_connection){.server = s, .fd = fd, .worker = -1};
        proa__ps_keep_alive(fd);
        pthread_mutex_lock(&s->lock);
        bool runs = pthread_create(&c->thread, NULL, serve, c) == 0;
        if (runs) {
            c->next = s->connections;
            s->connections = c;
        }
        pthread_mutex_unlock(&s->lock);
        if (runs) return;
    }
    proa_clear_error();
    proa__free(c);
    close(fd);
}

static void *accept_all(void *context)
{
    proa_ps_server *s = context;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        bool closing = s->closing, paused = s->paused;
        pthread_mutex_unlock(&s->lock);
        struct pollfd one = {.fd = paused ? -1 : s->listening, .events = POLLIN};
        if (closing) return NULL;
        if (poll(&one, 1, paused ? 20 : 100) <= 0) continue;
        int fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) take_in(s, fd);
    }
}

/* ---- the public calls ------------------------------------------------------------------ */

static int port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0) return -1;
    if (at.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)(const void *)&at)->sin6_port);
    return ntohs(((const struct sockaddr_in *)(const void *)&at)->sin_port);
}

static bool listen_at(proa_ps_server *s, const char *host, int port)
{
    s->listening = proa__tcp_listen(host, port);
    s->port = s->listening >= 0 ? port_of(s->listening) : -1;
    if (s->port > 0) return true;
    proa_fail(PROA_ERR_IO, "ps_serve: server %d cannot listen at %s:%d: %s", s->index, host, port,
              strerror(errno));
    return false;
}

proa_ps_server *proa_ps_serve_opt(proa_ps_server_opts o)
{
    int servers = o.servers ? o.servers : 1, workers = o.workers ? o.workers : 1;
    if (proa_error() != PROA_OK) return NULL;
    if (servers < 1 || o.index < 0 || o.index >= servers || workers < 1 || workers > PROA__PS_WORKERS ||
        o.port < 0 || o.port > 65535) {
        proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "ps_serve: server %d of %d for %d workers at port %d; expected an index below servers, 1 to %d "
            "workers, a port below 65536",
            o.index, servers, workers, o.port, PROA__PS_WORKERS);
        return NULL;
    }
    proa_ps_server *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    *s = (proa_ps_server){
        .listening = -1, .index = o.index, .servers = servers, .workers = workers, .paused = o.paused};
    proa__ps_token(o.token, s->token, sizeof s->token);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    s->who = proa__calloc((size_t)workers * sizeof *s->who);
    if (s->who && listen_at(s, o.host ? o.host : "127.0.0.1", o.port)) {
        s->started = pthread_create(&s->thread, NULL, accept_all, s) == 0;
        if (!s->started) proa_fail(PROA_ERR_OUT_OF_MEMORY, "ps_serve: cannot start a thread");
    }
    if (s->started) return s;
    proa_ps_server_free(s);
    return NULL;
}

void proa_ps_server_open(proa_ps_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->paused = false;
    pthread_mutex_unlock(&s->lock);
}

int proa_ps_server_port(const proa_ps_server *s) { return s ? s->port : -1; }

void proa_ps_server_free(proa_ps_server *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->listening >= 0) shutdown(s->listening, SHUT_RDWR); /* wakes the thread that polls it */
    if (s->started) pthread_join(s->thread, NULL);
    reap(s, true);
    if (s->listening >= 0) close(s->listening);
    for (int i = 0; i < PROA__PS_TABLES; i++) proa__ps_table_free(s->tables[i]);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    proa__free(s->who);
    proa__free(s);
}

bool proa_ps_server_wait(proa_ps_server *s, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    double at = (double)until.tv_sec + 1e-9 * (double)until.tv_nsec + (seconds < 1e6 ? seconds : 1e6);
    until.tv_sec = (time_t)at;
    until.tv_nsec = (long)(1e9 * (at - (double)until.tv_sec));
    pthread_mutex_lock(&s->lock);
    while (!s->stopped && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT) continue;
    bool stopped = s->stopped;
    pthread_mutex_unlock(&s->lock);
    return stopped;
}
