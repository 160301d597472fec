/* Blocked layouts of images and filters (channels in blocks of 16) in which Proa's own convolutions work, as
 * formats of core/blocked.h. May use core only. */
#ifndef PROA_OPS_CONV_BLOCKS_H
#define PROA_OPS_CONV_BLOCKS_H

#include "ops/conv/geometry.h"

/* Format ids (core/blocked.h) of images with channels in blocks of 16, and of filters [out / 16][in /
 * 16][row][column][16 in][16 out]; 0 in a build without blocked layouts. */
int proa__conv_image_format(void);
int proa__conv_filter_format(void);

/* The same format ids as functions of args and state, which PROA_KERNEL_BLOCKED takes. */
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

#endif
