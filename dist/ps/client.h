/* A worker's connections to all parameter servers; a request to several of them is sent to all before the
 * first reply is read. May use core. */
#ifndef PROA_DIST_PS_CLIENT_H
#define PROA_DIST_PS_CLIENT_H

#include "dist/ps/wire.h"

#include <proa/ps.h>

#include <pthread.h>

typedef struct proa__ps_link {
    char *host;
    int port, fd; /* fd −1: the connection is gone */
    proa__bytes out, in;
    bool asked;  /* a request was sent whose reply was not read */
    int owed;    /* replies to posted requests that come before that one */
    size_t sent; /* ids in `out` */
} proa__ps_link;

struct proa_ps_client {
    proa__ps_link *links;
    int servers, worker, workers;
    proa_ps_mode mode;
    double timeout;
    int64_t widths[PROA__PS_TABLES]; /* of tables made by this client; 0: none */
    bool dense[PROA__PS_TABLES];
    pthread_mutex_t lock; /* one call at a time */
};

/* Sends the requests of the links that have bytes in `out`, then reads each reply into `in`: the values from
 * PROA__PS_REPLY_HEAD on. who: the call, for errors; seconds: that it may take. */
proa_status proa__ps_exchange(proa_ps_client *c, const char *who, double seconds);
/* Sends the requests and does not wait: an error comes out of the next exchange with that server. Servers
 * handle a client's requests in their order. */
proa_status proa__ps_post(proa_ps_client *c, const char *who, double seconds);
/* Reads the replies to posted requests. */
proa_status proa__ps_settle(proa_ps_client *c, double seconds);
/* Empties `out` of all links. */
void proa__ps_clear(proa_ps_client *c);
/* The width of a table that this client made, which must be dense or not; 0 with an error. */
int64_t proa__ps_width(proa_ps_client *c, const char *who, int table, bool dense);

/* Equal ids are one: the distinct ids in the order in which they first came, and for each of n its place
 * among them. Memory is the scope's. */
typedef struct proa__ps_distinct {
    int64_t *ids, count;
    int64_t *place;
} proa__ps_distinct;
proa_status proa__ps_find_distinct(const int64_t *ids, int64_t n, proa__ps_distinct *d);

/* If the client that ops use is `from`, it is `to` from now on; NULL: none. */
void proa__ps_replace(proa_ps_client *from, proa_ps_client *to);

#endif
