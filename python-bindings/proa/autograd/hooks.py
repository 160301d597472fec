"""Tensor.register_hook, and the handle that removes a hook; saved_tensors_hooks."""
from .. import _core


class TensorHookRemoveHelper:
    """The handle that register_hook returns."""

    def __init__(self, tensor, hook_id):
        self._tensor, self._id = tensor, hook_id

    def remove(self):
        """Removes the hook; False, with a warning, if it is gone already."""
        if _core.remove_hook(self._tensor, self._id):
            return True
        import warnings
        warnings.warn("register_hook: the hook was removed before", RuntimeWarning, stacklevel=2)
        return False


def _hook_in_program(var, hook):
    """Puts an operator behind a program's variable whose gradient is hook's result; what was fed has nothing before it
    that the hook could reach."""
    import numpy as np

    from ..static.host import py_func
    if not var.is_leaf:
        var._become(py_func(lambda value: value, var, var, lambda gradient: hook(np.array(gradient)), [var]))


def register_hook(self, hook):
    """Calls hook(gradient) when backward reaches the tensor; a Tensor that it returns takes the gradient's place. In a
    program the hook takes and returns arrays, stays for good, and None is returned.

    >>> import proa as paddle
    >>> x = paddle.ones([1]); x.stop_gradient = False
    >>> handle = x.register_hook(lambda g: g * 2)
    >>> (x * 3).backward(); x.grad.item()
    6.0
    >>> handle.remove()
    True
    """
    if self.stop_gradient:
        raise RuntimeError("register_hook: the Tensor must want a gradient; set stop_gradient = False first")
    if self.is_symbolic:
        return _hook_in_program(self, hook)
    return TensorHookRemoveHelper(self, _core.register_hook(self, hook))


class saved_tensors_hooks:
    """A context in which pack_hook(tensor) gets each tensor that backward will need, and what it returns is kept instead;
    backward gets unpack_hook of that, a Tensor with the same content.

    >>> import proa as paddle
    >>> x = paddle.to_tensor([3.0], stop_gradient=False)
    >>> with paddle.autograd.saved_tensors_hooks(lambda t: t.numpy(), paddle.to_tensor):
    ...     y = x * x
    >>> y.backward(); x.grad.item()
    6.0
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        before = _core.set_saved_hooks((self.pack_hook, self.unpack_hook))
        if before is not None:
            _core.set_saved_hooks(before)
            raise ValueError("(InvalidArgument) saved_tensors_hooks: only one pair of hooks is allowed at a time; leave the "
                             "outer one first")

    def __exit__(self, *exception):
        _core.set_saved_hooks(None)
