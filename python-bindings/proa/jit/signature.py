"""A call's arguments as tensors and the rest: what is fed, what belongs to the cache key, and how specs apply."""
import inspect

from .. import _core
from ..static.input import InputSpec
from .dy2static.runtime import trees
from .dy2static.runtime.values import Tensor

_EMPTY = inspect.Parameter.empty


def spec_of(value, name=None):
    """The InputSpec of a tensor, an array or an InputSpec; None of anything else."""
    if isinstance(value, InputSpec):
        return value
    if isinstance(value, Tensor):
        return InputSpec(value.declared_shape, value.dtype, name)
    if type(value).__module__ == "numpy" and hasattr(value, "shape") and hasattr(value, "dtype"):
        return InputSpec(list(value.shape), value.dtype, name)
    return None


def fits(spec, value):
    """Could value be fed to spec?"""
    dims = value.declared_shape if isinstance(value, Tensor) else value.shape
    return spec.dtype == value.dtype and len(dims) == len(spec.shape) and all(
        want < 0 or want == have for want, have in zip(spec.shape, dims))


def _constant_key(value):
    try:
        hash(value)
        return type(value), value
    except TypeError:
        return type(value), id(value)


class Bound:
    """One call's arguments: structure, tensors to feed (by place), and the leaves with None in their place."""

    __slots__ = ("structure", "leaves", "places", "tensors", "names")

    def key(self):
        constants = tuple(_constant_key(leaf) for i, leaf in enumerate(self.leaves) if i not in self.places)
        return self.structure, tuple(self.places), constants


class Signature:
    """A function's parameters, without self. specs: what input_spec said."""

    def __init__(self, function, skip_first, specs=None):
        self.function = function
        signature = inspect.signature(function, follow_wrapped=False)
        parameters = list(signature.parameters.values())
        if skip_first:
            parameters = parameters[1:]
        self.parameters = parameters
        self.signature = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
        self.specs = None if specs is None else self._check(specs)

    def _check(self, specs):
        if not isinstance(specs, (list, tuple)):
            raise TypeError(f"to_static: input_spec must be a list or tuple of InputSpecs, got {type(specs).__name__}")
        expected = len(self.parameters)
        open_ended = any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in self.parameters)
        if len(specs) > expected and not open_ended:
            raise ValueError(f"to_static: input_spec has {len(specs)} entries, but {self.function.__name__} takes "
                             f"{expected} arguments")
        return tuple(specs)

    def bind(self, args, kwargs):
        """The Bound of a call."""
        try:
            given = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = self.specs is None and not set(kwargs) <= set(self.signature.parameters)
            raise (TypeError if unknown else ValueError)(f"{self.function.__name__}() {error}") from None
        given.apply_defaults()
        return self._bound(given.arguments)

    def bind_specs(self, specs):
        """The Bound of a call with InputSpecs (or values) in place of arguments."""
        given, rest = {}, list(specs)
        for one in self.parameters:
            if one.kind == one.VAR_POSITIONAL:
                given[one.name], rest = tuple(rest), []
            elif one.kind == one.VAR_KEYWORD:
                given[one.name] = {}
            elif rest and one.kind != one.KEYWORD_ONLY:
                given[one.name] = rest.pop(0)
            elif one.default is not _EMPTY:
                given[one.name] = one.default
            else:
                raise ValueError(f"{self.function.__name__}: the argument {one.name} has no InputSpec: give input_spec "
                                 "one entry an argument, or call the function once before")
        return self._bound(given)

    def _bound(self, given):
        bound = Bound()
        leaves, names, structure = [], [], []
        for name, value in given.items():
            part = trees.flatten(value, leaves)
            names += [_plain(one) for one in trees.names(part, name)]
            structure.append((name, part))
        bound.structure, bound.leaves, bound.names = tuple(structure), leaves, names
        bound.places, bound.tensors = [], []
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, (Tensor, InputSpec)):
                bound.places.append(i)
                bound.tensors.append(leaf)
            elif type(leaf).__module__ == "numpy" and type(leaf).__name__ == "ndarray":
                bound.places.append(i)
                bound.tensors.append(_core.to_tensor(leaf))
        return bound

    def call(self, function, bound, tensors):
        """function on the bound arguments, with these tensors in their places."""
        leaves = list(bound.leaves)
        for place, tensor in zip(bound.places, tensors):
            leaves[place] = tensor
        leaves = iter(leaves)
        values = {name: trees.build(part, leaves) for name, part in bound.structure}
        given = inspect.BoundArguments(self.signature, values)
        return function(*given.args, **given.kwargs)

    def feeds(self, bound):
        """One InputSpec a tensor of a call: input_spec's where it fits."""
        wanted = self._wanted(bound)
        feeds, taken = [], set()
        for place, tensor in zip(bound.places, bound.tensors):
            spec = tensor if isinstance(tensor, InputSpec) else wanted.get(place)
            if spec is None or isinstance(tensor, Tensor) and not fits(spec, tensor):
                spec = spec_of(tensor)
            name = spec.name if spec.name else bound.names[place]
            base, count = name, 0
            while name in taken:
                count += 1
                name = f"{base}_{count}"
            taken.add(name)
            still = tensor.stop_gradient if isinstance(tensor, Tensor) else spec.stop_gradient
            feeds.append(InputSpec(spec.shape, spec.dtype, name, still))
        return feeds

    def _wanted(self, bound):
        """Leaf -> InputSpec, from input_spec, where its structure is the arguments'."""
        if self.specs is None:
            return {}
        found, at, specs = {}, 0, list(self.specs)
        for (name, part), one in zip(bound.structure, self.parameters):
            size = len(trees.paths(part))
            if specs and one.kind not in (one.VAR_KEYWORD, one.KEYWORD_ONLY):
                if one.kind == one.VAR_POSITIONAL:
                    spec, specs = tuple(specs), []
                else:
                    spec = specs.pop(0)
                leaves = []
                trees.flatten(spec, leaves)
                if len(leaves) == size:
                    found.update((at + i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, InputSpec))
            at += size
        return found


def _plain(name):
    """A name of an input, of letters, digits and underscores."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)
