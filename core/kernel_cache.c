/* The kernel cache of eager calls: a small set-associative table per thread, keyed by the op, the call's
 * metas, strides, blocked formats and attributes, the device, the number of threads and the flags on which
 * kernels depend. Calls on the CPU whose op's first kernel has no prepare function usually bypass it. May use
 * core only. */
#include "core/args.h"
#include "core/kernel_cache.h"

#include <pthread.h>

enum { SETS = 64, WAYS = 4, KEY_MAX = 1024 };

typedef struct entry {
    uint64_t hash, used;
    char *key;
    size_t key_bytes;
    const proa_kernel *kernel;
    void *state;
} entry;

typedef struct cache {
    uint64_t clock;
    entry at[SETS][WAYS];
} cache;

static _Thread_local cache *mine __attribute__((tls_model("initial-exec")));

/* Exists for its destructor, which releases a thread's entries when the thread ends. */
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

static void drop_entry(entry *e)
{
    if (!e->key) return;
    if (e->kernel->release && e->state) e->kernel->release(e->state);
    proa__free(e->key);
    *e = (entry){0};
}

static void drop_cache(void *p)
{
    cache *c = p;
    if (!c) return;
    for (int s = 0; s < SETS; s++)
        for (int w = 0; w < WAYS; w++) drop_entry(&c->at[s][w]);
    proa__free(c);
}

static void at_thread_end(void *p)
{
    mine = NULL;
    drop_cache(p);
}

static void make_key(void) { have_key = pthread_key_create(&thread_end, at_thread_end) == 0; }

void proa__kernel_cache_clear(void)
{
    if (!mine) return;
    if (have_key) pthread_setspecific(thread_end, NULL);
    drop_cache(mine);
    mine = NULL;
}

/* FNV-1a hash over 8 bytes at a time; a hit is confirmed by comparing the whole key. */
static uint64_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        h = (h ^ v) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (; n; n--, p++) h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    return h ^ h >> 32;
}

static cache *my_cache(void)
{
    if (mine) return mine;
    pthread_once(&once, make_key);
    mine = proa__calloc(sizeof(cache));
    if (mine && have_key) pthread_setspecific(thread_end, mine);
    return mine;
}

proa_status proa__kernel_cache_get(const proa_op *op, const void *args, const proa_kernel **kernel,
                                   void **state, bool *cached)
{
    char key[KEY_MAX];
    int64_t where = (int64_t)proa__stream()->device << 1 | proa__flag_int(PROA_FLAG_device_fallback);
    int64_t settings[] = {
        ((int64_t)proa_threads() << 32) ^ proa__flag_int(PROA_FLAG_cpu_level),
        proa__flag_int(PROA_FLAG_backends) << 3 | (proa__flag_int(PROA_FLAG_deterministic) != 0) << 2 |
            (proa__flag_int(PROA_FLAG_blocked) != 0) << 1 | (proa__flag_int(PROA_FLAG_winograd) != 0),
        where};
    memcpy(key, settings, sizeof settings);
    size_t n = proa__args_key(op, args, key + sizeof settings, sizeof key - sizeof settings);
    *cached = false;
    cache *c = n ? my_cache() : NULL;
    if (!c) {
        if (n) return proa_error();
        return proa__pick_kernel(op, args, kernel, state);
    }
    n += sizeof settings;
    uint64_t hash = hash_bytes(key, n);
    entry *set = c->at[hash % SETS], *oldest = set;
    for (entry *e = set; e < set + WAYS; e++) {
        if (e->key && e->hash == hash && e->key_bytes == n && !memcmp(e->key, key, n)) {
            e->used = ++c->clock;
            *kernel = e->kernel, *state = e->state, *cached = true;
            return PROA_OK;
        }
        if (e->used < oldest->used) oldest = e;
    }
    PROA_TRY(proa__pick_kernel(op, args, kernel, state));
    char *copy = proa__alloc(n);
    if (!copy) {
        if ((*kernel)->release && *state) (*kernel)->release(*state);
        return proa_error();
    }
    memcpy(copy, key, n);
    drop_entry(oldest);
    *oldest = (entry){hash, ++c->clock, copy, n, *kernel, *state};
    *cached = true;
    return PROA_OK;
}
