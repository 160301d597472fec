"""Operators as functions: op(*inputs, *counts of outputs, "attribute", value, …), in the order of the type's slots.
`core.ops` is this module, too."""
from . import _core
from .fluid.op import OpProtoHolder, run_eagerly


def _inputs(proto, args):
    given, slots = list(args), {}
    for slot in proto.inputs:
        if not given or not isinstance(given[0], (_core.Tensor, list, tuple, type(None))):
            break
        value = given.pop(0)
        if value is not None:
            slots[slot.name] = list(value) if isinstance(value, (list, tuple)) else [value]
    return slots, given


def _outputs(proto, given):
    """Placeholders for every output. One of several variables is given as a list, or as a number."""
    slots = {}
    for slot in proto.outputs:
        count = 1
        if given and slot.duplicable and isinstance(given[0], int) and not isinstance(given[0], bool):
            count = given.pop(0)
        elif given and isinstance(given[0], (_core.Tensor, list)):
            value = given.pop(0)
            slots[slot.name] = list(value) if isinstance(value, list) else [value]
            continue
        elif given and given[0] is None:
            given.pop(0)
        slots[slot.name] = [_core.Tensor() for _ in range(count)]
    return slots


def call(op_type, *args, ordered=False):
    """Calls an operator of Paddle's format on tensors: what `_legacy_C_ops.<op_type>` is. `ordered`: attributes may also
    come without names, in the operator's order, and then no counts of outputs."""
    proto = OpProtoHolder.instance().get_op_proto(op_type)
    slots, given = _inputs(proto, args)
    names = [a.name for a in proto.attrs]
    if ordered and not any(isinstance(value, str) and value in names for value in given):
        if len(given) > len(names):
            raise TypeError(f"{op_type}: expected at most {len(names)} attributes ({', '.join(names)}), got {len(given)}")
        given = [word for pair in zip(names, given) for word in pair]
    outputs = _outputs(proto, given)
    attrs = dict(zip(given[::2], given[1::2]))
    made = iter(run_eagerly(op_type, slots, outputs, attrs))
    results = []
    for slot in proto.outputs:
        found = [tensor if next(made) else None for tensor in outputs[slot.name]]
        results.append(found if slot.duplicable else found[0])
    return results[0] if len(results) == 1 else tuple(results)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    OpProtoHolder.instance().get_op_proto(name.rstrip("_") if name.endswith("_") else name)

    def op(*args):
        return call(name.rstrip("_"), *args)
    op.__name__ = op.__qualname__ = name
    globals()[name] = op
    return op
