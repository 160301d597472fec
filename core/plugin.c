/* Device plug-ins: finds, loads and checks them, and holds the table of host functions that they are given. A
 * loaded plug-in is never unloaded. Uses the device table, memory, errors and dlopen. */
#define _GNU_SOURCE
#include "core/blocked.h"
#include "core/device.h"
#include "core/group.h"
#include "core/thread.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- host functions for plug-ins ---------------------------------------------------------- */

static proa_status host_fail(proa_status code, const char *text) { return proa_fail(code, "%s", text); }

static void host_facts(const proa_tensor *t, proa_tensor_facts *to)
{
    *to = (proa_tensor_facts){.data = t->data,
                              .dtype = (proa_dtype)t->dtype,
                              .ndim = t->ndim,
                              .numel = t->numel,
                              .shape = t->shape,
                              .strides = t->strides};
    if (PROA__UNLIKELY(t->flags & PROA_T_BLOCKED)) {
        to->channels_last = proa__format(t) == PROA_CHANNELS_LAST;
        to->last = to->channels_last ? proa__blocked_data(t) : NULL;
    }
    if (t->kind != PROA_ROWS) return;
    to->rows = (const int64_t *)(const void *)proa__rows_of(t)->index->data;
    to->height = proa__rows_of(t)->height;
}

static proa_status store_channels_last(proa_tensor *output)
{
    return proa__block_output(output, PROA_CHANNELS_LAST);
}

static const proa_host_api *host_api(void)
{
    static proa_host_api api;
    api = (proa_host_api){.abi = PROA_DEVICE_ABI,
                          .table_hash = proa_table_hash,
                          .ops = proa_op_table,
                          .n_ops = proa_op_count,
                          .none = proa_none,
                          .fail = host_fail,
                          .error = proa_error,
                          .flag = proa_get_flag,
                          .alloc = proa__alloc,
                          .free = proa__free,
                          .facts = host_facts,
                          .text = proa__tensor_text,
                          .shape_text = proa__shape_text,
                          .tensor_new = proa__tensor_new,
                          .output_resize = proa_output_resize,
                          .rng_reserve = proa__rng_reserve,
                          .store_channels_last = store_channels_last,
                          .match_layout = proa__match_layout};
    return &api;
}

/* ---- loading --------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int check(const char *path, const proa_plugin *p)
{
    if (!p || p->abi != PROA_DEVICE_ABI || !p->table_hash || strcmp(p->table_hash, proa_table_hash) != 0) {
        proa_fail(PROA_ERR_BAD_STATE,
                  "load_devices: %s was built against another Proa (interface %u, table %.12s…; this library "
                  "has %u and %.12s…); rebuild it",
                  path, p ? p->abi : 0, p && p->table_hash ? p->table_hash : "?", PROA_DEVICE_ABI,
                  proa_table_hash);
        return -1;
    }
    if (p->n_devices > 0) return p->n_devices;
    proa_fail(PROA_ERR_UNAVAILABLE, "load_devices: %s has no device here: %s", path,
              p->why_none ? p->why_none : "it does not say why");
    return -1;
}

/* The communicators of a device of the plug-in `handle`; NULL: the plug-in exports none for it. */
static const proa_communicators *communicators_of(void *handle, const proa_device_table *device)
{
    void *symbol = dlsym(handle, PROA_COMMUNICATORS_ENTRY);
    proa_communicators_entry_fn entry;
    memcpy(&entry, &symbol, sizeof entry);
    return symbol ? entry(device) : NULL;
}

/* Loads the plug-in at `path`; the caller holds the lock. */
static int load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *why = dlerror();
        proa_fail(PROA_ERR_UNAVAILABLE, "load_devices: %s cannot be loaded: %s", path, why ? why : "?");
        return -1;
    }
    void *symbol = dlsym(handle, PROA_PLUGIN_ENTRY);
    proa_plugin_entry_fn entry;
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object pointer */
    if (!symbol) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "load_devices: %s is no plug-in: it exports no %s", path,
                  PROA_PLUGIN_ENTRY);
        return -1;
    }
    const proa_plugin *p = entry(host_api());
    int n = proa_error() ? -1 : check(path, p);
    for (int i = 0; i < n; i++) {
        bool there = false;
        for (int k = 0; proa__device(k); k++) there |= proa__device(k) == &p->devices[i];
        int id = there ? -1 : proa_add_device(&p->devices[i]);
        if (!there && id < 0) return -1;
        if (!there) proa__set_communicators(id, communicators_of(handle, &p->devices[i]));
    }
    return n;
}

int proa_load_devices(const char *path)
{
    if (proa_error()) return -1;
    if (!path || !*path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "load_devices: the path is %s", path ? "empty" : "NULL");
        return -1;
    }
    pthread_mutex_lock(&lock);
    int n = load(path);
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- finding the plug-in of a device name ----------------------------------------------- */

static const char gpu_file[] = "libproa_cuda.so";

/* Path of the GPU plug-in in the folder of this library (or program); false: there is none. */
static bool beside(char *path, size_t capacity)
{
    Dl_info info;
    if (!dladdr((const void *)&lock, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int folder = slash ? (int)(slash - info.dli_fname) : 1;
    int n = snprintf(path, capacity, "%.*s/%s", folder, slash ? info.dli_fname : ".", gpu_file);
    if (n < 0 || (size_t)n >= capacity) return false;
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

/* Writes the reason of the failed load as the end of a sentence, and clears the thread's error. */
static void take_why(char *why)
{
    snprintf(why, PROA__WHY, "; %.480s", proa_error_message());
    proa_clear_error();
}

void proa__plugins_for(const char *name, char *why)
{
    bool gpu = strncmp(name, "gpu", 3) == 0 || strncmp(name, "cuda", 4) == 0;
    char path[PATH_MAX];
    *why = '\0';
    const char *given = proa_get_flag("device_plugins");
    for (const char *at = given ? given : ""; *at;) { /* file names, separated by colons */
        size_t n = strcspn(at, ":");
        if (n > 0 && n < sizeof path) {
            memcpy(path, at, n);
            path[n] = '\0';
            if (proa_load_devices(path) < 0) take_why(why);
        }
        at += n + (at[n] == ':');
    }
    if (!gpu || *why) return;
    if (beside(path, sizeof path)) {
        if (proa_load_devices(path) < 0) take_why(why);
        return;
    }
    if (proa_load_devices(gpu_file) >= 0) return;
    proa_clear_error();
    snprintf(why, PROA__WHY,
             "; NVIDIA GPUs are in %s: build it with 'cmake --preset cuda' and name it in "
             "FLAGS_device_plugins, or install the proa-cuda wheel, on a machine with a driver",
             gpu_file);
}
