/* Releases clean pages of mapped files by madvise; see page_release.h. Only on Linux, which tells by
 * /proc/self/pagemap which pages these are. Uses the C library only. */
#include "kernels/page_release.h"

#if defined(__linux__)
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIN_BYTES = 64 << 10, ENTRIES = 512 };

/* Bits of /proc/self/pagemap: the page is present, is swapped out, or belongs to a file or to shared
 * memory. */
#define PRESENT (UINT64_C(1) << 63)
#define SWAPPED (UINT64_C(1) << 62)
#define OF_FILE (UINT64_C(1) << 61)

/* True if all pages of [first, end) are unchanged pages of a file, so that none loses data when released. */
static bool are_clean(int pagemap, uintptr_t first, uintptr_t end)
{
    uint64_t entries[ENTRIES];
    for (uintptr_t at = first; at < end;) {
        size_t n = end - at < ENTRIES ? end - at : ENTRIES, bytes = n * sizeof *entries;
        if (pread(pagemap, entries, bytes, (off_t)(at * sizeof *entries)) != (ssize_t)bytes) return false;
        for (size_t i = 0; i < n; i++)
            if ((entries[i] & SWAPPED) || ((entries[i] & PRESENT) && !(entries[i] & OF_FILE))) return false;
        at += n;
    }
    return true;
}

void proa__release_pages(const void *data, size_t bytes)
{
    long size = sysconf(_SC_PAGESIZE);
    if (bytes < MIN_BYTES || size < 1) return;
    uintptr_t page = (uintptr_t)size, first = ((uintptr_t)data + page - 1) / page,
              end = ((uintptr_t)data + bytes) / page;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return;
    if (first < end && are_clean(pagemap, first, end))
        (void)madvise((void *)(first * page), (end - first) * page, MADV_DONTNEED);
    close(pagemap);
}
#else
void proa__release_pages(const void *data, size_t bytes) { (void)data, (void)bytes; }
#endif
