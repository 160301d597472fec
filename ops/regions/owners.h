/* The image of each box, checked once, and indices of pixels; for kernels of RoI pooling. May use core,
 * kernels and ops. */
#ifndef PROA_OPS_REGIONS_OWNERS_H
#define PROA_OPS_REGIONS_OWNERS_H

#include "ops/regions/regions.h"

/* Boxes by image, and the image of each box. */
typedef struct roi_owners {
    int64_t *first; /* index of each image's first box, and of the end */
    int64_t *image; /* of each box */
} roi_owners;

/* first has memory for batch + 1 entries, image for all boxes. */
static inline proa_status fill_owners(const char *op, const proa_tensor *num, const proa_tensor *offsets,
                                      int64_t batch, int64_t boxes, roi_owners *o)
{
    bool counts = !proa__absent(num);
    const char *name = counts ? "boxes_num" : "offsets";
    o->first[0] = 0;
    for (int64_t i = 0; i < batch; i++) {
        int64_t n = counts ? rows_get_int((proa_dtype)num->dtype, num->data, i)
                           : ((const int64_t *)(const void *)offsets->data)[i + 1] - o->first[i];
        if (n < 0 || n > boxes - o->first[i])
            return OP_FAIL(op, INVALID_ARGUMENT, name,
                           "gives image %lld %lld boxes; expected what is left of all %lld", (long long)i,
                           (long long)n, (long long)boxes);
        for (int64_t k = 0; k < n; k++) o->image[o->first[i] + k] = i;
        o->first[i + 1] = o->first[i] + n;
    }
    if (o->first[batch] == boxes) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "gives the images %lld boxes; expected all %lld",
                   (long long)o->first[batch], (long long)boxes);
}

static inline __attribute__((unused)) proa_status owners_of(const char *op, const proa_tensor *num,
                                                            const proa_tensor *offsets, int64_t batch,
                                                            int64_t boxes, roi_owners *o)
{
    o->first = proa_scratch((size_t)(batch + boxes + 1) * sizeof *o->first);
    if (!o->first) return proa_error();
    o->image = o->first + batch + 1;
    proa_status status = fill_owners(op, num, offsets, batch, boxes, o);
    if (status != PROA_OK) proa_scratch_free(o->first);
    return status;
}

/* v as an index from 0 to high. */
static inline __attribute__((unused)) int64_t bounded(double v, int64_t high)
{
    return v > 0 ? (v < (double)high ? (int64_t)v : high) : 0;
}

#endif
