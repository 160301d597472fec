/* Kernels of locality_aware_nms and retinanet_detection_output, in double. Compiled once per CPU level;
 * static functions and kernels only. */
#include "kernels/iterator.h"
#include "kernels/rowwise.h"
#include "ops/detection/polygons.h"
#include "impl/detection.h"

extern const proa_op proa__op_locality_aware_nms, proa__op_retinanet_detection_output;

/* Rows of class, score and box that are kept, and how the next box is judged. */
typedef struct found_rows {
    double *at;
    int64_t n, capacity, width; /* of `width` numbers each */
    int sides;
    double threshold, eta, more;
} found_rows;

static double *new_doubles(int64_t n, int64_t each)
{
    size_t count, bytes;
    if (!proa__mul_size((size_t)n + 1, (size_t)each, &count) ||
        !proa__mul_size(count, sizeof(double), &bytes))
        return NULL;
    return proa_scratch(bytes);
}

static proa_status add_row(found_rows *f, int64_t label, double score, const double *box)
{
    if (f->n == f->capacity) {
        int64_t capacity = 2 * f->capacity + 64;
        size_t bytes;
        if (!proa__mul_size((size_t)capacity, (size_t)f->width * sizeof(double), &bytes)) return proa_error();
        double *grown = proa__realloc(f->at, bytes);
        if (!grown) return proa_error();
        f->at = grown, f->capacity = capacity;
    }
    double *row = f->at + f->n++ * f->width;
    row[0] = (double)label, row[1] = score;
    memcpy(row + 2, box, (size_t)f->sides * sizeof *box);
    return PROA_OK;
}

/* Adds those of the candidates, the best first, that do not overlap one before. */
static proa_status suppress(found_rows *f, const candidate *c, int64_t n, const double *boxes, int64_t label)
{
    int64_t first = f->n;
    double threshold = f->threshold;
    for (int64_t i = 0; i < n; i++) {
        const double *mine = boxes + c[i].box * f->sides;
        bool stays = true;
        for (int64_t k = first; stays && k < f->n; k++)
            stays = overlap_of(mine, f->at + k * f->width + 2, f->sides, f->more) <= threshold;
        if (!stays) continue;
        PROA_TRY(add_row(f, label, c[i].score, mine));
        if (f->eta < 1 && threshold > 0.5) threshold *= f->eta;
    }
    return PROA_OK;
}

/* Keeps the best of the rows from `first` on, at most keep_top_k (−1: all): by score, or in their order. */
static proa_status keep_best(found_rows *f, int64_t first, int64_t keep_top_k, bool by_score)
{
    int64_t n = f->n - first, kept = keep_top_k > -1 && keep_top_k < n ? keep_top_k : n;
    if (n == 0 || (!by_score && kept == n)) return PROA_OK;
    candidate *order = proa_scratch(2 * (size_t)n * sizeof *order);
    double *rows = new_doubles(n, f->width), *at = f->at + first * f->width;
    size_t row = (size_t)f->width * sizeof(double);
    if (order && rows) {
        memcpy(rows, at, (size_t)n * row);
        for (int64_t i = 0; i < n; i++) order[i] = (candidate){rows[i * f->width + 1], i, 0};
        sort_best(order, order + n, n);
        if (!by_score) /* as before, without those behind the last one that stays */
            for (int64_t i = 0; i < kept; i++) order[i].score = -(double)order[i].box;
        if (!by_score) sort_best(order, order + n, kept);
        for (int64_t i = 0; i < kept; i++) memcpy(at + i * f->width, rows + order[i].box * f->width, row);
        f->n = first + kept;
    }
    proa_status status = order && rows ? PROA_OK : proa_error();
    proa_scratch_free(order);
    proa_scratch_free(rows);
    return status;
}

/* Writes the rows and where each image's begin. `alone`: one element of −1 takes the place of no rows. */
static proa_status write_rows(void *args, const proa_op *op, proa_dtype dtype, const found_rows *f,
                              const int64_t *ends, int64_t images, bool alone)
{
    bool none = alone && f->n == 0;
    proa_meta rows = {.dtype = dtype, .ndim = 2, .shape = {none ? 1 : f->n, none ? 1 : f->width}};
    proa_meta begins = {.dtype = PROA_I64, .ndim = 1, .shape = {none ? 2 : images + 1}};
    proa_tensor *out = proa_output_resize(args, op, 0, &rows);
    proa_tensor *offsets = out ? proa_output_resize(args, op, 1, &begins) : NULL;
    if (!offsets) return proa_error();
    int64_t *to = (int64_t *)(void *)offsets->data;
    to[0] = 0;
    for (int64_t i = 1; i < begins.shape[0]; i++) to[i] = none ? 1 : ends[i - 1];
    if (none) rows_set(dtype, out->data, 0, -1);
    else proa__convert(dtype, out->data, PROA_F64, f->at, f->n * f->width);
    return PROA_OK;
}

