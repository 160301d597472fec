/* Implements proa_dataset: datasets over the user's functions, their samples stacked to batches, and datasets
 * over the rows of tensors. Core only. */
#include "io/dataset.h"

#include "core/device.h"

proa_dataset *proa_dataset_new(const proa_dataset_desc *desc)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!desc || desc->count < 0 || desc->fields < 1 || desc->fields > PROA_SAMPLE_FIELDS ||
        (!desc->item && !desc->batch)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "dataset: needs count >= 0, 1 to %d fields, and item or batch",
                  PROA_SAMPLE_FIELDS);
        return NULL;
    }
    proa_dataset *d = proa__alloc(sizeof *d);
    if (d) d->desc = *desc;
    return d;
}

void proa_dataset_free(proa_dataset *d)
{
    if (!d) return;
    if (d->desc.release) d->desc.release(d->desc.context);
    proa__free(d);
}

int64_t proa_dataset_count(const proa_dataset *d) { return d ? d->desc.count : 0; }

/* ---- batches from samples -------------------------------------------------------------- */

/* Copies a sample's field into row `row` of the batch tensor *to, which is made by the first sample's
 * shape. */
static proa_status place(const proa_tensor *sample, int64_t row, int64_t n, proa_tensor **to)
{
    if (!sample || proa__absent(sample))
        return proa_error()
                   ? proa_error()
                   : proa_fail(PROA_ERR_BAD_STATE, "dataset: item returned OK, but left a field NULL");
    if (row == 0) {
        int64_t shape[PROA_MAX_DIMS] = {n};
        if (sample->ndim >= PROA_MAX_DIMS)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "dataset: a sample has rank %d; batches add a dim, at most "
                             "%d are supported",
                             sample->ndim, PROA_MAX_DIMS);
        for (int i = 0; i < sample->ndim; i++) shape[i + 1] = sample->shape[i];
        PROA__ON_CPU;
        *to = proa_return(
            proa_empty((proa_ints){sample->ndim + 1, shape, NULL, NULL}, (proa_dtype)sample->dtype));
        if (!*to) return proa_error();
    }
    bool same = (*to)->dtype == sample->dtype && (*to)->ndim == sample->ndim + 1;
    for (int i = 0; same && i < sample->ndim; i++) same = (*to)->shape[i + 1] == sample->shape[i];
    if (!same)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "dataset: samples of one batch differ: %s after %s (of a batch)",
                         proa__tensor_text(sample), proa__tensor_text(*to));
    size_t bytes = (size_t)proa_numel(sample) * proa_dtype_size(proa_dtype_of(sample));
    return bytes ? proa_copy_out(sample, (*to)->data + (size_t)row * bytes, bytes) : PROA_OK;
}

static proa_status stack(proa_dataset *d, const int64_t *indices, int64_t n, proa_tensor **to)
{
    PROA_SCOPED;
    for (int64_t row = 0; row < n; row++) {
        PROA_SCOPED;
        proa_tensor *sample[PROA_SAMPLE_FIELDS] = {NULL};
        PROA_TRY(d->desc.item(d->desc.context, indices[row], sample));
        for (int i = 0; i < d->desc.fields; i++) PROA_TRY(place(sample[i], row, n, &to[i]));
    }
    for (int i = 0; i < d->desc.fields; i++) proa_return(to[i]);
    return PROA_OK;
}

proa_status proa__dataset_batch(proa_dataset *d, const int64_t *indices, int64_t n, proa_tensor **to)
{
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < n; i++)
        if (indices[i] < 0 || indices[i] >= d->desc.count)
            return proa_fail(PROA_ERR_OUT_OF_RANGE, "dataset: sample %lld of %lld", (long long)indices[i],
                             (long long)d->desc.count);
    if (n < 1) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "dataset: a batch of %lld samples", (long long)n);
    for (int i = 0; i < d->desc.fields; i++) to[i] = NULL;
    proa_status status =
        d->desc.batch ? d->desc.batch(d->desc.context, indices, n, to) : stack(d, indices, n, to);
    if (status == PROA_OK) status = proa_error();
    for (int i = 0; i < d->desc.fields && status == PROA_OK; i++)
        if (!to[i])
            status = proa_fail(PROA_ERR_BAD_STATE, "dataset: batch returned OK, but left field %d NULL", i);
    return status;
}

