/* Tensor streams and parameter files: LoDTensor streams back to back, in byte-wise order of the variables'
 * names. Data is written on multiples of 64 bytes, so that a reader may map it; files that are not so
 * aligned are read straight into tensors. May use core and format.h. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/format.h"

#include "core/blocked.h"
#include "core/device.h"

#include <errno.h>
#include <proa/io.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGN = 64, DESC_MAX = 1 << 16, LOD_LEVELS_MAX = 64, PAD_KEY = 1000 << 3 | 2 };

/* ---- protobuf-c's memory --------------------------------------------------------------- */

static void *pb_alloc(void *context, size_t bytes)
{
    (void)context;
    return proa__alloc(bytes);
}

static void pb_free(void *context, void *p)
{
    (void)context;
    proa__free(p);
}

ProtobufCAllocator proa__pb_allocator = {pb_alloc, pb_free, NULL};

/* ---- writing --------------------------------------------------------------------------- */

/* The TensorDesc with a filler field that is unknown to every reader, sized so that what follows stands on
 * a multiple of ALIGN. Returns its size. */
static size_t make_desc(const proa_tensor *t, uint64_t at, uint8_t *desc)
{
    int64_t dims[PROA_MAX_DIMS];
    pb_tensor d = PADDLE__FRAMEWORK__PROTO__VAR_TYPE__TENSOR_DESC__INIT;
    d.data_type = (Paddle__Framework__Proto__VarType__Type)proa__dtype_to_wire(proa_dtype_of(t));
    d.n_dims = (size_t)proa_ndim(t);
    d.dims = dims;
    for (int i = 0; i < proa_ndim(t); i++) dims[i] = proa_shape_of(t)[i];
    size_t n = protobuf_c_message_pack(&d.base, desc);
    size_t gap = (size_t)(-(at + n) & (ALIGN - 1));
    if (gap == 0) return n;
    if (gap < 3) gap += ALIGN;
    desc[n] = (uint8_t)((PAD_KEY & 127) | 128);
    desc[n + 1] = PAD_KEY >> 7;
    desc[n + 2] = (uint8_t)(gap - 3);
    memset(desc + n + 3, 0, gap - 3);
    return n + gap;
}

static proa_status put_data(proa__writer *w, const proa_tensor *t)
{
    size_t bytes = (size_t)proa_numel(t) * proa_dtype_size(proa_dtype_of(t));
    if (bytes == 0) return PROA_OK;
    if (proa__lies_plain(t)) return proa__writer_put(w, t->data, bytes);
    void *copy = proa__alloc(bytes);
    if (!copy) return proa_error();
    proa_status status = proa_copy_out(t, copy, bytes);
    if (status == PROA_OK) status = proa__writer_put(w, copy, bytes);
    proa__free(copy);
    return status;
}

proa_status proa__stream_write(proa__writer *w, const proa_tensor *t)
{
    uint8_t head[20] = {0}, desc[512];
    if (proa__absent(t) || t->kind != PROA_DENSE || proa_is_symbolic(t))
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "only dense tensors with data can be written as a tensor stream");
    size_t n = make_desc(t, proa__writer_at(w) + sizeof head, desc);
    for (int i = 0; i < 4; i++) head[16 + i] = (uint8_t)(n >> 8 * i);
    PROA_TRY(proa__writer_put(w, head, sizeof head));
    PROA_TRY(proa__writer_put(w, desc, n));
    return put_data(w, t);
}

int proa__by_name(const void *a, const void *b)
{
    return strcmp(((const proa__named *)a)->name, ((const proa__named *)b)->name);
}

proa_status proa__params_write(proa__writer *w, proa__named *items, size_t count)
{
    if (count > 1) qsort(items, count, sizeof *items, proa__by_name);
    for (size_t i = 0; i < count; i++) PROA_TRY(proa__stream_write(w, items[i].tensor));
    return PROA_OK;
}

/* ---- mapping --------------------------------------------------------------------------- */

struct proa__filemap {
    atomic_int refs;
    char *base;
    size_t bytes;
};

proa__filemap *proa__filemap_open(const proa__source *s)
{
    if (s->memory || s->size == 0 || s->size > SIZE_MAX / 2) return NULL;
    /* private and writable: training on from a loaded file changes memory, not the file */
    void *base = mmap(NULL, (size_t)s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, s->fd, 0);
    if (base == MAP_FAILED) return NULL;
    proa__filemap *m = proa__alloc(sizeof *m);
    if (!m) {
        munmap(base, (size_t)s->size);
        return NULL;
    }
    atomic_init(&m->refs, 1);
    m->base = base;
    m->bytes = (size_t)s->size;
    return m;
}

