"""Results that share memory with their source: what is written to the result is looked for in the source, and the
other way round, on contiguous, transposed and sliced sources. A result that is its source shares."""
import numpy as np
import paddle
from parity import case

F, T = paddle.nn.functional, paddle.to_tensor


def _sources(shape, dtype):
    """Functions that make equal sources in different layouts."""
    values = (np.arange(int(np.prod(shape))).reshape(shape) + 1).astype(dtype)
    if dtype.startswith("complex"):
        values = values * np.array(1 + 1j, dtype)
    yield lambda: T(values)
    if len(shape) > 1:
        yield lambda: T(np.ascontiguousarray(values.T)).transpose(list(range(len(shape)))[::-1])
    if shape:
        wide = np.zeros([n + 2 for n in shape], dtype)
        inner = tuple(slice(1, -1) for _ in shape)
        wide[inner] = values
        yield lambda: T(wide)[inner]


def _flat(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _flat(v)]
    return [value] if isinstance(value, paddle.Tensor) else []


def _overwrite(t):
    if "complex" in str(t.dtype):
        t.set_value(np.full(t.shape, 77 - 3j, str(t.dtype).rpartition(".")[2]))
    elif "bool" in str(t.dtype):
        t.set_value(np.logical_not(t.numpy()))
    else:
        t.fill_(77)


def _changes(written, seen):
    before = np.array(seen.numpy())
    _overwrite(written)
    return not np.array_equal(before, seen.numpy())


def _shares(call, source):
    """(result to source, source to result), of each result."""
    found = []
    for k in range(len(_flat(call(source())))):
        x, y = source(), source()
        found.append((_changes(_flat(call(x))[k], x), _changes(y, _flat(call(y))[k])))
    return found


def _group(name, calls):
    """A case of {what: call} or {what: (call, shape)}; "only" the contiguous source where Paddle takes no other."""
    def run():
        out = {}
        for what, entry in calls.items():
            entry = entry if isinstance(entry, tuple) else (entry,)
            call, shape, dtype, only = *entry, *((4, 6), "float32", False)[len(entry) - 1:]
            for k, source in enumerate(_sources(shape, dtype)):
                if not (only and k):
                    out[f"{what} {k}"] = _shares(call, source)
        return out
    run.__name__ = name
    case("paddle.Tensor", grad=False)(run)


_INDICES = ["0", "-1", "1:3", ":", "...", "None", "::2", "::-1", "1, 2", ":, 1", ":, 1:3", "..., 0", "0, ...", "[0, 2]",
            "[[0, 2], [1, 3]]", "T(1)", "T([0, 1])", "np.array([1])", "1:2, None", ":, ::-2", "[True, False, True, True]",
            "x > 3", "0, None, 1", ":, :", "T(0):T(2)", "1:4:2, 1:5:2"]
_group("indices", {f"x[{i}]": eval(f"lambda x: x[{i}]") for i in _INDICES} | {"rows": lambda x: [r for r in x]})

_group("parts", {
    "split": lambda x: paddle.split(x, 2), "sections": lambda x: paddle.split(x, [1, 2, -1], 1), "one": lambda x: paddle.split(x, 1),
    "chunk": lambda x: paddle.chunk(x, 2), "vsplit": lambda x: paddle.vsplit(x, 2), "x.split": lambda x: x.split(2, 1),
    "unbind": lambda x: paddle.unbind(x), "unbind 1": lambda x: x.unbind(1), "unbind one": (lambda x: x.unbind(0), (1, 3)),
    "unstack": lambda x: paddle.unstack(x), "unstack 1": lambda x: x.unstack(1)})

_group("shapes", {
    "reshape": lambda x: x.reshape([6, 4]), "same": lambda x: x.reshape([4, 6]), "-1": lambda x: x.reshape([-1]),
    "by tensor": lambda x: x.reshape(T([6, 4])), "0-D": (lambda x: x.reshape([1]), ()), "to 0-D": (lambda x: x.reshape([]), (1,)),
    "flatten": lambda x: x.flatten(), "flatten 0": lambda x: x.flatten(0, 0), "flatten 0-D": (lambda x: x.flatten(), ()),
    "squeeze": (lambda x: x.squeeze(), (1, 3, 1)), "squeeze no": lambda x: x.squeeze(), "squeeze 0": (lambda x: x.squeeze(0), (1, 3)),
    "unsqueeze": lambda x: x.unsqueeze(0), "unsqueeze two": lambda x: x.unsqueeze([0, -1]),
    "unsqueeze 0-D": (lambda x: x.unsqueeze(0), ()), "unflatten": lambda x: paddle.unflatten(x, 1, [2, 3]),
    "atleast_1d": (lambda x: paddle.atleast_1d(x), ()), "atleast_2d": lambda x: paddle.atleast_2d(x),
    "atleast_3d": lambda x: paddle.atleast_3d(x), "Flatten": (lambda x: paddle.nn.Flatten()(x), (2, 3, 2))})

