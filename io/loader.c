/* Data loaders: shuffle an epoch, make its batches, and prefetch them in a thread. Core only. The order
 * depends on (seed, epoch) alone, so that a run resumes from the position (epoch, batch). */
#include "io/dataset.h"

#include "core/device.h"
#include "core/philox.h"

#include <pthread.h>

enum { AHEAD_MAX = 64, MESSAGE = 1024 };

/* One prefetched batch: tensors kept by the loader, or the error that making it gave. */
typedef struct slot {
    proa_tensor *fields[PROA_SAMPLE_FIELDS];
    int64_t size;
    proa_status code;
    char message[MESSAGE];
} slot;

struct proa_loader {
    proa_dataset *dataset;
    proa_data_opts opts;
    int64_t epoch, next, batches;
    bool running; /* inside proa_each */
    int device;   /* of the thread in proa_each: prefetched batches are copied to it */
    bool left;    /* proa_each was left early: the next one begins a new epoch */
    int64_t *order;
    proa_scope scope;
    proa_batch batch;
    proa_tensor *fields[PROA_SAMPLE_FIELDS];
    /* shared with the prefetch thread: guarded by `lock` while the thread runs */
    pthread_t thread;
    bool threaded, stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    slot *ring;
    int capacity, head, filled;
    int64_t made;     /* number of the batch that the thread makes next */
    int64_t *indices; /* samples of the batch that is being made */
};

/* ---- order ----------------------------------------------------------------------------- */

/* A number below n from 64 random bits: the high half of a product (Lemire, 2019). */
static uint64_t below(uint64_t bits, uint64_t n)
{
    return (uint64_t)(((__extension__(unsigned __int128) bits) * n) >> 64);
}

