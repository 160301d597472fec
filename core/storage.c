/* Storages: reference-counted memory of a device. On the CPU the storage struct is in the head of the
 * allocator block that holds its data, so that a tensor's memory is one block. Uses memory.c and the device
 * table. */
#include "core/device.h"
#include "core/thread.h"

/* The storage in the head of a block of `payload` bytes. */
static inline proa_storage *in_head(size_t payload, int device, size_t bytes)
{
    char *data = proa__alloc(payload);
    if (PROA__UNLIKELY(!data)) return NULL;
    proa_storage *s = (proa_storage *)(void *)(data - PROA__HEAD);
    atomic_init(&s->refs, 1);
    s->device = proa__device_bits(device);
    atomic_init(&s->version, 0);
    atomic_init(&s->unguarded, 0);
    s->format = 0;
    s->padded = false;
    s->window = false;
    atomic_init(&s->pinned, false);
    s->data = data;
    s->bytes = bytes;
    s->release = NULL;
    s->context = NULL;
    return s;
}

static inline void free_head(proa_storage *s) { proa__free((char *)s + PROA__HEAD); }

static __attribute__((noinline)) proa_storage *on_device(size_t bytes, int device)
{
    const proa_device_table *d = proa__device(device);
    if (!d) {
        proa_fail(PROA_ERR_UNAVAILABLE, "storage: there is no device %d", device);
        return NULL;
    }
    proa_storage *s = in_head(0, device, bytes);
    if (!s) return NULL;
    s->data = d->alloc(d->context, bytes ? bytes : 1);
    if (s->data) return s;
    proa_fail(PROA_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes on %s", bytes, d->name);
    free_head(s);
    return NULL;
}

proa_storage *proa__storage_new(size_t bytes, int device)
{
    return PROA__LIKELY(device == PROA_CPU) ? in_head(bytes, device, bytes) : on_device(bytes, device);
}

proa_storage *proa__storage_sent(const void *from, size_t bytes, int device)
{
    const proa_device_table *d = proa__device(device);
    proa_storage *s = d && d->send && bytes ? in_head(0, device, bytes) : NULL;
    if (!s) return NULL;
    s->data = d->send(d->context, from, bytes);
    if (s->data) return s;
    free_head(s);
    return NULL;
}

static void free_device(proa_storage *s)
{
    const proa_device_table *d = proa__device(s->device);
    if (s->data) d->free(d->context, s->data, s->bytes ? s->bytes : 1);
    if (s->context) d->free(d->context, s->context, s->bytes ? s->bytes : 1); /* memory of a blocked form */
}

static void nothing(void *context) { (void)context; }

proa_storage *proa__storage_foreign(void *data, size_t bytes)
{
    proa_storage *s = in_head(0, PROA_CPU, bytes);
    if (!s) return NULL;
    s->data = data;
    s->release = nothing;
    return s;
}

void proa__storage_release(proa_storage *s)
{
    if (atomic_load_explicit(&s->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (PROA__UNLIKELY(s->release != NULL)) s->release(s->context);
    else if (PROA__UNLIKELY(s->device != PROA_CPU)) free_device(s);
    free_head(s);
}
