"""Names that statements bind and read: Python's scoping rules, as far as rewriting needs them."""
import ast

OWN = "_proa"  # the runtime module's name inside converted functions; names that rewriting makes begin with it
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Bound(ast.NodeVisitor):
    def __init__(self, inner):
        self.names = {}  # an ordered set
        self.inner = inner

    def add(self, name):
        self.names[name] = None

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.add(node.id)

    def visit_FunctionDef(self, node):
        self.add(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        for name in sorted(_inner_writes(node)) if self.inner else ():
            self.add(name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.add(node.name)

    def visit_Lambda(self, node):
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)

    def _comprehension(self, node):
        for inner in ast.walk(node):  # a walrus binds outside; the loop's own targets do not
            if isinstance(inner, ast.NamedExpr):
                self.add(inner.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_alias(self, node):
        self.add((node.asname or node.name).partition(".")[0])

    def visit_ExceptHandler(self, node):
        if node.name:
            self.add(node.name)
        self.generic_visit(node)

    def _pattern(self, node):
        if node.name:
            self.add(node.name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = _pattern

    def visit_MatchMapping(self, node):
        if node.rest:
            self.add(node.rest)
        self.generic_visit(node)


def _inner_writes(node):
    """Names outside of a function that it, or functions in it, bind."""
    outer = declared(node.body, ast.Nonlocal)
    own = set(arguments(node.args)) | (set(bound(node.body, inner=False)) - outer)
    found = set(outer)
    for inner in _inner_functions(node.body):
        found |= _inner_writes(inner) - own
    return found


def _inner_functions(nodes):
    found, stack = [], list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, FUNCTIONS):
            found.append(node)
        elif not isinstance(node, (ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return found


def bound(nodes, inner=True):
    """The names that statements (or expressions) bind in the scope they stand in, in order. inner: those of nonlocal
    statements of functions in there, too."""
    visitor = _Bound(inner)
    for node in nodes:
        visitor.visit(node)
    return list(visitor.names)


def declared(nodes, kind):
    """The names of global (or nonlocal) statements of this scope."""
    found, stack = set(), list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            found.update(node.names)
        elif not isinstance(node, (*SCOPES, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return found


def arguments(args):
    """The names of a function's parameters."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    return [arg.arg for arg in every]


def holds(node, kinds):
    """True if a node of these kinds is below node, in its own scope."""
    stack = [] if isinstance(node, SCOPES) else [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, kinds):
            return True
        stack.extend(child for child in ast.iter_child_nodes(inner) if not isinstance(child, SCOPES))
    return False


def _mentions(node, name, context):
    return any(isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, context)
               for inner in ast.walk(node))


def _either(parts):
    """Combined effect of alternatives: read if one reads, bound if all bind."""
    parts = list(parts)
    return True if True in parts else False if parts and all(part is False for part in parts) else None


def _statement(node, name):
    if isinstance(node, ast.If):
        return True if _mentions(node.test, name, ast.Load) else _either(
            (reads_first(node.body, name), reads_first(node.orelse, name)))
    if isinstance(node, (ast.For, ast.AsyncFor)):
        if _mentions(node.iter, name, ast.Load):
            return True
        if not _mentions(node.target, name, ast.Store) and reads_first(node.body, name):
            return True
        return True if reads_first(node.orelse, name) else None
    if isinstance(node, ast.While):
        parts = _mentions(node.test, name, ast.Load), reads_first(node.body, name), reads_first(node.orelse, name)
        return True if True in parts else None
    if isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if _mentions(item.context_expr, name, ast.Load):
                return True
        return reads_first(node.body, name)
    if isinstance(node, ast.Try):
        blocks = [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]
        return True if True in [reads_first(block, name) for block in blocks] else None
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
        return True
    if _mentions(node, name, ast.Load):
        return True
    return False if name in bound([node]) else None


def reads_first(nodes, name):
    """True: these statements may read name before they bind it; False: they bind it first; None: neither."""
    for node in nodes:
        found = _statement(node, name)
        if found is not None:
            return found
        if isinstance(node, (ast.Return, ast.Raise)):
            return False
    return None