/* ---- locality_aware_nms ---- */

/* Merges neighbours in place; scores of boxes that are gone are −infinity. */
static void merge_neighbours(double *boxes, double *scores, int64_t n, const found_rows *f)
{
    for (int64_t i = 1, at = 0; i < n; i++) {
        double *mine = boxes + i * f->sides, *other = boxes + at * f->sides, both = scores[i] + scores[at];
        if (!(overlap_of(mine, other, f->sides, f->more) > f->threshold)) {
            at = i;
            continue;
        }
        for (int k = 0; k < f->sides; k++) other[k] = (mine[k] * scores[i] + other[k] * scores[at]) / both;
        scores[at] = both;
        scores[i] = -INFINITY;
    }
}

static proa_status near_image(const proa_locality_aware_nms_args *a, double *boxes, double *scores,
                              candidate *work, found_rows *f)
{
    int64_t n = a->bboxes->shape[1], first = f->n;
    for (int64_t label = 0; label < a->scores->shape[1]; label++, scores += n) {
        int64_t found = 0;
        if (label == a->background_label) continue;
        merge_neighbours(boxes, scores, n, f);
        for (int64_t i = 0; i < n; i++)
            if (scores[i] > (double)(float)a->score_threshold)
                work[found++] = (candidate){scores[i], i, label};
        sort_best(work, work + n, found);
        if (a->nms_top_k > -1 && found > a->nms_top_k) found = a->nms_top_k;
        PROA_TRY(suppress(f, work, found, boxes, label));
    }
    return keep_best(f, first, a->keep_top_k, false);
}

PROA_KERNEL(locality_aware_nms_cpu, locality_aware_nms)
{
    int64_t images = a->bboxes->shape[0], n = a->bboxes->shape[1], classes = a->scores->shape[1];
    proa_dtype dtype = (proa_dtype)a->bboxes->dtype;
    size_t item = proa_dtype_size(dtype);
    found_rows f = {.sides = (int)a->bboxes->shape[2],
                    .width = a->bboxes->shape[2] + 2,
                    .threshold = (float)a->nms_threshold,
                    .eta = (float)a->nms_eta,
                    .more = a->normalized ? 0 : 1};
    double *boxes = new_doubles(n, f.sides), *scores = new_doubles(n, classes);
    candidate *work = (candidate *)(void *)new_doubles(n, 2 * (int64_t)(sizeof *work / sizeof(double)));
    int64_t *ends = (int64_t *)(void *)new_doubles(images, 1);
    proa_status status = boxes && scores && work && ends ? PROA_OK : proa_error();
    for (int64_t i = 0; status == PROA_OK && i < images; i++) {
        proa__convert(PROA_F64, boxes, dtype, a->bboxes->data + (size_t)(i * n * f.sides) * item,
                      n * f.sides);
        proa__convert(PROA_F64, scores, dtype, a->scores->data + (size_t)(i * n * classes) * item,
                      n * classes);
        status = near_image(a, boxes, scores, work, &f);
        ends[i] = f.n;
    }
    if (status == PROA_OK)
        status =
            write_rows((void *)(uintptr_t)a, &proa__op_locality_aware_nms, dtype, &f, ends, images, true);
    proa_scratch_free(ends);
    proa_scratch_free(work);
    proa_scratch_free(scores);
    proa_scratch_free(boxes);
    proa__free(f.at);
    return status;
}

/* ---- retinanet_detection_output ---- */

/* Memory of one image's candidates of all levels. */
typedef struct retina {
    candidate *level, *all, *work; /* `level` and `work` twice as long as a level and as all of them */
    double *boxes;
    int64_t n;
} retina;

static double number(const proa_tensor *t, int64_t i) { return rows_get((proa_dtype)t->dtype, t->data, i); }

static double cut(double v, double end) { return v > 0 ? (v < end ? v : end) : 0; }

