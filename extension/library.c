/* Libraries of custom ops: opens them, hands them the table of Proa's functions, and keeps the names of their
 * ops. A loaded library is never closed. May use core, ops and proa/io.h. */
#define _GNU_SOURCE
#include "extension/extension.h"

#include "core/copy.h"
#include "core/error.h"

#include <proa/ops.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- functions for libraries ------------------------------------------------------------- */

static proa_status host_fail(proa_status code, const char *text) { return proa_fail(code, "%s", text); }

/* Hands a tensor of this scope to the library, which releases it. */
static proa_tensor *hand_out(proa_tensor *t) { return t ? proa_take(t) : NULL; }

static proa_tensor *host_empty(proa_ints shape, proa_dtype dtype)
{
    return hand_out(proa_empty(shape, dtype));
}

static proa_tensor *host_view(proa_tensor *t, proa_ints shape) { return hand_out(proa_reshape(t, shape)); }

static proa_tensor *host_copy(proa_tensor *t)
{
    proa_meta meta = proa_meta_of(t);
    proa_tensor *copy = proa__tensor_new(&meta);
    return copy && proa__copy(copy, t) == PROA_OK ? hand_out(copy) : NULL;
}

static proa_ints host_shape(const proa_tensor *t) { return (proa_ints){t->ndim, t->shape, NULL, NULL}; }

static bool host_is_on_cpu(const proa_tensor *t) { return !(t->flags & PROA_T_DEVICE); }

static proa_status host_call(const proa_op_desc *op, proa_named_tensor *named, int64_t n_named)
{
    PROA_SCOPED;
    proa_tensor **before = proa_scope_alloc((size_t)n_named * sizeof *before + 1);
    if (!before) return proa_error();
    for (int64_t i = 0; i < n_named; i++) before[i] = named[i].tensor;
    PROA_TRY(proa_op_call(op, named, n_named));
    for (int64_t i = 0; i < n_named; i++)
        if (named[i].tensor != before[i]) proa_keep(named[i].tensor);
    return PROA_OK;
}

static proa_extension_api host_api = {.abi = PROA_EXTENSION_ABI,
                                      .fail = host_fail,
                                      .error = proa_error,
                                      .error_text = proa_error_message,
                                      .clear_error = proa_clear_error,
                                      .empty = host_empty,
                                      .view = host_view,
                                      .copy = host_copy,
                                      .retain = proa_retain,
                                      .release = proa_release,
                                      .dtype = proa_dtype_of,
                                      .shape = host_shape,
                                      .data = proa_data,
                                      .is_on_cpu = host_is_on_cpu,
                                      .call = host_call,
                                      .register_op = proa__extension_register,
                                      .input = proa__extension_input,
                                      .attribute = proa__extension_attribute,
                                      .begin = proa__extension_begin,
                                      .end = proa__extension_end,
                                      .infer = proa__extension_infer,
                                      .differentiate = proa__extension_differentiate};

/* ---- names of a library's ops ------------------------------------------------------------ */

typedef struct library {
    struct library *next;
    char path[PATH_MAX];
    size_t count;
    const char **names; /* NULL-terminated */
} library;

/* Loaded libraries. The lock is held while a library registers its ops. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static library *libraries;

static void add_name(const char *name, void *context)
{
    library *l = context;
    const char **grown = realloc(l->names, (l->count + 2) * sizeof *grown);
    if (!grown) {
        proa_fail(PROA_ERR_OUT_OF_MEMORY, "load_extension: no memory for the names of ops");
        return;
    }
    l->names = grown;
    l->names[l->count++] = name;
    l->names[l->count] = NULL;
}

/* ---- loading ----------------------------------------------------------------------------- */

static proa_status not_ours(const char *path, const char *why)
{
    return proa_fail(
        PROA_ERR_UNSUPPORTED,
        "load_extension: %s was built against Paddle's own headers (%s); build its sources against "
        "Proa's: paddle.utils.cpp_extension.load, or -I of the folder that has paddle/extension.h",
        path, why);
}

/* Whether the file names the entry: such a library can be opened with functions that nobody defines, as
 * those of CUDA sources that were left out. One of Paddle's would call Paddle while it is opened. */
static bool names_entry(const char *path)
{
    FILE *file = fopen(path, "rb");
    const size_t length = sizeof PROA_EXTENSION_ENTRY - 1;
    char buffer[1 << 16];
    size_t kept = 0, n;
    bool found = false;
    while (file && !found && (n = fread(buffer + kept, 1, sizeof buffer - kept, file)) > 0) {
        n += kept;
        found = memmem(buffer, n, PROA_EXTENSION_ENTRY, length) != NULL;
        kept = n < length ? n : length;
        memmove(buffer, buffer + n - kept, kept);
    }
    if (file) fclose(file);
    return found;
}

