/* INT8 products: a convolution, linear layer or matrix product of a quantized activation with quantized
 * constant weights becomes an INT8 op with an epilogue. Its integer sums are multiplied by a factor for each
 * channel, into which dequantizers and batch norm are folded. Batch norm behind another quantized value
 * becomes affine_int8. May use core and ops. */
#include "int8.h"

#include "core/internal.h"
#include "ops/conv/geometry.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/int8.h"
#include "impl/matmul.h"
#include "impl/quantize.h"
#include "impl/shape.h"

/* A product, and the ops behind it that are absorbed so far. */
typedef struct chain {
    int8_pass *pass;
    int32_t first, last; /* indices of ops */
    const grid *x, *weight;
    proa_tensor *integers; /* of the weight, in the layout that the INT8 op takes */
    proa_tensor *bias_slot, *residual, *out;
    proa_tensor *factor, *bias; /* float64 [channels], applied to the integer sums; bias may be NULL */
    proa__activation activation;
    bool is_conv, transposed, channels_last;
    bool is_affine; /* no product: it starts with a value on a grid, which a batch norm reads */
} chain;

static proa_instr *op_at(const chain *c, int32_t at) { return &c->pass->block->ops[at]; }

static int channel_axis(const chain *c) { return c->is_conv && !c->channels_last ? 1 : c->out->ndim - 1; }

/* The axis of a weight along which its output channels are. */
static int weight_axis(const chain *c) { return c->is_conv && !c->transposed ? 0 : 1; }

static int64_t channels_of(const chain *c) { return c->integers->shape[weight_axis(c)]; }

/* Reshapes to [n] and converts to float64. */
static proa_tensor *wide(proa_tensor *t) { return proa_reshape(proa_cast(t, PROA_F64), PROA_SHAPE(-1)); }

static proa_tensor *times(proa_tensor *t, double by) { return proa_scale(t, .scale = PROA_SCALAR(by)); }

/* One factor for each of n channels, from one or n of them. */
static proa_tensor *spread(proa_tensor *t, int64_t n)
{
    return t->numel == n ? t : proa_expand(t, PROA_SHAPE(n));
}

/* ---- where a chain starts --------------------------------------------------------------------------- */

bool proa__int8_is_asked(const int8_pass *p, const proa_instr *instr)
{
    const proa__op_types *types = &p->types;
    const proa_conv2d_args *a = proa__is_op(instr, "conv2d") ? instr->args : NULL;
    bool depthwise = a && a->groups > 1 && a->weight->shape[1] == 1;
    for (int64_t i = 0; i < types->count; i++) {
        bool narrow = a && strcmp(types->at[i], "depthwise_conv2d") == 0;
        if (narrow ? depthwise : proa__op_type_is(types->at[i], instr->op->name)) return true;
    }
    return types->count == 0;
}

static bool is_product(chain *c, proa_tensor **x, proa_tensor **weight)
{
    const proa_instr *instr = op_at(c, c->first);
    if (proa__is_op(instr, "conv2d")) {
        const proa_conv2d_args *a = instr->args;
        *x = a->x, *weight = a->weight, c->bias_slot = a->bias, c->out = a->out;
        c->is_conv = true;
        c->channels_last = proa__channels_last(a->data_format);
    } else if (proa__is_op(instr, "conv2d_transpose")) {
        const proa_conv2d_transpose_args *a = instr->args;
        if (a->groups != 1) return false;
        *x = a->x, *weight = a->weight, c->bias_slot = a->bias, c->out = a->out;
        c->is_conv = c->transposed = true;
        c->channels_last = proa__channels_last(a->data_format);
    } else if (proa__is_op(instr, "linear")) {
        const proa_linear_args *a = instr->args;
        *x = a->x, *weight = a->weight, c->bias_slot = a->bias, c->out = a->out;
    } else if (proa__is_op(instr, "matmul")) {
        const proa_matmul_args *a = instr->args;
        if (a->transpose_x || a->transpose_y || a->x->ndim < 2 || a->y->ndim != 2) return false;
        *x = a->x, *weight = a->y, c->out = a->out;
    } else {
        return false;
    }
    const proa_var *out = proa__slot_var(c->out);
    return proa__use_of(&c->pass->uses, out) && !out->persistable && c->out->dtype == PROA_F32;
}

