/* The ONNX graph under construction, and the functions by which lowerings of ops add to it. While the
 * thread has an error they do nothing and return NULL, so a lowering checks nothing. May use core, jit's
 * programs and io's own headers. */
#ifndef PROA_IO_ONNX_GRAPH_H
#define PROA_IO_ONNX_GRAPH_H

#include "core/args_visit.h"
#include "core/arena.h"
#include "core/internal.h"
#include "jit/ir/program.h"
#include "onnx.pb-c.h"

typedef Onnx__AttributeProto onnx_attr;
typedef Onnx__GraphProto onnx_graph_proto;
typedef Onnx__TensorProto onnx_tensor_proto;

/* The least and the greatest opset that the lowerings know. */
enum { ONNX_OPSET_MIN = 7, ONNX_OPSET_MAX = 20 };
enum {
    ONNX_MAX_DIMS = PROA_MAX_DIMS + 3
}; /* of intermediate shapes: group and window axes come in addition */

typedef struct onnx_value onnx_value;
typedef struct onnx_node onnx_node;

/* A name of the graph: an input, an initializer, or an output of a node. */
struct onnx_value {
    char *name;
    proa_dtype dtype;
    bool named;              /* the name is a variable's, so a further variable needs an Identity */
    bool used;               /* an output depends on it */
    onnx_node *maker;        /* NULL: an input or an initializer */
    onnx_tensor_proto *data; /* of an initializer */
    proa_tensor *tensor;     /* whose elements an initializer has; NULL: data holds them */
};

struct onnx_node {
    const char *type, *domain;
    onnx_value **in, **out;
    int n_in, n_out;
    onnx_attr **attrs;
    size_t n_attrs, attrs_capacity;
    onnx_value **outer; /* values of outer graphs that its sub-graphs read */
    int n_outer;
    bool used;
};

/* A growing list of pointers in the export's arena. */
typedef struct onnx_list {
    void **at;
    size_t count, capacity;
} onnx_list;

/* State of one export. */
typedef struct onnx_export {
    proa__arena arena;
    const proa_program *program;
    int64_t opset;
    unsigned temporaries;
    proa__hash_map constants; /* text of a small initializer → its value */
    proa__hash_map read;      /* variables that some op reads or the program returns */
    onnx_list initializers;
    const char *op; /* the op that is being lowered, for messages */
} onnx_export;

/* A graph: the model's, or a sub-graph's of If and Loop. */
typedef struct onnx_graph {
    onnx_export *all;
    struct onnx_graph *outer; /* NULL: the model's graph */
    const proa_block *block;
    proa__hash_map values; /* variable → onnx_value */
    onnx_list nodes;
    onnx_list captured; /* values of outer graphs that were read */
} onnx_graph;

/* One op that is being lowered. */
typedef struct onnx_rule onnx_rule;
typedef struct onnx_call {
    const proa_op *op;
    const void *args;
    const onnx_rule *rule;
} onnx_call;

/* The lowering of an op to nodes. Ops of one node have no function of their own: `node` is the node's
 * type, and its inputs are the op's. */
struct onnx_rule {
    const char *op;
    void (*lower)(onnx_graph *g, const onnx_call *c);
    const char *node;
    int since; /* least opset of the lowering; 0: any */
    int whole; /* least opset in which the node takes integers; 0: never, they become float64 and back */
};

/* Families of rules, each ended by a rule without op. */
extern const onnx_rule onnx_rules_unary[], onnx_rules_activation[], onnx_rules_elementwise[],
    onnx_rules_matrix[], onnx_rules_conv[], onnx_rules_pool[], onnx_rules_norm[], onnx_rules_shape[],
    onnx_rules_slice[], onnx_rules_index[], onnx_rules_reduce[], onnx_rules_sort[], onnx_rules_vision[],
    onnx_rules_recurrent[], onnx_rules_create[], onnx_rules_control[], onnx_rules_detection[],
    onnx_rules_quantize[];
/* The rule of an op; NULL: it has none. */
const onnx_rule *onnx_rule_of(const char *op);

/* ONNX_LOWER(name, op) { body }: defines a lowering; the body sees `onnx_graph *g`, the args `a` of the op,
 * and `onnx_call *c`. */
#define ONNX_LOWER(name, op)                                                            \
    static void name##_body(onnx_graph *g, const proa_##op##_args *a,                   \
                            __attribute__((unused)) const onnx_call *c);                \
    static void name(onnx_graph *g, const onnx_call *c) { name##_body(g, c->args, c); } \
    static void name##_body(onnx_graph *g, const proa_##op##_args *a,                   \
                            __attribute__((unused)) const onnx_call *c)

/* ---- graph.c: values and nodes --------------------------------------------------------- */

