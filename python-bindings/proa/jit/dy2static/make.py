"""Short constructors of ast nodes for the rewriting passes."""
import ast

from .names import OWN


def load(name):
    return ast.Name(name, ast.Load())


def store(name):
    return ast.Name(name, ast.Store())


def runtime(name, *args):
    """_proa.name(args…)"""
    return ast.Call(ast.Attribute(load(OWN), name, ast.Load()), list(args), [])


def is_runtime(node):
    """True for _proa.something and _proa.something(…)."""
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == OWN


def later(expression):
    """lambda: expression"""
    return ast.Lambda(no_arguments(), expression)


def no_arguments(names=()):
    return ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in names], vararg=None, kwonlyargs=[],
                         kw_defaults=[], kwarg=None, defaults=[])


def assign(name, value):
    return ast.Assign([store(name)], value)


def constant(value):
    return ast.Constant(value)


def strings(names):
    """A tuple of names."""
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def function(name, body, args=(), outer=(), module=()):
    """def name(args…), whose body binds the names of outer around it, and those of module globally."""
    head = [ast.Nonlocal(list(outer))] if outer else []
    head += [ast.Global(list(module))] if module else []
    return ast.FunctionDef(name=name, args=no_arguments(args), body=head + (body or [ast.Pass()]), decorator_list=[],
                           returns=None, type_comment=None, type_params=[])


def at(node, where):
    """node, and all below it that has no place yet, stands where `where` does."""
    line, column = where.lineno, where.col_offset
    for inner in ast.walk(node):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            inner.lineno, inner.col_offset = line, column
            inner.end_lineno, inner.end_col_offset = line, column  # Python takes a method call's line from its end
    return node
