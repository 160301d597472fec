"""if and the ternary. A symbolic condition runs both blocks, one after the other on the same state, and joins what
they left: tensors become results of one cond op, equal values stay, and anything else is the user's error."""
from .... import _core
from ..errors import half_bound, refuse
from ..names import OWN
from . import effects, trees
from .changes import Changes, copied, is_statistic, replace
from .logic import refuse_raise
from .state import UNDEFINED, Grows, State, loops, refill
from .numbers import Number, dtype_for, fits, kind, number
from .values import NUMBERS, Tensor, dtype_of_number, symbolic, truth, user_place

_FLAGS = tuple(f"{OWN}_{what}_" for what in ("stop", "skip", "done"))
RESULT = "result", ""
_FROM_RUN = object()  # a leaf that cond returns
_RETURNED = f"{OWN}_value"  # what a return inside a loop left: no one reads it where it was not set


class _Again(Exception):
    """The first block must return what only the second one showed to be needed, or statistics move in a block."""


def if_(test, then, otherwise, names=()):
    """if test: then() else: otherwise(), with names bound by the two around them. Returns what they return."""
    if not symbolic(test):
        return then() if test else otherwise()
    return Branch(test, then, otherwise, names).run()


def choose(test, then, otherwise):
    """then() if test else otherwise()"""
    if not symbolic(test):
        return then() if test else otherwise()
    return Branch(test, then, otherwise, (), "the value of the expression").run()


class _Raises(Exception):
    """A block does nothing but raise: which one, and what."""

    def __init__(self, which, error):
        super().__init__()
        self.which, self.error = which, error


class _Left:
    """Results of a block: key -> (structure, leaves); keys are ("name", n), ("contents", id), ("tensor", id), RESULT."""

    def __init__(self):
        self.trees = {}
        self.overwritten = {}  # id of a tensor object -> what it showed when the block ended

    def put(self, key, value):
        leaves = []
        self.trees[key] = trees.flatten(value, leaves), leaves


