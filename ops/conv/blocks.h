/* Blocked layouts of images and filters (channels in blocks of 16) in which Proa's own convolutions work, as
 * formats of core/blocked.h, which are oneDNN's tags. May use core only. */
#ifndef PROA_OPS_CONV_BLOCKS_H
#define PROA_OPS_CONV_BLOCKS_H

#include "core/blocked.h"
#include "ops/conv/geometry.h"

enum { CONV_BLOCK = 16 }; /* channels per block, and floats per vector */

/* Filters are [out / 16][in / 16][row][column][16 in][16 out]. 0 in a build without blocked layouts. */
#if PROA_HAVE_ONEDNN
#include <dnnl_types.h>
enum { CONV_IMAGE_FORMAT = dnnl_aBcd16b, CONV_FILTER_FORMAT = dnnl_ABcd16b16a };
#else
enum { CONV_IMAGE_FORMAT, CONV_FILTER_FORMAT = CONV_IMAGE_FORMAT };
#endif

/* Layout of a batch of images, blocked by 16 channels or NCHW; steps in floats. */
typedef struct image_map {
    float *data;
    int64_t image, block, place, channel, places, blocks;
} image_map;

static inline image_map image_map_of(const proa_tensor *t, int64_t places)
{
    const bool blocked = proa__format(t) != 0;
    const int64_t channels = t->shape[1], blocks = (channels + CONV_BLOCK - 1) / CONV_BLOCK;
    return (image_map){.data = (float *)(void *)proa__memory(t),
                       .image = (blocked ? blocks * CONV_BLOCK : channels) * places,
                       .block = CONV_BLOCK * places,
                       .place = blocked ? CONV_BLOCK : 1,
                       .channel = blocked ? 1 : places,
                       .places = places,
                       .blocks = blocks};
}

/* The formats as functions of args and state, which PROA_KERNEL_BLOCKED takes. */
#define CONV_FORMAT_FN(name, format)                            \
    static inline int name(const void *args, const void *state) \
    {                                                           \
        (void)args, (void)state;                                \
        return format;                                          \
    }
CONV_FORMAT_FN(conv_image_format, CONV_IMAGE_FORMAT)
CONV_FORMAT_FN(conv_filter_format, CONV_FILTER_FORMAT)
CONV_FORMAT_FN(conv_row_major, 0)

#endif
