"""A captured call of a function: its program for one signature, and how the program's outputs become Python results."""
import warnings
import weakref

from .. import _core
from ..tensor.array import TensorArray
from .dy2static.errors import ConversionError, explain
from .dy2static.runtime import trees
from .dy2static.runtime.effects import Effects
from .dy2static.runtime.state import refill
from .dy2static.runtime.values import Tensor, symbolic
from .dy2static.transform import lines_of

class LayerState:
    """State of the layers that the capture of a forward may change: buffers that it assigned, and attributes with tensors
    inside lists and dicts, become results; everything else is put back."""

    def __init__(self, layers):
        self.layers = layers
        self.before = [(layer, dict(layer._buffers), dict(vars(layer))) for layer in layers]
        self.contents = [(one, type(one)(one)) for layer in layers for name, one in vars(layer).items()
                         if type(one) in (list, dict) and name != "_proa_static_methods"]

    def collect(self):
        """[(layer, name, the tensor that was there or None)], [Kept], and the new values of both; the layers are as
        before."""
        assigned, values, kept = [], [], []
        contents = {id(one): copy for one, copy in self.contents}
        for layer, buffers, attributes in self.before:
            for name, value in list(layer._buffers.items()):
                old = buffers.get(name)
                if value is not old and isinstance(value, Tensor):
                    assigned.append((layer, name, old))
                    values.append(value)
            kept += self._kept(layer, attributes, contents)
        self.restore()
        return assigned, kept, values + [leaf for one in kept for leaf in one.take()]

    def restore(self):
        for container, contents in self.contents:
            refill(container, contents)
        for layer, buffers, attributes in self.before:
            refill(layer._buffers, buffers)
            own = vars(layer)
            for name in [name for name in own if name not in attributes]:
                del own[name]
            for name, value in attributes.items():
                if name not in own or own[name] is not value:
                    own[name] = value

    @staticmethod
    def _kept(layer, before, contents):
        for name, value in vars(layer).items():
            if name[:1] == "_":
                continue
            if _holds_variables(value):
                yield Kept(layer, name, value, before.get(name), contents)
            elif name in before and before[name] is not value and name != "training":
                warnings.warn(f"to_static: {type(layer).__name__}.{name} is changed by the converted call, which a "
                              "program does not repeat: make it a tensor", stacklevel=2)


def _holds_variables(value):
    leaves = []
    trees.flatten(value, leaves)
    return any(map(symbolic, leaves))


class Kept:
    """An attribute of a layer that the call leaves with tensors of the program inside lists, tuples and dicts: a new
    value, or new entries of the dict that was there."""

    def __init__(self, layer, name, value, before, contents):
        self.layer, self.name, self.leaves = layer, name, []
        self.entries = value is before
        if self.entries:
            old = contents.get(id(value))
            changed = {} if type(old) is not dict or any(key not in value for key in old) else {
                key: one for key, one in value.items() if key not in old or old[key] is not one}
            if not changed or any(_holds_variables(one) for key, one in value.items() if key not in changed):
                raise ConversionError(f"{type(layer).__name__}.{name} was given tensors of the program inside a "
                                      f"{type(value).__name__} that was there before: a program cannot repeat that; "
                                      "return them, or give the attribute a new value")
            value = changed
        self.structure = trees.flatten(value, self.leaves)

    def take(self):
        """The tensors among the leaves, which leave their places to those of each run."""
        found = [leaf for leaf in self.leaves if symbolic(leaf)]
        self.count = len(found)
        self.leaves = [_RUN if symbolic(leaf) else leaf for leaf in self.leaves]
        return found

    def put(self, values):
        """The attribute after a run; values is an iterator."""
        made = trees.build(self.structure, iter([next(values) if leaf is _RUN else leaf for leaf in self.leaves]))
        if self.entries:
            vars(self.layer)[self.name].update(made)
        else:
            vars(self.layer)[self.name] = made


_RUN = object()   # a leaf that each run makes
_LIST = object()  # a leaf that is a list, and comes as one tensor


def _items(stacked):
    return list(_core.unbind(stacked, 0)) if stacked.shape[0] else []


