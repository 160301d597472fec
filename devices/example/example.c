/* Template of a device plug-in. Its memory is host memory, but its addresses carry a mark that only this file
 * removes, so that any access from elsewhere crashes; it uses the public headers alone and links nothing of
 * Proa (docs/add-a-device.md). */
#include <proa/device.h>
#include <proa/ops.h>

#include <stdlib.h>
#include <string.h>

static const proa_host_api *host;

/* ---- memory ---------------------------------------------------------------------------- */

/* No address of a process has this bit: reading through a marked pointer is a fault, and adding offsets to
 * one keeps the mark. */
static const uintptr_t mark = (uintptr_t)1 << 52;

static void *real(const void *p) { return (void *)((uintptr_t)p & ~mark); }

static proa_device_memory statistics;

static void *example_alloc(void *context, size_t bytes)
{
    (void)context;
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes) != 0) return NULL;
    int64_t live = __atomic_add_fetch(&statistics.live_bytes, (int64_t)bytes, __ATOMIC_RELAXED);
    if (live > statistics.peak_bytes) statistics.peak_bytes = live;
    return (void *)((uintptr_t)p | mark);
}

static void example_free(void *context, void *p, size_t bytes)
{
    (void)context;
    __atomic_sub_fetch(&statistics.live_bytes, (int64_t)bytes, __ATOMIC_RELAXED);
    free(real(p));
}

static void example_memory(void *context, proa_device_memory *to, bool reset_peak)
{
    (void)context;
    if (reset_peak) statistics.peak_bytes = statistics.live_bytes;
    *to = statistics;
}

/* ---- the three kernels, and the way in and out ------------------------------------------ */

static proa_status copy_in(void *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memcpy(real(to), from, bytes);
    return PROA_OK;
}

static proa_status copy_out(void *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memcpy(to, real(from), bytes);
    return PROA_OK;
}

static proa_status copy(void *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memmove(real(to), real(from), bytes);
    return PROA_OK;
}

static proa_status copy_strided(void *context, const proa_strided_copy *c)
{
    int64_t at[PROA_MAX_DIMS] = {0};
    char *to = real(c->dst);
    const char *from = real(c->src);
    (void)context;
    for (;;) {
        memcpy(to, from, c->item);
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
    char *p = real(to);
    (void)context;
    for (int64_t i = 0; i < count; i++) memcpy(p + (size_t)i * item, value, item);
    return PROA_OK;
}

static proa_status synchronize(void *context)
{
    (void)context; /* everything is done when its call returns */
    return host->error();
}

/* ---- kernels --------------------------------------------------------------------------- */

/* The add op takes any strides (its table entry says so: PROA_OP_STRIDED), this kernel does not. */
static bool is_row_major(const proa_tensor_facts *t)
{
    int64_t step = sizeof(float);
    for (int i = t->ndim - 1; i >= 0; step *= t->shape[i--])
        if (t->shape[i] != 1 && t->strides[i] != step) return false;
    return true;
}

/* float32, of one shape, row-major; anything else is left to another kernel. */
static proa_status prepare_pair(const proa_tensor *x, const proa_tensor *y)
{
    proa_tensor_facts a, b;
    host->facts(x, &a);
    host->facts(y, &b);
    bool fits = a.dtype == PROA_F32 && b.dtype == PROA_F32 && is_row_major(&a) && is_row_major(&b) &&
                a.ndim == b.ndim && !memcmp(a.shape, b.shape, (size_t)a.ndim * sizeof *a.shape);
    return fits ? PROA_OK : PROA_DECLINED;
}

static proa_status add_prepare(const void *args, void **state)
{
    const proa_add_args *a = args;
    (void)state;
    return prepare_pair(a->x, a->y);
}

static proa_status add_run(const void *args, proa_run *run)
{
    const proa_add_args *a = args;
    proa_tensor_facts x, y, out;
    (void)run;
    host->facts(a->x, &x);
    host->facts(a->y, &y);
    host->facts(a->out, &out);
    const float *u = real(x.data), *v = real(y.data);
    float *to = real(out.data);
    for (int64_t i = 0; i < out.numel; i++) to[i] = u[i] + v[i];
    return PROA_OK;
}

static proa_status relu_prepare(const void *args, void **state)
{
    const proa_relu_args *a = args;
    (void)state;
    return prepare_pair(a->x, a->x);
}

static proa_status relu_run(const void *args, proa_run *run)
{
    const proa_relu_args *a = args;
    proa_tensor_facts x, out;
    (void)run;
    host->facts(a->x, &x);
    host->facts(a->out, &out);
    const float *u = real(x.data);
    float *to = real(out.data);
    for (int64_t i = 0; i < out.numel; i++) to[i] = u[i] > 0 || u[i] != u[i] ? u[i] : 0;
    return PROA_OK;
}

static const proa_kernel add_example = {.name = "add_example", .prepare = add_prepare, .run = add_run};
static const proa_kernel relu_example = {.name = "relu_example", .prepare = relu_prepare, .run = relu_run};

/* ---- the table and the entry ------------------------------------------------------------ */

static const struct {
    const char *op;
    const proa_kernel *list[2];
} kernels[] = {{"add", {&add_example, NULL}}, {"relu", {&relu_example, NULL}}};

static const char *describe(void *context)
{
    (void)context;
    return "Example device, host memory behind marked addresses";
}

static proa_device_table table = {
    .name = "example:0",
    .alloc = example_alloc,
    .free = example_free,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy = copy,
    .copy_strided = copy_strided,
    .fill = fill,
    .synchronize = synchronize,
    .memory = example_memory,
    .describe = describe,
};

static proa_plugin plugin = {
    .abi = PROA_DEVICE_ABI, .table_hash = PROA_TABLE_HASH, .devices = &table, .n_devices = 1};

PROA_API const proa_plugin *proa_plugin_entry(const proa_host_api *api);

const proa_plugin *proa_plugin_entry(const proa_host_api *api)
{
    if (host || api->abi != PROA_DEVICE_ABI) return &plugin; /* here already; the host compares abi itself */
    host = api;
    const proa_kernel *const **by_id = api->alloc(api->n_ops * sizeof *by_id);
    if (!by_id) return &plugin;
    memset(by_id, 0, api->n_ops * sizeof *by_id);
    for (uint32_t i = 0; i < api->n_ops; i++)
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            if (!strcmp(api->ops[i]->name, kernels[k].op)) by_id[i] = kernels[k].list;
    table.kernels = by_id;
    table.kernel_ops = api->n_ops;
    return &plugin;
}
