"""fluid.layers.rnn: recurrent layer functions (dynamic_lstm, gru_unit, …) and beam search."""
from ...nn import BeamSearchDecoder, dynamic_decode
from ...nn.decode import Decoder
from .cells import (BasicDecoder, DecodeHelper, GRUCell, GreedyEmbeddingHelper, LSTMCell, RNNCell, SampleEmbeddingHelper,
                    TrainingHelper)
from ...framework import mode
from ..data_feeder import check_variable_and_dtype
from ..layer_helper import LayerHelper, one_op

__all__ = ["BasicDecoder", "BeamSearchDecoder", "DecodeHelper", "Decoder", "GRUCell", "GreedyEmbeddingHelper", "LSTMCell",
           "RNNCell", "SampleEmbeddingHelper", "TrainingHelper", "beam_search", "beam_search_decode", "birnn",
           "dynamic_decode", "dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm", "lstm_unit", "rnn"]


def rnn(cell, inputs, initial_states=None, sequence_length=None, time_major=False, is_reverse=False, **kwargs):
    """(outputs, states) of a cell over a sequence."""
    from ...nn import RNN
    return RNN(cell, is_reverse, time_major)(inputs, initial_states, sequence_length, **kwargs)


def birnn(cell_fw, cell_bw, inputs, initial_states=None, sequence_length=None, time_major=False, **kwargs):
    """(outputs side by side, states) of two cells, the second of which runs from the end."""
    from ...nn import BiRNN
    return BiRNN(cell_fw, cell_bw, time_major)(inputs, initial_states, sequence_length, **kwargs)


def _check_states(who, input, **states):
    if mode.by_name():
        check_variable_and_dtype(input, "input", ["float32", "float64"], who)
        for name, state in states.items():
            if state is not None:
                check_variable_and_dtype(state, name, ["float32", "float64"], who)


def dynamic_lstm(input, size, h_0=None, c_0=None, param_attr=None, bias_attr=None, use_peepholes=True, is_reverse=False,
                 gate_activation="sigmoid", cell_activation="tanh", candidate_activation="tanh", dtype="float32",
                 name=None):
    """(hidden, cell) of an LSTM over sequences of size / 4 cells."""
    _check_states("fluid.layers.dynamic_lstm", input, h_0=h_0, c_0=c_0)
    helper = LayerHelper("lstm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    width = size // 4
    weight = helper.create_parameter(helper.param_attr, [width, 4 * width], dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, (7 if use_peepholes else 4) * width], dtype, is_bias=True)
    return one_op("lstm", {"Input": input, "Weight": weight, "Bias": bias, "H0": h_0, "C0": c_0},
                  {"use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
                   "cell_activation": cell_activation, "candidate_activation": candidate_activation}, "Hidden", "Cell",
                  "~BatchGate", "~BatchCellPreAct", dtype=dtype)


def dynamic_lstmp(input, size, proj_size, param_attr=None, bias_attr=None, use_peepholes=True, is_reverse=False,
                  gate_activation="sigmoid", cell_activation="tanh", candidate_activation="tanh", proj_activation="tanh",
                  dtype="float32", name=None, h_0=None, c_0=None, cell_clip=None, proj_clip=None):
    """(projection, cell) of an LSTM with a projection over sequences."""
    _check_states("fluid.layers.dynamic_lstmp", input, h_0=h_0, c_0=c_0)
    helper = LayerHelper("lstmp", param_attr=param_attr, bias_attr=bias_attr, name=name)
    width = size // 4
    weight = helper.create_parameter(helper.param_attr, [proj_size, 4 * width], dtype)
    projection = helper.create_parameter(helper.param_attr, [width, proj_size], dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, (7 if use_peepholes else 4) * width], dtype, is_bias=True)
    attrs = {"use_peepholes": use_peepholes, "is_reverse": is_reverse, "cell_clip": float(cell_clip or 0.0),
             "proj_clip": float(proj_clip or 0.0), "gate_activation": gate_activation, "cell_activation": cell_activation,
             "candidate_activation": candidate_activation, "proj_activation": proj_activation}
    return one_op("lstmp", {"Input": input, "Weight": weight, "ProjWeight": projection, "Bias": bias, "H0": h_0, "C0": c_0},
                  attrs, "Projection", "Cell", "~BatchHidden", "~BatchGate", "~BatchCellPreAct", dtype=dtype)


