/* Ranks that are threads of one process: they meet at a store and form a group. */
#ifndef PROA_TESTS_DIST_RANKS_H
#define PROA_TESTS_DIST_RANKS_H

#include "core/internal.h"
#include "dist/group.h"
#include "suite.h"

#include <proa.h>

#include <pthread.h>

typedef struct world {
    proa__store_server *server;
    int size;
    double timeout;
    void (*body)(proa__ring *g, proa__store *store);
} world;

typedef struct rank_thread {
    world *world;
    int rank;
    pthread_t thread;
} rank_thread;

static inline proa__store *join(const world *w, int rank)
{
    proa__store *s = proa__store_connect("127.0.0.1", proa__store_server_port(w->server), "job/0/x", rank,
                                         w->size, w->timeout);
    ck_assert_msg(s != NULL, "%s", proa_error_message());
    return s;
}

static inline void *run_rank(void *context)
{
    rank_thread *t = context;
    proa__store *store = join(t->world, t->rank);
    proa__engine_setup setup = {store, "group/0", NULL, t->world->timeout};
    proa__ring *g = proa__ring_connect(&setup, 0, t->rank, t->world->size, NULL);
    ck_assert_msg(g != NULL, "%s", proa_error_message());
    t->world->body(g, store);
    proa__ring_close(g);
    proa__store_close(store);
    return NULL;
}

static inline void with_ranks(int size, double timeout, void (*body)(proa__ring *g, proa__store *store))
{
    world w = {proa__store_serve("127.0.0.1", 0, "job/0/x"), size, timeout, body};
    ck_assert_msg(w.server != NULL, "%s", proa_error_message());
    rank_thread threads[8];
    for (int r = 0; r < size; r++) {
        threads[r] = (rank_thread){.world = &w, .rank = r};
        ck_assert_int_eq(pthread_create(&threads[r].thread, NULL, run_rank, &threads[r]), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(threads[r].thread, NULL);
    proa__store_server_close(w.server, 5);
}

static inline void fine(proa_status status) { ck_assert_msg(status == PROA_OK, "%s", proa_error_message()); }

static inline void fails(proa_status status, proa_status code, const char *part)
{
    ck_assert_int_eq(status, code);
    ck_assert_msg(strstr(proa_error_message(), part) != NULL, "%s", proa_error_message());
    proa_clear_error();
}

#endif
