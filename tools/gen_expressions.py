"""Formulas over numbers, in Python's syntax, as C and as Python. Used by gen_schedules.py and gen_initializers.py.

Numbers are C's doubles. A subscript reads a list (`shape[0]`: `shape.at[0]`); min has two arguments; `a // b` is the floor.
"""
import ast

from gen_schema import SchemaError

MATH = ("sqrt", "exp", "cos", "ceil")
IN_C = {"min": "fmin", **{name: name for name in MATH}}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}


def parsed(text, where):
    try:
        return ast.parse(str(text), mode="eval").body
    except SyntaxError as error:
        raise SchemaError(f"{where}: {text!r}: {error.msg}") from None


def names_in(node):
    """The names that a formula reads, but for pi and those that it calls."""
    called = {n.func for n in ast.walk(node) if isinstance(n, ast.Call)}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n not in called} - {"pi"}


def c_test(node):
    return c_of(node) if isinstance(node, ast.Compare) else f"{c_of(node)} != 0"


def c_of(node):
    """The formula as an expression of C."""
    if isinstance(node, ast.Constant):
        return repr(float(node.value))
    if isinstance(node, ast.Name):
        return "3.141592653589793" if node.id == "pi" else node.id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"-{c_of(node.operand)}"
    if isinstance(node, ast.BinOp):
        left, right = c_of(node.left), c_of(node.right)
        if isinstance(node.op, ast.Pow):
            return f"pow({left}, {right})"
        return f"floor({left} / {right})" if isinstance(node.op, ast.FloorDiv) else f"({left} {SIGNS[type(node.op)]} {right})"
    if isinstance(node, ast.Compare):
        return f"{c_of(node.left)} {SIGNS[type(node.ops[0])]} {c_of(node.comparators[0])}"
    if isinstance(node, ast.IfExp):
        return f"({c_test(node.test)} ? {c_of(node.body)} : {c_of(node.orelse)})"
    if isinstance(node, ast.Subscript):
        return f"(double){c_of(node.value)}.at[{node.slice.value}]"
    return f"{IN_C.get(node.func.id, node.func.id)}({', '.join(map(c_of, node.args))})"


class _Renamed(ast.NodeTransformer):
    def __init__(self, names):
        self.names = names | {name: f"math.{name}" for name in (*MATH, "pi")}

    def visit_Name(self, node):
        return ast.parse(self.names.get(node.id, node.id), mode="eval").body


def python_of(node, names=None):
    """The formula as an expression of Python, with names replaced."""
    return ast.unparse(_Renamed(names or {}).visit(ast.parse(ast.unparse(node), mode="eval").body))
