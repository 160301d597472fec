/* A worker's calls on tables: rows go to server id mod servers, a batch to each; a dense vector is cut over
 * the servers. May use core. */
#define _GNU_SOURCE
#include "dist/ps/client.h"

#include "core/internal.h"
#include "dist/ps/table.h"

#include <limits.h>

enum { CHUNK_BYTES = 1 << 28 /* of rows that one exchange carries, all servers together */ };

/* ---- distinct ids ---------------------------------------------------------------------- */

proa_status proa__ps_find_distinct(const int64_t *ids, int64_t n, proa__ps_distinct *d)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)n) slots *= 2;
    *d = (proa__ps_distinct){.ids = proa_scope_alloc((size_t)n * sizeof *d->ids + 1),
                             .place = proa_scope_alloc((size_t)n * sizeof *d->place + 1)};
    int64_t *slot = proa_scope_alloc(slots * sizeof *slot); /* place + 1 of the id there; 0: free */
    if (!d->ids || !d->place || !slot) return proa_error();
    memset(slot, 0, slots * sizeof *slot);
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = (uint64_t)ids[i] * 0x9e3779b97f4a7c15u;
        size_t at = (size_t)(h ^ h >> 32) & (slots - 1);
        while (slot[at] && d->ids[slot[at] - 1] != ids[i]) at = (at + 1) & (slots - 1);
        if (!slot[at]) {
            d->ids[d->count++] = ids[i];
            slot[at] = d->count;
        }
        d->place[i] = slot[at] - 1;
    }
    return PROA_OK;
}

static int server_of(const proa_ps_client *c, int64_t id)
{
    return (int)((uint64_t)id % (uint64_t)c->servers);
}

/* ---- calls on all servers -------------------------------------------------------------- */

int64_t proa__ps_width(proa_ps_client *c, const char *who, int table, bool dense)
{
    if (!c) {
        proa_fail(PROA_ERR_BAD_STATE,
                  "%s: this worker is not connected to servers; call ps_connect (Python: "
                  "fleet.init_worker()) first",
                  who);
        return 0;
    }
    int64_t width = table >= 0 && table < PROA__PS_TABLES ? c->widths[table] : 0;
    if (width && c->dense[table] == dense) return width;
    if (width)
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: table %d is %s", who, table,
                  dense ? "sparse: it has rows only" : "dense, and has no rows");
    else proa_fail(PROA_ERR_NOT_FOUND, "%s: there is no table %d; make it with ps_table first", who, table);
    return 0;
}

/* Begins the same request on every server. */
static bool begin_all(proa_ps_client *c, proa__ps_request request, int flag, int table, double number)
{
    for (int s = 0; s < c->servers; s++)
        if (!proa__ps_begin(&c->links[s].out, request, flag, table, number)) return false;
    return true;
}

