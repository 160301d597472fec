"""LayerHelper: makes a layer function's parameters and variables, and appends its operators. Without a program under
construction, operators are executed at once."""
from .. import _core
from ..framework import mode, unique_name
from ..framework.dtype import get_default_dtype, set_default_dtype, to_dtype
from ..framework.param_attr import ParamAttr
from ..framework.parameter import make_parameter
from .op import run_eagerly

__all__ = ["LayerHelper"]


class LayerHelper:
    """Named after its layer; keyword arguments are those of the layer's function."""

    def __init__(self, layer_type, **kwargs):
        self.layer_type, self.kwargs = layer_type, kwargs
        name = kwargs.get("name")
        self.name = name if name is not None else unique_name.generate(layer_type)

    @property
    def main_program(self):
        from ..static.program import default_main_program
        return default_main_program()

    @property
    def startup_program(self):
        from ..static.program import default_startup_program
        return default_startup_program()

    @property
    def param_attr(self):
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self):
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def append_op(self, type=None, inputs=None, outputs=None, attrs=None, stop_gradient=False, **unused):
        """Appends the operator to the program, or runs it at once."""
        if mode.by_name():
            block = self.main_program.current_block()
            return block.append_op(type=type, inputs=inputs, outputs=outputs, attrs=attrs, stop_gradient=stop_gradient)
        run_eagerly(type, *({slot: _tensors(value) for slot, value in (slots or {}).items() if value is not None}
                            for slots in (inputs, outputs)), attrs)
        return None

    def multiple_input(self, input_param_name="input"):
        """The input as a list."""
        given = self.kwargs.get(input_param_name, [])
        return list(given) if isinstance(given, (list, tuple)) else [given]

    def input(self, input_param_name="input"):
        """The only input."""
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise ValueError(f"{self.layer_type} layer only takes one input")
        return inputs[0]

    def input_dtype(self, input_param_name="input"):
        """The dtype that all inputs have."""
        dtypes = {one.dtype for one in self.multiple_input(input_param_name)}
        if len(dtypes) > 1:
            raise ValueError(f"Data Type mismatch: inputs of {self.layer_type} have the dtypes {dtypes}")
        return dtypes.pop() if dtypes else None

    def create_parameter(self, attr, shape, dtype=None, is_bias=False, default_initializer=None, stop_gradient=False,
                         type=None):
        """A parameter of the layer; None where attr is False."""
        param = make_parameter(self.name, attr, shape, dtype, is_bias, default_initializer)
        if param is not None and stop_gradient:
            param.stop_gradient = True
        return param

    def get_parameter(self, name):
        """The parameter of that name."""
        return self.main_program.global_block().var(name)

    def create_variable_for_type_inference(self, dtype=None, stop_gradient=False, shape=None):
        """A variable that an operator makes."""
        if not mode.by_name():
            return _core.Tensor()
        name = unique_name.generate_with_ignorable_key(f"{self.name}.tmp")
        return self.main_program.current_block().create_var(
            name=name, dtype=to_dtype(dtype or get_default_dtype()), shape=shape or (), stop_gradient=stop_gradient)

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, *args, **kwargs):
        """A variable of the current block."""
        return self.main_program.current_block().create_var(*args, **kwargs)

    def create_global_variable(self, persistable=False, *args, **kwargs):
        """A variable of the global block."""
        kwargs.setdefault("name", unique_name.generate_with_ignorable_key(f"{self.name}.tmp"))
        return self.main_program.global_block().create_var(*args, persistable=persistable, **kwargs)

    def create_or_get_global_variable(self, name, *args, **kwargs):
        """(variable, whether it is new)."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(True, *args, name=name, **kwargs), True

    def set_variable_initializer(self, var, initializer):
        """The startup program gives the variable its first value."""
        from ..static.variable import _initialized
        _initialized(var.name, list(var.shape), var.dtype, initializer)
        return var

    def append_bias_op(self, input_var, dim_start=1, dim_end=None):
        """input + a bias over the dims from dim_start on."""
        size = list(input_var.shape[dim_start:dim_end])
        bias = self.create_parameter(self.bias_attr, size, input_var.dtype, is_bias=True)
        if bias is None:
            return input_var
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op("elementwise_add", {"X": [input_var], "Y": [bias]}, {"Out": [out]}, {"axis": dim_start})
        return out

    def append_activation(self, input_var):
        """The activation that the layer's `act` names."""
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        act = {"type": act} if isinstance(act, str) else dict(act)
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(act.pop("type"), {"X": [input_var]}, {"Out": [out]}, act)
        return out


class LayerObjectHelper(LayerHelper):
    """The helper of an nn.Layer: `layer._helper`."""

    def __init__(self, name):
        super().__init__(name, name=name)

    get_default_dtype = staticmethod(get_default_dtype)
    set_default_dtype = staticmethod(set_default_dtype)

    def append_activation(self, input_var, act=None, use_cudnn=None):
        """The operator of that name, applied to a tensor; the tensor itself without a name."""
        return input_var if act is None else one_op(act, {"X": input_var}, {}, "Out")


def _tensors(value):
    return [one for one in (value if isinstance(value, (list, tuple)) else [value]) if one is not None]


def one_op(op_type, inputs, attrs, *outputs, dtype=None, act=None, name=None, counts=None):
    """Applies one operator to {slot: tensor, list of tensors, or None}: returns its first output. With several names that do
    not begin with ~, a tuple of those; counts[slot] is the number of a slot's variables."""
    helper = LayerHelper(op_type, act=act, name=name)
    given = {slot: _tensors(value) for slot, value in inputs.items() if value is not None}
    first = next((one for tensors in given.values() for one in tensors), None)
    dtype = dtype or (first.dtype if isinstance(first, _core.Tensor) else None)
    made = {slot.lstrip("~"): [helper.create_variable_for_type_inference(dtype) for _ in range((counts or {}).get(slot, 1))]
            for slot in outputs}
    helper.append_op(op_type, given, made, attrs)
    shown = [made[slot] if slot in (counts or {}) else made[slot][0] for slot in outputs if not slot.startswith("~")]
    return tuple(shown) if len(shown) > 1 else helper.append_activation(shown[0]) if act else shown[0]
