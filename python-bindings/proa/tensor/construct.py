"""paddle.Tensor(value, place, persistable, zero_copy, name, stop_gradient), or of keywords dims, dtype, name and type."""
from .. import _core
from ._tools import Tensor, plain_ints

_NAMES = ("value", "place", "persistable", "zero_copy", "name", "stop_gradient", "dims", "dtype", "type")


def _refused(text):
    return ValueError(f"(InvalidArgument) Tensor: {text}")


def construct(*args, **given):
    """The tensor of a call of paddle.Tensor with more than a value."""
    unknown = [name for name in given if name not in _NAMES]
    if unknown or len(args) + len(given) > len(_NAMES):
        raise RuntimeError(f"(PreconditionNotMet) Tensor: the arguments are {', '.join(_NAMES)}; got {len(args)} without names "
                           f"and {', '.join(given) or 'no others'}")
    if len(args) > 6:
        raise SystemError(f"(Fatal) Tensor: expected at most 5 arguments without names, got {len(args)}")
    if len(args) > 5:
        raise _refused(f"expected at most 5 arguments without names, got {len(args)}")
    if len(args) == 3 and isinstance(args[2], str):  # value, place and name
        args, given = args[:2], {"name": args[2], **given}
    given = {**dict(zip(_NAMES, args)), **given}
    place, name = given.get("place"), given.get("name")
    if "place" in given and not isinstance(place, _core.Place):
        raise _refused(f"place must be a place such as CPUPlace(), got {type(place).__name__}")
    if name is not None and not isinstance(name, str):
        raise _refused(f"name must be a str, got {type(name).__name__}")
    out = _new(given)
    if place is not None:
        out = _core.to_device(out, place)
    if name is not None:
        out.name = name
    if isinstance(given.get("persistable"), bool):
        out.persistable = given["persistable"]
    if given.get("stop_gradient") is False:
        out.stop_gradient = False
    return out


def _new(given):
    if "value" in given:
        value = given["value"]
        return value.detach() if isinstance(value, Tensor) else Tensor(value)
    if not isinstance(given.get("dims"), (list, tuple)) or "dtype" not in given:
        raise _refused("value is missing, and dims (a list of ints) and dtype, which make an empty tensor, are not both given")
    return _core.full(plain_ints(given["dims"]), 0, given["dtype"])


_core.set_construct(construct)