static proa_status finish(proa_ps_client *c, proa_status status)
{
    proa__ps_clear(c);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* A request without values, and with text behind it. */
static proa_status tell_all(proa_ps_client *c, const char *who, proa__ps_request request, int flag, int table,
                            double number, const char *text, double seconds)
{
    PROA_TRY(proa_error());
    pthread_mutex_lock(&c->lock);
    bool made = begin_all(c, request, flag, table, number);
    for (int s = 0; made && text && s < c->servers; s++)
        made = proa__bytes_add(&c->links[s].out, text, strlen(text));
    return finish(c, made ? proa__ps_exchange(c, who, seconds) : proa_error());
}

static bool add_opts(proa__bytes *b, const proa_ps_table_opts *o)
{
    return proa__ps_add_u32(b, o->dense) && proa__ps_add_u64(b, (uint64_t)o->width) &&
           proa__ps_add_u32(b, (uint32_t)o->rule) && proa__ps_add_u32(b, (uint32_t)o->entry) &&
           proa__ps_add_u32(b, (uint32_t)o->start) && proa__ps_add_u64(b, o->seed) &&
           proa__ps_add_f64(b, o->beta1) && proa__ps_add_f64(b, o->beta2) &&
           proa__ps_add_f64(b, o->epsilon) && proa__ps_add_f64(b, o->entry_value) &&
           proa__ps_add_f64(b, o->start_a) && proa__ps_add_f64(b, o->start_b) &&
           proa__bytes_add(b, o->name, strlen(o->name));
}

proa_status proa_ps_table_opt(proa_ps_client *c, int table, proa_ps_table_opts opts)
{
    PROA_TRY(proa_error());
    PROA_TRY(proa__ps_check_table(table, &opts));
    pthread_mutex_lock(&c->lock);
    bool made = begin_all(c, PROA__PS_TABLE, 0, table, 0);
    for (int s = 0; made && s < c->servers; s++) made = add_opts(&c->links[s].out, &opts);
    proa_status status = made ? proa__ps_exchange(c, "ps_table", c->timeout) : proa_error();
    if (status == PROA_OK) {
        c->widths[table] = opts.width;
        c->dense[table] = opts.dense;
    }
    return finish(c, status);
}

/* ---- rows ------------------------------------------------------------------------------ */

/* Begins a request with the ids of each server, for servers that have any. Values, n × width, follow if they
 * are given. */
static bool deal_out(proa_ps_client *c, proa__ps_request request, int flag, int table, double number,
                     const int64_t *ids, const float *values, int64_t n, int64_t width)
{
    for (int s = 0; s < c->servers; s++) c->links[s].sent = 0;
    for (int64_t i = 0; i < n; i++) c->links[server_of(c, ids[i])].sent++;
    for (int s = 0; s < c->servers; s++) {
        proa__ps_link *l = &c->links[s];
        if (l->sent &&
            (!proa__ps_begin(&l->out, request, flag, table, number) || !proa__ps_add_u64(&l->out, l->sent)))
            return false;
    }
    for (int64_t i = 0; i < n; i++)
        if (!proa__bytes_add(&c->links[server_of(c, ids[i])].out, &ids[i], sizeof *ids)) return false;
    for (int64_t i = 0; values && i < n; i++)
        if (!proa__bytes_add(&c->links[server_of(c, ids[i])].out, values + i * width,
                             (size_t)width * sizeof *values))
            return false;
    return true;
}

/* Puts the rows that came into the order of ids. */
static proa_status collect(proa_ps_client *c, const int64_t *ids, int64_t n, int64_t width, float *out)
{
    size_t bytes = (size_t)width * sizeof *out;
    for (int s = 0; s < c->servers; s++) {
        const proa__ps_link *l = &c->links[s];
        if (l->sent && l->in.count != PROA__PS_REPLY_HEAD + l->sent * bytes)
            return proa_fail(PROA_ERR_CORRUPT,
                             "ps_pull: server %d (%s:%d) replied %zu bytes for %zu rows of %zu", s, l->host,
                             l->port, l->in.count - PROA__PS_REPLY_HEAD, l->sent, bytes);
        c->links[s].sent = PROA__PS_REPLY_HEAD; /* from here on: the next row's offset */
    }
    for (int64_t i = 0; i < n; i++) {
        proa__ps_link *l = &c->links[server_of(c, ids[i])];
        memcpy(out + i * width, l->in.at + l->sent, bytes);
        l->sent += bytes;
    }
    return PROA_OK;
}

/* One exchange about distinct rows. */
static proa_status exchange_rows(proa_ps_client *c, const char *who, proa__ps_request request, int flag,
                                 int table, double number, const int64_t *ids, const float *values, int64_t n,
                                 int64_t width, float *out)
{
    pthread_mutex_lock(&c->lock);
    bool made = deal_out(c, request, flag, table, number, ids, values, n, width);
    bool posts = request == PROA__PS_PUSH && c->mode == PROA_PS_ASYNC;
    proa_status status = !made   ? proa_error()
                         : posts ? proa__ps_post(c, who, c->timeout)
                                 : proa__ps_exchange(c, who, c->timeout);
    if (status == PROA_OK && out) status = collect(c, ids, n, width, out);
    return finish(c, status);
}

/* The same in messages of a bounded size. */
static proa_status rows_in_chunks(proa_ps_client *c, const char *who, proa__ps_request request, int flag,
                                  int table, double number, const int64_t *ids, const float *values,
                                  int64_t n, int64_t width, float *out)
{
    int64_t most = CHUNK_BYTES / (8 + width * (int64_t)sizeof(float));
    for (int64_t at = 0; at < n; at += most) {
        int64_t some = n - at < most ? n - at : most;
        PROA_TRY(exchange_rows(c, who, request, flag, table, number, ids + at,
                               values ? values + at * width : NULL, some, width,
                               out ? out + at * width : NULL));
    }
    return PROA_OK;
}

static float *rows_alloc(int64_t n, int64_t width)
{
    size_t bytes;
    if (!proa__mul_size((size_t)n, (size_t)width * sizeof(float), &bytes)) return NULL;
    return proa_scope_alloc(bytes + 1);
}

proa_status proa_ps_pull(proa_ps_client *c, int table, const int64_t *ids, int64_t n, bool test, float *out)
{
    PROA_TRY(proa_error());
    PROA_SCOPED;
    proa__ps_distinct d;
    int64_t width = proa__ps_width(c, "ps_pull", table, false);
    if (!width) return proa_error();
    PROA_TRY(proa__ps_find_distinct(ids, n, &d));
    float *rows = rows_alloc(d.count, width);
    if (!rows) return proa_error();
    PROA_TRY(rows_in_chunks(c, "ps_pull", PROA__PS_PULL, test, table, 0, d.ids, NULL, d.count, width, rows));
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * width, rows + d.place[i] * width, (size_t)width * sizeof *out);
    return PROA_OK;
}

