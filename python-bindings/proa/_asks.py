"""What Paddle's Python asks of a function's arguments before its C++ sees them, in the order of asking. The answers matter
only after a call has failed: they choose the exception that Paddle raises for the first wrong argument. Before a call goes to
a Program, the dtypes of its variables and whether a Program has the function are asked, too. Uses _core, _errors.

Rules are words of a text. `static:` or `eager:` before a word limits it to programs or to eager calls, `!Type` behind it
names another exception, or a category of Paddle's:

    x.shape          has the attribute                 AttributeError
    x:Tensor,int     is of one of the types            TypeError
    x:-Tensor        is not of the type                TypeError
    x#2  x#>=2       has so many dims                  ValueError
    x#=y             has as many dims                  ValueError
    x[1]=y[0]        has as many entries there         ValueError
    x[1]|y[0]        has as many or 1                  ValueError
    x.dtype=y.dtype  has the same                      TypeError
    x+               has entries                       ValueError
    perm%x           has an entry for each dim of x    ValueError
    axis@x  axis[]@x is an axis of x                   ValueError
    axis>=-x         is not before the first one       AssertionError
    x<-y             keeps its shape beside y          ValueError
    x&&y             broadcasts with y                 ValueError
    mode=a|b         is one of the texts               ValueError
    n>0  n>=0        is a number so large              ValueError
    n[]>0,-1         each entry is so large, or −1     ValueError
    x.dtype=i4,i8    is of one of the dtypes           TypeError
    n[i]             is no tensor, or one of ints      OSError in eager calls, RuntimeError in programs
    n[][i]           has no entries but such           the same
    x[].dtype        each entry has the attribute      AttributeError
    n[]<=6           has so few entries                ValueError
    dtype^           names a dtype as NumPy reads it   ValueError, TypeError
    x~f4,i8          the same, of a variable of the program that is built; asked before the call, too
    x>>f4,f8         Paddle's CPU kernel exists        (NotFound), in programs (Unimplemented)
    x,y>>f4,f8       y's dtype selects the kernel, which exists; x has the same dtype
    x>>f4,f8>>y      x's does; y has the same          …, (InvalidArgument)
    x&int,bool       the same as x:int,bool, of an operator's attribute: (InvalidArgument) for a variable, in programs
    x[3]             has a dim 3                       IndexError
    eager  static    the function is called there      AssertionError (eager: before the call, too)
    x?               has a truth, compared with a text (what Python raises of a tensor or an array)
    n<?  n[]<?       has an order with numbers         TypeError
    x{}              is hashable                       TypeError

The type `dtype` is what names one of Paddle's dtypes, `some` what is given and not None. Another word about an argument that
was not given is passed over."""
import builtins
import functools
import re
import sys
import types

from . import _core
from ._errors import lacks

DTYPES = {"b": "bool", "u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "f2": "float16",
          "bf": "bfloat16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128"}
TYPES = {"Tensor": _core.Tensor, "int": int, "float": float, "complex": complex, "str": str, "bytes": bytes, "bool": bool, "list": list,
         "tuple": tuple, "dict": dict, "None": type(None), "number": (int, float)}
_UNPROMOTED = {("complex64", "int8"), ("complex128", "int8"), ("complex64", "float64"), ("complex128", "complex64"),
               ("complex64", "complex128")}  # pairs of a complex dtype that PHI does not promote
_FAILED = ""  # beside the names of arguments: what the call failed with
CATEGORIES = {category: getattr(builtins, name) for category, name in _core.error_categories().items()}


def _attribute(who, values, name, attribute):
    return lacks(who, attribute, name, values[name], "a str" if hasattr(str, attribute) else "a Tensor")


def _attributes(who, values, name, attribute):
    return next((lacks(who, attribute, f"an entry of {name}", v) for v in values[name] if not hasattr(v, attribute)), None)


def _not_kind(who, values, name, kind):
    if isinstance(values[name], TYPES[kind]):
        return f"{who}: argument {name} must not be a {kind}"


