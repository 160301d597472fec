"""Arguments that fight back: lists that change while they are read, lists that contain themselves, keys with too many
axes, hooks and PyLayers that return what is no gradient. Exceptions, where there were crashes or silent nonsense."""
import pytest

import proa as paddle
from proa import _core

ALL = slice(None)


class Index:
    """An integer whose reading runs code."""

    def __init__(self, value, when_read):
        self.value, self.when_read = value, when_read

    def __index__(self):
        self.when_read()
        return self.value

    def __float__(self):
        return float(self.__index__())


def leaf(n):
    return paddle.to_tensor([1.0] * n, stop_gradient=False)


# ---- lists that change -----------------------------------------------------------------------------------------

def test_a_list_of_ints_that_shrinks_is_an_exception():
    sizes = []
    sizes.extend([Index(1, sizes.clear), *range(2, 5000)])
    with pytest.raises(RuntimeError, match="changed its length"):
        paddle.reshape(paddle.ones([4]), sizes)
    sizes.extend([paddle.to_tensor([1]), Index(1, sizes.clear), *[1] * 1000])
    with pytest.raises(RuntimeError, match="changed its length"):
        paddle.zeros(sizes)


def test_tensors_of_a_list_live_as_long_as_the_call():
    parts = [paddle.full([1000], 3.0) for _ in range(50)]
    others = []

    def empty():
        parts.clear()
        others.extend(paddle.zeros([1000]) for _ in range(100))  # would take the memory

    assert _core.concat(parts, axis=Index(0, empty)).sum().item() == 150000.0
    assert len(others) == 100


# ---- nested lists ----------------------------------------------------------------------------------------------

def test_lists_without_end_are_exceptions():
    itself = []
    itself.append(itself)
    with pytest.raises(RecursionError):
        paddle.to_tensor(itself)
    deep = []
    for _ in range(100000):
        deep = [deep]
    with pytest.raises(RecursionError):
        paddle.to_tensor(deep)


# ---- keys ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("key", [
    (None, *[ALL] * 8, [0]), (*[None] * 8, *[ALL] * 8, [0]), (*[None] * 8, *[[0]] * 9), (*[None] * 9, ..., [0]),
    (*[None] * 8, "mask"), (*[None] * 9, *[ALL] * 9),
], ids=str)
def test_keys_make_no_more_axes_than_there_are(key):
    x = paddle.ones([1] * 9)
    key = tuple(x > 0 if k == "mask" else k for k in key)
    with pytest.raises(IndexError, match="at most 9 axes"):
        x[key]
    with pytest.raises(IndexError, match="at most 9 axes"):
        x[key] = 1.0


def test_an_index_past_the_last_axis_that_fits_still_works():
    x = paddle.arange(24).reshape([1] * 6 + [2, 3, 4])
    assert x[(*[ALL] * 8, [1])].shape == [1] * 6 + [2, 3, 1]
    assert x[(None, *[0] * 6, ALL, 2, [1, 3])].tolist() == [[[9, 11], [21, 23]]]


# ---- gradients of the wrong kind -------------------------------------------------------------------------------

@pytest.mark.parametrize("made", [lambda g: paddle.ones([5]), lambda g: g.astype("float64"), lambda g: g.sum()],
                         ids=["shape", "dtype", "rank"])
def test_hooks_return_a_gradient_of_the_same_kind(made):
    x = leaf(3)
    x.register_hook(made)
    with pytest.raises(ValueError, match="hook returned"):
        (x * x).sum().backward()
    assert x.grad is None


class Doubled(paddle.autograd.PyLayer):
    made = None

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return Doubled.made(g)


@pytest.mark.parametrize("made", [lambda g: paddle.ones([7]), lambda g: g.sum()], ids=["length", "rank"])
def test_backward_returns_a_gradient_that_fits(made):
    Doubled.made = staticmethod(made)
    x = leaf(3)
    with pytest.raises(ValueError, match=r"no gradient of an input of shape \[3\]"):
        Doubled.apply(x).sum().backward()
    assert x.grad is None


def test_hooks_may_remove_themselves():
    x, seen, handles = leaf(3), [], []

    def once(g):
        handles[0].remove()
        seen.append("once")

    handles.append(x.register_hook(once))
    x.register_hook(lambda g: seen.append("always"))
    for _ in range(2):
        (x * x).sum().backward()
    assert seen == ["once", "always", "always"]


# ---- names -----------------------------------------------------------------------------------------------------

def test_an_attribute_is_named_by_a_string():
    with pytest.raises(TypeError, match="name is a string"):
        paddle.nn.Linear(2, 2).__getattr__([])