/* Fisher and Yates' shuffle with Philox blocks of this epoch's own stream. */
static void shuffle(int64_t *order, int64_t n, uint64_t seed, uint64_t epoch)
{
    proa__philox_block block = {{0}};
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n - 1, k = 0; i > 0; i--, k++) {
        if (k % 2 == 0) {
            proa__philox_block counter = {{(uint32_t)(k / 2), (uint32_t)((uint64_t)k >> 33), (uint32_t)epoch,
                                           (uint32_t)(epoch >> 32) ^ 0x6c6f6164u}};
            block = proa__philox_raw(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
        }
        int at = k % 2 ? 2 : 0;
        uint64_t j = below((uint64_t)block.v[at + 1] << 32 | block.v[at], (uint64_t)i + 1);
        int64_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

/* Returns the number of samples of batch b on this rank; *begin is the index of the first in the epoch's
 * order. */
static int64_t batch_range(const proa_loader *l, int64_t b, int64_t *begin)
{
    int64_t n = l->dataset->desc.count, group = l->opts.batch * l->opts.size, first = b * group;
    int64_t all = n - first < group ? n - first : group;
    *begin = first + all * l->opts.rank / l->opts.size;
    return first + all * (l->opts.rank + 1) / l->opts.size - *begin;
}

/* Number of batches of an epoch. A last batch with fewer samples than ranks is left out on all ranks. */
static int64_t count_batches(const proa_loader *l)
{
    int64_t n = l->dataset->desc.count, group = l->opts.batch * l->opts.size, rest = n % group;
    return n / group + (!l->opts.drop_last && rest >= l->opts.size);
}

static proa_status make_batch(proa_loader *l, int64_t b, proa_tensor **to, int64_t *size)
{
    int64_t begin;
    *size = batch_range(l, b, &begin);
    for (int64_t i = 0; i < *size; i++) l->indices[i] = l->order ? l->order[begin + i] : begin + i;
    return proa__dataset_batch(l->dataset, l->indices, *size, to);
}

/* ---- making and freeing ---------------------------------------------------------------- */

static bool good_opts(proa_data_opts *o)
{
    if (o->batch == 0) o->batch = 1;
    if (o->size == 0) o->size = 1;
    if (o->prefetch == 0) o->prefetch = 2;
    if (o->prefetch > AHEAD_MAX) o->prefetch = AHEAD_MAX;
    if (o->batch > 0 && o->batch <= INT32_MAX && o->size > 0 && o->size <= INT32_MAX && o->rank >= 0 &&
        o->rank < o->size)
        return true;
    proa_fail(PROA_ERR_INVALID_ARGUMENT,
              "loader: batch %lld, rank %lld of %lld: batch and size must be positive, "
              "rank below size",
              (long long)o->batch, (long long)o->rank, (long long)o->size);
    return false;
}

proa_loader *proa_loader_opt(proa_dataset *d, proa_data_opts opts)
{
    if (!d && proa_error() == PROA_OK) proa_fail(PROA_ERR_INVALID_ARGUMENT, "loader: the dataset is NULL");
    proa_loader *l = d && proa_error() == PROA_OK && good_opts(&opts) ? proa__calloc(sizeof *l) : NULL;
    if (!l) {
        proa_dataset_free(d);
        return NULL;
    }
    l->dataset = d;
    l->opts = opts;
    l->opts.shape = PROA_SCALAR_SHAPE; /* it may point into the caller's frame */
    l->batches = count_batches(l);
    l->capacity = opts.prefetch > 0 ? opts.prefetch : 0;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    int64_t most = opts.batch < d->desc.count ? opts.batch : d->desc.count;
    l->indices = proa__alloc(((size_t)most + 1) * sizeof *l->indices);
    if (l->capacity) l->ring = proa__calloc((size_t)l->capacity * sizeof *l->ring);
    if (opts.shuffle) l->order = proa__alloc(((size_t)d->desc.count + 1) * sizeof *l->order);
    if (l->indices && (!l->capacity || l->ring) && (!opts.shuffle || l->order)) return l;
    proa_loader_free(l);
    return NULL;
}

static void release_slot(slot *s)
{
    for (int i = 0; i < PROA_SAMPLE_FIELDS; i++) {
        proa_release(s->fields[i]);
        s->fields[i] = NULL;
    }
}

/* Ends the prefetch thread and releases the batches that were not taken. */
static void stop_thread(proa_loader *l)
{
    if (!l->threaded) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    l->threaded = false;
    for (; l->filled; l->filled--) {
        release_slot(&l->ring[l->head]);
        l->head = (l->head + 1) % l->capacity;
    }
}

void proa_loader_free(proa_loader *l)
{
    if (!l) return;
    stop_thread(l);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    proa_dataset_free(l->dataset);
    proa__free(l->order);
    proa__free(l->indices);
    proa__free(l->ring);
    proa__free(l);
}

proa_dataset *proa_loader_dataset(proa_loader *l) { return l ? l->dataset : NULL; }
int64_t proa_loader_batches(const proa_loader *l) { return l ? l->batches : 0; }

proa_position proa_loader_position(const proa_loader *l)
{
    return l ? (proa_position){l->opts.seed, l->epoch, l->next} : (proa_position){0};
}

proa_status proa_loader_set_position(proa_loader *l, proa_position p)
{
    PROA_TRY(proa_error());
    if (!l || p.epoch < 0 || p.next < 0 || p.next > l->batches)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "loader: position epoch %lld, batch %lld of %lld",
                         (long long)p.epoch, (long long)p.next, (long long)(l ? l->batches : 0));
    if (l->running) return proa_fail(PROA_ERR_BAD_STATE, "loader: the position is set inside proa_each");
    l->opts.seed = p.seed;
    l->epoch = p.epoch;
    l->next = p.next;
    l->left = false;
    return PROA_OK;
}

/* ---- the thread ------------------------------------------------------------------------ */

static void fill_slot(proa_loader *l, int64_t b, slot *s)
{
    PROA_SCOPE {
        proa_tensor *made[PROA_SAMPLE_FIELDS] = {NULL};
        s->code = make_batch(l, b, made, &s->size);
        for (int i = 0; i < l->dataset->desc.fields && s->code == PROA_OK; i++)
            if (!(s->fields[i] = proa_keep(proa_send_to(made[i], l->device)))) s->code = proa_error();
    }
    if (s->code == PROA_OK) return;
    snprintf(s->message, sizeof s->message, "%s", proa_error_message());
    proa_clear_error();
}

static void *make_ahead(void *context)
{
    proa_loader *l = context;
    pthread_mutex_lock(&l->lock);
    while (l->made < l->batches) {
        while (l->filled == l->capacity && !l->stop) pthread_cond_wait(&l->changed, &l->lock);
        if (l->stop) break;
        slot *s = &l->ring[(l->head + l->filled) % l->capacity];
        int64_t b = l->made++;
        pthread_mutex_unlock(&l->lock);
        fill_slot(l, b, s);
        pthread_mutex_lock(&l->lock);
        l->filled++;
        pthread_cond_broadcast(&l->changed);
        if (s->code != PROA_OK) break;
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Moves the oldest finished batch into the current scope. */
static proa_status take(proa_loader *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->filled == 0) pthread_cond_wait(&l->changed, &l->lock);
    slot *s = &l->ring[l->head];
    pthread_mutex_unlock(&l->lock);
    proa_status status = s->code == PROA_OK ? PROA_OK : proa_fail(s->code, "%s", s->message);
    l->batch.size = s->size;
    for (int i = 0; i < l->dataset->desc.fields && status == PROA_OK; i++) {
        l->fields[i] = s->fields[i];
        s->fields[i] = NULL;
        status = proa__scope_push(l->fields[i]) ? proa_arrive(l->fields[i]) : proa_error();
    }
    release_slot(s);
    pthread_mutex_lock(&l->lock);
    l->head = (l->head + 1) % l->capacity;
    l->filled--;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* ---- the loop -------------------------------------------------------------------------- */

/* Ends proa_each's loop; `early`: before the epoch's end. Returns NULL. */
static const proa_batch *end(proa_loader *l, bool early)
{
    stop_thread(l);
    l->running = false;
    l->left = early;
    if (!early) {
        l->epoch++;
        l->next = 0;
    }
    return NULL;
}

/* Enters a scope and moves the next batch into it. */
static const proa_batch *advance(proa_loader *l)
{
    if (l->next >= l->batches) return end(l, false);
    l->scope = proa_scope_enter();
    proa_status status = l->threaded ? take(l) : make_batch(l, l->next, l->fields, &l->batch.size);
    for (int i = 0; i < l->dataset->desc.fields && status == PROA_OK; i++) { /* copy to the thread's device */
        l->fields[i] = proa_to_device(l->fields[i], proa_get_device());
        if (!l->fields[i]) status = proa_error();
    }
    if (status != PROA_OK || proa_error() != PROA_OK) {
        proa_scope_leave(&l->scope);
        return end(l, true);
    }
    proa_batch *b = &l->batch;
    b->fields = (proa_tensors){l->dataset->desc.fields, l->fields};
    b->x = l->fields[0];
    b->y = l->dataset->desc.fields > 1 ? l->fields[1] : PROA_NONE;
    b->index = l->next++;
    b->count = l->batches;
    b->loader = l;
    return b;
}

const proa_batch *proa_each_first_(proa_loader *l)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!l || l->running) {
        proa_fail(l ? PROA_ERR_BAD_STATE : PROA_ERR_INVALID_ARGUMENT, "proa_each: %s",
                  l ? "this loader is in a loop already" : "the loader is NULL");
        return NULL;
    }
    if (l->left) {
        l->epoch++;
        l->next = 0;
        l->left = false;
    }
    l->running = true;
    if (l->order) shuffle(l->order, l->dataset->desc.count, l->opts.seed, (uint64_t)l->epoch);
    l->device = proa__stream()->device;
    l->made = l->next;
    l->stop = false;
    l->head = l->filled = 0;
    /* without a thread (pthread_create failed) batches are made synchronously */
    l->threaded = l->capacity && l->next < l->batches && pthread_create(&l->thread, NULL, make_ahead, l) == 0;
    return advance(l);
}

const proa_batch *proa_each_next_(const proa_batch *b)
{
    proa_loader *l = b->loader;
    proa_scope_leave(&l->scope);
    return proa_error() == PROA_OK ? advance(l) : end(l, true);
}

void proa_each_leave_(const proa_batch **b)
{
    if (!*b) return;
    proa_loader *l = (*b)->loader;
    proa_scope_leave(&l->scope);
    end(l, true);
    *b = NULL;
}