_group("orders", {
    "transpose": lambda x: x.transpose([1, 0]), "identity": lambda x: x.transpose([0, 1]), "T": lambda x: x.T, "t": lambda x: x.t(),
    "t 1-D": (lambda x: paddle.t(x), (4,)), "T 1-D": (lambda x: x.T, (4,)), "moveaxis": lambda x: paddle.moveaxis(x, 0, 1),
    "diagonal": lambda x: paddle.diagonal(x), "diagonal 1": lambda x: x.diagonal(1),
    "diagonal 3-D": (lambda x: paddle.diagonal(x, 0, 1, 2), (2, 3, 4)), "diag": lambda x: paddle.diag(x),
    "diagflat": lambda x: paddle.diagflat(x), "flip": lambda x: paddle.flip(x, 0), "roll": lambda x: paddle.roll(x, 0),
    "rot90": lambda x: paddle.rot90(x), "rot90 0": lambda x: paddle.rot90(x, 0), "rot90 4": lambda x: paddle.rot90(x, 4),
    "reverse": lambda x: paddle.reverse(x, 0), "einsum": lambda x: paddle.einsum("ij->ji", x),
    "einsum id": lambda x: paddle.einsum("ij->ij", x), "einsum diagonal": (lambda x: paddle.einsum("ii->i", x), (3, 3))})

_group("views", {
    "view": (lambda x: x.view([6, 4]), (4, 6), "float32", True), "view same": lambda x: x.view([4, 6]),
    "int32": lambda x: x.view("int32"), "float32": lambda x: x.view("float32"),
    "view_as": (lambda x: x.view_as(paddle.zeros([6, 4])), (4, 6), "float32", True),
    "as_strided": (lambda x: paddle.as_strided(x, [2, 3], [3, 1]), (4, 6), "float32", True),
    "offset": (lambda x: x.as_strided([2], [1], 16), (4, 6), "float32", True),
    "unfold": (lambda x: x.unfold(1, 2, 1), (4, 6), "float32", True), "unfold 0": (lambda x: paddle.unfold(x, 0, 2, 2), (4, 6), "float32", True),
    "unfold 1-D": (lambda x: x.unfold(0, 2, 3), (6,), "float32", True)})

_group("complex_parts", {
    "as_real": (lambda x: paddle.as_real(x), (2, 3), "complex64"), "as_real 0-D": (lambda x: paddle.as_real(x), (), "complex64"),
    "as_complex": (lambda x: paddle.as_complex(x), (3, 2), "float32", True), "as_complex 1-D": (lambda x: paddle.as_complex(x), (2,)),
    "real": (lambda x: paddle.real(x), (2, 3), "complex64"), "imag": (lambda x: x.imag(), (2, 3), "complex64"),
    "wide": (lambda x: x.real(), (2, 3), "complex128"), "conj": (lambda x: paddle.conj(x), (2, 3), "complex64"),
    "complex": lambda x: paddle.complex(x, x), "angle": (lambda x: paddle.angle(x), (2,), "complex64")})

_group("repeats", {
    "expand": lambda x: x.expand([2, 4, 6]), "expand same": lambda x: x.expand([4, 6]), "expand -1": lambda x: x.expand([-1, -1]),
    "expand one": (lambda x: x.expand([3, 6]), (1, 6)), "expand_as": lambda x: x.expand_as(paddle.zeros([4, 6])),
    "broadcast_to": lambda x: paddle.broadcast_to(x, [4, 6]), "broadcast_to 3": lambda x: paddle.broadcast_to(x, [2, 4, 6]),
    "broadcast_tensors": lambda x: paddle.broadcast_tensors([x, paddle.zeros([4, 6])]), "tile": lambda x: paddle.tile(x, [1, 1]),
    "repeat_interleave": lambda x: paddle.repeat_interleave(x, 1, 0), "concat": lambda x: paddle.concat([x]),
    "stack": lambda x: paddle.stack([x]), "add_n": lambda x: paddle.add_n([x])})