proa_status proa_ps_push(proa_ps_client *c, int table, const int64_t *ids, const float *grads, int64_t n,
                         double lr)
{
    PROA_TRY(proa_error());
    PROA_SCOPED;
    proa__ps_distinct d;
    int64_t width = proa__ps_width(c, "ps_push", table, false);
    if (!width) return proa_error();
    PROA_TRY(proa__ps_find_distinct(ids, n, &d));
    float *sums = rows_alloc(d.count, width);
    if (!sums) return proa_error();
    memset(sums, 0, (size_t)(d.count * width) * sizeof *sums);
    for (int64_t i = 0; i < n; i++) {
        float *to = sums + d.place[i] * width;
        for (int64_t k = 0; k < width; k++) to[k] += grads[i * width + k];
    }
    return rows_in_chunks(c, "ps_push", PROA__PS_PUSH, c->mode == PROA_PS_SYNC, table, lr, d.ids, sums,
                          d.count, width, NULL);
}

proa_status proa_ps_set(proa_ps_client *c, int table, const int64_t *ids, const float *values, int64_t n)
{
    PROA_TRY(proa_error());
    int64_t width = proa__ps_width(c, "ps_set", table, false);
    if (!width) return proa_error();
    return rows_in_chunks(c, "ps_set", PROA__PS_SET, 0, table, 0, ids, values, n, width, NULL);
}

/* The ids and rows of all servers' replies, joined. */
static proa_status join_changed(proa_ps_client *c, int64_t width, int64_t **ids, float **values, int64_t *n)
{
    size_t row = (size_t)width * sizeof **values, total = 0;
    for (int s = 0; s < c->servers; s++) {
        const proa__ps_link *l = &c->links[s];
        proa__ps_reader r = {.at = l->in.at + PROA__PS_REPLY_HEAD, .left = l->in.count - PROA__PS_REPLY_HEAD};
        uint64_t count = proa__ps_take_u64(&r);
        if (r.bad || count > r.left / (8 + row) || count * (8 + row) != r.left)
            return proa_fail(PROA_ERR_CORRUPT,
                             "ps_pull_changed: the reply of server %d has another size than its "
                             "number of rows asks for",
                             s);
        total += count;
    }
    *ids = proa__alloc(total * sizeof **ids + 1);
    *values = proa__alloc(total * row + 1);
    if (!*ids || !*values) return proa_error();
    for (int s = 0; s < c->servers; s++) {
        const char *at = c->links[s].in.at + PROA__PS_REPLY_HEAD;
        uint64_t count;
        memcpy(&count, at, 8);
        memcpy(*ids + *n, at + 8, count * 8);
        memcpy(*values + *n * width, at + 8 + count * 8, count * row);
        *n += (int64_t)count;
    }
    return PROA_OK;
}