void proa__filemap_release(proa__filemap *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
    munmap(m->base, m->bytes);
    proa__free(m);
}

static void release_view(void *map) { proa__filemap_release(map); }

/* ---- reading --------------------------------------------------------------------------- */

static uint64_t le(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static proa_status read_le(proa__source *s, int bytes, uint64_t *v)
{
    uint8_t raw[8] = {0};
    PROA_TRY(proa__source_read(s, raw, (size_t)bytes));
    *v = le(raw, bytes);
    return PROA_OK;
}

static proa_status read_version(proa__source *s, const char *what)
{
    uint64_t at = s->at, version;
    PROA_TRY(read_le(s, 4, &version));
    if (version == 0) return PROA_OK;
    return proa_fail(PROA_ERR_CORRUPT, "'%s': %s at offset %llu has version %llu, expected 0", s->name, what,
                     (unsigned long long)at, (unsigned long long)version);
}

/* LoD offsets: checked and passed over, parameters have no use for them. */
static proa_status read_lod(proa__source *s)
{
    uint64_t levels;
    PROA_TRY(read_le(s, 8, &levels));
    if (levels > LOD_LEVELS_MAX)
        return proa_fail(PROA_ERR_CORRUPT, "'%s': a tensor before offset %llu claims %llu LoD levels",
                         s->name, (unsigned long long)s->at, (unsigned long long)levels);
    while (levels--) {
        uint64_t bytes;
        PROA_TRY(read_le(s, 8, &bytes));
        if (bytes % 8)
            return proa_fail(PROA_ERR_CORRUPT, "'%s': a LoD level of %llu bytes before offset %llu", s->name,
                             (unsigned long long)bytes, (unsigned long long)s->at);
        PROA_TRY(proa__source_skip(s, bytes));
    }
    return PROA_OK;
}

static proa_status check_desc(const proa__source *s, const pb_tensor *d, proa_meta *meta)
{
    meta->dtype = proa__dtype_from_wire((int64_t)d->data_type);
    if (meta->dtype == PROA_NODTYPE)
        return proa_fail(PROA_ERR_UNSUPPORTED, "'%s': a tensor before offset %llu has data type number %d",
                         s->name, (unsigned long long)s->at, (int)d->data_type);
    if (d->n_dims > PROA_MAX_DIMS)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "'%s': a tensor before offset %llu has %zu dimensions, at most %d are "
                         "supported",
                         s->name, (unsigned long long)s->at, d->n_dims, PROA_MAX_DIMS);
    meta->ndim = (int8_t)d->n_dims;
    bool empty = false;
    uint64_t left = proa__source_left(s) / proa_dtype_size(meta->dtype), need = 1;
    for (size_t i = 0; i < d->n_dims; i++) {
        meta->shape[i] = d->dims[i];
        if (d->dims[i] < 0)
            return proa_fail(PROA_ERR_CORRUPT, "'%s': a tensor before offset %llu has dimension %lld",
                             s->name, (unsigned long long)s->at, (long long)d->dims[i]);
        empty |= d->dims[i] == 0;
    }
    for (size_t i = 0; i < d->n_dims && !empty; i++) {
        if ((uint64_t)d->dims[i] > left / need)
            return proa_fail(PROA_ERR_CORRUPT,
                             "'%s' is cut off: a %s%s at offset %llu does not fit into the %llu bytes "
                             "that are left",
                             s->name, proa_dtype_name(meta->dtype), proa__shape_text(d->dims, meta->ndim),
                             (unsigned long long)s->at, (unsigned long long)proa__source_left(s));
        need *= (uint64_t)d->dims[i];
    }
    return PROA_OK;
}

static proa_status read_desc(proa__source *s, proa_meta *meta)
{
    uint64_t size;
    PROA_TRY(read_version(s, "tensor"));
    PROA_TRY(read_le(s, 4, &size));
    if (size > DESC_MAX || size > proa__source_left(s))
        return proa_fail(PROA_ERR_CORRUPT, "'%s': a tensor description of %llu bytes before offset %llu",
                         s->name, (unsigned long long)size, (unsigned long long)s->at);
    uint8_t *raw = proa__alloc((size_t)size + 1);
    if (!raw) return proa_error();
    proa_status status = proa__source_read(s, raw, (size_t)size);
    if (status == PROA_OK) {
        pb_tensor *d = (pb_tensor *)protobuf_c_message_unpack(
            &paddle__framework__proto__var_type__tensor_desc__descriptor, &proa__pb_allocator, (size_t)size,
            raw);
        status = d ? check_desc(s, d, meta)
                   : proa_fail(PROA_ERR_CORRUPT,
                               "'%s': the tensor description before offset %llu cannot be parsed", s->name,
                               (unsigned long long)s->at);
        if (d) protobuf_c_message_free_unpacked(&d->base, &proa__pb_allocator);
    }
    proa__free(raw);
    return status;
}

