"""Turns if, while and for into calls of the runtime, with their blocks as functions on the same variables."""
import ast

from . import make
from .names import SCOPES, bound, holds, reads_first

_PLAIN = (*SCOPES, ast.ClassDef)


class Flow:
    """One function's control flow; its jumps are gone. module, outer: names that it declares global, nonlocal."""

    def __init__(self, fresh, module=(), outer=()):
        self.fresh = fresh
        self.module, self.outer = frozenset(module), frozenset(outer)
        self.made = set()  # names of the functions that blocks become
        self.shared = {}  # names that blocks bind: the function must have them as its own

    def function(self, body, parameters):
        new = self.block(body, ())
        names = [name for name in self.shared if name not in self.outer and name not in parameters]
        if names:  # never runs; it makes the names this function's own
            mark = ast.If(ast.Constant(False), [ast.Assign([make.store(n) for n in names], ast.Constant(None))], [])
            new.insert(0, make.at(mark, body[0]))
        return new

    def block(self, nodes, after):
        """after: the statement lists that may run afterwards, nearest first."""
        new = []
        for i, node in enumerate(nodes):
            new.extend(self._statement(node, (nodes[i + 1:], *after)))
        return new

    def _statement(self, node, after):
        if isinstance(node, ast.If) and not self._unchanged(node):
            return self._if(node, after)
        if isinstance(node, ast.While) and not self._unchanged(node):
            return self._while(node, after)
        if isinstance(node, ast.For) and not self._unchanged(node):
            return self._for(node, after)
        if not isinstance(node, _PLAIN):
            for holder in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                for field in ("body", "orelse", "finalbody"):
                    inner = getattr(holder, field, None)
                    if isinstance(inner, list) and inner:
                        setattr(holder, field, self.block(inner, after))
        return [node]

    @staticmethod
    def _unchanged(node):
        """`if False:` marks, and what cannot become a function."""
        return holds(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith))

    def _function(self, what, node, body, args=(), line=None):
        """The def of a block, and the names that it binds around it."""
        names = [name for name in bound(body) if name not in args and name not in self.made]
        module = [name for name in names if name in self.module]
        names = [name for name in names if name not in self.module]
        self.shared.update(dict.fromkeys(names))
        name = self.fresh(what)
        self.made.add(name)
        made = make.function(name, body, args, names, module)
        return name, make.at(made, line or node), names + module

    def _if(self, node, after):
        yes, yes_def, names = self._function("then", node, self.block(node.body, after))
        no, no_def, others = self._function("else", node, self.block(node.orelse, after))
        names += [name for name in others if name not in names]
        call = make.runtime("if_", node.test, make.load(yes), make.load(no), make.strings(names))
        returns = holds_return(node.body)
        return [yes_def, no_def, make.at(ast.Return(call) if returns else ast.Expr(call), node)]

    def _live(self, names, after):
        """Those that what follows may read."""
        found = []
        for name in names:
            for nodes in after:
                read = reads_first(nodes, name)
                if read:
                    found.append(name)
                if read is not None:
                    break
        return found

    def _while(self, node, after):
        again = ([ast.copy_location(ast.Expr(node.test), node)], node.body)
        live = self._live(bound([node]), after)
        test, test_def, names = self._function("test", node, [ast.Return(node.test)])
        body, body_def, more = self._function("body", node, self.block(node.body, (*again, *after)))
        names += [name for name in more if name not in names]
        call = make.runtime("while_", make.load(test), make.load(body), make.strings(names), make.strings(live))
        return [test_def, body_def, make.at(ast.Expr(call), node)]

    def _for(self, node, after):
        live = self._live(bound([node]), after)
        item = self.fresh("item")
        take = ast.copy_location(ast.Assign([node.target], make.load(item)), node)
        inner = self.block([take, *node.body], (node.body, *after))
        body, body_def, names = self._function("body", node, inner, (item,))
        stop = make.later(make.load(node.stop)) if node.stop else ast.Constant(None)
        call = make.runtime("for_", node.iter, make.load(body), make.strings(names), make.strings(live), stop)
        return [body_def, make.at(ast.Expr(call), node)]


def holds_return(nodes):
    """Does a return leave these statements?"""
    return any(holds(node, ast.Return) for node in nodes if not isinstance(node, _PLAIN))
