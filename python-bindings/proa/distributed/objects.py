"""Collectives on Python objects, encoded as plain data (no pickle), so that received bytes cannot run code."""
import struct

from .. import _core
from . import communication as _c
from .group import group_of


def encode(obj):
    """None, bool, int, float, complex, str, bytes, list, tuple, dict, set, NumPy arrays and Tensors as bytes."""
    out = []
    _put(obj, out, 0)
    return b"".join(out)


def _sized(tag, data):
    return tag + struct.pack("<Q", len(data)) + data


def _put(obj, out, depth):
    if depth > 100:
        raise ValueError("an object to send is nested more than 100 deep, or holds itself")
    kind = type(obj)
    if obj is None or kind is bool:
        out.append({None: b"N", True: b"T", False: b"F"}[obj])
    elif kind is int:
        out.append(_sized(b"i", str(obj).encode()))
    elif kind is float:
        out.append(b"d" + struct.pack("<d", obj))
    elif kind is complex:
        out.append(b"c" + struct.pack("<dd", obj.real, obj.imag))
    elif kind is str:
        out.append(_sized(b"s", obj.encode("utf-8", "surrogatepass")))
    elif kind in (bytes, bytearray):
        out.append(_sized(b"b", bytes(obj)))
    elif kind in (list, tuple, set, frozenset):
        out.append({list: b"l", tuple: b"t", set: b"S", frozenset: b"z"}[kind] + struct.pack("<Q", len(obj)))
        for item in obj:
            _put(item, out, depth + 1)
    elif isinstance(obj, dict):
        out.append(b"D" + struct.pack("<Q", len(obj)))
        for key, value in obj.items():
            _put(key, out, depth + 1)
            _put(value, out, depth + 1)
    elif isinstance(obj, _core.Tensor):
        out.append(b"P")
        _put(str(obj.dtype).split(".")[-1], out, depth + 1)
        _put_array(obj.astype("float32").numpy() if "bfloat16" in str(obj.dtype) else obj.numpy(), out)
    else:
        import numpy as np
        if not isinstance(obj, (np.ndarray, np.generic)) or np.asarray(obj).dtype.hasobject:
            raise TypeError(f"an object of {kind.__module__}.{kind.__name__} cannot be sent: only plain data goes to "
                            "other processes (numbers, text, bytes, lists, tuples, dicts, sets, arrays, Tensors)")
        _put_array(np.asarray(obj), out)


def _put_array(array, out):
    import numpy as np
    out.append(_sized(b"a", array.dtype.str.encode()) + struct.pack("<B", array.ndim))
    out.append(struct.pack(f"<{array.ndim}q", *array.shape))
    out.append(_sized(b"", np.ascontiguousarray(array).tobytes()))


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise ValueError("an object that another process sent is cut off")
        self.at += n
        return self.data[self.at - n:self.at]

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def sized(self):
        return self.take(self.unpack("<Q")[0])

    def many(self):
        return [self.get() for _ in range(self.unpack("<Q")[0])]

    def array(self):
        import numpy as np
        dtype = np.dtype(self.sized().decode())
        if dtype.hasobject:
            raise ValueError("an array of objects does not travel")
        shape = self.unpack(f"<{self.unpack('<B')[0]}q")
        return np.frombuffer(self.sized(), dtype).reshape(shape).copy()

    def get(self):
        tag = self.take(1)
        if tag in b"NTF":
            return {b"N": None, b"T": True, b"F": False}[tag]
        if tag == b"i":
            return int(self.sized())
        if tag == b"d":
            return self.unpack("<d")[0]
        if tag == b"c":
            return complex(*self.unpack("<dd"))
        if tag == b"s":
            return self.sized().decode("utf-8", "surrogatepass")
        if tag == b"b":
            return self.sized()
        if tag in b"ltSz":
            return {b"l": list, b"t": tuple, b"S": set, b"z": frozenset}[tag](self.many())
        if tag == b"D":
            return {self.get(): self.get() for _ in range(self.unpack("<Q")[0])}
        if tag == b"a":
            return self.array()
        if tag == b"P":
            dtype = self.get()
            self.take(1)
            from ..tensor.creation import to_tensor
            return to_tensor(self.array()).astype(dtype)
        raise ValueError(f"an object that another process sent has an unknown part {tag!r}")


def decode(data):
    """The object that encode made bytes of; ValueError for anything else."""
    reader = _Reader(bytes(data))
    obj = reader.get()
    if reader.at != len(reader.data):
        raise ValueError("an object that another process sent has something behind its end")
    return obj


def _bytes_tensor(data):
    import numpy as np
    return _core.from_numpy(np.frombuffer(data, np.uint8).copy())


def _size_tensor(n):
    return _core.full([1], n, dtype=_core.int64)


def _exchanged(parts, group):
    """Sends the bytes parts[r] to rank r; the bytes that came, in the order of ranks."""
    import numpy as np
    sent, came = [len(part) for part in parts], _core.from_numpy(np.zeros(len(parts), np.int64))
    _c._message(_c._ALL_TO_ALL, group, _core.from_numpy(np.array(sent, np.int64)), came)
    sizes = came.numpy().tolist()
    out = _bytes_tensor(bytes(sum(sizes)))
    _c._message(_c._ALL_TO_ALL, group, _bytes_tensor(b"".join(parts)), out, counts=(sent, sizes))
    raw, at = out.numpy().tobytes(), 0
    for n in sizes:
        yield raw[at:at + n]
        at += n


def all_gather_object(object_list, obj, group=None):
    """Extends the list by the ranks' objects, in the order of ranks."""
    group = group_of(group, "all_gather_object")
    if _c._outsider(group, "all_gather_object"):
        return
    data = encode(obj)
    object_list.extend(map(decode, _exchanged([data] * group.nranks, group)))


def exchange(objects, group):
    """Sends object r to rank r; the objects that came, in the order of ranks."""
    return [decode(data) for data in _exchanged([encode(obj) for obj in objects], group)]


def broadcast_object_list(object_list, src, group=None):
    """Overwrites the list's objects with rank src's."""
    group = group_of(group, "broadcast_object_list")
    if _c._outsider(group, "broadcast_object_list"):
        return
    mine = group.rank == group.get_group_rank(_c._peer(group, src, "broadcast_object_list"))
    data = encode(list(object_list)) if mine else b""
    size = _size_tensor(len(data))
    _c.broadcast(size, src, group)
    out = _bytes_tensor(data) if mine else _core.full([int(size)], 0, dtype=_core.uint8)
    _c.broadcast(out, src, group)
    object_list[:] = decode(out.numpy().tobytes())


def scatter_object_list(out_object_list, in_object_list=None, src=0, group=None):
    """Makes the list hold object r of rank src's in_object_list on rank r."""
    group = group_of(group, "scatter_object_list")
    if _c._outsider(group, "scatter_object_list"):
        return
    if group.get_group_rank(_c._peer(group, src, "scatter_object_list")) == group.rank:
        if len(in_object_list or ()) != group.nranks:
            raise ValueError(f"scatter_object_list: expected {group.nranks} objects, one a rank")
    everything = [in_object_list]
    broadcast_object_list(everything, src, group)
    out_object_list[:] = [everything[0][group.rank]]
