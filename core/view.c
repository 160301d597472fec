/* Shapes and strides, which are in bytes: row-major strides, checks of a user's shape, handles on another
 * handle's memory, assignment of one handle's contents to another, shared memory, and the text of shapes in
 * messages. Uses tensor.c, thread.h and blocked.h. */
#include "core/blocked.h"
#include "core/thread.h"

bool proa__row_major(const int64_t *shape, int ndim, size_t item, int64_t *strides, int64_t *numel)
{
    int64_t stride = (int64_t)item, count = 1;
    bool known = true, empty = false, fits = true;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        if (shape[i] < 0) {
            known = false; /* an unknown dim of a program: strides are meaningless then */
        } else if (shape[i] == 0) {
            empty = true;
        } else {
            fits &= !__builtin_mul_overflow(stride, shape[i], &stride);
            fits &= !__builtin_mul_overflow(count, shape[i], &count);
        }
    }
    *numel = !known ? -1 : empty ? 0 : count;
    if (PROA__LIKELY(fits) || empty) return true; /* without elements strides are never used */
    proa_fail(PROA_ERR_OVERFLOW, "shape %s of %zu-byte elements takes more than 2^63 bytes",
              proa__shape_text(shape, ndim), item);
    return false;
}

proa_status proa__meta_from_shape(const char *who, proa_ints shape, proa_dtype dtype, proa_meta *meta)
{
    if (proa_dtype_size(dtype) == 0)
        return proa_fail(PROA_ERR_WRONG_TYPE, "%s: dtype: expected one of Proa's dtypes, got %s", who,
                         proa_dtype_name(dtype));
    if (shape.tensor || shape.tensors)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: shape: expected numbers, got tensors", who);
    if (shape.count < 0 || shape.count > PROA_MAX_DIMS || (shape.count > 0 && !shape.at))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: shape: expected 0 to %d lengths, got %lld", who,
                         PROA_MAX_DIMS, (long long)shape.count);
    meta->dtype = dtype;
    meta->ndim = (int8_t)shape.count;
    size_t bytes = proa_dtype_size(dtype);
    bool fits = true, empty = false;
    for (int i = 0; i < meta->ndim; i++) {
        int64_t length = shape.at[i];
        if (length < 0)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: shape: lengths must not be negative, got %s",
                             who, proa__shape_text(shape.at, meta->ndim));
        meta->shape[i] = length;
        empty |= length == 0;
        fits &= length == 0 || !__builtin_mul_overflow(bytes, (size_t)length, &bytes);
    }
    if (!empty && (!fits || bytes > (size_t)PTRDIFF_MAX))
        return proa_fail(PROA_ERR_OVERFLOW, "%s: shape %s of %s takes more than 2^63 bytes", who,
                         proa__shape_text(shape.at, meta->ndim), proa_dtype_name(dtype));
    return PROA_OK;
}

bool proa__tensor_measure(proa_tensor *t)
{
    int64_t count = 1, next = (int64_t)proa__dtype_bytes(t->dtype);
    bool known = true, dense = true, fits = true, empty = false;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] < 0) known = false;
        if (t->shape[i] == 0) empty = true;
        if (t->shape[i] != 1 && t->strides[i] != next) dense = false;
        fits &= !__builtin_mul_overflow(count, t->shape[i], &count);
        if (__builtin_mul_overflow(next, t->shape[i], &next)) dense = false;
    }
    t->numel = !known ? -1 : empty ? 0 : count;
    if (dense || !known || empty) t->flags &= ~(uint32_t)PROA_T_STRIDED;
    else t->flags |= PROA_T_STRIDED;
    if (fits || !known || empty) return true;
    t->numel = 0;
    proa_fail(PROA_ERR_OVERFLOW, "shape %s has more than 2^63 elements", proa__shape_text(t->shape, t->ndim));
    return false;
}

void proa__tensor_refresh(proa_tensor *t) { (void)proa__tensor_measure(t); }

proa_tensor *proa__tensor_view_as(proa_tensor *t, proa_dtype dtype, int ndim, const int64_t *shape,
                                  const int64_t *strides, int64_t offset)
{
    if (t->flags & PROA_T_BLOCKED && proa__plain(t) != PROA_OK) return NULL;
    proa_tensor *v = proa__tensor_view(t, ndim, shape, strides, offset);
    if (!v) return NULL;
    v->dtype = (uint8_t)dtype;
    return proa__tensor_measure(v) ? v : NULL;
}