void *onnx_alloc(onnx_graph *g, size_t count, size_t item);
proa_status onnx_list_add(onnx_export *x, onnx_list *list, void *item);
int onnx_dtype(proa_dtype dtype); /* TensorProto.DataType; 0: none */
/* Lowers the ops of g's block. */
proa_status onnx_lower_block(onnx_graph *g);

/* The value of an op's input; NULL: it is absent. */
onnx_value *onnx_in(onnx_graph *g, const proa_tensor *t);
/* Makes `v` the value of an op's output, cast to its dtype. */
void onnx_bind(onnx_graph *g, const proa_tensor *t, onnx_value *v);
/* True if an op or a caller reads the output. */
bool onnx_is_read(const onnx_graph *g, const proa_tensor *t);

/* Adds a node of n inputs and returns its first output, whose dtype is the first input's. NULL inputs are
 * left out. The attributes that follow go to this node. */
onnx_value *onnx_node_of(onnx_graph *g, const char *type, int n, onnx_value *const *in);
#define ONNX_NODE(g, type, ...)                                                              \
    onnx_node_of((g), (type), (int)(sizeof((onnx_value *[]){__VA_ARGS__}) / sizeof(void *)), \
                 (onnx_value *[]){__VA_ARGS__})
/* A further output of the node that made v. */
onnx_value *onnx_also(onnx_graph *g, onnx_value *v, proa_dtype dtype);
/* Says that a value has another dtype than the node's first input. */
onnx_value *onnx_typed(onnx_value *v, proa_dtype dtype);
void onnx_put_int(onnx_graph *g, onnx_value *v, const char *name, int64_t value);
void onnx_put_float(onnx_graph *g, onnx_value *v, const char *name, double value);
void onnx_put_text(onnx_graph *g, onnx_value *v, const char *name, const char *value);
void onnx_put_ints(onnx_graph *g, onnx_value *v, const char *name, int64_t n, const int64_t *at);
void onnx_put_floats(onnx_graph *g, onnx_value *v, const char *name, int64_t n, const double *at);
void onnx_put_texts(onnx_graph *g, onnx_value *v, const char *name, int64_t n, const char *const *at);
void onnx_put_graph(onnx_graph *g, onnx_value *v, const char *name, onnx_graph_proto *value);

/* Sets UNSUPPORTED: the op needs opset `least`. True if the export's opset is lower. */
bool onnx_needs(const onnx_graph *g, int least);
/* Sets UNSUPPORTED with the op's name in front; returns NULL. */
onnx_value *onnx_refuse(const onnx_graph *g, const char *format, ...) PROA_PRINTF(2, 3);
static inline bool onnx_from(const onnx_graph *g, int opset) { return g->all->opset >= opset; }

/* ---- constants.c: initializers ---------------------------------------------------------- */