proa_status proa_ps_pull_changed(proa_ps_client *c, int table, int64_t **ids, float **values, int64_t *n)
{
    *ids = NULL, *values = NULL, *n = 0;
    PROA_TRY(proa_error());
    int64_t width = proa__ps_width(c, "ps_pull_changed", table, false);
    if (!width) return proa_error();
    pthread_mutex_lock(&c->lock);
    proa_status status = begin_all(c, PROA__PS_CHANGED, 0, table, 0)
                             ? proa__ps_exchange(c, "ps_pull_changed", c->timeout)
                             : proa_error();
    if (status == PROA_OK) status = join_changed(c, width, ids, values, n);
    finish(c, status);
    if (status == PROA_OK) return PROA_OK;
    proa__free(*ids);
    proa__free(*values);
    *ids = NULL, *values = NULL, *n = 0;
    return status;
}

void proa_ps_free(void *p) { proa__free(p); }

/* ---- dense tables ---------------------------------------------------------------------- */

static int64_t begin_of(const proa_ps_client *c, int64_t width, int server)
{
    return proa__ps_slice_begin(width, server, c->servers);
}

static proa_status send_dense(proa_ps_client *c, const char *who, proa__ps_request request, int flag,
                              int table, const float *values, double lr)
{
    PROA_TRY(proa_error());
    int64_t width = proa__ps_width(c, who, table, true);
    if (!width) return proa_error();
    pthread_mutex_lock(&c->lock);
    bool made = begin_all(c, request, flag, table, lr);
    for (int s = 0; made && s < c->servers; s++) {
        int64_t from = begin_of(c, width, s), to = begin_of(c, width, s + 1);
        made = proa__bytes_add(&c->links[s].out, values + from, (size_t)(to - from) * sizeof *values);
    }
    bool posts = request == PROA__PS_PUSH_DENSE && c->mode == PROA_PS_ASYNC;
    if (!made) return finish(c, proa_error());
    return finish(c, posts ? proa__ps_post(c, who, c->timeout) : proa__ps_exchange(c, who, c->timeout));
}

proa_status proa_ps_push_dense(proa_ps_client *c, int table, const float *grads, double lr)
{
    bool waits = c && c->mode == PROA_PS_SYNC;
    return send_dense(c, "ps_push_dense", PROA__PS_PUSH_DENSE, waits, table, grads, lr);
}

proa_status proa_ps_set_dense(proa_ps_client *c, int table, const float *values)
{
    return send_dense(c, "ps_set_dense", PROA__PS_SET_DENSE, 0, table, values, 0);
}

proa_status proa_ps_pull_dense(proa_ps_client *c, int table, float *out)
{
    PROA_TRY(proa_error());
    int64_t width = proa__ps_width(c, "ps_pull_dense", table, true);
    if (!width) return proa_error();
    pthread_mutex_lock(&c->lock);
    proa_status status = begin_all(c, PROA__PS_PULL_DENSE, 0, table, 0)
                             ? proa__ps_exchange(c, "ps_pull_dense", c->timeout)
                             : proa_error();
    for (int s = 0; status == PROA_OK && s < c->servers; s++) {
        const proa__ps_link *l = &c->links[s];
        int64_t from = begin_of(c, width, s);
        size_t bytes = (size_t)(begin_of(c, width, s + 1) - from) * sizeof *out;
        if (l->in.count == PROA__PS_REPLY_HEAD + bytes)
            memcpy(out + from, l->in.at + PROA__PS_REPLY_HEAD, bytes);
        else
            status =
                proa_fail(PROA_ERR_CORRUPT, "ps_pull_dense: server %d (%s:%d) replied %zu bytes, not %zu", s,
                          l->host, l->port, l->in.count - PROA__PS_REPLY_HEAD, bytes);
    }
    return finish(c, status);
}

