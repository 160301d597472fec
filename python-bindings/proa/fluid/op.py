"""Operators by their type in Paddle's format: what slots each has, and running one on a scope."""
import functools
import re

from .. import _core
from ..framework.mode import eager
from ..static.append import attribute
from ..static.host_ops import HOST
from ..static.scope import ScopeTensor


class Slot:
    """An input or output of an operator."""

    def __init__(self, text):
        self.name = text.rstrip("*?~")
        self.duplicable, self.dispensable, self.intermediate = (mark in text for mark in "*?~")


class AttrProto:
    """An attribute of an operator."""

    def __init__(self, name):
        self.name, self.generated = name, False


class OpProto:
    """Slots and attributes of a type."""

    def __init__(self, type, inputs, outputs, attrs):
        self.type = type
        self.inputs, self.outputs = [Slot(s) for s in inputs], [Slot(s) for s in outputs]
        self.attrs = [AttrProto(a) for a in attrs]


@functools.cache
def _protos():
    from .protos import TEXT
    found = {}
    for line in TEXT.strip().replace("\n  ", " ").split("\n"):
        match = re.fullmatch(r"(\S+): ?(.*?) ?-> ?([^|]*)(?:\| (.*))?", line)
        op_type, inputs, outputs, attrs = match.groups()
        found[op_type] = OpProto(op_type, inputs.split(), outputs.split(), (attrs or "").split())
    return found


def get_all_op_protos():
    """The OpProto of every type."""
    return list(_protos().values())


class OpProtoHolder:
    """The types that there are."""

    _instance = None

    @classmethod
    def instance(cls):
        cls._instance = cls._instance or cls()
        return cls._instance

    def get_op_proto(self, type):
        """The OpProto of a type."""
        found = _protos().get(type)
        if found is None:
            raise ValueError(f'Operator "{type}" has not been registered.')
        return found

    def has_op_proto(self, type):
        return type in _protos()

    @staticmethod
    def generated_op_attr_names():
        return {"op_role", "op_role_var", "op_callstack", "op_namescope", "op_device"}


def run_eagerly(op_type, inputs, outputs, attrs):
    """Calls an operator on {slot: [Tensor]}; the tensors in outputs become what it made. Returns for each of them
    whether it did. Sequences (LoD) that an input carries come along."""
    attrs = _attributes(op_type, attrs)
    if op_type in HOST:
        made = HOST[op_type](inputs, outputs, attrs)
        for slot, tensors in outputs.items():
            for one, value in zip(tensors, made[slot]):
                one._become(value)
                one._lod = value._lod
        return [True for tensors in outputs.values() for _ in tensors]
    lods = {i: tuple(_core.to_tensor(level, dtype="int64") for level in one._lod)
            for i, one in enumerate(t for tensors in inputs.values() for t in tensors) if one._lod}
    made = _core.call(op_type, inputs, outputs, attrs, lods)
    for i, one in enumerate(t for tensors in outputs.values() for t in tensors):
        if i in lods:
            one._lod = [level.tolist() for level in lods[i]]
    return made


def _attributes(op_type, attrs):
    return {name: attribute(op_type, name, value) for name, value in (attrs or {}).items() if value is not None}


class ScopeOperator:
    """An operator bound to names of a scope's variables."""

    def __init__(self, op_type, slots):
        proto = OpProtoHolder.instance().get_op_proto(op_type)
        self._type = op_type
        self._inputs = {s.name: _names(slots.pop(s.name)) for s in proto.inputs if s.name in slots}
        self._outputs = {s.name: _names(slots.pop(s.name)) for s in proto.outputs if s.name in slots}
        slots.pop("op_role", None)
        self._attrs = _attributes(op_type, slots)

    def type(self):
        return self._type

    def inputs(self):
        return dict(self._inputs)

    def outputs(self):
        return dict(self._outputs)

    def run(self, scope, place):
        """Reads the inputs from the scope, and writes the outputs there."""
        def value(name):
            found = scope.find_var(name)
            if found is None or found.value is None:
                raise RuntimeError(f"{self._type}: the scope has no value of {name!r}")
            found.value._lod = found.lod
            return found.value
        with eager():
            given = {slot: [value(name) for name in names] for slot, names in self._inputs.items()}
            made = {slot: [_core.Tensor() for _ in names] for slot, names in self._outputs.items()}
            done = iter(run_eagerly(self._type, given, made, self._attrs))
            for slot, names in self._outputs.items():
                for name, tensor in zip(names, made[slot]):
                    if next(done):
                        scope.var(name).hold(tensor.detach())
                        scope.var(name).lod = tensor._lod or []


def _names(value):
    return [value] if isinstance(value, str) else list(value)


class _OperatorFactory:
    """Operator(type, X="x", Out="out", attr=…) makes one for a scope."""

    def __call__(self, *args, **kwargs):
        op_type = kwargs.pop("type", args[0] if args else None)
        if op_type is None:
            raise ValueError("Operator: the type must be given")
        return ScopeOperator(op_type, kwargs)

    def types(self):
        return list(_protos())

    def get_op_info(self, type):
        return OpProtoHolder.instance().get_op_proto(type)

    def get_op_input_names(self, type):
        return [s.name for s in self.get_op_info(type).inputs]

    def get_op_inputs(self, type):
        return [(s.name, s.duplicable) for s in self.get_op_info(type).inputs]

    def get_op_output_names(self, type):
        return [s.name for s in self.get_op_info(type).outputs]

    def get_op_outputs(self, type):
        return [(s.name, s.duplicable) for s in self.get_op_info(type).outputs]

    def get_op_attr_names(self, type):
        return [a.name for a in self.get_op_info(type).attrs]

    def get_op_extra_attr_names(self, type):
        return []


Operator = _OperatorFactory()

__all__ = ["OpProtoHolder", "Operator", "get_all_op_protos", "ScopeTensor"]
