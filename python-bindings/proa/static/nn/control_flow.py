"""Control flow: cond, case, switch_case and while_loop. With a value at hand they call plain functions; with a
variable they build operators whose bodies are the functions."""
from ... import _core
from ..._elsewhere import elsewhere
from ...tensor.array import Outer, TensorArray

__all__ = ["case", "cond", "switch_case", "while_loop"]

__getattr__ = elsewhere(__name__)


# ---- nested results ------------------------------------------------------------------------------------------------

def _flat(value, out):
    """The tensors in nested lists, tuples and dicts; returns the structure, with tensors counted out."""
    if isinstance(value, _core.Tensor):
        out.append(value)
        return _Leaf
    if isinstance(value, TensorArray):
        out.append(value._value)
        return _Array(value)
    if isinstance(value, dict):
        return {key: _flat(value[key], out) for key in value}
    if isinstance(value, (list, tuple)):
        parts = [_flat(v, out) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class _Leaf:
    """Stands for a tensor in a structure."""


class _Array:
    """Stands for a tensor array in a structure. The same object goes on, with another value."""

    def __init__(self, array):
        self.array = array

    def filled(self, value):
        self.array._value = value
        return self.array


def _filled(structure, tensors):
    if structure is _Leaf:
        return next(tensors)
    if isinstance(structure, _Array):
        return structure.filled(next(tensors))
    if isinstance(structure, dict):
        return {key: _filled(structure[key], tensors) for key in structure}
    if isinstance(structure, (list, tuple)):
        parts = [_filled(v, tensors) for v in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    return structure


def _same(a, b):
    """Whether two structures agree but for numbers, which become tensors."""
    if (a is _Leaf or _is_number(a)) and (b is _Leaf or _is_number(b)):
        return True
    if isinstance(a, _Array) and isinstance(b, _Array):
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return a is b or type(a) is type(b) and a == b


def _is_number(value):
    return isinstance(value, (bool, int, float))


def _as_tensors(value):
    """Numbers in a structure as tensors of one element."""
    if isinstance(value, (_core.Tensor, TensorArray)) or value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return _core.full([], value, "bool")
    if isinstance(value, int):
        return _core.full([], value, "int64")
    if isinstance(value, float):
        return _core.full([], value, _core.get_default_dtype())
    if isinstance(value, dict):
        return {key: _as_tensors(value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        parts = [_as_tensors(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


# ---- branches ------------------------------------------------------------------------------------------------------

def _condition(pred, who):
    """pred as a bool tensor of one element, or a plain bool."""
    if isinstance(pred, bool):
        return pred
    if not isinstance(pred, _core.Tensor):
        raise TypeError(f"{who}: pred must be a boolean Variable of one element, got {type(pred).__name__}")
    if pred.dtype != _core.bool:
        raise TypeError(f"{who}: pred must be bool, got {str(pred.dtype).rpartition('.')[2]}")
    if any(n != 1 and n >= 0 for n in pred.declared_shape):
        raise TypeError(f"{who}: pred must have one element, got shape {pred.shape}")
    return pred if pred.is_symbolic else bool(pred)


def cond(pred, true_fn=None, false_fn=None, name=None, return_names=None):
    """true_fn() where pred holds, false_fn() where it does not; both return alike nests of tensors.

    >>> import proa as paddle
    >>> x = paddle.to_tensor(2.0)
    >>> float(paddle.static.nn.cond(x > 1.0, lambda: x * 10.0, lambda: x))
    20.0
    """
    for what, fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        if fn is not None and not callable(fn):
            raise TypeError(f"cond: {what} must be callable, got {type(fn).__name__}")
    pred = _condition(pred, "cond")
    if isinstance(pred, bool):
        fn = true_fn if pred else false_fn
        return None if fn is None else fn()
    seen, arrays = {}, _Arrays()

    def branch(fn, which):
        def run():
            arrays.begin()
            result = None if fn is None else _as_tensors(fn())
            tensors = []
            seen[which] = _flat(result, tensors)
            return tensors + arrays.end()
        return run

    out = arrays.build(lambda: _core.cond(pred, branch(true_fn, "true_fn"), branch(false_fn, "false_fn")))
    first, second = seen["true_fn"], seen["false_fn"]
    if not _same(first, second):
        raise ValueError("cond: true_fn and false_fn must return the same nest of tensors, got "
                         f"{_shown(first)} and {_shown(second)}")
    return _filled(first, iter(arrays.take(out)))


class _Again(Exception):
    """The blocks must be built once more: they write arrays that they were not known to write."""


class _Arrays:
    """The tensor arrays from outside that blocks write without being given or returning them. A block cannot write
    outside, so these are further results of it (and of a loop, further variables)."""

    def __init__(self, given=()):
        self.given = given  # these are variables of the loop already
        self.known, self.start, self.ranks = [], [], {}

    def build(self, make):
        """make(), whose blocks call begin and end."""
        while True:
            self.start = [a._value for a in self.known]
            with Outer() as self.outer:
                try:
                    return make()
                except _Again:
                    pass
                finally:
                    self._restore()

    def _restore(self):
        for a, value in self.outer.arrays:
            a._value = value

    def begin(self, values=None):
        """A block starts, with these values of the arrays."""
        for a, value in zip(self.known, self.start if values is None else values):
            a._value = value

    def end(self):
        """The values of the arrays at the end of a block."""
        now = [self._shaped(a) for a in self.known]
        fresh = [a for a, _ in self.outer.arrays if not any(a is k for k in (*self.known, *self.given))]
        for a in fresh:
            self.ranks[id(a)] = a._value.declared_shape
        self._restore()
        if fresh:
            self.known += fresh
            raise _Again
        return now

    def _shaped(self, array):
        """Its value; where it has no items, of the rank that another block gives it."""
        dims = self.ranks[id(array)]
        if array._value.declared_shape == [0] and len(dims) > 1:
            return _core.array_create(array.dtype, [max(n, 0) for n in dims[1:]])
        return array._value

    def take(self, out):
        """Gives the arrays their values after the blocks; returns the other results."""
        count = len(out) - len(self.known)
        for a, value in zip(self.known, out[count:]):
            a._set(value)
        return out[:count]


def _shown(structure):
    if structure is _Leaf:
        return "a tensor"
    if isinstance(structure, dict):
        return "{" + ", ".join(f"{k!r}: {_shown(v)}" for k, v in structure.items()) + "}"
    if isinstance(structure, (list, tuple)):
        return "[" + ", ".join(map(_shown, structure)) + "]"
    return repr(structure)


def case(pred_fn_pairs, default=None, name=None):
    """The function of the first pair (condition, function) whose condition holds; else default, or the last one."""
    if not isinstance(pred_fn_pairs, (list, tuple)):
        raise TypeError(f"case: pred_fn_pairs must be a list or tuple, got {type(pred_fn_pairs).__name__}")
    if not pred_fn_pairs:
        raise ValueError("case: pred_fn_pairs must not be empty")
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"case: an entry of pred_fn_pairs must be a tuple (condition, function), got {pair!r}")
        if not isinstance(pair[0], _core.Tensor):
            raise TypeError(f"case: a condition must be a Variable, got {type(pair[0]).__name__}")
        if not callable(pair[1]):
            raise TypeError(f"case: {pair[1]!r} is not callable")
    pairs = list(pred_fn_pairs)
    if default is None:
        default = pairs.pop()[1]
    elif not callable(default):
        raise TypeError(f"case: default must be callable, got {type(default).__name__}")
    fn = default
    for pred, then in reversed(pairs):
        fn = _chosen(pred, then, fn)
    return fn()


def _chosen(pred, then, otherwise):
    return lambda: cond(pred, then, otherwise)


def switch_case(branch_index, branch_fns, default=None, name=None):
    """The function whose number branch_index is; else default, or the one of the largest number."""
    if not isinstance(branch_index, (_core.Tensor, int)):
        raise TypeError(f"switch_case: branch_index must be an integer Variable, got {type(branch_index).__name__}")
    if isinstance(branch_fns, dict):
        pairs = sorted(branch_fns.items())
    elif isinstance(branch_fns, (list, tuple)) and branch_fns:
        pairs = sorted(p if isinstance(p, tuple) else (i, p) for i, p in enumerate(branch_fns))
    else:
        raise TypeError("switch_case: branch_fns must be a dict, or a list of functions or of (number, function)")
    for key, fn in pairs:
        if not isinstance(key, int) or not callable(fn):
            raise TypeError(f"switch_case: expected a number and a function, got {key!r} and {fn!r}")
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("switch_case: a number appears twice in branch_fns")
    if default is None:
        default = pairs.pop()[1]
    elif not callable(default):
        raise TypeError(f"switch_case: default must be callable, got {type(default).__name__}")
    fn = default
    for key, then in reversed(pairs):
        same = branch_index == key if isinstance(branch_index, int) else \
            _core.equal(branch_index, _core.full_like(branch_index, key))
        fn = _chosen(same, then, fn)
    return fn()


# ---- loops ---------------------------------------------------------------------------------------------------------

def while_loop(cond, body, loop_vars, is_test=False, name=None):
    """loop_vars = body(*loop_vars) while cond(*loop_vars) holds; returns the last ones.

    >>> import proa as paddle
    >>> i = paddle.to_tensor(0)
    >>> int(paddle.static.nn.while_loop(lambda i: i < 5, lambda i: [i + 2], [i])[0])
    6
    """
    for what, fn in (("cond", cond), ("body", body)):
        if not callable(fn):
            raise TypeError(f"while_loop: {what} must be callable, got {type(fn).__name__}")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"while_loop: loop_vars must be a list or tuple, got {type(loop_vars).__name__}")
    if not loop_vars:
        raise ValueError("while_loop: loop_vars must not be empty")
    if not _core.is_capturing():
        return _plain_loop(cond, body, loop_vars)
    tensors = []
    structure = _flat(_as_tensors(list(loop_vars)), tensors)
    arrays = _Arrays(_arrays_in(structure))

    def split(now):
        arrays.begin(now[len(tensors):])
        return _filled(structure, iter(now[:len(tensors)]))

    def check(*now):
        held = cond(*split(now))
        return _core.full([], held, "bool") if isinstance(held, bool) else held

    def step(*now):
        after = _body_result(body(*split(now)), len(loop_vars))
        found = []
        if not _same(_flat(_as_tensors(list(after)), found), structure):
            raise ValueError("while_loop: body must return the same nest of tensors as loop_vars")
        return found + arrays.end()

    return _filled(structure, iter(arrays.take(arrays.build(
        lambda: _core.while_loop(check, step, [*tensors, *arrays.start])))))


def _arrays_in(structure):
    if isinstance(structure, _Array):
        return [structure.array]
    parts = structure.values() if isinstance(structure, dict) else structure \
        if isinstance(structure, (list, tuple)) else ()
    return [a for part in parts for a in _arrays_in(part)]


def _body_result(after, count):
    after = list(after) if isinstance(after, (list, tuple)) else [after]
    if len(after) != count:
        raise ValueError(f"while_loop: body must return as many values as there are loop_vars, {count}, got "
                         f"{len(after)}")
    return after


def _plain_loop(cond, body, loop_vars):
    now = list(loop_vars)
    while bool(_condition(cond(*now), "while_loop")):
        now = _body_result(body(*now), len(now))
    return now
