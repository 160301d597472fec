"""paddle.autograd: no_grad and its like, backward and grad, PyLayer, jacobian and hessian."""
from .backward_mode import backward, grad
from .guards import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .hooks import saved_tensors_hooks
from .py_layer import PyLayer, PyLayerContext

__all__ = ['jacobian', 'hessian', 'backward', 'PyLayer', 'PyLayerContext', 'saved_tensors_hooks']


_LAZY = ("jacobian", "hessian", "vjp", "jvp")


def __getattr__(name):
    if name in _LAZY:
        from . import functional
        return getattr(functional, name)
    if name == "ir_backward":
        import importlib
        return importlib.import_module(".ir_backward", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LAZY, "ir_backward"})
