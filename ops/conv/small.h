/* The layouts in which convolutions over small maps work, as formats of core/blocked.h. May use core only. */
#ifndef PROA_OPS_CONV_SMALL_H
#define PROA_OPS_CONV_SMALL_H

#include "ops/conv/geometry.h"

/* Images with channels in blocks of 16; filters [out / 16][in / 16][row][column][16 in][16 out]. 0: this
 * build has no layouts. */
int proa__small_image_format(void);
int proa__small_filter_format(void);

#endif
