/* Kernels of generate_proposals and matrix_nms, and of distributing region proposals over pyramid levels and
 * collecting them. May use core only. */
#include "core/output_list.h"
#include "ops/detection/suppress.h"
#include "ops/regions/regions.h"

#include <math.h>

extern const proa_op proa__op_matrix_nms, proa__op_generate_proposals, proa__op_distribute_fpn_proposals,
    proa__op_collect_fpn_proposals;

/* Log of the largest growth of an anchor's side, as in Detectron. */
#define PROPOSAL_GROWTH 4.135166556742356

enum { MATRIX_SLOTS = 16 };

/* One image of matrix_nms: classes are tasks, shared out over slots that have memory of their own. */
typedef struct matrix_job {
    const proa_matrix_nms_args *a;
    candidate *work, *kept; /* per slot: candidates, twice; per class: `most` kept boxes */
    double *highest;        /* a slot: of each candidate, its highest overlap with a better one */
    int64_t *counts;        /* a class */
    int64_t image, boxes, classes, most;
} matrix_job;

/* Proposals of the images processed so far. */
typedef struct proposals {
    candidate *work, *spare;
    void *boxes, *probs; /* kept proposals: four coordinates, one score each */
    int64_t n, capacity;
} proposals;

#define T float
#define EXP expf
#define SQRT sqrtf
#define LOG2 log2f
#define FLOOR floorf
#include "ops/regions/cpu/proposals.inc"
#undef T
#undef EXP
#undef SQRT
#undef LOG2
#undef FLOOR
#define T double
#define EXP exp
#define SQRT sqrt
#define LOG2 log2
#define FLOOR floor
#include "ops/regions/cpu/proposals.inc"

static int32_t *resize_counts(void *args, const proa_op *op, int index, int64_t images)
{
    proa_meta m = {.dtype = PROA_I32, .ndim = 1, .shape = {images}};
    proa_tensor *t = proa_output_resize(args, op, index, &m);
    return t ? (int32_t *)(void *)t->data : NULL;
}

/* ---- matrix_nms --------------------------------------------------------------------------- */

/* Boxes that are kept, of all images. */
typedef struct kept_list {
    candidate *at;
    int64_t n, capacity;
} kept_list;

/* Merges one image's classes, by descending score. */
static proa_status matrix_image(matrix_job *job, kept_list *all, int32_t *count)
{
    int64_t n = 0, limit = job->a->keep_top_k;
    bool wide = job->a->bboxes->dtype == PROA_F64;
    proa__parallel(MATRIX_SLOTS, 1, wide ? matrix_slots_double : matrix_slots_float, job);
    for (int64_t c = 0; c < job->classes; c++) n += job->counts[c];
    if (all->n + n > all->capacity || !all->at) {
        size_t bytes;
        if (!proa__mul_size((size_t)(all->n + 2 * n + 64), sizeof *all->at, &bytes)) return proa_error();
        candidate *grown = proa__realloc(all->at, bytes);
        if (!grown) return proa_error();
        all->at = grown;
        all->capacity = all->n + 2 * n + 64;
    }
    candidate *to = all->at + all->n;
    for (int64_t c = 0, at = 0; c < job->classes; at += job->counts[c++])
        memcpy(to + at, job->kept + c * job->most, (size_t)job->counts[c] * sizeof *to);
    candidate *scratch = proa_scratch((size_t)(n + 1) * sizeof *scratch);
    if (!scratch) return proa_error();
    sort_best(to, scratch, n);
    proa_scratch_free(scratch);
    n = limit >= 0 && n > limit ? limit : n;
    all->n += n;
    *count = (int32_t)n;
    return PROA_OK;
}

