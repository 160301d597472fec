"""StaticFunction: the result of to_static on a function or method. It caches one program per call signature."""
import inspect
import random
import types
import warnings
import weakref
from collections import OrderedDict, namedtuple

import numpy as np

from .. import _core
from ..amp.auto_cast import state as amp_state
from ..framework.mode import by_name
from ..nn.layer.layers import changes
from .concrete import Concrete
from .dy2static.errors import NoSource, explained
from .dy2static.runtime.calls import converted
from .dy2static.transform import convert_code, convert_function
from .signature import Signature

_is_capturing, _is_recording = _core.is_capturing, _core.is_recording
CacheInfo = namedtuple("CacheInfo", "programs kept made evicted plans arena_bytes")
made = weakref.WeakSet()


class Switch:
    """Whether converted functions run as programs."""
    on = True


class ProgramCache(OrderedDict):
    """Programs by kind of call."""

    def concrete_programs(self):
        """The programs."""
        return list(self.values())

    def last(self):
        """(key, (the last program that was made, itself)), as Paddle has a second object that runs it."""
        key = next(reversed(self))
        return key, (self[key], self[key])


class StaticFunction:
    """Calls a Python function as a program. As an attribute of a class it is a method."""

    def __init__(self, function, input_spec=None, build_strategy=None, full_graph=False, instance=None, name=None):
        if isinstance(function, types.MethodType):
            function, instance = function.__func__, function.__self__
        self._function, self._instance = function, instance
        self._spec, self._strategy, self._full_graph = input_spec, build_strategy, full_graph
        self._converted = self._signature_ = self._layers_ = None
        self._programs, self._made = ProgramCache(), 0
        self._clock = 0  # of calls: a program's `used` says when it ran last
        self._held = None
        self._quick, self._changes = {}, -1  # programs by _quick_key, while no layer has changed since
        self._plain = {}  # kind of call that runs as plain Python -> why
        self._name = name or function.__name__
        made.add(self)
        self.__signature__ = inspect.signature(self.dygraph_function)
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(self, attribute, getattr(function, attribute, None))

    # being a method

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        if isinstance(instance, type):  # of a classmethod
            return StaticFunction(self._function, self._spec, self._strategy, self._full_graph, instance, self._name)
        kept = instance.__dict__.get("_proa_static_methods")
        if kept is None:
            kept = instance.__dict__["_proa_static_methods"] = _Methods()
        bound = kept.get(self._name)
        if bound is None or bound._function is not self._function:
            bound = kept[self._name] = StaticFunction(self._function, self._spec, self._strategy, self._full_graph,
                                                      instance, self._name)
        return bound

    def __deepcopy__(self, memo):
        import copy
        return StaticFunction(self._function, self._spec, self._strategy, self._full_graph,
                              copy.deepcopy(self._instance, memo), self._name)

    # what is called

    @property
    def dygraph_function(self):
        """The function as it was written."""
        return types.MethodType(self._function, self._instance) if self._instance is not None else self._function

    _dygraph_function = dygraph_function

    def _inline(self):
        """The converted function, bound."""
        if self._converted is None:
            try:
                self._converted = converted(self._function) if self._library() else convert_function(self._function)
            except NoSource as error:
                warnings.warn(f"to_static: {self._name} is captured as it is: {error}", stacklevel=3)
                self._converted = self._function
        if self._instance is None:
            return self._converted
        return types.MethodType(self._converted, self._instance)

    _proa_inline = _inline

    def _library(self):
        from .dy2static.runtime.calls import is_users
        return not is_users(self._function)

    @property
    def _signature(self):
        if self._signature_ is None:
            self._signature_ = Signature(self._function, self._instance is not None, self._spec)
        return self._signature_

    # layers whose mode and tensors the program depends on

    def _roots(self):
        from ..nn import Layer
        found = []
        function = self._function
        values = [self._instance]
        for cell in function.__closure__ or ():
            try:
                values.append(cell.cell_contents)
            except ValueError:
                pass
        values += [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
        for value in values:
            value = getattr(value, "__self__", value)
            if isinstance(value, Layer) and value not in found:
                found.append(value)
        return found

    def _layers(self):
        """Every layer that the function runs. Programs hold parameters: with others, they are made anew."""
        parts = None if self._layers_ is None else _parts(self._layers_)
        if parts is None or parts != self._held:
            seen, found = set(), []
            for root in self._roots():
                for layer in root.sublayers(include_self=True):
                    if id(layer) not in seen:
                        seen.add(id(layer))
                        found.append(layer)
            self._programs.clear()
            self._quick.clear()
            self._layers_, self._held = found, _parts(found)
        return self._layers_

    # calling

    def __call__(self, *args, **kwargs):
        if _is_capturing():
            if not Switch.on:
                return self.dygraph_function(*args, **kwargs)
            self._need_dynamic()
            return self._inline()(*args, **kwargs)
        if not kwargs and self._quick and self._changes == changes[0] and Switch.on:
            found = self._quick.get(_quick_key(args))
            if found is not None:
                found.used = self._clock = self._clock + 1
                return found.call(list(args))
        if not Switch.on:
            return self.dygraph_function(*args, **kwargs)
        return self._called(args, kwargs)

    def _called(self, args, kwargs):
        bound = self._signature.bind(args, kwargs)
        if any(t.is_dist() for t in bound.tensors):  # parts on a mesh of processes: paddle.distributed.to_static captures those
            return self.dygraph_function(*args, **kwargs)
        key = None
        try:
            key, feeds = self._kind(bound)
            concrete = None if self._is_plain(key) else self._concrete(bound, (key, feeds))
        except Exception as error:
            if self._full_graph or isinstance(error, MemoryError):
                raise
            failed = error
        else:
            if concrete is None:
                return self.dygraph_function(*args, **kwargs)
            if not kwargs and len(args) == len(bound.tensors):
                self._remember(args, concrete)
            return concrete.call(bound.tensors)
        return self._called_plain(key, failed, args, kwargs)

    def _is_plain(self, key):
        """Whether calls of this kind are plain: one could not be captured, or as many other kinds as programs are kept could not."""
        return key in self._plain or len(self._plain) >= _kept_programs() and key not in self._programs

    def _called_plain(self, key, failed, args, kwargs):
        """The call as plain Python, since its capture failed. What is the user's own error is raised there, too, and leaves with the
        user's lines that capture found; if the call works, later ones of the kind are plain, too."""
        why = str(failed)
        cause = _cause(why)
        told = cause in _falling_back  # by the function that called this one and could not be captured because of it
        _falling_back.append(cause)
        try:
            result = self.dygraph_function(*args, **kwargs)
        except Exception as error:
            if explained(failed, error):
                raise failed from None
            raise
        finally:
            _falling_back.pop()
        self._plain[key] = why
        if not told:
            warnings.warn(f"to_static: {self._name} runs as plain Python, since it cannot be captured: {why}\n"
                          "(full_graph=True makes this an error)", stacklevel=4)
        return result

    def _remember(self, args, found):
        """The next call with tensors like these is short."""
        key = _quick_key(args)
        if key is not None:
            if self._changes != changes[0]:
                self._quick.clear()
                self._changes = changes[0]
            self._quick[key] = found

    def _mode(self):
        return (tuple([layer.training for layer in self._layers()]), _core.is_recording(), amp_state.level,
                amp_state.dtype, _core.get_default_dtype())

    def _kind(self, bound):
        """(the key of a call among programs, its feeds)."""
        mode = self._mode()
        feeds = self._signature.feeds(bound)
        return (bound.key(), tuple((feed.shape, feed.dtype, feed.stop_gradient) for feed in feeds), mode), feeds

    def _concrete(self, bound, kind=None):
        key, feeds = kind or self._kind(bound)
        found = self._programs.get(key)
        if found is None:
            found = self._captured(bound, feeds, recording=key[2][1])
            self._evict()
            self._programs[key] = found
            self._made += 1
        found.used = self._clock = self._clock + 1
        return found

    def _captured(self, bound, feeds, recording):
        """A program, compiled. Python's and NumPy's generators are as before if that fails."""
        states = random.getstate(), np.random.get_state()
        try:
            program = Concrete(self._inline(), self._signature, bound, feeds, self._layers(), recording)
            program.compiled
        except Exception:
            random.setstate(states[0])
            np.random.set_state(states[1])
            raise
        return program

    def _evict(self):
        """Makes space for one more program: the least recently used go, with their plans and memory."""
        while len(self._programs) >= _kept_programs():
            del self._programs[min(self._programs, key=lambda key: self._programs[key].used)]
            self._quick.clear()

    # what people look at

    @property
    def code(self):
        """The converted source."""
        return convert_code(self._function).text

    def concrete_for(self, specs=None):
        """The Concrete of these InputSpecs, of input_spec, or of the one call there has been."""
        specs = specs if specs is not None else self._spec
        if specs is None:
            if not self._programs and not self._signature.parameters:
                specs = []
            else:
                return self._one()
        return self._concrete(self._signature.bind_specs(specs))

    def _one(self):
        if not self._programs and self._plain:
            raise ValueError(f"{self._name} has no program: it runs as plain Python, since it cannot be captured: "
                             f"{next(iter(self._plain.values()))}")
        if not self._programs:
            raise ValueError(f"{self._name} has no program yet: give it input_spec, or call it once before")
        if len({key[:2] for key in self._programs}) > 1:
            warnings.warn(f"to_static: {self._name} has {len(self._programs)} programs; the last one is taken",
                          stacklevel=3)
        return next(reversed(self._programs.values()))

    concrete_program_specify_input_spec = concrete_for

    def get_concrete_program(self, *args, **kwargs):
        """The program of a call with InputSpecs, tensors or other values as arguments."""
        self._need_dynamic()
        from .dy2static.function_spec import FunctionSpec
        args, rest = FunctionSpec(self.dygraph_function).unified_args_and_kwargs(args, kwargs)
        return self._concrete(self._signature.bind(args, rest))

    def _need_dynamic(self):
        if by_name():
            raise RuntimeError(f"{self._name}, which to_static made, is only available in dynamic mode: call "
                               "paddle.disable_static() first")

    @property
    def concrete_program(self):
        """The program with its inputs and outputs."""
        self._need_dynamic()
        return self.concrete_for()

    @property
    def main_program(self):
        """The program of concrete_program."""
        return self.concrete_program.main_program

    @property
    def inputs(self):
        """The program's inputs."""
        return self.concrete_program.inputs

    @property
    def outputs(self):
        """The program's outputs."""
        return self.concrete_program.outputs

    @property
    def program_cache(self):
        """The programs by kind of call."""
        return self._programs

    def cache_info(self):
        """Numbers of programs that exist, may be kept (FLAGS_kept_programs), were made and have gone; their plans, and the
        bytes of their memory between runs."""
        stats = [one.compiled.stats() for one in self._programs.values()]
        return CacheInfo(len(stats), _kept_programs(), self._made, self._made - len(stats),
                         sum(one["plans"] for one in stats), sum(one["arena_bytes"] for one in stats))

    @property
    def input_spec(self):
        return self._spec

    def rollback(self):
        """The function as it was written, put back where this one stood; returns it."""
        instance = self._instance
        if instance is None:
            return self._function
        own = instance.__dict__
        own.get("_proa_static_methods", {}).pop(self._name, None)
        method = types.MethodType(self._function, instance)
        declared = getattr(type(instance), self._name, None)
        if isinstance(declared, StaticFunction):
            object.__setattr__(instance, self._name, method)
        else:
            own.pop(self._name, None)
        return method

    def __repr__(self):
        return f"<StaticFunction {self.__qualname__}>"


_falling_back = []  # causes of the calls that run as plain Python now, the outermost first


def _cause(why):
    """The part of a refusal that a nested function and its caller share: the text behind the places in the code."""
    return [line.strip() for line in why.splitlines() if line.strip()][-1:]


def _kept_programs():
    return max(1, int(_core.get_flag("kept_programs")))


def _parts(layers):
    """Identities of the layers' sublayers, parameters and buffers."""
    tensors = [one for layer in layers for one in (*layer._parameters.values(), *layer._buffers.values())]
    return ([id(one) for layer in layers for one in layer._sub_layers.values()], [id(one) for one in tensors],
            [getattr(one, "dtype", None) for one in tensors])  # a cast leaves the object


def _quick_key(args):
    """The key of a call of tensors alone, besides the layers; None if there are other arguments."""
    key = [_is_recording(), amp_state.level, amp_state.dtype, _core.get_default_dtype()]
    for one in args:
        if type(one) is not _core.Tensor:
            return None
        key.append(one.stop_gradient)
        key.append(one.dtype)  # between two shapes, so that they do not run together
        key += one.declared_shape
    return tuple(key)


class _Methods(dict):
    """An instance's static methods: not part of copies and pickles, which make their own."""

    def __deepcopy__(self, memo):
        return _Methods()

    def __reduce__(self):
        return _Methods, ()
