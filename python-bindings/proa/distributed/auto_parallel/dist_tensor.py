"""DistTensor: a Tensor of a global shape of which each process of a mesh has a part. Ops on it come to dispatch.py."""
from ... import _core
from ...framework.dtype import dtype_name
from ...framework.parameter import Parameter
from .dispatch import call, dispatch, in_place
from .placement_type import Replicate
from .redistribute import redistribute

_registered = []


def _register():
    """Has the extension hand over calls with such tensors, from the first one on."""
    if not _registered:
        _core.set_dist(DistTensor, dispatch)
        _registered.append(True)


def make(cls, local, mesh, placements, shape, dtype):
    """A tensor of this global shape on `local`, this process's part; None: it has none."""
    _register()
    made = _core.Tensor.__new__(cls, _core.without_memory(list(shape), dtype))
    made._local, made._mesh, made._placements = local, mesh, list(placements)
    made._flows, made._token = False, None  # where this process has no part: whether a gradient flows, and what leads to it
    return made


class DistTensor(_core.Tensor):
    """A tensor that is divided among, or copied to, the processes of a mesh."""

    process_mesh = property(lambda self: self._mesh, doc="The mesh of processes.")
    placements = property(lambda self: list(self._placements), doc="One placement for each dimension of the mesh.")
    _placements_str = property(lambda self: repr(self._placements))
    _local_shape = property(lambda self: None if self._local is None else self._local.shape)

    @property
    def dist_attr(self):
        """Mesh and placements as a DistAttr."""
        from .api import DistAttr
        return DistAttr._of(self)

    def is_dist(self):
        """Whether processes share the tensor: True."""
        return True

    def _local_value(self):
        """This process's part, a Tensor on the same memory."""
        if self._local is None:
            rank = _core.dist_place()[0]
            raise RuntimeError(f"_local_value: process {rank} is not in the tensor's mesh {self._mesh!r} and has no part of it")
        return self._local

    def _is_initialized(self):
        return self._local is not None

    def _placed(self, placements):
        """The tensor with other placements, recorded."""
        if placements == self._placements:
            return self
        local = redistribute(self._local_value(), self.shape, self._mesh, self._placements, placements)
        return make(DistTensor, local, self._mesh, placements, self.shape, self.dtype)

    def _whole(self):
        """The global tensor, on every process of the mesh."""
        return self._placed([Replicate()] * self._mesh.ndim)._local_value()

    def _like(self, local):
        """A tensor whose part is given, such as the gradient's: a Partial's is a Replicate."""
        placements = [Replicate() if p.is_partial() else p for p in self._placements]
        return make(DistTensor, local, self._mesh, placements, self.shape, local.dtype)

    # ---- history ----

    @property
    def stop_gradient(self):
        return not self._flows if self._local is None else self._local.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stop):
        if self._local is None:
            self._flows = not stop
        else:
            self._local.stop_gradient = stop

    is_symbolic = property(lambda self: self._local is None or self._local.is_symbolic,
                           doc="True while a function is captured, and where this process has no part.")
    is_leaf = property(lambda self: True if self._local is None else self._local.is_leaf)
    inplace_version = property(lambda self: self._local_value().inplace_version)
    place = property(lambda self: _core.full([], 0).place if self._local is None else self._local.place)

    @property
    def grad(self):
        grad = None if self._local is None else self._local.grad
        return grad if grad is None or _core.is_rows(grad) else self._like(grad)

    @grad.setter
    def grad(self, value):
        self._local_value().grad = None if value is None else self._part_of(value)

    def _part_of(self, value):
        """This process's part of a value of the global shape, as _like has it."""
        placements = [Replicate() if p.is_partial() else p for p in self._placements]
        if isinstance(value, DistTensor):
            return value._placed(placements)._local_value()
        value = value if isinstance(value, _core.Tensor) else _core.to_tensor(value, dtype=self.dtype)
        if value.shape != self.shape:
            raise ValueError(f"expected a value of shape {self.shape}, the tensor's, got {value.shape}")
        return redistribute(value, self.shape, self._mesh, [Replicate()] * self._mesh.ndim, placements)

    def backward(self, grad_tensor=None, retain_graph=False):
        """Adds to the leaves' gradients. Every process calls it, as those outside of the mesh may have parts of what it is made of."""
        if self._local is None:
            if self._token is not None:
                self._token.backward(None, retain_graph)
            return
        given = None if grad_tensor is None else self._part_of(grad_tensor)
        placements = [Replicate() if p.is_partial() else p for p in self._placements]
        self._placed(placements)._local_value().backward(given, retain_graph)

    def clear_grad(self):
        """Sets the gradient to zero."""
        self._local_value().clear_grad()

    def clear_gradient(self, set_to_zero=True):
        """Sets the gradient to zero, or drops it."""
        self._local_value().clear_gradient(set_to_zero)

    def retain_grads(self):
        """Keeps the gradient of a tensor that is not a leaf."""
        self._local_value().retain_grads()

    def register_hook(self, hook):
        """Calls hook(gradient) in backward; a Tensor that it returns takes the gradient's place."""
        def of_part(grad):
            given = hook(self._like(grad))
            return None if given is None else self._part_of(given)
        return self._local_value().register_hook(of_part)

    def detach(self, *ignored):
        """The same memory without history."""
        return make(DistTensor, self._local_value().detach(), self._mesh, self._placements, self.shape, self.dtype)

    def clone(self, *ignored):
        """A copy, recorded."""
        return make(DistTensor, self._local_value().clone(), self._mesh, self._placements, self.shape, self.dtype)

    def contiguous(self, *ignored):
        """Itself: parts are used as they are."""
        return self

    def is_contiguous(self, *ignored):
        """Whether this process's part is row-major without gaps."""
        return self._local_value().is_contiguous()

    # ---- values ----

    def numpy(self, *ignored, **also_ignored):
        """The global tensor's elements; every process of the mesh calls it."""
        recording = _core.set_recording(False)
        try:
            return self._whole().numpy()
        finally:
            _core.set_recording(recording)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, *args, **keywords):
        return self._whole().__dlpack__(*args, **keywords)

    def item(self, *args):
        """One element as a Python number."""
        return self._whole().item(*args)

    def tolist(self):
        """The elements as nested lists."""
        return self._whole().tolist()

    def astype(self, dtype):
        """The elements in another dtype."""
        return _core.cast(self, dtype)

    def set_value(self, value):
        """Overwrites the elements by those of a value of the global shape."""
        recording = _core.set_recording(False)
        try:
            placed = self._part_of(value)
            if any(p.is_partial() for p in self._placements):
                shape, placements = self.shape, [Replicate() if p.is_partial() else p for p in self._placements]
                placed = redistribute(placed, shape, self._mesh, placements, self._placements)
            self._local_value().set_value(placed)
        finally:
            _core.set_recording(recording)

    def copy_(self, other, blocking=True):
        """Overwrites the elements; returns itself."""
        self.set_value(other)
        return self

    def _become(self, other):
        """Shows another tensor from now on; an optimizer's part of it does, too."""
        if not isinstance(other, DistTensor):
            raise TypeError("a tensor on a mesh of processes can only become another one; shard_tensor it first")
        _core.Tensor._become(self, other)
        self._mesh, self._placements = other._mesh, list(other._placements)
        if self._local is not None and other._local is not None:
            self._local._become(other._local)
        else:
            self._local = other._local
        return self

    def gradient(self):
        """The gradient's elements, or None."""
        return None if self.grad is None else self.grad.numpy()

    def cpu(self):
        """The tensor in the CPU's memory: itself, or a copy."""
        return make(DistTensor, self._local_value().cpu(), self._mesh, self._placements, self.shape, self.dtype)

    def __bool__(self):
        return bool(self._whole())

    def __int__(self):
        return int(self._whole())

    def __index__(self):
        return self._whole().__index__()

    def __float__(self):
        return float(self._whole())

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a 0-D tensor")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        return call("getitem", _core.Tensor.__getitem__, (self, key), {})

    def __setitem__(self, key, value):
        in_place(_core.Tensor.__setitem__, (self, key, value), {})

    def __deepcopy__(self, memo):
        made = memo[id(self)] = self.detach().clone()
        made.stop_gradient = self.stop_gradient
        return made

    def __reduce_ex__(self, protocol):
        raise TypeError("a tensor that is divided among processes is not pickled: use paddle.distributed.save_state_dict, or "
                        "reshard it to Replicate and take its _local_value()")

    T = property(lambda self: _core.transpose(self, list(range(self.ndim))[::-1]))
    data = property(lambda self: self, lambda self, value: self.set_value(value))

    def _text(self, prefix):
        head = (f"{prefix}(shape={self.shape}, dtype={dtype_name(self.dtype)}, place={self.place}, stop_gradient={self.stop_gradient}, "
                f"process_mesh={self._mesh!r}, placements={self._placements}, GlobalDenseTensor")
        if self._local is None:
            return head + " Not initialized)"
        from ...tensor.to_string import tensor_to_string
        recording = _core.set_recording(False)
        try:
            return head + "=\n" + tensor_to_string(self._whole(), prefix).split("\n", 1)[1]
        finally:
            _core.set_recording(recording)

    def __repr__(self):
        return self._text("Tensor")

    __str__ = __repr__


