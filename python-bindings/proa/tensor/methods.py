"""Tensor methods that are no functions of the paddle namespace: dim, to, cpu, gradient, hooks, protocols, …"""
import functools

from .. import _core
from .._errors import of_kind
from ..autograd.hooks import register_hook
from ..framework import selected_rows
from . import sharing
from ._tools import Tensor, dtype_name

_SIZES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4,
          "complex64": 8, "int64": 8, "float64": 8, "complex128": 16}


def dim(var):
    """The number of axes."""
    return len(var.shape)


def logsigmoid(self, name=None):
    """log(1 / (1 + exp(−x))), as Paddle 2.0 has it beside nn.functional.log_sigmoid."""
    from ..nn.functional import log_sigmoid
    return log_sigmoid(self)


def sums(input, out=None):
    """fluid.layers.sums, as Paddle 2.0 has it beside add_n."""
    from ..fluid.layers import sums
    return sums(input, out)


def unique_with_counts(x, dtype="int32"):
    """fluid.layers.unique_with_counts, as Paddle 2.0 has it beside unique."""
    from ..fluid.layers import unique_with_counts
    return unique_with_counts(x, dtype)


def _same(self):
    return self


_lods = {}  # id of a tensor → (weak reference that ends the entry, offsets)


def _get_lod(self):
    """The offsets of the levels of sequences that the rows form (Paddle's LoD), or None."""
    entry = _lods.get(id(self))
    return entry[1] if entry else None


def _set_lod(self, lod):
    import weakref
    place = id(self)
    if lod:
        _lods[place] = weakref.ref(self, lambda _: _lods.pop(place, None)), [list(level) for level in lod]
    else:
        _lods.pop(place, None)


class _Held:
    """A tensor as what a scope's variable holds: its elements, and the sequences (LoD) of its rows."""

    def __init__(self, tensor):
        self.value = tensor

    @property
    def lod(self):
        return self.value._lod or []

    @lod.setter
    def lod(self, lod):
        self.value._lod = lod

    def assign(self, tensor):
        """Takes over a tensor's elements, shape and dtype."""
        if self.value.shape == tensor.shape and self.value.dtype == tensor.dtype:
            self.value.set_value(tensor)
        else:
            self.value._become(tensor)


def get_tensor(self):
    """The tensor as Paddle's DenseTensor: what can be set(), and has sequences (LoD)."""
    from ..static.scope import ScopeTensor
    return ScopeTensor(owner=_Held(self))


def cpu(self):
    """The tensor in the CPU's memory: itself, or a copy."""
    return _core.to_device(self, "cpu")


def cuda(self, device_id=None, blocking=True):
    """The tensor in a GPU's memory: itself, or a copy; an error where there is none."""
    if device_id is None:
        here = _core.get_device()
        device_id = int(here[4:]) if here.startswith("gpu:") else 0
    return _core.to_device(self, f"gpu:{device_id}")


def _need_tensor(who, value):
    if not hasattr(value, "stop_gradient"):
        raise ValueError(f"(InvalidArgument) {who}: expected a Tensor, got {type(value).__name__}")


def reconstruct_from_(self, other, *_, **__):
    """Makes this tensor the other one: its memory, its history."""
    _need_tensor("reconstruct_from_", other)
    self._become(other)


def pin_memory(self, blocking=True):
    """The tensor in the CPU's memory, to be copied to a GPU; an error where there is none.

    Copies to a GPU go through page-locked memory of Proa's own, so that the tensor's need not be.
    """
    from ..device import cuda as gpus
    if not gpus.device_count():
        raise RuntimeError("Tensor.pin_memory: there is no CUDA device")
    return self.cpu()


def _is_dtype(value):
    if isinstance(value, _core.dtype):
        return True
    return dtype_name(value) in _SIZES


