/* Implements proa_handle, through which data reach a predictor's inputs and leave its outputs, by copy or by
 * sharing memory. May use core and ops. */
#include "runtime.h"

#include "core/device.h"

#include <proa/ops.h>

static proa_status check(const proa_handle *h, const char *who)
{
    PROA_TRY(proa_error());
    return h ? PROA_OK : proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the handle is NULL", who);
}

static proa_status check_writable(const proa_handle *h, const char *who)
{
    PROA_TRY(check(h, who));
    if (h->is_input) return PROA_OK;
    return proa_fail(PROA_ERR_BAD_STATE, "%s: '%s' is an output: it can only be read", who,
                     proa_handle_name(h));
}

/* ---- queries ---------------------------------------------------------------------------- */

const char *proa_handle_name(const proa_handle *h) { return h ? h->name : NULL; }

const proa_tensor *proa_handle_variable(const proa_handle *h) { return h ? h->variable : NULL; }

int proa_handle_shape(const proa_handle *h, int64_t *dims)
{
    if (!h || !dims) return -1;
    if (h->wanted.ndim >= 0) {
        memcpy(dims, h->wanted.shape, (size_t)h->wanted.ndim * sizeof *dims);
        return h->wanted.ndim;
    }
    if (!h->tensor) return -1;
    memcpy(dims, h->tensor->shape, (size_t)h->tensor->ndim * sizeof *dims);
    return h->tensor->ndim;
}

proa_dtype proa_handle_dtype(const proa_handle *h)
{
    return h && h->tensor ? (proa_dtype)h->tensor->dtype : PROA_NODTYPE;
}

const char *proa_handle_device(const proa_handle *h)
{
    if (h && h->tensor) return proa_device_of(h->tensor);
    return h && h->owner->model->device ? h->owner->model->device : "cpu";
}

/* ---- tensors ---------------------------------------------------------------------------- */

static void put(proa_handle *h, proa_tensor *kept, bool shared)
{
    proa_release(h->tensor);
    h->tensor = kept;
    h->shared = shared;
    h->wanted.ndim = -1;
}

static void clear_lod(proa__lod *lod)
{
    for (int i = 0; i < 4; i++) proa__free(lod->offsets[i]);
    *lod = (proa__lod){0};
}

void proa__handle_clear(proa_handle *h)
{
    put(h, NULL, false);
    clear_lod(&h->lod);
}

proa_status proa_handle_reshape(proa_handle *h, proa_ints shape)
{
    PROA_TRY(check_writable(h, "reshape"));
    proa_meta meta;
    PROA_TRY(proa__meta_from_shape("reshape", shape, PROA_F32, &meta));
    h->wanted = meta;
    return PROA_OK;
}

/* The shape and dtype for new data: the shape that was set, else the current tensor's. */
static proa_status shape_of_data(const proa_handle *h, const char *who, proa_dtype dtype, proa_meta *meta)
{
    int64_t dims[PROA_MAX_DIMS];
    int ndim = proa_handle_shape(h, dims);
    if (ndim < 0)
        return proa_fail(PROA_ERR_BAD_STATE, "%s: the shape of '%s' is not known: reshape it first", who,
                         proa_handle_name(h));
    return proa__meta_from_shape(who, (proa_ints){ndim, dims, NULL, NULL}, dtype, meta);
}

/* True if the handle holds the only reference to its contiguous tensor, so that writing to it is safe. */
static bool is_own(const proa_handle *h)
{
    const proa_tensor *t = h->tensor;
    return t && !h->shared && atomic_load(&((proa_tensor *)(uintptr_t)t)->refs) == 1 && t->storage &&
           atomic_load(&t->storage->refs) == 1 && proa_is_contiguous(t);
}

/* Gives the handle an uninitialized tensor of that dtype and the shape that was set, or reuses its tensor if
 * that fits. NULL on error. */
static proa_tensor *writable_tensor(proa_handle *h, const char *who, proa_dtype dtype)
{
    PROA_SCOPED; /* the tensor is not left in the caller's scope */
    proa_meta meta;
    if (check_writable(h, who) != PROA_OK || shape_of_data(h, who, dtype, &meta) != PROA_OK) return NULL;
    const proa_tensor *t = h->tensor;
    bool fits = is_own(h) && t->dtype == dtype && t->ndim == meta.ndim &&
                !memcmp(t->shape, meta.shape, (size_t)meta.ndim * sizeof *meta.shape);
    if (!fits) {
        const char *device = h->owner->model->device;
        int id = proa_device_use(PROA_CPU);
        proa_tensor *made = !device || proa_set_device(device) == PROA_OK ? proa__tensor_new(&meta) : NULL;
        proa_device_use(id);
        if (!made) return NULL;
        put(h, proa_take(made), false);
    }
    h->wanted.ndim = -1;
    return h->tensor;
}

