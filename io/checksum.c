/* CRC-32C (polynomial 0x1EDC6F41, reflected): by the processor's CRC instruction where it has one, otherwise
 * by slicing-by-8 with tables made at first use. Core only. */
#include "io/file.h"

#include <pthread.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = (c >> 1) ^ (0x82F63B78u & (0u - (c & 1)));
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++) table[t][i] = (table[t - 1][i] >> 8) ^ table[0][table[t - 1][i] & 255];
}

static uint32_t load32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t by_table(uint32_t c, const unsigned char *p, size_t n)
{
    pthread_once(&once, make_tables);
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t a = load32(p) ^ c, b = load32(p + 4);
        c = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^
            table[3][b & 255] ^ table[2][b >> 8 & 255] ^ table[1][b >> 16 & 255] ^ table[0][b >> 24];
    }
    while (n--) c = (c >> 8) ^ table[0][(c ^ *p++) & 255];
    return c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t c, const unsigned char *p, size_t n)
{
    uint64_t wide = c;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        wide = _mm_crc32_u64(wide, v);
    }
    c = (uint32_t)wide;
    while (n--) c = _mm_crc32_u8(c, *p++);
    return c;
}
#endif

uint32_t proa__crc32c(uint32_t crc, const void *data, size_t bytes)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~crc, data, bytes);
#endif
    return ~by_table(~crc, data, bytes);
}
