/* A GPU's row of the device table: memory, copies through pinned memory, waiting, statistics; and
 * errors. Work is queued on one stream a GPU; only copies to the host and synchronize wait. */
#include "runtime.h"
#include "table.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const proa_host_api *cuda_host;

/* ---- errors ---------------------------------------------------------------------------- */

proa_status cuda_fail(proa_status code, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cuda_host->fail(code, text);
}

/* The ops queued lately, the last one first. */
static void list_ops(const cuda_context *c, char *text, size_t room)
{
    size_t used = 0;
    *text = '\0';
    for (unsigned i = 0; i < CUDA_LAST_OPS && i < c->n_last && used < room; i++) {
        const proa_op *op = c->last[(c->n_last - 1 - i) % CUDA_LAST_OPS];
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", op->name);
    }
}

proa_status cuda_check(cuda_context *c, int code, const char *what, bool late)
{
    if (code == 0) return PROA_OK;
    const char *why = c->driver->error_text(code);
    if (!late || !c->n_last)
        return cuda_fail(PROA_ERR_INTERNAL, "%s%s%s on %s: %s", c->running ? c->running->name : "",
                         c->running ? ": " : "", what, c->name, why);
    char ops[256];
    list_ops(c, ops, sizeof ops);
    return cuda_fail(PROA_ERR_INTERNAL,
                     "%s on %s: %s; it comes from one of the ops queued before, the last of which are %s "
                     "(FLAGS_device_sync=1 names the very op)",
                     what, c->name, why, ops);
}

/* After a wait: its own code, then what kernels found wrong meanwhile. */
static proa_status check_waited(cuda_context *c, int code, const char *what)
{
    PROA_TRY(cuda_check(c, code, what, true));
    cuda_fault f = *c->fault;
    if (!f.raised) return PROA_OK;
    c->fault->raised = 0;
    return cuda_fail(PROA_ERR_OUT_OF_RANGE, "%s: %s: entry %lld is %lld; expected %lld to %lld (found by %s)",
                     f.op, f.argument, (long long)f.entry, (long long)f.value, (long long)f.first,
                     (long long)f.last, c->name);
}

static void begin(void *context, const proa_op *op)
{
    cuda_context *c = context;
    c->running = op;
    if (!op) return;
    c->last[c->n_last++ % CUDA_LAST_OPS] = op;
    c->driver->use(c->index);
}

/* ---- memory ---------------------------------------------------------------------------- */

static void *take(cuda_context *c, size_t bytes)
{
    void *p = cuda_pool_take(c->pool, bytes, c->running ? c->running->name : NULL);
    if (p) return p;
    char report[512];
    cuda_pool_report(c->pool, report, sizeof report);
    cuda_fail(PROA_ERR_OUT_OF_MEMORY, "out of memory on %s: %zu bytes%s%s; %s, of %.0f MiB", c->name, bytes,
              c->running ? " for " : "", c->running ? c->running->name : "", report,
              (double)c->description.memory / (1 << 20));
    return NULL;
}

static void *gpu_alloc(void *context, size_t bytes) { return take(context, bytes); }

static void gpu_free(void *context, void *p, size_t bytes)
{
    cuda_context *c = context;
    (void)bytes;
    cuda_pool_give(c->pool, p);
}

void *cuda_scratch(cuda_context *c, size_t bytes) { return take(c, bytes ? bytes : 1); }
void cuda_scratch_free(cuda_context *c, void *p) { cuda_pool_give(c->pool, p); }

static void gpu_memory(void *context, proa_device_memory *to, bool reset_peak)
{
    cuda_context *c = context;
    cuda_pool_stats s = cuda_pool_get_stats(c->pool, reset_peak);
    *to = (proa_device_memory){s.live_bytes, s.peak_bytes, s.held_bytes - s.live_bytes,
                               (int64_t)c->description.memory};
}

static void gpu_trim(void *context) { cuda_pool_trim(((cuda_context *)context)->pool); }

/* ---- copies ---------------------------------------------------------------------------- */

/* Two pieces of pinned memory that take turns: one is filled by the host while the other is copied. */
enum { PIECES = 2 };
static const size_t piece_bytes = (size_t)4 << 20;

typedef struct cuda_staging {
    pthread_mutex_t lock;
    char *piece[PIECES];
    void *event[PIECES]; /* the last copy from or to it */
    bool busy[PIECES];
    unsigned next;
} cuda_staging;

static cuda_staging *new_staging(cuda_context *c)
{
    cuda_staging *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < PIECES; i++) {
        void *p = NULL;
        if (c->driver->host_malloc(&p, piece_bytes) != 0 || c->driver->event_create(&s->event[i]) != 0)
            return NULL; /* the process goes on without this GPU */
        s->piece[i] = p;
    }
    return s;
}

static int take_piece(cuda_context *c, int *at)
{
    cuda_staging *s = c->staging;
    *at = (int)(s->next++ % PIECES);
    if (!s->busy[*at]) return 0;
    s->busy[*at] = false;
    return c->driver->event_sync(s->event[*at]);
}

static int copy_piece(cuda_context *c, int at, char *to, const char *from, size_t n, cuda_direction direction)
{
    int code = c->driver->copy(to, from, n, direction, c->stream);
    if (code == 0) code = c->driver->event_record(c->staging->event[at], c->stream);
    c->staging->busy[at] = code == 0;
    return code;
}