proa_status proa_handle_copy_in(proa_handle *h, const void *data, proa_dtype dtype)
{
    PROA_TRY(check_writable(h, "copy_from_cpu"));
    proa_tensor *t = writable_tensor(h, "copy_from_cpu", dtype);
    if (!t) return proa_error();
    size_t bytes = (size_t)t->numel * proa_dtype_size(dtype);
    if (!data && bytes)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "copy_from_cpu: the data of '%s' are NULL",
                         proa_handle_name(h));
    if (proa__device_id(t) != PROA_CPU) return proa_copy_in(t, data, bytes);
    if (bytes) memcpy(t->data, data, bytes);
    proa__bump_version(t);
    return PROA_OK;
}

void *proa_handle_mutable(proa_handle *h, proa_dtype dtype)
{
    proa_tensor *t = writable_tensor(h, "mutable_data", dtype);
    if (!t) return NULL;
    proa__bump_version(t); /* the caller writes to it */
    return t->data;
}

static proa_status check_read(const proa_handle *h, const char *who, proa_dtype dtype)
{
    PROA_TRY(check(h, who));
    if (!proa_handle_tensor(h)) return proa_error();
    if (h->tensor->dtype == dtype) return PROA_OK;
    return proa_fail(PROA_ERR_WRONG_TYPE, "%s: '%s' holds %s, not %s", who, proa_handle_name(h),
                     proa_dtype_name((proa_dtype)h->tensor->dtype), proa_dtype_name(dtype));
}

proa_status proa_handle_copy_out(const proa_handle *h, void *to, proa_dtype dtype)
{
    PROA_SCOPED;
    PROA_TRY(check_read(h, "copy_to_cpu", dtype));
    proa_tensor *t = proa_handle_tensor(h);
    size_t bytes = (size_t)t->numel * proa_dtype_size(dtype);
    if (bytes == 0) return PROA_OK;
    if (to) return proa_copy_out(t, to, bytes);
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "copy_to_cpu: the memory for '%s' is NULL",
                     proa_handle_name(h));
}

void *proa_handle_data(const proa_handle *h, proa_dtype dtype)
{
    PROA_SCOPED;
    return check_read(h, "data", dtype) == PROA_OK ? proa_data(proa_handle_tensor(h)) : NULL;
}

proa_status proa_handle_share(proa_handle *h, void *data, proa_ints shape, proa_dtype dtype)
{
    PROA_TRY(check(h, "share_external_data"));
    if (!data)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "share_external_data: the data of '%s' are NULL",
                         proa_handle_name(h));
    PROA_SCOPED;
    proa_tensor *t = proa_from_foreign(data, shape, NULL, dtype, NULL, NULL);
    if (!t) return proa_error();
    put(h, proa_take(t), true);
    return PROA_OK;
}

proa_tensor *proa_handle_tensor(const proa_handle *h)
{
    if (check(h, "handle_tensor") != PROA_OK) return NULL;
    if (!h->tensor) {
        proa_fail(PROA_ERR_BAD_STATE, "inference.Tensor: '%s' holds no memory: %s first", proa_handle_name(h),
                  h->is_input ? "copy data to it" : "run the predictor");
        return NULL;
    }
    if (h->wanted.ndim < 0) return h->tensor;
    int64_t n = 1;
    for (int d = 0; d < h->wanted.ndim; d++) n *= h->wanted.shape[d];
    if (n <= h->tensor->numel && proa_is_contiguous(h->tensor))
        return proa__tensor_view(h->tensor, h->wanted.ndim, h->wanted.shape, NULL, 0);
    proa_fail(
        PROA_ERR_BAD_STATE,
        "inference.Tensor: '%s' was reshaped to %s, but holds %lld elements: copy the data of that shape "
        "to it",
        proa_handle_name(h), proa__shape_text(h->wanted.shape, h->wanted.ndim), (long long)h->tensor->numel);
    return NULL;
}