def _is_dtype(value):
    try:
        return _core.as_dtype(value) is not None
    except (TypeError, ValueError):
        return False


def _kind(who, values, name, kinds):
    value, wanted = values[name], kinds.split(",")
    known = tuple(TYPES[k] for k in wanted if k in TYPES)  # isinstance takes nested tuples
    if "dtype" in wanted and _is_dtype(value):
        return None
    if "some" in wanted:
        return f"{who}: argument {name} is missing" if value is None else None
    kind = getattr(value, "kind", None)  # of a number that only the run knows: to_static's Number
    if isinstance(kind, type) and issubclass(kind, known):
        return None
    if not isinstance(value, known) and not ("array" in wanted and hasattr(value, "__array__")):
        return f"{who}: argument {name} must be of type {' or '.join(wanted)}, got {type(value).__name__}"


def _plain(who, values, name, kinds):
    value = values[name]
    if any(isinstance(v, _core.Tensor) for v in (value if isinstance(value, (list, tuple)) else [value])):
        raise ValueError(f"(InvalidArgument) {who}: argument {name} must be of type {kinds}, and no variable of the program")
    return _kind(who, values, name, kinds)


def _rank(who, values, name, least, rank):
    n = len(values[name].shape)
    if n < int(rank) if least else str(n) not in rank.split(","):
        return f"{who}: {name} must have {rank} dims{' or more' if least else ''}, got shape {list(values[name].shape)}"


def _ranks(who, values, x, y):
    a, b = values[x].shape, values[y].shape
    if len(a) != len(b):
        return f"{who}: {x} and {y} must have equally many dims, got shapes {list(a)} and {list(b)}"


def _extent(who, values, x, i, sign, y, k):
    a, b = values[x].shape, values[y].shape
    if a[int(i)] != b[int(k)] and not (sign == "|" and a[int(i)] == 1):
        return f"{who}: {x} has shape {list(a)} and {y} {list(b)}; dims {i} and {k} must be equal"


def _from_end(who, values, name, x):
    if isinstance(values[name], int) and values[name] < -len(values[x].shape):
        return f"{who}: {name} must be {-len(values[x].shape)} or more, got {values[name]}"


def _axis(who, values, name, entries, x):
    given, rank = values[name], len(values[x].shape)
    if entries and given is None:
        return None
    for axis in given if entries and isinstance(given, (list, tuple)) else [given]:
        if not isinstance(axis, int) or not -rank <= axis < rank:
            return f"{who}: {name} must be an int in [{-rank}, {rank}), got {given!r}"


def _choice(who, values, name, choices):
    _truth(who, values, name)
    if not any(isinstance(values[name], str) and values[name] == c for c in choices.split("|")):
        return f"{who}: {name} must be {' or '.join(map(repr, choices.split('|')))}, got {values[name]!r}"


def _least(who, values, name, sign, bound):
    value, least = values[name], float(bound)
    if isinstance(value, (int, float)) and not (value >= least if sign == ">=" else value > least):
        return f"{who}: {name} must be {'at least' if sign == '>=' else 'above'} {bound}, got {value}"


def _pairs(a, b):
    n = max(len(a), len(b))
    return list(zip([1] * (n - len(a)) + a, [1] * (n - len(b)) + b))


def _broadcasts(who, values, x, y):
    a, b = list(values[x].shape), list(values[y].shape)
    if any(p != q and 1 not in (p, q) for p, q in _pairs(a, b)):
        return f"{who}: {x} has shape {a}, {y} {b}, which do not broadcast"


def _covers(who, values, x, y):
    if not isinstance(values[x], _core.Tensor):
        return f"{who}: {x} takes the result and must be a Tensor, got {type(values[x]).__name__}"
    a, b = list(values[x].shape), list(values[y].shape)
    pairs = _pairs(a, b)
    if any(p != q and min(p, q) > 1 for p, q in pairs):
        return ValueError(f"(InvalidArgument) {who}: {x} has shape {a}, {y} {b}, which do not broadcast")
    both = [max(pair) for pair in pairs]
    if both != a:
        return f"{who}: {x} has shape {a}, and {x} with {y} {both}; in place the two must be equal"


