/* Tables of a parameter server in memory: rows come into being as the table's entry says, and are updated by
 * its rule, at once or at the end of a step. May use core. */
#include "dist/ps/table.h"

#include "core/internal.h"
#include "dist/ps/wire.h"

#include <math.h>

/* ---- options --------------------------------------------------------------------------- */

static bool good_name(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && !strchr("_-.@+", c)) return false;
    }
    return n > 0 && n <= 200 && name[0] != '.';
}

proa_status proa__ps_check_table(int table, const proa_ps_table_opts *o)
{
    if (table < 0 || table >= PROA__PS_TABLES)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "ps_table: table is %d; expected 0 to %d", table,
                         PROA__PS_TABLES - 1);
    if (!o->name || !good_name(o->name))
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "ps_table: name is \"%s\"; expected 1 to 200 letters, digits, and any of _ - . @ +, not "
            "beginning with a dot",
            o->name ? o->name : "");
    if (o->width < 1 || o->width > (o->dense ? (int64_t)1 << 40 : (int64_t)1 << 24))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "ps_table: width is %lld; expected 1 to 2^24 (dense: 2^40)", (long long)o->width);
    if ((unsigned)o->rule > PROA_PS_SUM || (unsigned)o->entry > PROA_PS_ENTRY_PROBABILITY ||
        (unsigned)o->start > PROA_PS_TRUNCATED_GAUSSIAN)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "ps_table: rule %d, entry %d, start %d: one is none of its enum", (int)o->rule,
                         (int)o->entry, (int)o->start);
    if (o->entry == PROA_PS_ENTRY_COUNT && !(o->entry_value >= 0 && o->entry_value <= UINT32_MAX))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "ps_table: entry_value is %g; expected a count from 0 to 2^32−1", o->entry_value);
    if (o->entry == PROA_PS_ENTRY_PROBABILITY && !(o->entry_value > 0 && o->entry_value < 1))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "ps_table: entry_value is %g; expected a probability between 0 and 1",
                         o->entry_value);
    if (!isfinite(o->beta1) || !isfinite(o->beta2) || !isfinite(o->epsilon) || !isfinite(o->start_a) ||
        !isfinite(o->start_b))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "ps_table: an option of the rule or start is not finite");
    return PROA_OK;
}

static proa_ps_table_opts filled(proa_ps_table_opts o)
{
    if (o.beta1 == 0) o.beta1 = 0.9;
    if (o.beta2 == 0) o.beta2 = 0.999;
    if (o.epsilon == 0) o.epsilon = o.rule == PROA_PS_ADAGRAD ? 1e-6 : 1e-8;
    return o;
}

bool proa__ps_same_opts(const proa__ps_table *t, const proa_ps_table_opts *opts)
{
    proa_ps_table_opts a = t->opts, b = filled(*opts);
    return strcmp(a.name, b.name) == 0 && a.dense == b.dense && a.width == b.width && a.rule == b.rule &&
           a.beta1 == b.beta1 && a.beta2 == b.beta2 && a.epsilon == b.epsilon && a.entry == b.entry &&
           a.entry_value == b.entry_value && a.start == b.start && a.start_a == b.start_a &&
           a.start_b == b.start_b && a.seed == b.seed;
}

/* ---- life ------------------------------------------------------------------------------ */

int64_t proa__ps_slice_begin(int64_t width, int server, int servers)
{
    int64_t each = width / servers, more = width % servers;
    return server * each + (server < more ? server : more);
}

static bool make_dense(proa__ps_table *t)
{
    t->slice = proa__ps_slice_begin(t->opts.width, t->server + 1, t->servers) -
               proa__ps_slice_begin(t->opts.width, t->server, t->servers);
    size_t floats = (size_t)proa__ps_floats(t->opts.rule, t->slice), bytes;
    if (!proa__mul_size(floats, sizeof(float), &bytes)) return false;
    t->dense = proa__calloc(bytes + 1); /* a slice may be empty */
    if (!t->dense) return false;
    proa__ps_new_states(&t->opts, t->dense, t->slice);
    return true;
}

