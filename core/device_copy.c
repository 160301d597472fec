/* Copies where the source, the destination or both are in a device's memory, and fills of any memory, by
 * means of the copies and fills that every device offers; also asynchronous copies to a device, where it
 * offers them. Uses the device table and copy.c for the host's part. */
#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/thread.h"

static size_t item_of(const proa_tensor *t) { return proa_dtype_size((proa_dtype)t->dtype); }

/* A contiguous handle with t's shape that owns nothing, on host memory (data) or on a device's (storage). */
static proa_tensor flat_like(const proa_tensor *t, char *data, proa_storage *storage)
{
    proa_tensor h = {.refs = 1, .kind = PROA_DENSE, .dtype = t->dtype, .ndim = t->ndim, .numel = t->numel};
    int64_t numel;
    h.data = data;
    h.storage = storage;
    h.flags = storage ? PROA_T_DEVICE : 0;
    memcpy(h.shape, t->shape, (size_t)t->ndim * sizeof *h.shape);
    (void)proa__row_major(h.shape, h.ndim, item_of(t), h.strides, &numel);
    return h;
}

static proa_status copy_same_device(const proa_device_table *d, const proa_tensor *dst,
                                    const proa_tensor *src)
{
    size_t item = item_of(dst);
    if (!((dst->flags | src->flags) & PROA_T_STRIDED))
        return d->copy(d->context, dst->data, src->data, (size_t)dst->numel * item);
    proa_strided_copy c;
    proa__copy_describe(&c, dst, src);
    return d->copy_strided(d->context, &c);
}

/* Copies src to dst through a temporary contiguous buffer in host memory. */
static proa_status through_host(proa_tensor *dst, const proa_tensor *src)
{
    size_t bytes = (size_t)src->numel * item_of(src);
    char *memory = proa__alloc(bytes);
    if (!memory) return proa_error();
    proa_tensor host = flat_like(src, memory, NULL);
    proa_status status = proa__copy(&host, src);
    if (status == PROA_OK) status = proa__copy(dst, &host);
    proa__free(memory);
    return status;
}

/* Copies between strided memory of a device and the host, through a temporary contiguous copy on the device.
 * in: dst is on the device. */
static proa_status through_device(proa_tensor *dst, const proa_tensor *src, bool in)
{
    const proa_tensor *there = in ? dst : src;
    proa_storage *storage = proa__storage_new((size_t)there->numel * item_of(there), proa__device_id(there));
    if (!storage) return proa_error();
    proa_tensor flat = flat_like(there, storage->data, storage);
    proa_status status = proa__copy(&flat, src);
    if (status == PROA_OK) status = proa__copy(dst, &flat);
    proa__storage_release(storage);
    return status;
}

proa_status proa__copy_devices(proa_tensor *dst, const proa_tensor *src)
{
    int to = proa__device_id(dst), from = proa__device_id(src);
    if (to == from) return copy_same_device(proa__device(to), dst, src);
    if (to != PROA_CPU && from != PROA_CPU) return through_host(dst, src);
    bool in = to != PROA_CPU;
    const proa_device_table *d = proa__device(in ? to : from);
    if ((in ? dst : src)->flags & PROA_T_STRIDED) return through_device(dst, src, in);
    if ((in ? src : dst)->flags & PROA_T_STRIDED) return through_host(dst, src);
    size_t bytes = (size_t)src->numel * item_of(src);
    return in ? d->copy_in(d->context, dst->data, src->data, bytes)
              : d->copy_out(d->context, dst->data, src->data, bytes);
}

static void zero_range(int64_t begin, int64_t end, void *context)
{
    memset((char *)context + begin, 0, (size_t)(end - begin));
}

/* Fills dst with the one element at `one`, which is in host memory, or in `storage` on dst's device. */
static proa_status spread(proa_tensor *dst, char *one, proa_storage *storage)
{
    proa_tensor src = flat_like(dst, one, storage);
    for (int i = 0; i < src.ndim; i++) src.strides[i] = 0;
    src.flags |= PROA_T_STRIDED;
    return proa__copy(dst, &src);
}

proa_status proa__fill(proa_tensor *dst, const void *value)
{
    static const char zero[16] = {0};
    size_t item = item_of(dst);
    char one[16];
    if (dst->numel <= 0) return PROA_OK;
    PROA_TRY(proa__plain_to_write(dst));
    memcpy(one, value ? value : zero, item);
    bool strided = dst->flags & PROA_T_STRIDED;
    if (!proa__on_device(dst)) {
        if (value || strided) return spread(dst, one, NULL);
        proa__parallel(dst->numel * (int64_t)item, 1 << 20, zero_range, dst->data);
        return PROA_OK;
    }
    int id = proa__device_id(dst);
    const proa_device_table *d = proa__device(id);
    if (!strided) return d->fill(d->context, dst->data, one, item, dst->numel);
    proa_storage *storage = proa__storage_new(item, id);
    if (!storage) return proa_error();
    proa_status status = d->fill(d->context, storage->data, one, item, 1);
    if (status == PROA_OK) status = spread(dst, storage->data, storage);
    proa__storage_release(storage);
    return status;
}

proa_status proa__put(proa_tensor *t, const void *from, size_t bytes)
{
    if (bytes == 0) return PROA_OK;
    if (!proa__on_device(t)) {
        memcpy(t->data, from, bytes);
        return PROA_OK;
    }
    const proa_device_table *d = proa__device(proa__device_id(t));
    return d->copy_in(d->context, t->data, from, bytes);
}

proa_tensor *proa__copy_to(proa_tensor *t, int device)
{
    if (proa__device_id(t) == device) return proa__contiguous(t);
    proa_meta meta = proa_meta_of(t);
    int was = proa_device_use(device);
    proa_tensor *copy = proa__tensor_new(&meta);
    proa_device_use(was);
    if (!copy) return NULL;
    if (proa__copy(copy, t) == PROA_OK) return copy;
    proa_drop(copy);
    return NULL;
}

proa_tensor *proa_send_to(proa_tensor *t, int device)
{
    if (device == PROA_CPU || proa__on_device(t) || t->kind != PROA_DENSE || !t->data)
        return proa__copy_to(t, device);
    proa_tensor *plain = proa__contiguous(t);
    if (!plain) return NULL;
    size_t bytes = (size_t)plain->numel * item_of(plain);
    proa_storage *storage = proa__storage_sent(plain->data, bytes, device);
    if (!storage) return proa_error() == PROA_OK ? proa__copy_to(t, device) : NULL;
    proa_meta meta = proa_meta_of(t);
    proa_tensor *sent = proa__tensor_bare(&meta, PROA_T_DEVICE);
    if (!sent) {
        proa__storage_release(storage);
        return NULL;
    }
    sent->storage = storage;
    sent->data = storage->data;
    return sent;
}

proa_status proa_arrive(const proa_tensor *t)
{
    const proa_device_table *d = proa__on_device(t) ? proa__device(proa__device_id(t)) : NULL;
    return d && d->arrive ? d->arrive(d->context, t->storage->data) : PROA_OK;
}
