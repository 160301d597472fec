"""fluid.default_scope_funcs: a thread-local stack of variable scopes."""
import threading

from ..static.scope import Scope

__all__ = ["enter_local_scope", "find_var", "get_cur_scope", "leave_local_scope", "scoped_function", "var"]

_stacks = threading.local()


def get_cur_scope():
    """The innermost scope."""
    stack = _stacks.__dict__.setdefault("stack", [])
    if not stack:
        stack.append(Scope())
    return stack[-1]


def enter_local_scope():
    """A scope inside the current one."""
    inner = get_cur_scope().new_scope()
    _stacks.stack.append(inner)


def leave_local_scope():
    """Goes back to the scope around, which drops those inside it."""
    _stacks.stack.pop()
    get_cur_scope().drop_kids()


def var(name):
    """A variable of the current scope, made if need be."""
    return get_cur_scope().var(name)


def find_var(name):
    """The variable of that name in the current scope or those around it, or None."""
    return get_cur_scope().find_var(name)


def scoped_function(func):
    """Calls func in a scope of its own."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()
