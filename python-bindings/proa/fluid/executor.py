"""fluid.executor: Executor and scopes, re-exported from paddle.static, and as_numpy."""
import numpy

from ..static.executor import Executor
from ..static.scope import ScopeTensor, _switch_scope, global_scope, scope_guard

__all__ = ["Executor", "global_scope", "scope_guard"]


def as_numpy(tensor, copy=False):
    """Fetched values as arrays."""
    if isinstance(tensor, (list, tuple)):
        return [as_numpy(one) for one in tensor]
    return numpy.array(tensor)


def _as_lodtensor(data, place, dtype=None):
    """A value as a tensor that can be fed."""
    made = ScopeTensor()
    made.set(numpy.asarray(data, dtype=dtype if isinstance(dtype, (str, type(None))) else None), place)
    return made


def _fetch_var(name, scope=None, return_numpy=True):
    """The value of a persistable variable in a scope."""
    found = (scope or global_scope()).find_var(name)
    if found is None:
        raise AssertionError(f"Cannot find {name} in scope. Perhaps you need to make the variable persistable.")
    tensor = found.get_tensor()
    return as_numpy(tensor) if return_numpy else tensor
