"""Run by real Paddle: saves models of its 1.x operators on sequences, with what its executor answers.

python sequence_models.py FOLDER     writes FOLDER/NAME/m.pdmodel, m.pdiparams and m.npz (x, offsets, the results)
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
# name: (operator, slot of the fed sequences, their width or a number of words, weights, attributes, results, other outputs)
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
}


def parameter(name, value):
    return paddle.static.create_parameter(list(value.shape), "float32", name=name,
                                          default_initializer=paddle.nn.initializer.Assign(value))


def save(folder, kind, slot, width, weights, attrs, results, others):
    folder.mkdir(parents=True)
    main, startup, scope = paddle.static.Program(), paddle.static.Program(), paddle.static.Scope()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(scope):
        words = width == "words"
        x = paddle.static.data("x", [-1, 1 if words else width], "int64" if words else "float32", lod_level=1)
        block = main.global_block()
        made = {name: [block.create_var(name=name.lower(), dtype="float32")] for name in (*results, *others)}
        given = {name: [parameter(name, value)] for name, value in weights.items()}
        block.append_op(type=kind, inputs={slot: [x], **given}, outputs=made, attrs=attrs)
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(startup)
        rows = sum(LENGTHS)
        array = RANDOM.randint(0, 7, (rows, 1)).astype("int64") if words else real(rows, width)
        fed = LoDTensor()
        fed.set(array, paddle.CPUPlace())
        fed.set_recursive_sequence_lengths([LENGTHS])
        outs = [made[name][0] for name in results]
        found = exe.run(main, {"x": fed}, outs, return_numpy=False)
        paddle.static.save_inference_model(str(folder / "m"), [x], outs, exe, program=main)
        np.savez(folder / "m.npz", x=array, offsets=np.cumsum([0, *LENGTHS]), **{f"out{i}": np.array(one) for i, one in enumerate(found)})


def main():
    paddle.enable_static()
    for name, case in CASES.items():
        save(pathlib.Path(sys.argv[1]) / name, *case)
        print(name)


if __name__ == "__main__":
    main()
