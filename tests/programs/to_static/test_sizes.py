"""to_static and sizes that only the run knows: of interpolation, of slices and of what is split; saved, too."""
import numpy as np
import pytest

import proa as paddle


def tensor(*shape):
    return paddle.to_tensor(np.random.RandomState(0).standard_normal(shape).astype("float32"))


def test_interpolate_to_sizes_of_the_run(tmp_path):
    """Sizes that are a tensor, tensors, and tensors beside numbers; saved, too."""
    def resize(x, y):
        size = paddle.shape(y)
        interpolate = paddle.nn.functional.interpolate
        return [interpolate(x, size=size[2:], mode="bilinear"), interpolate(x, size=[size[2], size[3]]),
                interpolate(x, size=[size[2], 7], mode="bilinear", align_corners=True)]

    spec = paddle.static.InputSpec([None, 2, None, None], "float32")
    static = paddle.jit.to_static(resize, input_spec=[spec, spec])
    x = paddle.to_tensor(np.random.RandomState(1).rand(1, 2, 4, 5).astype("float32"))
    paddle.jit.save(static, str(tmp_path / "m"))
    loaded = paddle.jit.load(str(tmp_path / "m"))
    for shape in ([1, 2, 9, 8], [1, 2, 3, 4]):
        for fn in (static, loaded):
            for got, want in zip(fn(x, paddle.zeros(shape)), resize(x, paddle.zeros(shape))):
                assert np.array_equal(got.numpy(), want.numpy())


def rows_of(pick):
    """One function a way to pick; all with bounds that the run knows."""
    def f(x):
        found = []
        for i in range(x.shape[0] - 1):
            found.append(pick(x, i))
        return paddle.stack(found)
    return f


def crops(x, y):
    n, m = paddle.shape(y)[0], paddle.shape(y)[1]
    return [x[:n, 1:m], x[-n:], x[n:, ..., None], paddle.slice(x, [0, 1], [0, 1], [n, m]),
            paddle.strided_slice(x, [0, 1], [0, 0], [n, 4], [1, 2]), *paddle.split(x, [1, n, 3 - n])]


@pytest.mark.parametrize("pick", [lambda x, i: x[i:i + 1], lambda x, i: x[i:i + 1, ] * 2, lambda x, i: x[i:i + 1, 0],
                                  lambda x, i: x[None, i:i + 2, 1:3], lambda x, i: x[1:3, i::8],
                                  lambda x, i: x[i:i + 2, i], lambda x, i: x[:i + 2:2][:1]])
def test_slices_between_tensors_of_the_run(pick):
    static = paddle.jit.to_static(rows_of(pick), input_spec=[paddle.static.InputSpec([None, 6])])
    x = tensor(4, 6)
    x.stop_gradient = False
    grads = []
    for fn in (rows_of(pick), static):
        out = fn(x)
        (out * out).sum().backward()
        grads += [out.numpy(), x.grad.numpy()]
        x.clear_gradient()
    assert np.array_equal(grads[0], grads[2]) and np.array_equal(grads[1], grads[3])


def test_slices_to_sizes_of_the_run_are_saved(tmp_path):
    specs = [paddle.static.InputSpec([None, 5]), paddle.static.InputSpec([None, None])]
    static = paddle.jit.to_static(crops, input_spec=specs)
    paddle.jit.save(static, str(tmp_path / "m"))
    loaded = paddle.jit.load(str(tmp_path / "m"))
    x = tensor(4, 5)
    for y in (paddle.zeros([2, 3]), paddle.zeros([3, 5])):
        for fn in (static, loaded):
            assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(fn(x, y), crops(x, y), strict=True))

    def wrong(x, y):
        return x[paddle.shape(y)[0]::-1]
    with pytest.raises(IndexError, match="step"):
        paddle.jit.to_static(wrong, full_graph=True)(x, y)


def test_a_loop_without_turns_leaves_its_names_unbound(tmp_path):
    @paddle.jit.to_static
    def last(x, n):
        for i in range(n):
            x = x + 1
        return x * i
    assert last(tensor(2) * 0, paddle.to_tensor(3)).tolist() == [6.0, 6.0]
    with pytest.raises(UnboundLocalError, match="i is bound in the loop"):
        last(tensor(2), paddle.to_tensor(0))
