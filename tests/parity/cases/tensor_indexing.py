"""Reading and writing with every kind of index, values and gradients."""
import numpy as np
import paddle
from parity import array, case, rand

READS = {
    "ints": [np.s_[1], np.s_[-1], np.s_[1, 2], np.s_[-1, -2, 0], np.s_[0, 1, 2]],
    "slices": [np.s_[1:3], np.s_[:], np.s_[:-1], np.s_[:, 1:], np.s_[1:2, :, 2:]],
    "steps": [np.s_[::2], np.s_[1::2, ::3], np.s_[:, 0:5:2]],
    "negative_steps": [np.s_[::-1], np.s_[:, ::-1], np.s_[3:0:-2], np.s_[::-1, ::-2]],
    "none_and_ellipsis": [np.s_[None], np.s_[:, None], np.s_[..., 0], np.s_[0, ...], np.s_[..., None], np.s_[1, None, 2],
                          np.s_[None, ..., 1:3], np.s_[...]],
    "lists": [[0, 2], [[0, 2], [1, 3]], np.s_[:, [0, 2]], np.s_[[0, 1], [2, 3]], np.s_[[0, 1], :, [2, 3]],
              np.s_[1, [0, 2]], np.s_[[0, 1], 1:3]],
}


def _read(kind, indices):
    def run():
        x = rand(4, 5, 6)
        return [x[i] for i in indices]
    run.__name__ = "get_" + kind
    case("paddle.Tensor")(run)


def _write(kind, indices):
    def run():
        out = []
        for i in indices:
            x = rand(4, 5, 6)
            y = x * 1.0
            y[i] = 7.5
            v = x * 1.0
            v[i] = rand(*np.zeros((4, 5, 6))[i].shape)
            out += [y, v]
        return out
    run.__name__ = "set_" + kind
    case("paddle.Tensor")(run)


for _kind, _indices in READS.items():
    _read(_kind, _indices)
    if _kind != "none_and_ellipsis":  # Paddle's gradient fails there
        _write(_kind, [i for i in _indices if np.zeros((4, 5, 6))[i].size])


@case("paddle.Tensor")
def get_masks():
    x = rand(4, 5)
    rows = paddle.to_tensor([True, False, True, True])
    return x[x > 0], x[rows], x[rows.numpy()], x[[True, False, True, True]]


@case("paddle.Tensor")
def set_masks():
    x = rand(4, 5)
    y = x * 1.0
    y[x > 0] = 0.0
    z = x * 1.0
    z[paddle.to_tensor([True, False, True, True])] = 1.0
    return y, z


@case("paddle.Tensor")
def get_tensors():
    x = rand(4, 5, 6)
    i, j = paddle.to_tensor([0, 2, 1]), paddle.to_tensor([[1], [3]])
    return [x[i], x[i, i], x[j, i], x[:, i], x[i.numpy()], x[paddle.to_tensor(1)], x[i, 1:3], x[..., i],
            x[i.astype("int32")], x[0, i], x[paddle.to_tensor(1):paddle.to_tensor(3)]]


@case("paddle.Tensor")
def set_tensors():
    i = paddle.to_tensor([0, 2, 1])
    out = []
    for index in (i, (i, i), (slice(None), i), (0, i), (i, slice(1, 3))):
        x = rand(4, 5, 6)
        y = x * 1.0
        y[index] = 2.0
        out.append(y)
    return out


@case("paddle.Tensor", grad=False)
def set_values():
    x = paddle.zeros([4, 3], "int64")
    x[1] = 2
    x[2] = np.array([1, 2, 3])
    x[0, 1] = paddle.to_tensor(9)
    b = paddle.zeros([3], "bool")
    b[1] = True
    f = paddle.zeros([2, 2])
    f[0] = array(2).astype("float32")
    f[1, 1] = 3
    return x, b, f


@case("paddle.Tensor", grad=False)
def loops():
    x = rand(3, 2, grad=False)
    return [row for row in x], x[0][1], x[0].shape, x[0, 0].shape, [v for v in x[:, 0]]
