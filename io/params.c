/* Reads and writes .pdiparams files: LoDTensor streams in byte-wise order of the variables' names, with data
 * at multiples of 64 bytes so that a reader can map the file (FLAGS_map_parameters). If it is not mapped,
 * tensors of at least FLAGS_deferred_bytes are read at first use, which fails if the file was written to
 * since it was opened. May use core and format.h. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/format.h"

#include "core/blocked.h"
#include "core/deferred.h"
#include "core/device.h"

#include <errno.h>
#include <fcntl.h>
#include <proa/io.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Serializes the TensorDesc of t, padded by a protobuf field that readers skip as unknown, so that the data
 * behind it starts at a multiple of ALIGN in the file. Returns its size in bytes. */
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

static proa_status put_data(proa_writer *w, const proa_tensor *t)
{
    size_t bytes = (size_t)proa_numel(t) * proa_dtype_size(proa_dtype_of(t));
    if (bytes == 0) return PROA_OK;
    if (proa__is_row_major(t)) return proa_writer_put(w, t->data, bytes);
    void *copy = proa__alloc(bytes);
    if (!copy) return proa_error();
    proa_status status = proa_copy_out(t, copy, bytes);
    if (status == PROA_OK) status = proa_writer_put(w, copy, bytes);
    proa__free(copy);
    return status;
}

proa_status proa__stream_write(proa_writer *w, const proa_tensor *t)
{
    uint8_t head[20] = {0}, desc[512];
    if (proa__absent(t) || t->kind != PROA_DENSE || proa_is_symbolic(t))
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "only dense tensors with data can be written as a tensor stream");
    size_t n = make_desc(t, proa__writer_at(w) + sizeof head, desc);
    for (int i = 0; i < 4; i++) head[16 + i] = (uint8_t)(n >> 8 * i);
    PROA_TRY(proa_writer_put(w, head, sizeof head));
    PROA_TRY(proa_writer_put(w, desc, n));
    return put_data(w, t);
}

int proa__by_name(const void *a, const void *b)
{
    return strcmp(((const proa__named *)a)->name, ((const proa__named *)b)->name);
}

proa_status proa__params_write(proa_writer *w, proa__named *items, size_t count)
{
    if (count > 1) qsort(items, count, sizeof *items, proa__by_name);
    for (size_t i = 0; i < count; i++) PROA_TRY(proa__stream_write(w, items[i].tensor));
    return PROA_OK;
}

/* ---- the file behind weights ------------------------------------------------------------ */

struct proa__backing {
    atomic_int refs;
    int fd;
    char *base; /* the mapping; NULL: tensors are read at first use */
    proa__file_state state;
    char *name;
};

/* A tensor of a backing file that is read at first use: the file and the offset of the data. */
typedef struct later {
    proa__backing *file;
    uint64_t at;
} later;

static proa__backing *retain(proa__backing *b)
{
    atomic_fetch_add(&b->refs, 1);
    return b;
}

void proa__backing_release(proa__backing *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1) return;
    if (b->base) munmap(b->base, (size_t)b->state.size);
    if (b->fd >= 0) close(b->fd);
    proa__free(b->name);
    proa__free(b);
}

static void release_mapped(void *b) { proa__backing_release(b); }

static void release_later(void *context)
{
    later *l = context;
    proa__backing_release(l->file);
    proa__free(l);
}

proa__backing *proa__backing_open(const proa__source *s)
{
    bool map = proa__flag_int(PROA_FLAG_map_parameters) != 0;
    if (s->memory || s->size == 0 || s->size > SIZE_MAX / 2) return NULL;
    if (!map && !proa__state_tells(&s->state)) return NULL;
    proa__backing *b = proa__calloc(sizeof *b);
    if (!b) return NULL;
    atomic_init(&b->refs, 1);
    b->state = s->state;
    b->fd = -1;
    b->name = proa__strdup(s->name);
    if (b->name && map) {
        /* private and writable: training changes the pages in memory, not the file */
        void *base = mmap(NULL, (size_t)s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, s->fd, 0);
        b->base = base == MAP_FAILED ? NULL : base;
    } else if (b->name) b->fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0); /* too many files open: read now */
    if (b->base || b->fd >= 0) return b;
    proa__backing_release(b);
    return NULL;
}