static proa_status gpu_copy_in(void *context, void *to, const void *from, size_t bytes)
{
    cuda_context *c = context;
    int code = c->driver->use(c->index);
    pthread_mutex_lock(&c->staging->lock);
    for (size_t done = 0, n; done < bytes && code == 0; done += n) {
        int at;
        n = bytes - done < piece_bytes ? bytes - done : piece_bytes;
        code = take_piece(c, &at);
        if (code != 0) break;
        memcpy(c->staging->piece[at], (const char *)from + done, n);
        code = copy_piece(c, at, (char *)to + done, c->staging->piece[at], n, CUDA_TO_DEVICE);
    }
    pthread_mutex_unlock(&c->staging->lock);
    return cuda_check(c, code, "a copy to the device", true);
}

proa_status cuda_write(cuda_context *c, void *to, const void *from, size_t bytes)
{
    return gpu_copy_in(c, to, from, bytes);
}

static proa_status gpu_copy_out(void *context, void *to, const void *from, size_t bytes)
{
    cuda_context *c = context;
    int code = c->driver->use(c->index);
    pthread_mutex_lock(&c->staging->lock);
    for (size_t done = 0, n; done < bytes && code == 0; done += n) {
        int at;
        n = bytes - done < piece_bytes ? bytes - done : piece_bytes;
        code = take_piece(c, &at);
        if (code == 0)
            code = copy_piece(c, at, c->staging->piece[at], (const char *)from + done, n, CUDA_TO_HOST);
        if (code == 0) code = c->driver->event_sync(c->staging->event[at]);
        if (code == 0) memcpy((char *)to + done, c->staging->piece[at], n);
    }
    pthread_mutex_unlock(&c->staging->lock);
    return check_waited(c, code, "a copy to the host");
}

static proa_status gpu_copy(void *context, void *to, const void *from, size_t bytes)
{
    cuda_context *c = context;
    int code = c->driver->use(c->index);
    if (code == 0) code = c->driver->copy(to, from, bytes, CUDA_ON_DEVICE, c->stream);
    return cuda_check(c, code, "a copy", false);
}

static proa_status gpu_copy_strided(void *context, const proa_strided_copy *copy)
{
    cuda_context *c = context;
    c->driver->use(c->index);
    return cuda_copy_strided(c, copy);
}

static proa_status gpu_fill(void *context, void *to, const void *value, size_t item, int64_t count)
{
    cuda_context *c = context;
    c->driver->use(c->index);
    return cuda_fill(c, to, value, item, count);
}

static proa_status gpu_synchronize(void *context)
{
    cuda_context *c = context;
    int code = c->driver->use(c->index);
    if (code == 0) code = c->driver->stream_sync(c->stream);
    return check_waited(c, code, "synchronize");
}

static bool new_fault(cuda_context *c)
{
    void *p = NULL;
    if (c->driver->host_malloc(&p, sizeof *c->fault) != 0) return false;
    c->fault = memset(p, 0, sizeof *c->fault);
    return true;
}

/* ---- asking ---------------------------------------------------------------------------- */

static const char *describe(void *context)
{
    cuda_context *c = context;
    const char *why_not = cuda_convolution_why_not();
    snprintf(c->text, sizeof c->text, "%s, compute capability %d.%d, %.1f GiB%s%s", c->description.name,
             c->description.major, c->description.minor, (double)c->description.memory / (1 << 30),
             *why_not ? "; no convolution: " : "", why_not);
    return c->text;
}

static int property(void *context, const char *name, int64_t *value)
{
    const cuda_context *c = context;
    if (!strcmp(name, "compute_major")) *value = c->description.major;
    else if (!strcmp(name, "compute_minor")) *value = c->description.minor;
    else if (!strcmp(name, "multiprocessors")) *value = c->description.multiprocessors;
    else return 0;
    return 1;
}

bool cuda_table_make(proa_device_table *table, int index, const cuda_driver *driver)
{
    cuda_context *c = calloc(1, sizeof *c);
    if (!c) return false;
    c->index = index;
    c->driver = driver;
    snprintf(c->name, sizeof c->name, "gpu:%d", index);
    c->pool = cuda_pool_new(driver, index);
    bool ok = c->pool && driver->use(index) == 0 && driver->describe(index, &c->description) == 0 &&
              driver->stream_create(&c->stream) == 0 && new_fault(c) && (c->staging = new_staging(c));
    if (!ok) {
        cuda_pool_free(c->pool);
        free(c);
        return false;
    }
    *table = (proa_device_table){.name = c->name,
                                 .context = c,
                                 .alloc = gpu_alloc,
                                 .free = gpu_free,
                                 .copy_in = gpu_copy_in,
                                 .copy_out = gpu_copy_out,
                                 .copy = gpu_copy,
                                 .copy_strided = gpu_copy_strided,
                                 .fill = gpu_fill,
                                 .synchronize = gpu_synchronize,
                                 .begin = begin,
                                 .memory = gpu_memory,
                                 .trim = gpu_trim,
                                 .describe = describe,
                                 .property = property};
    return true;
}
