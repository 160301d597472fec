"""fluid.layers.utils: flatten, map_structure and pack_sequence_as for nested structures."""
from ...utils import flatten, map_structure, pack_sequence_as


def is_sequence(value):
    """Whether value is a list, tuple or dict."""
    return isinstance(value, (list, tuple, dict))


def convert_to_list(value, n, name, dtype=int):
    """n numbers: one repeated, or a list of n."""
    if isinstance(value, dtype):
        return [value] * n
    found = list(value)
    if len(found) != n:
        raise ValueError(f"The {name} must be a single integer or a tuple of {n} integers. Received: {value}")
    return found