onnx_value *onnx_persistable(onnx_graph *g, const proa_var *v);
/* An initializer with these elements, copied; equal small ones are one. */
onnx_value *onnx_data(onnx_graph *g, proa_dtype dtype, int ndim, const int64_t *shape, const void *elements);
onnx_value *onnx_ints(onnx_graph *g, int64_t n, const int64_t *at); /* int64 [n] */
onnx_value *onnx_int(onnx_graph *g, int64_t v);                     /* int64 [1] */
#define ONNX_INTS(g, ...) \
    onnx_ints((g), (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
/* A 0-D number, and n numbers [n], of a dtype. */
onnx_value *onnx_number(onnx_graph *g, proa_dtype dtype, double v);
onnx_value *onnx_whole(onnx_graph *g, proa_dtype dtype, int64_t v);
onnx_value *onnx_numbers(onnx_graph *g, proa_dtype dtype, int64_t n, const double *v);
/* An attribute that is a number or comes from a tensor, 0-D and of a dtype. */
onnx_value *onnx_scalar(onnx_graph *g, proa_dtype dtype, const proa_scalar *v);
/* A number that is known now: false, with an error, if a tensor supplies it. */
bool onnx_known_scalar(const onnx_graph *g, const char *argument, const proa_scalar *v, double *to);
/* A list that may come from tensors, as int64 [n]. */
onnx_value *onnx_list_value(onnx_graph *g, const proa_ints *v);
/* The entries of a list if all are known now, also from constant tensors; at most `max`. -1: not all are. */
int64_t onnx_known(const onnx_graph *g, const proa_ints *v, int64_t *to, int64_t max);
/* The elements of a persistable variable that no op writes, row-major; NULL: the tensor is none. */
const void *onnx_constant(const onnx_graph *g, const proa_tensor *t);

/* ---- versioned_nodes.c: nodes whose form depends on the opset ------------------------------------ */

onnx_value *onnx_cast(onnx_graph *g, onnx_value *x, proa_dtype dtype); /* x itself if it has the dtype */
onnx_value *onnx_reshape(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *shape);
#define ONNX_RESHAPE(g, x, ...)                                                           \
    onnx_reshape((g), (x), (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                 (int64_t[]){__VA_ARGS__})
onnx_value *onnx_transpose(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *perm);
onnx_value *onnx_swap_axes(onnx_graph *g, onnx_value *x, int ndim, int first, int second);
onnx_value *onnx_squeeze(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *axes);
onnx_value *onnx_unsqueeze(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *axes);
/* A Reduce* node; n 0: over all axes. */
onnx_value *onnx_reduce(onnx_graph *g, const char *type, onnx_value *x, int64_t n, const int64_t *axes,
                        bool keep);
/* Slice along axes by constants; steps NULL: 1. */
onnx_value *onnx_slice(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *axes, const int64_t *starts,
                       const int64_t *ends, const int64_t *steps);
onnx_value *onnx_slice_one(onnx_graph *g, onnx_value *x, int64_t axis, int64_t start, int64_t end);
onnx_value *onnx_concat(onnx_graph *g, int64_t n, onnx_value *const *in, int64_t axis);
/* Splits x along an axis into n parts of the given sizes. */
void onnx_split(onnx_graph *g, onnx_value *x, int64_t axis, int64_t n, const int64_t *sizes,
                onnx_value **parts);
/* x limited to [low, high], of its dtype; a limit that is NULL is left out. Before opset 11 for float64
 * only. */
onnx_value *onnx_limit(onnx_graph *g, onnx_value *x, onnx_value *low, onnx_value *high);
/* x limited by numbers. */
onnx_value *onnx_clip(onnx_graph *g, onnx_value *x, const double *low, const double *high);
onnx_value *onnx_where(onnx_graph *g, onnx_value *condition, onnx_value *x, onnx_value *y);
onnx_value *onnx_expand(onnx_graph *g, onnx_value *x, onnx_value *shape);
onnx_value *onnx_gather(onnx_graph *g, onnx_value *x, onnx_value *index, int64_t axis);
/* Softmax or LogSoftmax along any axis of a value with ndim axes. */
onnx_value *onnx_softmax(onnx_graph *g, const char *type, onnx_value *x, int ndim, int64_t axis);
onnx_value *onnx_sign(onnx_graph *g, onnx_value *x);
onnx_value *onnx_is_nan(onnx_graph *g, onnx_value *x);
onnx_value *onnx_equal(onnx_graph *g, onnx_value *x, onnx_value *y);
/* Constant padding before and after each of n axes: pads has 2n entries, all befores first. */
onnx_value *onnx_pad(onnx_graph *g, onnx_value *x, const char *mode, int64_t n, const int64_t *pads,
                     double value);

/* The shape of a tensor that v is the value of: int64 [ndim]; and one dim of it: int64 [1]. */
onnx_value *onnx_shape(onnx_graph *g, const proa_tensor *t, onnx_value *v);
onnx_value *onnx_dim(onnx_graph *g, const proa_tensor *t, onnx_value *v, int axis);
/* x in a shape of ndim dims: numbers; ~i for dim i of tensor t with value v, known or not. */
onnx_value *onnx_reshape_by(onnx_graph *g, onnx_value *x, const proa_tensor *t, onnx_value *v, int ndim,
                            const int64_t *dims);
/* axis counted from the front. */
static inline int64_t onnx_axis(int64_t axis, int64_t ndim) { return axis < 0 ? axis + ndim : axis; }

/* Short names of frequent nodes. */
static inline onnx_value *onnx_add(onnx_graph *g, onnx_value *x, onnx_value *y)
{
    return ONNX_NODE(g, "Add", x, y);
}
static inline onnx_value *onnx_sub(onnx_graph *g, onnx_value *x, onnx_value *y)
{
    return ONNX_NODE(g, "Sub", x, y);
}
static inline onnx_value *onnx_mul(onnx_graph *g, onnx_value *x, onnx_value *y)
{
    return ONNX_NODE(g, "Mul", x, y);
}
static inline onnx_value *onnx_div(onnx_graph *g, onnx_value *x, onnx_value *y)
{
    return ONNX_NODE(g, "Div", x, y);
}
static inline onnx_value *onnx_mul_by(onnx_graph *g, onnx_value *x, double v)
{
    return x ? onnx_mul(g, x, onnx_number(g, x->dtype, v)) : NULL;
}
static inline onnx_value *onnx_add_to(onnx_graph *g, onnx_value *x, double v)
{
    return x ? onnx_add(g, x, onnx_number(g, x->dtype, v)) : NULL;
}
static inline onnx_value *onnx_test(onnx_graph *g, const char *type, onnx_value *x, onnx_value *y)
{
    return onnx_typed(ONNX_NODE(g, type, x, y), PROA_BOOL);
}
static inline onnx_value *onnx_not(onnx_graph *g, onnx_value *x) { return ONNX_NODE(g, "Not", x); }

#endif
