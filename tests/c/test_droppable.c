/* Outputs that nothing reads: a program's recurrent networks do without what they save for a gradient, and
 * compute the bits that they compute otherwise. */
#include "lists.h"
#include "suite.h"

#include <proa.h>

#include <string.h>

typedef struct network {
    proa_rnn_mode mode;
    int64_t gates, layers, directions, steps, batch, hidden;
    bool uneven; /* sequences of several lengths */
} network;

enum { INPUT = 24, MAX_MATRICES = 24 };

typedef struct parts {
    const network *n;
    proa_tensor *lengths;
    proa_tensors state, weights;
} parts;

static proa_tensors forward(proa_tensors in, void *context)
{
    const parts *p = context;
    proa_rnn_result r = proa_rnn(in.at[0], p->state, p->weights, p->lengths, .mode = p->n->mode,
                                 .num_layers = p->n->layers, .is_bidirec = p->n->directions == 2);
    proa_tensors out = {1 + r.state.count, proa_scope_alloc(3 * sizeof *out.at)};
    out.at[0] = r.out;
    for (int64_t i = 0; i < r.state.count; i++) out.at[1 + i] = r.state.at[i];
    return out;
}

static parts make_parts(const network *n)
{
    int64_t each = n->layers * n->directions, rows = n->gates * n->hidden;
    parts p = {n, proa_none, {n->gates == 4 ? 2 : 1, NULL}, {4 * each, NULL}};
    p.state.at = proa_scope_alloc(2 * sizeof(proa_tensor *));
    p.weights.at = proa_scope_alloc((size_t)(4 * each) * sizeof(proa_tensor *));
    for (int64_t i = 0; i < p.state.count; i++)
        p.state.at[i] = ramp(PROA_SHAPE(each, n->batch, n->hidden), (int)i);
    for (int64_t i = 0; i < 2 * each; i++) {
        int64_t width = i % 2 ? n->hidden : i / 2 < n->directions ? INPUT : n->hidden * n->directions;
        p.weights.at[i] = proa_scale(ramp(PROA_SHAPE(rows, width), (int)i), .scale = PROA_SCALAR(0.1));
        p.weights.at[2 * each + i] = ramp(PROA_SHAPE(rows), (int)i);
    }
    if (n->uneven) {
        p.lengths = proa_zeros(PROA_SHAPE(n->batch), PROA_I64);
        for (int64_t i = 0; i < n->batch; i++) ((int64_t *)proa_data(p.lengths))[i] = n->steps - i;
    }
    return p;
}

static void check(const network *n)
{
    PROA_SCOPED;
    parts p = make_parts(n);
    proa_tensor *x = ramp(PROA_SHAPE(n->steps, n->batch, INPUT), 5);
    proa_tensors want = forward(one(x), &p);
    ck_assert_int_eq(proa_error(), PROA_OK);
    proa_input_spec spec = {"x", PROA_SHAPE(n->steps, n->batch, INPUT), PROA_F32};
    proa_program *program = proa_capture(forward, &spec, 1, &p);
    ck_assert_msg(program != NULL, "%s", proa_error_message());
    proa_executor *e = proa_executor_new(program);
    proa_memory_reset_peak();
    int64_t before = proa_memory_get_stats().live_bytes;
    proa_tensors have = proa_executor_run(e, one(x));
    ck_assert_msg(have.count == want.count, "%s", proa_error_message());
    int64_t peak = proa_memory_get_stats().peak_bytes - before;
    for (int64_t i = 0; i < want.count; i++)
        ck_assert(memcmp(proa_data(have.at[i]), proa_data(want.at[i]), (size_t)proa_numel(want.at[i]) * 4) ==
                  0);
    int64_t rows = n->steps * n->batch * n->directions;
    int64_t reserve = rows * (n->layers * (n->gates + 1) + n->layers - 1) * n->hidden * 4; /* at least */
    if (reserve > (32 << 20)) ck_assert_int_lt(peak, reserve / 2);
    proa_executor_free(e);
    proa_program_free(program);
    ck_assert_int_eq(proa_error(), PROA_OK);
}

START_TEST(recurrent_networks_of_all_kinds)
{
    static const network all[] = {
        {PROA_RNN_MODE_LSTM, 4, 3, 2, 7, 3, 20, true},     {PROA_RNN_MODE_GRU, 3, 2, 2, 7, 3, 20, true},
        {PROA_RNN_MODE_RNN_TANH, 1, 3, 1, 7, 3, 20, true}, {PROA_RNN_MODE_RNN_RELU, 1, 1, 2, 7, 3, 20, false},
        {PROA_RNN_MODE_LSTM, 4, 1, 1, 9, 1, 33, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(&all[i]);
}
END_TEST

/* Gates of these are computed in parts. */
START_TEST(long_sequences)
{
    static const network all[] = {
        {PROA_RNN_MODE_LSTM, 4, 2, 1, 301, 16, 160, true},
        {PROA_RNN_MODE_GRU, 3, 4, 2, 211, 12, 160, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(&all[i]);
}
END_TEST

SUITE("outputs that nothing reads", recurrent_networks_of_all_kinds, long_sequences)
