/* Fuses a convolution (float32, NCHW, stride 1, one group), ReLU and max pooling over non-overlapping
 * windows, and their gradients in the same program, into conv2d_pooled and its gradient ops. These need not
 * store the convolution's result, and sum gradients over one element per window only. May use core and
 * ops. */
#include "edit.h"

#include "core/internal.h"
#include "ops/windows.h"
#include "impl/conv.h"
#include "impl/elementwise.h"
#include "impl/pool.h"
#include "impl/reduce.h"

/* Largest filter, in elements per output channel; a larger one is faster as a convolution in blocked
 * layout. */
enum { LARGEST_FILTER = 1024 };

/* The ops of one match, by index; NOBODY: there is none. */
typedef struct found {
    const proa__uses *uses;
    int32_t conv, relu, pool;     /* forward */
    int32_t pool_grad, relu_grad; /* backward */
    int32_t input_grad, filter_grad, bias_grad;
} found;

static const void *args_of(const found *f, int32_t at) { return f->uses->block->ops[at].args; }

static int32_t maker_of(const proa__uses *u, const proa_tensor *t, const char *op)
{
    const proa__use *use = proa__use_of(u, proa__slot_var(t));
    bool is = use && use->maker != PROA__NOBODY && proa__is_op(&u->block->ops[use->maker], op);
    return is ? use->maker : PROA__NOBODY;
}

static bool same(const proa_tensor *a, const proa_tensor *b)
{
    return proa__slot_var(a) && proa__slot_var(a) == proa__slot_var(b);
}

/* True if the op at f->pool_grad is the gradient of max pooling over non-overlapping windows. */
static bool suits_pool(const found *f)
{
    const proa_pool2d_grad_args *g = args_of(f, f->pool_grad);
    return g->pooling_type == PROA_POOLING_TYPE_MAX && !g->adaptive && !g->ceil_mode &&
           g->data_format == PROA_DATA_FORMAT_NCHW && proa__all_are(&g->padding, 0) &&
           g->padding_algorithm == PROA_PADDING_ALGORITHM_EXPLICIT && g->kernel_size.count == 2 &&
           proa__same_ints(&g->kernel_size, &g->stride) && g->x->dtype == PROA_F32 &&
           g->x->shape[2] >= g->kernel_size.at[0] && g->x->shape[3] >= g->kernel_size.at[1];
}

/* True if g is the gradient op of the pooling `a`: both have the same windows. */
static bool is_of(const proa_max_pool2d_args *a, const proa_pool2d_grad_args *g)
{
    return same(a->x, g->x) && a->data_format == PROA_DATA_FORMAT_NCHW && !a->ceil_mode &&
           a->padding_algorithm == PROA_PADDING_ALGORITHM_EXPLICIT && proa__all_are(&a->padding, 0) &&
           proa__same_ints(&a->kernel_size, &g->kernel_size) &&
           (!a->stride.count || proa__same_ints(&a->stride, &g->stride));
}

static bool suits_conv(const proa_conv2d_args *a)
{
    const int64_t *w = a->weight->shape, *y = a->out->shape;
    return a->groups == 1 && proa__all_are(&a->stride, 1) && proa__all_are(&a->dilation, 1) &&
           a->x->dtype == PROA_F32 && a->data_format == PROA_DATA_FORMAT_NCHW &&
           a->padding_algorithm == PROA_PADDING_ALGORITHM_EXPLICIT && w[1] > 0 && w[2] > 0 && w[3] > 0 &&
           w[1] * w[2] * w[3] <= LARGEST_FILTER && y[2] > 0 && y[3] > 0 && y[2] <= INT32_MAX / y[3];
}

