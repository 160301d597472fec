/* Reads and writes checkpoint files: one record a named tensor or byte string, with a CRC over the
 * record's head and one over its data (docs/checkpoint-format.md). Core and io's file layer only. Written
 * atomically. */
#include "io/file.h"

#include "core/blocked.h"
#include "core/device.h"

#include <proa/io.h>

enum { VERSION = 1, HEAD = 32, RECORD = 112, ALIGN = 64, NAME_MAX_BYTES = 4096 };
enum { KIND_TENSOR = 1, KIND_BYTES = 2 };
static const unsigned char magic[8] = {0x89, 'P', 'R', 'O', 'A', 'C', 'K', '\n'};

/* ---- little-endian fields -------------------------------------------------------------- */

static void put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> 8 * i);
}

static void put64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++) p[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const unsigned char *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

/* ---- writing --------------------------------------------------------------------------- */

/* The bytes of an item as they are written. `copy` owns them if the tensor was not contiguous host memory. */
typedef struct payload {
    const void *data;
    void *copy;
    size_t bytes;
} payload;

static proa_status payload_of(const proa_state_item *item, payload *p)
{
    *p = (payload){item->bytes, NULL, item->n_bytes};
    if (!item->tensor) return PROA_OK;
    const proa_tensor *t = item->tensor;
    p->bytes = (size_t)proa_numel(t) * proa_dtype_size(proa_dtype_of(t));
    p->data = t->data;
    if (p->bytes == 0 || proa__is_row_major(t)) return PROA_OK;
    p->copy = proa__alloc(p->bytes);
    if (!p->copy) return proa_error();
    p->data = p->copy;
    proa_status status = proa_copy_out(t, p->copy, p->bytes);
    if (status != PROA_OK) proa__free(p->copy);
    return status;
}

/* Bytes of padding between a record's name and its data, which begins at a multiple of ALIGN in the file. */
static size_t gap_after(uint64_t at, size_t name) { return (size_t)(-(at + RECORD + name) & (ALIGN - 1)); }

static proa_status write_record(proa_writer *w, const proa_state_item *item)
{
    unsigned char head[RECORD] = {0};
    size_t name = strlen(item->name), gap = gap_after(proa__writer_at(w), name);
    const proa_tensor *t = item->tensor;
    payload p;
    if (name > NAME_MAX_BYTES)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "a state name of %zu bytes, at most %d are allowed", name,
                         NAME_MAX_BYTES);
    PROA_TRY(payload_of(item, &p));
    put32(head, t ? KIND_TENSOR : KIND_BYTES);
    put32(head + 4, t ? (uint32_t)proa__dtype_to_wire(proa_dtype_of(t)) : 0);
    put32(head + 8, t ? (uint32_t)proa_ndim(t) : 0);
    put32(head + 12, (uint32_t)name);
    put64(head + 16, p.bytes);
    for (int i = 0; t && i < proa_ndim(t); i++) put64(head + 24 + 8 * i, (uint64_t)proa_shape_of(t)[i]);
    put32(head + 96, (uint32_t)gap);
    put32(head + 100, proa__crc32c(0, p.data, p.bytes));
    put32(head + 108, proa__crc32c(proa__crc32c(0, head, 108), item->name, name));
    proa_status status = proa_writer_put(w, head, sizeof head);
    if (status == PROA_OK) status = proa_writer_put(w, item->name, name);
    if (status == PROA_OK) status = proa__writer_zeros(w, gap);
    if (status == PROA_OK) status = proa_writer_put(w, p.data, p.bytes);
    proa__free(p.copy);
    return status;
}

static uint64_t total_size(const proa_state *s)
{
    uint64_t at = HEAD;
    for (int64_t i = 0; i < s->count; i++) {
        const proa_state_item *item = &s->items[i];
        size_t name = strlen(item->name);
        at += RECORD + name + gap_after(at, name);
        const proa_tensor *t = item->tensor;
        at += t ? (uint64_t)proa_numel(t) * proa_dtype_size(proa_dtype_of(t)) : item->n_bytes;
    }
    return at;
}

static proa_status write_state(proa_writer *w, const proa_state *s)
{
    unsigned char head[HEAD] = {0};
    memcpy(head, magic, sizeof magic);
    put32(head + 8, VERSION);
    put64(head + 12, (uint64_t)s->count);
    put64(head + 20, total_size(s));
    put32(head + 28, proa__crc32c(0, head, 28));
    PROA_TRY(proa_writer_put(w, head, sizeof head));
    for (int64_t i = 0; i < s->count; i++) PROA_TRY(write_record(w, &s->items[i]));
    return PROA_OK;
}

proa_status proa_state_save(const proa_state *s, const char *path)
{
    if (proa_error() != PROA_OK) return proa_error();
    if (!s || !path)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_state_save: state and path must be given");
    proa_writer *w = proa_writer_open(path);
    if (!w) return proa_error();
    proa_status status = write_state(w, s);
    if (status == PROA_OK) return proa_writer_commit(w);
    proa_writer_abort(w);
    return status;
}

/* ---- reading --------------------------------------------------------------------------- */

static proa_status damaged(const proa__source *s, const char *what)
{
    return proa_fail(PROA_ERR_CORRUPT, "checkpoint '%s' is damaged: %s (near offset %llu)", s->name, what,
                     (unsigned long long)s->at);
}

static proa_status read_zeros(proa__source *s, size_t n)
{
    unsigned char zeros[ALIGN];
    PROA_TRY(proa__source_read(s, zeros, n));
    for (size_t i = 0; i < n; i++)
        if (zeros[i]) return damaged(s, "filler bytes are not zero");
    return PROA_OK;
}

