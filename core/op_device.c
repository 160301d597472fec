/* Numbers the device names of programs' ops (Paddle's op_device attribute): a name's number is its index in a
 * table of fixed size, to which names are added and from which none is removed. */
#include "core/op_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

_Thread_local int32_t proa__op_device __attribute__((tls_model("initial-exec")));

enum { MAX_NAMES = 512, MAX_LENGTH = 32 }; /* 16 KiB; a job's pipeline has a name a stage */
static char names[MAX_NAMES][MAX_LENGTH];
static atomic_int count = 1; /* names[0] is "" */
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static int32_t find(const char *name, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

int32_t proa__op_device_number(const char *name)
{
    if (!name || !*name) return 0;
    int32_t found = find(name, atomic_load(&count));
    if (found >= 0 || strlen(name) >= MAX_LENGTH) return found;
    pthread_mutex_lock(&adding);
    int32_t n = atomic_load(&count);
    found = find(name, n);
    if (found < 0 && n < MAX_NAMES) {
        strcpy(names[n], name);
        atomic_store(&count, n + 1);
        found = n;
    }
    pthread_mutex_unlock(&adding);
    return found;
}

const char *proa__op_device_name(int32_t number)
{
    return number > 0 && number < atomic_load(&count) ? names[number] : "";
}
