/* Tensor handles: creation, reference counts, accessors, copies of elements to and from host memory, freeing.
 * Freeing uses a work list, so that a long chain of tensors and tape nodes that own one another does not
 * overflow the C stack. Uses memory, storage and scopes. */
#include "core/blocked.h"
#include "core/copy.h"
#include "core/thread.h"

#include <math.h>

#include "core/half.h"

static proa_tensor none = {.refs = 1, .kind = PROA_DENSE};
proa_tensor *const proa_none = &none;

proa_tensor_hooks proa__tensor_hooks;

/* ---- making ---------------------------------------------------------------------------- */

/* A handle with one reference and no content but dtype and rank; not yet in a scope. */
static inline proa_tensor *handle_new(proa_dtype dtype, int ndim, uint32_t flags)
{
    proa_tensor *t = proa__alloc(sizeof *t);
    if (PROA__UNLIKELY(!t)) return NULL;
    atomic_init(&t->refs, 1);
    t->kind = PROA_DENSE;
    t->dtype = (uint8_t)dtype;
    t->ndim = (int8_t)ndim;
    t->is_return = false;
    t->flags = flags;
    t->scope_slot = 0;
    t->numel = 0;
    t->data = NULL;
    t->storage = NULL;
    t->node = NULL;
    t->node_output = 0;
    t->base_version = 0;
    t->base = NULL;
    t->grad = NULL;
    t->var = NULL;
    t->var_serial = 0;
    t->extra = NULL;
    t->name = NULL;
    atomic_init(&t->is_saved, false);
    return t;
}

static inline void free_handle(proa_tensor *t)
{
    if (t->storage) proa__storage_release(t->storage);
    proa__free(t);
}

static inline bool check_meta(const proa_meta *meta)
{
    if (PROA__LIKELY(meta->ndim >= 0 && meta->ndim <= PROA_MAX_DIMS &&
                     proa__dtype_bytes((unsigned)meta->dtype) > 0))
        return true;
    proa_fail(PROA_ERR_INTERNAL, "new tensor: rank %d and dtype %s make no tensor", meta->ndim,
              proa_dtype_name(meta->dtype));
    return false;
}

/* Row-major strides and the number of elements of a new handle, whose dims are known; false, and an error, if
 * they are not, or the byte count overflows. */
static inline bool measure_new(proa_tensor *t, const proa_meta *meta, size_t item)
{
    int64_t bytes = (int64_t)item;
    bool usual = true; /* no dim is 0 or unknown, and nothing overflows */
    for (int i = meta->ndim - 1; i >= 0; i--) {
        int64_t length = meta->shape[i];
        t->shape[i] = length;
        t->strides[i] = bytes;
        usual &= (length > 0) & !__builtin_mul_overflow(bytes, length, &bytes);
    }
    t->numel = bytes >> __builtin_ctzll(item); /* sizes of dtypes are powers of two */
    if (PROA__LIKELY(usual)) return true;
    if (!proa__row_major(t->shape, t->ndim, item, t->strides, &t->numel)) return false;
    if (t->numel >= 0) return true;
    proa_fail(PROA_ERR_INTERNAL, "new tensor: shape %s has an unknown length",
              proa__shape_text(t->shape, t->ndim));
    return false;
}

proa_tensor *proa__tensor_new(const proa_meta *meta)
{
    if (PROA__UNLIKELY(!check_meta(meta))) return NULL;
    size_t item = proa__dtype_bytes((unsigned)meta->dtype);
    proa_tensor *t = handle_new(meta->dtype, meta->ndim, 0);
    if (PROA__UNLIKELY(!t)) return NULL;
    if (PROA__UNLIKELY(!measure_new(t, meta, item))) {
        proa__free(t);
        return NULL;
    }
    const proa__thread *me = proa__thread_self;
    int device = me ? me->stream.device : PROA_CPU;
    t->storage = proa__storage_new((size_t)t->numel * item, device);
    if (PROA__UNLIKELY(!t->storage)) {
        proa__free(t);
        return NULL;
    }
    if (PROA__UNLIKELY(device != PROA_CPU)) t->flags = PROA_T_DEVICE;
    t->data = t->storage->data;
    return proa__scope_push(t) ? t : NULL;
}