proa_tensors proa_dataset_batch(proa_dataset *d, const int64_t *indices, int64_t n)
{
    proa_tensors none = {0, NULL};
    if (proa_error() != PROA_OK) return none;
    if (!d || !indices) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "dataset: dataset and indices must not be NULL");
        return none;
    }
    proa_tensor **to = proa_scope_alloc(PROA_SAMPLE_FIELDS * sizeof *to);
    if (!to || proa__dataset_batch(d, indices, n, to) != PROA_OK) return none;
    return (proa_tensors){d->desc.fields, to};
}

/* ---- slices of tensors ----------------------------------------------------------------- */

typedef struct rows {
    int n;
    proa_tensor *fields[PROA_SAMPLE_FIELDS]; /* contiguous tensors; released with the dataset */
    proa_meta first;                         /* shape and dtype of one sample's field 0 as returned */
    double scale;
} rows;

static void rows_release(void *context)
{
    rows *r = context;
    for (int i = 0; i < r->n; i++) proa_release(r->fields[i]);
    proa__free(r);
}

/* Converts n elements of a real dtype to float32, times scale. */
static void to_floats(const char *from, proa_dtype dtype, int64_t n, double scale, float *to)
{
    for (int64_t i = 0; i < n; i++) {
        double v = 0;
        switch (dtype) {
        case PROA_BOOL:
        case PROA_U8: v = ((const uint8_t *)from)[i]; break;
        case PROA_I8: v = ((const int8_t *)from)[i]; break;
        case PROA_I16: v = ((const int16_t *)(const void *)from)[i]; break;
        case PROA_I32: v = ((const int32_t *)(const void *)from)[i]; break;
        case PROA_I64: v = (double)((const int64_t *)(const void *)from)[i]; break;
        case PROA_F32: v = (double)((const float *)(const void *)from)[i]; break;
        case PROA_F64: v = ((const double *)(const void *)from)[i]; break;
        default: break;
        }
        to[i] = (float)(v * scale);
    }
}

static proa_tensor *gather(const rows *r, int field, const int64_t *indices, int64_t n)
{
    const proa_tensor *from = r->fields[field];
    bool as_is = field > 0 || (r->first.dtype == (proa_dtype)from->dtype && r->scale == 1);
    proa_meta meta = field == 0 ? r->first : proa_meta_of(from);
    int64_t shape[PROA_MAX_DIMS] = {n};
    for (int i = 1; i < meta.ndim; i++) shape[i] = meta.shape[i];
    PROA__ON_CPU;
    proa_tensor *to = proa_empty((proa_ints){meta.ndim, shape, NULL, NULL}, meta.dtype);
    if (!to) return NULL;
    int64_t each = from->shape[0] ? from->numel / from->shape[0] : 0;
    size_t in = (size_t)each * proa_dtype_size((proa_dtype)from->dtype),
           out = (size_t)each * proa_dtype_size(meta.dtype);
    for (int64_t i = 0; i < n && each; i++) {
        const char *src = from->data + (size_t)indices[i] * in;
        char *dst = to->data + (size_t)i * out;
        if (as_is) memcpy(dst, src, in);
        else to_floats(src, (proa_dtype)from->dtype, each, r->scale, (float *)(void *)dst);
    }
    return to;
}

static proa_status rows_batch(void *context, const int64_t *indices, int64_t n, proa_tensor **to)
{
    const rows *r = context;
    for (int i = 0; i < r->n; i++)
        if (!(to[i] = gather(r, i, indices, n))) return proa_error();
    return PROA_OK;
}

/* A contiguous tensor with the same elements, kept. */
static proa_tensor *keep_contiguous(proa_tensor *t)
{
    if (proa_is_contiguous(t) && !proa__on_device(t)) return proa_keep(t);
    PROA__ON_CPU;
    proa_tensor *copy = proa_empty((proa_ints){t->ndim, t->shape, NULL, NULL}, (proa_dtype)t->dtype);
    if (!copy ||
        proa_copy_out(t, copy->data, (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype)) != PROA_OK)
        return NULL;
    return proa_keep(copy);
}

