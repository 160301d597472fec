"""Shapes, joins, cuts, gathers and scatters, sorts and searches."""
import inspect

import paddle
from parity import bools, case, ints, rand

T = paddle.to_tensor


@case("paddle.reshape", "paddle.reshape_", "paddle.Tensor.reshape", "paddle.Tensor.reshape_")
def reshape():
    x = rand(2, 3, 4)
    y = x * 1.0
    paddle.reshape_(y, [4, 6])
    return [paddle.reshape(x, [6, 4]), x.reshape([-1, 2]), x.reshape((0, 12)), x.reshape([T(4), -1]),
            x.reshape(T([3, 8])), rand(1).reshape([]), y, (x * 1.0).reshape_([24])]


@case("paddle.squeeze", "paddle.squeeze_", "paddle.unsqueeze", "paddle.unsqueeze_", "paddle.flatten",
      "paddle.Tensor.squeeze", "paddle.Tensor.squeeze_", "paddle.Tensor.unsqueeze", "paddle.Tensor.unsqueeze_",
      "paddle.Tensor.flatten", "paddle.Tensor.flatten_")
def squeezes():
    x = rand(1, 3, 1, 2)
    return [paddle.squeeze(x), x.squeeze(0), x.squeeze([0, 2]), x.squeeze(1), paddle.unsqueeze(x, 0),
            x.unsqueeze([0, -1]), x.unsqueeze(T([1])), paddle.squeeze_(x * 1.0), (x * 1.0).squeeze_(0),
            paddle.unsqueeze_(x * 1.0, 1), (x * 1.0).unsqueeze_([0]), paddle.flatten(x), x.flatten(1, 2),
            x.flatten(start_axis=-2), (x * 1.0).flatten_(), rand().flatten()]


@case("paddle.concat", "paddle.stack", "paddle.Tensor.concat", "paddle.Tensor.stack")
def joins():
    x, y = rand(2, 3), rand(2, 3)
    return paddle.concat([x, y]), paddle.concat((x, y), axis=-1), paddle.concat([x, y], axis=T(1)), \
        paddle.stack([x, y]), paddle.stack([x, y], axis=-1), paddle.stack([rand(), rand()])


@case("paddle.split", "paddle.chunk", "paddle.unbind", "paddle.unstack", "paddle.Tensor.split", "paddle.Tensor.chunk",
      "paddle.Tensor.unbind", "paddle.Tensor.unstack")
def cuts():
    x = rand(6, 4)
    return [paddle.split(x, 3), x.split([1, 2, -1]), paddle.split(x, 2, axis=-1), paddle.split(x, [T(2), 4], T(0)),
            paddle.chunk(x, 2), x.chunk(2, axis=1), paddle.unbind(x, 1), x.unbind(), paddle.unstack(x), x.unstack(1)]


@case("paddle.slice", "paddle.strided_slice", "paddle.crop", "paddle.Tensor.slice", "paddle.Tensor.strided_slice")
def slices():
    x = rand(4, 5, 6)
    return [paddle.slice(x, [0, 2], [1, 0], [3, 4]), x.slice(axes=[-1], starts=[-3], ends=[-1]),
            paddle.slice(x, [0], [T(1)], [T(3)]), paddle.strided_slice(x, [0, 1], [3, 0], [0, 5], [-1, 2]),
            x.strided_slice([2], [0], [6], [2]), paddle.crop(x, [2, 2, 2], [1, 1, 1])]


@case("paddle.expand", "paddle.expand_as", "paddle.broadcast_to", "paddle.tile", "paddle.broadcast_tensors",
      "paddle.Tensor.expand", "paddle.Tensor.expand_as", "paddle.Tensor.broadcast_to", "paddle.Tensor.tile")
def expansions():
    x = rand(3, 1)
    return [paddle.expand(x, [2, 3, 4]), x.expand([-1, 4]), paddle.expand_as(x, rand(3, 2)), x.expand_as(rand(3, 2)),
            paddle.broadcast_to(x, [3, 2]), x.broadcast_to([3, 2]), paddle.tile(x, [2, 3]), x.tile((2, 1, 1)),
            paddle.tile(x, T([1, 2])), paddle.broadcast_tensors([x, rand(1, 4)])]


@case("paddle.transpose", "paddle.flip", "paddle.reverse", "paddle.roll", "paddle.t", "paddle.moveaxis", "paddle.rot90",
      "paddle.Tensor.transpose", "paddle.Tensor.flip", "paddle.Tensor.reverse", "paddle.Tensor.roll", "paddle.Tensor.t")
def orders():
    x, m = rand(2, 3, 4), rand(2, 3)
    return [paddle.transpose(x, [2, 0, 1]), x.transpose(perm=[1, 0, 2]), paddle.flip(x, 0), x.flip([0, -1]),
            paddle.reverse(x, 1), x.reverse([0]), paddle.roll(x, 1), x.roll([1, -1], [0, 2]), paddle.roll(x, 2, axis=1),
            paddle.t(m), m.t(), m.T, paddle.moveaxis(x, [0, 1], [2, 0]), paddle.rot90(m), paddle.rot90(m, -1),
            paddle.t(rand(3))]


@case("paddle.gather", "paddle.gather_nd", "paddle.index_select", "paddle.index_sample", "paddle.masked_select",
      "paddle.take_along_axis", "paddle.Tensor.gather", "paddle.Tensor.gather_nd", "paddle.Tensor.index_select",
      "paddle.Tensor.index_sample", "paddle.Tensor.masked_select")