def _named(who, values, name):
    try:
        _core.as_dtype(values[name])
    except (TypeError, ValueError) as error:
        return type(error)(f"{who}: {name}: {error}")


def _each(who, values, name, sign, bound, other):
    def fits(n):
        return not isinstance(n, int) or str(n) == other or (n >= int(bound) if sign == ">=" else n > int(bound))
    if not all(fits(n) for n in values[name]):
        return f"{who}: every entry of {name} must be {sign} {bound}{' or ' + other if other else ''}, got {values[name]}"


def _ints(who, values, name, entries):
    given = values[name]
    for x in given if entries and isinstance(given, (list, tuple)) else [given]:
        if isinstance(x, _core.Tensor) and x.dtype not in (_core.int32, _core.int64):
            return f"{who}: {name} must be a list of ints, or a tensor of dtype int32 or int64, got one of {x.dtype}"


def _few(who, values, name, most):
    if len(values[name]) > int(most):
        return f"{who}: {name} must have at most {most} entries, got {len(values[name])}"


def _same(who, values, x, attribute, y):
    a, b = getattr(values[x], attribute), getattr(values[y], attribute)
    if a != b:
        return f"{who}: {x} and {y} must have the same {attribute}, got {a} and {b}"


def _entries(who, values, name, x):
    n, rank = len(values[name]), len(values[x].shape)
    if n != rank:
        return f"{who}: {name} must have {rank} entries, one for each dim of {x}, got {n}"


def _filled(who, values, name):
    if len(values[name]) == 0:
        return f"{who}: {name} must have at least one entry"


def _variable(who, values, name, dtypes):
    x = values[name]
    if not isinstance(x, _core.Tensor):
        return f"{who}: {name} must be a Tensor, got {type(x).__name__}"
    return _dtype(who, values, name, dtypes)


def _dtype(who, values, name, dtypes):
    x, wanted = values[name], [DTYPES[d] for d in dtypes.split(",")]
    if str(x.dtype).rpartition(".")[2] not in wanted:
        return f"{who}: {name} must be of dtype {', '.join(wanted)}, got {x.dtype}"


def _name_of(x):
    return str(x.dtype).rpartition(".")[2]


def _kernel(who, values, x, y, dtypes, other):
    """PHI's choice of a kernel for operands of two dtypes, or of one that stands alone. The dtype of a complex operand counts
    where the last one selects; promotion to it lacks pairs."""
    operands = {n: values[n] for n in (x, y, other) if n}
    if not all(isinstance(t, _core.Tensor) and (t.is_symbolic or t.place.is_cpu_place()) for t in operands.values()):
        return None
    given = {n: _name_of(t) for n, t in operands.items()}
    if len(given) > 1 and len(set(given.values())) == 1:
        return None
    by_first = other or _core.is_capturing()
    selects = next((n for n in given if given[n].startswith("complex") and not other), x if by_first else y or x)
    dtype, second = given[selects], next((d for n, d in given.items() if n != selects), given[selects])
    if dtype not in [DTYPES[d] for d in dtypes.split(",")]:
        category, said = "Unimplemented" if _core.is_capturing() else "NotFound", f"is {dtype}, of which Paddle's CPU has no kernel"
    elif (dtype, second) in _UNPROMOTED or other and (dtype, second) == ("complex64", "complex128"):
        category, said = "Unimplemented", f"is {dtype}, to which {second} is not promoted"
    elif dtype.startswith("complex") and second.startswith("float") and not other:
        return None  # promoted
    elif dtype != second:
        category, said = "InvalidArgument", f"is {dtype}, and another operand {second}; convert one with cast"
    else:
        return None
    lead, failed = f"({category}) ", str(values[_FAILED])
    return CATEGORIES[category](failed if failed.startswith(lead) else f"{lead}{who}: {selects} {said} ({_plain_text(failed)})")


