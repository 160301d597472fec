/* Fused operators on sequences, as inference passes of Paddle write them. May use public ops and
 * proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/elementwise.h"
#include "impl/lod.h"
#include "impl/matmul.h"
#include "impl/shape.h"

#include <string.h>

static proa_status missing(const char *slot)
{
    return proa_error() != PROA_OK
               ? proa_error()
               : proa_fail(PROA_ERR_UNSUPPORTED, "input %s carries no sequences (LoD) that are known here",
                           slot);
}

/* *list gets the pooled sequences of each X. */
static proa_status pooled(proa_wire_reader *r, proa_tensors *list)
{
    static const char *const names[] = {"SUM", "AVERAGE", "SQRT"};
    static const proa_sequence_pool_type types[] = {
        PROA_SEQUENCE_POOL_TYPE_SUM, PROA_SEQUENCE_POOL_TYPE_AVERAGE, PROA_SEQUENCE_POOL_TYPE_SQRT};
    const char *name = proa_wire_string(r, "pooltype", "SUM");
    size_t type = 0;
    while (name && type < 3 && strcmp(name, names[type]) != 0) type++;
    if (!name || type == 3)
        return proa_fail(PROA_ERR_UNSUPPORTED, "pooltype is %s, expected SUM, AVERAGE or SQRT",
                         name ? name : "?");
    if (proa_wire_int(r, "axis", 1) != 1) return proa_fail(PROA_ERR_UNSUPPORTED, "axis must be 1");
    *list = proa_wire_inputs(r, "X");
    proa_tensors offsets = proa_wire_inputs(r, "X@LOD");
    if (!list->count || list->count != offsets.count) return missing("X");
    for (int64_t i = 0; i < list->count; i++) {
        if (proa__absent(offsets.at[i])) return missing("X");
        list->at[i] =
            proa_sequence_pool(list->at[i], offsets.at[i], .pooltype = types[type], .is_test = true).out;
        if (!list->at[i]) return proa_error();
    }
    return PROA_OK;
}

proa_status fusion_seqpool_concat_read(proa_wire_reader *r)
{
    proa_tensors list;
    PROA_TRY(pooled(r, &list));
    return proa_wire_result(r, "Out", proa_concat(list, .axis = 1));
}

/* A row begins with numbers of views and clicks. `kept`: their logarithm and that of the click rate
 * take their place. */
static proa_tensor *show_and_click(proa_tensor *x, bool kept)
{
    proa_tensor *rest = proa__part(x, 1, 2, INT32_MAX);
    if (!kept) return rest;
    proa_tensor *show = proa_log(proa__times(proa__part(x, 1, 0, 1), 1, 1));
    proa_tensor *click = proa_log(proa__times(proa__part(x, 1, 1, 2), 1, 1));
    return proa_concat(PROA_LIST(show, proa_subtract(click, show), rest), .axis = 1);
}

proa_status fusion_seqpool_cvm_concat_read(proa_wire_reader *r)
{
    proa_tensors list;
    PROA_TRY(pooled(r, &list));
    for (int64_t i = 0; i < list.count; i++)
        if (!(list.at[i] = show_and_click(list.at[i], proa_wire_int(r, "use_cvm", 1) != 0)))
            return proa_error();
    return proa_wire_result(r, "Out", proa_concat(list, .axis = 1));
}

proa_status fusion_seqconv_eltadd_relu_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *offsets = proa_wire_input(r, "X@LOD");
    if (proa__absent(offsets)) return missing("X");
    if (proa_wire_int(r, "contextStride", 1) != 1)
        return proa_fail(PROA_ERR_UNSUPPORTED, "contextStride must be 1");
    int64_t start = proa_wire_int(r, "contextStart", 0);
    proa_tensor *made = proa_sequence_conv(x, proa_wire_input(r, "Filter"), offsets,
                                           .length = proa_wire_int(r, "contextLength", 0),
                                           .start = start ? start : (int64_t)PROA_ZERO);
    return proa_wire_result(r, "Out", proa_relu(proa_add(made, proa_wire_input(r, "Bias"))));
}

static proa_tensor *activated(proa_tensor *x, const char *name)
{
    if (!name || !strcmp(name, "identity")) return x;
    if (!strcmp(name, "relu")) return proa_relu(x);
    if (!strcmp(name, "tanh")) return proa_tanh(x);
    if (!strcmp(name, "sigmoid")) return proa_sigmoid(x);
    proa_fail(PROA_ERR_UNSUPPORTED, "fc_activation is %s, expected identity, relu, tanh or sigmoid", name);
    return NULL;
}

/* The rows of the first X are sequences. Others have a row a sequence, which is repeated for each of its
 * rows. */
proa_status fusion_seqexpand_concat_fc_read(proa_wire_reader *r)
{
    proa_tensors list = proa_wire_inputs(r, "X"), offsets = proa_wire_inputs(r, "X@LOD");
    if (!list.count || !offsets.count || proa__absent(offsets.at[0])) return missing("X");
    for (int64_t i = 1; i < list.count; i++)
        if (!(list.at[i] = proa_sequence_expand_as(list.at[i], list.at[0], offsets.at[0])))
            return proa_error();
    proa_tensor *made = proa_matmul(proa_concat(list, .axis = 1), proa_wire_input(r, "FCWeight"));
    proa_tensor *bias = proa_wire_input(r, "FCBias");
    if (!proa__absent(bias)) made = proa_add(made, bias);
    return proa_wire_result(r, "Out", activated(made, proa_wire_string(r, "fc_activation", "identity")));
}