proa_tensor *proa__tensor_alias(proa_tensor *t)
{
    proa_tensor *alias = proa__tensor_view(t, t->ndim, t->shape, t->strides, 0);
    if (alias) proa__stand_for(alias, t);
    if (alias && t->kind == PROA_ROWS) proa__rows_attach(alias, t);
    return alias;
}

void proa__tensor_assign(proa_tensor *t, const proa_tensor *from)
{
    if (t == from) return;
    proa_storage *old = t->storage;
    if (from->storage) atomic_fetch_add_explicit(&from->storage->refs, 1, memory_order_relaxed);
    t->storage = from->storage;
    t->data = from->data;
    t->dtype = from->dtype;
    t->ndim = from->ndim;
    t->numel = from->numel;
    memcpy(t->shape, from->shape, (size_t)from->ndim * sizeof *t->shape);
    memcpy(t->strides, from->strides, (size_t)from->ndim * sizeof *t->strides);
    uint32_t shown =
        PROA_T_STRIDED | PROA_T_SYMBOLIC | PROA_T_META | PROA_T_DEVICE | PROA_T_BLOCKED | PROA_T_BLOCKED_BASE;
    t->flags = (t->flags & ~shown) | (from->flags & shown);
    proa__stand_for(t, from);
    if (t->kind == PROA_ROWS) proa__rows_detach(t);
    if (from->kind == PROA_ROWS) proa__rows_attach(t, from);
    if (old) proa__storage_release(old);
}

static bool may_share(const proa_tensor *t)
{
    return t && t->kind == PROA_DENSE && !t->node &&
           !(t->flags & (PROA_T_STRIDED | PROA_T_SYMBOLIC | PROA_T_META));
}

proa_status proa_share_memory(proa_tensor *t, proa_tensor *from)
{
    PROA_TRY(proa_error());
    if (!may_share(t) || !may_share(from) || t->numel != from->numel)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "share_memory: got %s and %s; expected dense, contiguous tensors with as many "
                         "elements, and neither a result that gradients flow through",
                         proa__tensor_text(t), proa__tensor_text(from));
    PROA_SCOPED;
    PROA_TRY(proa__plain(from));
    proa_tensor *view = proa__tensor_view(from, t->ndim, t->shape, NULL, 0);
    if (!view) return proa_error();
    proa__tensor_assign(t, view);
    return PROA_OK;
}

bool proa_shares_memory(const proa_tensor *a, const proa_tensor *b)
{
    return a && b && a->storage && a->storage == b->storage;
}

/* ---- texts ----------------------------------------------------------------------------- */

char *proa__text_next(void)
{
    static char spare[PROA__TEXT]; /* shared by threads without a struct: the text may be garbled */
    proa__thread *me = proa__me();
    if (!me) return spare;
    return me->texts[me->next_text++ % PROA__TEXTS];
}

static void write_shape(char *text, size_t size, const int64_t *shape, int ndim)
{
    size_t used = 0;
    for (int i = 0; i < ndim && used < size; i++) {
        int wrote = snprintf(text + used, size - used, "%s%lld", i ? ", " : "[", (long long)shape[i]);
        if (wrote < 0) return;
        used += (size_t)wrote;
    }
    if (used < size) snprintf(text + used, size - used, ndim > 0 ? "]" : "[]");
}

const char *proa__shape_text(const int64_t *shape, int ndim)
{
    char *text = proa__text_next();
    write_shape(text, PROA__TEXT, shape, ndim);
    return text;
}

const char *proa__tensor_text(const proa_tensor *t)
{
    if (!t) return "NULL";
    if (proa__absent(t)) return "PROA_NONE";
    char *text = proa__text_next();
    int wrote = snprintf(text, PROA__TEXT, "%s", proa_dtype_name((proa_dtype)t->dtype));
    size_t used = wrote > 0 ? (size_t)wrote : 0;
    write_shape(text + used, PROA__TEXT - used, t->shape, t->ndim);
    if (t->kind != PROA_ROWS) return text;
    used = strlen(text);
    snprintf(text + used, PROA__TEXT - used, " (rows of %lld)", (long long)proa__rows_of(t)->height);
    return text;
}
