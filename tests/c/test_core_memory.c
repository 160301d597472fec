/* The allocator: alignment, statistics, cap, failure injection, caches of threads. */
#include "core/internal.h"
#include "core/tensor.h"
#include "core/thread.h"
#include "suite.h"

#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__)
#define CACHES 0
#else
#define CACHES 1
#endif

static proa_memory_stats stats(void) { return proa_memory_get_stats(); }

START_TEST(blocks_are_aligned_and_writable)
{
    static const size_t sizes[] = {
        0, 1, 63, 64, 65, 960, 961, 5000, 70000, (2u << 20) - 64, (2u << 20) - 63, 9u << 20};
    proa_memory_stats before = stats();
    for (int round = 0; round < 3; round++) {
        char *p[sizeof sizes / sizeof *sizes];
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            p[i] = proa__alloc(sizes[i]);
            ck_assert_ptr_nonnull(p[i]);
            ck_assert_uint_eq((uintptr_t)p[i] % 64, 0);
            memset(p[i], (int)i, sizes[i]);
        }
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (size_t k = 0; k < sizes[i]; k += 97) ck_assert_int_eq(p[i][k], (char)i);
            proa__free(p[i]);
        }
    }
    proa__free(NULL);
    ck_assert_int_eq(stats().live_bytes, before.live_bytes);
    ck_assert_int_eq(stats().live_blocks, before.live_blocks);
}
END_TEST

/* A tensor of 2^n bytes fills its block but for the head; others leave at most a quarter of their size. */
START_TEST(blocks_fit_their_sizes)
{
    enum { HEAD = 64, HUGE = 64 << 10, UP_TO = 64 << 20 };
    for (size_t bytes = 64; bytes <= UP_TO; bytes *= 2) {
        size_t power = proa__block_bytes(bytes);
        ck_assert_uint_ge(power, bytes + HEAD);
        if (bytes <= 1 << 20) ck_assert_uint_eq(power, bytes + HEAD);
        else ck_assert_uint_le(power, bytes + HUGE);
        for (size_t k = 1; k < 16; k++) {
            size_t more = bytes + bytes / 16 * k + 1, live = (size_t)stats().live_bytes;
            ck_assert_uint_le(proa__block_bytes(more), more + more / 4 + 2 * HEAD);
            void *p = proa__alloc(more);
            ck_assert_ptr_nonnull(p);
            if (CACHES) ck_assert_uint_eq((size_t)stats().live_bytes - live, proa__block_bytes(more));
            proa__free(p);
            proa_memory_trim(); /* a cached large block may be larger */
        }
    }
}
END_TEST

START_TEST(random_traffic_keeps_contents)
{
    enum { SLOTS = 200, STEPS = 40000 };
    static struct {
        unsigned char *p;
        size_t n;
        unsigned char mark;
    } slot[SLOTS];
    uint32_t r = 1;
    proa_memory_stats before = stats();
    for (int step = 0; step < STEPS; step++) {
        r = r * 1664525u + 1013904223u;
        size_t i = (r >> 8) % SLOTS;
        if (slot[i].p) {
            ck_assert_uint_eq(slot[i].p[0], slot[i].mark);
            ck_assert_uint_eq(slot[i].p[slot[i].n - 1], slot[i].mark);
            proa__free(slot[i].p);
            slot[i].p = NULL;
            continue;
        }
        slot[i].n = 1 + (r >> 4) % (1u << (4 + r % 18)); /* to 2 MiB */
        slot[i].p = proa__alloc(slot[i].n);
        slot[i].mark = (unsigned char)r;
        ck_assert_ptr_nonnull(slot[i].p);
        slot[i].p[0] = slot[i].p[slot[i].n - 1] = slot[i].mark;
    }
    for (size_t i = 0; i < SLOTS; i++) proa__free(slot[i].p);
    ck_assert_int_eq(stats().live_bytes, before.live_bytes);
    ck_assert_int_eq(stats().live_blocks, before.live_blocks);
}
END_TEST