static proa_status check_fields(proa_tensor *const *fields, int n)
{
    for (int i = 0; i < n; i++) {
        const proa_tensor *t = fields[i];
        if (!t || proa__absent(t) || proa_is_symbolic(t) || t->ndim < 1)
            return proa_error() ? proa_error()
                                : proa_fail(PROA_ERR_INVALID_ARGUMENT,
                                            "dataset: field %d must be a tensor with at "
                                            "least one dim",
                                            i);
        if (t->shape[0] != fields[0]->shape[0])
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "dataset: field %d has %lld samples, field 0 has %lld", i,
                             (long long)t->shape[0], (long long)fields[0]->shape[0]);
    }
    return PROA_OK;
}

/* Shape and dtype of one sample's field 0: those asked for, otherwise those of a row of t. */
static proa_status first_meta(const proa_tensor *t, proa_ints shape, proa_dtype dtype, proa_meta *meta)
{
    *meta = proa_meta_of(t);
    if (dtype != PROA_NODTYPE) meta->dtype = dtype;
    if (shape.count == 0) return PROA_OK;
    int64_t each = t->shape[0] ? t->numel / t->shape[0] : 0, product = 1;
    bool fits = shape.count < PROA_MAX_DIMS && shape.at;
    meta->ndim = (int8_t)(shape.count + 1);
    for (int64_t i = 0; fits && i < shape.count; i++) {
        fits = shape.at[i] >= 0 && (shape.at[i] == 0 || product <= INT64_MAX / shape.at[i]);
        if (!fits) break;
        product *= shape.at[i];
        meta->shape[i + 1] = shape.at[i];
    }
    if (fits && (product == each || t->shape[0] == 0)) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "dataset: .shape has %lld elements, a sample has %lld",
                     (long long)product, (long long)each);
}

static bool converts(const proa_tensor *from, proa_dtype to)
{
    proa_dtype dtype = (proa_dtype)from->dtype;
    return to == PROA_F32 && dtype != PROA_F16 && dtype != PROA_BF16 && dtype != PROA_C64 &&
           dtype != PROA_C128;
}

proa_dataset *proa__rows_dataset(proa_tensor *const *fields, int n, proa_ints shape, proa_dtype dtype,
                                 double scale)
{
    proa_meta first;
    if (proa_error() != PROA_OK || check_fields(fields, n) != PROA_OK ||
        first_meta(fields[0], shape, dtype, &first) != PROA_OK)
        return NULL;
    rows *r = proa__calloc(sizeof *r);
    if (!r) return NULL;
    r->first = first;
    r->scale = scale;
    for (; r->n < n; r->n++)
        if (!(r->fields[r->n] = keep_contiguous(fields[r->n]))) break;
    proa_dataset_desc desc = {.count = fields[0]->shape[0],
                              .fields = n,
                              .batch = rows_batch,
                              .release = rows_release,
                              .context = r};
    if ((scale != 1 || first.dtype != (proa_dtype)fields[0]->dtype) && !converts(fields[0], first.dtype))
        proa_fail(PROA_ERR_UNSUPPORTED,
                  "dataset: x is converted and scaled from integers and floats to float32, not "
                  "from %s to %s",
                  proa_dtype_name((proa_dtype)fields[0]->dtype), proa_dtype_name(first.dtype));
    proa_dataset *d = r->n == n && proa_error() == PROA_OK ? proa_dataset_new(&desc) : NULL;
    if (!d) rows_release(r);
    return d;
}

proa_dataset *proa_tensor_dataset(proa_tensors fields)
{
    if (proa_error() != PROA_OK) return NULL;
    if (fields.count < 1 || fields.count > PROA_SAMPLE_FIELDS || !fields.at) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "tensor_dataset: needs 1 to %d tensors", PROA_SAMPLE_FIELDS);
        return NULL;
    }
    PROA_SCOPED;
    return proa__rows_dataset(fields.at, (int)fields.count, PROA_SCALAR_SHAPE, PROA_NODTYPE, 1);
}
