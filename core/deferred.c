/* Deferred storages: elements that are read at first use, and the packed forms that kernels make of
 * constants. Uses storage.c and the allocator. */
#include "core/deferred.h"

#include "core/device.h"
#include "core/thread.h"

#include <pthread.h>

/* Held while elements are read, packed or unpacked. Reads may wait for other processes. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

typedef struct deferred {
    proa__deferred source; /* release NULL: the elements have been read, and the source is not needed */
    void *plain;           /* the buffer that the elements were read into */
    uint32_t version;      /* the storage's version when its elements last equaled the source's */
    proa__packed *forms;   /* retained */
} deferred;

static void release_source(deferred *d)
{
    if (d->source.release) d->source.release(d->source.context);
    d->source = (proa__deferred){.read = NULL};
}

static void deferred_release(void *context)
{
    deferred *d = context;
    release_source(d);
    for (proa__packed *p = d->forms, *next; p; p = next) {
        next = p->next;
        proa__packed_release(p);
    }
    proa__free(d->plain);
    proa__free(d);
}

static deferred *deferred_of(const proa_tensor *t)
{
    const proa_storage *s = t->storage;
    return s && s->release == deferred_release ? s->context : NULL;
}

proa_tensor *proa__deferred_new(proa_ints shape, proa_dtype dtype, proa__deferred source)
{
    static char nowhere;
    deferred *d = proa__alloc(sizeof *d);
    if (!d) return NULL;
    *d = (deferred){.source = source};
    proa_tensor *t = proa_from_foreign(&nowhere, shape, NULL, dtype, deferred_release, d);
    if (!t) {
        proa__free(d);
        return NULL;
    }
    t->data = t->storage->data = NULL;
    t->flags |= PROA_T_BLOCKED;
    return t;
}

static uint32_t storage_version(const proa_storage *s)
{
    return atomic_load_explicit(&s->version, memory_order_relaxed);
}

/* Reads the deferred elements into new memory, which becomes the row-major form; the caller holds `reading`.
 * A failed read leaves the storage unchanged, so that the next one may succeed. */
static proa_status read_elements(proa_storage *s)
{
    deferred *d = s->context;
    if (d->source.elements) {
        s->data = d->source.elements;
        return PROA_OK;
    }
    char *plain = proa__alloc(s->bytes + d->source.spare);
    if (!plain && d->source.write) d->source.read(d->source.context, NULL, s->bytes);
    if (!plain) return proa_error();
    proa_status status = d->source.read(d->source.context, plain, s->bytes);
    if (status != PROA_OK) {
        proa__free(plain);
        return status;
    }
    d->version = storage_version(s);
    if (!d->source.write) release_source(d);
    s->data = d->plain = plain;
    return PROA_OK;
}

proa_status proa__deferred_plain(const proa_tensor *t)
{
    pthread_mutex_lock(&reading);
    proa_status status = t->storage->data ? PROA_OK : read_elements(t->storage);
    if (status == PROA_OK && !t->data)
        __atomic_store_n(&((proa_tensor *)(uintptr_t)t)->data, t->storage->data, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&reading);
    return status;
}

proa_tensor *proa__deferred_once(proa_tensor *t)
{
    if (!proa__is_unread(t)) return t;
    proa_meta meta = proa_meta_of(t);
    PROA__ON_CPU;
    proa_tensor *copy = proa__tensor_new(&meta);
    if (!copy) return NULL;
    pthread_mutex_lock(&reading);
    const deferred *d = t->storage->data ? NULL : deferred_of(t);
    proa_status status = d ? d->source.read(d->source.context, copy->data, t->storage->bytes) : PROA_OK;
    pthread_mutex_unlock(&reading);
    if (d && status == PROA_OK) return copy;
    proa_drop(copy);
    return status == PROA_OK ? t : NULL;
}

/* Reads the elements of another deferred tensor; the caller holds `reading`. */
static proa_status read_other(void *context, void *to, size_t bytes)
{
    const proa_storage *s = context;
    const deferred *d = s->context;
    if (!s->data) return d->source.read(d->source.context, to, bytes);
    memcpy(to, s->data, bytes);
    return PROA_OK;
}

static void release_other(void *context) { proa__storage_release(context); }

proa_tensor *proa__deferred_again(proa_tensor *t)
{
    const deferred *d = proa__is_unread(t) ? deferred_of(t) : NULL;
    if (!d) return t;
    proa__deferred source = {
        .read = read_other, .release = release_other, .context = t->storage, .spare = d->source.spare};
    atomic_fetch_add(&t->storage->refs, 1);
    proa_tensor *made =
        proa__deferred_new((proa_ints){t->ndim, t->shape, NULL, NULL}, (proa_dtype)t->dtype, source);
    if (!made) proa__storage_release(t->storage);
    return made;
}

bool proa__deferred_is(const proa_tensor *t, const void *context)
{
    const deferred *d = deferred_of(t);
    return d && d->source.context == context;
}

proa_status proa__deferred_evict(proa_tensor *t, bool *gone)
{
    deferred *d = deferred_of(t);
    proa_storage *s = t->storage;
    *gone = d && !s->data;
    if (!d || !d->plain || !d->source.write) return PROA_OK;
    if (d->version != storage_version(s)) {
        PROA_TRY(d->source.write(d->source.context, d->plain, s->bytes));
        d->version = storage_version(s);
    }
    if (atomic_load_explicit(&s->refs, memory_order_acquire) != 1) return PROA_OK;
    if (atomic_load_explicit(&s->pinned, memory_order_relaxed)) return PROA_OK;
    proa__free(d->plain);
    d->plain = s->data = NULL;
    __atomic_store_n(&t->data, NULL, __ATOMIC_RELEASE);
    *gone = true;
    return PROA_OK;
}

