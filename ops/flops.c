/* Arithmetic and memory traffic of op calls whose outputs are there: a sum of products has as many
 * multiply-adds as outputs times terms. May use core. */
#include "ops/flops.h"

#include "core/tensor.h"

static const proa_field *field(const proa_op *op, const char *name)
{
    for (const proa_field *f = op->fields; f < op->fields + op->n_fields; f++)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

/* The dense tensor in that field; NULL if it is absent. */
static const proa_tensor *tensor(const proa_op *op, const void *args, const char *name)
{
    const proa_field *f = field(op, name);
    const proa_tensor *t = f && f->kind == PROA_FIELD_TENSOR ? *proa_field_tensor(f, args) : NULL;
    return t == proa_none ? NULL : t;
}

static bool is_set(const proa_op *op, const void *args, const char *name)
{
    const proa_field *f = field(op, name);
    return f && f->kind == PROA_FIELD_BOOL && *(const bool *)proa_field_at(f, args);
}

/* How a count follows from the args: `of` is summed once for each term, and terms are axes of `by`. */
typedef enum terms {
    LAST,   /* the last axis of `by` (the one before it, where transpose_x says so) */
    FILTER, /* all axes of `by` but the first */
    ALL,    /* one: each element of `of` is multiplied with one of `by` */
} terms;

static const struct {
    const char *op, *of, *by;
    terms terms;
} products[] = {
    {"matmul", "out", "x", LAST},
    {"bmm", "out", "x", LAST},
    {"mv", "out", "x", LAST},
    {"addmm", "out", "x", LAST},
    {"linear", "out", "x", LAST},
    {"linear_fused", "out", "x", LAST},
    {"dot", "x", "y", ALL},
    {"conv1d", "out", "weight", FILTER},
    {"conv2d", "out", "weight", FILTER},
    {"conv2d_fused", "out", "weight", FILTER},
    {"conv3d", "out", "weight", FILTER},
    {"conv2d_grad_input", "d_out", "weight", FILTER},
    {"conv2d_grad_filter", "d_out", "weight", FILTER},
    {"conv3d_grad_input", "d_out", "weight", FILTER},
    {"conv3d_grad_filter", "d_out", "weight", FILTER},
    {"conv1d_transpose", "x", "weight", FILTER},
    {"conv2d_transpose", "x", "weight", FILTER},
    {"conv3d_transpose", "x", "weight", FILTER},
};

static double count_terms(const proa_op *op, const void *args, terms how, const proa_tensor *by)
{
    double n = 1;
    if (how == LAST && by->ndim > 0) {
        bool second = is_set(op, args, "transpose_x") && by->ndim > 1;
        n = (double)by->shape[by->ndim - (second ? 2 : 1)];
    }
    for (int d = 1; how == FILTER && d < by->ndim; d++) n *= (double)by->shape[d];
    return n;
}

/* Two products of queries, keys and values; a causal mask spares half; the gradient takes five. */
static double of_attention(const proa_op *op, const void *args)
{
    const proa_tensor *q = tensor(op, args, "query"), *k = tensor(op, args, "key");
    if (!q || !k || k->ndim != 4) return 0;
    double once = 4.0 * (double)q->numel * (double)k->shape[1] * (is_set(op, args, "is_causal") ? 0.5 : 1.0);
    return field(op, "d_query") ? 2.5 * once : once;
}

/* Each step multiplies input and state with the matrices of a direction; the gradient twice. */
static double of_rnn(const proa_op *op, const void *args)
{
    const proa_tensor *x = tensor(op, args, "input");
    const proa_field *f = field(op, "weight_list");
    if (!x || !f || x->ndim != 3) return 0;
    const proa_tensors *list = proa_field_tensors(f, args);
    double weights = 0;
    for (int64_t i = 0; i < list->count; i++)
        if (list->at[i] && list->at[i]->ndim == 2) weights += (double)list->at[i]->numel;
    return 2 * (double)(x->shape[0] * x->shape[1]) * weights * (field(op, "d_input") ? 2 : 1);
}

/* The row of `products`, or −1. */
static int product_row(const proa_op *op)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(op->name, products[i].op) == 0) return (int)i;
    return -1;
}

static bool is_attention(const proa_op *op)
{
    return strncmp(op->name, "scaled_dot_product_attention", 28) == 0;
}

static bool is_rnn(const proa_op *op)
{
    return strcmp(op->name, "rnn") == 0 || strcmp(op->name, "rnn_grad") == 0;
}

static bool is_inverted(const proa_op *op) { return strcmp(op->name, "inverted_residual") == 0; }

/* Three convolutions: to more channels, each of these by itself, and to fewer. */
static double of_inverted(const proa_op *op, const void *args)
{
    const proa_tensor *x = tensor(op, args, "x"), *out = tensor(op, args, "out");
    const proa_tensor *by = tensor(op, args, "depthwise"), *expand = tensor(op, args, "expand");
    if (!x || !out || !by || x->ndim != 4 || out->ndim != 4 || by->ndim != 4) return 0;
    if (x->numel < 0 || out->numel < 0) return -1;
    double pixels = (double)(out->shape[0] * out->shape[1] * out->shape[2]), wide = (double)by->shape[0];
    double taps = (double)(by->shape[2] * by->shape[3]);
    return 2 * wide * (pixels * (taps + (double)out->shape[3]) + (expand ? (double)x->numel : 0));
}

bool proa__counts_flops(const proa_op *op)
{
    return product_row(op) >= 0 || is_attention(op) || is_rnn(op) || is_inverted(op);
}

double proa__call_flops(const proa_op *op, const void *args)
{
    int row = product_row(op);
    if (is_inverted(op)) return of_inverted(op, args);
    if (row < 0) return is_attention(op) ? of_attention(op, args) : is_rnn(op) ? of_rnn(op, args) : 0;
    const proa_tensor *of = tensor(op, args, products[row].of), *by = tensor(op, args, products[row].by);
    if (!of || !by) return 0;
    return of->numel < 0 ? -1 : 2 * (double)of->numel * count_terms(op, args, products[row].terms, by);
}

/* A broadcast tensor is not larger than the memory it lies in. */
static double bytes_of(const proa_tensor *t)
{
    if (!t || t == proa_none || !t->storage || t->numel <= 0) return 0;
    double shown = (double)t->numel * (double)proa_dtype_size((proa_dtype)t->dtype);
    return shown < (double)t->storage->bytes ? shown : (double)t->storage->bytes;
}

double proa__call_bytes(const proa_op *op, const void *args)
{
    if (op->flags & PROA_OP_VIEW) {
        const proa_tensor *from = *proa_field_tensor(&op->fields[0], args),
                          *to = *proa_field_tensor(&op->fields[op->n_in + op->n_attr], args);
        if (from && to && from->storage == to->storage) return 0;
    }
    double sum = 0;
    for (const proa_field *f = op->fields; f < op->fields + op->n_fields; f++) {
        if (f->kind == PROA_FIELD_TENSOR) sum += bytes_of(*proa_field_tensor(f, args));
        if (f->kind != PROA_FIELD_TENSORS) continue;
        const proa_tensors *list = proa_field_tensors(f, args);
        for (int64_t i = 0; i < list->count; i++) sum += bytes_of(list->at[i]);
    }
    return sum;
}
