"""nn.Layer: the base of every layer. Attribute lookup and the call itself are in C (_core.LayerBase)."""
import copy
import re
import warnings
from collections import OrderedDict

from ... import _core
from ...framework import unique_name
from ...framework.dtype import dtype_name, to_dtype
from ...framework.parameter import Parameter, make_parameter

__all__ = ["Layer"]

in_declarative_mode = in_to_static_mode = _core.captures_function  # True while a function is captured
_CASE = re.compile(r"(.)([A-Z][a-z]+)"), re.compile(r"([a-z])([A-Z])")
_REGISTRIES = ("_parameters", "_sub_layers", "_buffers", "_forward_pre_hooks", "_forward_post_hooks")
_FLOATING = frozenset(("float16", "bfloat16", "float32", "float64"))
_set = object.__setattr__
changes = [0]  # grows when a layer's mode, or a parameter, sublayer or buffer of one, is set: programs hold these


def _snake(name):
    for pattern in _CASE:
        name = pattern.sub(r"\1_\2", name)
    return name.lower()


def _indented(text):
    return text.replace("\n", "\n  ")


class HookRemoveHelper:
    """The handle that registering a hook returns: remove() takes the hook out again."""

    next_hook_id = 0

    def __init__(self, hooks):
        self._hooks = hooks
        self._hook_id = HookRemoveHelper.next_hook_id
        HookRemoveHelper.next_hook_id += 1

    def remove(self):
        self._hooks.pop(self._hook_id, None)


def _hooked(hooks, hook):
    handle = HookRemoveHelper(hooks)
    hooks[handle._hook_id] = hook
    return handle


def _call_built(self, *inputs, **kwargs):
    """__call__ of the classes that define _build_once, so that no other class pays for looking."""
    if not self._forward_pre_hooks and not self._forward_post_hooks:
        self._build_once(*inputs, **kwargs)
    return _core.LayerBase.__call__(self, *inputs, **kwargs)


