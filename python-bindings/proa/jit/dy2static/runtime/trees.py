"""Nested lists, tuples and dicts as a structure and its leaves."""


class Leaf:
    """The place of a leaf in a structure."""

    def __repr__(self):
        return "*"


LEAF = Leaf()


def _sorted(keys):
    """In Paddle's order of a dict's leaves, in which saved programs take and return them."""
    try:
        return sorted(keys)
    except TypeError:
        return keys


def flatten(value, leaves):
    """The structure of value; its leaves are appended to the list, those of dicts sorted by key."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind, tuple(flatten(one, leaves) for one in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind, tuple(flatten(one, leaves) for one in value)
    if isinstance(value, dict):
        parts = {key: flatten(value[key], leaves) for key in _sorted(value)}
        return kind, tuple(value), tuple(parts[key] for key in value)
    leaves.append(value)
    return LEAF


def build(structure, leaves):
    """The value of a structure with these leaves (an iterator)."""
    if structure is LEAF:
        return next(leaves)
    kind = structure[0]
    if len(structure) == 3:
        parts = dict(zip(structure[1], structure[2]))
        values = {key: build(parts[key], leaves) for key in _sorted(parts)}
        made = [(key, values[key]) for key in structure[1]]
        try:
            return kind(made)
        except TypeError:
            return dict(made)
    parts = [build(one, leaves) for one in structure[1]]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def describe(structure):
    """For messages."""
    if structure is LEAF:
        return "a value"
    if len(structure) == 3:
        return f"a {structure[0].__name__} with keys {list(structure[1])}"
    return f"a {structure[0].__name__} of {len(structure[1])}"


def names(structure, name):
    """What Paddle calls each leaf of an argument: name_0 in a list, by its key in a dict."""
    if structure is LEAF:
        return [name]
    if len(structure) == 3:
        parts = dict(zip(structure[1], structure[2]))
        return [one for key in _sorted(parts) for one in names(parts[key], str(key))]
    return [one for i, part in enumerate(structure[1]) for one in names(part, f"{name}_{i}")]


def paths(structure, at=""):
    """A name for each leaf: [0]['key']…"""
    if structure is LEAF:
        return [at]
    if len(structure) == 3:
        parts = dict(zip(structure[1], structure[2]))
        return [path for key in _sorted(parts) for path in paths(parts[key], f"{at}[{key!r}]")]
    return [path for i, one in enumerate(structure[1]) for path in paths(one, f"{at}[{i}]")]