class Branch:
    """One symbolic if."""

    def __init__(self, test, then, otherwise, names, what="the returned value", functions=None):
        self.place = user_place()
        self.test = truth(test)
        self.checks = effects.checkable()
        self.blocks = then, otherwise
        self.state = State(functions or self.blocks, names)
        self.names, self.what = names, what
        self.moving = []    # running statistics that a block overwrites outside loops: their copies go in
        self.objects = {}   # id -> tensor object that a block overwrote
        self.tried = None   # what the blocks left at a first try
        self.wanted = None  # what cond returns: [(key, leaf, dtype or None)]
        self.needed = None  # what it must return: (key, leaf) -> dtype
        self.arrays = set()  # of these, tensor arrays that have items one way alone
        self.numbers = set()  # of these, Python's numbers both ways

    def run(self):
        while True:
            try:
                with copied(self.moving):
                    results = _core.cond(self.test, self._first, self._second)
                break
            except _Again:
                self.state.restore()
            except _Raises as found:
                self.state.restore()
                return self._checked(found)
            except BaseException:
                self.state.restore()
                raise
        return self._join(results)

    def _checked(self, found):
        """The other block; each run first looks whether it is the one to take."""
        def check(values):
            if values[0].item() == (found.which == 0):
                raise found.error
        effects.on_run(check, [self.test])
        return self.blocks[1 - found.which]()

    # running the blocks

    def _block(self, which):
        """Runs a block and returns its results; the state is as before."""
        left = _Left()
        with Changes(self.state.tensors, self.state.iterators) as changes:
            try:
                left.put(RESULT, self.blocks[which]())
                for name in self.names:
                    left.put(("name", name), self.state.slots[name].get())
                names, contents = self.state.changed(self.place)
                for name, value in names.items():
                    left.put(("name", name), value)
                for key, value in contents.items():
                    left.put(("contents", key), value)
                left.overwritten = changes.values()
                for one in changes.tensors:
                    self.objects[id(one)] = one
                    left.put(("tensor", id(one)), left.overwritten[id(one)])
            except Exception as error:
                if getattr(error, "_proa_raised", False):
                    if self.checks:
                        raise _Raises(which, error.with_traceback(None)) from None
                    raise refuse_raise(error, self.place) from error
                raise
            finally:
                changes.restore()
                self.state.restore()
        self._statistics(changes.tensors)
        return left

    def _statistics(self, changed):
        """A loop has them as variables. A branch alone would save them as they are before they are written, and its
        backward would find them changed: it is built again, on copies."""
        known = {id(one) for one in self.moving}
        found = [] if loops else [one for one in changed if is_statistic(one) and id(one) not in known]
        if found:
            self.moving += found
            raise _Again

    def _first(self):
        self.left = self._block(0)
        if self.tried is None:
            self.wanted = [(key, i, None) for key, (_, leaves) in self.left.trees.items()
                           for i, leaf in enumerate(leaves) if _is_value(leaf)]
        else:
            self.wanted = [(key, i, dtype) for (key, i), dtype in self.needed.items()]
        other = self.tried and self.tried[1]
        return [self._output(self.left, other, *one) for one in self.wanted]

    def _second(self):
        first, second = self.left, self._block(1)
        self._compare(first, second)
        if self.tried is None and not self._covered(first):
            self.tried = first, second
            raise _Again
        return [self._output(second, first, *one) for one in self.wanted]

    def _tree(self, left, key):
        """Structure and leaves under key after a block: those from before if it did not touch it."""
        if key in left.trees:
            return left.trees[key]
        value = (self.state.before[key[1]] if key[0] == "name" else
                 self.state.containers[key[1]][1] if key[0] == "contents" else self.objects[key[1]])
        leaves = []
        return trees.flatten(value, leaves), leaves

    def _covered(self, first):
        """Did the first block return all that is needed, as it is needed?"""
        given = {(key, i) for key, i, _ in self.wanted}
        return not self.arrays and all(place in given and _dtype_of(first.trees[place[0]][1][place[1]]) == dtype
                   for place, dtype in self.needed.items())

    def _output(self, left, other, key, i, dtype):
        """Leaf i of key as a tensor; where the block has none, and none will be read, zeros like the other's."""
        leaf = _leaf_at(self._tree(left, key), i)
        given = _leaf_at(self._tree(other, key), i) if other else UNDEFINED
        read = self.needed is None or (key, i) in self.needed
        if not _is_value(leaf) or not read and not _alike(leaf, given):
            return _zeros(given)
        dtype = dtype or _dtype_of(given if _is_value(given) else leaf)
        if not isinstance(leaf, Tensor):
            return number(leaf, dtype)
        leaf = left.overwritten.get(id(leaf), leaf)
        if leaf.dtype != dtype:
            return _core.cast(leaf, dtype)
        if _is_empty(leaf) and isinstance(given, Tensor) and given.ndim > 1:
            return _core.array_create(dtype, [max(n, 0) for n in given.declared_shape[1:]])
        return leaf if symbolic(leaf) else _core.assign(leaf)

    # comparing

    def _compare(self, first, second):
        """self.joined: key -> (structure, leaves or _FROM_RUN); self.needed: what cond must give."""
        self.joined, self.needed = {}, {}
        for key in dict.fromkeys((*first.trees, *second.trees)):
            mine, theirs = self._tree(first, key), self._tree(second, key)
            missing = [any(leaf is UNDEFINED for leaf in tree[1]) for tree in (mine, theirs)]
            if any(missing):
                if not all(missing) and (key == ("name", _RETURNED) or _jumps(first if missing[0] else second)):
                    mine = theirs = theirs if missing[0] else mine
                    self._fill(key, mine)
                else:
                    self.joined[key] = trees.LEAF, [UNDEFINED]
                    if not all(missing):
                        half_bound[key[1]] = self.place
            elif mine[0] != theirs[0]:
                self._grow(key, mine, theirs)
                raise self._differ(key, "", _describe_tree(mine), _describe_tree(theirs))
            else:
                self.joined[key] = mine[0], [self._leaf(key, mine[0], i, one, other)
                                             for i, (one, other) in enumerate(zip(mine[1], theirs[1]))]

    def _grow(self, key, one, other):
        """Hands a list of tensors that is longer one way to the loop that it was there before."""
        if key[0] != "contents" or type(self.state.containers[key[1]][0]) is not list:
            return
        container, leaves = self.state.containers[key[1]][0], [*one[1], *other[1]]
        flat = all(part is trees.LEAF for tree in (one, other) for part in tree[0][1])
        if flat and leaves and all(isinstance(leaf, Tensor) for leaf in leaves) and \
                any(loop.holds(container) for loop in loops):
            raise Grows(container, leaves[0].dtype)

    def _fill(self, key, tree):
        """A value that one block leaves and the other does not, and that is read only if it was left."""
        leaves = list(tree[1])
        for i, leaf in enumerate(leaves):
            if _is_value(leaf):
                self.needed[key, i] = _dtype_of(leaf)
                self._note_number((key, i), leaf)
                leaves[i] = _FROM_RUN
        self.joined[key] = tree[0], leaves

    def _leaf(self, key, structure, i, one, other):
        if one is other and (not isinstance(one, Tensor) or self._untouched(key, i, one)):
            return one
        if not isinstance(one, Tensor) and not isinstance(other, Tensor):
            if type(one) is type(other) and _equal(one, other):
                return one
        dtype = _common(one, other)
        if dtype is None:
            path = trees.paths(structure)[i]
            raise self._differ(key, path, _describe(one), _describe(other))
        self.needed[key, i] = dtype
        self._note_number((key, i), one, other)
        if _is_empty(one) != _is_empty(other):
            self.arrays.add((key, i))
        return _FROM_RUN

    def _note_number(self, place, *values):
        (self.numbers.add if all(kind(value) for value in values) else self.numbers.discard)(place)

    def _untouched(self, key, i, leaf):
        """The same object as before, so that it need not pass through cond."""
        if key == RESULT or key[0] == "tensor":
            return False
        return _leaf_at(self._tree(_Left(), key), i) is leaf

    # joining

    def _join(self, results):
        given = {(key, i): Number(value) if (key, i) in self.numbers else value
                 for (key, i, _), value in zip(self.wanted, results)}
        result = None
        for key, (structure, leaves) in self.joined.items():
            if structure is trees.LEAF and leaves[0] is UNDEFINED:
                value = UNDEFINED
            else:
                value = trees.build(structure, iter([given[key, i] if leaf is _FROM_RUN else leaf
                                                     for i, leaf in enumerate(leaves)]))
            if key == RESULT:
                result = value
            elif key[0] == "name":
                self._bind(key[1], value)
            elif key[0] == "contents":
                refill(self.state.containers[key[1]][0], value)
            else:
                replace(self.objects[key[1]], value)
        return result

    def _bind(self, name, value):
        """A list, tuple or dict whose parts are all as before stays the object it was."""
        before = self.state.before[name]
        if before is not UNDEFINED and value is not UNDEFINED:
            old, new = [], []
            if trees.flatten(before, old) == trees.flatten(value, new) and all(a is b for a, b in zip(old, new)):
                return
        self.state.slot(name).set(value)

    # messages

    def _label(self, key):
        if key == RESULT or key[1] == _RETURNED:
            return self.what
        if key[0] == "name":
            return key[1]
        return self.state.name_of(key[1]) if key[0] == "contents" else "a tensor written in place"

    def _differ(self, key, path, one, other):
        return refuse(f"{self._label(key)}{path} is {one} where the condition holds and {other} where it does not: a "
                      "condition that is known only in the run chooses between tensors of one dtype and rank, or "
                      "between numbers, and nothing else", self.place)