/* True for a weight that the file stores as integers, of an op whose other operand is quantized. */
static bool plain_integers(const int8_pass *p, const proa_tensor *slot, grid *to)
{
    proa_tensor *t = proa__int8_constant(p, slot);
    proa_tensor *integers = t && t->dtype == PROA_F32 ? proa__int8_integers(t) : NULL;
    if (integers) *to = (grid){.kind = GRID_WEIGHT, .integers = true, .weight = integers};
    return integers;
}

/* Computes the factor for operands that were dequantized before the product. */
static bool step_factor(chain *c)
{
    proa_tensor *largest = c->weight->weight_largest;
    int64_t n = channels_of(c);
    bool along =
        largest && (largest->numel == 1 || (largest->numel == n && c->weight->axis == weight_axis(c)));
    if (!along) return false;
    c->factor = spread(times(wide(largest), c->x->largest / ((double)INT8_RANGE * INT8_RANGE)), n);
    return true;
}

/* Absorbs the dequantizer behind a product of integers if only it reads the product; false: there is none. */
static bool take_dequantizer(chain *c)
{
    const int8_pass *p = c->pass;
    int32_t at = proa__only_reader(&p->uses, proa__slot_var(c->out));
    if (at == PROA__NOBODY || !proa__absent(c->bias_slot)) return false;
    const proa_instr *instr = op_at(c, at);
    int64_t n = channels_of(c);
    if (proa__is_op(instr, "fake_channel_wise_dequantize_max_abs")) {
        const proa_fake_channel_wise_dequantize_max_abs_args *a = instr->args;
        if (a->scales.count != 2 || proa__slot_var(a->x) != proa__slot_var(c->out)) return false;
        proa_tensor *by = proa__int8_constant(p, a->scales.at[0]),
                    *of = proa__int8_constant(p, a->scales.at[1]);
        int64_t axis = c->is_conv ? 1 : a->x_num_col_dims;
        if (!by || !of || of->numel != 1 || axis != channel_axis(c) || (by->numel != n && by->numel != 1))
            return false;
        for (int64_t i = 0; i < a->quant_bits.count; i++)
            if (a->quant_bits.at[i] != 8) return false;
        proa_tensor *step = times(proa_multiply(wide(by), wide(of)), 1 / ((double)INT8_RANGE * INT8_RANGE));
        c->factor = step ? spread(step, n) : NULL;
        c->out = a->out;
    } else if (proa__is_op(instr, "fake_dequantize_max_abs")) {
        const proa_fake_dequantize_max_abs_args *a = instr->args;
        proa_tensor *scale = proa__int8_constant(p, a->scale);
        if (!scale || scale->numel != 1 || proa__slot_var(a->x) != proa__slot_var(c->out)) return false;
        c->factor = spread(times(wide(scale), 1 / a->max_range), n);
        c->out = a->out;
    } else {
        return false;
    }
    c->last = at;
    return true;
}

static bool begins(int8_pass *p, int32_t at, chain *c, grid *plain)
{
    proa_tensor *x = NULL, *weight = NULL;
    if (!p->block->ops[at].args || !proa__int8_is_asked(p, &p->block->ops[at])) return false;
    *c = (chain){.pass = p, .first = at, .last = at, .bias_slot = proa_none, .residual = proa_none};
    if (!is_product(c, &x, &weight)) return false;
    c->x = proa__int8_grid_of(p, x);
    if (!c->x || c->x->kind != GRID_ACTIVATION) return false;
    c->weight = proa__int8_grid_of(p, weight);
    if (!c->weight && c->x->integers && plain_integers(p, weight, plain)) c->weight = plain;
    if (!c->weight || c->weight->kind != GRID_WEIGHT || c->weight->integers != c->x->integers) return false;
    c->integers = c->weight->weight;
    if (c->integers->ndim != (c->is_conv ? 4 : 2)) return false;
    if (!(c->x->integers ? take_dequantizer(c) : step_factor(c))) return false;
    if (!proa__absent(c->bias_slot)) {
        proa_tensor *bias = proa__int8_constant(p, c->bias_slot);
        if (!bias || bias->numel != channels_of(c)) return false;
        c->bias = wide(bias);
    }
    return c->factor && proa_error() == PROA_OK;
}

/* ---- what may follow ----------------------------------------------------------------------- */

/* The other operand of the op that reads the chain's result, as float64 [channels]; NULL if it is not one
 * constant per channel. */
