/* Connections of a worker to the parameter servers: opening, requests and replies with deadlines, leaving.
 * May use core. */
#define _GNU_SOURCE
#include "dist/ps/client.h"

#include "core/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OWED_MAX = 64 /* replies that a server may owe: bounds what waits in its sockets */ };

/* ---- requests and replies -------------------------------------------------------------- */

static proa_status lost(proa_ps_client *c, const char *who, int server, proa__ps_io how, double seconds)
{
    proa__ps_link *l = &c->links[server];
    if (l->fd >= 0) close(l->fd); /* what it still sends would be taken for the reply to a later request */
    l->fd = -1;
    if (how == PROA__PS_IO_LATE)
        return proa_fail(PROA_ERR_TIMEOUT, "%s: server %d (%s:%d) has not answered within %g s", who, server,
                         l->host, l->port, seconds);
    return proa_fail(PROA_ERR_UNAVAILABLE,
                     "%s: server %d (%s:%d) is gone: its connection closed; look at its log", who, server,
                     l->host, l->port);
}

/* Sets this thread's error to the one that the server replied. */
static proa_status refused(const proa__ps_link *l, const char *who, int server)
{
    int code = (uint8_t)l->in.at[4];
    size_t n = l->in.count - PROA__PS_REPLY_HEAD;
    if (code <= PROA_OK || code >= PROA_ERR_COUNT) code = PROA_ERR_CORRUPT;
    return proa_fail((proa_status)code, "%s: %.*s (from server %d, %s:%d)", who, (int)(n < 2000 ? n : 2000),
                     l->in.at + PROA__PS_REPLY_HEAD, server, l->host, l->port);
}

static proa_status receive(proa_ps_client *c, const char *who, int server, double until, double seconds)
{
    proa__ps_link *l = &c->links[server];
    char head[PROA__PS_REPLY_HEAD];
    proa__ps_io io = proa__ps_receive(l->fd, head, sizeof head, until);
    if (io != PROA__PS_IO_OK) return lost(c, who, server, io, seconds);
    size_t n = proa__get_u32(head);
    if (n < 1 || n > PROA__PS_MESSAGE_MAX) return lost(c, who, server, PROA__PS_IO_GONE, seconds);
    if (l->in.capacity < n + 4) {
        char *at = proa__realloc(l->in.at, n + 4);
        if (!at) {
            io = proa__ps_skip(l->fd, n - 1, until);
            l->asked = false;
            return io == PROA__PS_IO_OK ? proa_error() : lost(c, who, server, io, seconds);
        }
        l->in.at = at;
        l->in.capacity = n + 4;
    }
    memcpy(l->in.at, head, sizeof head);
    l->in.count = n + 4;
    io = proa__ps_receive(l->fd, l->in.at + sizeof head, n - 1, until);
    if (io != PROA__PS_IO_OK) return lost(c, who, server, io, seconds);
    l->asked = false;
    return head[4] == PROA_OK ? PROA_OK : refused(l, who, server);
}

/* Reads the replies that a server owes; returns the first error. */
static proa_status settle(proa_ps_client *c, int server, double until, double seconds)
{
    proa__ps_link *l = &c->links[server];
    proa_status status = PROA_OK;
    for (; l->owed > 0 && l->fd >= 0; l->owed--) {
        proa_status one = receive(c, "a push before this call", server, until, seconds);
        if (status == PROA_OK) status = one;
    }
    l->owed = 0;
    return status;
}

proa_status proa__ps_settle(proa_ps_client *c, double seconds)
{
    double until = proa__monotonic() + seconds;
    proa_status status = PROA_OK;
    for (int s = 0; s < c->servers; s++) {
        proa_status one = settle(c, s, until, seconds);
        if (status == PROA_OK) status = one;
    }
    return status;
}

/* Sends the requests of the links that have any. */
static proa_status send_all(proa_ps_client *c, const char *who, double until, double seconds)
{
    for (int s = 0; s < c->servers; s++)
        if (c->links[s].out.count && !proa__ps_seal(&c->links[s].out)) return proa_error();
    proa_status status = PROA_OK;
    for (int s = 0; s < c->servers; s++) {
        proa__ps_link *l = &c->links[s];
        if (!l->out.count) continue;
        proa__ps_io io = l->fd < 0 ? PROA__PS_IO_GONE : proa__ps_send(l->fd, l->out.at, l->out.count, until);
        if (io == PROA__PS_IO_OK) l->asked = true;
        else status = lost(c, who, s, io, seconds);
    }
    return status;
}

proa_status proa__ps_post(proa_ps_client *c, const char *who, double seconds)
{
    double until = proa__monotonic() + seconds;
    proa_status status = send_all(c, who, until, seconds);
    for (int s = 0; s < c->servers; s++) {
        proa__ps_link *l = &c->links[s];
        l->owed += l->asked;
        l->asked = false;
        proa_status one = l->owed >= OWED_MAX ? settle(c, s, until, seconds) : PROA_OK;
        if (status == PROA_OK) status = one;
    }
    return status;
}

proa_status proa__ps_exchange(proa_ps_client *c, const char *who, double seconds)
{
    double until = proa__monotonic() + seconds;
    proa_status status = send_all(c, who, until, seconds);
    for (int s = 0; s < c->servers; s++) /* also after an error: replies must not be left unread */
        if (c->links[s].asked && c->links[s].fd >= 0) {
            proa_status before = settle(c, s, until, seconds);
            proa_status one = c->links[s].fd >= 0 ? receive(c, who, s, until, seconds) : before;
            if (status == PROA_OK) status = before != PROA_OK ? before : one;
        }
    return status;
}