class Layer(_core.LayerBase):
    """Base of layers: holds parameters, buffers and sublayers, and computes in forward().

    >>> import proa as paddle
    >>> class Net(paddle.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = paddle.nn.Linear(4, 2)
    ...
    ...     def forward(self, x):
    ...         return paddle.tanh(self.fc(x))
    >>> net = Net()
    >>> net(paddle.ones([3, 4])).shape
    [3, 2]
    >>> [name for name, _ in net.named_parameters()]
    ['fc.weight', 'fc.bias']
    """

    def __init__(self, name_scope=None, dtype="float32"):
        for name in _REGISTRIES:
            _set(self, name, OrderedDict())
        state = self.__dict__
        state["training"] = True
        if not isinstance(name_scope, (str, type(None))):
            raise TypeError(f"{type(self).__name__}: name_scope must be a string, got {type(name_scope).__name__}")
        state["_full_name"] = unique_name.generate(name_scope or _snake(type(self).__name__))
        state["_dtype"] = dtype
        state["_non_persistable_buffer_names_set"] = set()
        state["_state_dict_hooks"] = OrderedDict()

    @property
    def _helper(self):
        """What Paddle's own layers make parameters and variables with, and append operators."""
        from ...fluid.layer_helper import LayerObjectHelper
        return LayerObjectHelper(self._full_name)

    # calling: _core.LayerBase goes straight to forward() unless there are hooks

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "_build_once" in cls.__dict__ and "__call__" not in cls.__dict__:
            cls.__call__ = _call_built

    def _build_once(self, *inputs, **kwargs):
        """Runs before forward, for a subclass to make what depends on the inputs; does nothing here."""

    def forward(self, *inputs, **kwargs):
        """Computes the layer's outputs: every subclass writes its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def backward(self, *inputs):
        """Layers have none: gradients follow from forward()."""
        raise ValueError("a layer has no backward of its own: call backward() of the loss")

    def _dygraph_call_func(self, *inputs, **kwargs):
        """A call with hooks: those before forward, forward, those behind it."""
        for hook in tuple(self._forward_pre_hooks.values()):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        self._build_once(*inputs, **kwargs)
        outputs = self.forward(*inputs, **kwargs)
        for hook in tuple(self._forward_post_hooks.values()):
            changed = hook(self, inputs, outputs)
            if changed is not None:
                outputs = changed
        return outputs

    def register_forward_pre_hook(self, hook):
        """hook(layer, inputs) runs before forward; what it returns (not None) replaces the inputs."""
        return _hooked(self._forward_pre_hooks, hook)

    def register_forward_post_hook(self, hook):
        """hook(layer, inputs, outputs) runs after forward; what it returns (not None) replaces the outputs."""
        return _hooked(self._forward_post_hooks, hook)

    def register_state_dict_hook(self, hook):
        """hook(state_dict) runs at the end of state_dict(); what it returns (not None) replaces it."""
        return _hooked(self._state_dict_hooks, hook)

    # modes

    def train(self):
        """Sets this layer and its sublayers to training."""
        self._set_training(True)

    def eval(self):
        """Sets this layer and its sublayers to evaluation: dropout is off, batch norm uses its statistics."""
        self._set_training(False)

    def _set_training(self, mode):
        for layer in self.sublayers(include_self=True):
            layer.training = mode

    def apply(self, fn):
        """Calls fn with every sublayer, then with this layer; returns this layer."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    def full_name(self):
        """The layer's unique name, such as linear_0."""
        return self._full_name

    # making parameters and tensors

    def create_parameter(self, shape, attr=None, dtype=None, is_bias=False, default_initializer=None):
        """A parameter named after this layer; assign it to an attribute to make it one of the layer's.

        Without attr or default_initializer a weight is Xavier-uniform and a bias zero; attr=False returns None.
        """
        return make_parameter(self._full_name, None if isinstance(attr, str) and not attr else attr, shape, dtype, is_bias,
                              default_initializer)

    def create_tensor(self, name=None, persistable=None, dtype=None):
        """A tensor, still empty, named after this layer."""
        tensor = _core.full([0], 0.0, to_dtype(dtype or "float32"))
        tensor.name = (f"{self._full_name}.{name}" if name is not None
                       else unique_name.generate(f"{self._full_name}._generated_var"))
        tensor.persistable = bool(persistable)
        return tensor

    create_variable = create_tensor

    def add_parameter(self, name, parameter):
        """Adds a parameter (or None) under a name; returns it."""
        self._check_name("parameter", name, self._parameters)
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"add_parameter: parameter must be a Parameter, got {type(parameter).__name__}")
        self._parameters[name] = parameter
        changes[0] += 1
        return parameter

    def add_sublayer(self, name, sublayer):
        """Adds a sublayer (or None) under a name; returns it."""
        if sublayer is not None and not isinstance(sublayer, Layer):
            raise AssertionError(f"add_sublayer: sublayer {name!r} must be a Layer, got {type(sublayer).__name__}")
        if self._sub_layers is None:
            raise ValueError(f"super().__init__() must run before a sublayer is added to {type(self).__name__}")
        self._check_cycle(name, sublayer)
        self._sub_layers[name] = sublayer
        changes[0] += 1
        return sublayer

    def register_buffer(self, name, tensor, persistable=True):
        """Adds a tensor that is part of the layer's state (unless persistable=False) yet is not trained."""
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, _core.Tensor):
            raise TypeError(f"register_buffer: tensor must be a Tensor, got {type(tensor).__name__}")
        self._buffers[name] = tensor
        changes[0] += 1
        if persistable:
            self._non_persistable_buffer_names_set.discard(name)
        else:
            self._non_persistable_buffer_names_set.add(name)

    def _check_name(self, kind, name, registry):
        if registry is None:
            raise ValueError(f"super().__init__() must run before a {kind} is added to {type(self).__name__}")
        if not isinstance(name, str):
            raise TypeError(f"the name of a {kind} must be a string, got {type(name).__name__}")
        if "." in name or not name:
            raise KeyError(f"the name of a {kind} must be neither empty nor contain '.', got {name!r}")
        if name not in registry and hasattr(self, name):
            raise KeyError(f"the {kind} {name!r} would hide an attribute of {type(self).__name__}")

    def _check_cycle(self, name, sublayer):
        """A layer may be in several others, but not in itself: every walk over the tree would be endless."""
        if sublayer is self or sublayer is not None and sublayer._sub_layers and any(
                layer is self for layer in sublayer.sublayers()):
            raise ValueError(f"{type(self).__name__}: sublayer {name!r} contains this layer, which would then contain "
                             "itself; keep a reference that is no sublayer, such as a list of one, instead")

    # walking

    def children(self):
        """The immediate sublayers."""
        for _, layer in self.named_children():
            yield layer

    def named_children(self):
        """(name, layer) of the immediate sublayers, each once."""
        seen = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def sublayers(self, include_self=False, include_sublayers=True):
        """All layers below this one, outermost first; include_sublayers=False, of 2.0: only its own."""
        if not include_sublayers:
            return [self] * include_self + [layer for layer in self._sub_layers.values() if layer is not None]
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_sublayers(self, prefix="", include_self=False, layers_set=None):
        """(name, layer) of all layers below this one, each once."""
        if layers_set is None:
            layers_set = set()
        if include_self and self not in layers_set:
            layers_set.add(self)
            yield prefix, self
        for key, layer in self._sub_layers.items():
            if layer is not None:
                yield from layer.named_sublayers(f"{prefix}.{key}" if prefix else key, True, layers_set)

    def _named(self, registry, prefix, include_sublayers):
        seen = set()
        layers = self.named_sublayers(prefix, include_self=True) if include_sublayers else [(prefix, self)]
        for where, layer in layers:
            for key, tensor in getattr(layer, registry).items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{where}.{key}" if where else key, tensor

    def parameters(self, include_sublayers=True):
        """The parameters of this layer and its sublayers."""
        return [param for _, param in self.named_parameters(include_sublayers=include_sublayers)]

    def named_parameters(self, prefix="", include_sublayers=True):
        """(name, parameter) of this layer and its sublayers, each once."""
        return self._named("_parameters", prefix, include_sublayers)

    def buffers(self, include_sublayers=True):
        """The buffers of this layer and its sublayers."""
        return [buffer for _, buffer in self.named_buffers(include_sublayers=include_sublayers)]

    def named_buffers(self, prefix="", include_sublayers=True):
        """(name, buffer) of this layer and its sublayers, each once."""
        return self._named("_buffers", prefix, include_sublayers)

    def clear_gradients(self):
        """Clears the gradients of the trainable parameters."""
        for param in self.parameters():
            if param.trainable:
                param.clear_gradient()

    # state

    def state_dict(self, destination=None, include_sublayers=True, structured_name_prefix="", use_hook=True):
        """Parameters and persistable buffers by structured name, such as '0.weight'. The tensors are the layer's own."""
        return self._state_dict_impl(destination, include_sublayers, structured_name_prefix, False, use_hook)

    def to_static_state_dict(self, destination=None, include_sublayers=True, structured_name_prefix="", use_hook=True):
        """state_dict() with the buffers that are not persistable, too."""
        return self._state_dict_impl(destination, include_sublayers, structured_name_prefix, True, use_hook)

    def _state_dict_impl(self, destination=None, include_sublayers=True, structured_name_prefix="",
                         include_non_persistable_buffer=False, use_hook=True):
        state, prefix = OrderedDict() if destination is None else destination, structured_name_prefix
        for name, param in self._parameters.items():
            if param is not None:
                state[prefix + name] = param
        for name, buffer in self._buffers.items():
            if buffer is not None and (include_non_persistable_buffer or name not in self._non_persistable_buffer_names_set):
                state[prefix + name] = buffer
        if include_sublayers:
            for name, layer in self._sub_layers.items():
                if layer is not None:
                    state = layer._state_dict_impl(state, True, f"{prefix}{name}.", include_non_persistable_buffer,
                                                   use_hook)
        if use_hook:
            for hook in self._state_dict_hooks.values():
                changed = hook(state)
                if changed is not None:
                    state = changed
        return state

    def set_state_dict(self, state_dict, use_structured_name=True):
        """Sets parameters and persistable buffers from a dict of tensors or arrays.

        Keys are structured names, or the tensors' own names if use_structured_name is False. Entries that are missing
        or have another shape are skipped with a warning. Returns the missing and the unexpected keys.
        """
        missing, matched, found = [], set(), []
        for name, own in self._state_dict_impl(use_hook=False).items():
            key = name if use_structured_name else own.name
            value = state_dict.get(key)
            wrong = None
            if value is None:
                wrong = f"{key} is not found in the provided dict."
            elif isinstance(value, (list, tuple)):
                value = _core.to_tensor(value, dtype=own.dtype)
            if wrong is None and list(value.shape) != list(own.shape):
                wrong = f"{key} receives a shape {list(value.shape)}, but the expected shape is {list(own.shape)}."
            if wrong is None:
                matched.add(key)
                found.append((own, value))
            else:
                missing.append(key)
                warnings.warn(f"Skip loading for {name}. {wrong}", stacklevel=2)
        for own, value in found:
            own.set_value(value)
        return missing, [key for key in state_dict if key not in matched]

    set_dict = set_state_dict
    load_dict = set_state_dict

    # conversion

    def to(self, device=None, dtype=None, blocking=None):
        """Moves and casts parameters, buffers and gradients in place; returns this layer."""
        if device is not None and not isinstance(device, (str, _core.Place)):
            raise ValueError(f"Layer.to: device must be a string or a place, got {type(device).__name__}")
        if blocking is not None and not isinstance(blocking, bool):
            raise TypeError(f"Layer.to: blocking must be True, False or None, got {blocking!r}")
        if device is not None:
            self._move(device)
        if dtype is not None:
            self._each(lambda layer: layer._cast(dtype, floating_only=False))
        return self

    def _each(self, fn):
        """apply(), for the methods that must work where a subclass has its own apply."""
        for layer in self.children():
            layer._each(fn)
        fn(self)

    def _move(self, device):
        """Moves the tensors of this layer and those below: objects that others hold (an optimizer) move along."""
        for layer in self.sublayers(include_self=True):
            for tensor in list(layer._parameters.values()) + list(layer._buffers.values()):
                if tensor is None:
                    continue
                try:
                    moved = _core.to_device(tensor.detach(), device)
                except RuntimeError as e:
                    raise ValueError(f"Layer.to: {e}") from None
                gradient, name, frozen = tensor.grad, tensor.name, tensor.stop_gradient
                tensor._become(moved)
                tensor.name, tensor.stop_gradient = name, frozen
                if gradient is not None:
                    tensor.grad = _core.to_device(gradient, device)

    def astype(self, dtype=None):
        """Casts all parameters and buffers in place; returns this layer."""
        try:
            dtype = to_dtype(dtype)
        except TypeError:
            raise ValueError(f"Layer.astype: dtype must name a data type such as 'float32', got {dtype!r}") from None
        return self.to(dtype=dtype)

    def float(self, excluded_layers=None):
        """Casts floating parameters and buffers to float32, but for layers of the excluded types."""
        return self._cast_floating(_core.float32, excluded_layers, ())

    def float16(self, excluded_layers=None):
        """Casts floating parameters and buffers to float16, but for the excluded types (default BatchNorm)."""
        return self._cast_floating(_core.float16, excluded_layers, None)

    def bfloat16(self, excluded_layers=None):
        """Casts floating parameters and buffers to bfloat16, but for the excluded types (default BatchNorm)."""
        return self._cast_floating(_core.bfloat16, excluded_layers, None)

    def _cast_floating(self, dtype, excluded, default):
        if excluded is None:
            if default is None:
                from .norm import BatchNorm
                default = (BatchNorm,)
            excluded = default
        elif isinstance(excluded, type):
            excluded = (excluded,)
        elif not isinstance(excluded, (list, tuple)):
            raise TypeError(f"excluded_layers must be a Layer type or a list of them, got {type(excluded).__name__}")
        return self.apply(lambda layer: type(layer) in excluded or layer._cast(dtype, floating_only=True))

    def _cast(self, dtype, floating_only):
        """Casts this layer's own tensors in place: objects that others hold (an optimizer) see the new dtype."""
        target = to_dtype(dtype)
        recording = _core.set_recording(False)
        try:
            for tensor in (*self._parameters.values(), *self._buffers.values()):
                if tensor is None or tensor.dtype == target:
                    continue
                if floating_only and dtype_name(tensor.dtype) not in _FLOATING:
                    continue
                grad, name, frozen = tensor.grad, tensor.name, tensor.stop_gradient
                tensor._become(_core.cast(tensor, target))
                tensor.name, tensor.stop_gradient = name, frozen
                if grad is not None:
                    tensor.grad = _core.cast(grad, target)
        finally:
            _core.set_recording(recording)
        self._dtype = dtype
        changes[0] += 1

    # attributes

    def __setattr__(self, name, value):
        params, layers, buffers = self._parameters, self._sub_layers, self._buffers
        if params is None:  # before super().__init__()
            if isinstance(value, (_core.Tensor, Layer)):
                raise ValueError(f"super().__init__() must run before {type(self).__name__}.{name} is set to a "
                                 f"{type(value).__name__}")
            _set(self, name, value)
        elif isinstance(value, Parameter):
            self._claim(name, value, params, layers, buffers)
        elif isinstance(value, Layer):
            self._check_cycle(name, value)
            self._claim(name, value, layers, params, buffers)
        elif name in params:
            if value is not None:
                raise TypeError(f"{type(self).__name__}.{name} is a parameter: it takes a Parameter or None, got "
                                f"{type(value).__name__}")
            params[name] = None
            changes[0] += 1
        elif name in layers:
            if value is not None:
                raise TypeError(f"{type(self).__name__}.{name} is a sublayer: it takes a Layer or None, got "
                                f"{type(value).__name__}")
            layers[name] = None
            changes[0] += 1
        elif isinstance(value, _core.Tensor):
            if isinstance(getattr(type(self), name, None), property):
                _set(self, name, value)
                return
            if name not in buffers:  # only register_buffer makes a persistable one
                self._non_persistable_buffer_names_set.add(name)
            self._claim(name, value, buffers, params, layers)
        elif name in buffers:
            if value is not None:
                raise TypeError(f"{type(self).__name__}.{name} is a buffer: it takes a Tensor or None, got "
                                f"{type(value).__name__}")
            buffers[name] = None
            changes[0] += 1
        else:
            _set(self, name, value)
            if name == "training":
                changes[0] += 1

    def _claim(self, name, value, registry, *others):
        if isinstance(getattr(type(self), name, None), property):
            _set(self, name, value)
            return
        changes[0] += 1
        self.__dict__.pop(name, None)
        for other in others:
            other.pop(name, None)
        registry[name] = value

    def __delattr__(self, name):
        for registry in (self._parameters, self._sub_layers, self._buffers):
            if registry is not None and name in registry:
                del registry[name]
                changes[0] += 1
                self._non_persistable_buffer_names_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return [*dir(type(self)), *self.__dict__, *self._parameters, *self._sub_layers, *self._buffers]

    def __getstate__(self):
        return {**self.__dict__, **{name: getattr(self, name) for name in _REGISTRIES}}

    def __setstate__(self, state):
        for name, value in state.items():
            _set(self, name, value)

    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return new

    # printing

    def extra_repr(self):
        """The text between the parentheses of the layer's repr: subclasses write their own."""
        return ""

    def __repr__(self):
        lines = self.extra_repr().split("\n")
        inner = [f"({name}): {_indented(repr(layer))}" for name, layer in self._sub_layers.items()]
        text = lines[0] if len(lines) == 1 else "\n  " + "\n  ".join(lines) + "\n"
        if inner:
            text += "\n  " + "\n  ".join(inner) + "\n"
        return f"{type(self).__name__}({text})"
