/* Lowerings of branches and loops to If and Loop. Their sub-graphs read values of outer graphs by name, as
 * a block gets them as inputs. May use core, ops, jit's programs and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"
#include "io/onnx/model.h"

#include "jit/control/control.h"

/* A value that is passed on to a sub-graph as input i of its block. */
static proa_status pass(onnx_graph *sub, int64_t i, onnx_value *v)
{
    if (!v || i >= sub->block->n_inputs) return proa_error();
    return proa__hash_map_put(&sub->values, sub->block->inputs[i], v);
}

/* The outputs of a sub-graph, each made by a node of its own. */
static onnx_value **results(onnx_graph *sub)
{
    int32_t n = sub->block->n_outputs;
    onnx_value **out = onnx_alloc(sub, (size_t)n, sizeof *out);
    for (int32_t i = 0; out && i < n; i++)
        out[i] = ONNX_NODE(sub, "Identity", onnx_in(sub, sub->block->outputs[i]->handle));
    return proa_error() == PROA_OK ? out : NULL;
}

/* Records the values of this graph and outer ones that a node's sub-graphs read. */
static void note_outer(onnx_graph *g, onnx_value *node, const onnx_graph *sub)
{
    onnx_value **all = onnx_alloc(g, (size_t)node->maker->n_outer + sub->captured.count, sizeof *all);
    if (!all) return;
    int n = node->maker->n_outer;
    if (n) memcpy(all, node->maker->outer, (size_t)n * sizeof *all);
    for (size_t i = 0; i < sub->captured.count; i++) all[n++] = sub->captured.at[i];
    node->maker->outer = all;
    node->maker->n_outer = n;
}

static void add_captured(onnx_graph *sub, onnx_value *v)
{
    if (v) (void)onnx_list_add(sub->all, &sub->captured, v);
}

/* ---- If -------------------------------------------------------------------------------------------- */

static onnx_graph_proto *branch_of(onnx_graph *g, const proa_branch_args *a, const proa_block *block,
                                   const char *name, onnx_value *node)
{
    onnx_graph sub = {.all = g->all, .outer = g, .block = block};
    onnx_graph_proto *m = NULL;
    proa_status status = PROA_OK;
    for (int64_t i = 0; status == PROA_OK && i < a->inputs.count; i++) {
        onnx_value *v = onnx_in(g, a->inputs.at[i]);
        status = pass(&sub, i, v);
        add_captured(&sub, v);
    }
    if (status == PROA_OK && onnx_lower_block(&sub) == PROA_OK) {
        onnx_value **out = results(&sub);
        if (out) m = onnx_message(&sub, name, block->n_outputs, out, block->outputs);
        note_outer(g, node, &sub);
    }
    proa__hash_map_clear(&sub.values);
    return m;
}

ONNX_LOWER(lower_branch, branch)
{
    onnx_value *node = ONNX_NODE(g, "If", onnx_in(g, a->pred));
    onnx_graph_proto *then = node ? branch_of(g, a, a->then, "then", node) : NULL;
    onnx_graph_proto *otherwise = then ? branch_of(g, a, a->otherwise, "else", node) : NULL;
    if (!otherwise) return;
    g->all->op = c->op->name;
    onnx_put_graph(g, node, "then_branch", then);
    onnx_put_graph(g, node, "else_branch", otherwise);
    for (int64_t i = 0; i < a->out.count; i++) {
        proa_dtype dtype = (proa_dtype)a->out.at[i]->dtype;
        onnx_bind(g, a->out.at[i], i ? onnx_also(g, node, dtype) : onnx_typed(node, dtype));
    }
}

/* ---- Loop ------------------------------------------------------------------------------------------ */

/* A new input of a loop's body. */
static onnx_value *body_input(onnx_graph *sub, proa_dtype dtype)
{
    onnx_value *v = onnx_alloc(sub, 1, sizeof *v);
    if (!v) return NULL;
    *v = (onnx_value){.dtype = dtype, .named = true};
    v->name = proa__arena_format(&sub->all->arena, "onnx_loop_%u", sub->all->temporaries++);
    return v->name ? v : NULL;
}