proa_tensor *proa__tensor_bare(const proa_meta *meta, uint32_t flags)
{
    if (!check_meta(meta)) return NULL;
    proa_tensor *t = handle_new(meta->dtype, meta->ndim, flags);
    if (!t) return NULL;
    memcpy(t->shape, meta->shape, sizeof t->shape);
    if (!proa__row_major(t->shape, t->ndim, proa_dtype_size(meta->dtype), t->strides, &t->numel)) {
        proa__free(t);
        return NULL;
    }
    return proa__scope_push(t) ? t : NULL;
}

proa_tensor *proa_tensor_without_memory(const proa_meta *meta)
{
    return proa__tensor_bare(meta, PROA_T_META);
}

proa_tensor *proa__tensor_view(proa_tensor *t, int ndim, const int64_t *shape, const int64_t *strides,
                               int64_t offset)
{
    if (ndim < 0 || ndim > PROA_MAX_DIMS) {
        proa_fail(PROA_ERR_INTERNAL, "view: rank %d is beyond %d", ndim, PROA_MAX_DIMS);
        return NULL;
    }
    bool rows = t->kind == PROA_ROWS; /* the view of a SelectedRows is a dense tensor of its stored rows */
    uint32_t kept =
        PROA_T_SYMBOLIC | PROA_T_META | PROA_T_DEVICE | (rows ? 0 : PROA_T_NOT_DENSE) | PROA_T_BLOCKED_BASE;
    int64_t dense[PROA_MAX_DIMS];
    if (PROA__UNLIKELY(t->flags & PROA_T_BLOCKED)) {
        int64_t numel;
        size_t item = proa__dtype_bytes(t->dtype);
        if (!strides && !proa__row_major(shape, ndim, item, dense, &numel)) return NULL;
        if (!strides) strides = dense;
        bool whole = ndim == t->ndim && !offset && !memcmp(shape, t->shape, (size_t)ndim * sizeof *shape) &&
                     !memcmp(strides, t->strides, (size_t)ndim * sizeof *strides);
        if (!whole && proa__plain(t) != PROA_OK) return NULL;
        kept |= whole ? PROA_T_BLOCKED : 0;
    }
    proa_tensor *v = handle_new((proa_dtype)t->dtype, ndim, t->flags & kept);
    if (!v) return NULL;
    v->kind = rows ? PROA_DENSE : t->kind;
    v->storage = t->storage;
    if (v->storage) atomic_fetch_add_explicit(&v->storage->refs, 1, memory_order_relaxed);
    if (PROA__UNLIKELY(t->flags & PROA_T_BLOCKED) && !(v->flags & PROA_T_BLOCKED))
        v->flags |= PROA_T_BLOCKED_BASE;
    const char *data = proa__data_now(t);
    v->data = data ? (char *)(uintptr_t)data + offset : NULL;
    bool fits;
    if (strides) {
        for (int i = 0; i < ndim; i++) v->shape[i] = shape[i], v->strides[i] = strides[i];
        fits = proa__tensor_measure(v);
    } else {
        for (int i = 0; i < ndim; i++) v->shape[i] = shape[i];
        fits = proa__row_major(v->shape, ndim, proa__dtype_bytes(t->dtype), v->strides, &v->numel);
    }
    if (PROA__UNLIKELY(!fits)) {
        free_handle(v);
        return NULL;
    }
    return proa__scope_push(v) ? v : NULL;
}

static bool fill_meta(const char *who, proa_ints shape, proa_dtype dtype, proa_meta *meta)
{
    return proa_error() == PROA_OK && proa__meta_from_shape(who, shape, dtype, meta) == PROA_OK;
}