_group("boxes", {
    "crop": lambda x: paddle.crop(x, [2, 2], [1, 1]), "crop all": lambda x: paddle.crop(x),
    "slice": lambda x: paddle.slice(x, [0], [1], [3]), "slice all": lambda x: paddle.slice(x, [0], [0], [4]),
    "x.slice": lambda x: x.slice([1], [0], [2]), "strided_slice": lambda x: paddle.strided_slice(x, [0], [0], [4], [2]),
    "backwards": lambda x: paddle.strided_slice(x, [0], [3], [0], [-1]), "gather": lambda x: paddle.gather(x, T([0, 1, 2, 3])),
    "index_select": lambda x: paddle.index_select(x, T([0, 1, 2, 3])), "take": lambda x: paddle.take(x, T([0, 1])),
    "masked_select": lambda x: x.masked_select(x > 0), "tril": lambda x: paddle.tril(x, 100), "pad": lambda x: F.pad(x, [0] * 4)})

_group("same", {
    "detach": lambda x: x.detach(), "clone": lambda x: x.clone(), "assign": lambda x: paddle.assign(x), "data": lambda x: x.data,
    "cast": lambda x: paddle.cast(x, "float32"), "astype": lambda x: x.astype("float32"), "to": lambda x: x.to("float32"),
    "to cpu": lambda x: x.to("cpu"), "cpu": lambda x: x.cpu(), "value": lambda x: x.value(), "to_tensor": lambda x: T(x),
    "Tensor": lambda x: paddle.Tensor(x), "deepcopy": lambda x: __import__("copy").deepcopy(x), "numpy": lambda x: T(x.numpy()),
    "contiguous": (lambda x: x.contiguous(), (4, 6), "float32", True)})

_group("nothing_to_do", {
    "dropout 0": lambda x: F.dropout(x, 0.0), "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "dropout axis": lambda x: F.dropout(x, 0.5, axis=0, training=False), "Identity": lambda x: paddle.nn.Identity()(x),
    "dropout2d": (lambda x: F.dropout2d(x, 0.5, training=False), (1, 2, 2, 2)),
    "downscale": lambda x: F.dropout(x, 0.5, training=False, mode="downscale_in_infer"),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, training=False), "scale": lambda x: paddle.scale(x, 1.0),
    "plus 0": lambda x: x + 0, "abs": lambda x: paddle.abs(x), "relu": lambda x: F.relu(x), "clip": lambda x: paddle.clip(x, -1e9, 1e9),
    "sum": (lambda x: paddle.sum(x, 0), (1, 3)), "sum 0-D": (lambda x: paddle.sum(x), ()), "max": (lambda x: paddle.max(x, 0), (1, 3)),
    "mean": (lambda x: paddle.mean(x), ()), "prod": (lambda x: paddle.prod(x), (1,)), "cumsum": (lambda x: paddle.cumsum(x), (1,)),
    "sort": (lambda x: paddle.sort(x), (1, 1)), "matrix_power": (lambda x: paddle.linalg.matrix_power(x, 1), (3, 3)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 1), (1, 1, 2, 2)), "pool": (lambda x: F.max_pool2d(x, 1), (1, 1, 2, 2)),
    "interpolate": (lambda x: F.interpolate(x, [2, 2]), (1, 1, 2, 2)), "where": lambda x: paddle.where(x > -9, x, x)})


@case("paddle.Tensor", "paddle.to_tensor", "paddle.utils.dlpack.to_dlpack", "paddle.utils.dlpack.from_dlpack", grad=False)
def arrays():
    """A write to an array that a tensor gave does not reach the tensor; nor the other way round."""
    from paddle.utils.dlpack import from_dlpack, to_dlpack
    out = []
    for give in (np.asarray, np.array, lambda t: t.numpy(), lambda t: t.__array__(), lambda t: np.asarray(t.detach()),
                 lambda t: np.asarray(t.transpose([1, 0])), lambda t: np.ascontiguousarray(t), lambda t: np.atleast_3d(t)):
        x = paddle.ones([2, 3])
        a = give(x)
        a[...] = 7
        x[0, 0] = 5
        out += [x, a, a.flags.writeable]
    for take in (paddle.to_tensor, paddle.Tensor, paddle.assign):
        a = np.ones([2, 3], "float32")
        x = take(a)
        a[0, 0] = 7
        x[1, 1] = 5
        out += [x, a]
    x = paddle.ones([3])
    y = from_dlpack(to_dlpack(x))
    y[0] = 3
    x[1] = 4
    return out + [x, y]
