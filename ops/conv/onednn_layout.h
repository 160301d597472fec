/* Dims and strides of a convolution's operands as oneDNN describes them. May use core only. */
#ifndef PROA_OPS_CONV_ONEDNN_LAYOUT_H
#define PROA_OPS_CONV_ONEDNN_LAYOUT_H

#include "ops/conv/geometry.h"

/* Dims and strides as oneDNN wants them: batch, channels, then the op's own spatial dims. */
typedef struct conv_layout {
    int n;
    int64_t dims[6], strides[6];
} conv_layout;

static inline conv_layout conv_layout_of_images(const conv_geometry *g, int64_t n_channels,
                                                const int64_t *size)
{
    conv_strides s = conv_strides_of(g, n_channels, size);
    conv_layout l = {.n = g->dims + 2, .dims = {g->batch, n_channels}, .strides = {s.n, s.c}};
    for (int i = 0; i < g->dims; i++) {
        l.dims[2 + i] = size[3 - g->dims + i];
        l.strides[2 + i] = s.s[3 - g->dims + i];
    }
    return l;
}

static inline conv_layout conv_layout_of_filter(const conv_geometry *g)
{
    conv_layout l = {0};
    if (g->groups > 1) l.dims[l.n++] = g->groups;
    l.dims[l.n++] = g->out_channels / g->groups;
    l.dims[l.n++] = g->in_channels / g->groups;
    for (int i = 0; i < g->dims; i++) l.dims[l.n++] = g->kernel[3 - g->dims + i];
    int64_t step = 1;
    for (int i = l.n - 1; i >= 0; step *= l.dims[i], i--) l.strides[i] = step;
    return l;
}

#endif
