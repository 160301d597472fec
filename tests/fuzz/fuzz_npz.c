/* Fuzzes the reader of NumPy's files: an archive of arrays, and one array, which no checksum guards. */
#define _GNU_SOURCE
#include "cli/cli.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void once(bool fine)
{
    if (!fine && proa_error() == PROA_OK) abort();
    cli_release();
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t none[1];
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("npz", 0);
        if (file < 0) abort();
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) || pwrite(file, size ? data : none, size, 0) != (ssize_t)size) abort();
    cli_named *items;
    int64_t n;
    once(cli_npz_load(path, &items, &n) == PROA_OK);
    once(cli_npy_parse(size ? data : none, size, "fuzzed") != NULL);
    return 0;
}
