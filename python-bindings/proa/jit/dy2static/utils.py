"""paddle.jit.dy2static.utils: trees of source code as functions and text."""
import ast
import types

__all__ = ["ast_to_func", "ast_to_source_code", "index_in_list", "is_paddle_func"]


def _plain(tree):
    """The tree as Python's own: gast's has a form of its own."""
    if isinstance(tree, ast.AST) and type(tree).__module__ in ("ast", "_ast"):
        return tree
    import gast
    if not isinstance(tree, gast.AST):
        raise TypeError(f"Type of ast_root should be gast.AST or ast.AST, but received {type(tree)}.")
    return gast.gast_to_ast(tree)


def ast_to_source_code(ast_node):
    """The text of a tree."""
    return ast.unparse(ast.fix_missing_locations(_plain(ast_node)))


def ast_to_func(ast_root, dyfunc, delete_on_exit=True):
    """(The function that a module's tree defines under dyfunc's name, the file of its source): it sees dyfunc's globals and
    the variables that dyfunc has from functions around it."""
    tree = ast.fix_missing_locations(_plain(ast_root))
    file = f"<transformed {getattr(dyfunc, '__name__', dyfunc)}>"
    space = {**getattr(dyfunc, "__globals__", {})}
    for name, cell in zip(getattr(dyfunc, "__code__", _NONE).co_freevars, getattr(dyfunc, "__closure__", None) or ()):
        space[name] = cell.cell_contents
    exec(compile(tree, file, "exec"), space)
    made = space.get(dyfunc.__name__)
    if not callable(made):
        raise ValueError(f"Function: {dyfunc.__name__} doesn't exist in the Module transformed from AST.")
    return made, file


_NONE = types.SimpleNamespace(co_freevars=())


def index_in_list(array_list, item):
    """The place of an item in a list, or -1."""
    return array_list.index(item) if item in array_list else -1


def is_paddle_func(func):
    """Whether a function, class or module belongs to paddle."""
    module = func.__name__ if isinstance(func, types.ModuleType) else getattr(func, "__module__", None) or ""
    return module.partition(".")[0] in ("paddle", __name__.partition(".")[0])