/* Reads the data of a tensor record, whose head was verified, into `state`; CORRUPT if they do not match
 * `crc`. */
static proa_status read_tensor(proa__source *s, proa_state *state, const char *name,
                               const unsigned char *head)
{
    int64_t shape[PROA_MAX_DIMS];
    uint32_t rank = get32(head + 8);
    proa_dtype dtype = proa__dtype_from_wire(get32(head + 4));
    if (dtype == PROA_NODTYPE || rank > PROA_MAX_DIMS) return damaged(s, "unknown data type or rank");
    uint64_t bytes = get64(head + 16), elements = bytes / proa_dtype_size(dtype), need = 1;
    bool empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = (int64_t)get64(head + 24 + 8 * i);
        if (shape[i] < 0) return damaged(s, "negative dimension");
        empty |= shape[i] == 0;
    }
    for (uint32_t i = 0; i < rank && !empty; i++) {
        if ((uint64_t)shape[i] > elements / need) return damaged(s, "shape and size disagree");
        need *= (uint64_t)shape[i];
    }
    if ((empty ? 0 : need * proa_dtype_size(dtype)) != bytes) return damaged(s, "shape and size disagree");
    PROA_SCOPED;
    PROA__ON_CPU;
    proa_tensor *t = proa_empty((proa_ints){rank, shape, NULL, NULL}, dtype);
    if (!t) return proa_error();
    PROA_TRY(proa__source_read(s, proa_data(t), (size_t)bytes));
    if (proa__crc32c(0, proa_data(t), (size_t)bytes) != get32(head + 100))
        return damaged(s, "a tensor's checksum does not match");
    return proa_state_put(state, name, t);
}

static proa_status read_bytes(proa__source *s, proa_state *state, const char *name, const unsigned char *head)
{
    size_t bytes = (size_t)get64(head + 16);
    void *data = proa__alloc(bytes + 1);
    if (!data) return proa_error();
    proa_status status = proa__source_read(s, data, bytes);
    if (status == PROA_OK && proa__crc32c(0, data, bytes) != get32(head + 100))
        status = damaged(s, "a record's checksum does not match");
    if (status == PROA_OK) status = proa_state_put_bytes(state, name, data, bytes);
    proa__free(data);
    return status;
}

static proa_status read_record(proa__source *s, proa_state *state)
{
    unsigned char head[RECORD];
    char name[NAME_MAX_BYTES + 1];
    uint64_t at = s->at;
    PROA_TRY(proa__source_read(s, head, sizeof head));
    uint32_t kind = get32(head), length = get32(head + 12), gap = get32(head + 96);
    if (length > NAME_MAX_BYTES) return damaged(s, "a name is too long");
    PROA_TRY(proa__source_read(s, name, length));
    name[length] = 0;
    if (proa__crc32c(proa__crc32c(0, head, 108), name, length) != get32(head + 108))
        return damaged(s, "a record head's checksum does not match");
    if (gap != gap_after(at, length) || strlen(name) != length)
        return damaged(s, "a record's layout is wrong");
    PROA_TRY(read_zeros(s, gap));
    if (get64(head + 16) > proa__source_left(s)) return damaged(s, "it is cut off");
    if (proa_state_find(state, name)) return damaged(s, "a name occurs twice");
    if (kind == KIND_TENSOR) return read_tensor(s, state, name, head);
    return kind == KIND_BYTES ? read_bytes(s, state, name, head) : damaged(s, "a record of unknown kind");
}

static proa_status read_state(proa__source *s, proa_state *state)
{
    unsigned char head[HEAD];
    if (s->size < HEAD) return damaged(s, "it is shorter than its head");
    PROA_TRY(proa__source_read(s, head, sizeof head));
    if (memcmp(head, magic, sizeof magic) != 0)
        return proa_fail(PROA_ERR_CORRUPT, "'%s' is no Proa checkpoint", s->name);
    if (proa__crc32c(0, head, 28) != get32(head + 28))
        return damaged(s, "the head's checksum does not match");
    if (get32(head + 8) != VERSION)
        return proa_fail(PROA_ERR_UNSUPPORTED, "checkpoint '%s' has version %u, this build reads version %d",
                         s->name, get32(head + 8), VERSION);
    if (get64(head + 20) != s->size) return damaged(s, "its length is not the one it was written with");
    for (uint64_t n = get64(head + 12); n; n--) PROA_TRY(read_record(s, state));
    return proa__source_left(s) ? damaged(s, "there are bytes behind the last record") : PROA_OK;
}

static proa_state *load(proa__source *s)
{
    proa_state *state = proa_state_new();
    if (!state) return NULL;
    if (read_state(s, state) == PROA_OK) return state;
    proa_state_free(state);
    return NULL;
}

proa_state *proa_state_load_memory(const void *data, size_t bytes)
{
    proa__source s;
    if (proa_error() != PROA_OK) return NULL;
    if (!data && bytes) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_state_load_memory: data must not be NULL");
        return NULL;
    }
    proa__source_memory(&s, data, bytes, "memory");
    return load(&s);
}

proa_state *proa_state_load(const char *path)
{
    proa__source s;
    if (proa_error() != PROA_OK) return NULL;
    if (!path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_state_load: path must not be NULL");
        return NULL;
    }
    if (proa__source_open(&s, path) != PROA_OK) return NULL;
    proa_state *state = load(&s);
    proa__source_close(&s);
    return state;
}
