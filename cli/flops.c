/* Floating-point operations of the ops that multiply: products, convolutions, recurrent layers. Shapes
 * come from the ops' inputs, which every op has, and attributes as Paddle's format spells them. Uses
 * cli.h. */
#include "cli.h"

#include <string.h>

typedef struct dims {
    int n;
    double at[PROA_MAX_DIMS];
} dims;

static bool shape(const cli_model *m, int64_t b, const cli_op *op, const char *slot, int64_t unknown, dims *d)
{
    const proa_tensor *t = cli_slot_tensor(m, b, op, slot);
    if (!t) return false;
    d->n = proa_ndim(t);
    for (int i = 0; i < d->n; i++)
        d->at[i] = (double)(proa_shape_of(t)[i] < 0 ? unknown : proa_shape_of(t)[i]);
    return true;
}

static double product(const dims *d, int from, int to)
{
    double n = 1;
    for (int i = from; i < to; i++) n *= d->at[i];
    return n;
}

static bool flag(const cli_op *op, const char *a, const char *b)
{
    const proa_op_attr *x = cli_attr(op, a), *y = cli_attr(op, b);
    return (x && x->i) || (y && y->i);
}

/* out = x · y, batches broadcast; a 1-D operand is a row or a column. */
static double of_matmul(const cli_op *op, dims x, dims y)
{
    bool tx = flag(op, "trans_x", "transpose_X") && x.n > 1,
         ty = flag(op, "trans_y", "transpose_Y") && y.n > 1;
    if (x.n == 0 || y.n == 0) return -1;
    double rows = x.n > 1 ? x.at[x.n - (tx ? 1 : 2)] : 1, inner = x.at[x.n - (tx ? 2 : 1)];
    double columns = y.n > 1 ? y.at[y.n - (ty ? 2 : 1)] : 1, batch = 1;
    for (int i = 3; i <= x.n || i <= y.n; i++) {
        double a = i <= x.n ? x.at[x.n - i] : 1, c = i <= y.n ? y.at[y.n - i] : 1;
        batch *= a > c ? a : c;
    }
    return 2 * batch * rows * inner * columns;
}

/* The length of a convolution's output along one axis. */
static double conv_length(const cli_op *op, int axis, int axes, double in, double kernel)
{
    const proa_op_attr *s = cli_attr(op, "strides"), *p = cli_attr(op, "paddings"),
                       *d = cli_attr(op, "dilations"), *how = cli_attr(op, "padding_algorithm");
    double stride = s && s->count == axes ? (double)s->ints[axis] : 1;
    double reach = (kernel - 1) * (d && d->count == axes ? (double)d->ints[axis] : 1) + 1, pad = 0;
    if (stride < 1) return -1;
    if (p && p->count == axes) pad = 2 * (double)p->ints[axis];
    if (p && p->count == 2 * axes) pad = (double)(p->ints[2 * axis] + p->ints[2 * axis + 1]);
    if (how && how->s && strcmp(how->s, "VALID") == 0) pad = 0;
    if (how && how->s && strcmp(how->s, "SAME") == 0) return (double)(int64_t)((in + stride - 1) / stride);
    return in + pad < reach ? 0 : (double)((int64_t)((in + pad - reach) / stride) + 1);
}

/* An element of the output takes one multiply-add for each element of one filter. */
static double of_conv(const cli_op *op, dims x, dims w)
{
    if (x.n < 3 || w.n != x.n) return -1;
    const proa_op_attr *layout = cli_attr(op, "data_format");
    int first = layout && layout->s && cli_ends_with(layout->s, "C") ? 1 : 2; /* NHWC, NDHWC */
    double out = x.at[0] * w.at[0];
    for (int i = 0; i < x.n - 2; i++) out *= conv_length(op, i, x.n - 2, x.at[first + i], w.at[2 + i]);
    return 2 * out * product(&w, 1, w.n);
}

