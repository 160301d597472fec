"""Rewrites expressions: and/or/not, ternaries, comparison chains, calls, .shape; and the statements that are calls
in disguise: assert, and assignment to an item. Python's own behavior for concrete values is the runtime's affair."""
import ast

from . import make
from .errors import refuse
from .names import FUNCTIONS, OWN, arguments, bound, declared

_PLAIN = frozenset(("super", "locals", "globals", "vars", "eval", "exec", "dir", "issubclass",
                    "hasattr", "id", "callable", "repr", "str", "open", "setattr", "delattr"))
_OWN_NAMES = {"locals": 0, "dir": 0, "vars": 0, "eval": 1, "exec": 1}  # with so many arguments they mean these names
_OPERATORS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne", ast.Is: "is_",
              ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in"}
_IN_PLACE = {ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
             ast.Mod: "imod", ast.Pow: "ipow", ast.MatMult: "imatmul", ast.BitAnd: "iand", ast.BitOr: "ior",
             ast.BitXor: "ixor", ast.LShift: "ilshift", ast.RShift: "irshift"}


def _movable(*nodes):
    """May these be evaluated in a lambda?"""
    return not any(isinstance(inner, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await))
                   for node in nodes for inner in ast.walk(node))


def _index(node):
    """The object that a subscript stands for: slices become slice(…)."""
    if isinstance(node, ast.Slice):
        parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
        return make.runtime("slice", *parts)
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index(part) for part in node.elts], ast.Load())
    return node


def _own(node):
    """The names that are a function's own."""
    module = declared(node.body, ast.Global)
    return [*arguments(node.args), *(name for name in bound(node.body) if name not in module)]


