/* Looks up ops by name, registers user-defined ops, and selects the kernels of this CPU's level when the
 * library is loaded. May use core and the generated table. */
#include "core/internal.h"
#include "kernels.h"
#include "ops/registry.h"
#include "ops_impl.h"

#include <pthread.h>
#include <stdlib.h>

/* All ops, sorted by name for binary search; rebuilt under the write lock when an op is added. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static const proa_op **sorted;
static size_t n_sorted;
/* Ops that were added at run time, in the order of registration. */
static const proa_op **registered;
static size_t n_registered;

__attribute__((constructor)) static void choose_kernels(void)
{
    switch (proa__cpu_level()) {
#ifdef PROA_HAVE_LEVELS
    case 2: proa__kernels_fill_v4(proa__kernels); break;
    case 1: proa__kernels_fill_v3(proa__kernels); break;
#endif
    default: proa__kernels_fill_base(proa__kernels); break;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const proa_op *const *)a)->name, (*(const proa_op *const *)b)->name);
}

/* Sorts the table and `extra` into a new array. The caller holds the write lock. */
static proa_status rebuild(const proa_op *extra)
{
    size_t n = sorted ? n_sorted : proa_op_count;
    const proa_op **next = proa__alloc((n + 1) * sizeof *next);
    if (!next) return proa_error();
    memcpy(next, sorted ? (const void *)sorted : (const void *)proa_op_table, n * sizeof *next);
    if (extra) next[n++] = extra;
    qsort(next, n, sizeof *next, by_name);
    proa__free(sorted);
    sorted = next;
    n_sorted = n;
    return PROA_OK;
}

/* Adds an op to both lists. The caller holds the write lock. */
static proa_status enter(const proa_op *op)
{
    const proa_op **grown = proa__alloc((n_registered + 1) * sizeof *grown);
    if (!grown || rebuild(op) != PROA_OK) {
        proa__free(grown);
        return proa_error();
    }
    if (n_registered) memcpy(grown, registered, n_registered * sizeof *grown);
    proa__free(registered);
    registered = grown;
    registered[n_registered++] = op;
    return PROA_OK;
}

static const proa_op *find_locked(const char *name)
{
    proa_op probe = {.name = name};
    const proa_op *key = &probe;
    const proa_op **found = bsearch(&key, sorted, n_sorted, sizeof *sorted, by_name);
    return found ? *found : NULL;
}

const proa_op *proa_find_op(const char *name)
{
    if (!name) return NULL;
    pthread_rwlock_rdlock(&lock);
    if (!sorted) {
        pthread_rwlock_unlock(&lock);
        pthread_rwlock_wrlock(&lock);
        if (!sorted && rebuild(NULL) != PROA_OK) {
            pthread_rwlock_unlock(&lock);
            return NULL;
        }
    }
    const proa_op *op = find_locked(name);
    pthread_rwlock_unlock(&lock);
    return op;
}

proa_status proa_register_op(const proa_op *op, const char *table_hash)
{
    if (!op || !op->name || !table_hash)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "register_op: op and table_hash must be given");
    if (strcmp(table_hash, proa_table_hash) != 0)
        return proa_fail(PROA_ERR_BAD_STATE,
                         "register_op: op %s was built against another Proa (table %.12s…, this library has "
                         "%.12s…); run the installed generator on its YAML again and rebuild it",
                         op->name, table_hash, proa_table_hash);
    if (proa_find_op(op->name))
        return proa_fail(PROA_ERR_BAD_STATE, "register_op: an op called %s exists already", op->name);
    PROA_TRY(proa_error());
    pthread_rwlock_wrlock(&lock);
    proa_status status = enter(op);
    pthread_rwlock_unlock(&lock);
    return status;
}

const proa_op *proa__registered_op(size_t index)
{
    pthread_rwlock_rdlock(&lock);
    const proa_op *op = index < n_registered ? registered[index] : NULL;
    pthread_rwlock_unlock(&lock);
    return op;
}