class Concrete:
    """The program of a call. training: with its backward."""

    def __init__(self, function, signature, bound, feeds, layers, training):
        self.signature, self.bound, self.feeds, self.layers = signature, bound, feeds, layers
        self.function, self.training = function, training
        self.structure = self.leaves = None
        self.assigned, self.kept = [], []
        self.written = []  # numbers of the arguments that the function changes in place
        self._compiled = self._program = None

    def _run(self, *variables):
        """The captured function: runs the user's on variables; gives its tensors, and the buffers that it assigned."""
        state = LayerState(self.layers)
        for variable, feed in zip(variables, self.feeds):
            if feed.stop_gradient or "float" in str(variable.dtype) and self.training:
                variable.stop_gradient = feed.stop_gradient  # a gradient taken inside is one of the program's ops
        names = [_core.variable_name(None, variable) for variable in variables]
        was = _core.set_recording(self.training)
        try:
            with Effects() as effects:
                result = self.signature.call(self.function, self.bound, variables)
            leaves = []
            self.structure = trees.flatten(result, leaves)
            if any(isinstance(leaf, Tensor) and leaf.is_dist() for leaf in leaves):
                raise NotImplementedError("a program does not return a tensor on a mesh of processes; use paddle.distributed.to_static")
            self.assigned, self.kept, values = state.collect()
        finally:
            _core.set_recording(was)
            state.restore()
        # a list that grew in a loop is one tensor in the program, and a list again for the caller
        self.leaves = [None if isinstance(leaf, Tensor) else _LIST if isinstance(leaf, TensorArray) else (leaf,)
                       for leaf in leaves]
        tensors = [_core.array_to_tensor(leaf._value, 0, True)[0] if isinstance(leaf, TensorArray) else leaf
                   for leaf in leaves if isinstance(leaf, (Tensor, TensorArray))]
        self.count = len(tensors)
        self.written = [i for i, one in enumerate(variables) if _core.variable_name(None, one) != names[i]]
        everything = tensors + values + [variables[i] for i in self.written] + effects
        return everything or [_core.full([1], 0.0, _core.float32)]

    def _specs(self):
        return [(feed.name, list(feed.shape), feed.dtype) for feed in self.feeds]

    def _explained(self, make):
        try:
            return make()
        except Exception as error:
            explain(error, lines_of)
            raise

    @property
    def compiled(self):
        if self._compiled is None:
            own = weakref.ref(self)  # what the core keeps must not keep this, which keeps that
            self._compiled = self._explained(lambda: _core.compile(lambda *variables: own()._run(*variables),
                                                                   self._specs(), self.training))
        return self._compiled

    @property
    def core_program(self):
        return self.compiled.program

    def capture(self):
        """A program of its own, to be saved."""
        was = _core.set_recording(False)
        try:
            return self._explained(lambda: _core.capture(self._run, self._specs()))
        finally:
            _core.set_recording(was)

    def call(self, tensors):
        """The function's result for these tensors."""
        results = (self._compiled or self.compiled).call(tensors)
        if self.written:  # backward needs none of these: one that is overwritten before is refused, as eagerly
            first = self.count + len(self.assigned) + sum(one.count for one in self.kept)
            for i, value in zip(self.written, results[first:first + len(self.written)]):
                _core.set_value_(tensors[i], value, axes=[], starts=[], ends=[])
        if self.assigned:
            self._assign(results[self.count:self.count + len(self.assigned)])
        held = iter(results[self.count + len(self.assigned):])
        for one in self.kept:
            one.put(held)
        if self.structure is trees.LEAF and self.leaves[0] is None:
            return results[0]
        results = iter(results)
        return trees.build(self.structure, iter([
            next(results) if leaf is None else _items(next(results)) if leaf is _LIST else leaf[0]
            for leaf in self.leaves]))

    def _assign(self, values):
        for (layer, name, old), value in zip(self.assigned, values):
            if old is None or old.declared_shape != value.declared_shape or old.dtype != value.dtype:
                layer._buffers[name] = value
                layer._non_persistable_buffer_names_set.add(name)
            else:
                was = _core.set_recording(False)
                try:
                    old.set_value(value.detach())
                finally:
                    _core.set_recording(was)

    # what people look at

    @property
    def main_program(self):
        """The program, as paddle.static knows them."""
        if self._program is None:
            from ..static.program import Program
            self._program = Program(self.core_program)._adopt_parameters()
        return self._program

    @property
    def startup_program(self):
        """Empty: parameters have their values."""
        from ..static.program import Program
        return Program()

    def _found(self, names):
        program = self.core_program
        return [program.find(name) for name in names]

    @property
    def inputs(self):
        """The variables that are fed."""
        return self._found(self.core_program.inputs)

    @property
    def outputs(self):
        """The variables that are returned."""
        return self._found(self.core_program.outputs[:self.count])

    @property
    def parameters(self):
        """The parameters and buffers of the layers that it runs."""
        seen, found = set(), []
        for layer in self.layers:
            for tensor in (*layer._parameters.values(), *layer._buffers.values()):
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    found.append(tensor)
        return found