START_TEST(helpers)
{
    unsigned char *z = proa__calloc(1000);
    for (int i = 0; i < 1000; i++) ck_assert_uint_eq(z[i], 0);
    for (int i = 0; i < 1000; i++) z[i] = (unsigned char)i;
    z = proa__realloc(z, 100000);
    for (int i = 0; i < 1000; i++) ck_assert_uint_eq(z[i], (unsigned char)i);
    z = proa__realloc(z, 5u << 20);
    for (int i = 0; i < 1000; i++) ck_assert_uint_eq(z[i], (unsigned char)i);
    proa_memory_fail_after(0);
    ck_assert_ptr_null(proa__realloc(z, 50u << 20));
    ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
    ck_assert_uint_eq(z[999], (unsigned char)999); /* the old block stays */
    proa_clear_error();
    proa__free(z);
    char *s = proa__strdup("outrigger");
    ck_assert_str_eq(s, "outrigger");
    proa__free(s);
    size_t n = 0;
    ck_assert(proa__mul_size(1000, 1000, &n) && n == 1000000);
    ck_assert(!proa__mul_size(SIZE_MAX / 2, 3, &n));
    ck_assert_int_eq(proa_error(), PROA_ERR_OVERFLOW);
    proa_clear_error();
    ck_assert_ptr_null(proa__alloc(SIZE_MAX));
    ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
    proa_clear_error();
    ck_assert_ptr_null(proa__alloc(SIZE_MAX / 4)); /* the system refuses */
    ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
    proa_clear_error();
}
END_TEST

START_TEST(the_cache_hits_and_trims)
{
    proa__free(proa__alloc(100));
    proa__free(proa__alloc(10u << 20));
    proa_memory_stats before = stats();
    for (int i = 0; i < 100; i++) {
        proa__free(proa__alloc(100));
        proa__free(proa__alloc(10u << 20));
    }
    proa_memory_stats after = stats();
    ck_assert_int_eq(after.allocations - before.allocations, 200);
    if (CACHES) ck_assert_int_eq(after.cache_hits - before.cache_hits, 200);
    if (CACHES) ck_assert_int_ge(after.cached_bytes, 10 << 20);
    proa_memory_trim();
    ck_assert_int_eq(stats().cached_bytes, 0);
    ck_assert_int_eq(stats().live_bytes, before.live_bytes);
}
END_TEST

START_TEST(caches_are_bounded)
{
    enum { N = 3000 };
    static void *p[N];
    for (int i = 0; i < N; i++) p[i] = proa__alloc(200u << 10);
    for (int i = 0; i < N; i++) proa__free(p[i]);
    ck_assert_int_le(stats().cached_bytes, (int64_t)260 << 20); /* 600 MB were freed */
}
END_TEST

START_TEST(the_peak_is_exact_on_one_thread)
{
    proa_memory_reset_peak();
    int64_t base = stats().live_bytes;
    void *a = proa__alloc(100000), *b = proa__alloc(3u << 20);
    int64_t high = stats().live_bytes;
    ck_assert_int_ge(high - base, 100000 + (3 << 20));
    proa__free(a);
    proa__free(b);
    ck_assert_int_eq(stats().peak_bytes, high);
    proa_memory_reset_peak();
    ck_assert_int_eq(stats().peak_bytes, base);
    void *c = proa__alloc(500);
    int64_t small = stats().live_bytes;
    proa__free(c);
    ck_assert_int_eq(stats().peak_bytes, small);
}
END_TEST

START_TEST(the_cap_holds)
{
    void *warm = proa__alloc(10);
    int64_t live = stats().live_bytes;
    proa_memory_set_cap(live + (1 << 20));
    void *half = proa__alloc(600000);
    ck_assert_ptr_nonnull(half);
    int64_t with = stats().live_bytes;
    ck_assert_ptr_null(proa__alloc(600000));
    ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_nonnull(strstr(proa_error_message(), "cap"));
    ck_assert_int_eq(stats().live_bytes, with);
    proa_clear_error();
    proa__free(half);
    half = proa__alloc(600000); /* there is space again */
    ck_assert_ptr_nonnull(half);
    proa__free(half);
    proa_memory_set_cap(0);
    void *all = proa__alloc(8u << 20);
    ck_assert_ptr_nonnull(all);
    proa__free(all);
    ck_assert_int_eq(proa_set_flag("memory_cap", "1000"), PROA_OK); /* the flag is the same cap */
    ck_assert_ptr_null(proa__alloc(2000));
    proa_clear_error();
    ck_assert_int_eq(proa_set_flag("memory_cap", "0"), PROA_OK);
    proa__free(warm);
}
END_TEST

