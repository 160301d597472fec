"""From a Python function to its converted twin: find the source, rewrite the tree, compile it under the user's own
file and lines, and bind it to the user's own variables."""
import ast
import inspect
import types

from . import runtime
from .errors import ConversionError, NoSource, refuse
from .expressions import Calls, Expressions, function_nodes
from .flow import Flow
from .jumps import Jumps
from .logging_utils import LOG_AllTransformer, _TRANSLATOR_LOGGER as LOGGER
from .names import OWN, arguments, declared, holds
from . import make

_PACKAGE = __name__.partition(".")[0] + "."
_FACTORY, _MADE = f"{OWN}_factory", f"{OWN}_made"
_made = {}    # code of a user's function -> Converted, or the error that it cannot be
_origins = {}  # code made here -> (its outermost user's code)


class Converted:
    """The conversion of one user's function."""

    def __init__(self, user, code, tree):
        self.user, self.code, self.tree = user, code, tree
        self._text = self._lines = None

    @property
    def text(self):
        """The converted source."""
        if self._text is None:
            self._text = ast.unparse(ast.fix_missing_locations(self.tree))
        return self._text

    @property
    def lines(self):
        """The user's line -> lines of the converted source."""
        if self._lines is None:
            self._lines = {}
            again = ast.parse(self.text).body[0]
            rows = self.text.split("\n")
            self._pair(self.tree, again, rows)
        return self._lines

    def _pair(self, ours, printed, rows):
        if isinstance(ours, ast.stmt) and hasattr(ours, "lineno"):
            found = self._lines.setdefault(ours.lineno, [])
            row = rows[printed.lineno - 1]
            if row not in found:
                found.append(row)
        mine = [child for child in ast.iter_child_nodes(ours) if isinstance(child, (ast.stmt, ast.excepthandler))]
        theirs = [child for child in ast.iter_child_nodes(printed)
                  if isinstance(child, (ast.stmt, ast.excepthandler))]
        for one, other in zip(mine, theirs):
            self._pair(one, other, rows)


# ---- source -------------------------------------------------------------------------------


def _source(code):
    """The tree of a code object's source, with the lines of its file."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, IndexError) as error:
        raise NoSource(f"the source of {code.co_name} is not there, so it cannot be converted: functions must "
                       f"stand in a file ({error})") from None
    if code.co_name == "<lambda>":
        return _lambda_source(code)
    text, above = "".join(lines), 0
    if lines[0][:1].isspace():  # as it stands: its strings may have lines at the margin
        text, above = "if 1:\n" + text, 1
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ConversionError(f"the source of {code.co_name} cannot be read alone: {error}") from None
    ast.increment_lineno(tree, max(first, 1) - 1 - above)
    return tree


def _lambda_source(code):
    """A lambda's tree: the file is parsed, and the lambda found by its line, and by its columns if need be."""
    import linecache
    text = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        raise NoSource(f"the source of the lambda at {code.co_filename}:{code.co_firstlineno} cannot be "
                       "read") from None
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
             and tuple(arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)) == names]
    if len(found) > 1 and hasattr(code, "co_positions"):
        columns = [place[2] for place in code.co_positions() if place[0] is not None and place[2]]
        first = min(columns, default=0)
        last = max((place[3] for place in code.co_positions() if place[0] is not None and place[3]), default=0)
        found = [node for node in found
                 if node.body.col_offset <= first and last <= node.body.end_col_offset] or found
        found = found[:1] if all(ast.dump(one) == ast.dump(found[0]) for one in found) else found
    if len(found) != 1:
        raise ConversionError(f"the lambda at {code.co_filename}:{code.co_firstlineno} cannot be told from others of "
                              "its line: give it a line of its own")
    body = ast.copy_location(ast.Return(found[0].body), found[0].body)
    made = ast.FunctionDef(name="_lambda_", args=found[0].args, body=[body], decorator_list=[], returns=None,
                           type_comment=None, type_params=[])
    return ast.Module([make.at(made, found[0])], [])


def _find(tree, code):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if code.co_name not in (node.name, "<lambda>"):
                continue
            return node
    raise ConversionError(f"the source of {code.co_name} is not where Python says it is")


# ---- rewriting ----------------------------------------------------------------------------


def _owner(function):
    """The name of the class around a method, for __private names."""
    parts = function.__qualname__.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else None