static proa_status matrix_memory(matrix_job *job, char **memory)
{
    size_t a, b, c;
    if (!proa__mul_size((size_t)job->boxes + 1, MATRIX_SLOTS * 2 * sizeof(candidate), &a) ||
        !proa__mul_size((size_t)job->classes + 1, ((size_t)job->most + 1) * sizeof(candidate), &b) ||
        !proa__mul_size((size_t)job->most + 1, MATRIX_SLOTS * sizeof(double), &c))
        return proa_error();
    *memory = proa_scratch(a + b + c + ((size_t)job->classes + 1) * sizeof(int64_t));
    if (!*memory) return proa_error();
    job->work = (candidate *)(void *)*memory;
    job->kept = (candidate *)(void *)(*memory + a);
    job->highest = (double *)(void *)(*memory + a + b);
    job->counts = (int64_t *)(void *)(*memory + a + b + c);
    return PROA_OK;
}

PROA_KERNEL(matrix_nms_cpu, matrix_nms)
{
    void *args = (void *)(uintptr_t)a;
    int64_t images = a->bboxes->shape[0];
    matrix_job job = {.a = a, .boxes = a->bboxes->shape[1], .classes = a->scores->shape[1]};
    char *memory = NULL;
    kept_list all = {0};
    job.most = a->nms_top_k >= 0 && a->nms_top_k < job.boxes ? a->nms_top_k : job.boxes;
    int32_t *counts = resize_counts(args, &proa__op_matrix_nms, 2, images);
    if (!counts) return proa_error();
    PROA_TRY(matrix_memory(&job, &memory));
    proa_status status = PROA_OK;
    for (job.image = 0; status == PROA_OK && job.image < images; job.image++)
        status = matrix_image(&job, &all, counts + job.image);
    proa_scratch_free(memory);
    if (status == PROA_OK) {
        proa_meta row = {.dtype = (proa_dtype)a->bboxes->dtype, .ndim = 2, .shape = {all.n, 6}};
        proa_meta one = {.dtype = PROA_I32, .ndim = 2, .shape = {all.n, 1}};
        proa_tensor *out = proa_output_resize(args, &proa__op_matrix_nms, 0, &row);
        proa_tensor *index = out ? proa_output_resize(args, &proa__op_matrix_nms, 1, &one) : NULL;
        status = index ? PROA_OK : proa_error();
        for (int64_t i = 0; index && i < all.n; i++)
            ((int32_t *)(void *)index->data)[i] = (int32_t)all.at[i].box;
        if (index && a->bboxes->dtype == PROA_F64)
            matrix_write_double(a, all.at, all.n, (double *)(void *)out->data);
        else if (index) matrix_write_float(a, all.at, all.n, (float *)(void *)out->data);
    }
    proa__free(all.at);
    return status;
}

/* ---- generate_proposals ------------------------------------------------------------------- */

PROA_KERNEL(generate_proposals_cpu, generate_proposals)
{
    void *args = (void *)(uintptr_t)a;
    const proa_op *op = &proa__op_generate_proposals;
    bool wide = a->scores->dtype == PROA_F64;
    size_t item = wide ? sizeof(double) : sizeof(float), bytes;
    int64_t images = a->scores->shape[0],
            each = a->scores->shape[1] * a->scores->shape[2] * a->scores->shape[3];
    int64_t most = a->pre_nms_top_n > 0 && a->pre_nms_top_n < each ? a->pre_nms_top_n : each;
    int32_t *counts = resize_counts(args, op, 2, images);
    if (!counts) return proa_error();
    if (!proa__mul_size((size_t)each + 1, 2 * sizeof(candidate) + 5 * item, &bytes)) return proa_error();
    proposals p = {.work = proa_scratch(bytes), .capacity = images * (most + 1)};
    if (!p.work) return proa_error();
    p.spare = p.work + each;
    proa_status status = PROA_OK;
    if (!proa__mul_size((size_t)p.capacity + 1, 5 * item, &bytes)) status = proa_error();
    p.boxes = status == PROA_OK ? proa_scratch(bytes) : NULL;
    if (!p.boxes) status = proa_error();
    p.probs = (char *)p.boxes + (size_t)p.capacity * 4 * item;
    for (int64_t image = 0; status == PROA_OK && image < images; image++) {
        int64_t before = p.n;
        if (wide) propose_double(a, image, most, &p);
        else propose_float(a, image, most, &p);
        counts[image] = (int32_t)(p.n - before);
    }
    proa_meta four = {.dtype = (proa_dtype)a->scores->dtype, .ndim = 2, .shape = {p.n, 4}}, one = four;
    one.shape[1] = 1;
    proa_tensor *rois = status == PROA_OK ? proa_output_resize(args, op, 0, &four) : NULL;
    proa_tensor *probs = rois ? proa_output_resize(args, op, 1, &one) : NULL;
    if (probs && p.n) {
        memcpy(rois->data, p.boxes, (size_t)p.n * 4 * item);
        memcpy(probs->data, p.probs, (size_t)p.n * item);
    }
    proa_scratch_free(p.boxes);
    proa_scratch_free(p.work);
    return probs ? PROA_OK : proa_error();
}

