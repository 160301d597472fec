/* Epilogue fusion: 2-D convolutions, linear layers and products with a matrix absorb the bias, residual and
 * activation that follow them (conv2d_fused, linear_fused). In frozen programs, whose parameters never
 * change, those with constant weights become these ops even if nothing follows, since the fused kernels keep
 * constant weights packed. May use core and ops. */
#include "epilogue.h"

#include "core/internal.h"
#include "ops/conv/geometry.h"
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/shape.h"

/* A convolution or linear layer, and the ops that are absorbed so far. */
typedef struct chain {
    proa__uses *uses;
    int32_t first, last; /* indices of ops */
    proa_tensor *x, *weight, *bias, *residual, *out;
    proa__activation activation;
    bool is_conv, channels_last, constant;
} chain;

/* ---- what may follow ----------------------------------------------------------------------- */

bool proa__activation_of(const proa_instr *instr, proa__activation *to)
{
    static const struct {
        const char *op;
        proa_fused_activation kind;
    } plain[] = {{"relu", PROA_FUSED_ACTIVATION_RELU},          {"relu6", PROA_FUSED_ACTIVATION_RELU6},
                 {"sigmoid", PROA_FUSED_ACTIVATION_SIGMOID},    {"tanh", PROA_FUSED_ACTIVATION_TANH},
                 {"silu", PROA_FUSED_ACTIVATION_SILU},          {"swish", PROA_FUSED_ACTIVATION_SILU},
                 {"hardswish", PROA_FUSED_ACTIVATION_HARDSWISH}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (proa__is_op(instr, plain[i].op)) return to->kind = plain[i].kind, true;
    if (proa__is_op(instr, "gelu")) {
        bool tanh = ((const proa_gelu_args *)instr->args)->approximate;
        to->kind = tanh ? PROA_FUSED_ACTIVATION_GELU_TANH : PROA_FUSED_ACTIVATION_GELU;
    } else if (proa__is_op(instr, "leaky_relu")) {
        to->kind = PROA_FUSED_ACTIVATION_LEAKY_RELU;
        to->alpha = ((const proa_leaky_relu_args *)instr->args)->negative_slope;
    } else if (proa__is_op(instr, "elu")) {
        to->kind = PROA_FUSED_ACTIVATION_ELU;
        to->alpha = ((const proa_elu_args *)instr->args)->alpha;
    } else if (proa__is_op(instr, "hardsigmoid")) {
        to->kind = PROA_FUSED_ACTIVATION_HARDSIGMOID;
        to->alpha = ((const proa_hardsigmoid_args *)instr->args)->slope;
        to->beta = ((const proa_hardsigmoid_args *)instr->args)->offset;
    } else {
        return false;
    }
    return true;
}

bool proa__runs_along(const proa_tensor *t, const proa_tensor *out, int axis)
{
    int own = axis - (out->ndim - t->ndim);
    int64_t channels = out->shape[axis];
    return own >= 0 && channels >= 1 && t->numel == channels && t->shape[own] == channels;
}

/* A sum's operand as a bias [channels] of the product; NULL if it is not one number per channel, or has
 * several dims and is not constant. */
static proa_tensor *bias_of(const chain *c, proa_tensor *t)
{
    if (!proa__runs_along(t, c->out, c->is_conv && !c->channels_last ? 1 : c->out->ndim - 1)) return NULL;
    if (t->ndim == 1) return t;
    proa_tensor *value = proa__constant_of(c->uses, t);
    return value ? proa__new_constant(c->uses->block, proa_reshape(value, PROA_SHAPE(-1))) : NULL;
}

/* Absorbs the op at `at`, which reads the chain's result; false: it cannot be absorbed. */
static bool take(chain *c, int32_t at)
{
    const proa_instr *instr = &c->uses->block->ops[at];
    if (proa__activation_of(instr, &c->activation)) return true;
    if (!proa__is_op(instr, "add")) return false;
    const proa_add_args *a = instr->args;
    proa_tensor *other = proa__slot_var(a->x) == proa__slot_var(c->out) ? a->y : a->x;
    if (other->dtype != c->out->dtype || !proa__same_shape(a->out, c->out) || c->residual != proa_none)
        return false;
    proa_tensor *bias = c->bias == proa_none ? bias_of(c, other) : NULL;
    if (bias) return c->bias = bias, true;
    if (!proa__same_shape(other, c->out)) return false;
    c->residual = other;
    return true;
}

static bool may_move(const chain *c, int32_t to)
{
    proa_tensor *const read[] = {c->x, c->weight, c->bias, c->residual};
    return proa__all_may_move(c->uses, read, 4, c->first, to);
}

static void follow(chain *c)
{
    while (c->activation.kind == PROA_FUSED_ACTIVATION_NONE) {
        int32_t at = proa__only_reader(c->uses, proa__slot_var(c->out));
        if (at == PROA__NOBODY || !may_move(c, at)) return;
        proa_instr *instr = &c->uses->block->ops[at];
        if (!instr->args || instr->op->n_out != 1 || instr->role != c->uses->block->ops[c->first].role)
            return;
        chain before = *c;
        if (!take(c, at)) return;
        proa_tensor *out = *proa__out_slot(instr->op, instr->args, 0, NULL);
        if (!proa__slot_var(out) || proa__slot_var(out)->persistable || !may_move(c, at)) {
            *c = before;
            return;
        }
        c->out = out;
        c->last = at;
    }
}

/* ---- where a chain starts ---------------------------------------------------------------------- */

static bool begins(proa__uses *u, int32_t at, chain *c)
{
    const proa_instr *instr = &u->block->ops[at];
    *c = (chain){.uses = u, .first = at, .last = at, .bias = proa_none, .residual = proa_none};
    if (proa__is_op(instr, "conv2d")) {
        const proa_conv2d_args *a = instr->args;
        c->x = a->x, c->weight = a->weight, c->bias = a->bias, c->out = a->out;
        c->is_conv = true;
        c->channels_last = proa__channels_last(a->data_format);
    } else if (proa__is_op(instr, "linear")) {
        const proa_linear_args *a = instr->args;
        c->x = a->x, c->weight = a->weight, c->bias = a->bias, c->out = a->out;
    } else if (proa__is_op(instr, "matmul")) {
        const proa_matmul_args *a = instr->args;
        if (a->transpose_x || a->transpose_y || a->x->ndim < 2 || a->y->ndim != 2) return false;
        c->x = a->x, c->weight = a->y, c->out = a->out;
    } else {
        return false;
    }
    const proa_var *out = proa__slot_var(c->out);
    return out && !out->persistable &&
           (c->out->dtype == PROA_F32 || c->out->dtype == PROA_BF16 || c->out->dtype == PROA_F16);
}

/* ---- writing it ---------------------------------------------------------------------------------- */

static proa_status write_conv(const chain *c, proa_instr *to, const proa_conv2d_args *a)
{
    proa_conv2d_fused_args fused = {.x = c->x,
                                    .weight = c->weight,
                                    .bias = c->bias,
                                    .residual = c->residual,
                                    CONV_SAME_ATTRIBUTES(a),
                                    .activation = c->activation.kind,
                                    .alpha = c->activation.alpha,
                                    .beta = c->activation.beta,
                                    .constant_weight = c->constant,
                                    .out = c->out};
    return proa__instr_become(to, proa_find_op("conv2d_fused"), &fused);
}

static proa_status write_linear(const chain *c, proa_instr *to)
{
    proa_linear_fused_args fused = {.x = c->x,
                                    .weight = c->weight,
                                    .bias = c->bias,
                                    .residual = c->residual,
                                    .activation = c->activation.kind,
                                    .alpha = c->activation.alpha,
                                    .beta = c->activation.beta,
                                    .constant_weight = c->constant,
                                    .out = c->out};
    return proa__instr_become(to, proa_find_op("linear_fused"), &fused);
}

/* Writes the fused op in place of the chain's last op and removes those before it. */
static proa_status write_chain(const chain *c)
{
    proa_instr *ops = c->uses->block->ops, made = {.role = ops[c->first].role, .marks = ops[c->first].marks};
    PROA_TRY(c->is_conv ? write_conv(c, &made, ops[c->first].args) : write_linear(c, &made));
    int32_t at = c->first;
    while (at != c->last) {
        int32_t next =
            proa__only_reader(c->uses, proa__slot_var(*proa__out_slot(ops[at].op, ops[at].args, 0, NULL)));
        proa__instr_clear(&ops[at]);
        at = next;
    }
    proa__instr_clear(&ops[at]);
    ops[at] = made;
    return PROA_OK;
}

static proa_status rewrite(proa__uses *u, int32_t at, const proa__pass_context *context)
{
    chain c;
    if (!begins(u, at, &c)) return PROA_OK;
    c.constant = context->frozen && proa__constant_of(u, c.weight);
    follow(&c);
    PROA_TRY(proa_error());
    return c.last != c.first || c.constant ? write_chain(&c) : PROA_OK;
}

proa_status proa__pass_epilogue_fusion(proa_block *b, const proa__pass_context *context)
{
    return proa__rewrite_ops(b, context, rewrite);
}
