"""libproa's program functions for the oracle tests, through ctypes: load, run, save."""
import ctypes as c

import numpy as np

from conftest import BUILD

DTYPES = ["none", "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128"]


class Ints(c.Structure):
    _fields_ = [("count", c.c_int64), ("at", c.POINTER(c.c_int64)), ("tensor", c.c_void_p), ("tensors", c.c_void_p)]


class Tensors(c.Structure):
    _fields_ = [("count", c.c_int64), ("at", c.POINTER(c.c_void_p))]


class ProaError(Exception):
    pass


def open_library():
    lib = c.CDLL(str(BUILD / "libproa.so"))
    for name in ("proa_program_load", "proa_executor_new", "proa_from_data", "proa_data", "proa_shape_of",
                 "proa_program_input", "proa_program_output", "proa_name_of"):
        getattr(lib, name).restype = c.c_void_p
    lib.proa_error_message.restype = c.c_char_p
    lib.proa_program_input_count.restype = lib.proa_program_output_count.restype = c.c_int64
    lib.proa_executor_run.restype = Tensors
    return lib


class Program:
    def __init__(self, lib, path):
        self.lib = lib
        self.p = lib.proa_program_load(str(path).encode())
        self.check()
        self.e = None

    def check(self):
        if self.lib.proa_error():
            text = self.lib.proa_error_message().decode()
            self.lib.proa_clear_error()
            raise ProaError(text)

    def names(self, what):
        n = getattr(self.lib, f"proa_program_{what}_count")(c.c_void_p(self.p))
        get = getattr(self.lib, f"proa_program_{what}")
        return [c.string_at(self.lib.proa_name_of(c.c_void_p(get(c.c_void_p(self.p), c.c_int64(i))))).decode()
                for i in range(n)]

    def tensor(self, array):
        array = np.ascontiguousarray(array)
        shape = (c.c_int64 * max(array.ndim, 1))(*array.shape)
        return self.lib.proa_from_data(array.ctypes.data_as(c.c_void_p), Ints(array.ndim, shape, None, None),
                                       c.c_int(DTYPES.index(array.dtype.name)))

    def array(self, t):
        t = c.c_void_p(t)
        dtype = DTYPES[self.lib.proa_dtype_of(t)]
        shape = c.cast(self.lib.proa_shape_of(t), c.POINTER(c.c_int64))
        out = np.empty([shape[i] for i in range(self.lib.proa_ndim(t))], dtype)
        self.lib.proa_copy_out(t, out.ctypes.data_as(c.c_void_p), c.c_size_t(out.nbytes))
        self.check()
        return out

    def run(self, *inputs):
        if self.e is None:
            self.e = self.lib.proa_executor_new(c.c_void_p(self.p))
            self.check()
        at = (c.c_void_p * len(inputs))(*[self.tensor(v) for v in inputs])
        out = self.lib.proa_executor_run(c.c_void_p(self.e), Tensors(len(inputs), at))
        self.check()
        return [self.array(out.at[i]) for i in range(out.count)]

    def save(self, prefix):
        self.lib.proa_program_save(c.c_void_p(self.p), str(prefix).encode())
        self.check()

    def close(self):
        if self.e:
            self.lib.proa_executor_free(c.c_void_p(self.e))
        self.lib.proa_program_free(c.c_void_p(self.p))
        self.lib.proa_finish(None)
