"""Paddle's binary files in plain Python: tensor streams, and the names in a program file. Everything read is
checked against the file's size before it is used. NumPy is imported at first use."""
import os
import struct

# VarType codes of TensorDesc, with NumPy's names; bfloat16 travels as its bits
DTYPES = {0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64", 20: "uint8",
          21: "int8", 22: "uint16", 23: "complex64", 24: "complex128"}
CODES = {name: code for code, name in DTYPES.items()}
NO_DATA = {9, 10, 15, 17}       # feed and fetch lists, readers and raw variables are in no parameter file


class BadFile(ValueError):
    """The bytes are not what the format says."""


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadFile("a number ends early")
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """The (number, value) pairs of a protobuf message; length-delimited values as memoryviews."""
    data, at = memoryview(data), 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise BadFile(f"wire type {wire} is unknown")
        if at > len(data):
            raise BadFile("a message ends early")
        yield number, value


def _desc(data):
    code, dims = None, []
    for number, value in fields(data):
        if number == 1:
            code = value
        elif number == 2 and isinstance(value, memoryview):     # packed
            at = 0
            while at < len(value):
                dim, at = _varint(value, at)
                dims.append(dim)
        elif number == 2:
            dims.append(value)
    if code not in DTYPES:
        raise BadFile(f"a tensor has the unknown type {code}")
    if len(dims) > 32 or any(d >= 1 << 63 for d in dims):
        raise BadFile("a tensor has impossible dims")
    return DTYPES[code], dims


class _Reader:
    def __init__(self, file):
        self.file = file
        here = file.tell()
        self.end = file.seek(0, 2)
        file.seek(here)

    def left(self):
        return self.end - self.file.tell()

    def take(self, count):
        if not 0 <= count <= self.left():
            raise BadFile("it ends early")
        return self.file.read(count)

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def tensor(self):
        """One tensor stream as an array; LoD offsets are passed over."""
        import numpy as np
        if self.number("<I") != 0:
            raise BadFile("it does not start with a tensor's version 0")
        levels = self.number("<Q")
        if levels > 64:
            raise BadFile(f"a tensor has {levels} LoD levels")
        for _ in range(levels):
            self.take(self.number("<Q"))
        if self.number("<I") != 0:
            raise BadFile("a tensor's version is not 0")
        dtype, dims = _desc(self.take(self.number("<i")))
        count = 1
        for d in dims:
            count *= d
        data = self.take(count * np.dtype(dtype).itemsize)
        return np.frombuffer(data, dtype).reshape(dims)


def read_tensor(file):
    """The array of a file that holds one tensor stream and nothing else. BadFile otherwise."""
    reader = _Reader(file)
    array = reader.tensor()
    if reader.left():
        raise BadFile(f"{reader.left()} bytes follow the tensor")
    return array


def write_tensor(array, file):
    """The array as one tensor stream without LoD."""
    import numpy as np
    if array.dtype.name not in CODES:
        raise TypeError(f"paddle.save: a tensor of {array.dtype} has no binary format")
    desc = bytearray([8, CODES[array.dtype.name]])
    for dim in array.shape:
        desc.append(16)
        while dim > 127:
            desc.append(dim & 127 | 128)
            dim >>= 7
        desc.append(dim)
    file.write(struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc)
    file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")


def persistable_names(program):
    """The names of a program file's variables that have data, in the order of its parameter file."""
    names = []
    for number, block in fields(program):
        if number != 1:
            continue
        for part, var in fields(block):
            if part != 3:
                continue
            name, kind, persistable = None, None, False
            for field, value in fields(var):
                if field == 1:
                    name = bytes(value).decode("utf-8")
                elif field == 2:
                    kind = next((v for n, v in fields(value) if n == 1), None)
                elif field == 3:
                    persistable = bool(value)
            if persistable and kind not in NO_DATA:
                names.append(name)
    return sorted(set(names), key=lambda n: n.encode())


def read_inference_params(program_path, params_path, folder):
    """name → array of an inference model: one combined file, or (params_path None) a file a variable."""
    with open(program_path, "rb") as f:
        names = persistable_names(f.read())
    if params_path is None:
        return {name: _read_one(os.path.join(folder, name)) for name in names}
    if not names:
        return {}
    with open(params_path, "rb") as f:
        reader = _Reader(f)
        result = {name: reader.tensor() for name in names}
        if reader.left():
            raise BadFile(f"{params_path} holds more tensors than {program_path} names")
    return result


def _read_one(path):
    with open(path, "rb") as f:
        return read_tensor(f)


def read_folder(folder):
    """name → array of a folder with a tensor stream in each file."""
    result = {}
    for root, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(root, file)
            result[os.path.relpath(path, folder).replace(os.sep, "/")] = _read_one(path)
    return result
