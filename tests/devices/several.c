/* Devices for tests of communication: four in one process, so that ranks that are threads have one each.
 * Their memory is the CUDA emulator's, which faults when the host touches it, and the CUDA plug-in's
 * communicators connect them, over the stand-in for NCCL. They have no kernels. */
#include "devices/cuda/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 4 };

const proa_host_api *cuda_host;
static cuda_context contexts[DEVICES];
static proa_device_table tables[DEVICES];
static proa_plugin plugin = {.abi = PROA_DEVICE_ABI, .table_hash = PROA_TABLE_HASH, .devices = tables};

/* ---- what the communicators need of the plug-in's runtime ------------------------------- */

proa_status cuda_fail(proa_status code, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cuda_host->fail(code, text);
}

proa_status cuda_check(cuda_context *c, int code, const char *what, bool late)
{
    (void)late;
    if (code == 0) return PROA_OK;
    return cuda_fail(PROA_ERR_INTERNAL, "%s on %s: %s", what, c->name, c->driver->error_text(code));
}

bool cuda_unrecordable(cuda_context *c)
{
    (void)c;
    return false; /* nothing is recorded */
}

/* ---- the device table ------------------------------------------------------------------ */

static void *several_alloc(void *context, size_t bytes)
{
    const cuda_context *c = context;
    void *p = NULL;
    return c->driver->malloc(&p, bytes ? bytes : 1) == 0 ? p : NULL;
}

static void several_free(void *context, void *p, size_t bytes)
{
    const cuda_context *c = context;
    (void)bytes;
    c->driver->free(p);
}

/* Queues a copy; `wait`: until it is done. */
static proa_status move(void *context, void *to, const void *from, size_t bytes, cuda_direction direction,
                        bool wait)
{
    cuda_context *c = context;
    pthread_mutex_lock(&c->lock);
    int code = bytes ? c->driver->copy(to, from, bytes, direction, c->stream) : 0;
    if (code == 0 && wait) code = c->driver->stream_sync(c->stream);
    pthread_mutex_unlock(&c->lock);
    return cuda_check(c, code, "a copy", wait);
}

static proa_status copy_in(void *context, void *to, const void *from, size_t bytes)
{
    return move(context, to, from, bytes, CUDA_TO_DEVICE, true);
}

static proa_status copy_out(void *context, void *to, const void *from, size_t bytes)
{
    return move(context, to, from, bytes, CUDA_TO_HOST, true);
}

static proa_status copy(void *context, void *to, const void *from, size_t bytes)
{
    return move(context, to, from, bytes, CUDA_ON_DEVICE, false);
}

static proa_status copy_strided(void *context, const proa_strided_copy *c)
{
    int64_t at[PROA_MAX_DIMS] = {0};
    char *to = c->dst;
    const char *from = c->src;
    for (;;) {
        PROA_TRY(copy(context, to, from, c->item));
        int d = c->ndim - 1;
        for (; d >= 0; d--) { /* an odometer, innermost axis first */
            to += c->to[d], from += c->from[d];
            if (++at[d] < c->shape[d]) break;
            to -= c->shape[d] * c->to[d], from -= c->shape[d] * c->from[d];
            at[d] = 0;
        }
        if (d < 0) return PROA_OK;
    }
}

static proa_status fill(void *context, void *to, const void *value, size_t item, int64_t count)
{
    char *all = malloc(item * (size_t)count + 1);
    if (!all) return cuda_fail(PROA_ERR_OUT_OF_MEMORY, "fill: no memory for %lld elements", (long long)count);
    for (size_t i = 0; i < (size_t)count; i++) memcpy(all + i * item, value, item);
    proa_status status = copy_in(context, to, all, item * (size_t)count);
    free(all);
    return status;
}

static proa_status synchronize(void *context)
{
    cuda_context *c = context;
    pthread_mutex_lock(&c->lock);
    int code = c->driver->stream_sync(c->stream);
    pthread_mutex_unlock(&c->lock);
    return cuda_check(c, code, "synchronize", true);
}

/* communications: the calls that went between devices. */
static int property(void *context, const char *name, int64_t *value)
{
    cuda_context *c = context;
    if (strcmp(name, "communications") != 0) return 0;
    pthread_mutex_lock(&c->lock);
    *value = c->communications;
    pthread_mutex_unlock(&c->lock);
    return 1;
}

/* ---- the entry ------------------------------------------------------------------------- */

static void open_device(int i)
{
    cuda_context *c = &contexts[i];
    c->index = i;
    c->driver = cuda_driver_default();
    c->driver->describe(i, &c->description);
    if (!getenv("PROA_EMULATE_IDENTITY")) /* otherwise they pass for one device */
        snprintf(c->description.identity, sizeof c->description.identity, "%ld/%d", (long)getpid(), i);
    snprintf(c->name, sizeof c->name, "several:%c", '0' + i);
    c->driver->stream_create(&c->stream);
    pthread_mutex_init(&c->lock, NULL);
    tables[i] = (proa_device_table){.name = c->name,
                                    .context = c,
                                    .alloc = several_alloc,
                                    .free = several_free,
                                    .copy_in = copy_in,
                                    .copy_out = copy_out,
                                    .copy = copy,
                                    .copy_strided = copy_strided,
                                    .fill = fill,
                                    .synchronize = synchronize,
                                    .property = property};
}

PROA_API const proa_plugin *proa_plugin_entry(const proa_host_api *host);

const proa_plugin *proa_plugin_entry(const proa_host_api *host)
{
    int n = 0;
    if (cuda_host || host->abi != PROA_DEVICE_ABI) return &plugin;
    cuda_host = host;
    cuda_driver_default()->count(&n);
    for (int i = 0; i < DEVICES && n; i++) open_device(i);
    plugin.n_devices = n ? DEVICES : 0;
    plugin.why_none = "the emulator got no memory";
    return &plugin;
}
