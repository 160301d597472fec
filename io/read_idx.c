/* Reads IDX files, the MNIST format (two zero bytes, a type byte, the rank, big-endian dims, big-endian
 * data), as tensors and as datasets of images and labels. Core and io's own headers. */
#include "io/dataset.h"
#include "io/file.h"

#include "core/device.h"

static proa_dtype dtype_of(unsigned char type)
{
    switch (type) {
    case 0x08: return PROA_U8;
    case 0x09: return PROA_I8;
    case 0x0B: return PROA_I16;
    case 0x0C: return PROA_I32;
    case 0x0D: return PROA_F32;
    case 0x0E: return PROA_F64;
    default: return PROA_NODTYPE;
    }
}

static proa_status read_head(proa__source *s, proa_meta *meta)
{
    unsigned char head[4], raw[4];
    uint64_t elements = 1;
    bool empty = false;
    PROA_TRY(proa__source_read(s, head, 4));
    meta->dtype = dtype_of(head[2]);
    if (head[0] || head[1] || meta->dtype == PROA_NODTYPE)
        return proa_fail(PROA_ERR_CORRUPT, "'%s' is no IDX file: it begins with %02x %02x %02x %02x%s",
                         s->name, head[0], head[1], head[2], head[3],
                         head[0] == 0x1f && head[1] == 0x8b ? " (gzip: unpack it first)" : "");
    if (head[3] > PROA_MAX_DIMS)
        return proa_fail(PROA_ERR_UNSUPPORTED, "'%s': rank %d, at most %d is supported", s->name, head[3],
                         PROA_MAX_DIMS);
    meta->ndim = (int8_t)head[3];
    for (int i = 0; i < meta->ndim; i++) {
        PROA_TRY(proa__source_read(s, raw, 4));
        meta->shape[i] = (int64_t)raw[0] << 24 | (int64_t)raw[1] << 16 | (int64_t)raw[2] << 8 | raw[3];
        empty |= meta->shape[i] == 0;
    }
    uint64_t left = proa__source_left(s) / proa_dtype_size(meta->dtype);
    for (int i = 0; i < meta->ndim && !empty; i++) {
        if ((uint64_t)meta->shape[i] > left / elements)
            return proa_fail(PROA_ERR_CORRUPT, "'%s' is cut off: its head says %s%s, but %llu bytes follow",
                             s->name, proa_dtype_name(meta->dtype), proa__shape_text(meta->shape, meta->ndim),
                             (unsigned long long)proa__source_left(s));
        elements *= (uint64_t)meta->shape[i];
    }
    if ((empty ? 0 : elements * proa_dtype_size(meta->dtype)) != proa__source_left(s))
        return proa_fail(PROA_ERR_CORRUPT, "'%s' has bytes behind its data", s->name);
    return PROA_OK;
}

static void to_native(char *data, int64_t n, size_t item)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; n > 0 && item > 1; n--, data += item)
        for (size_t i = 0; i < item / 2; i++) {
            char swap = data[i];
            data[i] = data[item - 1 - i];
            data[item - 1 - i] = swap;
        }
#else
    (void)data, (void)n, (void)item;
#endif
}

static proa_tensor *read_tensor(proa__source *s)
{
    proa_meta meta;
    if (read_head(s, &meta) != PROA_OK) return NULL;
    PROA__ON_CPU;
    proa_tensor *t = proa_empty((proa_ints){meta.ndim, meta.shape, NULL, NULL}, meta.dtype);
    if (!t) return NULL;
    size_t item = proa_dtype_size(meta.dtype);
    if (proa__source_read(s, t->data, (size_t)t->numel * item) != PROA_OK) {
        proa_drop(t);
        return NULL;
    }
    to_native(t->data, t->numel, item);
    return t;
}

proa_tensor *proa_read_idx_memory(const void *data, size_t bytes)
{
    proa__source s;
    if (proa_error() != PROA_OK) return NULL;
    if (!data && bytes) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "idx: data must not be NULL");
        return NULL;
    }
    proa__source_memory(&s, data, bytes, "memory");
    return read_tensor(&s);
}

proa_tensor *proa_read_idx(const char *path)
{
    proa__source s;
    if (proa_error() != PROA_OK) return NULL;
    if (!path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "idx: path must not be NULL");
        return NULL;
    }
    if (proa__source_open(&s, path) != PROA_OK) return NULL;
    proa_tensor *t = read_tensor(&s);
    proa__source_close(&s);
    return t;
}

/* Reads the labels of an IDX file of any integer type as int64. */
static proa_tensor *labels(const char *path)
{
    proa_tensor *raw = proa_read_idx(path);
    if (!raw) return NULL;
    if (raw->dtype == PROA_F32 || raw->dtype == PROA_F64) {
        proa_fail(PROA_ERR_WRONG_TYPE, "'%s': labels are %s, expected integers", path,
                  proa_dtype_name((proa_dtype)raw->dtype));
        return NULL;
    }
    PROA__ON_CPU;
    proa_tensor *y = proa_empty((proa_ints){raw->ndim, raw->shape, NULL, NULL}, PROA_I64);
    for (int64_t i = 0; y && i < y->numel; i++) {
        int64_t v = raw->dtype == PROA_U8    ? ((const uint8_t *)raw->data)[i]
                    : raw->dtype == PROA_I8  ? ((const int8_t *)raw->data)[i]
                    : raw->dtype == PROA_I16 ? ((const int16_t *)(void *)raw->data)[i]
                                             : ((const int32_t *)(void *)raw->data)[i];
        ((int64_t *)(void *)y->data)[i] = v;
    }
    return y;
}

proa_dataset *proa_idx_dataset_opt(const char *images, const char *label_file, proa_data_opts opts)
{
    PROA_SCOPED;
    proa_tensor *fields[2] = {proa_read_idx(images), NULL};
    if (!fields[0]) return NULL;
    if (label_file && !(fields[1] = labels(label_file))) return NULL;
    return proa__rows_dataset(fields, label_file ? 2 : 1, opts.shape, opts.dtype ? opts.dtype : PROA_F32,
                              opts.scale != 0 ? opts.scale : 1);
}

proa_loader *proa_load_idx_opt(const char *images, const char *label_file, proa_data_opts opts)
{
    proa_dataset *d = proa_idx_dataset_opt(images, label_file, opts);
    return d ? proa_loader_opt(d, opts) : NULL;
}
