/* Lowerings of sorting and searching. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/sort.h"
#include "ops/ints.h"

/* The k greatest or smallest along an axis, in order. Before opset 11 TopK finds the greatest only, so
 * smallest ones are found among the negatives. */
static void top(onnx_graph *g, const proa_tensor *t, onnx_value *k, int64_t number, int64_t axis,
                bool largest, onnx_value **values, onnx_value **places)
{
    onnx_value *x = onnx_operand(g, onnx_in(g, t), 11);
    bool turned = !largest && !onnx_from(g, 11);
    *values = *places = NULL;
    if (number < 0 && onnx_needs(g, 10)) return;
    if (turned) x = ONNX_NODE(g, "Neg", x);
    onnx_value *y = ONNX_NODE(g, "TopK", x, !onnx_from(g, 10) ? NULL : k ? k : onnx_int(g, number));
    if (!onnx_from(g, 10)) onnx_put_int(g, y, "k", number);
    onnx_put_int(g, y, "axis", onnx_axis(axis, t->ndim));
    if (onnx_from(g, 11)) onnx_put_int(g, y, "largest", largest);
    *places = onnx_also(g, y, PROA_I64);
    *values = turned ? ONNX_NODE(g, "Neg", y) : y;
}

/* All elements along an axis, in order. */
static void sorted(onnx_graph *g, const proa_tensor *t, int64_t axis, bool descending, onnx_value **values,
                   onnx_value **places)
{
    int64_t number = t->ndim ? t->shape[onnx_axis(axis, t->ndim)] : 1;
    *values = onnx_in(g, t);
    *places = t->ndim ? NULL : onnx_whole(g, PROA_I64, 0);
    if (t->ndim == 0) return; /* one element */
    onnx_value *k = number < 0 ? onnx_dim(g, t, *values, (int)onnx_axis(axis, t->ndim)) : NULL;
    top(g, t, k, number, axis, descending, values, places);
}

ONNX_LOWER(lower_sort, sort)
{
    onnx_value *values, *places;
    sorted(g, a->x, a->axis, a->descending, &values, &places);
    onnx_bind(g, a->out, values);
    onnx_bind(g, a->indices, places);
}

ONNX_LOWER(lower_argsort, argsort)
{
    onnx_value *values, *places;
    sorted(g, a->x, a->axis, a->descending, &values, &places);
    onnx_bind(g, a->out, places);
}

ONNX_LOWER(lower_topk, topk)
{
    onnx_value *values, *places, *k = NULL;
    int64_t number = a->k;
    if (proa__is_given(a->k_tensor.tensor) && onnx_known(g, &a->k_tensor, &number, 1) != 1) {
        k = onnx_list_value(g, &a->k_tensor);
        number = -1;
    }
    top(g, a->x, k, number, a->axis, a->largest, &values, &places);
    onnx_bind(g, a->out, values);
    onnx_bind(g, a->indices, places);
}

ONNX_LOWER(lower_kthvalue, kthvalue)
{
    onnx_value *values, *places;
    const int64_t axis = onnx_axis(a->axis, a->x->ndim);
    top(g, a->x, NULL, a->k, axis, false, &values, &places);
    onnx_value *last = a->keepdim ? onnx_int(g, a->k - 1) : onnx_whole(g, PROA_I64, a->k - 1);
    onnx_bind(g, a->out, onnx_gather(g, values, last, axis));
    onnx_bind(g, a->indices, onnx_gather(g, places, last, axis));
}

/* The number of elements of the sorted sequence before each value: each pair is compared. */
ONNX_LOWER(lower_searchsorted, searchsorted)
{
    const int64_t last = a->values->ndim, before = a->sorted_sequence->ndim - 1;
    onnx_value *sequence = onnx_operand(g, onnx_in(g, a->sorted_sequence), 9);
    onnx_value *values = onnx_operand(g, onnx_unsqueeze(g, onnx_in(g, a->values), 1, &last), 9);
    if (!sequence || !values) return;
    if (before > 0) sequence = onnx_unsqueeze(g, sequence, 1, &before);
    values = onnx_cast(g, values, sequence->dtype);
    onnx_value *counted = a->right ? onnx_not(g, onnx_test(g, "Greater", sequence, values))
                                   : onnx_test(g, "Less", sequence, values);
    onnx_bind(g, a->out, onnx_reduce(g, "ReduceSum", onnx_cast(g, counted, PROA_I64), 1, &last, false));
}

const onnx_rule onnx_rules_sort[] = {
    {"sort", lower_sort, NULL, 0, 0},
    {"argsort", lower_argsort, NULL, 0, 0},
    {"topk", lower_topk, NULL, 0, 0},
    {"kthvalue", lower_kthvalue, NULL, 0, 0},
    {"searchsorted", lower_searchsorted, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_sort; /* C wants a declaration in every file */
#endif
