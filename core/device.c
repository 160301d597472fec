/* The device table: the CPU is device 0, plug-ins add the rest. The table only grows, so that reading it
 * takes no lock. Uses streams. */
#include "core/thread.h"

#include <pthread.h>

enum { MOST_DEVICES = 64 };

static void *cpu_alloc(size_t bytes) { return proa__alloc(bytes); }

static void cpu_free(void *p, size_t bytes)
{
    (void)bytes;
    proa__free(p);
}

static proa_status cpu_copy(void *to, const void *from, size_t bytes, proa_stream *s)
{
    (void)s;
    if (bytes > 0) memcpy(to, from, bytes);
    return PROA_OK;
}

static proa_status cpu_synchronize(proa_stream *s)
{
    (void)s;
    return PROA_OK;
}

static const proa_device_ops cpu = {"cpu", cpu_alloc, cpu_free, cpu_copy, cpu_copy, cpu_synchronize};

static const proa_device_ops *devices[MOST_DEVICES] = {&cpu};
static atomic_int device_count = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const proa_device_ops *proa__device(int device)
{
    int n = atomic_load_explicit(&device_count, memory_order_acquire);
    return device >= 0 && device < n ? devices[device] : NULL;
}

/* The device of that name; "gpu" means "gpu:0". −1 if there is none. */
static int find(const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; proa__device(i); i++) {
        const char *have = devices[i]->name;
        if (strcmp(have, name) == 0) return i;
        if (strncmp(have, name, length) == 0 && strcmp(have + length, ":0") == 0) return i;
    }
    return -1;
}

int proa__device_add(const proa_device_ops *ops)
{
    if (!ops || !ops->name || !ops->alloc || !ops->free || !ops->copy_in || !ops->copy_out) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "device: it needs a name, alloc, free, copy_in and copy_out to be added");
        return -1;
    }
    pthread_mutex_lock(&lock);
    int id = atomic_load_explicit(&device_count, memory_order_relaxed);
    bool taken = find(ops->name) >= 0, full = id == MOST_DEVICES;
    if (!taken && !full) {
        devices[id] = ops;
        atomic_store_explicit(&device_count, id + 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (!taken && !full) return id;
    if (taken) proa_fail(PROA_ERR_INVALID_ARGUMENT, "device: there is a '%.64s' already", ops->name);
    else proa_fail(PROA_ERR_OUT_OF_RANGE, "device: the table is full (%d devices)", MOST_DEVICES);
    return -1;
}

static proa_status no_device(const char *name)
{
    char have[512];
    size_t used = 0;
    for (int i = 0; proa__device(i) && used < sizeof have; i++)
        used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", devices[i]->name);
    const char *how = "";
    if (strncmp(name, "gpu", 3) == 0 || strncmp(name, "cuda", 4) == 0)
        how = "; NVIDIA GPUs are in libproa_cuda.so: build it with 'cmake --preset cuda' or install the "
              "proa-cuda wheel, on a machine with a driver";
    return proa_fail(PROA_ERR_UNAVAILABLE, "set_device: there is no device '%.64s' here, only %s%s", name,
                     have, how);
}

proa_status proa_set_device(const char *name)
{
    PROA_TRY(proa_error());
    if (!name) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "set_device: the name is NULL");
    int id = *name ? find(name) : -1;
    if (id < 0) return no_device(name);
    proa_stream *stream = proa__stream();
    PROA_TRY(proa_error());
    stream->device = id;
    return PROA_OK;
}

const char *proa_get_device(void)
{
    const proa__thread *me = proa__thread_self;
    return devices[me ? me->stream.device : PROA_CPU]->name;
}
