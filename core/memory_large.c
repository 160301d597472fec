/* Allocation of blocks over 2 MiB: mapped at huge-page boundaries, kept in a bounded cache after use, and
 * reused best fit. Uses mmap on Linux; elsewhere posix_memalign, aligned to 4 KiB only. */
#define _GNU_SOURCE
#include "core/thread.h"

#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

enum { SLOTS = 64 };
static const size_t huge = (size_t)2 << 20, step = (size_t)64 << 10;

static struct {
    int n;
    struct {
        void *base;
        size_t size;
    } at[SLOTS]; /* cached blocks, the oldest first */
    size_t bytes, limit;
} cache; /* guarded by the memory lock */

#if defined(__linux__)
static void *map(size_t size)
{
    char *p = mmap(NULL, size + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t before = (huge - ((uintptr_t)p & (huge - 1))) & (huge - 1);
    if (before) munmap(p, before);
    if (huge - before) munmap(p + before + size, huge - before);
    (void)madvise(p + before, size, MADV_HUGEPAGE);
    return p + before;
}
static void unmap(void *base, size_t size) { munmap(base, size); }
static size_t cache_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t eighth = pages > 0 && page > 0 ? (size_t)pages / 8 * (size_t)page : 0;
    return eighth > (size_t)256 << 20 ? eighth : (size_t)256 << 20;
}
#else
static void *map(size_t size)
{
    void *p = NULL;
    return posix_memalign(&p, 4096, size) == 0 ? p : NULL;
}
static void unmap(void *base, size_t size) { (void)size, free(base); }
static size_t cache_limit(void) { return (size_t)256 << 20; }
#endif

/* Removes entry i of the cache, keeping the others' order. The caller holds the lock. */
static void *take_entry(int i, size_t *size)
{
    void *base = cache.at[i].base;
    *size = cache.at[i].size;
    cache.bytes -= *size;
    cache.n--;
    memmove(&cache.at[i], &cache.at[i + 1], (size_t)(cache.n - i) * sizeof cache.at[0]);
    return base;
}

void *proa__large_reuse(size_t *size)
{
    size_t want = *size;
    int best = -1;
    void *base = NULL;
    proa__memory_lock();
    for (int i = 0; i < cache.n; i++) /* best fit, but wasting at most a quarter of the wanted size */
        if (cache.at[i].size >= want && cache.at[i].size - want <= want / 4 &&
            (best < 0 || cache.at[i].size < cache.at[best].size))
            best = i;
    if (best >= 0) base = take_entry(best, size);
    proa__memory_unlock();
    return base;
}

void *proa__large_map(size_t size) { return map(size); }

/* Rounds a size up to whole huge pages where that wastes little; a remainder in small pages would cost TLB
 * misses and stop the hardware prefetcher. */
size_t proa__large_round(size_t size)
{
    size_t some = (size + step - 1) & ~(step - 1), whole = (size + huge - 1) & ~(huge - 1);
    return whole - some <= huge / 4 && whole - some <= some / 16 ? whole : some;
}

void proa__large_give(void *base, size_t size)
{
    for (;;) {
        void *old = NULL;
        size_t old_size = 0;
        proa__memory_lock();
        if (cache.limit == 0) cache.limit = cache_limit();
        bool fits = size <= cache.limit;
        if (fits && cache.n < SLOTS && cache.bytes + size <= cache.limit) {
            cache.at[cache.n].base = base;
            cache.at[cache.n++].size = size;
            cache.bytes += size;
            base = NULL;
        } else if (fits) {
            old = take_entry(0, &old_size);
        }
        proa__memory_unlock();
        if (old) unmap(old, old_size);
        if (!base) return;
        if (!fits) break;
    }
    unmap(base, size);
}

void proa__large_trim(void)
{
    for (;;) {
        void *base = NULL;
        size_t size = 0;
        proa__memory_lock();
        if (cache.n > 0) base = take_entry(cache.n - 1, &size);
        proa__memory_unlock();
        if (!base) return;
        unmap(base, size);
    }
}

int64_t proa__large_cached(void)
{
    proa__memory_lock();
    int64_t bytes = (int64_t)cache.bytes;
    proa__memory_unlock();
    return bytes;
}