void proa__deferred_changed(proa_tensor *t)
{
    deferred *d = deferred_of(t);
    proa__bump_unguarded(t);
    if (d) d->version = storage_version(t->storage);
}

/* ---- elements in memory ------------------------------------------------------------------ */

static proa_status copy_elements(void *context, void *to, size_t bytes)
{
    memcpy(to, ((const proa_storage *)context)->data, bytes);
    return PROA_OK;
}

static void release_elements(void *context) { proa__storage_release(context); }

proa_status proa__defer(proa_tensor *t)
{
    proa_storage *s = t->storage;
    const uint32_t others = PROA_T_SYMBOLIC | PROA_T_STRIDED | PROA_T_NOT_DENSE | PROA_T_META |
                            PROA_T_DEVICE | PROA_T_BLOCKED | PROA_T_BLOCKED_BASE;
    if (t->flags & others || !s || s->release || t->data != s->data || t->numel < 1) return PROA_OK;
    if (atomic_load(&t->refs) != 1 || atomic_load(&s->refs) != 1 || atomic_load(&s->pinned)) return PROA_OK;
    if (s->bytes != (size_t)t->numel * proa__dtype_bytes(t->dtype)) return PROA_OK;
    proa__deferred source = {
        .read = copy_elements, .release = release_elements, .context = s, .elements = s->data};
    PROA_SCOPED;
    PROA__ON_CPU;
    proa_tensor *made =
        proa__deferred_new((proa_ints){t->ndim, t->shape, NULL, NULL}, (proa_dtype)t->dtype, source);
    if (!made) return proa_error();
    proa__storage_keep_versions(made->storage, s);
    t->storage = made->storage; /* which takes over the reference to s */
    atomic_fetch_add(&t->storage->refs, 1);
    t->data = NULL;
    t->flags |= PROA_T_BLOCKED;
    return PROA_OK;
}

/* ---- packed forms ------------------------------------------------------------------------ */

void proa__packed_release(proa__packed *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
    proa__free(p->data);
    proa__free(p);
}

static proa__packed *retain(proa__packed *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

/* Packs elements into a form of its own; NULL on error. */
static proa__packed *make_form(const proa__packing *by, const void *elements)
{
    proa__packed *p = proa__calloc(sizeof *p);
    if (!p) return NULL;
    atomic_init(&p->refs, 1);
    p->unpack = by->unpack;
    p->how_bytes = by->how_bytes;
    p->bytes = by->bytes;
    memcpy(p->how, by->how, by->how_bytes);
    p->data = proa__alloc(by->bytes);
    if (p->data && by->pack(by->context, p->how, elements, p->data) == PROA_OK) return p;
    proa__packed_release(p);
    return NULL;
}

static proa_status unpack(void *context, void *to, size_t bytes)
{
    const proa__packed *p = context;
    (void)bytes;
    return p->unpack(p->how, p->data, to);
}

static void release_form(void *context) { proa__packed_release(context); }

/* The storage's form, if it was packed like that, as it is now. Removes those of former versions. */
static proa__packed *find_form(deferred *d, uint32_t version, const proa__packing *by)
{
    for (proa__packed **link = &d->forms; *link;) {
        proa__packed *p = *link;
        if (p->version != version) {
            *link = p->next;
            proa__packed_release(p);
            continue;
        }
        bool same = p->unpack == by->unpack && p->bytes == by->bytes && p->how_bytes == by->how_bytes;
        if (same && !memcmp(p->how, by->how, by->how_bytes)) return p;
        link = &p->next;
    }
    return NULL;
}

/* Packs the elements of a deferred storage, which then come from the packed form if nobody has read them;
 * the caller holds `reading`. */
static proa__packed *add_form(proa_storage *s, deferred *d, const proa__packing *by)
{
    char *once = NULL;
    const char *elements = s->data ? s->data : d->source.elements;
    if (!elements) {
        elements = once = proa__alloc(s->bytes + d->source.spare);
        if (!once || d->source.read(d->source.context, once, s->bytes) != PROA_OK) {
            proa__free(once);
            return NULL;
        }
    }
    proa__packed *p = make_form(by, elements);
    proa__free(once);
    if (!p) return NULL;
    p->version = storage_version(s);
    p->next = d->forms;
    d->forms = p;
    if (s->data || !p->unpack || d->source.write) return p;
    release_source(d);
    d->source = (proa__deferred){.read = unpack, .release = release_form, .context = retain(p)};
    return p;
}

proa__packed *proa__packed_of(const proa_tensor *t, const proa__packing *by)
{
    deferred *d = t->flags & PROA_T_BLOCKED ? deferred_of(t) : NULL;
    if (!d) return proa__plain(t) == PROA_OK ? make_form(by, t->data) : NULL;
    pthread_mutex_lock(&reading);
    proa__packed *p = find_form(d, storage_version(t->storage), by);
    if (!p) p = add_form(t->storage, d, by);
    if (p) retain(p);
    pthread_mutex_unlock(&reading);
    return p;
}

void proa__packed_clear(proa__packed_operand *o)
{
    if (o->storage) proa__storage_release(o->storage);
    proa__packed_release(o->form);
    *o = (proa__packed_operand){.form = NULL};
}

const void *proa__packed_renew(proa__packed_operand *o, const proa_tensor *t, const proa__packing *packing)
{
    if (proa__packed_is_of(o, t)) return o->form->data;
    proa__packed_clear(o);
    const uint32_t version = storage_version(t->storage);
    proa__packed *form = proa__packed_of(t, packing);
    if (!form) return NULL;
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    *o = (proa__packed_operand){form, t->storage, t->flags & PROA_T_BLOCKED ? NULL : t->data, version};
    return form->data;
}
