/* Entry point of the plug-in: counts the GPUs, makes a device table for each, and sorts the self-registered
 * kernels by op id. */
#include "runtime.h"
#include "table.h"

#include <string.h>

enum { MAX_GPUS = 16 };

cuda_registered *cuda_kernels;

static proa_device_table tables[MAX_GPUS];
static char why[256];
static proa_plugin plugin = {
    .abi = PROA_DEVICE_ABI, .table_hash = PROA_TABLE_HASH, .devices = tables, .why_none = why};

/* Lists by op id: one block for the rows and for their entries. */
static const proa_kernel *const *const *sort_kernels(const proa_host_api *host)
{
    size_t n = 0;
    for (const cuda_registered *r = cuda_kernels; r; r = r->next) n++;
    size_t rows = host->n_ops * sizeof(const proa_kernel *const *);
    char *block = host->alloc(rows + (n + host->n_ops) * sizeof(const proa_kernel *));
    if (!block) return NULL;
    const proa_kernel *const **by_id = (const proa_kernel *const **)(void *)block;
    const proa_kernel **entry = (const proa_kernel **)(void *)(block + rows);
    for (uint32_t i = 0; i < host->n_ops; i++) {
        by_id[i] = entry;
        for (const cuda_registered *r = cuda_kernels; r; r = r->next)
            if (!strcmp(r->op, host->ops[i]->name)) *entry++ = r->kernel;
        if (by_id[i] == entry) by_id[i] = NULL;
        else *entry++ = NULL;
    }
    return by_id;
}

const cuda_context *cuda_gpu(int i) { return i < plugin.n_devices ? tables[i].context : NULL; }

PROA_API const proa_plugin *proa_plugin_entry(const proa_host_api *host);

const proa_plugin *proa_plugin_entry(const proa_host_api *host)
{
    if (cuda_host || host->abi != PROA_DEVICE_ABI || strcmp(host->table_hash, PROA_TABLE_HASH) != 0)
        return &plugin;
    cuda_host = host;
    const cuda_driver *driver = cuda_driver_default();
    int n = 0, code = driver->count(&n);
    if (code != 0 || n == 0) {
        cuda_host = NULL; /* a driver may be installed later */
        snprintf(why, sizeof why, "%s", code ? driver->error_text(code) : "the driver sees no GPU");
        return &plugin;
    }
    const proa_kernel *const *const *kernels = sort_kernels(host);
    const char *wrong = kernels ? NULL : "out of memory";
    for (int i = 0; kernels && i < n && i < MAX_GPUS; i++) {
        const char *here = cuda_table_make(&tables[plugin.n_devices], i, driver);
        if (here) {
            wrong = here;
            continue;
        }
        tables[plugin.n_devices].kernels = kernels;
        tables[plugin.n_devices++].kernel_ops = host->n_ops;
    }
    if (plugin.n_devices == 0)
        snprintf(why, sizeof why, "no GPU can be used: %s (this plug-in has code for compute capability %s)",
                 wrong, driver->made_for);
    return &plugin;
}
