"""Removes break, continue, and return from inside of loops and branches: afterwards every loop runs to its end or
until its flag is set, and an if returns on both ways or on none."""
import ast
import copy

from . import make
from .names import OWN, SCOPES, holds

LOOPS = (ast.For, ast.While)
_JUMPS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}
_NONE = frozenset()


def escapes(node):
    """The jumps that may leave this statement: a set of "return", "break", "continue"."""
    kind = _JUMPS.get(type(node))
    if kind:
        return frozenset((kind,))
    if isinstance(node, (*SCOPES, ast.ClassDef, ast.expr)):
        return _NONE
    if isinstance(node, (*LOOPS, ast.AsyncFor)):
        inside = escapes_any(node.body) & {"return"}
        return inside | escapes_any(node.orelse)
    return escapes_any(ast.iter_child_nodes(node))


def escapes_any(nodes):
    found = _NONE
    for node in nodes:
        found = found | escapes(node)
    return found


def _endless(node):
    """while True without a break: nothing comes after it."""
    return (isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value
            and "break" not in escapes_any(node.body))


def leaves(nodes):
    """True if the end of these statements is never reached."""
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)) or _endless(node):
            return True
        if isinstance(node, ast.If) and leaves(node.body) and leaves(node.orelse):
            return True
        if isinstance(node, LOOPS) and leaves(node.orelse) and "break" not in escapes_any(node.body):
            return True
        if isinstance(node, ast.Try) and (leaves(node.finalbody) or leaves([*node.body, *node.orelse]) and all(
                leaves(handler.body) for handler in node.handlers)):
            return True
    return False


def _blocks(node):
    """(holder, field) of the statement lists of a with, try or match."""
    found = [(node, field) for field in ("body", "orelse", "finalbody") if getattr(node, field, None)]
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        found.append((part, "body"))
    return found


class _Place:
    """Context of a statement for its jumps. stop: the flag that ends the loop around; skip: the one that ends
    its turn; native: a return may stay one."""

    def __init__(self, native=False, stop=None, skip=None):
        self.native, self.stop, self.skip = native, stop, skip