proa_status proa_handle_set_tensor(proa_handle *h, proa_tensor *t)
{
    PROA_TRY(check_writable(h, "share_external_data"));
    if (!t || proa__absent(t) || proa_is_symbolic(t))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "share_external_data: '%s' needs a tensor that holds data", proa_handle_name(h));
    PROA_SCOPED;
    proa_tensor *alias = proa__tensor_alias(t); /* without gradient history */
    if (!alias) return proa_error();
    put(h, proa_take(alias), true);
    return PROA_OK;
}

/* ---- sequences -------------------------------------------------------------------------- */

/* Allocates a level's offsets anew, for the caller to fill. */
static proa_status make_level(proa__lod *lod, int64_t level, int64_t count)
{
    int64_t *made = proa__alloc(((size_t)count + 1) * sizeof *made);
    if (!made) return proa_error();
    proa__free(lod->offsets[level]);
    lod->offsets[level] = made;
    lod->counts[level] = count;
    if (level >= lod->levels) lod->levels = level + 1;
    return PROA_OK;
}

static proa_status check_offsets(const proa_handle *h, proa_ints level)
{
    bool rises = level.count >= 1 && level.at && level.at[0] == 0;
    for (int64_t i = 1; rises && i < level.count; i++) rises = level.at[i] >= level.at[i - 1];
    if (rises) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "set_lod: a level of '%s' must be offsets that begin with 0 and do not fall",
                     proa_handle_name(h));
}

proa_status proa_handle_set_lod(proa_handle *h, const proa_ints *levels, int64_t n)
{
    PROA_TRY(check(h, "set_lod"));
    if (n < 0 || n > 4 || (n && !levels))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "set_lod: %lld levels; expected 0 to 4", (long long)n);
    for (int64_t i = 0; i < n; i++) PROA_TRY(check_offsets(h, levels[i]));
    clear_lod(&h->lod);
    for (int64_t i = 0; i < n; i++) {
        PROA_TRY(make_level(&h->lod, i, levels[i].count));
        memcpy(h->lod.offsets[i], levels[i].at, (size_t)levels[i].count * sizeof *levels[i].at);
    }
    return PROA_OK;
}

int64_t proa_handle_lod_levels(const proa_handle *h) { return h ? h->lod.levels : 0; }

proa_ints proa_handle_lod(const proa_handle *h, int64_t level)
{
    if (!h || level < 0 || level >= h->lod.levels) return (proa_ints){0, NULL, NULL, NULL};
    return (proa_ints){h->lod.counts[level], h->lod.offsets[level], NULL, NULL};
}

/* ---- runs ------------------------------------------------------------------------------- */

static bool is_whole(unsigned dtype) { return dtype == PROA_I32 || dtype == PROA_I64; }

proa_tensor *proa__handle_feed(proa_handle *h)
{
    if (!h->tensor && h->wanted.ndim < 0) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "run: input '%s' has no data: copy_from_cpu of its handle gives it some",
                  proa_handle_name(h));
        return NULL;
    }
    proa_tensor *t = h->tensor && h->wanted.ndim < 0 ? h->tensor : proa_handle_tensor(h);
    unsigned dtype = h->variable->dtype;
    if (t && t->dtype != dtype && is_whole(t->dtype) && is_whole(dtype)) t = proa_cast(t, (proa_dtype)dtype);
    const char *device = h->owner->model->device;
    return t && (device || proa__device_id(t) != PROA_CPU) ? proa_to_device(t, device ? device : "cpu") : t;
}

proa_tensor *proa__handle_feed_lod(const proa_handle *h, int32_t level)
{
    if (level >= h->lod.levels) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "run: the rows of input '%s' form sequences: set_lod of its handle says which",
                  proa_handle_name(h));
        return NULL;
    }
    proa_ints offsets = proa_handle_lod(h, level);
    return proa_from_data(offsets.at, (proa_ints){1, &offsets.count, NULL, NULL}, PROA_I64);
}

void proa__handle_yield(proa_handle *h, proa_tensor *t)
{
    if (t != h->tensor) put(h, proa_take(t), false);
    h->wanted.ndim = -1;
}

proa_status proa__handle_yield_lod(proa_handle *h, int64_t level, const proa_tensor *offsets)
{
    PROA_TRY(make_level(&h->lod, level, offsets->numel));
    return proa_copy_out(offsets, h->lod.offsets[level], (size_t)offsets->numel * sizeof(int64_t));
}