/* ---- levels of a pyramid ------------------------------------------------------------------ */

/* Number of boxes of image i, which start at index `first` of `all`; −1: more than exist. */
static int64_t boxes_of(const proa_tensor *num, const proa_tensor *offsets, int64_t i, int64_t first,
                        int64_t all)
{
    int64_t n = num ? rows_get_int((proa_dtype)num->dtype, num->data, i)
                    : ((const int64_t *)(const void *)offsets->data)[i + 1] - first;
    return n < 0 || n > all - first ? -1 : n;
}

static proa_status bad_counts(const char *op, int64_t all)
{
    return OP_FAIL(op, INVALID_ARGUMENT, "rois_num", "does not sum up to %lld; expected the number of boxes",
                   (long long)all);
}

PROA_KERNEL(distribute_fpn_proposals_cpu, distribute_fpn_proposals)
{
    void *args = (void *)(uintptr_t)a;
    const proa_op *op = &proa__op_distribute_fpn_proposals;
    bool counted = !proa__absent(a->rois_num), wide = a->fpn_rois->dtype == PROA_F64;
    const proa_tensor *num = counted ? a->rois_num : NULL;
    int64_t n = a->fpn_rois->shape[0], levels = a->max_level - a->min_level + 1, first = 0;
    int64_t images = counted ? num->shape[0] : a->offsets->shape[0] - 1, sizes[129] = {0}, starts[130] = {0};
    size_t item = 4 * (wide ? sizeof(double) : sizeof(float));
    int64_t *level = proa_scratch((size_t)(n + 1) * sizeof *level);
    int32_t *restore = NULL;
    proa_tensor *boxes[129];
    proa_status status = level ? PROA_OK : proa_error();
    for (int64_t i = 0; status == PROA_OK && i < n; i++) {
        level[i] = wide ? level_double(a, i) : level_float(a, i);
        sizes[level[i]]++;
    }
    for (int64_t l = 0; status == PROA_OK && l < levels; l++) {
        proa_meta m = {.dtype = (proa_dtype)a->fpn_rois->dtype, .ndim = 2, .shape = {sizes[l], 4}};
        proa_meta c = {.dtype = PROA_I32, .ndim = 1, .shape = {images}};
        boxes[l] = proa__output_resize_at(args, op, 0, l, &m);
        proa_tensor *counts = boxes[l] ? proa__output_resize_at(args, op, 2, l, &c) : NULL;
        if (!counts) status = proa_error();
        else memset(counts->data, 0, (size_t)images * sizeof(int32_t));
        starts[l + 1] = starts[l] + sizes[l];
        sizes[l] = 0;
    }
    proa_meta m = {.dtype = PROA_I32, .ndim = 2, .shape = {n, 1}};
    proa_tensor *index = status == PROA_OK ? proa_output_resize(args, op, 1, &m) : NULL;
    if (index) restore = (int32_t *)(void *)index->data;
    else status = proa_error();
    for (int64_t i = 0; status == PROA_OK && i < images; i++) {
        int64_t here = boxes_of(num, a->offsets, i, first, n);
        if (here < 0) status = bad_counts("distribute_fpn_proposals", n);
        for (int64_t k = first; k < first + here; k++) {
            int64_t l = level[k], at = sizes[l]++;
            memcpy(boxes[l]->data + (size_t)at * item, a->fpn_rois->data + (size_t)k * item, item);
            restore[k] = (int32_t)(starts[l] + at);
            ((int32_t *)(void *)a->multi_rois_num.at[l]->data)[i]++;
        }
        first += here < 0 ? 0 : here;
    }
    if (status == PROA_OK && first != n) status = bad_counts("distribute_fpn_proposals", n);
    proa_scratch_free(level);
    return status;
}

