/* In-memory cache of compiled kernels: a list by key, least recently used evicted first. A module that
 * somebody still holds is never unloaded. C. */
#include "module.h"

#include "compiler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_module *modules;
static uint64_t now;
static cuda_module_counts counts;
static char why_not[512];

uint64_t cuda_hash(uint64_t start, const void *p, size_t n)
{
    const unsigned char *at = p;
    for (size_t i = 0; i < n; i++) start = (start ^ at[i]) * 0x100000001b3u;
    return start;
}

/* Hash of the embedded headers: with other headers, one source compiles to other code. */
static uint64_t hash_headers(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const cuda_header *h = cuda_headers; h->name; h++) hash = cuda_hash(hash, h->text, strlen(h->text));
    return hash;
}

/* A module without kernels yet, in the list. NULL: no memory. */
static cuda_module *new_module(const cuda_driver *driver, const char *compiler, int major, int minor,
                               const char *source)
{
    char head[96];
    snprintf(head, sizeof head, "%s, compute capability %d.%d, headers %016llx\n", compiler, major, minor,
             (unsigned long long)hash_headers());
    size_t capacity = strlen(head) + strlen(source) + 1;
    cuda_module *m = calloc(1, sizeof *m + capacity);
    if (!m) return NULL;
    snprintf(m->key, capacity, "%s%s", head, source);
    m->driver = driver;
    return m;
}

static bool load(cuda_module *m, const void *image, size_t bytes,
                 const char *const names[CUDA_MODULE_KERNELS])
{
    int code = m->driver->module_load(&m->handle, image, bytes);
    for (int i = 0; i < CUDA_MODULE_KERNELS && code == 0; i++)
        code = m->driver->module_kernel(m->handle, names[i], &m->kernel[i]);
    if (code == 0) {
        why_not[0] = '\0';
        return true;
    }
    snprintf(why_not, sizeof why_not, "compiled kernels cannot be loaded: %s", m->driver->error_text(code));
    if (m->handle) m->driver->module_unload(m->handle);
    m->handle = NULL;
    return false;
}

static bool make(cuda_module *m, int major, int minor, const char *source,
                 const char *const names[CUDA_MODULE_KERNELS])
{
    void *image = NULL;
    size_t bytes = 0;
    if (cuda_module_read(m->key, &image, &bytes)) {
        bool done = load(m, image, bytes, names);
        free(image);
        counts.read += done;
        if (done) return true; /* otherwise the module is compiled again and replaced */
    }
    if (!cuda_compile(source, major, minor, &image, &bytes, why_not, sizeof why_not)) return false;
    bool done = load(m, image, bytes, names);
    if (done) cuda_module_write(m->key, image, bytes);
    free(image);
    counts.compiled += done;
    return done;
}

/* Unloads the least recently used module without users if there are too many. */
static void trim(void)
{
    int idle = 0;
    cuda_module **oldest = NULL;
    for (cuda_module **m = &modules; *m; m = &(*m)->next) {
        if ((*m)->users) continue;
        idle++;
        if (!oldest || (*m)->used < (*oldest)->used) oldest = m;
    }
    if (idle <= CUDA_MODULES) return;
    cuda_module *gone = *oldest;
    *oldest = gone->next;
    if (gone->handle) gone->driver->module_unload(gone->handle);
    free(gone);
}

static cuda_module *take(const cuda_driver *driver, int major, int minor, const char *source,
                         const char *const names[CUDA_MODULE_KERNELS])
{
    const char *why, *compiler = cuda_compiler(&why);
    cuda_module *made = compiler ? new_module(driver, compiler, major, minor, source) : NULL, *m = modules;
    if (!made) {
        snprintf(why_not, sizeof why_not, "%s", compiler ? "no memory" : why);
        return NULL;
    }
    while (m && strcmp(m->key, made->key) != 0) m = m->next;
    if (m) {
        free(made);
    } else { /* a rejected source is cached, too, so that it is compiled once */
        m = made;
        if (!make(m, major, minor, source, names)) counts.refused++;
        m->next = modules;
        modules = m;
    }
    m->used = ++now;
    m->users += m->handle != NULL;
    trim();
    return m->handle ? m : NULL;
}

cuda_module *cuda_module_take(const cuda_driver *driver, int major, int minor, const char *source,
                              const char *const names[CUDA_MODULE_KERNELS])
{
    pthread_mutex_lock(&lock);
    cuda_module *m = take(driver, major, minor, source, names);
    pthread_mutex_unlock(&lock);
    return m;
}

void cuda_module_give(cuda_module *m)
{
    pthread_mutex_lock(&lock);
    m->users--;
    trim();
    pthread_mutex_unlock(&lock);
}

const char *cuda_module_why_not(void) { return why_not; }

cuda_module_counts cuda_module_count(void)
{
    pthread_mutex_lock(&lock);
    cuda_module_counts c = counts;
    pthread_mutex_unlock(&lock);
    return c;
}
