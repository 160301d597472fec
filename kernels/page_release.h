/* Releases clean pages of mapped files (madvise), which the system reads from the file again when needed.
 * Uses nothing else of Proa. */
#ifndef PROA_KERNELS_PAGE_RELEASE_H
#define PROA_KERNELS_PAGE_RELEASE_H

#include <stddef.h>

/* Gives back the pages of [data, data + bytes) that are unchanged pages of a mapped file: the next read
 * brings them back. Does nothing where any page is something else, so any memory may be asked for; nobody may
 * write to it meanwhile. For constants, once they have been read into a form of a kernel's own. */
void proa__release_pages(const void *data, size_t bytes);

#endif