/* One tensor's read, split among threads. */
typedef struct reading {
    const later *from;
    char *to;
    size_t bytes;
    _Atomic(bool) failed;
} reading;

enum { PIECE = 4 << 20 }; /* bytes a thread reads at a time: two huge pages */

static void read_pieces(int64_t begin, int64_t end, void *context)
{
    reading *r = context;
    size_t at = (size_t)begin * PIECE, last = (size_t)end * PIECE < r->bytes ? (size_t)end * PIECE : r->bytes;
    while (at < last && !atomic_load(&r->failed)) {
        ssize_t n = pread(r->from->file->fd, r->to + at, last - at, (off_t)(r->from->at + at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) atomic_store(&r->failed, true);
        else at += (size_t)n;
    }
}

static proa_status read_later(void *context, void *to, size_t bytes)
{
    reading r = {.from = context, .to = to, .bytes = bytes};
    const proa__backing *b = r.from->file;
    proa__file_state now;
    atomic_init(&r.failed, false);
    proa__parallel((int64_t)((bytes + PIECE - 1) / PIECE), 1, read_pieces, &r);
    bool known = proa__state_of(b->fd, &now);
    if (known && !proa__same_state(&now, &b->state)) return proa__changed(b->name);
    if (known && !atomic_load(&r.failed)) return PROA_OK;
    return proa_fail(PROA_ERR_IO, "cannot read '%s' at offset %llu: the device fails", b->name,
                     (unsigned long long)r.from->at);
}

/* A tensor over the source's current offset, mapped or read at first use. NULL without an error: read it now
 * (unaligned, or under FLAGS_deferred_bytes). */
static proa_tensor *take(proa__source *s, proa__backing *b, proa_ints shape, proa_dtype dtype, size_t bytes)
{
    if (b->base) {
        if (s->at % ALIGN) return NULL;
        proa_tensor *t = proa_from_foreign(b->base + s->at, shape, NULL, dtype, release_mapped, retain(b));
        if (!t) proa__backing_release(b);
        return t;
    }
    if (bytes < (size_t)proa__flag_int(PROA_FLAG_deferred_bytes)) return NULL;
    later *l = proa__alloc(sizeof *l);
    if (!l) return NULL;
    *l = (later){retain(b), s->at};
    proa__deferred source = {.read = read_later, .release = release_later, .context = l};
    proa_tensor *t = proa__deferred_new(shape, dtype, source);
    if (!t) release_later(l);
    return t;
}

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

/* Checks the stream's LoD offsets and skips them: parameters have no sequences. */
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

proa_tensor *proa__stream_read(proa__source *s, proa__backing *file)
{
    proa_meta meta;
    if (read_version(s, "LoD tensor") != PROA_OK || read_lod(s) != PROA_OK || read_desc(s, &meta) != PROA_OK)
        return NULL;
    size_t bytes = proa_dtype_size(meta.dtype);
    for (int i = 0; i < meta.ndim; i++) bytes *= (size_t)meta.shape[i]; /* cannot overflow: see check_desc */
    if (file && bytes && bytes <= proa__source_left(s)) {
        proa_tensor *t = take(s, file, shape_of(&meta), meta.dtype, bytes);
        if (t && proa__source_skip(s, bytes) == PROA_OK) return t;
        if (proa_error() != PROA_OK) return NULL;
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
    /* a file of one tensor is read now: a folder of many such files would keep all of them open */
    proa__backing *file = count > 1 ? proa__backing_open(s) : NULL;
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
        items[i].tensor = proa__stream_read(s, file);
        if (!items[i].tensor) status = proa_error();
    }
    proa__backing_release(file);
    if (status == PROA_OK) status = proa__source_unchanged(s);
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
    proa_writer *w = proa_writer_open(path);
    if (!w) return proa_error();
    proa_status status = proa__stream_write(w, t);
    if (status == PROA_OK) return proa_writer_commit(w);
    proa_writer_abort(w);
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
