"""paddle.optimizer: optimisers whose step is one multi-tensor op, and the learning-rate schedulers."""
from . import lr  # noqa: F401
from .adagrad import Adadelta, Adagrad, RMSProp  # noqa: F401
from .adam import Adam, Adamax, AdamW, Lamb  # noqa: F401
from .optimizer import Optimizer  # noqa: F401
from .sgd import SGD, Momentum  # noqa: F401

__all__ = ['Optimizer', 'Adagrad', 'Adam', 'AdamW', 'Adamax', 'RMSProp', 'Adadelta', 'SGD', 'Momentum', 'Lamb',
           'LBFGS']


def __getattr__(name):
    if name != "LBFGS":
        raise AttributeError(f"module 'paddle.optimizer' has no attribute {name!r}")
    from .lbfgs import LBFGS
    globals()[name] = LBFGS
    return LBFGS


def __dir__():
    return sorted({*globals(), "LBFGS"})
