"""Fused operators on sequences, which Paddle's inference passes write into models: what their parts give."""
import numpy as np
import pytest

from proa import fluid

pytestmark = pytest.mark.usefixtures("program")

LENGTHS = [2, 1, 3]
RANDOM = np.random.default_rng(0)


def real(*shape):
    return RANDOM.standard_normal(shape).astype("float32")


def run(kind, inputs, attrs, extra=(), out="Out"):
    """The operator's result on {slot: [(array, has sequences)]}, in a program; extra slots take outputs, too."""
    block, feed, given = fluid.default_main_program().global_block(), {}, {}
    for slot, values in inputs.items():
        given[slot] = []
        for i, (array, has) in enumerate(values):
            name = f"{slot}{i}"
            var = fluid.data(name, [-1, *array.shape[1:]], str(array.dtype), lod_level=int(has))
            given[slot].append(var)
            feed[name] = fluid.create_lod_tensor(array, [LENGTHS], fluid.CPUPlace()) if has else array
    made = {slot: [block.create_var(name=slot.lower(), dtype="float32")] for slot in (out, *extra)}
    block.append_op(type=kind, inputs=given, outputs=made, attrs=attrs)
    return fluid.Executor().run(feed=feed, fetch_list=[made[out][0]], return_numpy=False)[0]


def parts(x):
    return np.split(x, np.cumsum(LENGTHS)[:-1])


POOLS = {"SUM": lambda x: x.sum(0), "AVERAGE": lambda x: x.mean(0), "SQRT": lambda x: x.sum(0) / np.sqrt(len(x))}


@pytest.mark.parametrize("pool", POOLS)
def test_seqpool_concat(pool):
    x, y = real(6, 3), real(6, 2)
    found = run("fusion_seqpool_concat", {"X": [(x, True), (y, True)]}, {"pooltype": pool, "axis": 1})
    expected = np.concatenate([np.stack([POOLS[pool](p) for p in parts(v)]) for v in (x, y)], 1)
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-5)


@pytest.mark.parametrize("use_cvm", [True, False])
def test_seqpool_cvm_concat(use_cvm):
    x, y = abs(real(6, 4)), abs(real(6, 3))
    inputs = {"X": [(x, True), (y, True)], "CVM": [(real(3, 2), False)]}
    found = run("fusion_seqpool_cvm_concat", inputs, {"pooltype": "SUM", "use_cvm": use_cvm, "axis": 1})
    expected = []
    for v in (x, y):
        v = np.stack([p.sum(0) for p in parts(v)])
        show, click = np.log(v[:, :1] + 1), np.log(v[:, 1:2] + 1)
        expected += [show, click - show, v[:, 2:]] if use_cvm else [v[:, 2:]]
    np.testing.assert_allclose(np.array(found), np.concatenate(expected, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("start, length", [(-1, 3), (0, 2), (-2, 4)])
def test_seqconv_eltadd_relu(start, length):
    x, weight, bias = real(6, 2), real(length * 2, 5), real(1, 5)
    found = run("fusion_seqconv_eltadd_relu", {"X": [(x, True)], "Filter": [(weight, False)], "Bias": [(bias, False)]},
                {"contextLength": length, "contextStart": start, "contextStride": 1}, ["ColMat"])
    rows = []
    for part in parts(x):
        for i in range(len(part)):
            window = [part[n] if 0 <= n < len(part) else np.zeros(2) for n in range(i + start, i + start + length)]
            rows.append(np.concatenate(window))
    np.testing.assert_allclose(np.array(found), np.maximum(np.array(rows) @ weight + bias, 0), rtol=1e-5, atol=1e-5)
    assert found.recursive_sequence_lengths() == [LENGTHS]


ACTIVATIONS = {"identity": lambda x: x, "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh,
               "sigmoid": lambda x: 1 / (1 + np.exp(-x))}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_seqexpand_concat_fc(activation):
    x, y, weight, bias = real(6, 2), real(3, 3), real(5, 4), real(1, 4)
    inputs = {"X": [(x, True), (y, False)], "FCWeight": [(weight, False)], "FCBias": [(bias, False)]}
    found = run("fusion_seqexpand_concat_fc", inputs, {"fc_activation": activation}, ["FCOut"])
    joined = np.concatenate([x, np.repeat(y, LENGTHS, 0)], 1)
    np.testing.assert_allclose(np.array(found), ACTIVATIONS[activation](joined @ weight + bias), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind, gates", [("lstm", 4), ("gru", 3)])
def test_recurrent_ones_are_a_product_and_the_operator(kind, gates):
    x, weight, bias, inner = real(6, 2), real(2, gates * 3), real(1, gates * 3), real(3, gates * 3)
    attrs = {"use_peepholes": False} if kind == "lstm" else {}
    plain = {"Input": [(x @ weight, True)], "Weight": [(inner, False)], "Bias": [(bias, False)]}
    fused = {"X": [(x, True)], "WeightX": [(weight, False)], "WeightH": [(inner, False)], "Bias": [(bias, False)]}
    states = ["Cell", "BatchGate", "BatchCellPreAct"] if kind == "lstm" else ["BatchGate", "BatchResetHiddenPrev", "BatchHidden"]
    expected = run(kind, plain, attrs, states, "Hidden")
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        found = run("fusion_" + kind, fused, attrs, ["XX", *states[:kind == "lstm"]], "Hidden")
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=1e-5, atol=1e-6)
    assert found.recursive_sequence_lengths() == [LENGTHS] and abs(np.array(found)).max() > 0.1


@pytest.mark.parametrize("peepholes", [False, True])
def test_a_table_of_products_holds_the_biases_of_the_gates(peepholes):
    table, ids, inner, bias = real(7, 12), RANDOM.integers(0, 7, (6, 1)), real(3, 12), real(1, 21 if peepholes else 12)
    attrs, states = {"use_peepholes": peepholes}, ["Cell", "BatchGate", "BatchCellPreAct"]
    by_row = {"Ids": [(ids, True)], "Embeddings": [(table, False)], "WeightH": [(inner, False)], "Bias": [(bias, False)]}
    none = np.concatenate([np.zeros((1, 12), "float32"), bias[:, 12:]], 1)
    plain = {"Input": [(table[ids[:, 0]], True)], "Weight": [(inner, False)], "Bias": [(none, False)]}
    pair = []
    for one, given, extra in (("fused_embedding_fc_lstm", by_row, ["Cell", "XX"]), ("lstm", plain, states)):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            pair.append(np.array(run(one, given, attrs, extra, "Hidden")))
    np.testing.assert_allclose(*pair, rtol=1e-5, atol=1e-6)


def test_unknown_forms_are_refused():
    with pytest.raises(NotImplementedError, match="pooltype is MAX"):
        run("fusion_seqpool_concat", {"X": [(real(6, 3), True)]}, {"pooltype": "MAX", "axis": 1})
    with fluid.program_guard(fluid.Program(), fluid.Program()), pytest.raises(NotImplementedError, match="carries no sequences"):
        run("fusion_seqpool_concat", {"X": [(real(6, 3), False)]}, {"pooltype": "SUM", "axis": 1})
