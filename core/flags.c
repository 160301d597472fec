/* FLAGS_<name>: read from the environment at first use, or set by a call; reading an integer flag is one
 * atomic load. Setting a flag also sets what is derived from it: the memory cap, the non-temporal threshold,
 * the checks of the watch door and of kernel selection. Uses pthread_once. */
#define _GNU_SOURCE
#include "core/copy.h"
#include "core/thread.h"

#include <pthread.h>
#include <stdlib.h>

#define VALUE 256

static struct {
    const char *name, *fallback;
    bool is_text;
} const table[PROA_FLAG_COUNT] = {
#define PROA_X(name, fallback, meaning)                                                \
    {#name, fallback,                                                                  \
     PROA_FLAG_##name == PROA_FLAG_backends || PROA_FLAG_##name == PROA_FLAG_passes || \
         PROA_FLAG_##name == PROA_FLAG_device_plugins},
    PROA_FLAGS(PROA_X)
#undef PROA_X
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char values[PROA_FLAG_COUNT][VALUE];   /* the flags' texts; guarded by the lock */
static atomic_llong numbers[PROA_FLAG_COUNT]; /* integer flag: its value; text flag: times set */
static atomic_bool ready;
atomic_bool proa__backends_narrowed, proa__choices_watched;
static atomic_bool verbose;
atomic_llong proa__nontemporal_from = 1 << 21; /* 2 MiB until the flags are read */

static bool parse(const char *text, long long *number)
{
    static const char *const yes[] = {"true", "True", "TRUE"}, *const no[] = {"false", "False", "FALSE", ""};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcmp(text, yes[i]) == 0) return *number = 1, true;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (strcmp(text, no[i]) == 0) return *number = 0, true;
    char *end = NULL;
    *number = strtoll(text, &end, 10);
    while (*end == ' ') end++;
    return *end == '\0';
}

/* Sets a flag; the caller holds the lock. False: `text` is not a value of this flag, and nothing changed. */
static bool store(int flag, const char *text)
{
    long long number = 0;
    if (strlen(text) >= VALUE || (!table[flag].is_text && !parse(text, &number))) return false;
    if (table[flag].is_text) number = atomic_load_explicit(&numbers[flag], memory_order_relaxed) + 1;
    memmove(values[flag], text, strlen(text) + 1);
    atomic_store_explicit(&numbers[flag], number, memory_order_relaxed);
    if (flag == PROA_FLAG_memory_cap) proa_memory_set_cap(number);
    if (flag == PROA_FLAG_nontemporal_bytes)
        atomic_store_explicit(&proa__nontemporal_from, number > 0 ? number : proa__cache_quarter(),
                              memory_order_relaxed);
    if (flag == PROA_FLAG_check_nan_inf) proa__watch_values(number != 0);
    if (flag == PROA_FLAG_backends)
        atomic_store_explicit(&proa__backends_narrowed, strcmp(text, table[flag].fallback) != 0,
                              memory_order_release);
    if (flag == PROA_FLAG_verbose) atomic_store_explicit(&verbose, number != 0, memory_order_relaxed);
    bool watched = atomic_load_explicit(&proa__backends_narrowed, memory_order_relaxed) ||
                   atomic_load_explicit(&verbose, memory_order_relaxed);
    atomic_store_explicit(&proa__choices_watched, watched, memory_order_release);
    return true;
}

/* Names of before 0.2, accepted until 0.3. */
static const struct {
    const char *old;
    proa_flag flag;
} aliases[] = {{"past_bytes", PROA_FLAG_nontemporal_bytes}};

/* The value that the environment gives a flag, under its present or an old name; NULL: none. */
static const char *from_environment(int flag)
{
    char name[64];
    snprintf(name, sizeof name, "FLAGS_%s", table[flag].name);
    const char *text = getenv(name);
    for (size_t i = 0; !text && i < sizeof aliases / sizeof *aliases; i++) {
        snprintf(name, sizeof name, "FLAGS_%s", aliases[i].old);
        if ((int)aliases[i].flag == flag) text = getenv(name);
    }
    return text;
}

static void setup(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PROA_FLAG_COUNT; i++) {
        const char *text = from_environment(i);
        if (!text || !store(i, text)) (void)store(i, table[i].fallback);
    }
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&ready, true, memory_order_release);
}

static void need(void)
{
    if (PROA__UNLIKELY(!atomic_load_explicit(&ready, memory_order_acquire))) pthread_once(&once, setup);
}

void proa__flags_ready(void) { need(); }

int64_t proa__flag_int(proa_flag flag)
{
    need();
    return atomic_load_explicit(&numbers[flag], memory_order_relaxed);
}

/* The flag called `name`, with or without FLAGS_ before it; −1 and an error if there is none. */
static int find(const char *name)
{
    if (!name) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "flag: the name is NULL"), -1;
    const char *bare = strncmp(name, "FLAGS_", 6) == 0 ? name + 6 : name;
    for (int i = 0; i < PROA_FLAG_COUNT; i++)
        if (strcmp(bare, table[i].name) == 0) return i;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(bare, aliases[i].old) == 0) return (int)aliases[i].flag;
    char known[512];
    size_t used = 0;
    for (int i = 0; i < PROA_FLAG_COUNT && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", table[i].name);
    proa_fail(PROA_ERR_NOT_FOUND, "flag: there is no FLAGS_%s; there are: %s", bare, known);
    return -1;
}

proa_status proa_set_flag(const char *name, const char *value)
{
    need();
    PROA_TRY(proa_error());
    int flag = find(name);
    if (flag < 0) return proa_error();
    if (!value) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "FLAGS_%s: the value is NULL", table[flag].name);
    pthread_mutex_lock(&lock);
    bool stored = store(flag, value);
    pthread_mutex_unlock(&lock);
    if (stored) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "FLAGS_%s: expected %s, got '%.64s'", table[flag].name,
                     table[flag].is_text ? "at most 255 characters" : "an integer, true or false", value);
}

const char *proa_get_flag(const char *name)
{
    need();
    int flag = find(name);
    if (flag < 0) return NULL;
    char *text = proa__text_next();
    pthread_mutex_lock(&lock);
    memcpy(text, values[flag], PROA__TEXT);
    pthread_mutex_unlock(&lock);
    return text;
}
_Static_assert(VALUE <= (int)PROA__TEXT, "a flag's value fits into a text");

/* False if FLAGS_backends excludes the kernel's family. The portable families are always allowed: cpu, which
 * every op falls back to, and any, whose kernels run on every device. */
bool proa__backend_allowed(const proa_kernel *kernel)
{
    if (!atomic_load_explicit(&proa__backends_narrowed, memory_order_acquire)) return true;
    const char *last = strrchr(kernel->name, '_');
    const char *family = last ? last + 1 : kernel->name;
    size_t length = strlen(family);
    if (strcmp(family, "cpu") == 0 || strcmp(family, "any") == 0) return true;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const char *at = values[PROA_FLAG_backends]; !found && *at;) {
        size_t n = strcspn(at, ", ");
        found = n == length && memcmp(at, family, n) == 0;
        at += n;
        at += strspn(at, ", ");
    }
    pthread_mutex_unlock(&lock);
    return found;
}
