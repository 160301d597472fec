/* Lowering of recurrent layers. ONNX has one op a layer, with its gates in another order. May use core,
 * ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/rnn.h"
#include "ops/ints.h"

/* ONNX's op, and the number of Paddle's gate for each of its gates: LSTM i, o, f, c of i, f, g, o; GRU z,
 * r, h of r, z, c. */
typedef struct cell {
    const char *type, *activation;
    int gates, from[4];
} cell;

static const cell cells[] = {
    [PROA_RNN_MODE_LSTM] = {"LSTM", NULL, 4, {0, 3, 1, 2}},
    [PROA_RNN_MODE_GRU] = {"GRU", NULL, 3, {1, 0, 2}},
    [PROA_RNN_MODE_RNN_TANH] = {"RNN", "Tanh", 1, {0}},
    [PROA_RNN_MODE_RNN_RELU] = {"RNN", "Relu", 1, {0}},
};

/* The rows of a weight, or elements of a bias, by gates in ONNX's order. */
static onnx_value *reordered(onnx_graph *g, const cell *c, const proa_tensor *t)
{
    onnx_value *parts[4], *ordered[4], *x = onnx_in(g, t);
    int64_t sizes[4];
    for (int i = 0; i < c->gates; i++) sizes[i] = t->shape[0] / c->gates;
    onnx_split(g, x, 0, c->gates, sizes, parts);
    for (int i = 0; i < c->gates; i++) ordered[i] = parts[c->from[i]];
    return onnx_concat(g, c->gates, ordered, 0);
}

/* The values of all directions of a layer, stacked: [directions, …]. */
static onnx_value *stacked(onnx_graph *g, onnx_value *const *parts, int64_t n)
{
    const int64_t first = 0;
    onnx_value *each[2];
    for (int64_t i = 0; i < n; i++) each[i] = onnx_unsqueeze(g, parts[i], 1, &first);
    return onnx_concat(g, n, each, 0);
}

/* One layer; final[0] and, of an LSTM, final[1] are its last states. */
static onnx_value *layer(onnx_graph *g, const proa_rnn_args *a, onnx_value *x, int64_t number,
                         int64_t directions, onnx_value *const *states, onnx_value **final)
{
    const cell *c = &cells[a->mode];
    const bool lstm = a->mode == PROA_RNN_MODE_LSTM;
    const int64_t biases = 2 * a->num_layers * directions, merge[] = {0, 2, 1, 3};
    const char *activations[] = {c->activation, c->activation};
    proa_tensor *const *w = a->weight_list.at;
    onnx_value *input[2], *hidden[2], *bias[2], *start[2] = {NULL};
    for (int64_t d = 0; d < directions; d++) {
        int64_t k = 2 * (number * directions + d);
        input[d] = reordered(g, c, w[k]);
        hidden[d] = reordered(g, c, w[k + 1]);
        onnx_value *both[] = {reordered(g, c, w[biases + k]), reordered(g, c, w[biases + k + 1])};
        bias[d] = onnx_concat(g, 2, both, 0);
    }
    for (int64_t i = 0; i < a->pre_state.count; i++)
        start[i] = a->num_layers == 1
                       ? states[i]
                       : onnx_slice_one(g, states[i], 0, number * directions, (number + 1) * directions);
    onnx_value *lengths =
        proa__is_given(a->sequence_length) ? onnx_cast(g, onnx_in(g, a->sequence_length), PROA_I32) : NULL;
    onnx_value *y = ONNX_NODE(g, c->type, x, stacked(g, input, directions), stacked(g, hidden, directions),
                              stacked(g, bias, directions), lengths, start[0], lstm ? start[1] : NULL);
    onnx_put_int(g, y, "hidden_size", w[1]->shape[1]);
    if (directions == 2) onnx_put_text(g, y, "direction", "bidirectional");
    if (a->mode == PROA_RNN_MODE_GRU) onnx_put_int(g, y, "linear_before_reset", 1);
    if (c->activation) onnx_put_texts(g, y, "activations", directions, activations);
    if (!y) return NULL;
    final[0] = onnx_also(g, y, y->dtype);
    if (lstm) final[1] = onnx_also(g, y, y->dtype);
    return ONNX_RESHAPE(g, onnx_transpose(g, y, 4, merge), 0, 0, -1); /* [T, D, B, H] → [T, B, D·H] */
}

ONNX_LOWER(lower_rnn, rnn)
{
    const int64_t directions = a->is_bidirec ? 2 : 1, layers = a->num_layers;
    onnx_value *x = onnx_in(g, a->input), *states[2] = {NULL}, *final[2] = {NULL};
    onnx_value **ends[2] = {onnx_alloc(g, (size_t)layers, sizeof *ends[0]),
                            onnx_alloc(g, (size_t)layers, sizeof *ends[1])};
    if (!ends[0] || !ends[1]) return;
    for (int64_t i = 0; i < a->pre_state.count && i < 2; i++) states[i] = onnx_in(g, a->pre_state.at[i]);
    for (int64_t k = 0; k < layers; k++) {
        x = layer(g, a, x, k, directions, states, final);
        for (int64_t i = 0; i < a->state.count && i < 2; i++) ends[i][k] = final[i];
    }
    if (proa_error() != PROA_OK) return;
    onnx_bind(g, a->out, x);
    for (int64_t i = 0; i < a->state.count && i < 2; i++)
        onnx_bind(g, a->state.at[i], onnx_concat(g, layers, ends[i], 0));
}

const onnx_rule onnx_rules_recurrent[] = {
    {"rnn", lower_rnn, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_recurrent; /* C wants a declaration in every file */
#endif
