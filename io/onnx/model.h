/* The messages of ONNX's format that a finished graph is written as. Uses graph.h. */
#ifndef PROA_IO_ONNX_MODEL_H
#define PROA_IO_ONNX_MODEL_H

#include "io/onnx/graph.h"

/* The message of a graph with these outputs, without inputs and initializers; nodes that no output depends on
 * are left out. The outputs' dtypes and shapes are those of `vars`' handles. */
onnx_graph_proto *onnx_message(onnx_graph *g, const char *name, int64_t n, onnx_value *const *outputs,
                               proa_var *const *vars);
/* Adds an input to the message; dims that are unknown get names. */
proa_status onnx_message_input(onnx_graph *g, onnx_graph_proto *to, const char *name,
                               const proa_tensor *like);
/* Writes the model of a whole graph to a file. */
proa_status onnx_write(onnx_graph *g, onnx_value *const *outputs, const char *path);

#endif
