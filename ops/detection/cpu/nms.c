/* Kernels of nms and multiclass_nms: a box is removed if it overlaps one with a higher score too much. May
 * use core and kernels only. */
#include "ops/detection/detection.h"
#include "ops/detection/suppress.h"
#include "kernels/rowwise.h"

#include <stdlib.h>

extern const proa_op proa__op_nms, proa__op_multiclass_nms;

/* Buffers for one image's candidates, twice, and for what is kept of all; a candidate's box is its row. Rows
 * are box_step boxes apart: those of all classes, of which a class has the one box_of_label on, or one. */
typedef struct detections {
    candidate *work, *scratch, *kept;
    int64_t n_kept, kept_capacity;
    int64_t classes, box_step, box_of_label;
} detections;

/* One image's rows, and where its scores are: the first, and the steps from row to row and class to class. */
typedef struct image_rows {
    int64_t first, count;
    int64_t scores, score_step, score_of_label;
} image_rows;

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
#include "ops/detection/cpu/nms.inc"
#undef T
#define T double
#include "ops/detection/cpu/nms.inc"

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
static proa_status limit(detections *d, int64_t first, int64_t keep_top_k)
{
    int64_t n = d->n_kept - first;
    if (keep_top_k < 0 || n <= keep_top_k) return PROA_OK;
    candidate *scratch = proa__alloc(2 * (size_t)n * sizeof *scratch), *at = d->kept + first;
    if (!scratch) return proa_error();
    memcpy(scratch, at, (size_t)n * sizeof *scratch);
    sort_best(scratch, scratch + n, n);
    for (int64_t label = 0; label < d->classes; label++)
        for (int64_t i = 0; i < keep_top_k; i++)
            if (scratch[i].label == label) *at++ = scratch[i];
    d->n_kept = first + keep_top_k;
    proa__free(scratch);
    return PROA_OK;
}

/* Orders candidates by class, and within it by row. */
static int by_row(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->label != b->label) return a->label < b->label ? -1 : 1;
    return (a->box > b->box) - (a->box < b->box);
}

/* The rows of an image. Those with boxes_num follow one another; *rows: those of the image before. */
static proa_status rows_of_image(const proa_multiclass_nms_args *a, int64_t image, image_rows *rows)
{
    const int64_t all = a->bboxes->shape[0], boxes = a->bboxes->shape[1], classes = a->scores->shape[1];
    if (proa__absent(a->boxes_num)) {
        *rows = (image_rows){image * boxes, boxes, image * classes * boxes, 1, boxes};
        return PROA_OK;
    }
    const int64_t first = rows->first + rows->count,
                  count = ((const int32_t *)(const void *)a->boxes_num->data)[image];
    if (count < 0 || count > all - first)
        return ROWS_FAIL(multiclass_nms, OUT_OF_RANGE, "boxes_num",
                         "gives image %lld %lld rows; expected what is left of all %lld", (long long)image,
                         (long long)count, (long long)all);
    *rows = (image_rows){first, count, first * classes, classes, 1};
    return PROA_OK;
}

/* Detects in all images; counts: how many are kept of each. */
static proa_status detect_all(const proa_multiclass_nms_args *a, int64_t images, int32_t *counts,
                              detections *d)
{
    const bool wide = a->bboxes->dtype == PROA_F64, by_class = !proa__absent(a->boxes_num);
    image_rows rows = {0};
    for (int64_t image = 0; image < images; image++) {
        const int64_t before = d->n_kept;
        PROA_TRY(rows_of_image(a, image, &rows));
        PROA_TRY(wide ? detect_double(a, &rows, d) : detect_float(a, &rows, d));
        PROA_TRY(limit(d, before, a->keep_top_k));
        if (by_class && d->n_kept > before)
            qsort(d->kept + before, (size_t)(d->n_kept - before), sizeof *d->kept, by_row);
        counts[image] = (int32_t)(d->n_kept - before);
    }
    return wide ? write_double(a, d) : write_float(a, d);
}

PROA_KERNEL(multiclass_nms_cpu, multiclass_nms)
{
    const bool by_class = !proa__absent(a->boxes_num);
    const int64_t most = a->bboxes->shape[by_class ? 0 : 1],
                  images = by_class ? a->boxes_num->shape[0] : a->bboxes->shape[0];
    size_t bytes;
    if (!proa__mul_size((size_t)most + 1, 2 * sizeof(candidate), &bytes)) return proa_error();
    detections d = {.work = proa_scratch(bytes), .classes = a->scores->shape[1], .box_step = 1};
    if (!d.work) return proa_error();
    if (by_class) d.box_step = d.classes, d.box_of_label = 1;
    d.scratch = d.work + most;
    proa_meta each = {.dtype = PROA_I32, .ndim = 1, .shape = {images}};
    const proa_tensor *number = proa_output_resize((void *)(uintptr_t)a, &proa__op_multiclass_nms, 2, &each);
    proa_status status = number ? detect_all(a, images, (int32_t *)(void *)number->data, &d) : proa_error();
    proa_scratch_free(d.work);
    proa__free(d.kept);
    return status;
}