static proa_tensor *channels_beside(const chain *c, proa_tensor *t)
{
    proa_tensor *value = proa__int8_constant(c->pass, t);
    if (!value || value->dtype != PROA_F32 || !proa__runs_along(value, c->out, channel_axis(c))) return NULL;
    return wide(value);
}

static proa_tensor *beside(const chain *c, proa_tensor *x, proa_tensor *y)
{
    return proa__slot_var(x) == proa__slot_var(c->out) ? y : x;
}

/* A value on a grid that a sum or product with one constant a channel reads, as batch norm behind a rounded
 * result. */
static bool begins_affine(int8_pass *p, int32_t at, chain *c)
{
    const proa_instr *instr = &p->block->ops[at];
    proa_tensor **slot = instr->args ? proa__out_slot(instr->op, instr->args, 0, NULL) : NULL;
    const proa_var *v = slot ? proa__slot_var(*slot) : NULL;
    const grid *g = slot ? proa__int8_grid_of(p, *slot) : NULL;
    if (!g || g->kind != GRID_ACTIVATION || g->integers || !v || v->persistable || (*slot)->ndim < 2)
        return false;
    int32_t reader = proa__only_reader(&p->uses, v);
    const proa_instr *next = reader == PROA__NOBODY ? NULL : &p->block->ops[reader];
    if (!next || (!proa__is_op(next, "add") && !proa__is_op(next, "multiply"))) return false;
    *c = (chain){.pass = p,
                 .first = at,
                 .last = at,
                 .x = g,
                 .bias_slot = proa_none,
                 .residual = proa_none,
                 .out = *slot,
                 .is_conv = (*slot)->ndim == 4,
                 .is_affine = true};
    if (!proa__op_types_include(&p->types, c->is_conv ? "conv2d" : "linear")) return false;
    const proa_add_args *a = next->args; /* multiply's operands are at the same places */
    const proa_multiply_args *m = next->args;
    proa_tensor *other = proa__is_op(next, "add") ? beside(c, a->x, a->y) : beside(c, m->x, m->y);
    c->channels_last = c->is_conv && !channels_beside(c, other);
    int64_t n = c->out->shape[channel_axis(c)];
    if (n < 0 || !channels_beside(c, other)) return false;
    c->factor = proa_full(PROA_SHAPE(n), PROA_SCALAR(g->largest / INT8_RANGE), .dtype = PROA_F64);
    return c->factor != NULL;
}

static bool take_sum(chain *c, const proa_add_args *a)
{
    proa_tensor *other = beside(c, a->x, a->y);
    if (other->dtype != PROA_F32 || !proa__same_shape(a->out, c->out) || !proa__absent(c->residual))
        return false;
    proa_tensor *bias = channels_beside(c, other);
    if (bias) {
        c->bias = c->bias ? proa_add(c->bias, bias) : bias;
        return true;
    }
    if (c->transposed || !proa__same_shape(other, c->out) || proa__slot_var(other) == proa__slot_var(c->out))
        return false;
    c->residual = other;
    return true;
}

static bool take_factor(chain *c, const proa_multiply_args *a)
{
    proa_tensor *by = proa__absent(c->residual) && proa__same_shape(a->out, c->out)
                          ? channels_beside(c, beside(c, a->x, a->y))
                          : NULL;
    if (!by) return false;
    c->factor = proa_multiply(c->factor, by);
    if (c->bias) c->bias = proa_multiply(c->bias, by);
    return true;
}

/* Absorbs the op at `at`, which reads the chain's result; false: it cannot be absorbed. */
static bool take(chain *c, int32_t at)
{
    const proa_instr *instr = op_at(c, at);
    if (proa__is_op(instr, "add")) return take_sum(c, instr->args);
    if (proa__is_op(instr, "multiply")) return take_factor(c, instr->args);
    if (c->transposed && !proa__is_op(instr, "relu")) return false;
    if (c->is_affine && !proa__is_op(instr, "relu") && !proa__is_op(instr, "relu6")) return false;
    return proa__activation_of(instr, &c->activation);
}

static bool may_move(const chain *c, int32_t to)
{
    const proa_var *residual = proa__slot_var(c->residual);
    return !residual || proa__may_move(&c->pass->uses, residual, c->first, to);
}