def _name_both(self, name):
    _core.Tensor.name.__set__(self, name)
    if self._local is not None:
        self._local.name = name


DistTensor.name = property(_core.Tensor.name.__get__, _name_both, doc="Name of a parameter or variable.")


class DistParameter(DistTensor, Parameter):
    """A parameter that is divided among, or copied to, the processes of a mesh. Optimizers update each process's part."""

    def __new__(cls, local, mesh, placements, shape, dtype, **described):
        return make(cls, local, mesh, placements, shape, dtype)

    def __init__(self, local, mesh, placements, shape, dtype, **described):
        trainable = described.get("trainable", True)
        if local is not None:
            self._local = Parameter._share(local.detach())
            self._local._describe(**described)
            self._local.split_group = _division(mesh, placements)
        self._describe(**{**described, "name": self._local.name if local is not None else described.get("name")})
        self.stop_gradient = not trainable

    def __deepcopy__(self, memo):
        described = {"trainable": self.trainable, "optimize_attr": self.optimize_attr, "regularizer": self.regularizer,
                     "need_clip": self.need_clip}
        made = DistParameter(self._local.detach().clone(), self._mesh, self._placements, self.shape, self.dtype, **described)
        memo[id(self)] = made
        return made

    def __repr__(self):
        return "Parameter containing:\n" + self._text("Tensor")

    __str__ = __repr__


