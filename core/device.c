/* The device table, by device id: 0 is the CPU, plug-ins add the others. Also each device's communicators,
 * and the device of the calling thread. Entries are never removed, so reading the table takes no lock. Uses
 * streams; plugin.c loads the plug-in of a device that is not in the table. */
#include "core/device.h"
#include "core/group.h"
#include "core/thread.h"

#include <pthread.h>

/* The CPU's entry has only a name: storage.c is its allocator, and the ops hold its kernels. */
static const proa_device_table cpu = {.name = "cpu"};

static const proa_device_table *devices[PROA__MAX_DEVICES] = {&cpu};
static atomic_int device_count = 1;
static const proa_communicators *_Atomic communicators[PROA__MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const proa_device_table *proa__device(int device)
{
    int n = atomic_load_explicit(&device_count, memory_order_acquire);
    return device >= 0 && device < n ? devices[device] : NULL;
}

const proa_communicators *proa__communicators_of(int device)
{
    return proa__device(device) ? atomic_load_explicit(&communicators[device], memory_order_acquire) : NULL;
}

void proa__set_communicators(int device, const proa_communicators *c)
{
    atomic_store_explicit(&communicators[device], c, memory_order_release);
}

const char *proa_device_name(int index)
{
    const proa_device_table *table = proa__device(index);
    return table ? table->name : NULL;
}

/* The id of the device of that name; "gpu" means "gpu:0". −1, without an error, if it is not in the table. */
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

static bool is_whole(const proa_device_table *t)
{
    return t && t->name && t->alloc && t->free && t->copy_in && t->copy_out && t->copy && t->copy_strided &&
           t->fill && t->synchronize;
}

int proa_add_device(const proa_device_table *table)
{
    if (!is_whole(table)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "device: to be added it needs a name, alloc, free, copy_in, copy_out, copy, copy_strided, "
                  "fill and synchronize");
        return -1;
    }
    pthread_mutex_lock(&lock);
    int id = atomic_load_explicit(&device_count, memory_order_relaxed);
    bool taken = find(table->name) >= 0, full = id == PROA__MAX_DEVICES;
    if (!taken && !full) {
        devices[id] = table;
        atomic_store_explicit(&device_count, id + 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (!taken && !full) return id;
    if (taken) proa_fail(PROA_ERR_INVALID_ARGUMENT, "device: there is a '%.64s' already", table->name);
    else proa_fail(PROA_ERR_OUT_OF_RANGE, "device: the table is full (%d devices)", PROA__MAX_DEVICES);
    return -1;
}

static proa_status no_device(const char *who, const char *name, const char *why)
{
    char have[512];
    size_t used = 0;
    for (int i = 0; proa__device(i) && used < sizeof have; i++)
        used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", devices[i]->name);
    return proa_fail(PROA_ERR_UNAVAILABLE, "%s: there is no device '%.64s' here, only %s%s", who, name, have,
                     why);
}

int proa_device_find(const char *who, const char *name)
{
    if (proa_error()) return -1;
    if (!name) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the device's name is NULL", who), -1;
    int id = *name ? find(name) : -1;
    if (id >= 0) return id;
    char why[PROA__WHY];
    proa__plugins_for(name, why);
    if (proa_error()) return -1;
    id = *name ? find(name) : -1;
    if (id < 0) no_device(who, name, why);
    return id;
}

const proa_device_table *proa_find_device(const char *name)
{
    int id = proa_device_find("device", name);
    return id < 0 ? NULL : proa__device(id);
}

proa_status proa_set_device(const char *name)
{
    int id = proa_device_find("set_device", name);
    if (id < 0) return proa_error();
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

const char *proa_device_of(const proa_tensor *t)
{
    return devices[t && t->storage ? t->storage->device : PROA_CPU]->name;
}

int proa_device_use(int device)
{
    proa_stream *stream = proa__stream();
    int was = stream->device;
    if (was != device) stream->device = device;
    return was;
}
