/* Operations on the args struct of an op: copying it into a single block, freeing the copy, and serializing
 * it to the key of the kernel cache. Walks the op's field descriptors; may use core only. */
#include "core/args.h"
#include "core/args_visit.h"
#include "core/blocked.h"

#include <stdalign.h>

static size_t round8(size_t n) { return (n + 7) & ~(size_t)7; }

/* Bytes of a list of strings: the pointers, then the texts. */
static size_t strings_payload(const proa_strings *v)
{
    size_t bytes = (size_t)v->count * sizeof(char *);
    for (int64_t i = 0; i < v->count; i++) bytes += strlen(v->at[i]) + 1;
    return round8(bytes);
}

/* Bytes of the list or string of field f, which is stored behind the struct in the same block. */
static size_t payload(const proa_field *f, const void *at)
{
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_TENSORS: return (size_t)((const proa_tensors *)at)->count * sizeof(proa_tensor *);
    case PROA_FIELD_INTS: {
        const proa_ints *v = at;
        return (size_t)v->count * (sizeof(int64_t) + (v->tensors ? sizeof(proa_tensor *) : 0));
    }
    case PROA_FIELD_FLOATS: return (size_t)((const proa_floats *)at)->count * sizeof(double);
    case PROA_FIELD_STEPS: return (size_t)((const proa_steps *)at)->count * sizeof(proa_chain_step);
    case PROA_FIELD_STRING: {
        const char *s = *(const char *const *)at;
        return s ? round8(strlen(s) + 1) : 0;
    }
    case PROA_FIELD_STRINGS: return strings_payload(at);
    default: return 0;
    }
}

bool proa__args_keep_meta(proa_tensor *t, proa_tensor **kept)
{
    proa_meta meta = proa_meta_of(t);
    /* A symbolic tensor with unknown dims stays symbolic, so that the gradient rule can ask for its shape
     * when the program runs. */
    bool open = t->numel < 0 && t->flags & PROA_T_SYMBOLIC;
    proa_tensor *bare = proa__tensor_bare(&meta, open ? PROA_T_SYMBOLIC : PROA_T_META);
    if (bare && open) proa__stand_for(bare, t);
    *kept = proa_retain(bare);
    if (bare) proa_drop(bare);
    return bare != NULL;
}

static void copy_strings(proa_strings *v, char *storage)
{
    const char **list = (const char **)(void *)storage;
    char *text = storage + (size_t)v->count * sizeof *list;
    for (int64_t i = 0; i < v->count; i++) {
        size_t bytes = strlen(v->at[i]) + 1;
        list[i] = memcpy(text, v->at[i], bytes);
        text += bytes;
    }
    v->at = list;
}

static void copy_attr(const proa_field *f, void *to, const void *from, char **storage)
{
    void *at = proa_field_at(f, to);
    const void *src = proa_field_at(f, from);
    size_t bytes = payload(f, src);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_INTS: {
        proa_ints *v = at;
        if (v->count && v->at) memcpy(*storage, v->at, (size_t)v->count * sizeof(int64_t));
        v->at = (v->count && v->at) ? (const int64_t *)(const void *)*storage : NULL;
        proa_retain(v->tensor);
        if (v->tensors) {
            proa_tensor **list = (proa_tensor **)(void *)(*storage + (size_t)v->count * sizeof(int64_t));
            for (int64_t i = 0; i < v->count; i++) list[i] = proa_retain(v->tensors[i]);
            v->tensors = list;
        }
        break;
    }
    case PROA_FIELD_FLOATS: {
        proa_floats *v = at;
        if (v->count) memcpy(*storage, v->at, bytes);
        v->at = (const double *)(const void *)*storage;
        break;
    }
    case PROA_FIELD_STEPS: {
        proa_steps *v = at;
        if (v->count) memcpy(*storage, v->at, bytes);
        v->at = (const proa_chain_step *)(const void *)*storage;
        break;
    }
    case PROA_FIELD_STRING: {
        const char *s = *(const char *const *)src;
        if (s) memcpy(*storage, s, strlen(s) + 1);
        *(const char **)at = s ? *storage : NULL;
        break;
    }
    case PROA_FIELD_STRINGS: copy_strings(at, *storage); break;
    case PROA_FIELD_SCALAR: proa_retain(((proa_scalar *)at)->tensor); break;
    default: break;
    }
    *storage += bytes;
}