class Expressions(ast.NodeTransformer):
    """first: the name of the first parameter of the method around, for super(); owner: its class, for __names; file:
    where the function stands; free: the names that it reads from functions around it."""

    def __init__(self, first=None, owner=None, file=None, free=()):
        self.first, self.owner, self.file, self.free = first, owner, file, free
        self.count = 0
        self.scopes = []  # the functions, lambdas and comprehensions around, outermost first

    def fresh(self, what):
        self.count += 1
        return f"{OWN}_{what}_{self.count}"

    # truth: what only decides something

    def truth(self, node):
        if isinstance(node, ast.BoolOp) and _movable(*node.values[1:]):
            name = "test_and" if isinstance(node.op, ast.And) else "test_or"
            first, *others = [self.truth(value) for value in node.values]
            return make.at(make.runtime(name, first, *map(make.later, others)), node)
        return self.visit(node)

    def visit_If(self, node):
        node.test = self.truth(node.test)
        self._blocks(node, "body", "orelse")
        return node

    visit_While = visit_If

    def _blocks(self, node, *names):
        for name in names:
            new = []
            for statement in getattr(node, name):
                statement = self.visit(statement)
                new.extend(statement if isinstance(statement, list) else [statement])
            setattr(node, name, new)

    def visit_Assert(self, node):
        parts = [self.truth(node.test)]
        if node.msg is not None:
            parts.append(make.later(self.visit(node.msg)))
        return make.at(ast.Expr(make.runtime("assert_", *parts)), node)

    def visit_Raise(self, node):
        self.generic_visit(node)
        if node.exc is not None:
            node.exc = make.at(make.runtime("raised", node.exc), node.exc)
        return node

    # operators

    def visit_BoolOp(self, node):
        movable = _movable(*node.values[1:])
        values = [self.visit(value) for value in node.values]
        if not movable:
            node.values = values
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return make.at(make.runtime(name, values[0], *map(make.later, values[1:])), node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return make.at(make.runtime("not_", self.truth(node.operand)), node)
        node.operand = self.visit(node.operand)
        return node

    def visit_IfExp(self, node):
        if not _movable(node.body, node.orelse):
            return self.generic_visit(node)
        return make.at(make.runtime("choose", self.truth(node.test), make.later(self.visit(node.body)),
                                    make.later(self.visit(node.orelse))), node)

    def visit_Compare(self, node):
        plain = len(node.ops) == 1 and not isinstance(node.ops[0], (ast.In, ast.NotIn))
        movable = _movable(*node.comparators)
        node.left = self.visit(node.left)
        node.comparators = [self.visit(one) for one in node.comparators]
        if plain or not movable:
            return node
        parts = [node.left]
        for op, right in zip(node.ops, node.comparators):
            parts += [ast.Constant(_OPERATORS[type(op)]), make.later(right)]
        return make.at(make.runtime("compare", *parts), node)

    # names and attributes

    def mangled(self, name):
        if self.owner and name.startswith("__") and not name.endswith("__") and "." not in name:
            owner = self.owner.lstrip("_")
            return f"_{owner}{name}" if owner else name
        return name

    def visit_Name(self, node):
        node.id = self.mangled(node.id)
        return node

    def visit_Attribute(self, node):
        node.attr = self.mangled(node.attr)
        node.value = self.visit(node.value)
        if node.attr == "shape" and isinstance(node.ctx, ast.Load):
            return make.at(make.runtime("shape", node.value), node)
        return node

    def visit_Call(self, node):
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super" and not node.args and not node.keywords:
            if self.first is None:
                return node
            node.args = [make.at(make.load("__class__"), node), make.at(make.load(self.first), node)]
            return node
        node = self.generic_visit(node)
        func = node.func
        if isinstance(func, ast.Name) and _OWN_NAMES.get(func.id) == len(node.args) and not node.keywords and \
                not any(isinstance(arg, ast.Starred) for arg in node.args):
            return self._own_names(node)
        if make.is_runtime(func) or isinstance(func, ast.Name) and func.id in _PLAIN:
            return node
        node.func = make.at(make.runtime("call", func), func)
        return node

    def _own_names(self, node):
        """locals() and its kin: blocks become functions, whose variables they would show."""
        scope = self.scopes[-1]
        if not isinstance(scope, FUNCTIONS):
            raise refuse(f"{node.func.id}() of the names in a lambda or comprehension cannot be converted: call it "
                         "before", (self.file, node.lineno))
        outer = {*self.free, *(name for one in self.scopes[:-1] if isinstance(one, FUNCTIONS) for name in _own(one))}
        read = {inner.id for inner in ast.walk(scope) if isinstance(inner, ast.Name)} & outer
        names = [name for name in dict.fromkeys((*_own(scope), *sorted(read))) if not name.startswith(OWN)]
        if node.func.id in names:
            return make.at(node, node)
        parts = [part for name in names for part in (ast.Constant(name), make.later(make.load(name)))]
        own = make.runtime("own_names", *parts)
        if not node.args:
            return make.at(own if node.func.id != "dir" else make.runtime("sorted", own), node)
        node.args += [ast.Call(make.load("globals"), [], []), own]
        return make.at(node, node)

    def _scope(self, node):
        self.scopes.append(node)
        self.generic_visit(node)
        self.scopes.pop()
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _scope

    def visit_JoinedStr(self, node):
        return node  # text alone; and not every expression can be printed inside one

    # statements

    def visit_AnnAssign(self, node):
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Assign(self, node):
        node.value = self.visit(node.value)
        before, after = [], []
        if len(node.targets) > 1 and any(isinstance(t, ast.Subscript) for t in node.targets):
            name = self.fresh("value")
            before.append(make.assign(name, node.value))
            node.value = make.load(name)
        targets = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                after.append(self._set_item(target, node.value))
            else:
                targets.append(self._target(target, after))
        if targets:
            node.targets = targets
            before.append(node)
        elif not before and len(node.targets) == 1:
            return make.at(after[0], node)
        return [make.at(statement, node) for statement in (*before, *after)]

    def _target(self, target, after):
        """A target without subscripts; what they get follows in `after`."""
        if isinstance(target, ast.Subscript):
            name = self.fresh("item")
            after.append(self._set_item(target, make.load(name)))
            return make.store(name)
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(one, after) for one in target.elts]
            return target
        if isinstance(target, ast.Starred):
            target.value = self._target(target.value, after)
            return target
        return self.visit(target)

    def _set_item(self, target, value):
        return ast.Expr(make.runtime("set_item", value, self.visit(target.value), _index(self.visit(target.slice))))

    def visit_AugAssign(self, node):
        node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Subscript):
            node.target = self.visit(node.target)
            return node
        target = node.target
        return make.at(ast.Expr(make.runtime(
            "change_item", self.visit(target.value), _index(self.visit(target.slice)),
            ast.Constant(_IN_PLACE[type(node.op)]), node.value)), node)

    # scopes of their own

    def visit_ClassDef(self, node):
        return node  # its methods are converted when they are called

    def visit_FunctionDef(self, node):
        args = node.args
        args.defaults = [self.visit(one) for one in args.defaults]
        args.kw_defaults = [one and self.visit(one) for one in args.kw_defaults]
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))):
            arg.annotation = None
        node.returns = None
        self.scopes.append(node)
        self._blocks(node, "body")
        self.scopes.pop()
        return node

    def visit_AsyncFunctionDef(self, node):
        return node

    def visit_comprehension(self, node):
        node.iter = make.at(make.runtime("items", self.visit(node.iter)), node.iter)
        node.ifs = [self.truth(one) for one in node.ifs]
        return node


class Calls(Expressions):
    """Rewrites calls alone: for Proa's own layers that run the user's, and know by themselves what a program has."""

    visit_If = visit_While = visit_Assert = visit_Raise = visit_BoolOp = visit_UnaryOp = visit_IfExp = visit_Compare = \
        visit_AnnAssign = visit_Assign = visit_AugAssign = visit_comprehension = ast.NodeTransformer.generic_visit

    def visit_Attribute(self, node):
        node.attr = self.mangled(node.attr)
        node.value = self.visit(node.value)
        return node


def function_nodes(tree):
    """The functions below tree that rewriting reaches, innermost first."""
    found = []

    def walk(node):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.ClassDef, ast.AsyncFunctionDef)):
                walk(child)
        if isinstance(node, FUNCTIONS):
            found.append(node)

    walk(tree)
    return found
