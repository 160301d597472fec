"""Functions on nested lists, tuples and dicts: map_structure, flatten, pack_sequence_as. Dicts are traversed in the
sorted order of their keys."""
__all__ = ["assert_same_structure", "flatten", "map_structure", "pack_sequence_as"]


def _items(structure):
    if isinstance(structure, dict):
        return [structure[key] for key in sorted(structure)]
    return list(structure) if isinstance(structure, (list, tuple)) else None


def flatten(nest):
    """The leaves from left to right.

    >>> import proa as paddle
    >>> paddle.utils.flatten([1, (2, {"b": 4, "a": 3})])
    [1, 2, 3, 4]
    """
    items = _items(nest)
    return [nest] if items is None else [leaf for item in items for leaf in flatten(item)]


def _rebuilt(structure, leaves):
    items = _items(structure)
    if items is None:
        return next(leaves)
    made = [_rebuilt(item, leaves) for item in items]
    if isinstance(structure, dict):
        return type(structure)(zip(sorted(structure), made))
    return type(structure)(*made) if hasattr(structure, "_fields") else type(structure)(made)


def pack_sequence_as(structure, flat_sequence):
    """The leaves of flat_sequence in the form of structure."""
    leaves = list(flat_sequence)
    count = len(flatten(structure))
    if count != len(leaves):
        raise ValueError(f"Could not pack sequence. Structure had {count} elements, but flat_sequence had {len(leaves)} "
                         f"elements. Structure: {structure}, flat_sequence: {flat_sequence}.")
    return _rebuilt(structure, iter(leaves))


def map_structure(func, *structure):
    """func of the leaves that stand at the same place, in the form of the first structure."""
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])


def assert_same_structure(nest1, nest2, check_types=True):
    """ValueError or TypeError where two structures have different forms."""
    first, second = _items(nest1), _items(nest2)
    if (first is None) != (second is None) or first is not None and len(first) != len(second):
        raise ValueError(f"The two structures don't have the same number of elements: {nest1} and {nest2}")
    if first is None:
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"The two structures don't have the same sequence type: {type(nest1)} and {type(nest2)}")
    for one, other in zip(first, second):
        assert_same_structure(one, other, check_types)
