"""Reference pages of the Python package: a page a module that Paddle documents, from the objects and docstrings of the built
package.

An object that has several public names is documented on the page of the shortest; its other names are listed there."""
import importlib
import inspect
import re

from markup import docstring, indented, inline, title

def modules(root, table):
    """(name, module) of the root and of every module that the table of Paddle's names has, shortest first."""
    rows = [line.split("\t") for line in table.read_text().splitlines() if line.startswith("paddle")]
    names = {row[0] for row in rows if row[1] == "module"} | {row[0].rpartition(".")[0] for row in rows if row[1] == "function"}
    found = {root.__name__: root}
    for name in names - {"", "paddle"}:
        name = name.replace("paddle", root.__name__, 1)
        try:
            found[name] = importlib.import_module(name)
        except ImportError:  # a class whose methods the table has, or what is not there
            continue
    return sorted(found.items(), key=lambda pair: (pair[0].count("."), pair[0]))


def public(module):
    names = getattr(module, "__all__", None)
    listed = names if names else [n for n in dir(module) if not n.startswith("_")]
    for name in sorted(set(listed)):
        try:
            value = getattr(module, name)
        except AttributeError:
            continue
        if inspect.isclass(value) or inspect.isroutine(value):
            origin = getattr(value, "__module__", None) or ""
            if origin.startswith(("proa", "paddle")) or origin == "builtins" and not inspect.isclass(value):
                yield name, value


def signature(value):
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(*args, **kwargs)"
    text = re.sub(r"<[^>]*?([\w.]+)[^>]*>", r"\1", text)  # objects as defaults
    return re.sub(r"\s*->.*$", "", text)


def members(cls):
    """Public methods and properties that the class itself defines and documents."""
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property) or inspect.isroutine(value):
            if value.__doc__:
                yield name, value, inspect.getdoc(value)


def described(name, value, others):
    kind = "class" if inspect.isclass(value) else "function"
    body = docstring(inspect.getdoc(value) if value.__doc__ else "")
    if others:
        body += ["Also " + ", ".join(f"``{n}``" for n in others) + ".", ""]
    if kind == "class":
        for member, what, doc in members(value):
            if isinstance(what, property):
                body += [f".. py:property:: {member}", "   :no-index:", "", *indented(docstring(doc)), ""]
            else:
                text = re.sub(r"^\((self|cls)(, )?", "(", signature(what))
                body += [f".. py:method:: {member}{text}", "   :no-index:", "", *indented(docstring(doc)), ""]
    return [f".. py:{kind}:: {name}{signature(value)}", "", *indented(body), ""]


def write(out, package):
    (out / "python").mkdir(parents=True, exist_ok=True)
    names = {}  # id -> (object, its names, shortest first)
    for module_name, module in package:
        for name, value in public(module):
            names.setdefault(id(value), (value, []))[1].append((module_name, name))
    pages = {}
    for value, where in names.values():
        where.sort(key=lambda pair: (pair[0].count("."), len(pair[0]), pair[1]))
        pages.setdefault(where[0][0], []).append((where[0][1], value, [f"{m}.{n}".replace("proa", "paddle", 1) for m, n in where[1:]]))
    for module_name, entries in pages.items():
        shown = module_name.replace("proa", "paddle", 1)
        module = dict(package)[module_name]
        lines = [*title(shown), inline((module.__doc__ or "").strip().split("\n\n")[0]), "", f".. py:currentmodule:: {shown}", ""]
        for name, value, others in sorted(entries, key=lambda e: e[0]):
            lines += described(f"{name}", value, others)
        (out / "python" / f"{shown}.rst").write_text("\n".join(lines))
    listed = sorted(pages, key=lambda n: (n.count("."), n))
    lines = [*title("Python, module by module"), "``import proa as paddle``. Guide: :doc:`/python`; what differs from Paddle: "
             ":doc:`/compatibility`.", "", ".. toctree::", "   :maxdepth: 1", "",
             *[f"   {name.replace('proa', 'paddle', 1)}" for name in listed], ""]
    (out / "python/index.rst").write_text("\n".join(lines))
    return sum(map(len, pages.values()))