/* ---- barriers, files ------------------------------------------------------------------- */

enum { GRACE = 5 /* seconds after which a barrier's own deadline, on the server, has replied */ };

proa_status proa_ps_step(proa_ps_client *c)
{
    if (c->mode != PROA_PS_SYNC) return proa_error();
    return tell_all(c, "ps_step", PROA__PS_BARRIER, 1, 0, c->timeout, NULL, c->timeout + GRACE);
}

proa_status proa_ps_barrier(proa_ps_client *c)
{
    PROA_TRY(proa_error());
    pthread_mutex_lock(&c->lock);
    proa_status pushed =
        proa__ps_settle(c, c->timeout); /* what is behind the barrier finds all pushes applied */
    bool made = pushed == PROA_OK && proa__ps_begin(&c->links[0].out, PROA__PS_BARRIER, 0, 0, c->timeout);
    return finish(c, made ? proa__ps_exchange(c, "ps_barrier", c->timeout + GRACE) : proa_error());
}

/* The folder as servers find it: absolute, if they share this worker's file system. */
static proa_status on_folder(proa_ps_client *c, const char *who, proa__ps_request request, int flag,
                             int table, const char *folder)
{
    char here[PATH_MAX];
    PROA_TRY(proa_error());
    if (!folder || !*folder || strlen(folder) >= sizeof here)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: folder must be a path", who);
    if (!proa__ps_width(c, who, table, false)) return proa_error();
    return tell_all(c, who, request, flag, table, 0, folder, c->timeout);
}

proa_status proa_ps_save(proa_ps_client *c, int table, const char *folder, proa_ps_save_mode mode)
{
    return on_folder(c, "ps_save", PROA__PS_SAVE, (int)mode, table, folder);
}

proa_status proa_ps_load(proa_ps_client *c, int table, const char *folder)
{
    return on_folder(c, "ps_load", PROA__PS_LOAD, 0, table, folder);
}

proa_status proa_ps_shrink(proa_ps_client *c, int table, int threshold)
{
    if (threshold < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "ps_shrink: threshold is %d; expected a number of days, 0 or "
                         "more",
                         threshold);
    if (!proa__ps_width(c, "ps_shrink", table, false)) return proa_error();
    return tell_all(c, "ps_shrink", PROA__PS_SHRINK, 0, table, threshold, NULL, c->timeout);
}

proa_status proa_ps_rows(proa_ps_client *c, int table, int64_t *rows)
{
    *rows = 0;
    PROA_TRY(proa_error());
    if (!proa__ps_width(c, "ps_rows", table, false)) return proa_error();
    pthread_mutex_lock(&c->lock);
    proa_status status =
        begin_all(c, PROA__PS_ROWS, 0, table, 0) ? proa__ps_exchange(c, "ps_rows", c->timeout) : proa_error();
    for (int s = 0; status == PROA_OK && s < c->servers; s++) {
        const proa__ps_link *l = &c->links[s];
        proa__ps_reader r = {.at = l->in.at + PROA__PS_REPLY_HEAD, .left = l->in.count - PROA__PS_REPLY_HEAD};
        *rows += (int64_t)proa__ps_take_u64(&r);
        if (r.bad) status = proa_fail(PROA_ERR_CORRUPT, "ps_rows: server %d replied no number", s);
    }
    return finish(c, status);
}

proa_status proa_ps_stop_servers(proa_ps_client *c)
{
    return tell_all(c, "ps_stop_servers", PROA__PS_STOP, 0, 0, 0, NULL, c->timeout);
}
