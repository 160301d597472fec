"""Operators as functions, as Paddle 2.3 and later call them: op(*inputs, *attributes) in the operator's order; attributes with
their names before them, as earlier, are taken, too. The names are those of Paddle's format."""
from . import _legacy_C_ops


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    getattr(_legacy_C_ops, name)  # says which operators there are

    def op(*args):
        return _legacy_C_ops.call(name.rstrip("_"), *args, ordered=True)
    op.__name__ = op.__qualname__ = name
    globals()[name] = op
    return op
