/* Releases clean pages of mapped files (madvise), which the system reads from the file again when needed.
 * Uses nothing else of Proa. */
#ifndef PROA_KERNELS_PAGE_RELEASE_H
#define PROA_KERNELS_PAGE_RELEASE_H

#include <stddef.h>

/* Releases the whole pages within [data, data + bytes), of 64 KiB and more, if all are unchanged pages of a
 * mapped file; the next read loads them again. Does nothing to other memory, so it may be called on any;
 * nobody may write to it meanwhile. For constants that a kernel has copied into a form of its own. */
void proa__release_pages(const void *data, size_t bytes);

#endif