def _division(mesh, placements):
    """The number of the group whose processes have different pieces of a tensor; None if all have the whole."""
    dims = [at for at, p in enumerate(placements) if p.is_shard() and mesh.shape[at] > 1]
    if not dims:
        return None
    return mesh.group(*dims).id


def trained(parameters):
    """The tensors that an optimizer updates: of parameters on a mesh, this process's parts."""
    made = []
    for p in parameters:
        if not isinstance(p, DistTensor):
            made.append(p)
        elif p._local is not None:
            made.append(p._local)
    return made


def _operators():
    import operator
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"):
        plain, word = getattr(operator, name), name.rstrip("_")

        def forward(self, other, f=plain, word=word):
            return call(f"operator.{word}", f, (self, other), {})

        def reflected(self, other, f=plain, word=word):
            return call(f"operator.{word}", f, (other, self), {})

        setattr(DistTensor, f"__{word}__", forward)
        setattr(DistTensor, f"__r{word}__", reflected)
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr(DistTensor, f"__{name}__", lambda self, other, f=getattr(operator, name), n=name: call(f"operator.{n}", f, (self, other), {}))
    for name in ("neg", "abs", "invert"):
        setattr(DistTensor, f"__{name}__", lambda self, f=getattr(operator, name), n=name: call(f"operator.{n}", f, (self,), {}))
    DistTensor.__hash__ = _core.Tensor.__hash__


_operators()