/* Each time step multiplies input and state of a direction with its matrices. */
static double of_rnn(const cli_model *m, int64_t b, const cli_op *op, dims x)
{
    double weights = 0;
    for (int64_t i = 0; i < op->n_inputs; i++)
        for (int64_t k = 0; strcmp(op->inputs[i].name, "WeightList") == 0 && k < op->inputs[i].count; k++) {
            const proa_var_info *v = cli_find(m, b, op->inputs[i].vars[k]);
            if (!v) return -1;
            if (proa_ndim(v->tensor) == 2) weights += (double)proa_numel(v->tensor);
        }
    return x.n == 3 ? 2 * x.at[0] * x.at[1] * weights : -1;
}

/* Both operands' shapes; false if one is not known. */
static bool operands(const cli_model *m, int64_t b, const cli_op *op, const char *x, const char *y,
                     int64_t unknown, dims *of_x, dims *of_y)
{
    return shape(m, b, op, x, unknown, of_x) && shape(m, b, op, y, unknown, of_y);
}

/* What op computes as the forward op `type`, whose inputs a gradient op has, too. */
static double forward(const cli_model *m, int64_t b, const cli_op *op, const char *type, int64_t unknown)
{
    static const char *const products[] = {"matmul_v2", "matmul", "bmm", "addmm"};
    static const char *const convs[] = {"conv2d", "conv3d", "depthwise_conv2d"};
    static const char *const transposed[] = {"conv2d_transpose", "conv3d_transpose",
                                             "depthwise_conv2d_transpose"};
    dims x, y;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(type, products[i]) == 0)
            return operands(m, b, op, "X", "Y", unknown, &x, &y) ? of_matmul(op, x, y) : -1;
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        if (strcmp(type, convs[i]) == 0)
            return operands(m, b, op, "Input", "Filter", unknown, &x, &y) ? of_conv(op, x, y) : -1;
    for (size_t i = 0; i < sizeof transposed / sizeof *transposed; i++)
        if (strcmp(type, transposed[i]) == 0) /* each element of the input meets its filters */
            return operands(m, b, op, "Input", "Filter", unknown, &x, &y)
                       ? 2 * product(&x, 0, x.n) * product(&y, 1, y.n)
                       : -1;
    if (strcmp(type, "mv") == 0)
        return operands(m, b, op, "X", "Vec", unknown, &x, &y) ? of_matmul(op, x, y) : -1;
    if (strcmp(type, "dot") == 0) return shape(m, b, op, "X", unknown, &x) ? 2 * product(&x, 0, x.n) : -1;
    if (strcmp(type, "rnn") == 0) return shape(m, b, op, "Input", unknown, &x) ? of_rnn(m, b, op, x) : -1;
    return 0;
}

/* The gradient of each operand takes as much as the forward op: a product of the same three lengths. */
static int gradients(const cli_op *op)
{
    static const char *const slots[] = {"X@GRAD",      "Y@GRAD",     "Vec@GRAD",
                                        "Filter@GRAD", "Input@GRAD", "WeightList@GRAD"};
    int n = 0;
    for (int64_t i = 0; i < op->n_outputs; i++)
        for (size_t k = 0; k < sizeof slots / sizeof *slots; k++)
            n += op->outputs[i].count > 0 && strcmp(op->outputs[i].name, slots[k]) == 0 &&
                 !(strcmp(slots[k], "Input@GRAD") == 0 &&
                   strncmp(op->type, "addmm", 5) == 0); /* it is added */
    return n;
}

double cli_flops(const cli_model *m, int64_t b, const cli_op *op, int64_t unknown)
{
    if (!cli_ends_with(op->type, "_grad")) return forward(m, b, op, op->type, unknown);
    char type[64];
    size_t n = strlen(op->type) - strlen("_grad");
    if (n >= sizeof type) return 0; /* none of those that count */
    memcpy(type, op->type, n);
    type[n] = 0;
    double once = forward(m, b, op, type, unknown);
    return once < 0 ? once : once * gradients(op);
}
