/* Caching allocator: cuts segments from the driver into blocks and joins neighboring free blocks. Sizes are
 * those of PyTorch's allocator: multiples of 512 bytes; blocks up to 1 MiB come out of segments of 2 MiB,
 * larger ones below 10 MiB out of segments of 20 MiB; from there on a block gets a segment of its own,
 * rounded up to 2 MiB. */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 512 };
static const size_t small_block = (size_t)1 << 20, small_segment = (size_t)2 << 20;
static const size_t large_block = (size_t)10 << 20, large_segment = (size_t)20 << 20;

typedef struct block {
    char *at;
    size_t size;
    bool live, small;
    const char *owner;
    struct block *before, *after;        /* neighbors in the same segment */
    struct block *next_free, *next_hash; /* in the free list; in the table of live blocks */
} block;

enum { BUCKETS = 1024 };

struct cuda_pool {
    pthread_mutex_t lock;
    const cuda_driver *driver;
    int device;
    block *free_small, *free_large; /* by size, then by address */
    block *live[BUCKETS];
    cuda_pool_stats stats;
};

static size_t bucket_of(const void *p) { return ((uintptr_t)p / STEP) % BUCKETS; }

cuda_pool *cuda_pool_new(const cuda_driver *driver, int device)
{
    cuda_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pool->driver = driver;
    pool->device = device;
    return pool;
}

/* ---- lists ----------------------------------------------------------------------------- */

static block **free_list(cuda_pool *pool, const block *b)
{
    return b->small ? &pool->free_small : &pool->free_large;
}

static void put_free(cuda_pool *pool, block *b)
{
    block **at = free_list(pool, b);
    while (*at && ((*at)->size < b->size || ((*at)->size == b->size && (*at)->at < b->at)))
        at = &(*at)->next_free;
    b->next_free = *at;
    *at = b;
}

static void drop_free(cuda_pool *pool, block *b)
{
    block **at = free_list(pool, b);
    while (*at != b) at = &(*at)->next_free;
    *at = b->next_free;
}

static void put_live(cuda_pool *pool, block *b)
{
    block **at = &pool->live[bucket_of(b->at)];
    b->next_hash = *at;
    *at = b;
}

static block *take_live(cuda_pool *pool, const void *p)
{
    block **at = &pool->live[bucket_of(p)];
    while (*at && (*at)->at != p) at = &(*at)->next_hash;
    block *b = *at;
    if (b) *at = b->next_hash;
    return b;
}

/* ---- segments -------------------------------------------------------------------------- */

static block *new_segment(cuda_pool *pool, size_t size, bool small)
{
    block *b = calloc(1, sizeof *b);
    void *p = NULL;
    if (!b) return NULL;
    pool->stats.driver_calls++;
    if (pool->driver->use(pool->device) != 0 || pool->driver->malloc(&p, size) != 0) {
        (void)pool->driver->last_error(); /* clears CUDA's last error: the caller handles NULL */
        free(b);
        return NULL;
    }
    *b = (block){.at = p, .size = size, .small = small};
    pool->stats.held_bytes += (int64_t)size;
    return b;
}

static void trim_list(cuda_pool *pool, block **list)
{
    for (block **at = list; *at;) {
        block *b = *at;
        if (b->before || b->after) {
            at = &b->next_free;
            continue;
        }
        *at = b->next_free;
        pool->stats.held_bytes -= (int64_t)b->size;
        pool->driver->free(b->at); /* waits for the device, so nothing is still using it */
        free(b);
    }
}

static void trim(cuda_pool *pool)
{
    pool->driver->use(pool->device);
    trim_list(pool, &pool->free_small);
    trim_list(pool, &pool->free_large);
}

