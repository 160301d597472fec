/* Handlers of a parameter server's requests, and its workers' barriers. Nothing that came over the
 * network is used before it is checked. May use core. */
#define _GNU_SOURCE
#include "dist/ps/server.h"

#include "core/internal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/socket.h>

/* ---- tables ---------------------------------------------------------------------------- */

proa_status proa_ps_server_table_opt(proa_ps_server *s, int table, proa_ps_table_opts opts)
{
    PROA_TRY(proa_error());
    PROA_TRY(proa__ps_check_table(table, &opts));
    pthread_mutex_lock(&s->lock);
    proa__ps_table *t = s->tables[table];
    proa_status status = PROA_OK;
    if (t && !proa__ps_same_opts(t, &opts))
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT,
                           "ps_table: server %d has a table %d \"%s\" with other options than \"%s\"; all "
                           "workers and servers must run the same program",
                           s->index, table, t->opts.name, opts.name);
    else if (!t) {
        s->tables[table] = proa__ps_table_new(&opts, s->index, s->servers);
        if (!s->tables[table]) status = proa_error();
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* The table of a number; NULL with an error. */
static proa__ps_table *table_of(proa_ps_server *s, int64_t table, bool dense)
{
    pthread_mutex_lock(&s->lock);
    proa__ps_table *t = table >= 0 && table < PROA__PS_TABLES ? s->tables[table] : NULL;
    pthread_mutex_unlock(&s->lock);
    if (t && t->opts.dense == dense) return t;
    if (t)
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "parameter server: table %lld \"%s\" is %s", (long long)table,
                  t->opts.name, t->opts.dense ? "dense, and has no rows" : "sparse: it has rows only");
    else
        proa_fail(PROA_ERR_NOT_FOUND, "parameter server: server %d has no table %lld; make it with ps_table",
                  s->index, (long long)table);
    return NULL;
}

proa_status proa_ps_server_load(proa_ps_server *s, int table, const char *folder)
{
    PROA_TRY(proa_error());
    proa__ps_table *t = table_of(s, table, false);
    return t ? proa__ps_table_load(t, folder) : proa_error();
}

static proa_status make_table(proa_ps_server *s, uint32_t table, proa__ps_reader *r)
{
    char name[256];
    proa_ps_table_opts o = {.dense = proa__ps_take_u32(r) != 0};
    o.width = (int64_t)proa__ps_take_u64(r);
    o.rule = (proa_ps_rule)proa__ps_take_u32(r);
    o.entry = (proa_ps_entry)proa__ps_take_u32(r);
    o.start = (proa_ps_start)proa__ps_take_u32(r);
    o.seed = proa__ps_take_u64(r);
    o.beta1 = proa__ps_take_f64(r);
    o.beta2 = proa__ps_take_f64(r);
    o.epsilon = proa__ps_take_f64(r);
    o.entry_value = proa__ps_take_f64(r);
    o.start_a = proa__ps_take_f64(r);
    o.start_b = proa__ps_take_f64(r);
    size_t n = r->left;
    const char *text = proa__ps_take(r, n);
    if (r->bad || n >= sizeof name || memchr(text, 0, n))
        return proa_fail(PROA_ERR_CORRUPT, "parameter server: the options of table %u have another form",
                         table);
    memcpy(name, text, n);
    name[n] = 0;
    o.name = name;
    return proa_ps_server_table_opt(s, table < PROA__PS_TABLES ? (int)table : -1, o);
}

/* ---- workers --------------------------------------------------------------------------- */

/* Compares in constant time, so that timing does not tell how many bytes were right. */
static bool same(const char *a, size_t n, const char *b)
{
    size_t length = strlen(b);
    unsigned difference = n != length;
    for (size_t i = 0; i < n; i++) difference |= (unsigned)(uint8_t)(a[i] ^ (i < length ? b[i] : 0));
    return difference == 0;
}

static proa_status hello(proa__ps_connection *c, proa__ps_reader *r)
{
    proa_ps_server *s = c->server;
    int worker = (int)proa__ps_take_u32(r), workers = (int)proa__ps_take_u32(r);
    int server = (int)proa__ps_take_u32(r), servers = (int)proa__ps_take_u32(r);
    size_t n = r->left;
    const char *token = proa__ps_take(r, n);
    if (r->bad || !same(token, n, s->token))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "parameter server: server %d is another job's: the token differs (PADDLE_JOB_ID and "
                         "PROA_TOKEN must be the same for workers and servers)",
                         s->index);
    if (server != s->index || servers != s->servers || workers != s->workers || worker < -1 ||
        worker >= workers)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "parameter server: worker %d of %d calls for server %d of %d, this is server %d of %d "
            "for %d workers; give all processes the same lists of endpoints",
            worker, workers, server, servers, s->index, s->servers, s->workers);
    return proa__ps_arrive(c, worker);
}

