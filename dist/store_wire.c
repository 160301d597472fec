/* Byte buffers, little-endian integers and TCP sockets for the store's client and server. May use core. */
#define _GNU_SOURCE
#include "dist/store.h"

#include "core/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

bool proa__bytes_add(proa__bytes *b, const void *data, size_t n)
{
    if (b->capacity - b->count < n) {
        size_t capacity = b->capacity ? b->capacity : 256;
        while (capacity - b->count < n) capacity *= 2;
        char *at = proa__realloc(b->at, capacity);
        if (!at) return false;
        b->at = at;
        b->capacity = capacity;
    }
    if (n) memcpy(b->at + b->count, data, n);
    b->count += n;
    return true;
}

void proa__bytes_drop_front(proa__bytes *b, size_t n)
{
    b->count -= n;
    if (b->count) memmove(b->at, b->at + n, b->count);
}

void proa__put_u32(char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++) at[i] = (char)(v >> (8 * i));
}

uint32_t proa__get_u32(const char *at)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= (uint32_t)(uint8_t)at[i] << (8 * i);
    return v;
}

double proa__monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Connects without blocking past `until` (monotonic seconds), also to a host that does not respond. */
static bool connect_until(int fd, const struct addrinfo *a, double until)
{
    int flags = fcntl(fd, F_GETFL), one = 1, why = 0;
    socklen_t bytes = sizeof why;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return false;
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return false;
        struct pollfd answer = {.fd = fd, .events = POLLOUT};
        double left = until - proa__monotonic();
        int n = poll(&answer, 1, left > 0 ? (int)(1000 * left) + 1 : 0);
        if (n == 0) errno = ETIMEDOUT;
        if (n <= 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &bytes) != 0) return false;
        errno = why;
    }
    return why == 0 && fcntl(fd, F_SETFL, flags) == 0;
}

static bool bind_and_listen(int fd, const struct addrinfo *a)
{
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1024) == 0 &&
           fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static int open_socket(const char *host, int port, bool listening, double until)
{
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = listening ? AI_PASSIVE : 0},
                    *found = NULL;
    if (getaddrinfo(host, service, &hints, &found) != 0 || !found) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = -1, why = EADDRNOTAVAIL;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0) continue;
        if (listening ? bind_and_listen(fd, a) : connect_until(fd, a, until)) break;
        why = errno;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    errno = why;
    return fd;
}

int proa__tcp_listen(const char *host, int port) { return open_socket(host, port, true, 0); }
int proa__tcp_connect(const char *host, int port, double until)
{
    return open_socket(host, port, false, until);
}
