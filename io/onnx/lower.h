/* Parts that several families of lowerings share. Uses graph.h. */
#ifndef PROA_IO_ONNX_LOWER_H
#define PROA_IO_ONNX_LOWER_H

#include "io/onnx/graph.h"

#include <proa/ops/types.h>

/* ---- lower_unary.c ------------------------------------------------------------------------ */
bool onnx_is_float(proa_dtype dtype);
/* x in a dtype that arithmetic of the opset takes: floats as they are; int32 or int64 from opset `whole`
 * on (0: never), else float64. */
onnx_value *onnx_operand(onnx_graph *g, onnx_value *x, int whole);
/* The value of input i of an op whose inputs are single tensors, and the first output. */
onnx_value *onnx_input(onnx_graph *g, const onnx_call *c, int i);
const proa_tensor *onnx_result(const onnx_call *c);
/* Lowerings of ops that are one node (rule->node) of their inputs; the result of a test is bool; of an op
 * that passes its input on. */
void onnx_lower_node(onnx_graph *g, const onnx_call *c);
void onnx_lower_test(onnx_graph *g, const onnx_call *c);
void onnx_lower_same(onnx_graph *g, const onnx_call *c);

/* ---- lower_conv.c -------------------------------------------------------------------------- */
/* x of ndim axes with channels moved from last to second, and back. */
onnx_value *onnx_to_channels_first(onnx_graph *g, onnx_value *x, int ndim);
onnx_value *onnx_to_channels_last(onnx_graph *g, onnx_value *x, int ndim);
/* Geometry of a window over n spatial axes. */
typedef struct onnx_window {
    int n;
    int64_t size[PROA_MAX_DIMS], stride[PROA_MAX_DIMS], dilation[PROA_MAX_DIMS];
    int64_t pads[2 * PROA_MAX_DIMS]; /* all befores, then all afters */
    bool same;                       /* padded so that the output has the input's size over the stride */
} onnx_window;
/* Fills stride, dilation and pads from an op's attributes; missing strides are the window's size. */
void onnx_window_fill(onnx_window *w, const proa_ints *stride, const proa_ints *padding,
                      const proa_ints *dilation, proa_padding_algorithm algorithm);
/* Writes pads, or the automatic padding, to the node of v. */
void onnx_put_pads(onnx_graph *g, onnx_value *v, const onnx_window *w);

#endif