/* All boxes with their images as labels: box is the number among those of all levels. */
static proa_status gather_levels(const proa_collect_fpn_proposals_args *a, int64_t images, candidate *all)
{
    int64_t total = 0;
    for (int64_t l = 0; l < a->multi_rois.count; l++) {
        const proa_tensor *scores = a->multi_scores.at[l];
        const proa_tensor *num = l < a->multi_rois_num.count && !proa__absent(a->multi_rois_num.at[l])
                                     ? a->multi_rois_num.at[l]
                                     : NULL;
        const proa_tensor *offsets = num ? NULL : a->offsets.at[l];
        int64_t n = a->multi_rois.at[l]->shape[0], first = 0;
        for (int64_t i = 0; i < images; i++) {
            int64_t here = boxes_of(num, offsets, i, first, n);
            if (here < 0) return bad_counts("collect_fpn_proposals", n);
            for (int64_t k = first; k < first + here; k++)
                all[total + k] =
                    (candidate){rows_get((proa_dtype)scores->dtype, scores->data, k), total + k, i};
            first += here;
        }
        if (first != n) return bad_counts("collect_fpn_proposals", n);
        total += n;
    }
    return PROA_OK;
}

static const char *box_at(const proa_tensors *levels, int64_t box, size_t item)
{
    int64_t l = 0;
    while (box >= levels->at[l]->shape[0]) box -= levels->at[l++]->shape[0];
    return levels->at[l]->data + (size_t)box * item;
}

PROA_KERNEL(collect_fpn_proposals_cpu, collect_fpn_proposals)
{
    void *args = (void *)(uintptr_t)a;
    const proa_op *op = &proa__op_collect_fpn_proposals;
    const proa_tensor *first = a->multi_rois_num.count ? a->multi_rois_num.at[0] : NULL;
    bool counted = first && !proa__absent(first);
    int64_t images = counted ? first->shape[0] : a->offsets.at[0]->shape[0] - 1, n = 0;
    size_t item = 4 * proa_dtype_size((proa_dtype)a->multi_rois.at[0]->dtype), bytes;
    for (int64_t l = 0; l < a->multi_rois.count; l++) n += a->multi_rois.at[l]->shape[0];
    if (!proa__mul_size((size_t)n + 1, 2 * sizeof(candidate), &bytes)) return proa_error();
    candidate *all = proa_scratch(bytes);
    int32_t *counts = all ? resize_counts(args, op, 1, images) : NULL;
    proa_status status = counts ? gather_levels(a, images, all) : proa_error();
    if (status == PROA_OK) sort_best(all, all + n, n);
    int64_t kept = n < a->post_nms_top_n ? n : a->post_nms_top_n, at = 0;
    proa_meta m = {.dtype = (proa_dtype)a->multi_rois.at[0]->dtype, .ndim = 2, .shape = {kept, 4}};
    proa_tensor *rois = status == PROA_OK ? proa_output_resize(args, op, 0, &m) : NULL;
    for (int64_t i = 0; rois && i < images; i++) {
        int64_t before = at;
        for (int64_t k = 0; k < kept; k++)
            if (all[k].label == i)
                memcpy(rois->data + (size_t)at++ * item, box_at(&a->multi_rois, all[k].box, item), item);
        counts[i] = (int32_t)(at - before);
    }
    proa_scratch_free(all);
    return rois ? PROA_OK : proa_error();
}