/* Finds the forward ops, starting from the inputs of the pooling's gradient. */
static bool find_forward(found *f)
{
    const proa__uses *u = f->uses;
    const proa_pool2d_grad_args *g = args_of(f, f->pool_grad);
    f->pool = maker_of(u, g->out, "max_pool2d");
    f->relu = maker_of(u, g->x, "relu");
    if (f->pool == PROA__NOBODY || f->relu == PROA__NOBODY || !is_of(args_of(f, f->pool), g)) return false;
    const proa_relu_args *relu = args_of(f, f->relu);
    f->conv = maker_of(u, relu->x, "conv2d");
    if (f->conv == PROA__NOBODY || !suits_conv(args_of(f, f->conv))) return false;
    const proa__use *out = proa__use_of(u, proa__slot_var(relu->out));
    if (proa__only_reader(u, proa__slot_var(relu->x)) != f->relu || out->n_reads != 3 || out->kept)
        return false;
    const proa_conv2d_args *conv = args_of(f, f->conv);
    proa_tensor *const read[] = {conv->x, conv->weight, conv->bias};
    if (!proa__all_may_move(u, read, 3, f->conv, f->pool)) return false;
    if (!proa__is_value(u, proa__slot_var(conv->x))) return false; /* the filter's gradient may move */
    return u->block->ops[f->conv].role == u->block->ops[f->pool].role;
}

static bool is_bias_sum(const proa_instr *instr)
{
    static const int64_t axes[] = {0, 2, 3};
    const proa_sum_args *a = instr->args;
    return proa__is_op(instr, "sum") && a->axis.count == 3 && !memcmp(a->axis.at, axes, sizeof axes) &&
           !a->keepdim && a->out->dtype == PROA_F32;
}

/* Notes the op if it computes a gradient of the convolution from d, the gradient of its result; false: it
 * does not, or is a second one of its kind. */
static bool take_gradient(found *f, int32_t at, const proa_tensor *d)
{
    const proa_instr *instr = &f->uses->block->ops[at];
    const proa_conv2d_args *conv = args_of(f, f->conv);
    const proa_conv2d_grad_input_args *input = instr->args;
    const proa_conv2d_grad_filter_args *filter = instr->args;
    const proa_sum_args *sum = instr->args;
    if (proa__is_op(instr, "conv2d_grad_input")) {
        if (f->input_grad != PROA__NOBODY || !same(input->d_out, d)) return false;
        f->input_grad = at;
        return same(input->weight, conv->weight) && proa__same_ints(&input->padding, &conv->padding);
    }
    if (proa__is_op(instr, "conv2d_grad_filter")) {
        if (f->filter_grad != PROA__NOBODY || !same(filter->d_out, d)) return false;
        f->filter_grad = at;
        return same(filter->x, conv->x) && proa__same_ints(&filter->padding, &conv->padding);
    }
    if (f->bias_grad != PROA__NOBODY || !is_bias_sum(instr) || !same(sum->x, d)) return false;
    f->bias_grad = at;
    return true;
}

/* Finds the backward ops: ReLU's gradient, and its readers, which must all be gradients of the
 * convolution. */
static bool find_backward(found *f)
{
    const proa__uses *u = f->uses;
    const proa_pool2d_grad_args *g = args_of(f, f->pool_grad);
    f->relu_grad = proa__only_reader(u, proa__slot_var(g->d_x));
    f->input_grad = f->filter_grad = f->bias_grad = PROA__NOBODY;
    if (f->relu_grad == PROA__NOBODY || !proa__is_op(&u->block->ops[f->relu_grad], "relu_grad")) return false;
    const proa_relu_grad_args *relu = args_of(f, f->relu_grad);
    const proa__use *use = proa__use_of(u, proa__slot_var(relu->d_x));
    if (!same(relu->out, g->x) || !use || use->kept) return false;
    int32_t n = 0;
    for (int32_t at = f->relu_grad + 1; at <= use->last_read; at++) n += take_gradient(f, at, relu->d_x);
    return n == use->n_reads && (f->bias_grad == PROA__NOBODY || f->filter_grad != PROA__NOBODY);
}

static const proa_var *new_var(const found *f, const proa_tensor *like, proa_dtype dtype)
{
    proa_meta meta = proa_meta_of(like);
    meta.dtype = dtype;
    return proa__var_new(f->uses->block, NULL, &meta);
}