static void *open_library(const char *path)
{
    const int when = names_entry(path) ? RTLD_LAZY : RTLD_NOW;
    void *handle = dlopen(path, when | RTLD_LOCAL | RTLD_NODELETE);
    if (handle) return handle;
    const char *why = dlerror();
    if (!why) why = "?";
    bool of_paddle =
        when == RTLD_NOW && (strstr(why, "6paddle") || strstr(why, "3phi") || strstr(why, "libpaddle"));
    if (of_paddle) not_ours(path, why);
    else proa_fail(PROA_ERR_UNAVAILABLE, "load_extension: %s cannot be loaded: %s", path, why);
    return NULL;
}

/* Registers the ops of an opened library. */
static proa_status enter(void *handle, library *l)
{
    void *symbol = dlsym(handle, PROA_EXTENSION_ENTRY);
    proa_extension_entry_fn entry;
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object pointer */
    host_api.none = proa_none;
    if (symbol) return entry(&host_api, add_name, l);
    if (dlsym(handle, "PD_GetOpMetaInfoMap")) return not_ours(l->path, "it exports PD_GetOpMetaInfoMap");
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "load_extension: %s is no library of custom ops: it exports no %s", l->path,
                     PROA_EXTENSION_ENTRY);
}

/* Opens and enters the library at a resolved path; the caller holds the lock. */
static const char *const *load(const char *path)
{
    for (const library *l = libraries; l; l = l->next)
        if (strcmp(l->path, path) == 0) return l->names;
    void *handle = open_library(path);
    library *l = handle ? calloc(1, sizeof *l) : NULL;
    if (handle && !l) proa_fail(PROA_ERR_OUT_OF_MEMORY, "load_extension: no memory for %s", path);
    if (!l) return NULL;
    snprintf(l->path, sizeof l->path, "%s", path);
    proa_status status = enter(handle, l);
    if (status == PROA_OK && !l->names)
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT, "load_extension: %s has no ops (PD_BUILD_OP)", path);
    if (status == PROA_OK) status = proa_error();
    if (status != PROA_OK) {
        free(l->names);
        free(l);
        return NULL;
    }
    l->next = libraries;
    libraries = l;
    return l->names;
}

const char *const *proa_load_extension(const char *path)
{
    char whole[PATH_MAX];
    if (proa_error()) return NULL;
    if (!path || !realpath(path, whole)) {
        proa_fail(PROA_ERR_NO_FILE, "load_extension: there is no file %s", path ? path : "NULL");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    const char *const *names = load(whole);
    pthread_mutex_unlock(&lock);
    return names;
}

/* ---- libraries that are there already ---------------------------------------------------- */

/* Paths of the process's libraries. */
typedef struct found {
    size_t count;
    char (*paths)[PATH_MAX];
} found;

/* The number of libraries that were ever opened when they were last looked through. */
static unsigned long long looked_at;

/* Whether a library was opened since. The loader's count stands in every entry. */
static int is_new(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    bool *new_ones = context;
    *new_ones = info->dlpi_adds != looked_at;
    looked_at = info->dlpi_adds;
    return 1;
}

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    found *f = context;
    if (!info->dlpi_name || !info->dlpi_name[0]) return 0; /* the program itself, and the kernel's page */
    char(*grown)[PATH_MAX] = realloc(f->paths, (f->count + 1) * sizeof *grown);
    if (!grown) return -1;
    f->paths = grown;
    if (realpath(info->dlpi_name, f->paths[f->count])) f->count++;
    return 0;
}

static bool exports_entry(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    bool has = handle && dlsym(handle, PROA_EXTENSION_ENTRY);
    if (handle) dlclose(handle);
    return has;
}

proa_status proa_load_linked_extensions(void)
{
    found f = {0};
    bool new_ones = false;
    PROA_TRY(proa_error());
    pthread_mutex_lock(&lock);
    dl_iterate_phdr(is_new, &new_ones);
    if (new_ones && dl_iterate_phdr(look, &f) != 0)
        proa_fail(PROA_ERR_OUT_OF_MEMORY, "load_linked_extensions: no memory for the names of libraries");
    for (size_t i = 0; i < f.count && proa_error() == PROA_OK; i++)
        if (exports_entry(f.paths[i]) && !load(f.paths[i]) && proa_error() != PROA_ERR_OUT_OF_MEMORY)
            proa_clear_error(); /* a program with ops of that library says that it does not know them */
    pthread_mutex_unlock(&lock);
    free(f.paths);
    return proa_error();
}