void proa__ps_clear(proa_ps_client *c)
{
    for (int s = 0; s < c->servers; s++) {
        c->links[s].out.count = 0;
        c->links[s].asked = false;
    }
}

/* ---- opening --------------------------------------------------------------------------- */

/* Parses "host:port" or "[IPv6]:port", n bytes. */
static bool parse_endpoint(proa__ps_link *l, const char *text, size_t n)
{
    const char *colon = memrchr(text, ':', n);
    char *end = NULL;
    if (!colon || colon == text) return false;
    long port = strtol(colon + 1, &end, 10);
    bool brackets = *text == '[' && colon[-1] == ']';
    if (end != text + n || port < 1 || port > 65535) return false;
    l->host = proa__strdup(text + brackets);
    if (!l->host) return false;
    l->host[colon - text - 2 * brackets] = 0;
    l->port = (int)port;
    return true;
}

static proa_status parse_servers(proa_ps_client *c, const char *list)
{
    c->servers = 1;
    for (const char *at = list; *at; at++) c->servers += *at == ',';
    c->links = proa__calloc((size_t)c->servers * sizeof *c->links);
    if (!c->links) return proa_error();
    for (int s = 0; s < c->servers; s++) c->links[s].fd = -1;
    for (int s = 0; s < c->servers; s++) {
        size_t n = strcspn(list, ",");
        if (!parse_endpoint(&c->links[s], list, n))
            return proa_fail(
                PROA_ERR_INVALID_ARGUMENT,
                "ps_connect: server %d is \"%.*s\"; expected host:port, with commas between servers", s,
                (int)n, list);
        list += n + (list[n] == ',');
    }
    return PROA_OK;
}

static bool add_hello(const proa_ps_client *c, proa__bytes *b, int server, const char *token)
{
    return proa__ps_begin(b, PROA__PS_HELLO, 0, 0, 0) && proa__ps_add_u32(b, (uint32_t)c->worker) &&
           proa__ps_add_u32(b, (uint32_t)c->workers) && proa__ps_add_u32(b, (uint32_t)server) &&
           proa__ps_add_u32(b, (uint32_t)c->servers) && proa__bytes_add(b, token, strlen(token));
}

static proa_status open_link(proa_ps_client *c, int server, const char *token, double until)
{
    proa__ps_link *l = &c->links[server];
    while ((l->fd = proa__tcp_connect(l->host, l->port, until)) < 0) {
        int why = errno;
        if (proa__monotonic() + 0.05 >= until)
            return proa_fail(PROA_ERR_TIMEOUT,
                             "ps_connect: nobody listens at server %d (%s:%d) after %g s: %s", server,
                             l->host, l->port, c->timeout, strerror(why));
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    proa__ps_keep_alive(l->fd);
    if (!add_hello(c, &l->out, server, token)) return proa_error();
    double left = until - proa__monotonic();
    proa_status status = proa__ps_exchange(c, "ps_connect", left > 1 ? left : 1);
    proa__ps_clear(c);
    return status;
}

proa_ps_client *proa_ps_connect_opt(proa_ps_client_opts o)
{
    char token[512];
    const char *given = getenv("PROA_TIMEOUT");
    double timeout = o.timeout > 0 ? o.timeout : given && atof(given) > 0 ? atof(given) : 300;
    int workers = o.workers ? o.workers : 1;
    if (proa_error() != PROA_OK) return NULL;
    if (!o.servers || !*o.servers || o.worker < -1 || o.worker >= workers || workers > PROA__PS_WORKERS) {
        proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "ps_connect: worker %d of %d, servers \"%s\"; expected host:port,…, and a worker below workers",
            o.worker, workers, o.servers ? o.servers : "");
        return NULL;
    }
    proa_ps_client *c = proa__calloc(sizeof *c);
    if (!c) return NULL;
    c->worker = o.worker;
    c->workers = workers;
    c->mode = o.mode;
    c->timeout = timeout;
    pthread_mutex_init(&c->lock, NULL);
    proa__ps_token(o.token, token, sizeof token);
    proa_status status = parse_servers(c, o.servers);
    double until = proa__monotonic() + timeout;
    for (int s = 0; s < c->servers && status == PROA_OK; s++) status = open_link(c, s, token, until);
    if (status != PROA_OK) {
        proa_ps_close(c);
        return NULL;
    }
    proa__ps_replace(NULL, c);
    return c;
}

void proa_ps_close(proa_ps_client *c)
{
    if (!c) return;
    proa__ps_replace(c, NULL);
    if (c->links) (void)proa__ps_settle(c, c->timeout);
    for (int s = 0; c->links && s < c->servers; s++) {
        proa__ps_link *l = &c->links[s];
        char bye[PROA__PS_HEAD] = {PROA__PS_HEAD - 4, 0, 0, 0, PROA__PS_BYE}, reply[PROA__PS_REPLY_HEAD];
        double until = proa__monotonic() + 2;
        if (l->fd >= 0 && proa__ps_send(l->fd, bye, sizeof bye, until) == PROA__PS_IO_OK)
            (void)proa__ps_receive(l->fd, reply, sizeof reply, until);
        if (l->fd >= 0) close(l->fd);
        proa__free(l->host);
        proa__free(l->out.at);
        proa__free(l->in.at);
    }
    proa__free(c->links);
    pthread_mutex_destroy(&c->lock);
    proa__free(c);
}
