"""Quanter factories: a class and constructor arguments, from which each layer gets an instance of its own."""
import abc
import sys

from .base_quanter import BaseQuanter

__all__ = ["ClassWithArguments", "ObserverFactory", "QuanterFactory", "quanter"]


class ClassWithArguments(metaclass=abc.ABCMeta):
    """Arguments for a class, which a subclass names."""

    def __init__(self, *args, **kwargs):
        self._args, self._kwargs = args, kwargs

    @property
    def args(self):
        return self._args

    @property
    def kwargs(self):
        return self._kwargs

    @abc.abstractmethod
    def _get_class(self):
        """The class of the instances."""

    def __str__(self):
        given = [str(a) for a in self._args] + [f"{k}={v}" for k, v in self._kwargs.items()]
        return f"{type(self).__name__}({','.join(given)})"

    __repr__ = __str__


class QuanterFactory(ClassWithArguments):
    """Makes a quanter for a layer."""

    def _instance(self, layer):
        return self._get_class()(layer, *self._args, **self._kwargs)


ObserverFactory = QuanterFactory


def quanter(class_name):
    """A decorator of quanter classes: puts a factory of that name into the module that the class is defined in.

    >>> from proa.quantization import BaseQuanter, quanter
    >>> @quanter("MyQuanter")
    ... class MyQuanterLayer(BaseQuanter):
    ...     def __init__(self, layer, bits=8):
    ...         super().__init__()
    ...     def forward(self, input): return input
    ...     def scales(self): return None
    ...     def zero_points(self): return None
    ...     def quant_axis(self): return -1
    ...     def bit_length(self): return 8
    >>> MyQuanter(bits=4)
    MyQuanter(bits=4)
    """
    def decorate(target):
        if not (isinstance(target, type) and issubclass(target, BaseQuanter)):
            raise TypeError(f"quanter({class_name!r}) decorates subclasses of BaseQuanter, got {target!r}")
        scope = sys._getframe(1).f_globals
        scope[class_name] = type(class_name, (QuanterFactory,), {"_get_class": lambda self: target, "__doc__": target.__doc__,
                                                                 "__module__": target.__module__})
        names = scope.get("__all__")
        if isinstance(names, list) and class_name not in names:
            names.append(class_name)
        return target
    return decorate