/* A box from its offsets (at `from` of bboxes) from an anchor, in pixels of the image before scaling. */
static void decode(const proa_tensor *bboxes, int64_t from, const proa_tensor *anchors, int64_t anchor,
                   const proa_tensor *info, int64_t image, double *to)
{
    double scale = number(info, 3 * image + 2);
    for (int k = 0; k < 2; k++) {
        double low = number(anchors, 4 * anchor + k), size = number(anchors, 4 * anchor + 2 + k) - low + 1;
        double centre = number(bboxes, from + k) * size + low + size / 2;
        double half = exp(number(bboxes, from + 2 + k)) * size / 2;
        double end = round(number(info, 3 * image + 1 - k) / scale) - 1;
        to[k] = cut((centre - half) / scale, end);
        to[k + 2] = cut((centre + half - 1) / scale, end);
    }
}

/* Adds the best candidates of a level. */
static void add_level(const proa_retinanet_detection_output_args *a, int64_t level, int64_t image, retina *r)
{
    const proa_tensor *scores = a->scores.at[level];
    int64_t places = scores->shape[1], classes = scores->shape[2], found = 0;
    double least = level + 1 < a->scores.count ? (double)(float)a->score_threshold : 0;
    for (int64_t i = 0; i < places * classes; i++) {
        double score = number(scores, image * places * classes + i);
        if (score > least) r->level[found++] = (candidate){score, i / classes, i % classes};
    }
    sort_best(r->level, r->level + places * classes, found);
    if (a->nms_top_k > -1 && found > a->nms_top_k) found = a->nms_top_k;
    for (int64_t i = 0; i < found; i++, r->n++) {
        decode(a->bboxes.at[level], 4 * (image * places + r->level[i].box), a->anchors.at[level],
               r->level[i].box, a->im_info, image, r->boxes + 4 * r->n);
        r->all[r->n] = (candidate){r->level[i].score, r->n, r->level[i].label};
    }
}

static proa_status retina_image(const proa_retinanet_detection_output_args *a, int64_t image, retina *r,
                                found_rows *f)
{
    int64_t first = f->n;
    r->n = 0;
    for (int64_t level = 0; level < a->scores.count; level++) add_level(a, level, image, r);
    for (int64_t label = 0; label < a->scores.at[0]->shape[2]; label++) {
        int64_t found = 0;
        for (int64_t i = 0; i < r->n; i++)
            if (r->all[i].label == label) r->work[found++] = r->all[i];
        sort_best(r->work, r->work + r->n, found);
        PROA_TRY(suppress(f, r->work, found, r->boxes, label + 1));
    }
    return keep_best(f, first, a->keep_top_k, true);
}

PROA_KERNEL(retinanet_detection_output_cpu, retinanet_detection_output)
{
    int64_t images = a->bboxes.at[0]->shape[0], most = 0, all = 0, each = sizeof(candidate) / sizeof(double);
    for (int64_t i = 0; i < a->scores.count; i++) {
        int64_t n = a->scores.at[i]->shape[1] * a->scores.at[i]->shape[2];
        most = n > most ? n : most, all += n;
    }
    found_rows f = {
        .sides = 4, .width = 6, .threshold = (float)a->nms_threshold, .eta = (float)a->nms_eta, .more = 1};
    retina r = {.level = (candidate *)(void *)new_doubles(most, 2 * each),
                .all = (candidate *)(void *)new_doubles(all, each),
                .work = (candidate *)(void *)new_doubles(all, 2 * each),
                .boxes = new_doubles(all, 4)};
    int64_t *ends = (int64_t *)(void *)new_doubles(images, 1);
    proa_status status = r.level && r.all && r.work && r.boxes && ends ? PROA_OK : proa_error();
    for (int64_t i = 0; status == PROA_OK && i < images; i++) {
        status = retina_image(a, i, &r, &f);
        ends[i] = f.n;
    }
    if (status == PROA_OK)
        status = write_rows((void *)(uintptr_t)a, &proa__op_retinanet_detection_output,
                            (proa_dtype)a->bboxes.at[0]->dtype, &f, ends, images, false);
    proa_scratch_free(ends);
    proa_scratch_free(r.boxes);
    proa_scratch_free(r.work);
    proa_scratch_free(r.all);
    proa_scratch_free(r.level);
    proa__free(f.at);
    return status;
}
