"""fluid.initializer: initializers of parameters, under the names and signatures of 2.0."""
from ..nn import initializer as init
from ..nn.initializer import set_global_initializer
from ..nn.initializer.initializer import Initializer

__all__ = ["Bilinear", "BilinearInitializer", "Constant", "ConstantInitializer", "MSRA", "MSRAInitializer", "Normal",
           "NormalInitializer", "NumpyArrayInitializer", "TruncatedNormal", "TruncatedNormalInitializer", "Uniform",
           "UniformInitializer", "Xavier", "XavierInitializer", "set_global_initializer"]


class ConstantInitializer(init.Constant):
    """All elements are value."""

    def __init__(self, value=0.0, force_cpu=False):
        super().__init__(value)


class UniformInitializer(init.Uniform):
    """Uniform over [low, high]. A seed other than 0 is the generator's while it draws."""

    def __init__(self, low=-1.0, high=1.0, seed=0, diag_num=0, diag_step=0, diag_val=1.0):
        super().__init__(low, high)
        self._seed, self._diag = seed, (diag_num, diag_step, diag_val)


class NormalInitializer(init.Normal):
    """Normal with mean loc and deviation scale."""

    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__(loc, scale)
        self._seed = seed


class TruncatedNormalInitializer(init.TruncatedNormal):
    """Normal with mean loc and deviation scale, cut at two deviations."""

    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__(loc, scale)
        self._seed = seed


def XavierInitializer(uniform=True, fan_in=None, fan_out=None, seed=0):
    """Glorot's: uniform or normal."""
    return (init.XavierUniform if uniform else init.XavierNormal)(fan_in, fan_out)


def MSRAInitializer(uniform=True, fan_in=None, seed=0):
    """He's: uniform or normal."""
    return (init.KaimingUniform if uniform else init.KaimingNormal)(fan_in)


class NumpyArrayInitializer(init.Assign):
    """The elements of an array."""

    def __init__(self, value):
        super().__init__(value)


BilinearInitializer = init.Bilinear
Constant, Uniform, Normal, TruncatedNormal = (ConstantInitializer, UniformInitializer, NormalInitializer,
                                              TruncatedNormalInitializer)
Xavier, MSRA, Bilinear = XavierInitializer, MSRAInitializer, BilinearInitializer
