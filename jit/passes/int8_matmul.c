/* INT8 products of activations, as in attention: a matmul whose two operands are quantized activations
 * (integers times a step) becomes matmul_int8, with a positive factor behind it folded into its scale. May
 * use core and ops. */
#include "int8.h"

#include "core/internal.h"
#include "impl/elementwise.h"
#include "impl/int8.h"
#include "impl/matmul.h"

/* The positive number by which the op multiplies; 0 if it does anything else. */
static double number_of(const proa_scale_args *a)
{
    double v = a->scale.kind == PROA_SCALAR_FLOAT ? a->scale.f
               : a->scale.kind == PROA_SCALAR_INT ? (double)a->scale.i
                                                  : 0;
    return a->bias == 0 && v > 0 ? v : 0;
}

/* The args of the op that multiplies the product by a number, if it alone reads the product. */
static const proa_scale_args *factor_behind(const int8_pass *p, const proa_tensor *product, int32_t *at)
{
    *at = proa__only_reader(&p->uses, proa__slot_var(product));
    const proa_instr *instr = *at == PROA__NOBODY ? NULL : &p->block->ops[*at];
    if (!instr || !instr->args || !proa__is_op(instr, "scale")) return NULL;
    const proa_scale_args *a = instr->args;
    return number_of(a) > 0 && proa__int8_is_result(p, a->out) ? a : NULL;
}

proa_status proa__int8_matmul(int8_pass *p, int32_t at)
{
    proa_instr *instr = &p->block->ops[at];
    if (!instr->args || !proa__is_op(instr, "matmul") || !proa__int8_is_asked(p, instr)) return PROA_OK;
    const proa_matmul_args *a = instr->args;
    if (a->x->ndim < 2 || a->y->ndim < 2 || !proa__int8_is_result(p, a->out)) return PROA_OK;
    const grid *x = proa__int8_activation(p, a->x), *y = proa__int8_activation(p, a->y);
    if (!x || !y) return PROA_OK;
    proa_matmul_int8_args made = {.transpose_x = a->transpose_x,
                                  .transpose_y = a->transpose_y,
                                  .scale = x->largest * y->largest / ((double)INT8_RANGE * INT8_RANGE),
                                  .high = INT8_RANGE,
                                  .dtype = PROA_F32,
                                  .out = a->out};
    made.x = proa__int8_operand(p, x), made.y = proa__int8_operand(p, y);
    if (!made.x || !made.y) return proa_error();
    int32_t behind;
    const proa_scale_args *factor = factor_behind(p, a->out, &behind);
    if (factor) {
        made.scale *= number_of(factor);
        made.out = factor->out;
    }
    p->n_products++;
    PROA_TRY(proa__instr_become(instr, proa_find_op("matmul_int8"), &made));
    if (factor) proa__instr_clear(&p->block->ops[behind]);
    return PROA_OK;
}
