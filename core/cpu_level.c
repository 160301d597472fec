/* Detects by cpuid the CPU level (0: baseline, 1: x86-64-v3, 2: x86-64-v4), which FLAGS_cpu_level may lower,
 * and a quarter of the third-level cache, clamped to 2 to 8 MiB. On other architectures the level is 0 and
 * the quarter 2 MiB. */
#include "core/thread.h"

enum { MIN_QUARTER = 2 << 20, MAX_QUARTER = 8 << 20 };

#if defined(__x86_64__)
#include <cpuid.h>

/* XCR0: the vector registers that the operating system saves. */
static uint64_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static int detect(void)
{
    const uint32_t fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const uint32_t bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5;
    const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW, VL */
    uint32_t a, b, c, d, basic = fma | movbe | osxsave | avx | f16c, v3 = bmi1 | avx2 | bmi2;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & basic) != basic) return 0;
    uint64_t saved = saved_state();
    if ((saved & 0x06) != 0x06) return 0; /* SSE and AVX state */
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & lzcnt)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & v3) != v3) return 0;
    if ((saved & 0xe6) != 0xe6) return 1; /* mask registers and both halves of ZMM */
    return (b & avx512) == avx512 ? 2 : 1;
}

/* Bytes of the third-level cache, as Intel's leaf (4) or AMD's (0x8000001d) describes it; 0: none is. */
static int64_t shared_cache(void)
{
    const uint32_t leaves[] = {4, 0x8000001d};
    uint32_t a, b, c, d;
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; __get_cpuid_count(leaves[l], i, &a, &b, &c, &d) && (a & 31); i++) {
            if ((a >> 5 & 7) != 3) continue;
            int64_t ways = (b >> 22) + 1, lines = (b >> 12 & 0x3ff) + 1, bytes = (b & 0xfff) + 1;
            return ways * lines * bytes * ((int64_t)c + 1);
        }
    return 0;
}
#else
static int detect(void) { return 0; }
static int64_t shared_cache(void) { return 0; }
#endif

int64_t proa__cache_quarter(void)
{
    int64_t quarter = shared_cache() / 4;
    return quarter < MIN_QUARTER ? MIN_QUARTER : quarter > MAX_QUARTER ? MAX_QUARTER : quarter;
}

int proa__cpu_level(void)
{
    static atomic_int known = -1;
    int level = atomic_load_explicit(&known, memory_order_relaxed);
    if (PROA__UNLIKELY(level < 0)) {
        level = detect();
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    int64_t most = proa__flag_int(PROA_FLAG_cpu_level);
    return most >= level ? level : most < 0 ? 0 : (int)most;
}
