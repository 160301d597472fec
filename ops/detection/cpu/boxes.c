/* Kernels of yolo_box, prior_box and box_coder. May use core and kernels only. */
#include "ops/detection/detection.h"
#include "kernels/rowwise.h"

#define T float
#define EXP expf
#define LOG logf
#define POW powf
#include "ops/detection/cpu/boxes.inc"
#undef T
#undef EXP
#undef LOG
#undef POW
#define T double
#define EXP exp
#define LOG log
#define POW pow
#include "ops/detection/cpu/boxes.inc"

PROA_KERNEL(yolo_box_cpu, yolo_box)
{
    if (a->boxes->numel == 0) return PROA_OK;
    proa__parallel(a->x->shape[0] * (a->anchors.count / 2), 1,
                   a->x->dtype == PROA_F64 ? yolo_double : yolo_float, (void *)(uintptr_t)a);
    return PROA_OK;
}

PROA_KERNEL(prior_box_cpu, prior_box)
{
    return a->boxes->numel == 0 ? PROA_OK : a->input->dtype == PROA_F64 ? prior_double(a) : prior_float(a);
}

PROA_KERNEL(box_coder_cpu, box_coder)
{
    if (a->out->dtype == PROA_F64) code_double(a);
    else code_float(a);
    return PROA_OK;
}
