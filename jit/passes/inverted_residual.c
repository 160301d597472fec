/* Fuses inverted residual blocks of programs whose weights never change (1×1 expansion, which may be missing,
 * depthwise convolution, 1×1 projection; float32, channels-last) into one op where the activation that the
 * depthwise convolution reads has at least MIN_BYTES. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "ops/windows.h"
#include "impl/conv.h"

/* Size in bytes of the widest activation from which the fused op is faster than three ops. */
enum { MIN_BYTES = 592 << 10 };

typedef struct inverted {
    int32_t expand, depthwise, project; /* indices of ops; expand may be NOBODY */
} inverted;

static const proa_conv2d_fused_args *conv_of(const proa__uses *u, int32_t at)
{
    const proa_instr *instr = at == PROA__NOBODY ? NULL : &u->block->ops[at];
    if (!instr || !proa__is_op(instr, "conv2d_fused")) return NULL;
    const proa_conv2d_fused_args *a = instr->args;
    bool fits = proa__channels_last(a->data_format) && a->constant_weight && a->x->dtype == PROA_F32;
    return fits && a->x->ndim == 4 && a->weight->ndim == 4 ? a : NULL;
}

static bool is_pointwise(const proa_conv2d_fused_args *a)
{
    return a->groups == 1 && a->weight->shape[2] == 1 && a->weight->shape[3] == 1 &&
           proa__all_are(&a->stride, 1) &&
           (a->padding_algorithm != PROA_PADDING_ALGORITHM_EXPLICIT || proa__all_are(&a->padding, 0));
}

static bool is_depthwise(const proa_conv2d_fused_args *a)
{
    return a->groups == a->weight->shape[0] && a->weight->shape[1] == 1 && proa__all_are(&a->dilation, 1) &&
           a->x->shape[3] == a->groups && a->padding_algorithm == PROA_PADDING_ALGORITHM_EXPLICIT &&
           proa__absent(a->residual);
}

/* True for activations without parameters of their own. */
static bool is_simple(proa_fused_activation f)
{
    return f != PROA_FUSED_ACTIVATION_LEAKY_RELU && f != PROA_FUSED_ACTIVATION_ELU &&
           f != PROA_FUSED_ACTIVATION_HARDSIGMOID;
}

/* The op that makes t, if only `reader` reads t. */
static int32_t maker_for(const proa__uses *u, const proa_tensor *t, int32_t reader)
{
    const proa_var *v = proa__slot_var(t);
    const proa__use *use = proa__use_of(u, v);
    return use && use->maker != PROA__NOBODY && proa__only_reader(u, v) == reader ? use->maker : PROA__NOBODY;
}

static bool may_read_at(const proa__uses *u, const proa_conv2d_fused_args *a, int32_t from, int32_t to)
{
    proa_tensor *const read[] = {a->x, a->weight, a->bias};
    return proa__all_may_move(u, read, 3, from, to);
}

/* True if the activation has at least MIN_BYTES in float32. An unknown batch size counts as 1; with unknown
 * height or width, false. */
static bool is_large(const proa_tensor *t)
{
    int64_t images = t->shape[0] < 1 ? 1 : t->shape[0], height = t->shape[1], width = t->shape[2];
    return height > 0 && width > 0 && images * height * width * t->shape[3] >= MIN_BYTES / 4;
}

static bool find(const proa__uses *u, int32_t at, inverted *found)
{
    const proa_conv2d_fused_args *p = conv_of(u, at);
    if (!p || !is_pointwise(p) || p->activation != PROA_FUSED_ACTIVATION_NONE) return false;
    found->project = at, found->expand = PROA__NOBODY, found->depthwise = maker_for(u, p->x, at);
    const proa_conv2d_fused_args *d = conv_of(u, found->depthwise);
    if (!d || !is_depthwise(d) || !is_simple(d->activation) || !is_large(d->x)) return false;
    if (!may_read_at(u, d, found->depthwise, at)) return false;
    int32_t before = maker_for(u, d->x, found->depthwise);
    const proa_conv2d_fused_args *e = conv_of(u, before);
    if (e && is_pointwise(e) && is_simple(e->activation) && proa__absent(e->residual) &&
        may_read_at(u, e, before, at))
        found->expand = before;
    return true;
}

static proa_status write(const proa__uses *u, const inverted *found)
{
    proa_instr *ops = u->block->ops;
    const proa_conv2d_fused_args *p = ops[found->project].args, *d = ops[found->depthwise].args;
    const proa_conv2d_fused_args *e = found->expand == PROA__NOBODY ? NULL : ops[found->expand].args;
    proa_inverted_residual_args one = {.x = e ? e->x : d->x,
                                       .expand = e ? e->weight : proa_none,
                                       .expand_bias = e ? e->bias : proa_none,
                                       .depthwise = d->weight,
                                       .depthwise_bias = d->bias,
                                       .project = p->weight,
                                       .project_bias = p->bias,
                                       .residual = p->residual,
                                       .stride = d->stride,
                                       .padding = d->padding,
                                       .expand_activation = e ? e->activation : PROA_FUSED_ACTIVATION_NONE,
                                       .activation = d->activation,
                                       .constant_weight = true,
                                       .out = p->out};
    proa_instr made = {.role = ops[found->project].role, .marks = ops[found->project].marks};
    PROA_TRY(proa__instr_become(&made, proa_find_op("inverted_residual"), &one));
    if (e) proa__instr_clear(&ops[found->expand]);
    proa__instr_clear(&ops[found->depthwise]);
    proa__instr_clear(&ops[found->project]);
    ops[found->project] = made;
    return PROA_OK;
}

static proa_status rewrite(proa__uses *u, int32_t at, const proa__pass_context *context)
{
    inverted found;
    (void)context;
    return find(u, at, &found) ? write(u, &found) : PROA_OK;
}

proa_status proa__pass_inverted_residual(proa_block *b, const proa__pass_context *context)
{
    return proa__rewrite_ops(b, context, rewrite);
}
