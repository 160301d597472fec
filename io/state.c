/* Implements proa_state: an ordered list of named tensors and byte strings, with a hash index by name. May
 * use core only. */
#include "core/internal.h"
#include "core/blocked.h"
#include "core/hash_map.h"

#include <proa/io.h>

/* Allocates the state and its index in one block. */
proa_state *proa_state_new(void)
{
    struct {
        proa_state state;
        proa__hash_map index;
    } *s = proa_error() == PROA_OK ? proa__calloc(sizeof *s) : NULL;
    if (!s) return NULL;
    s->index.by_text = true;
    s->state.index = &s->index;
    return &s->state;
}

static void clear_item(proa_state_item *i)
{
    proa_release(i->tensor);
    proa__free(i->bytes);
    i->tensor = NULL;
    i->bytes = NULL;
    i->n_bytes = 0;
}

void proa_state_free(proa_state *s)
{
    if (!s) return;
    for (int64_t i = 0; i < s->count; i++) {
        clear_item(&s->items[i]);
        proa__free(s->items[i].name);
    }
    proa__hash_map_clear(s->index);
    proa__free(s->items);
    proa__free(s);
}

const proa_state_item *proa_state_find(const proa_state *s, const char *name)
{
    const void *place = s ? proa__hash_map_find(s->index, name) : NULL; /* the index in items, plus one */
    return place ? &s->items[(uintptr_t)place - 1] : NULL;
}

/* Returns the item of that name, emptied, or appends one. */
static proa_state_item *take_item(proa_state *s, const char *name)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!s || !name) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_state: state and name must be given");
        return NULL;
    }
    proa_state_item *item = (proa_state_item *)(uintptr_t)proa_state_find(s, name);
    if (item) {
        clear_item(item);
        return item;
    }
    if (s->count == s->capacity) {
        int64_t capacity = s->capacity ? s->capacity * 2 : 16;
        proa_state_item *grown = proa__realloc(s->items, (size_t)capacity * sizeof *grown);
        if (!grown) return NULL;
        s->items = grown;
        s->capacity = capacity;
    }
    item = &s->items[s->count];
    *item = (proa_state_item){.name = proa__strdup(name)};
    void *place = (void *)((uintptr_t)s->count + 1);
    if (!item->name || proa__hash_map_put(s->index, item->name, place) != PROA_OK) {
        proa__free(item->name);
        return NULL;
    }
    s->count++;
    return item;
}

proa_status proa_state_put(proa_state *s, const char *name, proa_tensor *t)
{
    PROA_TRY(proa_error());
    if (!t || proa__absent(t) || proa_is_symbolic(t) || t->kind != PROA_DENSE)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "state '%s': needs a dense tensor with data",
                         name ? name : "?");
    proa_state_item *item = take_item(s, name);
    if (!item) return proa_error();
    item->tensor = proa_keep(t);
    return PROA_OK;
}

proa_status proa_state_put_bytes(proa_state *s, const char *name, const void *data, size_t bytes)
{
    PROA_TRY(proa_error());
    void *copy = proa__alloc(bytes + 1);
    if (!copy) return proa_error();
    proa_state_item *item = take_item(s, name);
    if (!item) {
        proa__free(copy);
        return proa_error();
    }
    if (bytes) memcpy(copy, data, bytes);
    item->bytes = copy;
    item->n_bytes = bytes;
    return PROA_OK;
}

/* Numbers are stored as eight bytes, little endian. */
static proa_status put_word(proa_state *s, const char *name, uint64_t v)
{
    unsigned char raw[8];
    for (int i = 0; i < 8; i++) raw[i] = (unsigned char)(v >> 8 * i);
    return proa_state_put_bytes(s, name, raw, sizeof raw);
}

proa_status proa_state_put_int(proa_state *s, const char *name, int64_t v)
{
    return put_word(s, name, (uint64_t)v);
}

proa_status proa_state_put_float(proa_state *s, const char *name, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return put_word(s, name, bits);
}

proa_tensor *proa_state_get(const proa_state *s, const char *name)
{
    const proa_state_item *item = proa_state_find(s, name);
    if (item && item->tensor) return item->tensor;
    proa_fail(PROA_ERR_NOT_FOUND, "the state has no tensor '%s'", name);
    return NULL;
}

proa_status proa_state_get_bytes(const proa_state *s, const char *name, void *to, size_t bytes)
{
    PROA_TRY(proa_error());
    const proa_state_item *item = proa_state_find(s, name);
    if (!item || item->tensor) return proa_fail(PROA_ERR_NOT_FOUND, "the state has no bytes '%s'", name);
    if (item->n_bytes != bytes)
        return proa_fail(PROA_ERR_CORRUPT, "state '%s' has %zu bytes, expected %zu", name, item->n_bytes,
                         bytes);
    if (bytes) memcpy(to, item->bytes, bytes);
    return PROA_OK;
}

static proa_status get_word(const proa_state *s, const char *name, uint64_t *v)
{
    unsigned char raw[8];
    PROA_TRY(proa_state_get_bytes(s, name, raw, sizeof raw));
    *v = 0;
    for (int i = 8; i-- > 0;) *v = *v << 8 | raw[i];
    return PROA_OK;
}

proa_status proa_state_get_int(const proa_state *s, const char *name, int64_t *to)
{
    uint64_t bits;
    PROA_TRY(get_word(s, name, &bits));
    *to = (int64_t)bits;
    return PROA_OK;
}

proa_status proa_state_get_float(const proa_state *s, const char *name, double *to)
{
    uint64_t bits;
    PROA_TRY(get_word(s, name, &bits));
    memcpy(to, &bits, sizeof bits);
    return PROA_OK;
}

proa_status proa_state_copy_to(const proa_state *s, const char *name, proa_tensor *to)
{
    PROA_TRY(proa_error());
    const proa_tensor *from = proa_state_get(s, name);
    if (!from) return proa_error();
    bool same = to && from->dtype == to->dtype && from->ndim == to->ndim;
    for (int i = 0; same && i < from->ndim; i++) same = from->shape[i] == to->shape[i];
    if (!same)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "state '%s' is %s, but the tensor to fill is %s", name,
                         proa__tensor_text(from), to ? proa__tensor_text(to) : "NULL");
    size_t bytes = (size_t)proa_numel(from) * proa_dtype_size(proa_dtype_of(from));
    if (proa__is_row_major(from)) return proa_copy_in(to, from->data, bytes);
    void *copy = proa__alloc(bytes);
    if (!copy) return proa_error();
    proa_status status = proa_copy_out(from, copy, bytes);
    if (status == PROA_OK) status = proa_copy_in(to, copy, bytes);
    proa__free(copy);
    return status;
}