static void follow(chain *c)
{
    while (c->activation.kind == PROA_FUSED_ACTIVATION_NONE) {
        int32_t at = proa__only_reader(&c->pass->uses, proa__slot_var(c->out));
        if (at == PROA__NOBODY) return;
        const proa_instr *instr = op_at(c, at);
        if (!instr->args) return;
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

/* ---- writing it ---------------------------------------------------------------------------- */

/* Fields that the INT8 products share: the epilogue, and a float32 result. */
#define INT8_EPILOGUE(c)                                                                           \
    .residual = (c)->residual, .activation = (c)->activation.kind, .alpha = (c)->activation.alpha, \
    .beta = (c)->activation.beta
#define INT8_RESULT(c) .outer = 1, .high = INT8_RANGE, .dtype = PROA_F32, .out = (c)->out

static proa_tensor *constant(const chain *c, proa_tensor *t)
{
    return t ? proa__new_constant(c->pass->block, proa_cast(t, PROA_F32)) : NULL;
}

static proa_status write_affine(chain *c, proa_instr *to)
{
    proa_tensor *x = proa__int8_operand(c->pass, c->x);
    proa_affine_int8_args affine = {.x = x,
                                    .residual = c->residual,
                                    .data_format = c->is_conv && !c->channels_last ? PROA_DATA_FORMAT_NCHW
                                                                                   : PROA_DATA_FORMAT_NHWC,
                                    .activation = c->activation.kind,
                                    INT8_RESULT(c)};
    affine.scale = x ? constant(c, c->factor) : NULL;
    affine.bias = c->bias ? constant(c, c->bias) : PROA_NONE;
    if (!affine.scale || !affine.bias) return proa_error();
    return proa__instr_become(to, proa_find_op("affine_int8"), &affine);
}

static proa_status write(chain *c, proa_instr *to)
{
    if (c->is_affine) return write_affine(c, to);
    proa_tensor *x = proa__int8_operand(c->pass, c->x);
    proa_tensor *weight = x ? proa__new_constant(c->pass->block, c->integers) : NULL;
    proa_tensor *scale = weight ? constant(c, c->factor) : NULL;
    proa_tensor *bias = c->bias ? constant(c, c->bias) : PROA_NONE;
    if (!scale || !bias) return proa_error();
    if (c->transposed) {
        const proa_conv2d_transpose_args *a = op_at(c, c->first)->args;
        proa_conv2d_transpose_int8_args conv = {.x = x,
                                                .weight = weight,
                                                .scale = scale,
                                                .bias = bias,
                                                CONV_SAME_UNGROUPED(a),
                                                .output_padding = a->output_padding,
                                                .output_size = a->output_size,
                                                .activation = c->activation.kind,
                                                INT8_RESULT(c)};
        return proa__instr_become(to, proa_find_op("conv2d_transpose_int8"), &conv);
    }
    if (!c->is_conv) {
        proa_linear_int8_args linear = {
            .x = x, .weight = weight, .scale = scale, .bias = bias, INT8_EPILOGUE(c), INT8_RESULT(c)};
        return proa__instr_become(to, proa_find_op("linear_int8"), &linear);
    }
    const proa_conv2d_args *a = op_at(c, c->first)->args;
    proa_conv2d_int8_args conv = {.x = x,
                                  .weight = weight,
                                  .scale = scale,
                                  .bias = bias,
                                  CONV_SAME_ATTRIBUTES(a),
                                  INT8_EPILOGUE(c),
                                  INT8_RESULT(c)};
    return proa__instr_become(to, proa_find_op("conv2d_int8"), &conv);
}

/* Writes the INT8 op in place of the chain's last op and removes those before it. */
static proa_status write_chain(chain *c)
{
    proa_instr *ops = c->pass->block->ops, made = {.role = ops[c->first].role, .marks = ops[c->first].marks};
    PROA_TRY(write(c, &made));
    int32_t at = c->first;
    while (at != c->last) {
        int32_t next = proa__only_reader(&c->pass->uses,
                                         proa__slot_var(*proa__out_slot(ops[at].op, ops[at].args, 0, NULL)));
        proa__instr_clear(&ops[at]);
        at = next;
    }
    proa__instr_clear(&ops[at]);
    ops[at] = made;
    c->pass->n_products++;
    return PROA_OK;
}

proa_status proa__int8_product(int8_pass *p, int32_t at)
{
    chain c;
    grid plain;
    if (!begins(p, at, &c, &plain) && (proa_error() || !begins_affine(p, at, &c))) return proa_error();
    follow(&c);
    PROA_TRY(proa_error());
    return c.is_affine && c.last == c.first ? PROA_OK : write_chain(&c);
}
