/* A parameter server: connections, tables by number, and who of the workers is here. May use core. */
#ifndef PROA_DIST_PS_SERVER_H
#define PROA_DIST_PS_SERVER_H

#include "dist/ps/table.h"
#include "dist/ps/wire.h"

typedef enum proa__ps_life { PROA__PS_AWAY, PROA__PS_HERE, PROA__PS_LEFT, PROA__PS_DIED } proa__ps_life;

typedef struct proa__ps_worker {
    proa__ps_life life;
    bool waits;  /* in a barrier */
    void *owner; /* the connection that is this worker's */
} proa__ps_worker;

typedef struct proa__ps_connection {
    struct proa__ps_connection *next;
    struct proa_ps_server *server;
    pthread_t thread;
    int fd;
    int worker;      /* −1: an observer, or not known yet */
    bool known, bye; /* its token was right; it left in good order */
    bool stops;      /* its request ends the server, once the reply is sent */
    bool done;       /* its thread is about to end; under the server's lock */
} proa__ps_connection;

struct proa_ps_server {
    int listening, port, index, servers, workers;
    char token[512];
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    proa__ps_table *tables[PROA__PS_TABLES];
    proa__ps_worker *who;
    uint64_t rounds; /* of barriers that are over */
    bool step;       /* the round under way ends a step */
    bool paused, closing, stopped;
    proa__ps_connection *connections;
};

/* Handles one request, whose values are `r`; appends the reply's values. */
proa_status proa__ps_handle(proa__ps_connection *c, proa__ps_request request, int flag, uint32_t table,
                            double number, proa__ps_reader *r, proa__bytes *reply);
/* The connection of a worker has ended. */
void proa__ps_gone(proa__ps_connection *c);
/* A worker's token and numbers are right: it is here. */
proa_status proa__ps_arrive(proa__ps_connection *c, int worker);
proa_status proa__ps_wait_for_all(proa__ps_connection *c, bool step, double seconds);

#endif