def to(self, *args, **kwargs):
    """The tensor on another device, with another dtype, or with both of another tensor."""
    if not 0 < len(args) + len(kwargs) < 4:
        raise TypeError(f"Tensor.to: expected 1 to 3 arguments, got {len(args) + len(kwargs)}")
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    kwargs.pop("blocking", None)
    other = kwargs.pop("other", None)
    if kwargs:
        raise TypeError(f"Tensor.to: unexpected keyword arguments {sorted(kwargs)}")
    for value in args:
        if isinstance(value, Tensor):
            other = value
        elif isinstance(value, bool) or value is None:
            continue
        elif _is_dtype(value):
            dtype = value
        else:
            device = value
    if other is not None:
        dtype = other.dtype
    if device is None and other is not None:
        device = other.place
    if device is not None:
        try:
            self = _core.to_device(self, device)
        except RuntimeError as e:
            raise ValueError(f"Tensor.to: {e}") from None
    return self if dtype is None or dtype_name(dtype) == dtype_name(self.dtype) else _core.cast(self, dtype)


def to_sparse_coo(self, sparse_dim):
    """The elements that are not zero (of the first sparse_dim dims: slices), with their coordinates."""
    from ..sparse.tensor import dense_to_coo
    return dense_to_coo(self, sparse_dim)


def to_sparse_csr(self):
    """The elements of a matrix, or of a batch of them, that are not zero, row by row."""
    from ..sparse.tensor import dense_to_csr
    return dense_to_csr(self)


def is_same_shape(self, y, *_, **__):
    """Whether y, sparse or dense, has the same shape."""
    _need_tensor("is_same_shape", y)
    return list(self.shape) == list(y.shape)


def get_map_tensor(self, *_, **__):
    """Of Paddle's tensors of vocabularies, which Proa does not have."""
    raise SystemError("(Fatal) get_map_tensor: the tensor holds numbers, and no vocabulary")


def set_string_list(self, value, *_, **__):
    """Of Paddle's tensors of texts, which Proa does not have."""
    if not isinstance(value, list):
        raise of_kind(f"set_string_list: value must be a list, got {type(value).__name__}")
    raise NotImplementedError("(Unimplemented) set_string_list: a tensor holds numbers; keep texts in a list")


def set_vocab(self, value, *_, **__):
    """Of Paddle's tensors of vocabularies, which Proa does not have."""
    if not isinstance(value, dict):
        raise of_kind(f"set_vocab: value must be a dict, got {type(value).__name__}")
    raise NotImplementedError("(Unimplemented) set_vocab: a tensor holds numbers; keep a vocabulary in a dict")


def _of_sparse(name, text):
    def refuse(self):
        raise SystemError(f"(Fatal) Tensor.{name}: the tensor is dense; to_sparse_coo or to_sparse_csr make it sparse")

    def refuse_all(self, *args, **kwargs):  # Paddle looks at the tensor before the arguments
        refuse(self)
    method = refuse if name in ("coalesce", "values") else refuse_all
    method.__name__ = method.__qualname__ = name
    method.__doc__ = text
    return method


SPARSE = {name: _of_sparse(name, f"{text} of a sparse tensor.") for name, text in (
    ("coalesce", "The coalesced form"), ("cols", "The columns"), ("crows", "Where rows begin"), ("indices", "The coordinates"),
    ("nnz", "The number of stored values"), ("values", "The stored values"))}


def stft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=True, name=None):
    """paddle.signal.stft."""
    from .. import signal
    return signal.stft(x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided)


def istft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=True,
          length=None, return_complex=False, name=None):
    """paddle.signal.istft."""
    from .. import signal
    return signal.istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)


def _never(self):
    return False


def md5sum(self):
    """The MD5 sum of the tensor's bytes."""
    import hashlib
    return hashlib.md5(self.numpy().tobytes()).hexdigest()


def _deepcopy(self, memo):
    """A copy of the elements, without history."""
    from ..framework import unique_name
    recording = _core.set_recording(False)
    try:
        new = memo[id(self)] = _core.assign(self)
    finally:
        _core.set_recording(recording)
    new.name = self.name + unique_name.generate("_deepcopy")
    new.stop_gradient, new.persistable = self.stop_gradient, self.persistable
    return new


