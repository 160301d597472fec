/* The job's rendezvous store: keys and values served over TCP by one process. A rank's connection also shows
 * that it is alive, so that the server can tell all others when a rank ends. May use core. */
#ifndef PROA_DIST_STORE_H
#define PROA_DIST_STORE_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- framing, shared by server and client ---------------------------------------------- */
/* Request:  u32 length of the rest, u8 request, u32 id, u32 milliseconds, u32 key length, key, value.
 * Reply:    u32 length of the rest, u8 answer, u32 id, value. Integers are little-endian. */
typedef enum proa__store_request {
    PROA__STORE_HELLO, /* key: the job's token, value: i32 rank; anything before it ends the connection */
    PROA__STORE_SET,
    PROA__STORE_GET, /* waits until the key is there */
    PROA__STORE_ADD, /* value: i64; answers the sum */
    PROA__STORE_DELETE,
    PROA__STORE_CHECK,
    PROA__STORE_PING,
    PROA__STORE_SILENT, /* answers the ranks not heard of for 5 s, as text */
    PROA__STORE_BYE     /* this rank ends in good order */
} proa__store_request;

typedef enum proa__store_answer {
    PROA__STORE_OK,
    PROA__STORE_LATE,
    PROA__STORE_MISSING,
    PROA__STORE_DEAD,    /* value: i32, a rank that died while others waited */
    PROA__STORE_GONE,    /* to everybody, id 0; value: i32 rank, u8: it said BYE */
    PROA__STORE_REFUSED, /* a wrong token, or a rank that is here already */
    PROA__STORE_EARLIER  /* the server is that of an earlier start of this job, and about to end */
} proa__store_answer;

enum { PROA__STORE_REQUEST_HEAD = 17, PROA__STORE_REPLY_HEAD = 9, PROA__STORE_MESSAGE_MAX = 64 << 20 };

/* A growing buffer of bytes received but not parsed, or not yet sent. */
typedef struct proa__bytes {
    char *at;
    size_t count, capacity;
} proa__bytes;
bool proa__bytes_add(proa__bytes *b, const void *data, size_t n);
void proa__bytes_drop_front(proa__bytes *b, size_t n);
void proa__put_u32(char *at, uint32_t v);
uint32_t proa__get_u32(const char *at);
double proa__monotonic(void); /* seconds */

/* ---- the server ------------------------------------------------------------------------ */
typedef struct proa__store_server proa__store_server;
/* Listens on host:port (port 0: a free one) and serves in a thread of its own. NULL with an error. */
proa__store_server *proa__store_serve(const char *host, int port, const char *token);
int proa__store_server_port(const proa__store_server *s);
/* Waits at most `seconds` until all ranks have disconnected, then ends the server and frees it. */
void proa__store_server_close(proa__store_server *s, double seconds);

/* ---- a rank's connection --------------------------------------------------------------- */
typedef struct proa__store proa__store;
typedef enum proa__life {
    PROA__LIFE_HERE,
    PROA__LIFE_LEFT,
    PROA__LIFE_DIED,
    PROA__LIFE_UNSEEN /* this process, rank 0, has lost the store, which tells of others */
} proa__life;
/* The end of a sentence about a rank that is not here: "has died". */
const char *proa__life_text(proa__life life);
/* Connects; retries for `timeout` seconds, also the default of all waits, while the server does not run, or
 * is that of an earlier start of the job (the number in the token, "job/start/secret"). rank −1: an observer,
 * whose end is not reported to ranks. NULL with an error. */
proa__store *proa__store_connect(const char *host, int port, const char *token, int rank, int size,
                                 double timeout);
/* The same once. *again, without an error: the server is that of an earlier start, or has just ended. */
proa__store *proa__store_try(const char *host, int port, const char *token, int rank, int size,
                             double timeout, bool *again);
void proa__store_close(proa__store *s);
double proa__store_timeout(const proa__store *s);
proa_status proa__store_set(proa__store *s, const char *key, const void *value, size_t bytes);
/* Waits for the key. *value is the caller's (proa__free) and has a zero byte behind its end. seconds 0: the
 * connection's timeout. */
proa_status proa__store_get(proa__store *s, const char *key, double seconds, char **value, size_t *bytes);
proa_status proa__store_add(proa__store *s, const char *key, int64_t by, int64_t *sum);
proa_status proa__store_delete(proa__store *s, const char *key);
proa_status proa__store_check(proa__store *s, const char *key, bool *there);
/* The ranks from which the server has heard nothing for 5 s, as "2, 3"; "" if none; a text that names the
 * server if it does not answer. The text is the thread's, until its next call. */
const char *proa__store_silent(proa__store *s);
/* Whether a rank is still connected. */
proa__life proa__store_life(const proa__store *s, int rank);
/* The local address of the connection, at which other ranks can reach this one. */
const char *proa__store_address(const proa__store *s);
/* Waits until `size` ranks have called it with this key, which serves for one barrier only. */
proa_status proa__store_barrier(proa__store *s, const char *key, int size);

/* Both resolve the host with getaddrinfo and return a descriptor, or −1 with errno. listen returns a
 * non-blocking one; connect tries each address once and fails with ETIMEDOUT at monotonic time `until`. */
int proa__tcp_listen(const char *host, int port);
int proa__tcp_connect(const char *host, int port, double until);

#ifdef __cplusplus
}
#endif
#endif