proa_tensor *proa_empty(proa_ints shape, proa_dtype dtype)
{
    proa_meta meta;
    return fill_meta("empty", shape, dtype, &meta) ? proa__tensor_new(&meta) : NULL;
}

proa_tensor *proa_from_data(const void *data, proa_ints shape, proa_dtype dtype)
{
    proa_meta meta;
    if (!fill_meta("from_data", shape, dtype, &meta)) return NULL;
    proa_tensor *t = proa__tensor_new(&meta);
    if (!t || t->numel == 0) return t;
    if (data && proa_copy_in(t, data, (size_t)t->numel * proa_dtype_size(dtype)) == PROA_OK) {
        atomic_store_explicit(&t->storage->version, 0, memory_order_relaxed);
        return t;
    }
    if (!data)
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "from_data: data is NULL, expected %s", proa__tensor_text(t));
    return NULL;
}

/* On failure `release` is not called: the caller still owns the memory. */
proa_tensor *proa_from_foreign(void *data, proa_ints shape, const int64_t *strides, proa_dtype dtype,
                               void (*release)(void *), void *context)
{
    proa_meta meta;
    if (!fill_meta("from_foreign", shape, dtype, &meta)) return NULL;
    proa_tensor *t = handle_new(dtype, meta.ndim, 0);
    if (!t) return NULL;
    memcpy(t->shape, meta.shape, sizeof t->shape);
    bool ok = proa__row_major(t->shape, t->ndim, proa_dtype_size(dtype), t->strides, &t->numel);
    if (ok && t->numel > 0 && !data) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "from_foreign: data is NULL, expected %s", proa__tensor_text(t));
        ok = false;
    }
    if (ok) t->storage = proa__storage_foreign(data, (size_t)t->numel * proa_dtype_size(dtype));
    if (!t->storage) {
        proa__free(t);
        return NULL;
    }
    if (strides) {
        for (int i = 0; i < t->ndim; i++) t->strides[i] = strides[i];
        (void)proa__tensor_measure(t); /* the shape was checked above */
    }
    t->data = data;
    if (!proa__scope_push(t)) return NULL;
    t->storage->release = release; /* set last, so that a failure above leaves the memory with the caller */
    t->storage->context = context;
    return t;
}

/* ---- owning ---------------------------------------------------------------------------- */

