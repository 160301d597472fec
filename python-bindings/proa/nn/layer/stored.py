"""Factory of layers that store settings and pass them to one function: the class is made from the function's signature
and description."""
import inspect

from ..functional._args import reduction_of
from .layers import Layer

_SOURCE = '''
class {name}(Layer):
    def __init__(self, {parameters}):{checks}
        super().__init__(){stores}

    def forward(self, {inputs}):
        return function({passes})

    def extra_repr(self):
        shown = [f"{{what}}={{getattr(self, attribute)}}" for what, attribute in {shows}]
        return ", ".join(shown{named})
'''


def stored(module, name, function, *settings, inputs=None, prefix="_", attributes=(), shows=None, named=True, checked=False, **defaults):
    """The layer `name` of `module`, whose forward(*inputs) is function(*inputs, *settings). A setting's default is the function's,
    which for an op is the op table's, unless `defaults` has another. Inputs are the parameters that have no default, unless named.

    prefix, attributes: a setting is kept as the attribute prefix + setting, unless `attributes` has another for it.
    shows: the settings in repr, all if None. named: whether the layer has a `name`. checked: whether `reduction` is checked
    when the layer is made. A function's parameter `training` is the layer's."""
    known = inspect.signature(function).parameters
    given = {what: defaults.get(what, known[what].default) for what in settings}
    kept = {what: dict(attributes).get(what, prefix + what) for what in settings}
    takes = [what for what, p in known.items() if p.default is inspect.Parameter.empty and what not in given]
    passes, order = [], [what for what in known if what in given or what == "training"]
    start = len(takes)
    for at, what in enumerate(order):  # by position as far as they follow one another
        value = "self.training" if what == "training" else f"self.{kept[what]}"
        passes.append(value if list(known)[start + at] == what else f"{what}={value}")
    takes = list(inputs or takes)
    parameters = [what if value is inspect.Parameter.empty else f"{what}={value!r}" for what, value in given.items()]
    stores = [f"self.{kept[what]} = {what}" for what in settings]
    if named:
        parameters.append("name=None")
        stores.append(f"self.{prefix}name = name")
    source = _SOURCE.format(
        name=name, parameters=", ".join(parameters), inputs=", ".join(takes), passes=", ".join(takes + passes),
        checks=f'\n        reduction_of(reduction, "{name}")' if checked else "",
        stores="".join(f"\n        {store}" for store in stores),
        shows=[(what, kept[what]) for what in (settings if shows is None else shows)],
        named=f' + ([f"name={{self.{prefix}name}}"] if self.{prefix}name else [])' if named and shows is None else "")
    scope = {"__name__": module, "Layer": Layer, "function": function, "reduction_of": reduction_of}
    exec(source, scope)
    made = scope[name]
    made.__doc__ = inspect.getdoc(function).splitlines()[0]
    return made
