/* Writes a finished ONNX graph as a file: its messages, initializers and header. May use core, jit's
 * programs and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/model.h"

#include "core/blocked.h"
#include "core/copy.h"
#include "io/format.h"

#include <proa/io.h>

/* A protobuf message has at most this many bytes: its readers count in signed 32-bit integers. */
enum { MESSAGE_MAX = INT32_MAX };

/* ---- what is written -------------------------------------------------------------------- */

/* Marks what an output depends on; nodes come after those that they read. */
static void mark_used(onnx_graph *g, int64_t n, onnx_value *const *outputs)
{
    for (int64_t i = 0; i < n; i++) outputs[i]->used = true;
    for (size_t k = g->nodes.count; k-- > 0;) {
        onnx_node *node = g->nodes.at[k];
        for (int i = 0; i < node->n_out; i++) node->used |= node->out[i]->used;
        if (!node->used) continue;
        for (int i = 0; i < node->n_in; i++)
            if (node->in[i]) node->in[i]->used = true;
        for (int i = 0; i < node->n_outer; i++) node->outer[i]->used = true;
    }
}

static char empty[] = "";

static char **names_of(onnx_graph *g, onnx_value *const *at, int n)
{
    char **names = onnx_alloc(g, (size_t)n, sizeof *names);
    for (int i = 0; names && i < n; i++) names[i] = at[i] ? at[i]->name : empty;
    return names;
}

static Onnx__NodeProto *node_message(onnx_graph *g, const onnx_node *node, size_t number)
{
    Onnx__NodeProto *m = onnx_alloc(g, 1, sizeof *m);
    char **in = names_of(g, node->in, node->n_in), **out = names_of(g, node->out, node->n_out);
    if (!m || !in || !out) return NULL;
    onnx__node_proto__init(m);
    m->input = in;
    m->n_input = (size_t)node->n_in;
    m->output = out;
    m->n_output = (size_t)node->n_out;
    m->op_type = (char *)(uintptr_t)node->type;
    m->name = proa__arena_format(&g->all->arena, "%s_%zu", node->type, number);
    m->attribute = node->attrs;
    m->n_attribute = node->n_attrs;
    return m->name ? m : NULL;
}

/* Shape of an input or output. Unknown dims of an input are named after it. */
static Onnx__TensorShapeProto *shape_message(onnx_graph *g, const char *name, const proa_tensor *like,
                                             bool names)
{
    Onnx__TensorShapeProto *m = onnx_alloc(g, 1, sizeof *m);
    Onnx__TensorShapeProto__Dimension **dims = onnx_alloc(g, (size_t)like->ndim, sizeof *dims);
    if (!m || !dims) return NULL;
    onnx__tensor_shape_proto__init(m);
    m->dim = dims;
    for (; m->n_dim < (size_t)like->ndim; m->n_dim++) {
        Onnx__TensorShapeProto__Dimension *d = dims[m->n_dim] = onnx_alloc(g, 1, sizeof *d);
        if (!d) return NULL;
        onnx__tensor_shape_proto__dimension__init(d);
        d->has_dim_value = like->shape[m->n_dim] >= 0;
        d->dim_value = d->has_dim_value ? like->shape[m->n_dim] : 0;
        if (!d->has_dim_value && names &&
            !(d->dim_param = proa__arena_format(&g->all->arena, "%s_%zu", name, m->n_dim)))
            return NULL;
    }
    return m;
}