@functools.cache
def _with_kernel(dtypes):
    """The dtypes of a list such as "f4,i8" as objects, and half types."""
    return frozenset(getattr(_core, DTYPES[d]) for d in (*dtypes.split(","), "f2", "bf"))


def need_kernel(who, dtypes, **values):
    """Refuses the first of several tensors on the CPU of whose dtype Paddle's CPU has no kernel. Half types pass: Proa has them."""
    passing = _with_kernel(dtypes)
    for name, x in values.items():
        if isinstance(x, _core.Tensor) and x.dtype not in passing and (x.is_symbolic or x.place.is_cpu_place()):
            wanted = [DTYPES[d] for d in dtypes.split(",")]
            category = "Unimplemented" if _core.is_capturing() else "NotFound"
            raise CATEGORIES[category](f"({category}) {who}: {name} is {_name_of(x)}; expected one of {', '.join(wanted)} "
                                       "(convert with cast)")


def _dim(who, values, name, i):
    shape = values[name].shape
    if not -len(shape) <= int(i) < len(shape):
        return f"{who}: {name} has shape {list(shape)}, and no dim {i}"


def _truth(who, values, name):
    if hasattr(values[name], "__array__") and not (_core.is_capturing() and isinstance(values[name], _core.Tensor)):
        bool(values[name])


def _ordered(who, values, name, entries):
    given = values[name]
    try:
        for value in given if entries and isinstance(given, (list, tuple)) else [] if entries else [given]:
            bool(value > 0)
    except TypeError as error:
        return f"{who}: {'an entry of ' if entries else ''}argument {name}: {error}"


def _only(who, values, where):
    """Paddle has the function in one mode; Proa has it in both, so that the text says what this call failed with."""
    if where == "eager" and _core.captures_function():
        return None  # to_static: Paddle has the function there
    there, here = ("eager calls", "a program") if where == "eager" else ("programs", "eager calls")
    return f"{who}: Paddle has it in {there} alone, and in {here} this call fails: {_plain_text(values[_FAILED])}"


def _plain_text(failed):
    """An exception's text without the category."""
    return re.sub(r"^\(\w+\) ", "", str(failed))


def _hashed(who, values, name):
    try:
        hash(values[name])
    except TypeError as error:
        return f"{who}: argument {name}: {error}"


_WORDS = [
    (r"(eager|static)", _only, AssertionError), (r"(\w+)(?:,(\w+))?>>([\w,]+)(?:>>(\w+))?", _kernel, RuntimeError),
    (r"(\w+)\.dtype=([\w,]+)", _dtype, TypeError), (r"(\w+)\.(\w+)=(\w+)\.\2", _same, TypeError),
    (r"(\w+)<-(\w+)", _covers, ValueError), (r"(\w+)&&(\w+)", _broadcasts, ValueError), (r"(\w+)\^", _named, ValueError),
    (r"(\w+)%(\w+)", _entries, ValueError), (r"(\w+)\+", _filled, ValueError),
    (r"(\w+)\.(\w+)", _attribute, AttributeError), (r"(\w+):([\w,]+)", _kind, TypeError),
    (r"(\w+)&([\w,]+)", _plain, TypeError), (r"(\w+):-(\w+)", _not_kind, TypeError),
    (r"(\w+)#(>=)?([\d,]+)", _rank, ValueError), (r"(\w+)#=(\w+)", _ranks, ValueError),
    (r"(\w+)\[(-?\d+)\](=|\|)(\w+)\[(-?\d+)\]", _extent, ValueError),
    (r"(\w+)\[\]\.(\w+)", _attributes, AttributeError), (r"(\w+)(\[\])?\[i\]", _ints, OSError), (r"(\w+)\[\]<=(\d+)", _few, ValueError),
    (r"(\w+)\[\](>=|>)(-?\d+)(?:,(-?\d+))?", _each, ValueError), (r"(\w+)>=-([a-z]\w*)", _from_end, AssertionError),
    (r"(\w+)(\[\])?@(\w+)", _axis, ValueError), (r"(\w+)=([\w|]+)", _choice, ValueError),
    (r"(\w+)(>=|>)(-?[\d.]+)", _least, ValueError), (r"(\w+)~([\w,]+)", _variable, TypeError),
    (r"(\w+)\[(-?\d+)\]", _dim, IndexError), (r"(\w+)\?", _truth, ValueError), (r"(\w+)(\[\])?<\?", _ordered, TypeError),
    (r"(\w+)\{\}", _hashed, TypeError),
]