static proa_ints shape_of(const proa_meta *m) { return (proa_ints){m->ndim, m->shape, NULL, NULL}; }

proa_tensor *proa__stream_read(proa__source *s, proa__filemap *map)
{
    proa_meta meta;
    if (read_version(s, "LoD tensor") != PROA_OK || read_lod(s) != PROA_OK || read_desc(s, &meta) != PROA_OK)
        return NULL;
    size_t bytes = proa_dtype_size(meta.dtype);
    for (int i = 0; i < meta.ndim; i++) bytes *= (size_t)meta.shape[i]; /* cannot overflow: see check_desc */
    if (map && s->at % ALIGN == 0 && bytes) {
        uint64_t at = s->at;
        if (proa__source_skip(s, bytes) != PROA_OK) return NULL;
        atomic_fetch_add(&map->refs, 1);
        proa_tensor *t =
            proa_from_foreign(map->base + at, shape_of(&meta), NULL, meta.dtype, release_view, map);
        if (!t) proa__filemap_release(map);
        return t;
    }
    PROA__ON_CPU;
    proa_tensor *t = proa_empty(shape_of(&meta), meta.dtype);
    if (t && proa__source_read(s, proa_data(t), bytes) != PROA_OK) {
        proa_drop(t);
        return NULL;
    }
    return t;
}

proa_status proa__params_read(proa__source *s, proa__named *items, size_t count)
{
    proa__filemap *map = proa__filemap_open(s);
    if (proa_error() != PROA_OK) return proa_error();
    proa_status status = PROA_OK;
    for (size_t i = 0; i < count && status == PROA_OK; i++) {
        if (proa__source_left(s) == 0) {
            status = proa_fail(PROA_ERR_CORRUPT,
                               "'%s' is cut off: it holds %zu tensors, the program has %zu; '%s' is "
                               "the first that is missing",
                               s->name, i, count, items[i].name);
            break;
        }
        items[i].tensor = proa__stream_read(s, map);
        if (!items[i].tensor) status = proa_error();
    }
    proa__filemap_release(map);
    if (status == PROA_OK && proa__source_left(s))
        status = proa_fail(PROA_ERR_CORRUPT,
                           "'%s' has %llu bytes behind the program's %zu tensors: it belongs to "
                           "another program",
                           s->name, (unsigned long long)proa__source_left(s), count);
    return status;
}

/* ---- one tensor a file ----------------------------------------------------------------- */

proa_status proa_tensor_save(const proa_tensor *t, const char *path)
{
    if (proa_error() != PROA_OK) return proa_error();
    if (!t || !path)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_tensor_save: tensor and path must not be NULL");
    proa__writer *w = proa__writer_open(path);
    if (!w) return proa_error();
    proa_status status = proa__stream_write(w, t);
    if (status == PROA_OK) return proa__writer_commit(w);
    proa__writer_abort(w);
    return status;
}

static proa_tensor *load_one(proa__source *s)
{
    proa__named item = {"tensor", NULL};
    if (proa__params_read(s, &item, 1) == PROA_OK) return item.tensor;
    if (item.tensor) proa_drop(item.tensor);
    return NULL;
}

proa_tensor *proa_tensor_load(const char *path)
{
    proa__source s;
    if (proa_error() != PROA_OK) return NULL;
    if (!path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_tensor_load: path must not be NULL");
        return NULL;
    }
    if (proa__source_open(&s, path) != PROA_OK) return NULL;
    proa_tensor *t = load_one(&s);
    proa__source_close(&s);
    return t;
}

proa_tensor *proa_tensor_load_memory(const void *data, size_t bytes)
{
    proa__source s;
    if (proa_error() != PROA_OK) return NULL;
    if (!data && bytes) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_tensor_load_memory: data must not be NULL");
        return NULL;
    }
    proa__source_memory(&s, data, bytes, "memory");
    return load_one(&s);
}

#else
typedef int proa__no_params; /* C wants a declaration in every file */
#endif