proa__ps_table *proa__ps_table_new(const proa_ps_table_opts *opts, int server, int servers)
{
    proa__ps_table *t = proa__calloc(sizeof *t);
    if (!t) return NULL;
    t->opts = filled(*opts);
    t->server = server;
    t->servers = servers;
    t->floats = proa__ps_floats(opts->rule, opts->width);
    pthread_mutex_init(&t->lock, NULL);
    for (int i = 0; i < PROA__PS_BUCKETS; i++) pthread_mutex_init(&t->buckets[i].lock, NULL);
    t->opts.name = proa__strdup(opts->name);
    if (!t->opts.name || (opts->dense && !make_dense(t))) {
        proa__ps_table_free(t);
        return NULL;
    }
    return t;
}

static void free_row(proa__ps_row *row)
{
    proa__free(row->sum);
    proa__free(row);
}

void proa__ps_table_free(proa__ps_table *t)
{
    if (!t) return;
    for (int i = 0; i < PROA__PS_BUCKETS; i++) {
        proa__ps_bucket *b = &t->buckets[i];
        for (size_t c = 0; c < b->capacity; c++)
            for (proa__ps_row *row = b->chains[c], *after; row; row = after) {
                after = row->next;
                free_row(row);
            }
        proa__free(b->chains);
        pthread_mutex_destroy(&b->lock);
    }
    for (int w = 0; t->changed && w < PROA__PS_GEO_WORKERS; w++) proa__free(t->changed[w].at);
    proa__free(t->changed);
    proa__free(t->dense);
    proa__free(t->sum);
    proa__free((void *)t->opts.name);
    pthread_mutex_destroy(&t->lock);
    proa__free(t);
}

/* ---- rows ------------------------------------------------------------------------------ */