def dynamic_gru(input, size, param_attr=None, bias_attr=None, is_reverse=False, gate_activation="sigmoid",
                candidate_activation="tanh", h_0=None, origin_mode=False):
    """The hidden states of a GRU over sequences."""
    _check_states("fluid.layers.dynamic_gru", input, h_0=h_0)
    helper = LayerHelper("gru", param_attr=param_attr, bias_attr=bias_attr)
    weight = helper.create_parameter(helper.param_attr, [size, 3 * size], input.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, 3 * size], input.dtype, is_bias=True)
    return one_op("gru", {"Input": input, "H0": h_0, "Weight": weight, "Bias": bias},
                  {"is_reverse": is_reverse, "gate_activation": gate_activation, "activation": candidate_activation,
                   "origin_mode": origin_mode}, "Hidden", "~BatchGate", "~BatchResetHiddenPrev", "~BatchHidden")


def lstm(input, init_h, init_c, max_len, hidden_size, num_layers, dropout_prob=0.0, is_bidirec=False, is_test=False,
         name=None, default_initializer=None, seed=-1):
    """(outputs, last hidden states, last cells) of LSTM layers over input, [steps, batch, features]."""
    from ...nn import LSTM
    from ..param_attr import ParamAttr
    attr = None if default_initializer is None else ParamAttr(initializer=default_initializer)
    layer = LSTM(int(input.shape[-1]), hidden_size, num_layers, "bidirect" if is_bidirec else "forward",
                 time_major=True, dropout=0.0 if is_test else dropout_prob, weight_ih_attr=attr, weight_hh_attr=attr)
    outputs, (hidden, cell) = layer(input, (init_h, init_c))
    return outputs, hidden, cell


_GATES = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}


def gru_unit(input, hidden, size, param_attr=None, bias_attr=None, activation="tanh", gate_activation="sigmoid",
             origin_mode=False):
    """(hidden, reset hidden, gates) of one step of a GRU."""
    helper = LayerHelper("gru_unit", param_attr=param_attr, bias_attr=bias_attr)
    width = size // 3
    weight = helper.create_parameter(helper.param_attr, [width, 3 * width], input.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, 3 * width], input.dtype, is_bias=True)
    gate, reset, updated = one_op(
        "gru_unit", {"Input": input, "HiddenPrev": hidden, "Weight": weight, "Bias": bias},
        {"activation": _GATES[activation], "gate_activation": _GATES[gate_activation], "origin_mode": origin_mode},
        "Gate", "ResetHiddenPrev", "Hidden")
    return updated, reset, gate


def lstm_unit(x_t, hidden_t_prev, cell_t_prev, forget_bias=0.0, param_attr=None, bias_attr=None, name=None):
    """(hidden, cell) of one step of an LSTM."""
    from .nn import fc
    from .tensor import concat
    size = cell_t_prev.shape[1]
    gates = fc(concat([x_t, hidden_t_prev], 1), 4 * size, param_attr=param_attr, bias_attr=bias_attr)
    cell, hidden = one_op("lstm_unit", {"X": gates, "C_prev": cell_t_prev}, {"forget_bias": float(forget_bias)}, "C", "H")
    return hidden, cell


def beam_search(pre_ids, pre_scores, ids, scores, beam_size, end_id, level=0, is_accumulated=True, name=None,
                return_parent_idx=False):
    """The best candidates of a step."""
    found = one_op("beam_search", {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids, "scores": scores},
                   {"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": is_accumulated},
                   "selected_ids", "selected_scores", "parent_idx", name=name)
    return found if return_parent_idx else found[:2]


def beam_search_decode(ids, scores, beam_size, end_id, name=None):
    """The sequences that a beam search ends with."""
    return one_op("beam_search_decode", {"Ids": ids, "Scores": scores}, {"beam_size": beam_size, "end_id": end_id},
                  "SentenceIds", "SentenceScores", name=name)
