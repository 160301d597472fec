/* The layouts in which Proa's own convolutions on blocked tensors work, as formats of core/blocked.h, and
 * what their kernels share. May use core only. */
#ifndef PROA_OPS_CONV_BLOCKS_H
#define PROA_OPS_CONV_BLOCKS_H

#include "ops/conv/geometry.h"

/* Images with channels in blocks of 16; filters [out / 16][in / 16][row][column][16 in][16 out]. 0: this
 * build has no layouts. */
int proa__conv_image_format(void);
int proa__conv_filter_format(void);

/* The same as kernels declare them (PROA_KERNEL_BLOCKED). */
static inline int conv_image_format(const void *args, const void *state)
{
    (void)args, (void)state;
    return proa__conv_image_format();
}

static inline int conv_filter_format(const void *args, const void *state)
{
    (void)args, (void)state;
    return proa__conv_filter_format();
}

#define CONV_PREPARE(op, kind, x_side, w_side, y_side)               \
    static proa_status op##_prepare(const void *args, void **state)  \
    {                                                                \
        const proa_##op##_args *a = args;                            \
        proa_tensor *sides[] = {x_side, w_side, y_side};             \
        return prepare(kind, &CONV_PARAMS(a, 2, #op), sides, state); \
    }
/* <op>_prepare of the three directions, by the file's prepare(kind, params, sides, state). sides: the tensors
 * on the input's, the filter's and the output's side, of which one is the result. */
#define CONV_PREPARE_ALL                                                        \
    CONV_PREPARE(conv2d, FORWARD, a->x, a->weight, a->out)                      \
    CONV_PREPARE(conv2d_grad_input, BACKWARD_DATA, a->d_x, a->weight, a->d_out) \
    CONV_PREPARE(conv2d_grad_filter, BACKWARD_WEIGHTS, a->x, a->d_weight, a->d_out)

#endif
