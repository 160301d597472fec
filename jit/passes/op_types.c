/* Compares Paddle's op types with ops of the table, by the table's wire forms. May use core and ops. */
#include "op_types.h"

#include <proa/wire.h>

/* Types of Paddle's fused ops, which no wire form of the parts names. */
static const struct {
    const char *type, *op;
} fused[] = {{"fused_conv2d", "conv2d"},       {"fc", "matmul"},       {"fused_matmul", "matmul"},
             {"fused_transpose", "transpose"}, {"fusion_lstm", "rnn"}, {"fusion_gru", "rnn"}};

bool proa__op_type_is(const char *type, const char *name)
{
    const proa_op *op = proa_find_op(name);
    if (strcmp(type, name) == 0) return true;
    for (int i = 0; op && i < op->n_wires; i++)
        if (strcmp(op->wires[i].type, type) == 0) return true;
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++)
        if (strcmp(fused[i].type, type) == 0 && strcmp(fused[i].op, name) == 0) return true;
    return false;
}

bool proa__op_types_include(const proa__op_types *types, const char *op)
{
    for (int64_t i = 0; i < types->count; i++)
        if (proa__op_type_is(types->at[i], op)) return true;
    return types->count == 0;
}