def _jumps(left):
    """Did this block break, continue or return? Then nobody reads what it did not bind."""
    return any(key[0] == "name" and key[1].startswith(_FLAGS) and tree[1] == [True]
               for key, tree in left.trees.items() if tree[0] is trees.LEAF and isinstance(tree[1][0], bool))


def _is_value(leaf):
    return isinstance(leaf, (Tensor, *NUMBERS))


def _leaf_at(tree, i):
    return tree[1][i] if i < len(tree[1]) else UNDEFINED


def _dtype_of(value):
    return value.dtype if isinstance(value, Tensor) else dtype_of_number(value)


def _alike(one, other):
    """Could both be results of one cond?"""
    if not _is_value(other):
        return True
    return _dtype_of(one) == _dtype_of(other) and getattr(one, "ndim", 0) == getattr(other, "ndim", 0)


def _zeros(value):
    if isinstance(value, Tensor):
        return _core.full([n if n >= 0 else 1 for n in value.declared_shape], 0, value.dtype)
    return number(value if _is_value(value) else 0)


def _equal(one, other):
    try:
        return bool(one == other)
    except Exception:
        return False


def _common(one, other):
    """The dtype of a cond's result that is one or other; None if they do not fit."""
    if not _is_value(one) or not _is_value(other):
        return None
    kinds = {kind(one), kind(other)}
    if None not in kinds:
        return dtype_for(*kinds) if bool not in kinds or len(kinds) == 1 else None
    if len(kinds) == 1:
        alike = one.ndim == other.ndim or _is_empty(one) or _is_empty(other)
        return one.dtype if one.dtype == other.dtype and alike else None
    known, plain = (other, one) if kind(one) else (one, other)
    return known.dtype if not known.ndim and fits(plain, known.dtype) else None


def _is_empty(value):
    """An array that nothing was written to: its items may have any shape."""
    return isinstance(value, Tensor) and value.declared_shape == [0]


def _describe(value):
    if isinstance(value, Number):
        return f"a {value.kind.__name__} that only the run knows"
    if isinstance(value, Tensor):
        return f"a {str(value.dtype).replace('paddle.', '')} tensor of shape {value.declared_shape}"
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"


def _describe_tree(tree):
    return _describe(tree[1][0]) if tree[0] is trees.LEAF else trees.describe(tree[0])