static Onnx__ValueInfoProto *info_message(onnx_graph *g, const char *name, const proa_tensor *like,
                                          bool names)
{
    Onnx__ValueInfoProto *m = onnx_alloc(g, 1, sizeof *m);
    Onnx__TypeProto *type = onnx_alloc(g, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = onnx_alloc(g, 1, sizeof *tensor);
    Onnx__TensorShapeProto *shape = shape_message(g, name, like, names);
    if (!m || !type || !tensor || !shape) return NULL;
    onnx__value_info_proto__init(m);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    m->name = (char *)(uintptr_t)name;
    m->type = type;
    type->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = onnx_dtype((proa_dtype)like->dtype);
    tensor->shape = shape;
    return m;
}

onnx_graph_proto *onnx_message(onnx_graph *g, const char *name, int64_t n, onnx_value *const *outputs,
                               proa_var *const *vars)
{
    onnx_graph_proto *m = onnx_alloc(g, 1, sizeof *m);
    Onnx__NodeProto **nodes = onnx_alloc(g, g->nodes.count, sizeof *nodes);
    Onnx__ValueInfoProto **infos = onnx_alloc(g, (size_t)n, sizeof *infos);
    if (!m || !nodes || !infos) return NULL;
    onnx__graph_proto__init(m);
    m->name = (char *)(uintptr_t)name;
    mark_used(g, n, outputs);
    m->node = nodes;
    for (size_t k = 0; k < g->nodes.count; k++) {
        const onnx_node *node = g->nodes.at[k];
        if (node->used && !(nodes[m->n_node++] = node_message(g, node, k))) return NULL;
    }
    m->output = infos;
    for (; m->n_output < (size_t)n; m->n_output++) {
        size_t i = m->n_output;
        if (!(infos[i] = info_message(g, outputs[i]->name, vars[i]->handle, false))) return NULL;
    }
    return m;
}

proa_status onnx_message_input(onnx_graph *g, onnx_graph_proto *to, const char *name, const proa_tensor *like)
{
    Onnx__ValueInfoProto **grown = onnx_alloc(g, to->n_input + 1, sizeof *grown);
    Onnx__ValueInfoProto *info = info_message(g, name, like, true);
    if (!grown || !info) return proa_error();
    if (to->n_input) memcpy(grown, to->input, to->n_input * sizeof *grown);
    grown[to->n_input++] = info;
    to->input = grown;
    return PROA_OK;
}

/* ---- initializers ------------------------------------------------------------------------ */

/* Points the message at the elements of a parameter: its own memory where that is row-major. */
static proa_status point_at_elements(onnx_graph *g, onnx_value *v)
{
    const proa_tensor *t = v->tensor;
    size_t bytes = (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
    if (t->kind != PROA_DENSE)
        return proa_fail(PROA_ERR_UNSUPPORTED, "onnx.export: parameter '%s' is not dense (SelectedRows)",
                         v->name);
    uint8_t *at = NULL;
    if (bytes && !(t->flags & (PROA_T_STRIDED | PROA_T_DEVICE))) {
        PROA_TRY(proa__plain(t));
        at = (uint8_t *)t->data;
    } else if (bytes) {
        if (!(at = onnx_alloc(g, bytes, 1))) return proa_error();
        PROA_TRY(proa_copy_out(t, at, bytes));
    }
    v->data->has_raw_data = true;
    v->data->raw_data = (ProtobufCBinaryData){bytes, at};
    return PROA_OK;
}

static proa_status add_initializers(onnx_graph *g, onnx_graph_proto *to)
{
    const onnx_list *all = &g->all->initializers;
    to->initializer = onnx_alloc(g, all->count, sizeof *to->initializer);
    if (!to->initializer) return proa_error();
    for (size_t i = 0; i < all->count; i++) {
        onnx_value *v = all->at[i];
        if (!v->used) continue;
        if (v->tensor) PROA_TRY(point_at_elements(g, v));
        v->data->name = v->name;
        to->initializer[to->n_initializer++] = v->data;
    }
    return PROA_OK;
}

/* ---- the file ---------------------------------------------------------------------------- */

static proa_status put_file(const void *data, size_t bytes, void *writer)
{
    return proa_writer_put(writer, data, bytes);
}

static proa_status write_message(const ProtobufCMessage *m, const char *path)
{
    if (protobuf_c_message_get_packed_size(m) > MESSAGE_MAX)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "onnx.export: the model has more than 2 GiB, the limit of an ONNX file: "
                         "export it in parts, or in float16");
    proa_writer *w = proa_writer_open(path);
    if (!w) return proa_error();
    proa_status status = proa__message_put(m, put_file, w);
    if (status == PROA_OK) return proa_writer_commit(w);
    proa_writer_abort(w);
    return status;
}

proa_status onnx_write(onnx_graph *g, onnx_value *const *outputs, const char *path)
{
    static char domain[] = "", producer[] = "proa";
    char version[32];
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    const proa_block *b = g->block;
    onnx_graph_proto *graph = onnx_message(g, "proa", b->n_outputs, outputs, b->outputs);
    if (!graph) return proa_error();
    for (int32_t i = 0; i < b->n_inputs; i++)
        PROA_TRY(onnx_message_input(g, graph, b->inputs[i]->name, b->inputs[i]->handle));
    PROA_TRY(add_initializers(g, graph));
    opset.domain = domain;
    opset.has_version = true;
    opset.version = g->all->opset;
    model.has_ir_version = true;
    model.ir_version = g->all->opset < 15 ? 7 : 8; /* 8 came with opset 15; old runtimes read 7 */
    model.producer_name = producer;
    snprintf(version, sizeof version, "%s", proa_version());
    model.producer_version = version;
    model.graph = graph;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    return write_message(&model.base, path);
}

#else
typedef int proa__no_onnx_model; /* C wants a declaration in every file */
#endif
