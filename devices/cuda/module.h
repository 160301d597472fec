/* Cache of kernels compiled at run time, keyed by what they were compiled from: in memory (module.c) and on
 * disk (module_file.c). C. */
#ifndef PROA_CUDA_MODULE_H
#define PROA_CUDA_MODULE_H

#include "driver.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_MODULE_KERNELS = 2, CUDA_MODULES = 256 }; /* CUDA_MODULES: unused modules kept in memory */

typedef struct cuda_module {
    void *kernel[CUDA_MODULE_KERNELS]; /* the driver's handles, for cuda_driver.launch */
    struct cuda_module *next;
    const cuda_driver *driver;
    void *handle;
    int users;
    uint64_t used; /* time of the last use, as a rising count */
    char key[];    /* everything that the code depends on */
} cuda_module;

/* Kernels `names` of a source for a compute capability, from the cache or compiled (which may take a second).
 * NULL: there is no compiler, or it rejects the source (cuda_module_why_not). Callable from any thread. */
cuda_module *cuda_module_take(const cuda_driver *driver, int major, int minor, const char *source,
                              const char *const names[CUDA_MODULE_KERNELS]);
void cuda_module_give(cuda_module *m);
/* Why the last source that failed could not be compiled or loaded; "" if none has failed. */
const char *cuda_module_why_not(void);

/* Numbers of modules compiled, read from disk and refused so far, for tests. */
typedef struct cuda_module_counts {
    int64_t compiled, read, refused;
} cuda_module_counts;
cuda_module_counts cuda_module_count(void);

/* module_file.c: reads an image by key from $XDG_CACHE_HOME/proa/cuda (or ~/.cache/proa/cuda), or writes it
 * there. The file is GPU code that the driver loads; one that is damaged, has another key or belongs to
 * another user is ignored and replaced. With FLAGS_cuda_cache=0 neither reads nor writes. The caller frees
 * *image. */
bool cuda_module_read(const char *key, void **image, size_t *bytes);
void cuda_module_write(const char *key, const void *image, size_t bytes);

/* FNV-1a hash of n bytes, continued from `start`. */
uint64_t cuda_hash(uint64_t start, const void *p, size_t n);

#ifdef __cplusplus
}
#endif
#endif