def _restore(value, dtype, stop_gradient):
    """A pickled tensor."""
    new = _core.to_tensor(value, dtype=dtype)
    new.stop_gradient = stop_gradient
    return new


def _reduce(self, protocol):
    if _core.is_rows(self):
        raise TypeError("cannot pickle SelectedRows; pickle _core.rows_to_dense of it, or its rows and values")
    wide = _core.cast(self.detach(), _core.float32) if self.dtype == _core.bfloat16 else self
    return _restore, (wide.numpy(), dtype_name(self.dtype), self.stop_gradient)


def _array(self, dtype=None, copy=None):
    """The protocol of NumPy: a new array of the elements."""
    value = self.numpy()
    return value if dtype is None else value.astype(dtype, copy=False)


def _dlpack(self, *, stream=None, **options):
    """The protocol of NumPy and others: a capsule on the tensor's memory."""
    return _core.to_dlpack(self)


def _dlpack_device(self):
    return 1, 0  # kDLCPU


def get_strides(self):
    """Strides in elements, one for each axis."""
    return self.strides


def detach_(self):
    """Forgets what made the tensor, which wants no gradient from now on."""
    self._become(self.detach())
    self.stop_gradient = True
    return self


# Attributes that only tensors of several processes have.
_DISTRIBUTED = ("dist_attr", "num_shard", "placements", "process_mesh")


def _nothing(self):
    return None


def _grad(self):
    return self.grad


def _layout(self):
    """Paddle's word for tensors as users see them."""
    return "NCHW"


def _zero(self):
    return 0


def _type(self):
    return _core.dtype.SELECTED_ROWS if not self.is_symbolic and self.is_selected_rows() else _core.dtype.LOD_TENSOR


def _block(self):
    from ..static.variable import block_of
    return block_of(self)


def grad_ivar(x):
    """The gradient as a tensor, or None: its name of 2.0."""
    return x.grad


def _ignoring(method):
    """A method without arguments that does not look at any, as Paddle's methods of C++ do not."""
    @functools.wraps(method)
    def call(self, *_, **__):
        return method(self)
    return call


METHODS = {"get_strides": get_strides, "_grad_ivar": grad_ivar, "detach_": detach_, "data": property(_same), "grad_": property(_grad),
           "layout": property(_layout), "type": property(_type), "offset": property(_zero), **dict.fromkeys(_DISTRIBUTED, property(_nothing)),
           "logsigmoid": logsigmoid, "sums": sums, "unique_with_counts": unique_with_counts,
           "dim": dim, "ndimension": dim, "cpu": cpu, "cuda": cuda,
           "reconstruct_from_": reconstruct_from_,
           "pin_memory": pin_memory, "to": to, "block": property(_block), "value": _same, "get_tensor": get_tensor, "_lod": property(_get_lod, _set_lod),
           **SPARSE, "to_sparse_coo": to_sparse_coo, "to_sparse_csr": to_sparse_csr, "to_dense": _same,
           "get_map_tensor": get_map_tensor, "set_string_list": set_string_list, "set_vocab": set_vocab,
           "is_same_shape": is_same_shape, "is_sparse": _never, "is_sparse_coo": _never, "is_sparse_csr": _never, "is_dist": _never,
           "stft": stft, "istft": istft, "_md5sum": md5sum, **selected_rows.METHODS, **sharing.METHODS,
           "register_hook": register_hook, "__deepcopy__": _deepcopy, "__array__": _array, "__dlpack__": _dlpack,
           "__dlpack_device__": _dlpack_device}
METHODS.update((name, _ignoring(METHODS[name])) for name in (
    "detach_", "get_selected_rows", "get_strides", "get_tensor", "is_dense", "is_dist", "is_selected_rows", "is_sparse", "is_sparse_coo",
    "is_sparse_csr", "to_sparse_csr"))
_core.Tensor.__reduce_ex__ = _reduce
