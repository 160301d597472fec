"""Run by real Paddle: saves models of single operators on sequences and others, with what its executor answers.

python operator_models.py FOLDER     writes FOLDER/NAME/m.pdmodel, m.pdiparams and m.npz (x, offsets of its sequences, the results)
"""
import pathlib
import sys

import numpy as np
import paddle
from paddle.base.core import LoDTensor

LENGTHS, WIDTH = [2, 4, 1], 3
RANDOM = np.random.RandomState(3)


def real(*shape):
    return (RANDOM.uniform(-1, 1, shape) * 0.8).astype("float32")


D = WIDTH
LSTM = {"use_peepholes": True, "is_reverse": False, "gate_activation": "sigmoid", "cell_activation": "tanh", "candidate_activation": "tanh"}
GRU = {"is_reverse": False, "origin_mode": False, "gate_activation": "sigmoid", "activation": "tanh"}
GATES, RESET = ["BatchGate", "BatchCellPreAct"], ["BatchGate", "BatchResetHiddenPrev", "BatchHidden"]
FUSED = ["XX", "BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0"]
INNER = {"Weight": real(D, 4 * D), "Bias": real(1, 7 * D)}
# name: (operator, slot of the fed sequences, their width or 'words', weights, attributes, results, other outputs)
CASES = {
    "lstm": ("lstm", "Input", 4 * D, INNER, LSTM, ["Hidden", "Cell"], GATES),
    "lstm_backwards": ("lstm", "Input", 4 * D, {"Weight": real(D, 4 * D), "Bias": real(1, 4 * D)},
                       {**LSTM, "use_peepholes": False, "is_reverse": True}, ["Hidden", "Cell"], GATES),
    "lstm_states": ("lstm", "Input", 4 * D, {**INNER, "H0": real(3, D), "C0": real(3, D)},
                    {**LSTM, "gate_activation": "relu", "cell_activation": "identity", "candidate_activation": "sigmoid"},
                    ["Hidden", "Cell"], GATES),
    "gru": ("gru", "Input", 3 * D, {"Weight": real(D, 3 * D), "Bias": real(1, 3 * D)}, GRU, ["Hidden"], RESET),
    "gru_backwards": ("gru", "Input", 3 * D, {"Weight": real(D, 3 * D), "H0": real(3, D)},
                      {**GRU, "origin_mode": True, "is_reverse": True}, ["Hidden"], RESET),
    "fusion_lstm": ("fusion_lstm", "X", 5, {"WeightX": real(5, 4 * D), "WeightH": real(D, 4 * D), "Bias": real(1, 4 * D)},
                    {**LSTM, "use_peepholes": False, "use_seq": True}, ["Hidden", "Cell"],
                    FUSED + ["CheckedCell"]),
    "fusion_gru": ("fusion_gru", "X", 5, {"WeightX": real(5, 3 * D), "WeightH": real(D, 3 * D), "Bias": real(1, 3 * D)},
                   {**GRU, "use_seq": True}, ["Hidden"], ["XX", "ReorderedH0", "BatchedInput", "BatchedOut"]),
    "fused_embedding_fc_lstm": ("fused_embedding_fc_lstm", "Ids", "words", {
        "Embeddings": real(7, 4 * D), "WeightH": real(D, 4 * D), "Bias": real(1, 4 * D)},
        {**LSTM, "use_peepholes": False, "use_seq": True}, ["Hidden", "Cell"], FUSED),
    "fused_embedding_seq_pool": ("fused_embedding_seq_pool", "Ids", "words", {"W": real(7, 3)}, {"combiner": "sum", "padding_idx": 2},
                                 ["Out"], []),
}

# name: (operator, slot of what is fed, it or (rows, dtype of a constant) for each, …): no sequences go in
PLAIN = {
    "im2sequence": ("im2sequence", "X", real(2, 3, 5, 4), {}, {"kernels": [3, 2], "strides": [1, 2], "paddings": [1, 0, 1, 0]}, ["Out"], []),
    "fused_elemwise_add_activation": ("fused_elemwise_add_activation", "X", real(3, 4), {"Y": real(3, 4)},
                                      {"functor_list": ["elementwise_add", "relu"], "axis": -1}, ["Out"], ["IntermediateOut"]),
    "stft": ("stft", "X", real(2, 40), {"Window": real(16)}, {"n_fft": 16, "hop_length": 5, "normalized": True, "onesided": True},
             ["Out"], []),
    "memcpy": ("memcpy_d2h", "X", real(3), {}, {"dst_place_type": 0}, ["Out"], []),
    "identity_loss": ("identity_loss", "X", real(2, 6), {}, {"reduction": 1}, ["Out"], []),
    "broadcast_tensors": ("broadcast_tensors", "X", [real(2, 1, 4), real(3, 1)], {}, {}, ["Out", "Out"], []),
    "logspace": ("logspace", "Start", np.array([-1.0], "float32"),
                 {"Stop": np.array([2.0], "float32"), "Num": np.array([7], "int32"), "Base": np.array([3.0], "float32")},
                 {"dtype": 5}, ["Out"], []),
}


def parameter(name, value):
    return paddle.static.create_parameter(list(value.shape), str(value.dtype), name=name,
                                          default_initializer=paddle.nn.initializer.Assign(value))


def fed_sequences(array):
    fed = LoDTensor()
    fed.set(array, paddle.CPUPlace())
    fed.set_recursive_sequence_lengths([LENGTHS])
    return fed


def save(folder, kind, slot, width, weights, attrs, results, others):
    """Saves one operator; width: of the sequences that it is fed, or what it is fed as it is."""
    folder.mkdir(parents=True)
    sequences, rows = isinstance(width, (int, str)), sum(LENGTHS)
    arrays = [RANDOM.randint(0, 7, (rows, 1)).astype("int64") if width == "words" else real(rows, width)] if sequences else \
        width if isinstance(width, list) else [width]
    main, startup, scope = paddle.static.Program(), paddle.static.Program(), paddle.static.Scope()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(scope):
        xs = [paddle.static.data(f"x{i}", [-1, *a.shape[1:]] if sequences else a.shape, str(a.dtype), lod_level=int(sequences))
              for i, a in enumerate(arrays)]
        block, made = main.global_block(), {}
        for name in (*results, *others):
            dtype = "complex64" if kind == "stft" else "float32"
            made.setdefault(name, []).append(block.create_var(name=f"{name.lower()}.{len(made.get(name, []))}", dtype=dtype))
        given = {name: [parameter(name, value)] for name, value in weights.items()}
        block.append_op(type=kind, inputs={slot: xs, **given}, outputs=made, attrs=attrs)
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(startup)
        outs = [made[name][i] for name in dict.fromkeys(results) for i in range(len(made[name]))]
        feed = {x.name: fed_sequences(a) if sequences else a for x, a in zip(xs, arrays)}
        found = exe.run(main, feed, outs, return_numpy=False)
        paddle.static.save_inference_model(str(folder / "m"), xs, outs, exe, program=main)
        np.savez(folder / "m.npz", offsets=np.cumsum([0, *LENGTHS]) if sequences else [], lod=[level for one in found for level in one.lod()],
                 **{f"x{i}": one for i, one in enumerate(arrays)}, **{f"out{i}": np.array(one) for i, one in enumerate(found)})


def main():
    paddle.enable_static()
    for name, case in {**CASES, **PLAIN}.items():
        save(pathlib.Path(sys.argv[1]) / name, *case)
        print(name)


if __name__ == "__main__":
    main()
