"""Parameter: a tensor that optimizers update, and the one place that makes parameters for layers."""
import copy
import warnings

from .. import _core
from .._errors import of_kind
from . import mode, unique_name
from .dtype import dtype_name, get_default_dtype, to_dtype
from .param_attr import ParamAttr, WeightNormParamAttr


class Parameter(_core.Tensor):
    """A named, persistable leaf tensor of a layer; `trainable` says whether it wants a gradient.

    >>> import proa as paddle
    >>> paddle.nn.Linear(2, 3).weight.trainable
    True
    """

    def __new__(cls, shape, dtype, **kwargs):
        if shape is None or dtype is None:
            raise ValueError("Parameter: shape and dtype must be given")
        shape = [int(n) for n in shape]
        if any(n < 0 for n in shape):
            raise ValueError(f"Parameter: no dimension of shape may be negative, got {shape}")
        return cls._share(_core.full(shape, 0.0, to_dtype(dtype)))

    def __init__(self, shape, dtype, **kwargs):
        self._describe(**kwargs)

    @classmethod
    def _share(cls, tensor):
        """A parameter object on the same data as tensor; the caller describes it."""
        return _core.Tensor.__new__(cls, tensor)

    @classmethod
    def from_tensor(cls, tensor, **kwargs):
        """A parameter that holds tensor's data."""
        param = cls._share(tensor.detach())
        param._describe(**kwargs)
        return param

    def _describe(self, name=None, trainable=True, optimize_attr=None, regularizer=None, do_model_average=None,
                  need_clip=True, is_distributed=False, **extra):
        self.name = name or unique_name.generate("_eager_param_base")
        self.persistable = True
        self.stop_gradient = not trainable
        self.optimize_attr = {"learning_rate": 1.0} if optimize_attr is None else optimize_attr
        self.regularizer = regularizer
        self.do_model_average = do_model_average
        self.need_clip = need_clip
        self.is_distributed = is_distributed
        for key, value in extra.items():
            setattr(self, key, value)

    @property
    def trainable(self):
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable):
        if not isinstance(trainable, bool):
            raise ValueError(f"Parameter.trainable must be a bool, got {trainable!r}")
        self.stop_gradient = not trainable

    def initialize(self):
        """Sets the initial values of a parameter that was made inside paddle.LazyGuard; others have theirs: AssertionError."""
        raise AssertionError(f"the parameter {self.name!r} has its initial values: initialize() is for those of paddle.LazyGuard")

    def __str__(self):
        return "Parameter containing:\n" + _core.Tensor.__repr__(self)

    __repr__ = __str__

    def __deepcopy__(self, memo):
        state = copy.deepcopy(self.__dict__, memo)
        recording = _core.set_recording(False)
        try:
            new = Parameter._share(_core.assign(self))
        finally:
            _core.set_recording(recording)
        state.update(name=self.name + unique_name.generate("_deepcopy"), trainable=self.trainable)
        new._describe(**state)
        memo[id(self)] = new
        return new

    def __reduce_ex__(self, protocol):
        state = dict(self.__dict__, name=self.name, trainable=self.trainable)
        return _restore, (_core.Tensor.numpy(self), dtype_name(self.dtype), state)


def _restore(value, dtype, state):
    """A pickled parameter."""
    param = Parameter._share(_core.to_tensor(value, dtype=dtype))
    param._describe(**state)
    return param


def make_parameter(owner, attr, shape, dtype=None, is_bias=False, default_initializer=None):
    """The parameter that attr describes, named after its owner; None if attr is False or an empty list.

    An initializer in attr comes first, then the global one, then default_initializer, then Xavier (a bias: zeros).
    """
    attr = ParamAttr._to_attr(copy.deepcopy(attr))
    if not attr:
        return None
    if isinstance(attr, list):
        raise AssertionError(f"the attribute of a parameter must be one ParamAttr, got a list of {len(attr)}")
    from ..nn import initializer as init
    for i, size in enumerate(shape):
        if not size > 0:  # a tensor or a text raises by itself
            raise AssertionError(f"every dimension of a parameter must be larger than 0, but dimension {i} of "
                                 f"shape {list(shape)} is {size}")
    if any(isinstance(n, (bool, float)) for n in shape):
        raise of_kind(f"the shape of a parameter must be ints, got {list(shape)}")
    shape = [int(n) for n in shape]
    dtype = to_dtype(dtype or get_default_dtype())
    make = attr.initializer or init.global_initializer(is_bias) or default_initializer
    if make is None:
        if dtype_name(dtype) not in ("float16", "bfloat16", "float32", "float64", "int8"):
            raise TypeError("a parameter without an initializer must be float16, bfloat16, float32 or float64, got "
                            f"{dtype_name(dtype)}: set default_initializer")
        make = getattr(init, init.table.DEFAULT_BIAS if is_bias else init.table.DEFAULT_WEIGHT)()
    building = mode.building()
    if isinstance(attr, WeightNormParamAttr):
        if not building:
            raise TypeError("WeightNormParamAttr is for programs: use paddle.nn.utils.weight_norm(layer) with layers")
        from ..static.weight_norm import make_weight_norm
        return make_weight_norm(owner, attr, shape, dtype, make)
    name = attr.name or unique_name.generate(f"{owner}.{'b' if is_bias else 'w'}")
    if building:
        from ..static.variable import make_variable_parameter
        return make_variable_parameter(name, shape, dtype, attr, make)
    if unique_name.dygraph_parameter_name_checker(name):
        raise ValueError(f"the parameter name {name!r} is in use: names given by ParamAttr must differ")
    if isinstance(make, init.Assign) and make.shape() != shape:
        warnings.warn(f"the parameter {name!r} takes the shape {make.shape()} of its initial values, as in Paddle, not "
                      f"{shape}", stacklevel=3)
        shape = make.shape()
    described = {"name": name, "trainable": attr.trainable, "optimize_attr": {"learning_rate": attr.learning_rate},
                 "regularizer": attr.regularizer, "do_model_average": attr.do_model_average, "need_clip": attr.need_clip}
    if init.lazy_init.lazy():
        return init.lazy_init.LazyParameter(shape, dtype, make, **described)
    param = Parameter(shape, dtype, **described)
    make(param)
    return param


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter that belongs to no layer.

    >>> import proa as paddle
    >>> paddle.create_parameter([2, 3], "float32").shape
    [2, 3]
    """
    if not isinstance(shape, (list, tuple, _core.Tensor)) or _core.is_capturing() and isinstance(shape, _core.Tensor):
        raise TypeError(f"create_parameter: shape must be a list or tuple of ints, got {shape!r}")
    if not dtype:
        raise TypeError(f"create_parameter: dtype must be a dtype, got {dtype!r}")
    if attr is None:
        attr = ParamAttr(name=name)
    return make_parameter(unique_name.generate("create_parameter"), attr, shape, dtype, is_bias, default_initializer)