/* Operands of both gradient ops: those of the convolution's gradient `a`, and of the pooling's, `g`. */
#define POOLED_GRAD_OPERANDS(a, g, indices)                                       \
    .x = (a)->x, .weight = (a)->weight, .padding = (a)->padding, .out = (g)->out, \
    .place = (indices)->handle, .d_out = (g)->d_out, .kernel_size = (g)->kernel_size

static proa_status write_input(const found *f, const proa_var *place)
{
    proa_instr *at = &f->uses->block->ops[f->input_grad];
    const proa_conv2d_grad_input_args *a = at->args;
    const proa_pool2d_grad_args *g = args_of(f, f->pool_grad);
    proa_conv2d_pooled_grad_input_args made = {POOLED_GRAD_OPERANDS(a, g, place), .d_x = a->d_x};
    return proa__instr_become(at, proa_find_op("conv2d_pooled_grad_input"), &made);
}

/* Writes the op for the gradients of filter and bias where the first of the two was. */
static proa_status write_filter(const found *f, const proa_var *place)
{
    proa_instr *ops = f->uses->block->ops;
    const proa_conv2d_grad_filter_args *a = ops[f->filter_grad].args;
    const proa_pool2d_grad_args *g = args_of(f, f->pool_grad);
    const proa_sum_args *sum = f->bias_grad == PROA__NOBODY ? NULL : ops[f->bias_grad].args;
    int32_t at = sum && f->bias_grad < f->filter_grad ? f->bias_grad : f->filter_grad;
    const proa_meta bias = {.dtype = PROA_F32, .ndim = 1, .shape = {a->weight->shape[0]}};
    const proa_var *unused = sum ? NULL : proa__var_new(f->uses->block, NULL, &bias);
    if (!sum && !unused) return proa_error();
    proa_conv2d_pooled_grad_filter_args args = {POOLED_GRAD_OPERANDS(a, g, place), .d_weight = a->d_weight,
                                                .d_bias = sum ? sum->out : unused->handle};
    proa_instr made = {.role = ops[at].role, .marks = ops[at].marks};
    PROA_TRY(proa__instr_become(&made, proa_find_op("conv2d_pooled_grad_filter"), &args));
    proa__instr_clear(&ops[f->filter_grad]);
    if (sum) proa__instr_clear(&ops[f->bias_grad]);
    ops[at] = made;
    return PROA_OK;
}

static proa_status write_forward(const found *f, const proa_var *place)
{
    const proa_conv2d_args *conv = args_of(f, f->conv);
    const proa_max_pool2d_args *pool = args_of(f, f->pool);
    proa_conv2d_pooled_args made = {.x = conv->x,
                                    .weight = conv->weight,
                                    .bias = conv->bias,
                                    .padding = conv->padding,
                                    .kernel_size = pool->kernel_size,
                                    .out = pool->out,
                                    .place = place->handle};
    return proa__instr_become(&f->uses->block->ops[f->pool], proa_find_op("conv2d_pooled"), &made);
}

static proa_status write_all(const found *f)
{
    proa_instr *ops = f->uses->block->ops;
    const proa_pool2d_grad_args *g = args_of(f, f->pool_grad);
    const proa_var *place = new_var(f, g->out, PROA_I32);
    if (!place) return proa_error();
    if (f->input_grad != PROA__NOBODY) PROA_TRY(write_input(f, place));
    if (f->filter_grad != PROA__NOBODY) PROA_TRY(write_filter(f, place));
    PROA_TRY(write_forward(f, place));
    const int32_t gone[] = {f->conv, f->relu, f->pool_grad, f->relu_grad};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) proa__instr_clear(&ops[gone[i]]);
    return PROA_OK;
}

static proa_status rewrite(proa__uses *u, int32_t at, const proa__pass_context *context)
{
    found f = {.uses = u, .pool_grad = at};
    (void)context;
    bool fits = proa__is_op(&u->block->ops[at], "pool2d_grad") && suits_pool(&f) && find_forward(&f) &&
                find_backward(&f);
    return fits ? write_all(&f) : PROA_OK;
}

proa_status proa__pass_conv_relu_pool(proa_block *b, const proa__pass_context *context)
{
    return proa__rewrite_ops(b, context, rewrite);
}