proa_tensor *proa_retain(proa_tensor *t)
{
    if (t && t != &none) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

/* Releases everything that a handle owns; handles that thereby lose their last owner go onto the work
 * list. */
static void free_parts(proa_tensor *t)
{
    const proa_tensor_hooks *hooks = &proa__tensor_hooks;
    if (t->node && hooks->free_node) hooks->free_node(t->node);
    if (t->grad && hooks->free_grad) hooks->free_grad(t->grad);
    if (t->kind == PROA_ROWS) proa__rows_detach(t);
    proa_release(t->base);
    proa__free(t->name);
    free_handle(t);
}

static __attribute__((noinline)) void destroy(proa_tensor *t)
{
    proa__thread *me = proa__me();
    if (!me) { /* no memory for the per-thread struct with the work list: frees recursively */
        free_parts(t);
        return;
    }
    if (me->destroying) {
        t->var = (struct proa_var *)(void *)me->dying; /* `var` links the work list */
        me->dying = t;
        return;
    }
    me->destroying = true;
    for (;;) {
        free_parts(t);
        t = me->dying;
        if (!t) break;
        me->dying = (proa_tensor *)(void *)t->var;
        t->var = NULL;
    }
    me->destroying = false;
}

void proa_release(proa_tensor *t)
{
    if (!t || t == &none) return;
    /* A sole owner needs no locked instruction: nobody else can retain meanwhile. */
    if (atomic_load_explicit(&t->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (PROA__UNLIKELY(t->scope_slot != 0)) { /* the scope holds the last reference */
        atomic_store_explicit(&t->refs, 1, memory_order_relaxed);
        proa_fail(PROA_ERR_BAD_STATE, "release: %s was not kept; its scope releases it (or proa_drop)",
                  proa__tensor_text(t));
        return;
    }
    if (PROA__LIKELY(!t->node && !t->grad && !t->extra && !t->base && !t->name)) free_handle(t);
    else destroy(t);
}

/* ---- accessors ----------------------------------------------------------------------------- */

static bool missing(const char *who, const proa_tensor *t)
{
    if (t && t != &none) return false;
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: expected a tensor, got %s", who, t ? "PROA_NONE" : "NULL");
    return true;
}

int proa_ndim(const proa_tensor *t) { return t ? t->ndim : 0; }

int64_t proa_dim(const proa_tensor *t, int axis)
{
    if (missing("dim", t)) return -1;
    int at = axis < 0 ? axis + t->ndim : axis;
    if (at >= 0 && at < t->ndim) return t->shape[at];
    proa_fail(PROA_ERR_OUT_OF_RANGE, "dim: axis %d is outside [%d, %d) of %s", axis, -t->ndim, t->ndim,
              proa__tensor_text(t));
    return -1;
}

const int64_t *proa_shape_of(const proa_tensor *t) { return t ? t->shape : NULL; }
const int64_t *proa_strides_of(const proa_tensor *t) { return t ? t->strides : NULL; }
proa_dtype proa_dtype_of(const proa_tensor *t) { return t ? (proa_dtype)t->dtype : PROA_NODTYPE; }
int64_t proa_numel(const proa_tensor *t) { return t ? t->numel : 0; }
bool proa_is_contiguous(const proa_tensor *t) { return t && !(t->flags & PROA_T_STRIDED); }
bool proa_is_symbolic(const proa_tensor *t) { return t && (t->flags & PROA_T_SYMBOLIC); }

void *proa_data(const proa_tensor *t)
{
    if (!t || proa__plain(t) != PROA_OK) return NULL;
    if (t->storage) atomic_store_explicit(&t->storage->pinned, true, memory_order_relaxed);
    return t->data;
}

const char *proa_name_of(const proa_tensor *t) { return t ? t->name : NULL; }

void proa_touch(proa_tensor *t)
{
    if (!t) return;
    (void)proa__plain_to_write(t);
    proa__bump_version(t);
}

proa_status proa_set_name(proa_tensor *t, const char *name)
{
    PROA_TRY(proa_error());
    if (missing("set_name", t)) return proa_error();
    char *copy = name ? proa__strdup(name) : NULL;
    if (name && !copy) return proa_error();
    proa__free(t->name);
    t->name = copy;
    return PROA_OK;
}

/* ---- elements -------------------------------------------------------------------------- */

/* Checks that `bytes` is the size of t's elements and that t has elements to copy; false and an error
 * otherwise. */
static bool check_bytes(const char *who, const proa_tensor *t, const void *memory, size_t bytes)
{
    if (missing(who, t)) return false;
    if ((t->flags & (PROA_T_SYMBOLIC | PROA_T_META)) || t->kind > PROA_ROWS || !t->storage) {
        proa_fail(PROA_ERR_BAD_STATE, "%s: %s has no elements in memory (%s)", who, proa__tensor_text(t),
                  t->flags & PROA_T_SYMBOLIC ? "it is a variable of a program" : "it is not a dense tensor");
        return false;
    }
    size_t want = (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
    if (bytes == want && (memory || want == 0)) return true;
    if (bytes == want) proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the memory is NULL", who);
    else
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: expected %zu bytes for %s, got %zu", who, want,
                  proa__tensor_text(t), bytes);
    return false;
}

/* A handle with t's shape on host memory: on the caller's stack, owns nothing. */
static proa_tensor host_handle(const proa_tensor *t, void *memory)
{
    proa_tensor h = {.refs = 1, .kind = PROA_DENSE, .dtype = t->dtype, .ndim = t->ndim, .numel = t->numel};
    h.data = memory;
    memcpy(h.shape, t->shape, (size_t)t->ndim * sizeof *h.shape);
    int64_t numel;
    (void)proa__row_major(h.shape, h.ndim, proa_dtype_size((proa_dtype)t->dtype), h.strides, &numel);
    return h;
}

proa_status proa_copy_out(const proa_tensor *t, void *to, size_t bytes)
{
    PROA_TRY(proa_error());
    if (!check_bytes("copy_out", t, to, bytes)) return proa_error();
    if (bytes == 0) return PROA_OK;
    if (PROA__UNLIKELY(t->flags & PROA_T_BLOCKED) && !(t->flags & PROA_T_DEVICE))
        return proa__blocked_copy_out(t, to);
    if (!(t->flags & (PROA_T_STRIDED | PROA_T_DEVICE))) {
        memcpy(to, t->data, bytes);
        return PROA_OK;
    }
    proa_tensor host = host_handle(t, to);
    return proa__copy(&host, t);
}

proa_status proa_copy_in(proa_tensor *t, const void *from, size_t bytes)
{
    PROA_TRY(proa_error());
    if (!check_bytes("copy_in", t, from, bytes)) return proa_error();
    PROA_TRY(proa__plain_to_write(t));
    proa__bump_version(t);
    if (bytes == 0) return PROA_OK;
    void *memory = (void *)(uintptr_t)from; /* from is only read through this pointer */
    if (!(t->flags & (PROA_T_STRIDED | PROA_T_DEVICE))) {
        memcpy(t->data, from, bytes);
        return PROA_OK;
    }
    proa_tensor host = host_handle(t, memory);
    return proa__copy(t, &host);
}

/* Copies the single element, in its dtype, to `value` (16 bytes). */
static bool one_element(const char *who, const proa_tensor *t, void *value)
{
    if (proa_error() != PROA_OK || missing(who, t)) return false;
    if (t->numel != 1) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: expected a tensor of one element, got %s", who,
                  proa__tensor_text(t));
        return false;
    }
    return proa_copy_out(t, value, proa_dtype_size((proa_dtype)t->dtype)) == PROA_OK;
}

double proa__element(proa_dtype dtype, const void *at, bool imaginary)
{
    switch (dtype) {
    case PROA_BOOL: return *(const uint8_t *)at != 0;
    case PROA_U8: return *(const uint8_t *)at;
    case PROA_I8: return *(const int8_t *)at;
    case PROA_I16: return *(const int16_t *)at;
    case PROA_I32: return *(const int32_t *)at;
    case PROA_I64: return (double)*(const int64_t *)at;
    case PROA_F16: return (double)proa__f16_to_f32(*(const uint16_t *)at);
    case PROA_BF16: return (double)proa__bf16_to_f32(*(const uint16_t *)at);
    case PROA_F32: return (double)*(const float *)at;
    case PROA_F64: return *(const double *)at;
    case PROA_C64: return (double)((const float *)at)[imaginary];
    case PROA_C128: return ((const double *)at)[imaginary];
    case PROA_NODTYPE:
    case PROA_DTYPE_COUNT: break;
    }
    return (double)NAN;
}

double proa_item(const proa_tensor *t)
{
    _Alignas(16) char value[16];
    return one_element("item", t, value) ? proa__element((proa_dtype)t->dtype, value, false) : (double)NAN;
}

int64_t proa_item_int(const proa_tensor *t)
{
    _Alignas(16) char value[16];
    if (!one_element("item_int", t, value)) return 0;
    if (t->dtype == PROA_I64) return *(const int64_t *)(const void *)value;
    double v = proa__element((proa_dtype)t->dtype, value, false);
    if (v >= -0x1p63 && v < 0x1p63) return (int64_t)v;
    proa_fail(PROA_ERR_OVERFLOW, "item_int: %g does not fit into 64 bits", v);
    return 0;
}