/* Under the server's lock: whether a worker is connected by another connection that has not closed. */
static bool is_connected(const proa__ps_worker *w)
{
    const proa__ps_connection *c = w->owner;
    char next;
    return w->life == PROA__PS_HERE && recv(c->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

proa_status proa__ps_arrive(proa__ps_connection *c, int worker)
{
    proa_ps_server *s = c->server;
    proa_status status = PROA_OK;
    pthread_mutex_lock(&s->lock);
    if (worker >= 0 && is_connected(&s->who[worker]))
        status =
            proa_fail(PROA_ERR_INVALID_ARGUMENT,
                      "parameter server: worker %d is connected to server %d already; give every worker a "
                      "number of its own",
                      worker, s->index);
    else {
        c->known = true;
        c->worker = worker;
        if (worker >= 0) s->who[worker] = (proa__ps_worker){.life = PROA__PS_HERE, .owner = c};
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* Under the server's lock: whether all workers that have not left wait. */
static bool all_wait(const proa_ps_server *s)
{
    for (int w = 0; w < s->workers; w++)
        if (s->who[w].life != PROA__PS_LEFT && !s->who[w].waits) return false;
    return true;
}

/* Under the server's lock: ends a round of the barrier. */
static proa_status end_round(proa_ps_server *s)
{
    proa_status status = PROA_OK;
    for (int i = 0; s->step && i < PROA__PS_TABLES && status == PROA_OK; i++)
        if (s->tables[i]) status = proa__ps_table_step(s->tables[i]);
    for (int w = 0; w < s->workers; w++) s->who[w].waits = false;
    s->rounds++;
    s->step = false;
    pthread_cond_broadcast(&s->changed);
    return status;
}

void proa__ps_gone(proa__ps_connection *c)
{
    proa_ps_server *s = c->server;
    if (!c->known || c->worker < 0) return;
    pthread_mutex_lock(&s->lock);
    proa__ps_worker *w = &s->who[c->worker];
    if (w->owner == c) {
        *w = (proa__ps_worker){.life = c->bye ? PROA__PS_LEFT : PROA__PS_DIED};
        bool somebody = false;
        for (int i = 0; i < s->workers; i++) somebody = somebody || s->who[i].waits;
        if (somebody && all_wait(s)) end_round(s);
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- barriers -------------------------------------------------------------------------- */

/* Under the server's lock: a worker that died; −1: none. */
static int dead_worker(const proa_ps_server *s)
{
    for (int w = 0; w < s->workers; w++)
        if (s->who[w].life == PROA__PS_DIED) return w;
    return -1;
}

static proa_status late(const proa_ps_server *s, double seconds)
{
    char who[256] = "";
    size_t n = 0;
    for (int w = 0; w < s->workers && n + 16 < sizeof who; w++)
        if (s->who[w].life != PROA__PS_LEFT && !s->who[w].waits)
            n += (size_t)snprintf(who + n, sizeof who - n, "%s%d", n ? ", " : "", w);
    return proa_fail(PROA_ERR_TIMEOUT, "barrier of workers: after %g s worker %s has not come", seconds, who);
}

/* Under the server's lock: waits for the end of the round under way. */
static proa_status wait_round(proa_ps_server *s, double seconds)
{
    uint64_t round = s->rounds;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)(1e9 * (seconds - floor(seconds)));
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (round == s->rounds) {
        int dead = dead_worker(s);
        if (dead >= 0)
            return proa_fail(PROA_ERR_UNAVAILABLE,
                             "barrier of workers: worker %d has died: its connection to "
                             "server %d closed",
                             dead, s->index);
        if (s->closing)
            return proa_fail(PROA_ERR_UNAVAILABLE, "barrier of workers: server %d ends", s->index);
        if (pthread_cond_timedwait(&s->changed, &s->lock, &until) == ETIMEDOUT && round == s->rounds)
            return late(s, seconds);
    }
    return PROA_OK;
}

proa_status proa__ps_wait_for_all(proa__ps_connection *c, bool step, double seconds)
{
    proa_ps_server *s = c->server;
    if (c->worker < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "barrier of workers: an observer cannot take part");
    if (!(seconds > 0 && seconds < 1e6)) seconds = 1e6;
    pthread_mutex_lock(&s->lock);
    s->who[c->worker].waits = true;
    s->step = s->step || step;
    proa_status status = all_wait(s) ? end_round(s) : wait_round(s, seconds);
    s->who[c->worker].waits = false;
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- requests -------------------------------------------------------------------------- */

static proa_status short_message(const proa__ps_table *t)
{
    return proa_fail(PROA_ERR_CORRUPT,
                     "parameter server: a message for table \"%s\" has another size than its "
                     "number of rows of %lld values asks for",
                     t->opts.name, (long long)t->opts.width);
}

/* Reads n and n ids; *values: the rest, which must be n rows if `with_values` is set, else nothing. */
static const int64_t *take_ids(const proa__ps_table *t, proa__ps_reader *r, bool with_values, int64_t *n,
                               const float **values)
{
    uint64_t count = proa__ps_take_u64(r);
    uint64_t each = 8 + (with_values ? (uint64_t)t->opts.width * sizeof(float) : 0);
    if (r->bad || count > r->left / each || count * each != r->left) {
        short_message(t);
        return NULL;
    }
    const int64_t *ids = proa__ps_take(r, count * 8);
    *n = (int64_t)count;
    *values = proa__ps_take(r, r->left);
    for (uint64_t i = 0; i < count; i++)
        if ((uint64_t)ids[i] % (uint64_t)t->servers != (uint64_t)t->server) {
            proa_fail(PROA_ERR_CORRUPT, "parameter server: row %lld is not server %d's", (long long)ids[i],
                      t->server);
            return NULL;
        }
    return ids;
}

/* Memory for n rows at the end of a reply; NULL with an error. */
static char *reply_space(proa__bytes *reply, int64_t n, int64_t width)
{
    size_t bytes;
    if (!proa__mul_size((size_t)n, (size_t)width * sizeof(float), &bytes)) return NULL;
    if (bytes > PROA__PS_MESSAGE_MAX) {
        proa_fail(PROA_ERR_OVERFLOW, "parameter server: %lld values are more than a reply holds",
                  (long long)(n * width));
        return NULL;
    }
    size_t wanted = reply->count + bytes + 16;
    if (reply->capacity < wanted) {
        char *at = proa__realloc(reply->at, wanted);
        if (!at) return NULL;
        reply->at = at;
        reply->capacity = wanted;
    }
    char *space = reply->at + reply->count;
    reply->count += bytes;
    return space;
}

static proa_status pull_rows(proa__ps_table *t, const int64_t *ids, int64_t n, bool test, proa__bytes *reply)
{
    char *out = reply_space(reply, n, t->opts.width);
    if (!out) return proa_error();
    float *rows = proa__alloc((size_t)(n * t->opts.width) * sizeof(float) + 1);
    proa_status status = rows ? proa__ps_table_pull(t, ids, n, test, rows) : proa_error();
    if (status == PROA_OK) memcpy(out, rows, (size_t)(n * t->opts.width) * sizeof(float));
    proa__free(rows);
    return status;
}

static proa_status on_rows(proa__ps_connection *c, proa__ps_table *t, proa__ps_request request, int flag,
                           double lr, proa__ps_reader *r, proa__bytes *reply)
{
    const float *values;
    int64_t n;
    const int64_t *ids = take_ids(t, r, request != PROA__PS_PULL, &n, &values);
    if (!ids) return proa_error();
    if (request == PROA__PS_PULL) return pull_rows(t, ids, n, flag, reply);
    if (request == PROA__PS_SET) return proa__ps_table_set(t, ids, values, n);
    return proa__ps_table_push(t, c->worker, ids, values, n, lr, flag);
}

static proa_status changed_rows(proa__ps_connection *c, proa__ps_table *t, proa__bytes *reply)
{
    proa__ps_ids ids;
    if (c->worker < 0 || c->worker >= PROA__PS_GEO_WORKERS)
        return proa_fail(PROA_ERR_UNSUPPORTED, "ps_pull_changed: worker %d; expected one of at most %d",
                         c->worker, PROA__PS_GEO_WORKERS);
    proa__ps_table_changed(t, c->worker, &ids);
    proa_status status = PROA_OK;
    if (!proa__ps_add_u64(reply, ids.count) || !proa__bytes_add(reply, ids.at, ids.count * sizeof *ids.at))
        status = proa_error();
    if (status == PROA_OK) status = pull_rows(t, ids.at, (int64_t)ids.count, true, reply);
    proa__free(ids.at);
    return status;
}

static proa_status on_dense(proa__ps_table *t, proa__ps_request request, int flag, double lr,
                            proa__ps_reader *r, proa__bytes *reply)
{
    size_t bytes = (size_t)t->slice * sizeof(float);
    if (request == PROA__PS_PULL_DENSE) {
        char *out = reply_space(reply, 1, t->slice);
        float *values = out ? proa__alloc(bytes + 1) : NULL;
        if (!values) return proa_error();
        proa__ps_dense_pull(t, values);
        memcpy(out, values, bytes);
        proa__free(values);
        return PROA_OK;
    }
    if (r->left != bytes) return short_message(t);
    const float *values = proa__ps_take(r, bytes);
    if (request == PROA__PS_PUSH_DENSE) return proa__ps_dense_push(t, values, lr, flag);
    proa__ps_dense_set(t, values);
    return PROA_OK;
}

static proa_status on_file(proa__ps_table *t, proa__ps_request request, int flag, proa__ps_reader *r)
{
    char folder[PATH_MAX];
    size_t n = r->left;
    const char *text = proa__ps_take(r, n);
    if (n == 0 || n >= sizeof folder || memchr(text, 0, n))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "parameter server: a folder's name of %zu bytes; expected 1 "
                         "to %zu without zero bytes",
                         n, sizeof folder - 1);
    memcpy(folder, text, n);
    folder[n] = 0;
    if (request == PROA__PS_LOAD) return proa__ps_table_load(t, folder);
    if (flag > PROA_PS_SAVE_DELTA)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "ps_save: mode is %d; expected 0 (all), 1 (base) or 2 (delta)", flag);
    return proa__ps_table_save(t, folder, (proa_ps_save_mode)flag);
}

proa_status proa__ps_handle(proa__ps_connection *c, proa__ps_request request, int flag, uint32_t table,
                            double number, proa__ps_reader *r, proa__bytes *reply)
{
    proa_ps_server *s = c->server;
    bool dense =
        request == PROA__PS_PULL_DENSE || request == PROA__PS_PUSH_DENSE || request == PROA__PS_SET_DENSE;
    bool on_table = dense || request == PROA__PS_PULL || request == PROA__PS_PUSH ||
                    request == PROA__PS_SET || request == PROA__PS_CHANGED || request == PROA__PS_SAVE ||
                    request == PROA__PS_LOAD || request == PROA__PS_SHRINK || request == PROA__PS_ROWS;
    proa__ps_table *t = on_table ? table_of(s, table, dense) : NULL;
    if (on_table && !t) return proa_error();
    switch (request) {
    case PROA__PS_HELLO: return hello(c, r);
    case PROA__PS_TABLE: return make_table(s, table, r);
    case PROA__PS_PULL:
    case PROA__PS_PUSH:
    case PROA__PS_SET: return on_rows(c, t, request, flag, number, r, reply);
    case PROA__PS_PULL_DENSE:
    case PROA__PS_PUSH_DENSE:
    case PROA__PS_SET_DENSE: return on_dense(t, request, flag, number, r, reply);
    case PROA__PS_CHANGED: return changed_rows(c, t, reply);
    case PROA__PS_BARRIER: return proa__ps_wait_for_all(c, flag, number);
    case PROA__PS_SAVE:
    case PROA__PS_LOAD: return on_file(t, request, flag, r);
    case PROA__PS_SHRINK: return proa__ps_table_shrink(t, number > 0 ? (uint32_t)fmin(number, 4e9) : 0);
    case PROA__PS_ROWS:
        return proa__ps_add_u64(reply, (uint64_t)proa__ps_table_rows(t)) ? PROA_OK : proa_error();
    case PROA__PS_STOP: c->stops = true; return PROA_OK;
    case PROA__PS_BYE: c->bye = true; return PROA_OK;
    case PROA__PS_REQUESTS: break;
    }
    return proa_fail(PROA_ERR_CORRUPT, "parameter server: there is no request %d", (int)request);
}
