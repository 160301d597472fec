/* Messages of the parameter server: building, bounded reading, sockets with deadlines. May use core. */
#define _GNU_SOURCE
#include "dist/ps/wire.h"

#include "core/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ids and values travel as they are in memory");

/* ---- reading --------------------------------------------------------------------------- */

const void *proa__ps_take(proa__ps_reader *r, size_t n)
{
    if (r->bad || n > r->left) {
        r->bad = true;
        return NULL;
    }
    const char *at = r->at;
    r->at += n;
    r->left -= n;
    return at;
}

#define TAKE(name, type)                             \
    type proa__ps_take_##name(proa__ps_reader *r)    \
    {                                                \
        type v = 0;                                  \
        const void *at = proa__ps_take(r, sizeof v); \
        if (at) memcpy(&v, at, sizeof v);            \
        return v;                                    \
    }
TAKE(u32, uint32_t)
TAKE(u64, uint64_t)
TAKE(f64, double)
TAKE(f32, float)

/* ---- building -------------------------------------------------------------------------- */

bool proa__ps_add_u32(proa__bytes *b, uint32_t v) { return proa__bytes_add(b, &v, sizeof v); }
bool proa__ps_add_u64(proa__bytes *b, uint64_t v) { return proa__bytes_add(b, &v, sizeof v); }
bool proa__ps_add_f64(proa__bytes *b, double v) { return proa__bytes_add(b, &v, sizeof v); }

bool proa__ps_begin(proa__bytes *b, proa__ps_request request, int flag, int table, double number)
{
    char head[PROA__PS_HEAD] = {0};
    float n = (float)number;
    head[4] = (char)request;
    head[5] = (char)flag;
    proa__put_u32(head + 6, (uint32_t)table);
    memcpy(head + 10, &n, sizeof n);
    b->count = 0;
    return proa__bytes_add(b, head, sizeof head);
}

bool proa__ps_seal(proa__bytes *b)
{
    if (b->count > PROA__PS_MESSAGE_MAX) {
        proa_fail(PROA_ERR_OVERFLOW, "parameter server: a message of %zu bytes; expected at most %d",
                  b->count, PROA__PS_MESSAGE_MAX);
        return false;
    }
    proa__put_u32(b->at, (uint32_t)(b->count - 4));
    return true;
}

/* ---- sockets --------------------------------------------------------------------------- */

static proa__ps_io wait_for(int fd, short events, double until)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        double left = until - proa__monotonic();
        if (until > 0 && left <= 0) return PROA__PS_IO_LATE;
        int wait = until <= 0 ? -1 : left > 1e6 ? 1000000000 : (int)(1000 * left) + 1;
        int n = poll(&one, 1, wait);
        if (n > 0) return PROA__PS_IO_OK;
        if (n < 0 && errno != EINTR) return PROA__PS_IO_GONE;
    }
}

proa__ps_io proa__ps_send(int fd, const void *data, size_t n, double until)
{
    for (const char *at = data; n > 0;) {
        ssize_t moved = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (moved > 0) {
            at += moved;
            n -= (size_t)moved;
            continue;
        }
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return PROA__PS_IO_GONE;
        proa__ps_io ready = wait_for(fd, POLLOUT, until);
        if (ready != PROA__PS_IO_OK) return ready;
    }
    return PROA__PS_IO_OK;
}

proa__ps_io proa__ps_receive(int fd, void *data, size_t n, double until)
{
    for (char *at = data; n > 0;) {
        ssize_t moved = recv(fd, at, n, MSG_DONTWAIT);
        if (moved > 0) {
            at += moved;
            n -= (size_t)moved;
            continue;
        }
        if (moved < 0 && errno == EINTR) continue;
        if (moved == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return PROA__PS_IO_GONE;
        proa__ps_io ready = wait_for(fd, POLLIN, until);
        if (ready != PROA__PS_IO_OK) return ready;
    }
    return PROA__PS_IO_OK;
}

proa__ps_io proa__ps_skip(int fd, size_t n, double until)
{
    char some[4096];
    proa__ps_io io = PROA__PS_IO_OK;
    for (size_t left = n; left > 0 && io == PROA__PS_IO_OK;) {
        size_t part = left < sizeof some ? left : sizeof some;
        io = proa__ps_receive(fd, some, part, until);
        left -= part;
    }
    return io;
}

void proa__ps_keep_alive(int fd)
{
    int one = 1, idle = 30, interval = 10, tries = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void proa__ps_token(const char *given, char *token, size_t n)
{
    const char *job = getenv("PADDLE_JOB_ID"), *secret = getenv("PROA_TOKEN");
    if (given) snprintf(token, n, "%s", given);
    else snprintf(token, n, "%s/%s", job ? job : "job", secret ? secret : "");
}
