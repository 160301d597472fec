/* Sums and means of integers: an addition of two quantized activations (integers times a step) of one shape,
 * with a ReLU that follows it, becomes add_int8, and mean pooling of such a value avg_pool2d_int8. May use
 * core and ops. */
#include "int8.h"

#include "core/internal.h"
#include "impl/elementwise.h"
#include "impl/int8.h"
#include "impl/pool.h"

static double step_of(const grid *g) { return g->largest / INT8_RANGE; }

/* The result of the ReLU that alone reads t, and its index; NULL: there is none. */
static proa_tensor *relu_behind(const int8_pass *p, const proa_tensor *t, int32_t *at)
{
    *at = proa__only_reader(&p->uses, proa__slot_var(t));
    const proa_instr *instr = *at == PROA__NOBODY ? NULL : &p->block->ops[*at];
    if (!instr || !proa__is_op(instr, "relu")) return NULL;
    proa_tensor *out = ((const proa_relu_args *)instr->args)->out;
    return proa__int8_is_result(p, out) ? out : NULL;
}

static proa_status add(int8_pass *p, proa_instr *instr)
{
    const proa_add_args *a = instr->args;
    const grid *x = proa__int8_activation(p, a->x), *y = proa__int8_activation(p, a->y);
    if (!x || !y || !proa__int8_is_result(p, a->out) || !proa__same_shape(a->x, a->out) ||
        !proa__same_shape(a->y, a->out))
        return PROA_OK;
    int32_t behind;
    proa_tensor *positive = relu_behind(p, a->out, &behind);
    proa_add_int8_args made = {.scale_x = step_of(x),
                               .scale_y = step_of(y),
                               .relu = positive,
                               .high = INT8_RANGE,
                               .dtype = PROA_F32,
                               .out = positive ? positive : a->out};
    made.x = proa__int8_operand(p, x), made.y = proa__int8_operand(p, y);
    if (!made.x || !made.y) return proa_error();
    p->n_products++;
    PROA_TRY(proa__instr_become(instr, proa_find_op("add_int8"), &made));
    if (positive) proa__instr_clear(&p->block->ops[behind]);
    return PROA_OK;
}

static proa_status pool(int8_pass *p, proa_instr *instr, proa_avg_pool2d_int8_args made)
{
    const grid *x = proa__int8_activation(p, made.x);
    if (!x || !proa__int8_is_result(p, made.out)) return PROA_OK;
    made.x = proa__int8_operand(p, x);
    if (!made.x) return proa_error();
    made.scale = step_of(x);
    made.high = INT8_RANGE;
    made.dtype = PROA_F32;
    p->n_products++;
    return proa__instr_become(instr, proa_find_op("avg_pool2d_int8"), &made);
}

proa_status proa__int8_sum(int8_pass *p, int32_t at)
{
    proa_instr *instr = &p->block->ops[at];
    if (!instr->args || !proa__op_types_include(&p->types, instr->op->name)) return PROA_OK;
    if (proa__is_op(instr, "add")) return add(p, instr);
    if (proa__is_op(instr, "avg_pool2d")) {
        const proa_avg_pool2d_args *a = instr->args;
        return pool(p, instr,
                    (proa_avg_pool2d_int8_args){.x = a->x,
                                                .kernel_size = a->kernel_size,
                                                .stride = a->stride,
                                                .padding = a->padding,
                                                .ceil_mode = a->ceil_mode,
                                                .exclusive = a->exclusive,
                                                .data_format = a->data_format,
                                                .padding_algorithm = a->padding_algorithm,
                                                .out = a->out});
    }
    if (!proa__is_op(instr, "adaptive_avg_pool2d")) return PROA_OK;
    const proa_adaptive_avg_pool2d_args *a = instr->args;
    return pool(p, instr,
                (proa_avg_pool2d_int8_args){.x = a->x,
                                            .kernel_size = a->output_size,
                                            .padding = {.count = 2, .at = (const int64_t[]){0, 0}},
                                            .adaptive = true,
                                            .data_format = a->data_format,
                                            .out = a->out});
}