size_t proa__args_bytes(const proa_op *op, const void *args)
{
    size_t bytes = round8(op->args_size);
    if (op->flags & PROA_OP_FLAT) return bytes;
    for (const proa_field *f = op->fields, *end = f + op->n_fields; f < end; f++)
        if (!proa__field_one(f, args)) bytes += payload(f, proa_field_at(f, args));
    return bytes;
}

void proa__args_copy_values(const proa_op *op, const void *args, void *to)
{
    memcpy(to, args, op->args_size);
    char *storage = (char *)to + round8(op->args_size);
    bool flat = op->flags & PROA_OP_FLAT;
    for (const proa_field *f = op->fields, *end = f + op->n_fields; f < end; f++) {
        proa_tensor **one = proa__field_one(f, to);
        proa_tensors *list = one || flat ? NULL : proa__field_list(f, to);
        if (one) {
            *one = NULL;
        } else if (flat) {
            continue; /* a number, bool, dtype or enum: memcpy has copied it */
        } else if (list) {
            *list = (proa_tensors){0, (proa_tensor **)(void *)storage};
            storage += payload(f, proa_field_at(f, args));
        } else {
            copy_attr(f, to, args, &storage);
        }
    }
}

static void keep_all(const proa_op *op, const void *args, void *to)
{
    for (const proa_field *f = op->fields, *end = f + op->n_fields; f < end; f++) {
        const proa_tensors all = proa__field_all(f, args);
        proa_tensors *copy = proa__field_list(f, to);
        if (copy) copy->count = all.count;
        proa_tensor **at = proa__field_all(f, to).at;
        for (int64_t i = 0; i < all.count; i++) at[i] = proa_retain(all.at[i]);
    }
}

void *proa__args_copy(const proa_op *op, const void *args)
{
    void *block = proa__alloc(proa__args_bytes(op, args));
    if (!block) return NULL;
    proa__args_copy_values(op, args, block);
    keep_all(op, args, block);
    return block;
}

static void drop_field(const proa_field *f, void *args)
{
    const proa_tensors all = proa__field_all(f, args);
    for (int64_t k = 0; k < all.count; k++) proa_release(all.at[k]);
    if (f->kind == PROA_FIELD_INTS) {
        proa_ints *v = proa_field_at(f, args);
        proa_release(v->tensor);
        for (int64_t k = 0; v->tensors && k < v->count; k++) proa_release(v->tensors[k]);
    } else if (f->kind == PROA_FIELD_SCALAR) {
        proa_release(((proa_scalar *)proa_field_at(f, args))->tensor);
    }
}

void proa__args_drop(const proa_op *op, void *args)
{
    for (const proa_field *f = op->fields, *end = f + op->n_fields; f < end; f++) {
        proa_tensor **one = proa__field_one(f, args);
        if (one && *one) proa_release(*one);
        else if (!one && !(op->flags & PROA_OP_FLAT)) drop_field(f, args);
    }
}

void proa__args_free(const proa_op *op, void *args)
{
    if (args) proa__args_drop(op, args);
    proa__free(args);
}

/* ---- keys ------------------------------------------------------------------------------ */

typedef struct writer {
    char *at, *end;
} writer;

static void put(writer *w, const void *data, size_t bytes)
{
    if ((size_t)(w->end - w->at) < bytes) {
        w->at = w->end + 1; /* too long: from here on every write fails */
        return;
    }
    if (bytes) memcpy(w->at, data, bytes);
    w->at += bytes;
}

