"""ParamAttr: name, initializer, learning rate, regularizer and more of a parameter."""
from .. import _core

__all__ = ["ParamAttr", "WeightNormParamAttr"]


def _check(what, value, *kinds):
    """Kinds are looked at while a program is built: eagerly Paddle takes anything here."""
    if not isinstance(value, kinds) and _core.is_capturing():
        names = " or ".join("None" if k is type(None) else k.__name__ for k in kinds)
        raise TypeError(f"ParamAttr: {what} must be {names}, got {value!r}")


class ParamAttr:
    """Attributes of a parameter, for the `weight_attr` and `bias_attr` of layers.

    >>> import proa as paddle
    >>> attr = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(2.0), learning_rate=0.5)
    >>> layer = paddle.nn.Linear(2, 1, weight_attr=attr)
    >>> layer.weight.name, layer.weight.optimize_attr
    ('w', {'learning_rate': 0.5})
    """

    def __init__(self, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True,
                 do_model_average=True, need_clip=True):
        _check("name", name, str, type(None))
        _check("learning_rate", learning_rate, float, int)
        _check("trainable", trainable, bool)
        _check("do_model_average", do_model_average, bool)
        _check("need_clip", need_clip, bool)
        if name == "":
            raise ValueError("ParamAttr: name must not be empty")
        if initializer is not None:
            from ..nn.initializer import Initializer
            if isinstance(initializer, type) and issubclass(initializer, Initializer):
                initializer = initializer()     # the class for one with its defaults
            _check("initializer", initializer, Initializer)
        if regularizer is not None:
            from ..regularizer import WeightDecayRegularizer
            _check("regularizer", regularizer, WeightDecayRegularizer)
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    @staticmethod
    def _to_attr(arg):
        """The ParamAttr (False for "no such parameter", a list for a list) that a layer's argument means."""
        if arg is None or arg is True:
            return ParamAttr()
        if isinstance(arg, ParamAttr) or arg is False:
            return arg
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(a) for a in arg]
        from ..nn.initializer import Initializer
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        from ..regularizer import WeightDecayRegularizer
        if isinstance(arg, WeightDecayRegularizer):
            return ParamAttr(regularizer=arg)
        raise TypeError("a parameter's attribute must be a ParamAttr, a name, an initializer, a regularizer, a bool "
                        f"or None, got {arg!r}")


class WeightNormParamAttr(ParamAttr):
    """ParamAttr of a weight kept as magnitude and direction along dim. For programs;
    with layers use paddle.nn.utils.weight_norm."""

    params_with_weight_norm = []

    def __init__(self, dim=None, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True,
                 do_model_average=False, need_clip=True):
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average, need_clip)
        self.dim = dim
