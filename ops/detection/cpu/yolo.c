/* yolov3_loss and its gradient on the CPU; the unit of work is an image. Compiled once per CPU level; static
 * functions and kernels only. */
#include "kernels/rowwise.h"
#include "ops/ints.h"
#include "impl/detection.h"

#include <math.h>

/* One call; `objectness` and `match` are written forward and read backward. */
typedef struct yolo_job {
    const void *x, *box, *score, *d_loss; /* score: NULL without */
    void *loss, *d_x, *objectness;
    const proa_tensor *label;
    int32_t *match;
    const int64_t *anchors, *mask;
    int64_t pairs, count, classes, height, width, boxes, input_size;
    double ignore, scale, positive, negative; /* labels of classes */
} yolo_job;

#define YOLO_JOB(a)                                                                                    \
    {                                                                                                  \
        .x = (a)->x->data, .box = (a)->gt_box->data, .objectness = (a)->objectness->data,              \
        .score = proa__absent((a)->gt_score) ? NULL : (a)->gt_score->data, .label = (a)->gt_label,     \
        .match = (int32_t *)(void *)(a)->match->data, .anchors = (a)->anchors.at,                      \
        .mask = (a)->anchor_mask.at, .pairs = (a)->anchors.count / 2, .count = (a)->anchor_mask.count, \
        .classes = (a)->class_num, .height = (a)->x->shape[2], .width = (a)->x->shape[3],              \
        .boxes = (a)->gt_box->shape[1], .input_size = (a)->downsample_ratio * (a)->x->shape[2],        \
        .ignore = (float)(a)->ignore_thresh, .scale = (float)(a)->scale_x_y, .positive = 1,            \
    }

/* Label smoothing leaves 1/classes, at most 1/40, to the other classes. */
static void smooth_labels(yolo_job *j)
{
    double rest = 1.0 / (double)j->classes < 1.0 / 40 ? 1.0 / (double)j->classes : 1.0 / 40;
    j->positive = 1 - rest, j->negative = rest;
}

#define T float
#define EXP expf
#define LOG logf
#define LOG1P log1pf
#define ABS fabsf
#include "ops/detection/cpu/yolo.inc"
#undef T
#undef EXP
#undef LOG
#undef LOG1P
#undef ABS
#define T double
#define EXP exp
#define LOG log
#define LOG1P log1p
#define ABS fabs
#include "ops/detection/cpu/yolo.inc"

PROA_KERNEL(yolov3_loss_cpu, yolov3_loss)
{
    yolo_job job = YOLO_JOB(a);
    job.loss = a->loss->data;
    if (a->use_label_smooth) smooth_labels(&job);
    proa__parallel(a->x->shape[0], 1, a->x->dtype == PROA_F64 ? yolo_images_double : yolo_images_float, &job);
    return PROA_OK;
}

PROA_KERNEL(yolov3_loss_grad_cpu, yolov3_loss_grad)
{
    yolo_job job = YOLO_JOB(a);
    job.d_loss = a->d_loss->data, job.d_x = a->d_x->data;
    for (int64_t i = 0; i < a->match->numel; i++)
        if (job.match[i] < -1 || job.match[i] >= job.count)
            return OP_FAIL("yolov3_loss_grad", OUT_OF_RANGE, "match",
                           "has %lld; expected −1 or one of the %lld indices in anchor_mask",
                           (long long)job.match[i], (long long)job.count);
    if (a->use_label_smooth) smooth_labels(&job);
    proa__parallel(a->x->shape[0], 1,
                   a->x->dtype == PROA_F64 ? yolo_images_back_double : yolo_images_back_float, &job);
    return PROA_OK;
}
