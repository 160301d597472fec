/* Values, nodes and attributes of an ONNX graph that is being built. May use core, jit's programs and io's
 * own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/graph.h"

#include <stdarg.h>

/* ---- memory ---------------------------------------------------------------------------- */

void *onnx_alloc(onnx_graph *g, size_t count, size_t item)
{
    if (proa_error() != PROA_OK) return NULL;
    return proa__arena_array(&g->all->arena, count ? count : 1, item);
}

proa_status onnx_list_add(onnx_export *x, onnx_list *list, void *item)
{
    if (!item) return proa_error();
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        void **grown = proa__arena_array(&x->arena, capacity, sizeof *grown);
        if (!grown) return proa_error();
        if (list->count) memcpy(grown, list->at, list->count * sizeof *grown);
        list->at = grown;
        list->capacity = capacity;
    }
    list->at[list->count++] = item;
    return PROA_OK;
}

/* ---- errors ---------------------------------------------------------------------------- */

bool onnx_needs(const onnx_graph *g, int least)
{
    if (onnx_from(g, least)) return false;
    proa_fail(PROA_ERR_UNSUPPORTED,
              "onnx.export: op '%s' needs at least opset %d, got opset_version=%lld; export "
              "with opset_version=%d",
              g->all->op, least, (long long)g->all->opset, least);
    return true;
}

onnx_value *onnx_refuse(const onnx_graph *g, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    proa_fail(PROA_ERR_UNSUPPORTED, "onnx.export: op '%s': %s", g->all->op, text);
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------- */

int onnx_dtype(proa_dtype dtype)
{
    switch (dtype) {
    case PROA_F32: return 1;
    case PROA_U8: return 2;
    case PROA_I8: return 3;
    case PROA_I16: return 5;
    case PROA_I32: return 6;
    case PROA_I64: return 7;
    case PROA_BOOL: return 9;
    case PROA_F16: return 10;
    case PROA_F64: return 11;
    case PROA_C64: return 14;
    case PROA_C128: return 15;
    case PROA_BF16: return 16;
    default: return 0;
    }
}

static onnx_value *new_value(onnx_graph *g, proa_dtype dtype)
{
    onnx_value *v = onnx_alloc(g, 1, sizeof *v);
    if (!v) return NULL;
    v->dtype = dtype;
    do v->name = proa__arena_format(&g->all->arena, "onnx_%u", g->all->temporaries++);
    while (v->name && proa__var_find(proa__root(g->all->program), v->name));
    return v->name ? v : NULL;
}

/* The value of a variable in this graph or an outer one; every graph between notes that it is read. */
static onnx_value *find(onnx_graph *g, const proa_var *var)
{
    onnx_value *v = proa__hash_map_find(&g->values, var);
    if (v || !g->outer) return v;
    v = find(g->outer, var);
    if (v && onnx_list_add(g->all, &g->captured, v) != PROA_OK) return NULL;
    return v;
}

onnx_value *onnx_in(onnx_graph *g, const proa_tensor *t)
{
    if (proa_error() != PROA_OK || !t || proa__absent(t)) return NULL;
    const proa_var *var = t->var;
    if (!var) return onnx_refuse(g, "an input is no variable of the program");
    onnx_value *v = find(g, var);
    if (v) return v;
    if (var->persistable && var->value) return onnx_persistable(g, var);
    return onnx_refuse(g, "'%s' is read, a result that has no counterpart in ONNX", var->name);
}

void onnx_bind(onnx_graph *g, const proa_tensor *t, onnx_value *v)
{
    if (proa_error() != PROA_OK || !t || proa__absent(t) || !t->var || !v) return;
    v = onnx_cast(g, v, (proa_dtype)t->dtype);
    if (!v) return;
    if (!v->named && !g->outer && v->maker) {
        v->name = t->var->name;
        v->named = true;
    }
    (void)proa__hash_map_put(&g->values, t->var, v);
}

bool onnx_is_read(const onnx_graph *g, const proa_tensor *t)
{
    return t && !proa__absent(t) && t->var && proa__hash_map_find(&g->all->read, t->var);
}

/* ---- nodes ----------------------------------------------------------------------------- */

onnx_value *onnx_node_of(onnx_graph *g, const char *type, int n, onnx_value *const *in)
{
    while (n > 0 && !in[n - 1]) n--;
    onnx_node *node = onnx_alloc(g, 1, sizeof *node);
    onnx_value **copy = onnx_alloc(g, (size_t)n, sizeof *copy),
               *out = new_value(g, n && in[0] ? in[0]->dtype : PROA_F32);
    onnx_value **outs = onnx_alloc(g, 4, sizeof *outs);
    if (!node || !copy || !out || !outs) return NULL;
    for (int i = 0; i < n; i++) copy[i] = in[i];
    outs[0] = out;
    *node = (onnx_node){.type = type, .in = copy, .n_in = n, .out = outs, .n_out = 1};
    out->maker = node;
    return onnx_list_add(g->all, &g->nodes, node) == PROA_OK ? out : NULL;
}

onnx_value *onnx_also(onnx_graph *g, onnx_value *v, proa_dtype dtype)
{
    if (proa_error() != PROA_OK || !v) return NULL;
    onnx_node *node = v->maker;
    if (node->n_out >= 4) {
        onnx_value **grown = onnx_alloc(g, (size_t)node->n_out + 1, sizeof *grown);
        if (!grown) return NULL;
        memcpy(grown, node->out, (size_t)node->n_out * sizeof *grown);
        node->out = grown;
    }
    onnx_value *more = new_value(g, dtype);
    if (!more) return NULL;
    more->maker = node;
    return node->out[node->n_out++] = more;
}

onnx_value *onnx_typed(onnx_value *v, proa_dtype dtype)
{
    if (v) v->dtype = dtype;
    return v;
}

/* ---- attributes ------------------------------------------------------------------------ */

static onnx_attr *put(onnx_graph *g, onnx_value *v, const char *name,
                      Onnx__AttributeProto__AttributeType type)
{
    if (proa_error() != PROA_OK || !v) return NULL;
    onnx_node *node = v->maker;
    onnx_attr *a = onnx_alloc(g, 1, sizeof *a);
    if (!a) return NULL;
    onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t)name; /* a literal: protobuf-c does not write to it */
    a->has_type = true;
    a->type = type;
    if (node->n_attrs == node->attrs_capacity) {
        size_t capacity = node->attrs_capacity ? node->attrs_capacity * 2 : 4;
        onnx_attr **grown = onnx_alloc(g, capacity, sizeof *grown);
        if (!grown) return NULL;
        if (node->n_attrs) memcpy(grown, node->attrs, node->n_attrs * sizeof *grown);
        node->attrs = grown;
        node->attrs_capacity = capacity;
    }
    return node->attrs[node->n_attrs++] = a;
}

