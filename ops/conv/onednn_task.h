/* A convolution as oneDNN describes it, for the kernels that run it through oneDNN. May use core and kernels
 * only; everything is static. */
#ifndef PROA_OPS_CONV_ONEDNN_TASK_H
#define PROA_OPS_CONV_ONEDNN_TASK_H

#include "kernels/onednn.h"
#include "ops/conv/algorithms.h"
#include "ops/conv/onednn_layout.h"

enum { IN, FILTER, OUT, SIDES };

/* Layouts and descriptors of the input, filter and output side. */
typedef struct conv_task {
    const conv_problem *p;
    const proa_tensor *bias; /* NULL: none */
    conv_layout layout[SIDES];
    dnnl_dims_t stride, dilation, before, after;
    dnnl_memory_desc_t md[SIDES], md_bias; /* for the primitive: `any` leaves the layout to it */
} conv_task;

static inline dnnl_memory_desc_t conv_bias_md(const conv_task *t)
{
    return proa__dnnl_md(1, &t->p->g.out_channels, NULL, (proa_dtype)t->bias->dtype);
}

/* keeps: images stay in the caller's layout, so that only the filter is reordered. */
static inline bool conv_task_make(conv_task *t, const conv_problem *p, const proa_tensor *bias, bool keeps)
{
    const conv_geometry *g = &p->g;
    bool made = true;
    *t = (conv_task){.p = p,
                     .bias = bias,
                     .layout = {conv_layout_of_images(g, g->in_channels, g->in), conv_layout_of_filter(g),
                                conv_layout_of_images(g, g->out_channels, g->out)}};
    for (int i = 0; i < g->dims; i++) {
        int from = 3 - g->dims + i;
        t->stride[i] = g->stride[from], t->dilation[i] = g->dilation[from] - 1;
        t->before[i] = g->before[from], t->after[i] = g->after[from];
    }
    for (int i = 0; i < SIDES; i++) {
        const conv_layout *l = &t->layout[i];
        const proa_dtype dtype = (proa_dtype)p->sides[IN]->dtype;
        t->md[i] = keeps && i != FILTER ? proa__dnnl_md(l->n, l->dims, l->strides, dtype)
                                        : proa__dnnl_md_any(l->n, l->dims, dtype);
        made = made && t->md[i];
    }
    if (bias) t->md_bias = conv_bias_md(t);
    return made && (!bias || t->md_bias);
}

static inline void conv_task_release(conv_task *t)
{
    for (int i = 0; i < SIDES; i++)
        if (t->md[i]) dnnl_memory_desc_destroy(t->md[i]);
    if (t->md_bias) dnnl_memory_desc_destroy(t->md_bias);
}

static inline bool conv_forward_desc(const conv_task *t, dnnl_prop_kind_t kind,
                                     const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *desc)
{
    return dnnl_convolution_forward_primitive_desc_create(
               desc, proa__dnnl_engine(), kind, dnnl_convolution_direct, t->md[IN], t->md[FILTER], t->md_bias,
               t->md[OUT], t->stride, t->dilation, t->before, t->after, attr) == dnnl_success;
}

/* The backward descriptors want the forward one as a hint. */
static inline bool conv_backward_desc(const conv_task *t, const_dnnl_primitive_attr_t attr,
                                      dnnl_primitive_desc_t *desc)
{
    dnnl_primitive_desc_t hint = NULL;
    if (!conv_forward_desc(t, dnnl_forward_training, NULL, &hint)) return false;
    dnnl_status_t status =
        t->p->direction == BACKWARD_DATA
            ? dnnl_convolution_backward_data_primitive_desc_create(
                  desc, proa__dnnl_engine(), dnnl_convolution_direct, t->md[IN], t->md[FILTER], t->md[OUT],
                  t->stride, t->dilation, t->before, t->after, hint, attr)
            : dnnl_convolution_backward_weights_primitive_desc_create(
                  desc, proa__dnnl_engine(), dnnl_convolution_direct, t->md[IN], t->md[FILTER], NULL,
                  t->md[OUT], t->stride, t->dilation, t->before, t->after, hint, attr);
    dnnl_primitive_desc_destroy(hint);
    return status == dnnl_success;
}

#endif
