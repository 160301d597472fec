"""paddle.optimizer: optimizers whose step is one multi-tensor op, and the learning-rate schedulers."""
from . import lr
from .adagrad import Adadelta, Adagrad, RMSProp
from .adam import Adam, Adamax, AdamW, Lamb
from .optimizer import Optimizer
from .sgd import SGD, Momentum

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
