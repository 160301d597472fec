/* Fused operators on sequences, as inference passes of Paddle write them, and encodings of positions in
 * sequences. May use public ops and proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/elementwise.h"
#include "impl/embedding.h"
#include "impl/lod.h"
#include "impl/matmul.h"
#include "impl/reduce.h"
#include "impl/shape.h"

#include <math.h>
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

/* The sums of the table's rows that each sequence names; a row of several ids gives their table rows side by
 * side. */
proa_status fused_embedding_seq_pool_read(proa_wire_reader *r)
{
    proa_tensor *ids = proa_wire_input(r, "Ids"), *table = proa_wire_input(r, "W"),
                *offsets = proa_wire_input(r, "Ids@LOD");
    const char *combiner = proa_wire_string(r, "combiner", "sum");
    if (!ids || !table || !offsets || !combiner) return proa_error();
    if (proa__absent(offsets)) return missing("Ids");
    if (strcmp(combiner, "sum") != 0)
        return proa_fail(PROA_ERR_UNSUPPORTED, "combiner is %s, expected sum", combiner);
    bool known = ids->ndim == 2 && ids->shape[1] > 0 && ids->shape[1] <= INT32_MAX && table->ndim == 2 &&
                 table->shape[1] > 0 && table->shape[1] <= INT32_MAX;
    if (!known)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "Ids is %s and W %s; expected matrices of known widths",
                         proa__tensor_text(ids), proa__tensor_text(table));
    int64_t padding = proa_wire_int(r, "padding_idx", -1);
    proa_tensor *rows = proa_embedding(ids, table, .padding_idx = padding ? padding : (int64_t)PROA_ZERO,
                                       .sparse = proa_wire_int(r, "is_sparse", 0) != 0);
    rows = proa_reshape(rows, PROA_INTS(-1, ids->shape[1] * table->shape[1]));
    return proa_wire_result(
        r, "Out",
        proa_sequence_pool(rows, offsets, .pooltype = PROA_SEQUENCE_POOL_TYPE_SUM, .is_test = true).out);
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

proa_tensor *proa__activated(proa_tensor *x, const char *attr, const char *name)
{
    if (!name || !strcmp(name, "identity")) return x;
    if (!strcmp(name, "relu")) return proa_relu(x);
    if (!strcmp(name, "tanh")) return proa_tanh(x);
    if (!strcmp(name, "sigmoid")) return proa_sigmoid(x);
    proa_fail(PROA_ERR_UNSUPPORTED, "%s is %s, expected identity, relu, tanh or sigmoid", attr, name);
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
    const char *activation = proa_wire_string(r, "fc_activation", "identity");
    return proa_wire_result(r, "Out", proa__activated(made, "fc_activation", activation));
}

/* The position of each row in its sequence, float64: [rows, 1] of sequences, else [N, length, 1]. */
static proa_tensor *positions(proa_tensor *x, proa_tensor *offsets)
{
    int axis = x->ndim - 2;
    proa_tensor *ones = proa_full_like(proa__part(x, x->ndim - 1, 0, 1), PROA_SCALAR(1), .dtype = PROA_F64);
    proa_tensor *rows = proa_cumsum(ones, .axis = PROA_SCALAR(axis), .exclusive = true);
    if (proa__absent(offsets)) return rows;
    proa_tensor *starts = proa_cast(proa__part(offsets, 0, 0, -1), PROA_F64);
    return proa_subtract(rows, proa_sequence_expand_as(proa_unsqueeze(starts, PROA_INTS(1)), x, offsets));
}

/* alpha · x + beta · (sines and cosines of the position, at frequencies that fall from 1 to 1/10000). */
proa_status add_position_encoding_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *offsets = proa_wire_input(r, "X@LOD");
    if (!x) return proa_error();
    bool dense = proa__absent(offsets);
    int64_t width = x->ndim ? x->shape[x->ndim - 1] : 0, half = width / 2;
    if (x->ndim != (dense ? 3 : 2) || half < 1 || width % 2)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "add_position_encoding: X is %s; expected [N, length, width] or sequences of rows of an "
            "even width",
            proa__tensor_text(x));
    proa_tensor *k = proa_arange(PROA_SCALAR(0), PROA_SCALAR(half), PROA_SCALAR(1), .dtype = PROA_F64);
    double fall = half > 1 ? 1.0 / (double)(half - 1) : 0, first = half > 1 ? 0 : 1;
    proa_tensor *frequencies = proa_exp(proa__times(proa__times(k, fall, first), -log(10000.0), 0));
    proa_tensor *angles = proa_multiply(positions(x, offsets), frequencies);
    proa_tensor *waves = proa_concat(PROA_LIST(proa_sin(angles), proa_cos(angles)), .axis = x->ndim - 1);
    waves = proa__times(proa_cast(waves, (proa_dtype)x->dtype), proa_wire_float(r, "beta", 1), 0);
    return proa_wire_result(r, "Out", proa_add(proa__times(x, proa_wire_float(r, "alpha", 1), 0), waves));
}