_NAMES = {_extent: (1, 4), _from_end: (1, 2), _ranks: (1, 2), _same: (1, 3), _entries: (1, 2), _axis: (1, 3), _covers: (1, 2),
          _broadcasts: (1, 2), _kernel: (1, 2, 4), _only: ()}  # groups that name arguments; other words have one


def _read(word):
    """(mode, function, its arguments, names of the function's arguments, exception, lead of its text)."""
    mode, rest = next(((m, word[len(m) + 1:]) for m in ("static", "eager") if word.startswith(m + ":")), ("", word))
    rest, _, raises = rest.partition("!")
    for pattern, test, error in _WORDS:
        found = re.fullmatch(pattern, rest)
        if found:
            names = [found[g] for g in _NAMES.get(test, (1, 1)) if found[g]]
            error = CATEGORIES.get(raises) or getattr(builtins, raises or error.__name__)
            lead = f"({raises}) " if raises in CATEGORIES else ""
            if test in (_variable, _plain):
                mode = "static"
            elif test is _ints:
                mode = mode or "eager"
                error = RuntimeError if mode == "static" and not raises else error
            elif test is _only:
                mode = "static" if rest == "eager" else "eager"
            return mode, test, found.groups(), names, error, lead
    raise SystemError(f"asks: cannot read {word!r}")


@functools.lru_cache(None)
def _rules(text):
    return [_read(word) for word in text.split()]


def _before(rules, who, values):
    """Why a call must not go to the Program that is built: it has no such function, or not of a variable's dtype; else None."""
    for _, test, given, _, _, _ in _rules(rules):
        if test is _only and given[0] == "eager":
            return "a Program has no such function"
        if test is _variable and isinstance(values.get(given[0]), _core.Tensor):
            said = test(who, values, *given)
            if said:
                return said
    return None


def answer(rules, who, values, failed):
    """Raises what Paddle raises for the first of the arguments (a dict by name) that a rule refuses; None if none does.
    `failed` is the exception of the call, or its text; None before a call that goes to a Program."""
    failed = failed or _before(rules, who, values)
    if failed is None:
        return
    values[_FAILED] = failed
    now = "static" if _core.is_capturing() else "eager"
    for mode, test, given, names, error, lead in _rules(rules):
        if mode not in ("", now):
            continue
        if test is _kind and given[1] == "some" and given[0] not in values:
            raise error(f"{lead}{who}: argument {given[0]} is missing")
        if all(n in values for n in names):
            try:
                said = test(who, values, *given)
            except (AttributeError, IndexError, TypeError):
                continue  # nothing to ask of such a value
            if said:
                raise said if isinstance(said, Exception) else error(lead + said)


def ask(rules, who, failed, **values):
    """answer for a function that catches `failed` itself: a try costs nothing where the call succeeds."""
    try:
        answer(rules, who, values, failed)
    except Exception as said:
        raise said from None


def asks(rules):
    """Decorates a function: a call that fails raises what `answer` raises, if that is anything."""
    return lambda function: _core.asked(function, rules)


def named(namespace, but=()):
    """Has the functions of a namespace name their results in programs after their argument `name`, there and in the module that
    defines them; `but` are left alone."""
    for key, value in list(namespace.items()):
        if type(value) is not types.FunctionType or key[:1] == "_" or key in but:
            continue
        code, home = value.__code__, vars(sys.modules[value.__module__])
        if "name" not in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            continue
        if home.get(value.__name__) is value:
            home[value.__name__] = _core.asked(value, "")
        twin = home.get(value.__name__)
        namespace[key] = twin if getattr(twin, "__code__", None) is code else _core.asked(value, "")


_core.set_answer(answer)
