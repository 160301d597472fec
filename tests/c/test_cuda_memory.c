/* The CUDA plug-in's caching allocator over a fake driver: sizes, reuse, joining, giving back, running
 * out. */
#include "devices/cuda/memory.h"
#include "suite.h"

#include <string.h>
#include <sys/mman.h>

/* A driver with `capacity` bytes, whose memory nobody may touch. */
static size_t capacity, taken;
static int mallocs, frees;
static struct {
    void *at;
    size_t bytes;
} given[16];

static int fake_use(int device) { return device == 3 ? 0 : 1; }

static int fake_malloc(void **p, size_t bytes)
{
    if (taken + bytes > capacity) return 2;
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return 2;
    taken += bytes;
    given[mallocs].at = at;
    given[mallocs++].bytes = bytes;
    *p = at;
    return 0;
}

static int fake_free(void *p)
{
    for (int i = 0; i < mallocs; i++)
        if (given[i].at == p) taken -= given[i].bytes;
    frees++;
    return munmap(p, 4096);
}

static int fake_error(void) { return 2; }

static const cuda_driver fake = {
    .use = fake_use, .malloc = fake_malloc, .free = fake_free, .last_error = fake_error};

static cuda_pool *pool_of(size_t bytes)
{
    capacity = bytes;
    taken = 0;
    mallocs = frees = 0;
    cuda_pool *pool = cuda_pool_new(&fake, 3);
    ck_assert_ptr_nonnull(pool);
    return pool;
}

enum { KIB = 1 << 10, MIB = 1 << 20 };

START_TEST(small_blocks_share_a_segment)
{
    cuda_pool *pool = pool_of((size_t)1 << 30);
    char *a = cuda_pool_take(pool, 1, "a"), *b = cuda_pool_take(pool, 513, "b");
    ck_assert_ptr_eq(b, a + 512);
    ck_assert_uint_eq(taken, 2 * MIB);
    cuda_pool_stats s = cuda_pool_get_stats(pool, false);
    ck_assert(s.live_bytes == 512 + 1024 && s.held_bytes == 2 * MIB && s.driver_calls == 1);
    cuda_pool_give(pool, a);
    ck_assert_ptr_eq(cuda_pool_take(pool, 400, "c"), a); /* the best fit, at once */
    cuda_pool_free(pool);
    ck_assert_int_eq(frees, 1);
}
END_TEST

START_TEST(large_blocks)
{
    cuda_pool *pool = pool_of((size_t)1 << 30);
    cuda_pool_take(pool, 3 * MIB, "a");
    ck_assert_uint_eq(taken, 20 * MIB);
    cuda_pool_take(pool, 4 * MIB, "b"); /* out of the same segment */
    ck_assert_uint_eq(taken, 20 * MIB);
    cuda_pool_take(pool, 14 * MIB + 1, "c"); /* one of its own, in steps of 2 MiB */
    ck_assert_uint_eq(taken, 36 * MIB);
    cuda_pool_free(pool);
    ck_assert_int_eq(frees, mallocs);
}
END_TEST

START_TEST(neighbors_join)
{
    cuda_pool *pool = pool_of((size_t)1 << 30);
    char *part[4];
    for (int i = 0; i < 4; i++) part[i] = cuda_pool_take(pool, 512 * KIB, "x");
    ck_assert_int_eq(mallocs, 1);
    int order[] = {1, 3, 0, 2}; /* to the right, apart, to the left, both sides */
    for (int i = 0; i < 4; i++) cuda_pool_give(pool, part[order[i]]);
    ck_assert_ptr_eq(cuda_pool_take(pool, 1 * MIB, "y"), part[0]);
    cuda_pool_give(pool, part[0]);
    cuda_pool_trim(pool);
    ck_assert_int_eq(frees, 1);
    ck_assert(cuda_pool_get_stats(pool, false).held_bytes == 0);
    cuda_pool_free(pool);
}
END_TEST

START_TEST(out_of_memory)
{
    cuda_pool *pool = pool_of(40 * MIB);
    void *a = cuda_pool_take(pool, 30 * MIB, "conv2d");
    ck_assert_ptr_null(cuda_pool_take(pool, 20 * MIB, "matmul"));
    ck_assert_ptr_null(cuda_pool_take(pool, SIZE_MAX, "matmul"));
    char text[256];
    cuda_pool_report(pool, text, sizeof text);
    ck_assert_msg(strstr(text, "30.0 MiB live: 30.0 MiB in 1 of conv2d"), "%s", text);
    cuda_pool_give(pool, a);
    cuda_pool_free(pool);
    ck_assert_uint_eq(taken, 0);
}
END_TEST

START_TEST(the_cache_is_given_back_before_it_fails)
{
    cuda_pool *pool = pool_of(40 * MIB);
    void *a = cuda_pool_take(pool, 30 * MIB, "a");
    cuda_pool_give(pool, a);
    ck_assert_ptr_nonnull(
        cuda_pool_take(pool, 38 * MIB, "b")); /* the cached 30 are too small, and in the way */
    ck_assert_int_eq(frees, 1);
    cuda_pool_stats s = cuda_pool_get_stats(pool, true);
    ck_assert(s.live_bytes == 38 * MIB && s.held_bytes == 38 * MIB);
    cuda_pool_give(pool, NULL);
    cuda_pool_free(pool);
}
END_TEST

SUITE("cuda memory", small_blocks_share_a_segment, large_blocks, neighbors_join, out_of_memory,
      the_cache_is_given_back_before_it_fails)
