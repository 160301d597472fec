/* The caching allocator: every block is a 64-byte head and a 64-byte aligned payload. Blocks up to 2 MiB
 * belong to a size class and are cached per thread (no lock), then in a shared list (one lock); larger ones
 * are memory_large.c's. Also counts allocations, and makes them fail at a cap or on request of a test. Under
 * AddressSanitizer nothing is cached, so that it sees every error. */
#define _GNU_SOURCE
#include "core/thread.h"

#include <pthread.h>
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PROA__NO_CACHE 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(PROA__NO_CACHE)
#define PROA__NO_CACHE 1
#endif
#ifndef PROA__NO_CACHE
#define PROA__NO_CACHE 0
#endif

enum { LARGE = PROA__CLASSES, UNCACHED = PROA__CLASSES + 1 };
static const size_t small_limit = (size_t)2 << 20;      /* payload and head of a class's largest block */
static const long long flush_at = 1 << 20;              /* a thread adds its count to the total at 1 MiB */
static const int64_t shared_limit = (int64_t)256 << 20; /* bytes that the shared lists may hold: 256 MiB */

/* The head of a block, just before its payload. Its first PROA__HEAD_FREE bytes belong to the block's owner;
 * while the block is cached, `next` uses them. */
typedef struct block {
    struct block *next;
    char owner[PROA__HEAD_FREE - sizeof(void *)];
    uint32_t class;
    uint32_t unused;
    size_t size; /* bytes of the whole block, head included */
} block;
_Static_assert(sizeof(block) == PROA__HEAD, "the head is one cache line");
_Static_assert(sizeof(proa_storage) <= PROA__HEAD_FREE, "a storage fits into its block's head");

