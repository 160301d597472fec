"""while and for. A symbolic condition makes one while op whose variables are the tensors (and numbers, which become
tensors) that the body binds; loops over what Python can iterate are unrolled."""
from .... import _core
from ....tensor.array import TensorArray, create_array
from ..errors import refuse
from ..names import OWN
from . import effects, trees
from .branches import Branch, _describe, _describe_tree, _dtype_of, _equal, _is_value
from .changes import Changes, before_next, replace
from .logic import not_, refuse_raise
from .sequences import MAX, Items, Range, Sequence, as_sequence
from .state import UNDEFINED, Grows, State, loops, refill
from .numbers import Number, dtype_for, fits, in_dtype, kind, number, tensor
from .values import Tensor, symbolic, truth, user_place

_RETURNED = f"{OWN}_value"
_INDEX = f"{OWN}_index"
_UNROLL = 16  # turns of a range that are unrolled when a break depends on tensors


class _Again(Exception):
    """The body needs more loop variables than it was given."""


def while_(test, body, names=(), live=()):
    """while test(): body(); names are bound by them, and live are read afterwards."""
    while True:
        goes_on = test()
        if symbolic(goes_on):
            Loop(test, body, names, live).run()
            return
        if not goes_on:
            return
        body()


def for_(iterable, body, names=(), live=(), stop=None):
    """for item in iterable: body(item), until stop() is true."""
    if symbolic(iterable):
        iterable = as_sequence(iterable)
    elif isinstance(iterable, TensorArray):
        iterable = Items(iterable)
    if isinstance(iterable, Sequence):
        _for_sequence(iterable, body, names, live, stop)
        return
    iterator = iter(iterable)
    before_next(iterator)
    for turn, item in enumerate(iterator):
        body(item)
        if stop is None:
            continue
        stopped = stop()
        if symbolic(stopped):
            _for_rest(iterable, iterator, turn + 1, body, names, live, stop)
            return
        if stopped:
            return


def _for_rest(iterable, iterator, turn, body, names, live, stop):
    """The turns after one in which it became a matter of tensors whether the loop goes on."""
    if isinstance(iterable, range) and len(iterable) - turn > _UNROLL:
        rest = iterable[turn:]
        _for_sequence(Range(number(rest.start), rest.stop, rest.step), body, names, live, stop)
        return
    for item in iterator:
        turn += 1
        if turn > MAX:
            raise refuse(f"a break that depends on tensors in a loop of more than {MAX} turns: loop over a range",
                         user_place())
        stopped = stop()
        if not symbolic(stopped):
            if stopped:
                return
            body(item)
            continue
        Branch(not_(stopped), _Turn(body, item), _NOTHING, names, functions=(body, stop)).run()


class _Turn:
    """body(item), as a function without arguments."""

    def __init__(self, body, item):
        self.body, self.item = body, item

    def __call__(self):
        self.body(self.item)


def _nothing():
    pass


_NOTHING = _nothing


def _for_sequence(sequence, body, names, live, stop):
    """A loop over what only the run can count."""
    count = sequence.length()
    index = [number(0)]

    def test():
        goes_on = index[0] < count
        return goes_on if stop is None else _core.logical_and(goes_on, truth(tensor(not_(stop()))))

    def turn():
        body(sequence.at(index[0]))
        index[0] = index[0] + 1

    Loop(test, turn, names, live, functions=(body, stop) if stop else (body,), index=index).run()


class _Filler:
    """Zeros in place of a value that is not read before the loop has set it; made where the loop begins."""

    def __init__(self, like):
        self.dims, self.dtype, self.kind = [n if n >= 0 else 1 for n in like.declared_shape], like.dtype, type(like)

    def make(self):
        return self.kind(_core.full(self.dims, 0, self.dtype))


