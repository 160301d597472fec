/* INT8 pass for embeddings: a lookup in a quantized constant table becomes embedding_int8, which keeps the
 * integers alone and dequantizes the rows that are looked up, bit by bit as the simulation does. May use core
 * and ops. */
#include "int8.h"

#include "core/internal.h"
#include "impl/embedding.h"
#include "impl/int8.h"
#include "impl/shape.h"

/* The grid of a table with one scale, or one a row; NULL: it has none. */
static const grid *table_grid(const int8_pass *p, const proa_tensor *slot)
{
    const grid *g = proa__int8_grid_of(p, slot);
    if (!g || g->kind != GRID_WEIGHT || g->integers || !g->weight_largest || g->weight->ndim != 2)
        return NULL;
    bool by_row = g->axis == 0 && g->weight_largest->numel == g->weight->shape[0];
    return by_row || g->weight_largest->numel == 1 ? g : NULL;
}

proa_status proa__int8_embedding(int8_pass *p, int32_t at)
{
    proa_instr *instr = &p->block->ops[at];
    if (!proa__is_op(instr, "embedding") || !proa__int8_is_asked(p, instr)) return PROA_OK;
    const proa_embedding_args *a = instr->args;
    const grid *g = table_grid(p, a->weight);
    if (!g || !proa__int8_is_result(p, a->out)) return PROA_OK;
    proa_tensor *largest = proa_reshape(g->weight_largest, PROA_SHAPE(-1));
    proa_embedding_int8_args made = {.x = a->x,
                                     .weight = proa__new_constant(p->block, g->weight),
                                     .padding_idx = a->padding_idx,
                                     .out = a->out};
    made.scale = largest && made.weight ? proa__new_constant(p->block, largest) : NULL;
    if (!made.scale) return proa_error();
    p->n_products++;
    return proa__instr_become(instr, proa_find_op("embedding_int8"), &made);
}
