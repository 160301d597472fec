"""The public names of the `paddle` of this interpreter, and which of a list it lacks: public_names.py list | lacks FILE | shrink.
The same file serves real Paddle (plain interpreter) and Proa (`python -m proa public_names.py …`); shrink takes names that Proa
has out of public_names_missing.txt."""
import contextlib
import enum
import importlib
import inspect
import io
import json
import pathlib
import pkgutil
import sys
import warnings

PROGRAM = pathlib.Path(__file__).resolve()
MISSING = PROGRAM.with_name("public_names_missing.txt")
# Modules that are not for users, though their names have no underscore.
INNER = ("base", "tests", "libpaddle", "fluid", "cinn", "proto")


def _own_members(path, kind):
    """The members of a class that it defines itself."""
    return {f"{path}.{name}" for name in vars(kind) if not name.startswith("_")}


def _of_module(module, path, found):
    for name in getattr(module, "__all__", None) or []:
        found.add(f"{path}.{name}")
        value = getattr(module, name, None)
        if inspect.isclass(value) and value.__module__.startswith("paddle"):
            found |= _own_members(f"{path}.{name}", value)
    for one in pkgutil.iter_modules(getattr(module, "__path__", [])):
        if one.name.startswith("_") or one.name in INNER:
            continue
        try:
            inner = importlib.import_module(f"{module.__name__}.{one.name}")
        except (Exception, SystemExit):  # what needs a package, or hardware, that is not here
            continue
        _of_module(inner, f"{path}.{one.name}", found)
    return found


def public():
    """Every name in the __all__ of every module, and the members of classes among them."""
    import paddle
    with contextlib.redirect_stdout(io.StringIO()):
        return sorted(_of_module(paddle, "paddle", set()))


def _member(value, name):
    """An attribute; of an enum also what its members have."""
    if inspect.isclass(value) and issubclass(value, enum.Enum) and len(value):
        return getattr(value, name) if name in value.__members__ else getattr(next(iter(value)), name)
    return getattr(value, name)


def resolves(name):
    """Whether a name leads to something, by its longest part that can be imported first."""
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:n]))
            for part in parts[n:]:
                value = _member(value, part)
        except (ImportError, AttributeError):
            continue
        return True
    return False


def read_missing():
    """(the number of all names, {name: why it is missing})."""
    lines = MISSING.read_text().splitlines()
    head = " ".join(line for line in lines if line.startswith("#"))
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    if not all(len(row) == 2 and all(row) for row in rows):
        raise ValueError(f"{MISSING.name}: a line is `name | reason`")
    return int(head.split()[-1].strip(".")), dict(rows)


def shrink():
    """Takes out of the list what is no more missing; returns it."""
    reasons = read_missing()[1]
    found = [name for name in reasons if resolves(name)]
    kept = [line for line in MISSING.read_text().splitlines(True) if line.partition(" | ")[0] not in found]
    MISSING.write_text("".join(kept))
    return found


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1] == "list":
        answer = public()
    elif sys.argv[1] == "shrink":
        answer = shrink()
    else:
        answer = [name for name in json.loads(pathlib.Path(sys.argv[2]).read_text()) if not resolves(name)]
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