void cuda_pool_trim(cuda_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    trim(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- blocks ---------------------------------------------------------------------------- */

/* Splits off the part of b after `size` bytes, if it is large enough to be a block. */
static void split(cuda_pool *pool, block *b, size_t size)
{
    size_t rest = b->size - size;
    if (rest < (b->small ? (size_t)STEP : small_block)) return;
    block *tail = calloc(1, sizeof *tail);
    if (!tail) return; /* the block is larger than asked for, that is all */
    *tail = (block){.at = b->at + size, .size = rest, .small = b->small, .before = b, .after = b->after};
    if (tail->after) tail->after->before = tail;
    b->after = tail;
    b->size = size;
    put_free(pool, tail);
}

static block *find(cuda_pool *pool, size_t size, bool small)
{
    block *b = small ? pool->free_small : pool->free_large;
    while (b && b->size < size) b = b->next_free;
    /* a large segment is not opened up for something far smaller */
    if (b && !small && size >= large_block && b->size > size + large_segment) b = NULL;
    if (b) drop_free(pool, b);
    return b;
}

void *cuda_pool_take(cuda_pool *pool, size_t bytes, const char *owner)
{
    if (bytes > (size_t)PTRDIFF_MAX - large_segment) return NULL;
    size_t size = bytes < STEP ? STEP : (bytes + STEP - 1) / STEP * STEP;
    bool small = size <= small_block;
    size_t segment = small                ? small_segment
                     : size < large_block ? large_segment
                                          : (size + small_segment - 1) / small_segment * small_segment;
    pthread_mutex_lock(&pool->lock);
    block *b = find(pool, size, small);
    if (!b) b = new_segment(pool, segment, small);
    if (!b) {
        trim(pool);
        b = new_segment(pool, segment, small);
    }
    void *p = NULL;
    if (b) {
        split(pool, b, size);
        b->live = true;
        b->owner = owner;
        put_live(pool, b);
        pool->stats.live_bytes += (int64_t)b->size;
        if (pool->stats.live_bytes > pool->stats.peak_bytes) pool->stats.peak_bytes = pool->stats.live_bytes;
        p = b->at;
    }
    pthread_mutex_unlock(&pool->lock);
    return p;
}

/* Merges b with its right neighbor, which is in no list. */
static void swallow(block *b)
{
    block *right = b->after;
    b->size += right->size;
    b->after = right->after;
    if (b->after) b->after->before = b;
    free(right);
}

bool cuda_pool_give(cuda_pool *pool, void *p)
{
    if (!p) return true;
    pthread_mutex_lock(&pool->lock);
    block *b = take_live(pool, p);
    if (b) {
        pool->stats.live_bytes -= (int64_t)b->size;
        b->live = false;
        if (b->after && !b->after->live) {
            drop_free(pool, b->after);
            swallow(b);
        }
        if (b->before && !b->before->live) {
            b = b->before;
            drop_free(pool, b);
            swallow(b);
        }
        put_free(pool, b);
    }
    pthread_mutex_unlock(&pool->lock);
    return b != NULL;
}

/* ---- looking --------------------------------------------------------------------------- */

cuda_pool_stats cuda_pool_get_stats(cuda_pool *pool, bool reset_peak)
{
    pthread_mutex_lock(&pool->lock);
    if (reset_peak) pool->stats.peak_bytes = pool->stats.live_bytes;
    cuda_pool_stats s = pool->stats;
    pthread_mutex_unlock(&pool->lock);
    return s;
}

enum { OWNERS = 64, SHOWN = 5 };

typedef struct share {
    const char *owner;
    int64_t bytes, blocks;
} share;

static int larger(const void *a, const void *b)
{
    int64_t x = ((const share *)a)->bytes, y = ((const share *)b)->bytes;
    return (x < y) - (x > y);
}

/* Bytes in use by owner; owners beyond the table's size are added to its last entry. */
static int gather(const cuda_pool *pool, share *shares)
{
    int n = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (const block *b = pool->live[i]; b; b = b->next_hash) {
            int k = 0;
            while (k < n && shares[k].owner != b->owner) k++;
            if (k == n && n < OWNERS) shares[n++] = (share){b->owner, 0, 0};
            if (k == n) k = n - 1;
            shares[k].bytes += (int64_t)b->size;
            shares[k].blocks++;
        }
    qsort(shares, (size_t)n, sizeof *shares, larger);
    return n;
}

void cuda_pool_report(cuda_pool *pool, char *text, size_t capacity)
{
    const double mib = 1 << 20;
    share shares[OWNERS];
    pthread_mutex_lock(&pool->lock);
    cuda_pool_stats s = pool->stats;
    int n = gather(pool, shares);
    pthread_mutex_unlock(&pool->lock);
    size_t used = (size_t)snprintf(text, capacity, "%.1f MiB live", (double)s.live_bytes / mib);
    for (int i = 0; i < n && i < SHOWN && used < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%.1f MiB in %lld of %s", i ? ", " : ": ",
                                 (double)shares[i].bytes / mib, (long long)shares[i].blocks,
                                 shares[i].owner ? shares[i].owner : "no op");
    if (used < capacity)
        snprintf(text + used, capacity - used, "; %.1f MiB cached",
                 (double)(s.held_bytes - s.live_bytes) / mib);
}

void cuda_pool_free(cuda_pool *pool)
{
    if (!pool) return;
    for (int i = 0; i < BUCKETS; i++)
        while (pool->live[i]) {
            void *p = pool->live[i]->at;
            cuda_pool_give(pool, p);
        }
    trim(pool);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