/* Mixes all bits of an id; servers have taken the remainder of a division already. */
static uint64_t hash_of(int64_t id)
{
    uint64_t h = (uint64_t)id * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

proa__ps_bucket *proa__ps_bucket_of(proa__ps_table *t, int64_t id)
{
    return &t->buckets[hash_of(id) % PROA__PS_BUCKETS];
}

static size_t chain_of(const proa__ps_bucket *b, int64_t id)
{
    return (size_t)(hash_of(id) / PROA__PS_BUCKETS) & (b->capacity - 1);
}

static proa__ps_row *find(const proa__ps_bucket *b, int64_t id)
{
    if (!b->capacity) return NULL;
    proa__ps_row *row = b->chains[chain_of(b, id)];
    while (row && row->id != id) row = row->next;
    return row;
}

static bool grow(proa__ps_bucket *b)
{
    proa__ps_bucket bigger = {.capacity = b->capacity ? 2 * b->capacity : 16};
    bigger.chains = proa__calloc(bigger.capacity * sizeof *bigger.chains);
    if (!bigger.chains) return false;
    for (size_t c = 0; c < b->capacity; c++)
        for (proa__ps_row *row = b->chains[c], *after; row; row = after) {
            after = row->next;
            proa__ps_row **head = &bigger.chains[chain_of(&bigger, row->id)];
            row->next = *head;
            *head = row;
        }
    proa__free(b->chains);
    b->chains = bigger.chains;
    b->capacity = bigger.capacity;
    return true;
}

proa__ps_row *proa__ps_row_of(proa__ps_table *t, proa__ps_bucket *b, int64_t id)
{
    proa__ps_row *row = find(b, id);
    if (row) return row;
    if (b->count >= b->capacity && !grow(b)) return NULL;
    row = proa__calloc(sizeof *row + (size_t)t->floats * sizeof(float));
    if (!row) return NULL;
    row->id = id;
    proa__ps_row **head = &b->chains[chain_of(b, id)];
    row->next = *head;
    *head = row;
    b->count++;
    return row;
}

static void enter(proa__ps_table *t, proa__ps_row *row)
{
    proa__ps_draw(&t->opts, row->id, row->values);
    row->entered = row->need_save = true;
}

static bool may_enter(const proa__ps_table *t, const proa__ps_row *row)
{
    switch (t->opts.entry) {
    case PROA_PS_ENTRY_COUNT: return (double)row->count >= t->opts.entry_value;
    case PROA_PS_ENTRY_PROBABILITY: return proa__ps_chance(t->opts.seed, row->id) < t->opts.entry_value;
    case PROA_PS_ENTRY_ALWAYS: break;
    }
    return true;
}

static proa_status pull_row(proa__ps_table *t, int64_t id, bool test, float *out)
{
    proa__ps_bucket *b = proa__ps_bucket_of(t, id);
    size_t bytes = (size_t)t->opts.width * sizeof(float);
    pthread_mutex_lock(&b->lock);
    proa__ps_row *row = test ? find(b, id) : proa__ps_row_of(t, b, id);
    if (row && !test) {
        row->unseen_days = 0;
        row->count += row->count < UINT32_MAX;
        if (!row->entered && may_enter(t, row)) enter(t, row);
    }
    if (row && row->entered) memcpy(out, row->values, bytes);
    else memset(out, 0, bytes);
    pthread_mutex_unlock(&b->lock);
    return row || test ? PROA_OK : proa_error();
}

proa_status proa__ps_table_pull(proa__ps_table *t, const int64_t *ids, int64_t n, bool test, float *out)
{
    for (int64_t i = 0; i < n; i++) PROA_TRY(pull_row(t, ids[i], test, out + i * t->opts.width));
    return PROA_OK;
}

/* ---- gradients ------------------------------------------------------------------------- */

/* Adds a gradient to those that wait for the step. */
static bool keep_waiting(proa__ps_table *t, proa__ps_bucket *b, proa__ps_row *row, const float *g)
{
    if (!row->sum) row->sum = proa__alloc((size_t)t->opts.width * sizeof(float));
    if (!row->sum) return false;
    if (row->pushes == 0) {
        memset(row->sum, 0, (size_t)t->opts.width * sizeof(float));
        row->next_waiting = b->waiting;
        b->waiting = row;
    }
    for (int64_t i = 0; i < t->opts.width; i++) row->sum[i] += g[i];
    row->pushes++;
    return true;
}

/* Adds the row to the lists of changes of all workers but the one that pushed. The row's bucket is locked. */
static proa_status note_change(proa__ps_table *t, int worker, proa__ps_row *row)
{
    uint64_t others = worker >= 0 && worker < PROA__PS_GEO_WORKERS ? ~((uint64_t)1 << worker) : ~(uint64_t)0;
    uint64_t fresh = others & ~row->changed;
    proa_status status = PROA_OK;
    pthread_mutex_lock(&t->lock);
    if (!t->changed) t->changed = proa__calloc(PROA__PS_GEO_WORKERS * sizeof *t->changed);
    if (!t->changed) status = proa_error();
    for (int w = 0; status == PROA_OK && w < PROA__PS_GEO_WORKERS; w++) {
        proa__ps_ids *list = &t->changed[w];
        if (!(fresh >> w & 1)) continue;
        if (list->count == list->capacity) {
            size_t capacity = list->capacity ? 2 * list->capacity : 64;
            int64_t *at = proa__realloc(list->at, capacity * sizeof *at);
            if (!at) {
                status = proa_error();
                break;
            }
            list->at = at;
            list->capacity = capacity;
        }
        list->at[list->count++] = row->id;
        row->changed |= (uint64_t)1 << w;
    }
    pthread_mutex_unlock(&t->lock);
    return status;
}

static proa_status push_row(proa__ps_table *t, int worker, int64_t id, const float *g, double lr, bool waits)
{
    proa__ps_bucket *b = proa__ps_bucket_of(t, id);
    proa_status status = PROA_OK;
    pthread_mutex_lock(&b->lock);
    proa__ps_row *row = find(b, id);
    if (row && row->entered) {
        row->need_save = true;
        if (!waits) proa__ps_update(&t->opts, row->values, t->opts.width, g, 1, lr);
        else if (!keep_waiting(t, b, row, g)) status = proa_error();
        if (status == PROA_OK && t->opts.rule == PROA_PS_SUM) status = note_change(t, worker, row);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

static void note_rate(proa__ps_table *t, double lr)
{
    pthread_mutex_lock(&t->lock);
    t->lr = lr;
    pthread_mutex_unlock(&t->lock);
}

proa_status proa__ps_table_push(proa__ps_table *t, int worker, const int64_t *ids, const float *grads,
                                int64_t n, double lr, bool waits)
{
    if (waits) note_rate(t, lr);
    for (int64_t i = 0; i < n; i++)
        PROA_TRY(push_row(t, worker, ids[i], grads + i * t->opts.width, lr, waits));
    return PROA_OK;
}

proa_status proa__ps_table_set(proa__ps_table *t, const int64_t *ids, const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        proa__ps_bucket *b = proa__ps_bucket_of(t, ids[i]);
        pthread_mutex_lock(&b->lock);
        proa__ps_row *row = proa__ps_row_of(t, b, ids[i]);
        if (row) {
            if (!row->entered) proa__ps_new_states(&t->opts, row->values, t->opts.width);
            memcpy(row->values, values + i * t->opts.width, (size_t)t->opts.width * sizeof(float));
            row->entered = row->need_save = true;
        }
        pthread_mutex_unlock(&b->lock);
        if (!row) return proa_error();
    }
    return PROA_OK;
}

proa_status proa__ps_table_step(proa__ps_table *t)
{
    for (int i = 0; i < PROA__PS_BUCKETS; i++) {
        proa__ps_bucket *b = &t->buckets[i];
        pthread_mutex_lock(&b->lock);
        for (proa__ps_row *row = b->waiting; row; row = row->next_waiting) {
            proa__ps_update(&t->opts, row->values, t->opts.width, row->sum, 1.0 / row->pushes, t->lr);
            row->pushes = 0;
        }
        b->waiting = NULL;
        pthread_mutex_unlock(&b->lock);
    }
    pthread_mutex_lock(&t->lock);
    if (t->pushes) proa__ps_update(&t->opts, t->dense, t->slice, t->sum, 1.0 / t->pushes, t->lr);
    t->pushes = 0;
    pthread_mutex_unlock(&t->lock);
    return PROA_OK;
}

proa_status proa__ps_table_shrink(proa__ps_table *t, uint32_t threshold)
{
    for (int i = 0; i < PROA__PS_BUCKETS; i++) {
        proa__ps_bucket *b = &t->buckets[i];
        pthread_mutex_lock(&b->lock);
        for (size_t c = 0; c < b->capacity; c++)
            for (proa__ps_row **at = &b->chains[c]; *at;) {
                proa__ps_row *row = *at;
                row->unseen_days += row->unseen_days < UINT32_MAX;
                if (row->unseen_days < threshold || row->pushes) {
                    at = &row->next;
                    continue;
                }
                *at = row->next;
                b->count--;
                free_row(row);
            }
        pthread_mutex_unlock(&b->lock);
    }
    return PROA_OK;
}

int64_t proa__ps_table_rows(proa__ps_table *t)
{
    int64_t rows = 0;
    for (int i = 0; i < PROA__PS_BUCKETS; i++) {
        pthread_mutex_lock(&t->buckets[i].lock);
        rows += (int64_t)t->buckets[i].count;
        pthread_mutex_unlock(&t->buckets[i].lock);
    }
    return rows;
}

void proa__ps_table_changed(proa__ps_table *t, int worker, proa__ps_ids *ids)
{
    *ids = (proa__ps_ids){0};
    pthread_mutex_lock(&t->lock);
    if (t->changed) {
        *ids = t->changed[worker];
        t->changed[worker] = (proa__ps_ids){0};
    }
    pthread_mutex_unlock(&t->lock);
    size_t there = 0; /* others were shrunk away */
    for (size_t i = 0; i < ids->count; i++) {
        proa__ps_bucket *b = proa__ps_bucket_of(t, ids->at[i]);
        pthread_mutex_lock(&b->lock);
        proa__ps_row *row = find(b, ids->at[i]);
        if (row) row->changed &= ~((uint64_t)1 << worker);
        if (row) ids->at[there++] = row->id;
        pthread_mutex_unlock(&b->lock);
    }
    ids->count = there;
}

/* ---- dense ----------------------------------------------------------------------------- */

void proa__ps_dense_pull(proa__ps_table *t, float *out)
{
    pthread_mutex_lock(&t->lock);
    memcpy(out, t->dense, (size_t)t->slice * sizeof(float));
    pthread_mutex_unlock(&t->lock);
}

proa_status proa__ps_dense_push(proa__ps_table *t, const float *grads, double lr, bool waits)
{
    size_t bytes = (size_t)t->slice * sizeof(float);
    pthread_mutex_lock(&t->lock);
    if (waits && !t->sum) t->sum = proa__alloc(bytes + 1);
    if (waits && t->sum) {
        if (t->pushes++ == 0) memset(t->sum, 0, bytes);
        for (int64_t i = 0; i < t->slice; i++) t->sum[i] += grads[i];
        t->lr = lr;
    } else if (!waits) {
        proa__ps_update(&t->opts, t->dense, t->slice, grads, 1, lr);
    }
    pthread_mutex_unlock(&t->lock);
    return waits && !t->sum ? proa_error() : PROA_OK;
}

void proa__ps_dense_set(proa__ps_table *t, const float *values)
{
    pthread_mutex_lock(&t->lock);
    memcpy(t->dense, values, (size_t)t->slice * sizeof(float));
    pthread_mutex_unlock(&t->lock);
}