/* Allocates in every way there is; true if all went well. */
static bool make_things(void)
{
    bool ok = false;
    PROA_SCOPE {
        float data[6] = {0};
        proa_tensor *t = proa_from_data(data, PROA_SHAPE(2, 3), PROA_F32);
        if (!t || proa_set_name(t, "hull") != PROA_OK) break;
        if (!proa_scope_alloc(5000) || !proa_empty(PROA_SHAPE(1000, 1000), PROA_F64)) break;
        if (!proa__tensor_alias(t)) break;
        if (!proa_from_foreign(data, PROA_SHAPE(6), NULL, PROA_F32, NULL, NULL)) break;
        for (int i = 0; ok || i == 0; i++) { /* past the inline scope stack */
            ok = i < 600;
            if (!proa_empty(PROA_SCALAR_SHAPE, PROA_I32)) return false;
        }
        ok = true;
    }
    return ok;
}

START_TEST(every_allocation_may_fail)
{
    ck_assert(make_things());
    proa_memory_stats before = stats();
    proa_memory_fail_after(-1);
    ck_assert(make_things());
    int64_t needed = proa_memory_fail_after(-1);
    ck_assert_int_gt(needed, 1200);
    for (int64_t n = 0; n < needed; n++) {
        proa_memory_fail_after(n);
        ck_assert_msg(!make_things(), "allocation %lld did not fail", (long long)n);
        ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
        proa_clear_error();
        ck_assert_int_eq(proa_memory_fail_after(-1), n + 1);
        ck_assert_int_eq(stats().live_bytes, before.live_bytes);
        ck_assert_int_eq(stats().live_blocks, before.live_blocks);
    }
    proa_memory_fail_after(needed);
    ck_assert(make_things());
    proa_memory_fail_after(-1);
}
END_TEST

static void *free_them(void *p)
{
    void **at = p;
    for (int i = 0; i < 1000; i++) proa__free(at[i]);
    for (int i = 0; i < 1000; i++) at[i] = proa__alloc(300);
    proa__free(proa__alloc(100));
    return proa_empty(PROA_SHAPE(100), PROA_F32); /* left in the thread's root scope */
}

START_TEST(blocks_cross_threads)
{
    static void *p[1000];
    proa__free(proa__alloc(1));
    proa_memory_stats before = stats();
    for (int i = 0; i < 1000; i++) p[i] = proa__alloc(300);
    int64_t with = stats().live_bytes;
    for (int round = 0; round < 5; round++) {
        pthread_t thread;
        void *made = NULL;
        ck_assert_int_eq(pthread_create(&thread, NULL, free_them, p), 0);
        ck_assert_int_eq(pthread_join(thread, &made), 0);
        ck_assert_ptr_nonnull(made);
        ck_assert_int_eq(stats().live_bytes, with); /* its root scope ended with it */
    }
    for (int i = 0; i < 1000; i++) proa__free(p[i]);
    ck_assert_int_eq(stats().live_bytes, before.live_bytes);
    ck_assert_int_eq(stats().live_blocks, before.live_blocks);
    proa_memory_trim();
    ck_assert_int_eq(stats().cached_bytes, 0); /* the threads gave their caches back */
}
END_TEST

static void *churn(void *seed)
{
    uint32_t r = (uint32_t)(uintptr_t)seed;
    void *held[50] = {0};
    for (int i = 0; i < 50000; i++) {
        r = r * 1664525u + 1013904223u;
        size_t k = (r >> 10) % 50;
        proa__free(held[k]);
        held[k] = proa__alloc((r >> 6) % 3000);
        if (held[k]) memset(held[k], (int)k, (r >> 6) % 3000);
    }
    for (size_t k = 0; k < 50; k++) proa__free(held[k]);
    return NULL;
}

START_TEST(many_threads_at_once)
{
    pthread_t thread[4];
    proa_memory_stats before = stats();
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 200; i++) ck_assert_int_ge(stats().allocations, before.allocations);
    proa_memory_trim();
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    ck_assert_int_eq(stats().live_bytes, before.live_bytes);
    ck_assert_int_eq(stats().live_blocks, before.live_blocks);
}
END_TEST

SUITE("core_memory", blocks_are_aligned_and_writable, blocks_fit_their_sizes, random_traffic_keeps_contents,
      helpers, the_cache_hits_and_trims, caches_are_bounded, the_peak_is_exact_on_one_thread, the_cap_holds,
      every_allocation_may_fail, blocks_cross_threads, many_threads_at_once)
