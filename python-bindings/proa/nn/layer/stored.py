"""Layers that store settings and hand them to one function: a class made of the function's signature and description."""
import inspect

from .layers import Layer

_SOURCE = '''
class {name}(Layer):
    def __init__(self, {parameters}name=None):
        super().__init__(){stores}
        self._name = name

    def forward(self, x):
        return function(x{passes})

    def extra_repr(self):
        shown = [f"{{what}}={{getattr(self, '_' + what)}}" for what in {settings}]
        return ", ".join(shown + ([f"name={{self._name}}"] if self._name else []))
'''


def stored(module, name, function, *settings, **defaults):
    """The layer `name` of `module`, whose forward(x) is function(x, *settings). A setting's default is the function's,
    which for an op is the op table's, unless `defaults` has another."""
    known = inspect.signature(function).parameters
    given = {what: defaults.get(what, known[what].default) for what in settings}
    required = [what for what, default in given.items() if default is inspect.Parameter.empty]
    source = _SOURCE.format(
        name=name, settings=settings,
        parameters="".join(f"{what}, " if what in required else f"{what}={default!r}, " for what, default in given.items()),
        stores="".join(f"\n        self._{what} = {what}" for what in settings),
        passes="".join(f", self._{what}" for what in settings))
    scope = {"__name__": module, "Layer": Layer, "function": function}
    exec(source, scope)
    made = scope[name]
    made.__doc__ = inspect.getdoc(function).splitlines()[0]
    return made
