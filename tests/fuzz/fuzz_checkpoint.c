/* Fuzzes the checkpoint reader, once as the bytes are and once with the checksums put right, so that the
 * fuzzer gets past them. */
#include "io/file.h"

#include <proa/io.h>
#include <stdlib.h>

static uint32_t get(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static void put(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* The first record's, the head's, and the file's length. */
static void mend(uint8_t *data, size_t size)
{
    static const uint8_t magic[8] = {0x89, 'P', 'R', 'O', 'A', 'C', 'K', '\n'};
    if (size < 32) return;
    memcpy(data, magic, 8);
    put(data + 20, (uint32_t)size);
    put(data + 24, 0);
    put(data + 28, proa__crc32c(0, data, 28));
    for (size_t at = 32; at + 112 <= size;) {
        uint8_t *r = data + at;
        size_t name = get(r + 12) % 64, gap = (size_t)(-(at + 112 + name) & 63), left = size - at - 112;
        put(r + 12, (uint32_t)name);
        put(r + 96, (uint32_t)gap);
        if (name + gap > left) return;
        memset(r + 112 + name, 0, gap);
        size_t bytes = get(r + 16);
        if (bytes <= left - name - gap) put(r + 100, proa__crc32c(0, r + 112 + name + gap, bytes));
        put(r + 108, proa__crc32c(proa__crc32c(0, r, 108), r + 112, name));
        if (bytes > left - name - gap) return;
        at += 112 + name + gap + bytes;
    }
}

static void once(const uint8_t *data, size_t size)
{
    static const uint8_t none[1];
    proa_state *s = proa_state_load_memory(size ? data : none, size);
    if (!s && proa_error() == PROA_OK) abort();
    proa_state_free(s);
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    once(data, size);
    uint8_t *copy = malloc(size + 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    mend(copy, size);
    once(copy, size);
    free(copy);
    return 0;
}
