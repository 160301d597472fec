/* Bytes, integers and sockets of the store. May use core. */
#define _GNU_SOURCE
#include "dist/store.h"

#include "core/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
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

static int open_socket(const char *host, int port, bool listening)
{
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = listening ? AI_PASSIVE : 0},
                    *found = NULL;
    if (getaddrinfo(host, service, &hints, &found) != 0 || !found) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = -1, why = EADDRNOTAVAIL, one = 1;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0) continue;
        bool done;
        if (listening) {
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
            done = bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1024) == 0 &&
                   fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
        } else {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            done = connect(fd, a->ai_addr, a->ai_addrlen) == 0;
        }
        if (done) break;
        why = errno;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    errno = why;
    return fd;
}

int proa__tcp_listen(const char *host, int port) { return open_socket(host, port, true); }
int proa__tcp_connect(const char *host, int port) { return open_socket(host, port, false); }