/* The body: number of the step, condition and variables in; condition and variables out. */
static onnx_graph_proto *body_of(onnx_graph *g, const proa_loop_args *a, onnx_value *node)
{
    onnx_graph sub = {.all = g->all, .outer = g, .block = a->body};
    int64_t n = a->vars.count;
    onnx_value **in = onnx_alloc(g, (size_t)n + 2, sizeof *in), **out = NULL;
    onnx_graph_proto *m = NULL;
    proa_meta number = {.dtype = PROA_I64}, condition = {.dtype = PROA_BOOL};
    proa_status status = in ? PROA_OK : proa_error();
    for (int64_t i = 0; status == PROA_OK && i < n + 2; i++) {
        in[i] = body_input(&sub, i == 0   ? PROA_I64
                                 : i == 1 ? PROA_BOOL
                                          : (proa_dtype)a->vars.at[i - 2]->dtype);
        status = i < 2 ? proa_error() : pass(&sub, i - 2, in[i]);
    }
    for (int64_t i = 0; status == PROA_OK && i < a->inputs.count; i++) {
        onnx_value *v = onnx_in(g, a->inputs.at[i]);
        status = pass(&sub, n + i, v);
        add_captured(&sub, v);
    }
    if (status == PROA_OK && onnx_lower_block(&sub) == PROA_OK && (out = results(&sub))) {
        if (a->body->outputs[0]->handle->ndim) out[0] = onnx_reshape(&sub, out[0], 0, NULL);
        proa_tensor scalar = proa__shallow_copy(a->body->outputs[0]->handle);
        scalar.ndim = 0;
        m = onnx_message(&sub, "body", n + 1, out, a->body->outputs);
        proa_tensor step = scalar;
        step.dtype = (uint8_t)number.dtype;
        scalar.dtype = (uint8_t)condition.dtype;
        for (int64_t i = 0; m && i < n + 2; i++)
            if (onnx_message_input(g, m, in[i]->name,
                                   i == 0   ? &step
                                   : i == 1 ? &scalar
                                            : a->body->inputs[i - 2]->handle))
                m = NULL;
        note_outer(g, node, &sub);
    }
    proa__hash_map_clear(&sub.values);
    return m;
}

ONNX_LOWER(lower_loop, loop)
{
    int64_t n = a->vars.count;
    onnx_value **in = onnx_alloc(g, (size_t)n + 2, sizeof *in);
    if (!in) return;
    in[0] = onnx_whole(g, PROA_I64, INT64_MAX);
    in[1] = onnx_in(g, a->condition);
    if (a->condition->ndim) in[1] = onnx_reshape(g, in[1], 0, NULL);
    for (int64_t i = 0; i < n; i++) in[2 + i] = onnx_in(g, a->vars.at[i]);
    onnx_value *node = onnx_node_of(g, "Loop", (int)n + 2, in);
    onnx_graph_proto *body = node ? body_of(g, a, node) : NULL;
    if (!body) return;
    g->all->op = c->op->name;
    onnx_put_graph(g, node, "body", body);
    for (int64_t i = 0; i < a->out.count; i++) {
        proa_dtype dtype = (proa_dtype)a->out.at[i]->dtype;
        onnx_bind(g, a->out.at[i], i ? onnx_also(g, node, dtype) : onnx_typed(node, dtype));
    }
}

/* A function with a backward of its own is its results here. */
ONNX_LOWER(lower_pylayer, pylayer)
{
    for (int64_t i = 0; i < a->out.count && i < a->x.count; i++)
        onnx_bind(g, a->out.at[i], onnx_in(g, a->x.at[i]));
}

const onnx_rule onnx_rules_control[] = {
    {"pylayer", lower_pylayer, NULL, 0, 0},
    {"branch", lower_branch, NULL, 0, 0},
    {"loop", lower_loop, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_control; /* C wants a declaration in every file */
#endif
