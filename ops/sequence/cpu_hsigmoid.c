/* hsigmoid_loss and its backward on the CPU (Morin and Bengio, Hierarchical Probabilistic Neural Network
 * Language Model, 2005). Threads divide the rows of x forward and the features backward; each tree node's
 * weight gradient is summed in the order of x, so results do not depend on the thread count. May use core and
 * kernels/rowwise.h. */
#include "impl/sequence.h"

#include "kernels/rowwise.h"

typedef struct tree {
    const proa_tensor *x, *w, *label, *bias, *table, *code;
    int64_t classes, depth, features;
    const char *pre; /* backward: saved by forward */
    const void *d_out;
    char *out, *pre_out;      /* forward */
    char *d_x, *d_w, *d_bias; /* backward; d_bias may be NULL */
} tree;

static const int64_t *ints_of(const proa_tensor *t) { return (const int64_t *)(const void *)t->data; }

/* Node j of row i's path through the tree, and the code's bit (`turn`) there; false beyond the path's end.
 * Without a given path the leaf of class c is number c + classes in a heap whose root is 1; node k of the
 * heap has row k − 1. */
static bool step_of(const tree *w, int64_t i, int64_t j, int64_t *node, bool *turn)
{
    if (!proa__absent(w->table)) {
        *node = ints_of(w->table)[i * w->depth + j];
        *turn = ints_of(w->code)[i * w->depth + j] != 0;
        return *node >= 0;
    }
    int64_t leaf = ints_of(w->label)[i] + w->classes;
    *node = (leaf >> (j + 1)) - 1;
    *turn = leaf >> j & 1;
    return *node >= 0;
}

static int64_t way_length(const tree *w, int64_t i)
{
    int64_t n = 0, node;
    bool turn;
    while (n < w->depth && step_of(w, i, n, &node, &turn)) n++;
    return n;
}

static proa_status check(const tree *w, const char *op)
{
    for (int64_t i = 0; i < w->x->shape[0]; i++) {
        int64_t label = ints_of(w->label)[i];
        if (proa__absent(w->table) && (label < 0 || label >= w->classes))
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "label",
                                 "entry %lld is %lld; expected 0 to %lld (num_classes)", (long long)i,
                                 (long long)label, (long long)w->classes - 1);
        for (int64_t j = 0, n = way_length(w, i), node; j < n; j++) {
            bool turn;
            (void)step_of(w, i, j, &node, &turn);
            if (node < w->w->shape[0]) continue;
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "w",
                                 "is %s; row %lld of x needs node %lld", proa__tensor_text(w->w),
                                 (long long)i, (long long)node);
        }
    }
    return PROA_OK;
}

#define T float
#include "cpu_hsigmoid.inc"
#undef T
#define T double
#include "cpu_hsigmoid.inc"
#undef T

/* Fields that forward and backward share. */
#define TREE_OF(a)                                                                              \
    .x = (a)->x, .w = (a)->w, .label = (a)->label, .bias = (a)->bias, .table = (a)->path_table, \
    .code = (a)->path_code, .classes = (a)->num_classes, .depth = (a)->pre_out->shape[1],       \
    .features = (a)->x->shape[1]

PROA_KERNEL(hsigmoid_loss_cpu, hsigmoid_loss)
{
    tree w = {TREE_OF(a)};
    w.out = a->out->data, w.pre_out = a->pre_out->data;
    PROA_TRY(check(&w, "hsigmoid_loss"));
    proa__parallel(a->x->shape[0], rows_grain(w.features * w.depth),
                   a->x->dtype == PROA_F64 ? forward_double : forward_float, &w);
    return PROA_OK;
}

PROA_KERNEL(hsigmoid_loss_grad_cpu, hsigmoid_loss_grad)
{
    tree w = {TREE_OF(a)};
    w.pre = a->pre_out->data, w.d_out = a->d_out->data;
    w.d_x = a->d_x->data, w.d_w = a->d_w->data, w.d_bias = proa__absent(a->bias) ? NULL : a->d_bias->data;
    PROA_TRY(check(&w, "hsigmoid_loss_grad"));
    size_t item = proa_dtype_size((proa_dtype)a->x->dtype);
    memset(w.d_x, 0, (size_t)a->d_x->numel * item);
    memset(w.d_w, 0, (size_t)a->d_w->numel * item);
    if (w.d_bias) memset(w.d_bias, 0, (size_t)a->d_bias->numel * item);
    proa_range_fn body = a->x->dtype == PROA_F64 ? backward_double : backward_float;
    if (w.features) proa__parallel(w.features, rows_grain(a->x->shape[0] * w.depth), body, &w);
    return PROA_OK;
}
