/* rnn and rnn_grad in Paddle's programs: sizes are attributes there, is_test is the opposite of training, and
 * gradients that did not come are written as zeros. May use core, proa/wire.h and public ops. */
#include "rnn.h"

#include "ops/wire_util.h"

#include <proa/wire.h>

static proa_rnn_mode read_mode(proa_wire_reader *r)
{
    static const char *const names[] = {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"};
    const char *name = proa_wire_string(r, "mode", "RNN_TANH");
    for (int i = 0; name && i < 4; i++)
        if (strcmp(name, names[i]) == 0) return (proa_rnn_mode)i;
    proa_fail(PROA_ERR_CORRUPT, "rnn: mode: is \"%s\"; expected LSTM, GRU, RNN_TANH or RNN_RELU",
              name ? name : "");
    return PROA_RNN_MODE_LSTM;
}

proa_status rnn_read(proa_wire_reader *r)
{
    proa_tensor *input = proa_wire_input(r, "Input"), *lengths = proa_wire_input(r, "SequenceLength");
    proa_tensors state = proa_wire_inputs(r, "PreState"), weights = proa_wire_inputs(r, "WeightList");
    proa_rnn_mode mode = read_mode(r);
    if (!input || !lengths || proa_error()) return proa_error();
    proa_rnn_result y = proa_rnn(input, state, weights, lengths, .mode = mode,
                                 .num_layers = proa_wire_int(r, "num_layers", 1),
                                 .is_bidirec = proa_wire_int(r, "is_bidirec", 0) != 0,
                                 .dropout_prob = proa_wire_float(r, "dropout_prob", 0),
                                 .no_training = proa_wire_int(r, "is_test", 0) != 0);
    PROA_TRY(proa_error());
    PROA_TRY(proa_wire_result(r, "Out", y.out));
    PROA_TRY(proa_wire_results(r, "State", y.state));
    if (y.dropout_state && !proa__absent(y.dropout_state))
        PROA_TRY(proa_wire_result(r, "DropoutState", y.dropout_state));
    return proa_wire_result(r, "Reserve", y.reserve);
}

proa_status rnn_grad_read(proa_wire_reader *r)
{
    proa_tensor *input = proa_wire_input(r, "Input"), *lengths = proa_wire_input(r, "SequenceLength");
    proa_tensor *dropout = proa_wire_input(r, "DropoutState"), *out = proa_wire_input(r, "Out");
    proa_tensor *reserve = proa_wire_input(r, "Reserve"), *d_out = proa_wire_input(r, "Out@GRAD");
    proa_tensors state = proa_wire_inputs(r, "PreState"), weights = proa_wire_inputs(r, "WeightList");
    proa_rnn_mode mode = read_mode(r);
    if (proa_error()) return proa_error();
    bool training = proa_wire_int(r, "is_test", 0) == 0;
    double p = training ? proa_wire_float(r, "dropout_prob", 0) : 0;
    proa_rnn_grad_result d = proa_rnn_grad(
        input, state, weights, lengths, p > 0 ? dropout : PROA_NONE, out, reserve, d_out,
        proa_wire_inputs(r, "State@GRAD"), .mode = mode, .num_layers = proa_wire_int(r, "num_layers", 1),
        .is_bidirec = proa_wire_int(r, "is_bidirec", 0) != 0, .dropout_prob = p);
    PROA_TRY(proa_error());
    PROA_TRY(proa_wire_result(r, "Input@GRAD", d.d_input));
    PROA_TRY(proa_wire_results(r, "PreState@GRAD", d.d_pre_state));
    return proa_wire_results(r, "WeightList@GRAD", d.d_weight_list);
}

static proa_status put_list(proa_wire_writer *w, const char *slot, proa_tensors list, bool output)
{
    for (int64_t i = 0; i < list.count; i++) {
        if (proa__absent(list.at[i])) continue;
        PROA_TRY(output ? proa_wire_put_output(w, slot, list.at[i])
                        : proa_wire_put_input(w, slot, list.at[i]));
    }
    return PROA_OK;
}

static proa_status put_inputs(proa_wire_writer *w, proa_tensor *input, proa_tensors state,
                              proa_tensors weights, proa_tensor *lengths)
{
    PROA_TRY(proa_wire_put_input(w, "Input", input));
    PROA_TRY(put_list(w, "PreState", state, false));
    PROA_TRY(put_list(w, "WeightList", weights, false));
    return proa_wire_put_input(w, "SequenceLength",
                               lengths); /* Paddle's gradient wants the slot even if empty */
}

static proa_status put_attributes(proa_wire_writer *w, const rnn_sizes *s, proa_rnn_mode mode, double p,
                                  bool is_test)
{
    static const char *const names[] = {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"};
    PROA_TRY(proa_wire_put_float(w, "dropout_prob", p));
    PROA_TRY(proa_wire_put_int(w, "is_bidirec", PROA_WIRE_BOOLEAN, s->directions == 2));
    PROA_TRY(proa_wire_put_int(w, "input_size", PROA_WIRE_INT, s->input));
    PROA_TRY(proa_wire_put_int(w, "hidden_size", PROA_WIRE_INT, s->hidden));
    PROA_TRY(proa_wire_put_int(w, "num_layers", PROA_WIRE_INT, s->layers));
    PROA_TRY(proa_wire_put_string(w, "mode", names[mode]));
    PROA_TRY(proa_wire_put_int(w, "seed", PROA_WIRE_INT, 0));
    return proa_wire_put_int(w, "is_test", PROA_WIRE_BOOLEAN, is_test);
}

/* Paddle asks for a DropoutState even where none is made. */
static proa_status put_dropout_state(proa_wire_writer *w, proa_tensor *mask)
{
    if (!mask || proa__absent(mask)) {
        proa_meta meta = {.dtype = PROA_U8, .ndim = 1, .shape = {0}};
        mask = proa_wire_temporary(w, &meta);
        if (!mask) return proa_error();
    }
    return proa_wire_put_output(w, "DropoutState", mask);
}

proa_status rnn_write(const void *args, proa_wire_writer *w)
{
    const proa_rnn_args *a = args;
    rnn_sizes s =
        rnn_measure(a->input, a->pre_state.at[0], a->weight_list, a->mode, a->num_layers, a->is_bidirec);
    s.input = a->weight_list.at[0]->shape[1]; /* known even where the input's is not */
    PROA_TRY(proa_wire_op(w, "rnn"));
    PROA_TRY(put_inputs(w, a->input, a->pre_state, a->weight_list, a->sequence_length));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(put_list(w, "State", a->state, true));
    PROA_TRY(proa_wire_put_output(w, "Reserve", a->reserve));
    PROA_TRY(put_dropout_state(w, a->dropout_state));
    return put_attributes(w, &s, a->mode, a->dropout_prob, !a->training);
}

/* Paddle asks for all gradients: where there is none, zeros of the shape of `like`. */
static proa_tensor *or_zeros(proa_wire_writer *w, proa_tensor *grad, proa_tensor *like)
{
    return grad && !proa__absent(grad) ? grad : proa__wire_filled_like(w, like, (proa_dtype)like->dtype, 0);
}

proa_status rnn_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_rnn_grad_args *a = args;
    proa_tensor *d_out = or_zeros(w, a->d_out, a->out);
    proa_tensors d_state = {0, proa_scope_alloc((size_t)a->pre_state.count * sizeof(proa_tensor *))};
    if (!d_out || !d_state.at) return proa_error();
    for (; d_state.count < a->pre_state.count; d_state.count++) {
        proa_tensor *given = d_state.count < a->d_state.count ? a->d_state.at[d_state.count] : NULL;
        proa_tensor *d = or_zeros(w, given, a->pre_state.at[d_state.count]);
        if (!d) return proa_error();
        d_state.at[d_state.count] = d;
    }
    rnn_sizes s =
        rnn_measure(a->input, a->pre_state.at[0], a->weight_list, a->mode, a->num_layers, a->is_bidirec);
    s.input = a->weight_list.at[0]->shape[1];
    PROA_TRY(proa_wire_op(w, "rnn_grad"));
    PROA_TRY(put_inputs(w, a->input, a->pre_state, a->weight_list, a->sequence_length));
    PROA_TRY(proa_wire_put_input(w, "Out", a->out));
    PROA_TRY(proa_wire_put_input(w, "Reserve", a->reserve));
    if (!proa__absent(a->dropout_state)) PROA_TRY(proa_wire_put_input(w, "DropoutState", a->dropout_state));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", d_out));
    PROA_TRY(put_list(w, "State@GRAD", d_state, false));
    PROA_TRY(proa_wire_put_output(w, "Input@GRAD", a->d_input));
    PROA_TRY(put_list(w, "PreState@GRAD", a->d_pre_state, true));
    PROA_TRY(put_list(w, "WeightList@GRAD", a->d_weight_list, true));
    return put_attributes(w, &s, a->mode, a->dropout_prob, false);
}