def _rewrite(node, function):
    place = function.__code__.co_filename, node.lineno
    if isinstance(node, ast.AsyncFunctionDef) or any(holds(one, (ast.Yield, ast.YieldFrom)) for one in node.body):
        raise refuse(f"{node.name} is a generator or coroutine, which a program cannot hold: return a list instead",
                     place)
    node.decorator_list = []
    parameters = arguments(node.args)
    first = next((arg.arg for arg in (*node.args.posonlyargs, *node.args.args)), None)
    calls_only = (function.__module__ or "").startswith(_PACKAGE) and not place[0].startswith("<")
    expressions = (Calls if calls_only else Expressions)(first, _owner(function), place[0],
                                                          function.__code__.co_freevars)
    # defaults are the user function's own objects
    node.args.defaults = [ast.copy_location(ast.Constant(None), node) for _ in node.args.defaults]
    node.args.kw_defaults = [one and ast.copy_location(ast.Constant(None), node) for one in node.args.kw_defaults]
    expressions.visit(node)
    if calls_only:
        return node
    for inner in function_nodes(node):
        if any(holds(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in inner.body):
            continue
        module, outer = declared(inner.body, ast.Global), declared(inner.body, ast.Nonlocal)
        names = parameters if inner is node else arguments(inner.args)
        heads = [one for one in inner.body if isinstance(one, (ast.Global, ast.Nonlocal))]
        body = [one for one in inner.body if not isinstance(one, (ast.Global, ast.Nonlocal))]
        body = Jumps(expressions.fresh).function(body) if body else body
        body = Flow(expressions.fresh, module, outer).function(body, names) if body else body
        inner.body = heads + body if heads + body else [ast.Pass()]
    _note_tries(node)
    return node


def _note_tries(tree):
    """The runtime is told of each try with handlers: they see nothing of what a run raises."""
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.Try) and node.handlers:
            body = ast.With([ast.withitem(make.runtime("Trying"), None)], node.body, type_comment=None)
            node.body = [make.at(body, node.body[0])]


def _compile(function, node, free):
    """The code of the rewritten function, its free variables named as the user's are."""
    parameters, name = [OWN, *free], node.name
    node.name = _MADE  # a function that calls itself by a global name must not find the factory's local one
    body = [node, ast.Return(make.load(_MADE))]
    factory = make.function(_FACTORY, body, parameters)
    tree = ast.fix_missing_locations(ast.Module([make.at(factory, node)], []))
    space = {}
    exec(compile(tree, function.__code__.co_filename, "exec", dont_inherit=True,
                 flags=_future_flags(function.__code__)), space)
    node.name = name
    return space[_FACTORY](*[None] * len(parameters)).__code__.replace(co_name=name)


def _future_flags(code):
    import __future__
    return code.co_flags & __future__.annotations.compiler_flag


def _register(code, converted):
    _origins[code] = converted
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            _register(part, converted)


def convert_code(function):
    """The Converted of a function's code, made at most once. ConversionError if it cannot be."""
    user = function.__code__
    found = _made.get(user)
    if found is None:
        try:
            node = _rewrite(_find(_source(user), user), function)
            code = _compile(function, node, user.co_freevars)
            if user.co_name == "<lambda>":
                code = code.replace(co_name="<lambda>")
            found = Converted(function, code, node)
            _register(code, found)
            _log(found)
        except ConversionError as error:
            found = error
        _made[user] = found
    if isinstance(found, ConversionError):
        raise found.with_traceback(None)
    return found


def convert_function(function):
    """The converted twin of a plain Python function, on the same globals, closure and defaults."""
    if is_converted(function):
        return function
    code = convert_code(function).code
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[OWN] = types.CellType(runtime)
    new = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                             tuple(cells[name] for name in code.co_freevars))
    new.__kwdefaults__ = function.__kwdefaults__
    new.__dict__.update(function.__dict__)
    new.__qualname__, new.__module__ = function.__qualname__, function.__module__
    return new


def is_converted(function):
    return function.__code__ in _origins


def is_converted_code(code):
    return code in _origins


def lines_of(code):
    """The user's line -> converted lines, of a code object made here; None of others."""
    found = _origins.get(code)
    return None if found is None else found.lines


def _log(converted):
    """Logs the converted source if set_code_level or set_verbosity ask for it."""
    if LOGGER.has_code_level(LOG_AllTransformer) or LOGGER.has_verbosity(3):
        LOGGER.log_transformed_code(LOG_AllTransformer, converted.text, converted.user.__qualname__)
