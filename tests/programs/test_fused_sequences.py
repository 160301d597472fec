"""Fused operators on sequences, which Paddle's inference passes write into models: what their parts give; operators of
ranking models on sequences."""
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


@pytest.mark.parametrize("padding", [None, -1])
def test_fused_embedding_seq_pool(padding):
    ids = RANDOM.integers(0, 7, (6, 2))
    given = fluid.data("ids", [-1, 2], "int64", lod_level=1)
    made = fluid.contrib.layers.fused_embedding_seq_pool(given, [7, 3], padding_idx=padding, param_attr=fluid.ParamAttr(name="table"))
    slope, = fluid.gradients(fluid.layers.reduce_sum(made), [fluid.default_main_program().global_block().var("table")])
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"ids": fluid.create_lod_tensor(ids, [LENGTHS], fluid.CPUPlace())}
    table, found, back = exe.run(feed=feed, fetch_list=["table", made, slope])
    rows = np.where(ids[..., None] == (6 if padding else -1), 0, table[ids]).reshape(6, 6)
    np.testing.assert_allclose(found, np.stack([part.sum(0) for part in parts(rows)]), rtol=1e-5)
    counts = np.bincount(ids.ravel(), minlength=7) * (np.arange(7) != (6 if padding else -1))
    np.testing.assert_allclose(back, np.repeat(counts[:, None], 3, 1))


@pytest.mark.parametrize("width", [2, 6])
def test_add_position_encoding(width):
    x, half = real(6, width), width // 2
    found = run("add_position_encoding", {"X": [(x, True)]}, {"alpha": 0.5, "beta": 2.0})
    places = np.concatenate([np.arange(n) for n in LENGTHS])[:, None]
    angles = places / 10000.0 ** (np.arange(half) / (half - 1) if half > 1 else np.ones(1))
    np.testing.assert_allclose(np.array(found), x * 0.5 + 2 * np.concatenate([np.sin(angles), np.cos(angles)], 1), rtol=1e-4, atol=1e-5)
    assert found.recursive_sequence_lengths() == [LENGTHS]


@pytest.mark.parametrize("use_cvm", [True, False])
def test_each_sequence_has_its_views_and_clicks(use_cvm):
    block, x, counts = fluid.default_main_program().global_block(), abs(real(6, 5)), real(3, 2)
    given = fluid.data("x", [-1, 5], "float32", lod_level=1)
    given.stop_gradient = False
    cvm, made = fluid.data("cvm", [-1, 2], "float32"), block.create_var(name="made", dtype="float32")
    block.append_op(type="cvm", inputs={"X": [given], "CVM": [cvm]}, outputs={"Y": [made]}, attrs={"use_cvm": use_cvm})
    slope, = fluid.gradients(fluid.layers.reduce_sum(made), given)
    feed = {"x": fluid.create_lod_tensor(x, [LENGTHS], fluid.CPUPlace()), "cvm": counts}
    found, back = fluid.Executor().run(feed=feed, fetch_list=[made, slope], return_numpy=False)
    views, clicks = np.log(x[:, :1] + 1), np.log(x[:, 1:2] + 1)
    expected = np.concatenate([views, clicks - views, x[:, 2:]], 1) if use_cvm else x[:, 2:]
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.array(back), np.c_[np.repeat(counts, LENGTHS, 0), np.ones((6, 3))], rtol=1e-6)
    assert found.recursive_sequence_lengths() == [LENGTHS]


def test_hashes_form_the_sequences_of_their_rows():
    ids = np.arange(6).reshape(6, 1)
    found = run("hash", {"X": [(ids, True)]}, {"num_hash": 2, "mod_by": 1000})
    assert np.array(found).shape == (6, 2, 1) and found.recursive_sequence_lengths() == [LENGTHS]
    with pytest.raises(TypeError, match="hash_size"):
        fluid.layers.hash(fluid.data("ids", [-1, 1], "int64"), 1024.5)


@pytest.mark.parametrize("kind, inputs, attrs, text", [
    ("auc", {"Predict": real(4, 3), "Label": np.ones((4, 1), "int64"), "StatPos": np.zeros(6, "int64"), "StatNeg": np.zeros(6, "int64")},
     {}, "Predict is float32"),
    ("auc", {"Predict": real(4, 2), "Label": np.ones((4, 1), "int64"), "StatPos": np.zeros(6, "int64"), "StatNeg": np.zeros(6, "int64")},
     {"num_thresholds": 0}, "num_thresholds is 0"),
    ("add_position_encoding", {"X": real(2, 4, 3)}, {}, "even width"),
    ("cvm", {"X": real(4, 1), "CVM": real(4, 2)}, {}, "begin with views and clicks"),
    ("hash", {"X": np.ones((2, 2), "int64")}, {"num_hash": 0}, "num_hash is 0"),
])
def test_wrong_inputs_are_refused(kind, inputs, attrs, text):
    outs = {"auc": ["AUC", "StatPosOut", "StatNegOut"], "cvm": ["Y"]}.get(kind, ["Out"])
    with pytest.raises(ValueError, match=text):
        run(kind, {slot: [(array, False)] for slot, array in inputs.items()}, attrs, outs[1:], outs[0])


def test_unknown_forms_are_refused():
    with pytest.raises(NotImplementedError, match="pooltype is MAX"):
        run("fusion_seqpool_concat", {"X": [(real(6, 3), True)]}, {"pooltype": "MAX", "axis": 1})
    with fluid.program_guard(fluid.Program(), fluid.Program()), pytest.raises(NotImplementedError, match="carries no sequences"):
        run("fusion_seqpool_concat", {"X": [(real(6, 3), False)]}, {"pooltype": "SUM", "axis": 1})
