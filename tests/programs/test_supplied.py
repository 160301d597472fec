"""Attributes that variables supply in programs: wrong values at a run are errors that name operator and argument, and a run
after that is right."""
import numpy as np
import pytest

import proa as paddle
from proa import static

pytestmark = pytest.mark.usefixtures("program")
X = np.arange(24, dtype="float32").reshape(2, 3, 4)


def int_vector(*values):
    return np.array(values, "int64")


WRONG = {  # name: (function of x and the variable, a right value, a wrong one, parts of the message)
    "sum": (lambda x, a: paddle.sum(x, a), int_vector(1), int_vector(3), ("sum", "axis", "is 3")),
    "mean twice": (lambda x, a: paddle.mean(x, a), int_vector(0, 1), int_vector(1, -2), ("mean", "axis", "axis 1 twice")),
    "max": (lambda x, a: paddle.max(x, [0, a]), int_vector(1), int_vector(-4), ("max", "axis", "is -4")),
    "var": (lambda x, a: paddle.var(x, a), int_vector(1), int_vector(9), ("variance", "axis", "is 9")),
    "cumsum": (lambda x, a: paddle.cumsum(x, a), int_vector(2), int_vector(5), ("cumsum", "axis", "is 5")),
    "argmax": (lambda x, a: paddle.argmax(x, a), int_vector(2), int_vector(-9), ("argmax", "axis", "is -9")),
    "squeeze": (lambda x, a: paddle.squeeze(x[:1], a), int_vector(0), int_vector(3), ("squeeze", "axis", "is 3")),
    "unsqueeze": (lambda x, a: paddle.unsqueeze(x, a), int_vector(0), int_vector(5), ("unsqueeze", "axis", "is 5")),
    "concat": (lambda x, a: paddle.concat([x, x], a), int_vector(2), int_vector(3), ("concat", "axis", "is 3")),
    "concat of unequal": (lambda x, a: paddle.concat([x, x[:, :1]], a), int_vector(1), int_vector(0),
                          ("concat", "x", "length 1 on axis 1")),
    "split": (lambda x, a: paddle.split(x, 2, a)[1], int_vector(0), int_vector(1), ("split", "num", "axis 1")),
    "split by lengths": (lambda x, a: paddle.split(x, [1, 2], a)[1], int_vector(1), int_vector(2), ("split", "sections", "sum to 3")),
    "gather": (lambda x, a: paddle.gather(x, paddle.to_tensor([1, 0]), a), int_vector(0), int_vector(3),
               ("gather", "axis", "is 3")),
    "gather beyond": (lambda x, a: paddle.gather(x, paddle.to_tensor([2, 0]), a), int_vector(1), int_vector(0),
                      ("gather", "index")),
    "topk": (lambda x, k: paddle.topk(x, k)[0], int_vector(4), int_vector(5), ("topk", "k", "is 5")),
    "one_hot": (lambda x, n: paddle.nn.functional.one_hot(x.astype("int64"), n), int_vector(24), int_vector(0),
                ("one_hot", "num_classes", "is 0")),
    "pad": (lambda x, p: paddle.nn.functional.pad(x, p, data_format="NCL"), int_vector(1, 2), int_vector(-3, -2),
            ("pad3d", "paddings", "cut more than axis 2")),
    "pad by reflection": (lambda x, p: paddle.nn.functional.pad(x, p, "reflect", data_format="NCL"), int_vector(1, 2),
                          int_vector(4, 0), ("pad3d", "paddings", "reflect takes less")),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_name_operator_and_argument(name):
    function, right, wrong, parts = WRONG[name]
    x, given = static.data("x", list(X.shape)), static.data("given", list(right.shape), str(right.dtype))
    x.stop_gradient = False
    out = function(x, given)
    fetched = [out] + ([static.gradients([out], [x])[0]] if name not in ("argmax", "one_hot") else [])
    exe = static.Executor()
    before = exe.run(feed={"x": X, "given": right}, fetch_list=fetched)
    with pytest.raises((ValueError, IndexError)) as caught:
        exe.run(feed={"x": X, "given": wrong}, fetch_list=fetched)
    assert all(part in str(caught.value) for part in parts), caught.value
    after = exe.run(feed={"x": X, "given": right}, fetch_list=fetched)
    assert all(np.array_equal(b, a) for b, a in zip(before, after))


def test_more_axes_than_there_are():
    x, given = static.data("x", [2, 3]), static.data("given", [3], "int64")
    with pytest.raises(ValueError, match="sum.*axis names 3 axes; x has 2"):
        paddle.sum(x, given)


def test_what_paddle_takes_by_number_only_is_not_saved(tmp_path):
    """Paddle's amax would run with an axis of its own."""
    x, given = static.data("x", [2, 3]), static.data("given", [1], "int64")
    out = paddle.amax(x, given)
    with pytest.raises(NotImplementedError, match="amax.*axis.*numbers only"):
        static.save_inference_model(str(tmp_path / "m"), [x, given], [out], static.Executor())


def test_an_operator_shows_the_variables_of_an_attribute():
    x, given = static.data("x", [2, 3]), static.data("given", [1], "int64")
    block = static.default_main_program().global_block()
    paddle.sum(x, given)
    out = block.create_var(name="appended", dtype="float32")
    block.append_op(type="reduce_max", inputs={"X": x}, outputs={"Out": out}, attrs={"dim": given, "keep_dim": False})
    assert [op.attr("dim") for op in block.ops] == [None, None]
    assert [op.all_attrs()["dim"].name for op in block.ops] == ["given", "given"]
    found, = static.Executor().run(feed={"x": X[0, :2, :3], "given": int_vector(0)}, fetch_list=[out])
    assert np.array_equal(found, X[0, :2, :3].max(0))


@pytest.mark.parametrize("shape", [[2, 3, 4], [None, None, None]])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_gradient_of_gather_follows_the_axis(axis, shape):
    """Real Paddle 2.6.2 adds along axis 0."""
    places = np.array([1, 0, 1, 1])
    x, given = static.data("x", shape), static.data("given", [1], "int64")
    x.stop_gradient = False
    out = paddle.gather(x, paddle.to_tensor(places), given)
    out, found = static.Executor().run(feed={"x": X, "given": int_vector(axis)},
                                       fetch_list=[out, *static.gradients([(out * out).sum()], [x])])
    expected = np.zeros_like(X)
    np.add.at(np.moveaxis(expected, axis, 0), places, np.moveaxis(2 * np.take(X, places, axis), axis, 0))
    assert np.array_equal(out, np.take(X, places, axis)) and np.allclose(found, expected)


@pytest.mark.parametrize("axis", [[0], [1, -1]])
def test_dims_that_are_not_known_and_axes_that_are_not(axis):
    x, given = static.data("x", [None, 3, None]), static.data("given", [len(axis)], "int64")
    x.stop_gradient = False
    out = paddle.max(x, given) if len(axis) == 1 else paddle.concat([x, x * x], given[:1])
    loss = (out * out).sum()
    found, = static.Executor().run(feed={"x": X, "given": np.array(axis)}, fetch_list=static.gradients([loss], [x]))
    expected = np.where(X == X.max(0, keepdims=True), 2 * X, 0) if len(axis) == 1 else 2 * X + 4 * X ** 3
    assert np.allclose(found, expected)