class Jumps:
    """One function's jumps. fresh(what) makes a new name."""

    def __init__(self, fresh):
        self.fresh = fresh
        self.done = self.value = None  # "has returned" and what

    def function(self, body):
        """The body without jumps, but for returns at its end."""
        nested = any(escapes(node) for node in body if not isinstance(node, ast.Return))
        if not leaves(body) and nested and any("return" in escapes(node) for node in body):
            body = [*body, ast.copy_location(ast.Return(ast.Constant(None)), body[-1])]
            make.at(body[-1], body[-2])
        new = self.block(body, _Place(native=True))
        if self.done:
            new.insert(0, make.at(make.assign(self.done, ast.Constant(False)), body[0]))
        return new

    def block(self, nodes, place):
        new = []
        for i, node in enumerate(nodes):
            rest = nodes[i + 1:]
            kinds = escapes(node)
            if type(node) in _JUMPS:
                return new + self._jump(node, place)
            if isinstance(node, ast.If):
                if kinds and self._if(node, rest, place, kinds, new):
                    return new
                if not kinds:
                    self._inside(node, place, new)
            elif isinstance(node, LOOPS):
                if self._loop(node, rest, place, new):
                    return new
            else:
                if self._compound(node, rest, place, kinds, new):
                    return new
        return new

    # single statements

    def _jump(self, node, place):
        if isinstance(node, ast.Return):
            if place.native:
                return [node]
            new = [make.assign(self._value(), node.value or ast.Constant(None)),
                   make.assign(self.done, ast.Constant(True))]
            if place.stop:
                new.append(make.assign(place.stop, ast.Constant(True)))
        else:
            flag = place.stop if isinstance(node, ast.Break) else place.skip
            new = [make.assign(flag, ast.Constant(True))]
        return [make.at(one, node) for one in new]

    def _value(self):
        if self.done is None:
            self.done, self.value = self.fresh("done"), f"{OWN}_value"
        return self.value

    def _inside(self, node, place, new):
        node.body = self.block(node.body, place)
        node.orelse = self.block(node.orelse, place)
        new.append(node)

    def _if(self, node, rest, place, kinds, new):
        """True if rest has been taken care of."""
        if leaves(node.body) or leaves(node.orelse):
            body = node.body if leaves(node.body) else node.body + rest
            orelse = node.orelse if leaves(node.orelse) else node.orelse + rest
            if not place.native or leaves(body) and leaves(orelse):
                node.body, node.orelse = self.block(body, place) or [ast.Pass()], self.block(orelse, place)
                new.append(make.at(node, node))
                return True
        inner = _Place(False, place.stop, place.skip)
        self._inside(node, inner, new)
        return self._guard(node, rest, place, kinds, new)

    def _guard(self, node, rest, place, kinds, new, left=False):
        """Appends the rest behind a statement that may have set flags; left: its end is never reached."""
        if place.native and left:
            new.append(make.at(ast.Return(make.load(self._value())), node))
            return True
        if place.native:  # only returns get here
            new.append(make.at(self._return_if_done(node, self.block(rest, place), place), node))
            return True
        if not rest:
            return True
        flags = []
        if kinds - {"continue"}:
            flags.append(place.stop or self.done)
        if "continue" in kinds:
            flags.append(place.skip)
        test = make.load(flags[0])
        if len(flags) == 2:
            test = make.runtime("test_or", test, make.later(make.load(flags[1])))
        rest = self.block(rest, place)
        if rest:
            new.append(make.at(ast.If(make.runtime("not_", test), rest, []), node))
        return True

    def _return_if_done(self, node, rest, place):
        """After a statement in which a return may have been taken."""
        if place.native:
            taken = [ast.Return(make.load(self._value()))]
        else:
            self._value()
            taken = [make.assign(place.stop, ast.Constant(True))] if place.stop else [ast.Pass()]
        return ast.If(make.load(self.done), taken, rest)

    def _compound(self, node, rest, place, kinds, new):
        """with, try, match: their blocks stay where they are. True if rest has been taken care of."""
        blocks = _blocks(node) if not isinstance(node, (*SCOPES, ast.ClassDef)) else []
        native = place.native and all(leaves(getattr(*block)) or not escapes_any(getattr(*block)) for block in blocks)
        inner = place if native else _Place(False, place.stop, place.skip)
        left = leaves([node])
        for holder, field in blocks:
            body = self.block(getattr(holder, field), inner)
            if field == "orelse" and not native and escapes_any(node.body):
                body = [ast.If(make.runtime("not_", make.load(place.stop or self.done)), body, [])]
                make.at(body[0], node)
            setattr(holder, field, body or [make.at(ast.Pass(), node)])
        new.append(node)
        if kinds and not native:
            return self._guard(node, rest, place, kinds, new, left)
        return False

    # loops

    def _test_first(self, node, stop, new):
        """while (y := …): the body reads what the test binds, so it is made before the loop and after each turn."""
        goes_on = self.fresh("goes_on")
        test = make.assign(goes_on, make.runtime("not_", make.runtime("not_", node.test)))
        new.append(make.at(test, node))
        again = copy.deepcopy(test)
        if stop:
            again = ast.If(make.runtime("not_", make.load(stop)), [again], [make.assign(goes_on, ast.Constant(False))])
        node.body.append(make.at(again, node))
        node.test = make.at(make.load(goes_on), node)

    def _loop(self, node, rest, place, new):
        """True if rest has been taken care of."""
        kinds = escapes_any(node.body)
        endless = _endless(node)
        stop = self.fresh("stop") if kinds & {"return", "break"} else None
        skip = self.fresh("skip") if "continue" in kinds else None
        if "return" in kinds:
            self._value()
        node.body = self.block(node.body, _Place(False, stop, skip)) or [ast.Pass()]
        if skip:
            node.body.insert(0, make.assign(skip, ast.Constant(False)))
        node.stop = stop
        if stop:
            new.append(make.at(make.assign(stop, ast.Constant(False)), node))
        if isinstance(node, ast.While) and holds(node.test, ast.NamedExpr):
            self._test_first(node, stop, new)
        elif isinstance(node, ast.While) and stop:
            goes_on = make.runtime("not_", make.load(stop))
            node.test = make.runtime("test_and", goes_on, make.later(node.test))
        orelse, node.orelse = node.orelse, []
        new.append(make.at(node, node))
        if orelse and stop and "break" in kinds:
            orelse = [make.at(ast.If(make.runtime("not_", make.load(stop)), orelse, []), node)]
        rest = orelse + rest
        if "return" not in kinds:
            if orelse:
                new.extend(self.block(rest, place))
            return bool(orelse)
        if endless and place.native:
            new.append(make.at(ast.Return(make.load(self.value)), node))
            return True
        rest = self.block(rest, place)
        new.append(make.at(self._return_if_done(node, rest, place), node))
        return True
