/* Kernels of nms and multiclass_nms: a box is removed if it overlaps one with a higher score too much. May
 * use core and kernels only. */
#include "ops/detection/detection.h"
#include "ops/detection/suppress.h"
#include "kernels/rowwise.h"

extern const proa_op proa__op_nms, proa__op_multiclass_nms;

/* Buffers for one image's candidates, twice, and for what is kept of all. */
typedef struct detections {
    candidate *work, *scratch, *kept;
    int64_t n_kept, kept_capacity;
} detections;

static proa_status keep(detections *d, const candidate *from, int64_t n)
{
    if (n == 0) return PROA_OK;
    if (d->n_kept + n > d->kept_capacity) {
        int64_t capacity = 2 * (d->n_kept + n);
        size_t bytes;
        if (!proa__mul_size((size_t)capacity, sizeof *d->kept, &bytes)) return proa_error();
        candidate *grown = proa__realloc(d->kept, bytes);
        if (!grown) return proa_error();
        d->kept = grown;
        d->kept_capacity = capacity;
    }
    memcpy(d->kept + d->n_kept, from, (size_t)n * sizeof *from);
    d->n_kept += n;
    return PROA_OK;
}

#define T float
#include "cpu_nms.inc"
#undef T
#define T double
#include "cpu_nms.inc"

PROA_KERNEL(nms_cpu, nms)
{
    int64_t n = a->boxes->shape[0], kept;
    size_t bytes;
    if (!proa__mul_size((size_t)n + 1, sizeof(int64_t), &bytes)) return proa_error();
    int64_t *place = proa_scratch(bytes);
    if (!place) return proa_error();
    if (a->boxes->dtype == PROA_F64)
        kept = suppress_double((const double *)(const void *)a->boxes->data, n, a->threshold, place);
    else kept = suppress_float((const float *)(const void *)a->boxes->data, n, (float)a->threshold, place);
    proa_meta meta = {.dtype = PROA_I64, .ndim = 1, .shape = {kept}};
    proa_tensor *out = proa_output_resize((void *)(uintptr_t)a, &proa__op_nms, 0, &meta);
    if (out && kept) memcpy(out->data, place, (size_t)kept * sizeof *place);
    proa_scratch_free(place);
    return out ? PROA_OK : proa_error();
}

/* Of one image's boxes, from `first` on, the keep_top_k best, by class and then by score. */
static proa_status limit(detections *d, int64_t first, int64_t keep_top_k, int64_t classes)
{
    int64_t n = d->n_kept - first;
    if (keep_top_k < 0 || n <= keep_top_k) return PROA_OK;
    candidate *scratch = proa__alloc(2 * (size_t)n * sizeof *scratch), *at = d->kept + first;
    if (!scratch) return proa_error();
    memcpy(scratch, at, (size_t)n * sizeof *scratch);
    sort_best(scratch, scratch + n, n);
    for (int64_t label = 0; label < classes; label++)
        for (int64_t i = 0; i < keep_top_k; i++)
            if (scratch[i].label == label) *at++ = scratch[i];
    d->n_kept = first + keep_top_k;
    proa__free(scratch);
    return PROA_OK;
}

PROA_KERNEL(multiclass_nms_cpu, multiclass_nms)
{
    int64_t boxes = a->bboxes->shape[1];
    size_t bytes;
    if (!proa__mul_size((size_t)boxes + 1, 2 * sizeof(candidate), &bytes)) return proa_error();
    detections d = {.work = proa_scratch(bytes)};
    if (!d.work) return proa_error();
    d.scratch = d.work + boxes;
    proa_meta each = {.dtype = PROA_I32, .ndim = 1, .shape = {a->bboxes->shape[0]}};
    const proa_tensor *number = proa_output_resize((void *)(uintptr_t)a, &proa__op_multiclass_nms, 2, &each);
    int32_t *counts = number ? (int32_t *)(void *)number->data : NULL;
    bool wide = a->bboxes->dtype == PROA_F64;
    proa_status status = number ? PROA_OK : proa_error();
    for (int64_t image = 0; status == PROA_OK && image < a->bboxes->shape[0]; image++) {
        int64_t before = d.n_kept;
        status = wide ? detect_double(a, image, &d) : detect_float(a, image, &d);
        if (status == PROA_OK) status = limit(&d, before, a->keep_top_k, a->scores->shape[1]);
        counts[image] = (int32_t)(d.n_kept - before);
    }
    if (status == PROA_OK) status = wide ? write_double(a, &d) : write_float(a, &d);
    proa_scratch_free(d.work);
    proa__free(d.kept);
    return status;
}