static void put_tensor(writer *w, const proa_tensor *t)
{
    if (w->at > w->end) return;
    if (!t || t == proa_none) {
        put(w, "-", 1);
        return;
    }
    int format = proa__format(t);
    char head[6] = {(char)t->dtype, (char)t->ndim, (char)(t->flags & PROA_T_STRIDED),
                    (char)t->kind,  (char)format,  (char)(format >> 8)};
    put(w, head, sizeof head);
    if (w->at <= w->end) put(w, t->shape, (size_t)t->ndim * sizeof(int64_t));
    if (t->flags & PROA_T_STRIDED && w->at <= w->end) put(w, t->strides, (size_t)t->ndim * sizeof(int64_t));
}

/* Without the values that the op does not use. */
static void put_step(writer *w, const proa_chain_step *step)
{
    put(w, step, offsetof(proa_chain_step, values));
    if (w->at <= w->end) put(w, step->values, (size_t)step->op->n_attr * sizeof *step->values);
}

static void put_field(writer *w, const proa_field *f, const void *at)
{
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_TENSOR: put_tensor(w, *(proa_tensor *const *)at); break;
    case PROA_FIELD_TENSORS: {
        const proa_tensors *list = at;
        put(w, &list->count, sizeof list->count);
        for (int64_t i = 0; i < list->count && w->at <= w->end; i++) put_tensor(w, list->at[i]);
        break;
    }
    case PROA_FIELD_BOOL: put(w, at, sizeof(bool)); break;
    case PROA_FIELD_INT: put(w, at, sizeof(int64_t)); break;
    case PROA_FIELD_FLOAT: put(w, at, sizeof(double)); break;
    case PROA_FIELD_DTYPE: put(w, at, sizeof(proa_dtype)); break;
    case PROA_FIELD_ENUM: put(w, at, sizeof(int)); break;
    case PROA_FIELD_INTS: {
        const proa_ints *v = at;
        put(w, &v->count, sizeof v->count);
        if (v->at && w->at <= w->end) put(w, v->at, (size_t)v->count * sizeof(int64_t));
        if (v->tensor || v->tensors) w->at = w->end + 1; /* its values may change: never cached */
        break;
    }
    case PROA_FIELD_FLOATS: {
        const proa_floats *v = at;
        put(w, &v->count, sizeof v->count);
        if (w->at <= w->end) put(w, v->at, (size_t)v->count * sizeof(double));
        break;
    }
    case PROA_FIELD_STEPS: {
        const proa_steps *v = at;
        put(w, &v->count, sizeof v->count);
        for (int64_t i = 0; i < v->count && w->at <= w->end; i++) put_step(w, &v->at[i]);
        break;
    }
    case PROA_FIELD_STRING: {
        const char *s = *(const char *const *)at;
        put(w, s, strlen(s) + 1);
        break;
    }
    case PROA_FIELD_STRINGS: {
        const proa_strings *v = at;
        put(w, &v->count, sizeof v->count);
        for (int64_t i = 0; i < v->count && w->at <= w->end; i++) put(w, v->at[i], strlen(v->at[i]) + 1);
        break;
    }
    case PROA_FIELD_SCALAR: {
        const proa_scalar *v = at;
        double values[2] = {v->f, v->im};
        int64_t whole[2] = {(int64_t)v->kind, v->i};
        put(w, whole, sizeof whole);
        if (w->at <= w->end) put(w, values, sizeof values);
        if (v->tensor) w->at = w->end + 1;
        break;
    }
    case PROA_FIELD_BLOCK: put(w, at, sizeof(void *)); break;
    }
}

size_t proa__args_key(const proa_op *op, const void *args, char *key, size_t capacity)
{
    writer w = {key, key + capacity};
    put(&w, &op, sizeof op);
    for (int i = 0; i < op->n_fields && w.at <= w.end; i++)
        put_field(&w, &op->fields[i], proa_field_at(&op->fields[i], args));
    return w.at > w.end ? 0 : (size_t)(w.at - key);
}
