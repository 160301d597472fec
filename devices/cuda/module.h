/* Cache of kernels compiled at run time, keyed by what they were compiled from: in memory (module.c) and on
 * disk (module_file.c). C. */
#ifndef PROA_CUDA_MODULE_H
#define PROA_CUDA_MODULE_H

#include "driver.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_MODULE_KERNELS = 2, CUDA_MODULES = 256 }; /* of modules that nobody uses, as many are kept */

typedef struct cuda_module {
    void *kernel[CUDA_MODULE_KERNELS]; /* as cuda_driver.launch takes them */
    struct cuda_module *next;
    const cuda_driver *driver;
    void *handle;
    int users;
    uint64_t used; /* when: rises */
    char key[];    /* all that it depends on */
} cuda_module;

/* The kernels `names` of a source, compiled, or taken from where they are kept, for the compute capability.
 * NULL: there is no compiler, or it refuses the source (cuda_module_why_not). Any thread may ask; it may take
 * a second. */
cuda_module *cuda_module_take(const cuda_driver *driver, int major, int minor, const char *source,
                              const char *const names[CUDA_MODULE_KERNELS]);
void cuda_module_give(cuda_module *m);
/* "", or why the last source has no kernels. */
const char *cuda_module_why_not(void);

/* Numbers of modules compiled, read from disk and refused so far, for tests. */
typedef struct cuda_module_counts {
    int64_t compiled, read, refused;
} cuda_module_counts;
cuda_module_counts cuda_module_count(void);

/* module_file.c: an image by key, out of $XDG_CACHE_HOME/proa/cuda (or ~/.cache/proa/cuda) and into it. Such
 * a file is code for a GPU, which the driver loads; one that is damaged, of another key, or another user's,
 * is as good as none, and is replaced. FLAGS_cuda_cache=0: neither. *image is the caller's, to free. */
bool cuda_module_read(const char *key, void **image, size_t *bytes);
void cuda_module_write(const char *key, const void *image, size_t bytes);

/* FNV-1a of n bytes, from a start. */
uint64_t cuda_hash(uint64_t start, const void *p, size_t n);

#ifdef __cplusplus
}
#endif
#endif