def gathers():
    x, i = rand(4, 5), T([3, 0, 1])  # Paddle's gradient of gather along axis 1 repeats the first row
    return [paddle.gather(x, i), x.detach().gather(i, axis=1), paddle.gather_nd(x, T([[0, 1], [3, 2]])), x.gather_nd(T([[1]])),
            paddle.index_select(x, i), x.index_select(i, axis=1), paddle.index_sample(x, ints(4, 2, high=5)),
            x.index_sample(ints(4, 2, high=5)), paddle.masked_select(x, x > 0), x.masked_select(bools(4, 5)),
            paddle.take_along_axis(x, ints(4, 2, high=5), 1)]


@case("paddle.scatter", "paddle.scatter_", "paddle.scatter_nd", "paddle.scatter_nd_add", "paddle.put_along_axis",
      "paddle.Tensor.scatter", "paddle.Tensor.scatter_", "paddle.Tensor.scatter_nd", "paddle.Tensor.scatter_nd_add")
def scatters():
    x, u, i = rand(4, 3), rand(2, 3), T([3, 1])
    return [paddle.scatter(x, i, u), x.scatter(T([1, 1]), u, overwrite=False), paddle.scatter_(x * 1.0, i, u),
            (x * 1.0).scatter_(i, u), paddle.scatter_nd(T([[1], [1]]), u, [4, 3]), paddle.scatter_nd_add(x, T([[0], [2]]), u),
            x.scatter_nd_add(T([[1, 1], [1, 1]]), rand(2)), paddle.put_along_axis(x, T([[0, 1, 2]]), 9.0, 0)]


@case("paddle.index_add", "paddle.index_put", "paddle.index_fill", "paddle.masked_fill", "paddle.repeat_interleave")
def fills():
    x, i = rand(4, 3), T([3, 1])
    return [paddle.index_add(x, i, 0, rand(2, 3)), paddle.index_put(x, (i, T([0, 2])), rand(2)),
            paddle.masked_fill(x, x > 0, 0.5), paddle.repeat_interleave(x, 2, 0), paddle.repeat_interleave(x, T([1, 2, 0]), 1)]


@case("paddle.where", "paddle.nonzero", "paddle.Tensor.where", "paddle.Tensor.nonzero")
def where():
    x, y, c = rand(3, 4), rand(3, 4), bools(3, 4)
    return [paddle.where(c, x, y), c.where(x, y), paddle.where(c, rand(3, 1), rand(4)), paddle.where(x > 0, x, 0.0),
            paddle.where(c), paddle.where(c, 1, 0), paddle.nonzero(c), c.nonzero(as_tuple=True), paddle.nonzero(rand(3) > 0, True)]


@case("paddle.where")
def where_of_numbers():
    x, y, where = rand(3, 4), rand(4), inspect.unwrap(paddle.where)  # not as unknown_dims.py records it: programs want bools
    return [where(ints(3, 4, high=2), x, 0.0), where(rand(3, 1).round(), x, y), where(ints(4, high=2), 1, 0),
            where(rand(2, 2), 3, paddle.to_tensor([5, 7]))]


@case("paddle.unique", "paddle.unique_consecutive", "paddle.Tensor.unique", grad=False)
def uniques():
    x = ints(3, 4, high=4)
    return [paddle.unique(x), x.unique(return_index=True, return_inverse=True, return_counts=True),
            paddle.unique(T([[1, 2], [1, 2], [0, 3]]), axis=0, return_counts=True), paddle.unique(x, dtype="int32", return_index=True),
            paddle.unique_consecutive(T([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True),
            paddle.unique_consecutive(T([[1, 2], [1, 2], [0, 3]]), axis=0)]


@case("paddle.argmax", "paddle.argmin", "paddle.argsort", "paddle.sort", "paddle.topk", "paddle.kthvalue", "paddle.mode",
      "paddle.Tensor.argmax", "paddle.Tensor.argmin", "paddle.Tensor.argsort", "paddle.Tensor.sort", "paddle.Tensor.topk")
def sorts():
    x = rand(3, 5)
    return [paddle.argmax(x), x.argmax(axis=1, keepdim=True), paddle.argmin(x, -1, dtype="int32"), x.argmin(0),
            paddle.argsort(x), x.argsort(axis=0, descending=True), paddle.sort(x), x.sort(0, True), paddle.topk(x, 2),
            x.topk(k=T(2), axis=0, largest=False), paddle.kthvalue(x, 2), paddle.mode(T([[1.0, 2, 2], [3, 3, 1]]))]


@case("paddle.put_along_axis", grad=False)
def parts_along_an_axis():
    x, part = rand(3, 4, grad=False), paddle.to_tensor([[0, 2], [1, 1]])
    return [paddle.put_along_axis(x, part, paddle.to_tensor([[7.0, 8.0], [5.0, 6.0]]), axis, how, own, False)
            for axis in (0, 1) for how in ("assign", "add", "mul") for own in (True, False)
            if own or how == "add"]


@case("paddle.searchsorted", "paddle.bucketize", "paddle.shard_index", "paddle.Tensor.shard_index", grad=False)
def searches():
    edges = T([1.0, 3.0, 5.0])
    few = paddle.to_tensor([1, 3, 5])
    return paddle.searchsorted(edges, T([0.0, 3.0, 9.0])), paddle.bucketize(T([3.0]), edges, right=True), \
        paddle.searchsorted(few, paddle.to_tensor([[3, 6]], dtype="int32")), paddle.searchsorted(edges, few, right=True), \
        paddle.shard_index(T([[1], [7], [12]]), 20, 2, 0), T([[16]]).shard_index(20, 2, 1)