class Loop:
    """One symbolic loop. index: a list of one tensor that it counts in."""

    def __init__(self, test, body, names, live, functions=(), index=None):
        self.place = user_place()
        self.test, self.body = test, body
        self.state = State(tuple(functions) or (test, body), names)
        self.names, self.live = names, frozenset(live)
        self.index = index
        self.objects = {}  # id -> tensor object that the body overwrites
        self.originals = {}  # id -> what it was before the loop
        self.extra = []    # keys beyond names
        self.dtypes = {}   # (key, leaf) -> dtype of a number that turned out to need another
        self.widest = {}   # (key, leaf) -> kinds that a number has before and after turns
        self.tensors = {}  # (key, leaf) of numbers that a turn makes tensors -> their rank; every dim is 1
        self.start = {}    # key -> tree, for what is unbound before the loop
        self.growing = []  # lists that the body makes longer: (names, items, dtype)
        self.bound = []    # names that a turn binds first, and that are read afterwards: there must be a turn
        self.checks = index is not None and effects.checkable()

    def run(self):
        first = self.index and self.index[0]
        while True:
            while self.growing:
                self._as_arrays(*self.growing.pop())
            loops.append(self)
            try:
                results = _core.while_loop(self._test, self._body, self._begin())
                break
            except _Again:
                pass
            except Grows as grows:
                if not self.holds(grows.container):
                    raise
                self._note_growth(grows.container, grows.dtype)
            finally:
                loops.pop()
                self.state.restore()
                if self.index:
                    self.index[0] = first
        self._write(results, replacing=True)
        if self.bound:
            self._check_turns()
        for name in self.names:
            if ("name", name) not in self.trees and self.state.before[name] is UNDEFINED:
                self.state.slot(name).set(UNDEFINED)

    def holds(self, container):
        """Whether a variable was this list before the loop."""
        return any(value is container for value in self.state.before.values())

    def _note_growth(self, container, dtype):
        names = [name for name, value in self.state.before.items() if value is container]
        key = "contents", id(container)
        if key in self.extra:
            self.extra.remove(key)
        self.growing.append((names, list(self.state.containers[id(container)][1]), dtype))

    def _as_arrays(self, names, items, dtype):
        """A list that the loop makes longer becomes a tensor array: for the names, as if it had been one before."""
        array = create_array(dtype, items)
        for name in names:
            self.state.rebind(name, array)

    # variables

    def _before(self, key):
        if key in self.start:
            return self.start[key]
        value = (self.state.before[key[1]] if key[0] == "name" else
                 self.state.containers[key[1]][1] if key[0] == "contents" else self.objects[key[1]])
        leaves = []
        return trees.flatten(value, leaves), leaves

    def _begin(self):
        """The loop variables' first values; self.trees: key -> tree, self.variables: [(key, leaf)]."""
        self.trees, self.variables = {}, []
        keys = [("name", name) for name in self.names
                if self.state.before[name] is not UNDEFINED or ("name", name) in self.start]
        values = []
        for key in (*keys, *self.extra):
            structure, leaves = self._before(key)
            self.trees[key] = tree = structure, [leaf.make() if isinstance(leaf, _Filler) else leaf for leaf in leaves]
            for i, leaf in enumerate(tree[1]):
                if _is_value(leaf):
                    self.variables.append((key, i))
                    values.append(self._first(key, i, leaf))
        return values + (self.index or [])

    def _first(self, key, i, leaf):
        if kind(leaf) is None:
            return leaf if symbolic(leaf) else _core.assign(leaf)
        value = in_dtype(leaf, self.dtypes.get((key, i)) or _dtype_of(leaf))
        rank = self.tensors.get((key, i))
        return _core.reshape(value, [1] * rank) if rank else value

    def _is_number(self, place, leaf):
        return kind(leaf) is not None and place not in self.tensors

    def _write(self, values, replacing=False):
        """Gives the variables these values."""
        values = list(values)
        if self.index:
            self.index[0] = values.pop()
        given = dict(zip(self.variables, values))
        for key, (structure, leaves) in self.trees.items():
            values = [given.get((key, i), leaf) for i, leaf in enumerate(leaves)]
            value = trees.build(structure, iter([Number(one) if self._is_number((key, i), leaf) else one
                                                 for i, (one, leaf) in enumerate(zip(values, leaves))]))
            if key[0] == "name":
                self.state.slot(key[1]).set(value)
            elif key[0] == "contents":
                refill(self.state.containers[key[1]][0], value)
            elif replacing:
                replace(self.objects[key[1]], value)
            else:
                self.objects[key[1]]._become(value)

    # the two blocks

    def _test(self, *values):
        with Changes(self.state.tensors, self.state.iterators) as changes:
            try:
                self._write(values)
                goes_on = self.test()
                return truth(tensor(goes_on if _is_value(goes_on) else bool(goes_on)))
            finally:
                changes.restore()
                self.state.restore()
                self._put_back()

    def _put_back(self):
        for key in self.extra:
            if key[0] == "tensor":
                self.objects[key[1]]._become(self.originals[key[1]])

    def _body(self, *values):
        with Changes(self.state.tensors, self.state.iterators) as changes:
            try:
                self._write(values)
                given = list(values)
                self.body()
                return self._results(given, changes)
            except Exception as error:
                if getattr(error, "_proa_raised", False):
                    raise refuse_raise(error, self.place) from error
                raise
            finally:
                changes.restore()
                self.state.restore()
                self._put_back()

    def _results(self, given, changes):
        more = False
        names, contents = self.state.changed(self.place)
        for key in (*(("name", name) for name in names), *(("contents", one) for one in contents)):
            if key not in self.trees and (key[0] == "contents" or names[key[1]] is not UNDEFINED):
                self.extra.append(key)
                more = True
        for one in changes.tensors:
            if ("tensor", id(one)) not in self.trees and id(one) not in self.objects:
                self.objects[id(one)] = one
                self.originals[id(one)] = changes.before[id(one)][1]
                self.extra.append(("tensor", id(one)))
                more = True
        for name in self.names:
            more = self._new_name(name) or more
        for key in self.trees:
            self._check(key)
        results = [self._result(key, i) for key, i in self.variables]
        if more or None in results:
            raise _Again
        return results + (self.index or [])

    def _new_name(self, name):
        """A name that is unbound before the loop and bound in it."""
        key = "name", name
        if key in self.trees or self.state.before[name] is not UNDEFINED:
            return False
        value = self.state.slot(name).get()
        if value is UNDEFINED or name != _RETURNED and name not in self.live:
            return False
        leaves = []
        structure = trees.flatten(value, leaves)
        if name != _RETURNED:
            if all(not _is_value(leaf) for leaf in leaves):
                return False
            if self.checks:
                self.bound.append(name)
        if name not in (_RETURNED, *self.bound):
            raise refuse(f"{name} is bound only in the loop, whose number of turns is known only in the run, and read "
                         "after it: give it a value before the loop", self.place)
        self.start[key] = structure, [_Filler(leaf) if isinstance(leaf, Tensor) else leaf
                                      for leaf in leaves]
        return True

    def _check_turns(self):
        """In each run: names that a loop binds first are not read if it makes no turn."""
        names, file, line = ", ".join(self.bound), *self.place

        def check(values):
            if values[0].item() == 0:
                raise UnboundLocalError(f"{names} is bound in the loop at {file}:{line} alone, which made no turn, and "
                                        "read after it: give it a value before the loop")
        effects.on_run(check, [self.index[0]])

    def _after(self, key):
        value = (self.state.slot(key[1]).get() if key[0] == "name" else
                 self.state.containers[key[1]][0] if key[0] == "contents" else self.objects[key[1]])
        if key[0] == "contents" and isinstance(value, dict):
            value = dict(value)
        leaves = []
        if value is UNDEFINED:
            return None
        return trees.flatten(value, leaves), leaves

    def _result(self, key, i):
        """Leaf i of key after the body, in the dtype of its variable; None: it needs another one."""
        first, leaf = self.trees[key][1][i], self._after(key)[1][i]
        wanted = self._dtype(key, i, first)
        if self._is_number((key, i), first):
            return self._number(key, i, first, leaf, wanted)
        if kind(leaf):
            if not fits(leaf, wanted):
                raise self._changes(key, i, first, leaf)
            return in_dtype(leaf, wanted)
        dims = first.declared_shape if isinstance(first, Tensor) else [1] * self.tensors.get((key, i), 0)
        if leaf.dtype != wanted or leaf.ndim != len(dims) and dims != [0]:
            raise self._changes(key, i, first, leaf)  # an array without items takes any shape
        return _core.Tensor(leaf) if symbolic(leaf) else _core.assign(leaf)

    def _number(self, key, i, first, leaf, wanted):
        """_result for what is a number before the loop: a tensor, or a number of a wider kind, makes it one, too."""
        if kind(leaf) is None:
            if not fits(first, leaf.dtype) or any(n != 1 for n in leaf.declared_shape):
                raise self._changes(key, i, first, leaf)
            self.tensors[key, i] = leaf.ndim
            self.dtypes[key, i] = leaf.dtype
            return None
        self.widest[key, i] = {kind(first), kind(leaf), *self.widest.get((key, i), ())}
        if dtype_for(*self.widest[key, i]) != wanted:
            self.dtypes[key, i] = dtype_for(*self.widest[key, i])
            return None
        return in_dtype(leaf, wanted)

    def _dtype(self, key, i, leaf):
        return self.dtypes.get((key, i)) or _dtype_of(leaf)

    def _check(self, key):
        """Refuses what a loop cannot change."""
        before, after = self.trees[key], self._after(key)
        if after is None:
            raise refuse(f"{key[1]} is deleted in a loop whose number of turns is known only in the run", self.place)
        if before[0] != after[0]:
            self._grow(key, before, after)
        for i, (one, other) in enumerate(zip(before[1], after[1])):
            if _is_value(one) != _is_value(other) or not _is_value(one) and one is not other and not (
                    type(one) is type(other) and _equal(one, other)):
                raise self._changes(key, i, one, other)

    def _grow(self, key, before, after):
        """A list of tensors that only became longer is to be a tensor array; all else is refused."""
        contents = self.state.containers.get(key[1]) if key[0] == "contents" else None
        plain = contents and type(contents[0]) is list and len(after[0][1]) > len(before[0][1]) and \
            all(part is trees.LEAF for part in after[0][1]) and all(isinstance(one, Tensor) for one in after[1])
        if not plain or not self.holds(contents[0]) or len({one.dtype for one in after[1]}) > 1:
            raise self._refuse_structure(key, before, after)
        self._note_growth(contents[0], after[1][0].dtype)
        raise _Again

    # messages

    def _label(self, key):
        if key == ("name", _RETURNED):
            return "the returned value"
        return key[1] if key[0] == "name" else self.state.name_of(key[1])

    def _refuse_structure(self, key, before, after):
        return refuse(f"{self._label(key)} is {_describe_tree(before)} before the loop and {_describe_tree(after)} "
                      "after a turn of it, but the number of turns is known only in the run: keep what it gathers in "
                      "a tensor of known size", self.place)

    def _changes(self, key, i, one, other):
        path = trees.paths(self.trees[key][0])[i]
        return refuse(f"{self._label(key)}{path} is {_describe(one)} before the loop and {_describe(other)} after a "
                      "turn of it: where the number of turns is known only in the run, a variable keeps its dtype and "
                      "rank, and only tensors and numbers may change", self.place)
