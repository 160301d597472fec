/* Makes, converts and drops the blocked forms of storages. Also implements windows: storages whose blocked
 * elements are in another storage's memory, such as a plan's arena. Uses storage.c, deferred.c, the device
 * table and the hooks that a kernel library has installed. */
#include "core/args_visit.h"
#include "core/blocked.h"
#include "core/copy.h"
#include "core/deferred.h"
#include "core/device.h"
#include "core/thread.h"

#include <pthread.h>

static const proa__blocked_hooks *hooks;

/* Held while a row-major form is made of a blocked one, which is rare: mostly at a network's inputs and
 * outputs. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

void proa__blocked_install(const proa__blocked_hooks *h) { hooks = h; }

bool proa__blocking(void) { return hooks && proa__flag_int(PROA_FLAG_blocked); }

/* ---- memory of the CPU or of a device ------------------------------------------------------ */

static char *take_memory(int device, size_t bytes)
{
    if (PROA__LIKELY(device == PROA_CPU)) return proa__alloc(bytes);
    const proa_device_table *d = proa__device(device);
    char *p = d->alloc(d->context, bytes ? bytes : 1);
    if (!p) proa_fail(PROA_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes on %s", bytes, d->name);
    return p;
}

static void give_memory(int device, void *p, size_t bytes)
{
    const proa_device_table *d = proa__device(device);
    if (device == PROA_CPU) proa__free(p);
    else if (p) d->free(d->context, p, bytes ? bytes : 1);
}

static size_t plain_bytes(const proa_tensor *t, proa_dtype dtype)
{
    return (size_t)t->numel * proa__dtype_bytes((unsigned)dtype);
}

/* A handle with t's shape that owns nothing, on device memory; format: PROA_CHANNELS_LAST, or 0 for
 * row-major. */
static proa_tensor on_device(const proa_tensor *t, int format, const void *data, proa_storage *storage)
{
    proa_tensor h = {.refs = 1, .kind = PROA_DENSE, .dtype = t->dtype, .ndim = t->ndim, .numel = t->numel};
    int64_t step = (int64_t)proa__dtype_bytes(t->dtype);
    h.data = (char *)(uintptr_t)data;
    h.storage = storage;
    h.flags = PROA_T_DEVICE | (format ? PROA_T_STRIDED : 0);
    memcpy(h.shape, t->shape, (size_t)t->ndim * sizeof *h.shape);
    for (int turn = 0; turn < 3; turn++) /* channels last: axis 1, then spatial axes, then axis 0 */
        for (int i = t->ndim - 1; i >= 0; i--) {
            bool now = format ? (i == 1 ? turn == 0 : i == 0 ? turn == 2 : turn == 1) : turn == 0;
            if (!now) continue;
            h.strides[i] = step;
            step *= h.shape[i];
        }
    return h;
}

static size_t form_bytes(const proa_tensor *t, proa_dtype dtype, int format)
{
    return format == PROA_CHANNELS_LAST ? plain_bytes(t, dtype) : hooks->bytes(t, dtype, format);
}

proa_status proa__convert_blocked(const proa_tensor *t, int from_format, const void *from, int to_format,
                                  void *to)
{
    if (from_format != PROA_CHANNELS_LAST && to_format != PROA_CHANNELS_LAST)
        return hooks->convert(t, from_format, from, to_format, to);
    if (t->numel == 0) return PROA_OK;
    proa_tensor a = on_device(t, from_format, from, t->storage);
    proa_tensor b = on_device(t, to_format, to, t->storage);
    return proa__copy_devices(&b, &a);
}

/* ---- windows: blocked memory inside another storage ---------------------------------------- */

/* The payload of a window's block: addresses of memory elsewhere, in place of elements. */
typedef struct window {
    char *data;
    proa_storage *owner; /* retained; NULL: the caller keeps the memory at `data` alive */
    char *plain;
    int device;
    size_t bytes; /* of the row-major form */
} window;

static window *window_of(const proa_storage *s)
{
    return (window *)(void *)((char *)(uintptr_t)s + PROA__HEAD);
}

char *proa__blocked_data(const proa_tensor *t)
{
    proa_storage *s = t->storage;
    if (PROA__UNLIKELY(s->window)) return window_of(s)->data;
    return PROA__LIKELY(s->device == PROA_CPU) ? (char *)s + PROA__HEAD : s->context;
}

static void window_release(void *context)
{
    window *w = context;
    give_memory(w->device, w->plain, w->bytes);
    if (w->owner) proa__storage_release(w->owner);
}

proa_storage *proa__window_new(const proa_tensor *t, int format)
{
    size_t bytes = plain_bytes(t, (proa_dtype)t->dtype);
    proa_storage *s = proa__storage_new(sizeof(window), PROA_CPU);
    if (!s) return NULL;
    window *w = window_of(s);
    *w = (window){.device = proa__stream()->device, .bytes = bytes};
    s->device = proa__device_bits(w->device);
    s->bytes = bytes;
    s->padded = form_bytes(t, (proa_dtype)t->dtype, format) > bytes;
    s->window = true;
    s->format = (uint16_t)format;
    s->data = NULL;
    s->release = window_release;
    s->context = w;
    return s;
}

void proa__window_point(proa_storage *s, proa_storage *owner, char *data)
{
    window *w = window_of(s);
    if (owner) atomic_fetch_add_explicit(&owner->refs, 1, memory_order_relaxed);
    if (w->owner) proa__storage_release(w->owner);
    w->owner = owner;
    w->data = data;
    if (PROA__LIKELY(!w->plain)) return;
    give_memory(w->device, w->plain, w->bytes);
    w->plain = s->data = NULL;
}

/* ---- plain and blocked forms -------------------------------------------------------------- */

const proa_storage *proa__storage_behind(const proa_tensor *t)
{
    return t->storage && t->storage->window ? window_of(t->storage)->owner : t->storage;
}

int64_t proa__channel_block(const proa_tensor *t)
{
    int format = proa__format(t);
    if (format == PROA_CHANNELS_LAST) return t->shape[1];
    return format ? hooks->channel_block(t, format) : 0;
}

size_t proa__blocked_bytes(const proa_tensor *t)
{
    if (!t->storage->padded) return t->storage->bytes;
    return form_bytes(t, (proa_dtype)t->dtype, t->storage->format);
}

size_t proa__format_bytes(const proa_tensor *t, int format)
{
    return form_bytes(t, (proa_dtype)t->dtype, format);
}

static void free_plain(void *plain) { proa__free(plain); }

/* Makes the row-major form of t's storage from the blocked form; the caller holds `making`. */
static proa_status add_plain(const proa_tensor *t)
{
    proa_storage *s = t->storage;
    char *plain = take_memory(s->device, s->bytes);
    if (!plain) return proa_error();
    proa_status status = proa__convert_blocked(t, s->format, proa__blocked_data(t), 0, plain);
    if (status != PROA_OK) {
        give_memory(s->device, plain, s->bytes);
        return status;
    }
    if (s->window) {
        window_of(s)->plain = plain;
    } else if (s->device == PROA_CPU) {
        s->context = plain;
        s->release = free_plain;
    }
    s->data = plain;
    return PROA_OK;
}

proa_status proa_make_plain(const proa_tensor *t)
{
    if (!proa__format(t)) return proa__deferred_plain(t);
    pthread_mutex_lock(&making);
    proa_status status = t->storage->data ? PROA_OK : add_plain(t);
    if (status == PROA_OK && !t->data)
        __atomic_store_n(&((proa_tensor *)(uintptr_t)t)->data, t->storage->data, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&making);
    return status;
}

proa_status proa__drop_blocked(const proa_tensor *t)
{
    PROA_TRY(proa__plain(t));
    t->storage->format = 0;
    return PROA_OK;
}

proa_status proa__blocked_copy_out(const proa_tensor *t, void *to)
{
    const char *data = proa__data_now(t);
    if (!data && proa__format(t)) return hooks->convert(t, proa__format(t), proa__blocked_data(t), 0, to);
    PROA_TRY(proa__plain(t));
    memcpy(to, t->data, t->storage->bytes);
    return PROA_OK;
}

/* On a device the storage's `context` holds the memory of the blocked form; freeing the storage frees
 * both. */
proa_status proa__block_output(proa_tensor *t, int format)
{
    if (proa__format(t) == format) return PROA_OK;
    proa_storage *s = t->storage;
    size_t bytes = form_bytes(t, (proa_dtype)t->dtype, format);
    if (s->device != PROA_CPU) s->context = s->data;
    else if (bytes > s->bytes) {
        proa_storage *larger = proa__storage_new(bytes, PROA_CPU);
        if (!larger) return proa_error();
        larger->bytes = s->bytes;
        larger->padded = true;
        proa__storage_release(s);
        t->storage = s = larger;
    }
    s->format = (uint16_t)format;
    s->data = NULL;
    t->data = NULL;
    t->flags |= PROA_T_BLOCKED;
    return PROA_OK;
}

/* True if nothing but this handle refers to t's memory, so that t may get other memory. */
static bool may_move(const proa_tensor *t)
{
    const proa_storage *s = t->storage;
    if (t->flags & (PROA_T_STRIDED | PROA_T_BLOCKED_BASE | PROA_T_NOT_DENSE) || t->numel < 1) return false;
    if (atomic_load_explicit(&s->refs, memory_order_relaxed) != 1) return false;
    if (atomic_load_explicit(&s->pinned, memory_order_relaxed)) return false;
    if (proa__format(t)) return true;
    return !s->release && t->data == s->data &&
           s->bytes == (size_t)t->numel * proa__dtype_bytes((unsigned)t->dtype);
}

proa_status proa__move_to_format(proa_tensor *t, int format, bool *done)
{
    int now = proa__format(t);
    *done = now == format && !t->storage->data;
    if (*done || !may_move(t) || form_bytes(t, (proa_dtype)t->dtype, format) != t->storage->bytes)
        return PROA_OK;
    proa_storage *to = proa__storage_new(t->storage->bytes, t->storage->device);
    if (!to) return proa_error();
    char *memory = to->data;
    if (to->device != PROA_CPU) to->context = memory;
    to->data = NULL;
    to->format = (uint16_t)format;
    proa__storage_keep_versions(to, t->storage);
    proa_status status = proa__convert_blocked(t, now, proa__memory(t), format, memory);
    if (status != PROA_OK) {
        proa__storage_release(to);
        return status;
    }
    proa__storage_release(t->storage);
    t->storage = to;
    t->data = NULL;
    t->flags |= PROA_T_BLOCKED;
    *done = true;
    return PROA_OK;
}

/* True if t is stored in the format and has no row-major form. */
static bool has_only_format(const proa_tensor *t, int format)
{
    return proa__format(t) == format && !t->storage->data;
}

proa_status proa__match_layout(proa_tensor *const *at, int n, const proa_tensor *like, bool may_move)
{
    int format = proa__format(like);
    bool done = format != 0;
    for (int i = 0; done && i < n; i++) {
        done = at[i]->ndim == like->ndim &&
               !memcmp(at[i]->shape, like->shape, (size_t)like->ndim * sizeof *like->shape);
        if (done && may_move) PROA_TRY(proa__move_to_format(at[i], format, &done));
        else done = done && has_only_format(at[i], format);
    }
    if (done) return PROA_OK;
    PROA_TRY(proa__plain(like));
    for (int i = 0; i < n; i++) PROA_TRY(proa__plain_to_write(at[i]));
    return PROA_OK;
}

bool proa__zero_padding(const proa_tensor *t)
{
    int64_t block = proa__channel_block(t), rest = block ? t->shape[1] % block : 0, places = 1;
    if (!block) return false;
    if (!rest) return true;
    for (int i = 2; i < t->ndim; i++) places *= t->shape[i];
    size_t item = proa__dtype_bytes(t->dtype), gap = (size_t)(block - rest) * item;
    int64_t row = block * (int64_t)item, image = (t->shape[1] / block + 1) * places * row;
    char *last = proa__blocked_data(t) + t->shape[1] / block * places * row + rest * (int64_t)item;
    for (int64_t n = 0; n < t->shape[0]; n++)
        for (int64_t i = 0; i < places; i++) memset(last + n * image + i * row, 0, gap);
    return true;
}

proa_status proa__plain_inputs(const proa_op *op, const void *args, bool lost)
{
    for (const proa_field *f = op->fields; f < op->fields + op->n_in; f++) {
        const proa_tensors all = proa__field_all(f, args);
        for (int64_t i = 0; i < all.count; i++)
            if (!lost || !proa__format(all.at[i])) PROA_TRY(proa__plain(all.at[i]));
    }
    return PROA_OK;
}