static struct {
    pthread_mutex_t lock;
    struct {
        block *head;
        uint32_t count;
    } bins[PROA__CLASSES];
    int64_t cached; /* bytes in bins */
    proa__thread *threads;
    long long allocations, misses, frees; /* sums over threads that have ended */
    long long attempts_seen;              /* attempts up to the last call of proa_memory_fail_after */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_llong live_bytes, peak_bytes; /* without the pending counts of threads */
static atomic_llong cap_bytes, countdown = -1, refused;
static atomic_uint watched; /* bit 0: a failure is due, bit 1: a cap is set */
static atomic_uint trim_epoch;

void proa__memory_lock(void) { pthread_mutex_lock(&shared.lock); }
void proa__memory_unlock(void) { pthread_mutex_unlock(&shared.lock); }

static inline long long get(const atomic_llong *a)
{
    return atomic_load_explicit((atomic_llong *)(uintptr_t)a, memory_order_relaxed);
}
/* Relaxed store for counters that one thread writes and others read. */
static inline void put(atomic_llong *a, long long v) { atomic_store_explicit(a, v, memory_order_relaxed); }

/* ---- size classes --------------------------------------------------------------------------
 * Classes are of payloads: multiples of 64 bytes up to 1 KiB, then four to each power of two. The head comes
 * on top, so that a tensor of 2^n bytes, the most frequent size, fills its block. */

enum { SMALL_CLASSES = 17 };

static inline uint32_t class_of(size_t bytes)
{
    if (bytes <= 1024) return (uint32_t)((bytes + 63) / 64);
    size_t last = bytes - 1;
    uint32_t e = 63 - (uint32_t)__builtin_clzll(last);
    return SMALL_CLASSES + (e - 10) * 4 + ((uint32_t)(last >> (e - 2)) & 3);
}

/* Bytes of a class's block, head included. */
static size_t class_size(uint32_t class)
{
    if (class < SMALL_CLASSES) return PROA__HEAD + class * (size_t)64;
    uint32_t e = 10 + (class - SMALL_CLASSES) / 4;
    return PROA__HEAD + ((size_t)1 << e) + (((size_t)(class - SMALL_CLASSES) % 4 + 1) << (e - 2));
}

size_t proa__block_bytes(size_t bytes)
{
    return bytes <= small_limit - PROA__HEAD ? class_size(class_of(bytes))
                                             : proa__large_round(bytes + PROA__HEAD);
}

/* Number of blocks of a class that one thread caches: 256 KiB of them, but at least two and at most 512. */
static uint32_t class_limit(uint32_t class)
{
    size_t n = ((size_t)256 << 10) / class_size(class);
    return n < 2 ? 2 : n > 512 ? 512 : (uint32_t)n;
}

/* ---- counting -------------------------------------------------------------------------- */

static void raise_peak(long long candidate)
{
    long long peak = get(&peak_bytes);
    while (candidate > peak &&
           !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, candidate, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static __attribute__((noinline)) void flush_pending(proa__thread *me)
{
    long long pending = get(&me->pending);
    long long before = atomic_fetch_add_explicit(&live_bytes, pending, memory_order_relaxed);
    raise_peak(before + get(&me->pending_peak));
    put(&me->pending, 0);
    put(&me->pending_peak, 0);
}

/* Counts an allocation; false if the thread's count is then to be added to the total (flush_pending). */
static inline bool count_alloc(proa__thread *me, size_t size)
{
    long long pending = get(&me->pending) + (long long)size;
    put(&me->allocations, get(&me->allocations) + 1);
    put(&me->pending, pending);
    if (pending <= get(&me->pending_peak)) return true;
    put(&me->pending_peak, pending);
    return pending <= flush_at;
}

/* Counts a free; false as for count_alloc. */
static inline bool count_free(proa__thread *me, size_t size)
{
    long long pending = get(&me->pending) - (long long)size;
    put(&me->frees, get(&me->frees) + 1);
    put(&me->pending, pending);
    return pending >= -flush_at;
}

/* Counts an allocation or a free of a thread without per-thread struct, for which there was no memory. */
static void count_orphan(long long size, bool freed)
{
    proa__memory_lock();
    if (freed) shared.frees++;
    else shared.allocations++, shared.misses++;
    proa__memory_unlock();
    raise_peak(atomic_fetch_add_explicit(&live_bytes, size, memory_order_relaxed) + size);
}

static void count(proa__thread *me, size_t size)
{
    if (!me) count_orphan((long long)size, false);
    else if (!count_alloc(me, size)) flush_pending(me);
}

static void uncount(proa__thread *me, size_t size)
{
    if (!me) count_orphan(-(long long)size, true);
    else if (!count_free(me, size)) flush_pending(me);
}

static long long sum_live(void)
{
    proa__memory_lock();
    long long sum = get(&live_bytes);
    for (proa__thread *t = shared.threads; t; t = t->next) sum += get(&t->pending);
    proa__memory_unlock();
    return sum;
}

/* ---- memory from the system --------------------------------------------------------------- */

static block *system_take(uint32_t class, size_t size)
{
    void *p = NULL;
    if (class == LARGE) {
        p = proa__large_map(size);
    } else if ((PROA__NO_CACHE && size > (size_t)1 << 40) || posix_memalign(&p, 64, size) != 0) {
        p = NULL;
    }
    block *b = p;
    if (b) b->class = class, b->size = size;
    return b;
}

static void system_give(block *b)
{
    if (b->class == LARGE) proa__large_give(b, b->size);
    else free(b);
}

static void give_list(block *b)
{
    while (b) {
        block *next = b->next;
        system_give(b);
        b = next;
    }
}

/* ---- the shared lists ------------------------------------------------------------------ */

/* Moves blocks from the shared list into the thread's bin, up to half of the bin's limit. */
static void refill(proa__thread *me, uint32_t class)
{
    proa__bin *bin = &me->bins[class];
    uint32_t want = bin->limit / 2 + 1, moved = 0;
    proa__memory_lock();
    while (moved < want && shared.bins[class].head) {
        block *b = shared.bins[class].head;
        shared.bins[class].head = b->next;
        b->next = bin->head;
        bin->head = b;
        moved++;
    }
    shared.bins[class].count -= moved;
    shared.cached -= (int64_t)moved * (int64_t)class_size(class);
    proa__memory_unlock();
    atomic_store_explicit(&bin->count, atomic_load_explicit(&bin->count, memory_order_relaxed) + moved,
                          memory_order_relaxed);
}

/* Moves `n` blocks of the thread's bin to the shared list, or back to the system when that list is full. */
static void spill(proa__thread *me, uint32_t class, uint32_t n)
{
    proa__bin *bin = &me->bins[class];
    block *first = bin->head, *last = first;
    if (!first || n == 0) return;
    uint32_t moved = 1;
    for (; moved < n && last->next; moved++) last = last->next;
    bin->head = last->next;
    atomic_store_explicit(&bin->count, atomic_load_explicit(&bin->count, memory_order_relaxed) - moved,
                          memory_order_relaxed);
    last->next = NULL;
    int64_t bytes = (int64_t)moved * (int64_t)class_size(class);
    proa__memory_lock();
    bool fits = shared.cached + bytes <= shared_limit;
    if (fits) {
        last->next = shared.bins[class].head;
        shared.bins[class].head = first;
        shared.bins[class].count += moved;
        shared.cached += bytes;
    }
    proa__memory_unlock();
    if (!fits) give_list(first);
}

static void empty_bins(proa__thread *me)
{
    for (uint32_t i = 0; i < PROA__CLASSES; i++) {
        block *b = me->bins[i].head;
        me->bins[i].head = NULL;
        atomic_store_explicit(&me->bins[i].count, 0, memory_order_relaxed);
        give_list(b);
    }
}

void proa__memory_adopt(proa__thread *me)
{
    for (uint32_t i = 0; i < PROA__CLASSES; i++) me->bins[i].limit = class_limit(i);
    me->trim_epoch = atomic_load_explicit(&trim_epoch, memory_order_relaxed);
    proa__memory_lock();
    me->next = shared.threads;
    me->link = &shared.threads;
    if (me->next) me->next->link = &me->next;
    shared.threads = me;
    proa__memory_unlock();
}

void proa__memory_retire(proa__thread *me)
{
    for (uint32_t i = 0; i < PROA__CLASSES; i++)
        spill(me, i, atomic_load_explicit(&me->bins[i].count, memory_order_relaxed));
    proa__memory_lock();
    flush_pending(me);
    shared.allocations += get(&me->allocations);
    shared.misses += get(&me->misses);
    shared.frees += get(&me->frees);
    *me->link = me->next;
    if (me->next) me->next->link = me->link;
    proa__memory_unlock();
}

/* ---- allocating ------------------------------------------------------------------------ */

/* Counts an allocation in; false if a failure was requested for this attempt or the memory cap would be
 * exceeded. */
static bool admit(proa__thread *me, size_t size)
{
    unsigned watch = atomic_load_explicit(&watched, memory_order_relaxed);
    if ((watch & 1) && atomic_fetch_sub_explicit(&countdown, 1, memory_order_relaxed) == 0) {
        atomic_fetch_and_explicit(&watched, ~1u, memory_order_relaxed);
        put(&countdown, -1);
        atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
        proa_fail(PROA_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes (a failure asked for by a test)", size);
        return false;
    }
    count(me, size);
    if (!(watch & 2)) return true;
    long long cap = get(&cap_bytes), live = sum_live();
    if (cap <= 0 || live <= cap) return true;
    uncount(me, size);
    proa_fail(PROA_ERR_OUT_OF_MEMORY,
              "out of memory: %zu bytes more than the %lld live ones pass the cap of %lld bytes; release "
              "tensors or raise it (proa_memory_set_cap, FLAGS_memory_cap)",
              size, live - (long long)size, cap);
    return false;
}

static block *pop(proa__thread *me, uint32_t class)
{
    proa__bin *bin = &me->bins[class];
    block *b = bin->head;
    if (!b) return NULL;
    bin->head = b->next;
    atomic_store_explicit(&bin->count, atomic_load_explicit(&bin->count, memory_order_relaxed) - 1,
                          memory_order_relaxed);
    return b;
}

static block *find_block(proa__thread *me, uint32_t class, size_t size)
{
    block *b = NULL;
    if (me && class < PROA__CLASSES) {
        b = pop(me, class);
        if (!b) refill(me, class), b = pop(me, class);
        if (b) return b;
    } else if (class == LARGE) {
        b = proa__large_reuse(&size);
        if (b) b->class = LARGE, b->size = size;
        if (b) return b;
    }
    if (me) put(&me->misses, get(&me->misses) + 1);
    b = system_take(class, size);
    if (b) return b;
    proa_memory_trim();
    return system_take(class, size);
}

static __attribute__((noinline)) void *alloc_slow(size_t bytes)
{
    proa__thread *me = proa__me();
    if (bytes > (size_t)PTRDIFF_MAX - ((size_t)4 << 20)) {
        proa_fail(PROA_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes are more than any machine has", bytes);
        return NULL;
    }
    if (me) {
        unsigned epoch = atomic_load_explicit(&trim_epoch, memory_order_relaxed);
        if (me->trim_epoch != epoch) me->trim_epoch = epoch, empty_bins(me);
    }
    size_t total = bytes + PROA__HEAD;
    uint32_t class = PROA__NO_CACHE ? UNCACHED : total <= small_limit ? class_of(bytes) : LARGE;
    if (class != UNCACHED) total = proa__block_bytes(bytes);
    if (!admit(me, total)) return NULL;
    block *b = find_block(me, class, total);
    if (!b) {
        uncount(me, total);
        proa_fail(PROA_ERR_OUT_OF_MEMORY, "out of memory: the system has no %zu bytes; %lld are live", bytes,
                  sum_live());
        return NULL;
    }
    if (b->size > total) { /* a cached large block may be somewhat larger */
        if (me) put(&me->pending, get(&me->pending) + (long long)(b->size - total));
        else atomic_fetch_add_explicit(&live_bytes, (long long)(b->size - total), memory_order_relaxed);
    }
    return b + 1;
}

/* The tail of an allocation after which the thread's count is to be added to the total. */
static __attribute__((noinline)) void *flush_after(proa__thread *me, block *b)
{
    flush_pending(me);
    return b + 1;
}

/* The fast paths of proa__alloc and proa__free call others only as their last step, so that they need no
 * stack frame. */
void *proa__alloc(size_t bytes)
{
    proa__thread *me = proa__thread_self;
    if (PROA__LIKELY(me && bytes <= small_limit - PROA__HEAD && !PROA__NO_CACHE &&
                     atomic_load_explicit(&watched, memory_order_relaxed) == 0)) {
        block *b = pop(me, class_of(bytes));
        if (PROA__LIKELY(b != NULL && count_alloc(me, b->size))) return b + 1;
        if (b) return flush_after(me, b);
    }
    return alloc_slow(bytes);
}

/* Frees a block that no bin takes, or whose thread has no struct yet. */
static __attribute__((noinline)) void free_slow(block *b)
{
    uncount(proa__me(), b->size);
    system_give(b);
}

/* The tail of a free after which the thread caches too many blocks of a class, or its count is to be added to
 * the total. */
static __attribute__((noinline)) void settle_free(proa__thread *me, uint32_t class)
{
    proa__bin *bin = &me->bins[class];
    if (get(&me->pending) < -flush_at) flush_pending(me);
    if (atomic_load_explicit(&bin->count, memory_order_relaxed) > bin->limit)
        spill(me, class, bin->limit / 2 + 1);
}

void proa__free(void *p)
{
    if (!p) return;
    block *b = (block *)p - 1;
    proa__thread *me = proa__thread_self;
    if (PROA__UNLIKELY(!me || b->class >= PROA__CLASSES)) {
        free_slow(b);
        return;
    }
    bool counted = count_free(me, b->size);
    proa__bin *bin = &me->bins[b->class];
    b->next = bin->head;
    bin->head = b;
    unsigned n = atomic_load_explicit(&bin->count, memory_order_relaxed) + 1;
    atomic_store_explicit(&bin->count, n, memory_order_relaxed);
    if (PROA__UNLIKELY(n > bin->limit || !counted)) settle_free(me, b->class);
}

void *proa__calloc(size_t bytes)
{
    void *p = proa__alloc(bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void *proa__realloc(void *p, size_t bytes)
{
    if (!p) return proa__alloc(bytes);
    size_t have = ((block *)p - 1)->size - PROA__HEAD;
    if (bytes <= have) return p;
    void *grown = proa__alloc(bytes);
    if (!grown) return NULL;
    memcpy(grown, p, have);
    proa__free(p);
    return grown;
}

char *proa__strdup(const char *s)
{
    size_t bytes = strlen(s) + 1;
    char *copy = proa__alloc(bytes);
    if (copy) memcpy(copy, s, bytes);
    return copy;
}

bool proa__mul_size(size_t a, size_t b, size_t *out)
{
    if (!__builtin_mul_overflow(a, b, out) && *out <= (size_t)PTRDIFF_MAX) return true;
    proa_fail(PROA_ERR_OVERFLOW, "size too large: %zu times %zu bytes does not fit in memory", a, b);
    return false;
}

/* ---- statistics and limits -------------------------------------------------------------------- */

proa_memory_stats proa_memory_get_stats(void)
{
    proa_memory_stats s = {0};
    proa__memory_lock();
    long long live = get(&live_bytes), high = live;
    long long allocations = shared.allocations, misses = shared.misses, frees = shared.frees;
    s.cached_bytes = shared.cached;
    for (proa__thread *t = shared.threads; t; t = t->next) {
        live += get(&t->pending);
        high += get(&t->pending_peak);
        allocations += get(&t->allocations);
        misses += get(&t->misses);
        frees += get(&t->frees);
        for (uint32_t i = 0; i < PROA__CLASSES; i++)
            s.cached_bytes += (int64_t)class_size(i) *
                              (int64_t)atomic_load_explicit(&t->bins[i].count, memory_order_relaxed);
    }
    raise_peak(high > live ? high : live);
    s.peak_bytes = get(&peak_bytes);
    proa__memory_unlock();
    s.cached_bytes += proa__large_cached();
    s.live_bytes = live;
    s.live_blocks = allocations - frees;
    s.allocations = allocations;
    s.cache_hits = allocations - misses;
    return s;
}

void proa_memory_reset_peak(void)
{
    proa__memory_lock();
    long long live = get(&live_bytes);
    for (proa__thread *t = shared.threads; t; t = t->next) {
        put(&t->pending_peak, get(&t->pending));
        live += get(&t->pending);
    }
    put(&peak_bytes, live);
    proa__memory_unlock();
}

/* Empties the shared caches and this thread's; another thread empties its own at its next cache miss. */
void proa_memory_trim(void)
{
    unsigned epoch = atomic_fetch_add_explicit(&trim_epoch, 1, memory_order_relaxed) + 1;
    if (proa__thread_self) {
        proa__thread_self->trim_epoch = epoch;
        empty_bins(proa__thread_self);
    }
    for (uint32_t i = 0; i < PROA__CLASSES; i++) {
        proa__memory_lock();
        block *b = shared.bins[i].head;
        shared.cached -= (int64_t)shared.bins[i].count * (int64_t)class_size(i);
        shared.bins[i].head = NULL;
        shared.bins[i].count = 0;
        proa__memory_unlock();
        give_list(b);
    }
    proa__large_trim();
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

void proa_memory_set_cap(int64_t bytes)
{
    put(&cap_bytes, bytes > 0 ? bytes : 0);
    if (bytes > 0) atomic_fetch_or_explicit(&watched, 2u, memory_order_relaxed);
    else atomic_fetch_and_explicit(&watched, ~2u, memory_order_relaxed);
}

int64_t proa_memory_fail_after(int64_t n)
{
    if (n < 0) atomic_fetch_and_explicit(&watched, ~1u, memory_order_relaxed);
    put(&countdown, n < 0 ? -1 : n);
    if (n >= 0) atomic_fetch_or_explicit(&watched, 1u, memory_order_relaxed);
    proa__memory_lock();
    long long attempts = shared.allocations + get(&refused);
    for (proa__thread *t = shared.threads; t; t = t->next) attempts += get(&t->allocations);
    long long since = attempts - shared.attempts_seen;
    shared.attempts_seen = attempts;
    proa__memory_unlock();
    return since;
}