void onnx_put_int(onnx_graph *g, onnx_value *v, const char *name, int64_t value)
{
    onnx_attr *a = put(g, v, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!a) return;
    a->has_i = true;
    a->i = value;
}

void onnx_put_float(onnx_graph *g, onnx_value *v, const char *name, double value)
{
    onnx_attr *a = put(g, v, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (!a) return;
    a->has_f = true;
    a->f = (float)value;
}

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

void onnx_put_text(onnx_graph *g, onnx_value *v, const char *name, const char *value)
{
    onnx_attr *a = put(g, v, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    if (!a) return;
    a->has_s = true;
    a->s = bytes_of(value);
}

void onnx_put_ints(onnx_graph *g, onnx_value *v, const char *name, int64_t n, const int64_t *at)
{
    onnx_attr *a = put(g, v, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *copy = onnx_alloc(g, (size_t)n, sizeof *copy);
    if (!a || !copy) return;
    if (n) memcpy(copy, at, (size_t)n * sizeof *copy);
    a->ints = copy;
    a->n_ints = (size_t)n;
}

void onnx_put_floats(onnx_graph *g, onnx_value *v, const char *name, int64_t n, const double *at)
{
    onnx_attr *a = put(g, v, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    float *copy = onnx_alloc(g, (size_t)n, sizeof *copy);
    if (!a || !copy) return;
    for (int64_t i = 0; i < n; i++) copy[i] = (float)at[i];
    a->floats = copy;
    a->n_floats = (size_t)n;
}

void onnx_put_texts(onnx_graph *g, onnx_value *v, const char *name, int64_t n, const char *const *at)
{
    onnx_attr *a = put(g, v, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    ProtobufCBinaryData *copy = onnx_alloc(g, (size_t)n, sizeof *copy);
    if (!a || !copy) return;
    for (int64_t i = 0; i < n; i++) copy[i] = bytes_of(at[i]);
    a->strings = copy;
    a->n_strings = (size_t)n;
}

void onnx_put_graph(onnx_graph *g, onnx_value *v, const char *name, onnx_graph_proto *value)
{
    onnx_attr *a = put(g, v, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
    if (a) a->g = value;
}

#else
typedef int proa__no_onnx_graph; /* C wants a declaration in every file */
#endif
