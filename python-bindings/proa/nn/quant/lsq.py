"""Quantizers whose scales are learned by gradients: LSQ (Esser et al., 2020) for weights, LSQ+ (Bhalgat et al., 2020) for
activations. While a model starts, scales follow the statistics of what they see."""
import math

from ...autograd import PyLayer
from ...framework import ParamAttr, unique_name
from ..initializer import Constant
from ..layer.layers import Layer

__all__ = ["FakeQuantActLSQPlus", "FakeQuantWeightLSQPlus"]


def _rounded(x):
    """Halves go away from zero."""
    return x.sign() * (x.abs() + 0.5).floor()


def _float(condition):
    return condition.astype("float32")


class LsqFunc(PyLayer):
    """x rounded to multiples of a learned step, from low to high of them. A step an equal part of x in memory, or one."""

    @staticmethod
    def forward(ctx, weight, alpha, g, Qn, Qp, per_channel=False, quant_axis=0):
        rows = weight.reshape([weight.shape[quant_axis], -1] if per_channel else [1, -1])
        steps = alpha.reshape([-1, 1])
        ctx.save_for_backward(rows, steps)
        ctx.other = g, Qn, Qp, weight.shape, alpha.shape
        return (_rounded(rows / steps).clip(Qn, Qp) * steps).reshape(weight.shape)

    @staticmethod
    def backward(ctx, grad_weight):
        rows, steps = ctx.saved_tensor()
        g, low, high, shape, of_alpha = ctx.other
        q, d = rows / steps, grad_weight.reshape(rows.shape)
        below, above = _float(q < low), _float(q > high)
        inside = 1.0 - below - above
        slope = below * low + above * high + inside * (_rounded(q) - q)
        return (inside * d).reshape(shape), (slope * d * g).sum(axis=1).reshape(of_alpha)


class LsqPlusActFunc(PyLayer):
    """LsqFunc of one step with a learned offset."""

    @staticmethod
    def forward(ctx, x, alpha, beta, g, Qn, Qp):
        ctx.save_for_backward(x, alpha, beta)
        ctx.other = g, Qn, Qp
        return _rounded((x - beta) / alpha).clip(Qn, Qp) * alpha + beta

    @staticmethod
    def backward(ctx, grad_x):
        x, alpha, beta = ctx.saved_tensor()
        g, low, high = ctx.other
        q = (x - beta) / alpha
        below, above = _float(q < low), _float(q > high)
        inside = 1.0 - below - above
        slope = below * low + above * high + inside * (_rounded(q) - q)
        outside = (below + above) * grad_x * g
        return inside * grad_x, (slope * grad_x * g).sum().reshape(alpha.shape), outside.sum().reshape(beta.shape)


class _Learned(Layer):
    def __init__(self, quant_bits, all_postive, batch_init, name, reduce_type):
        super().__init__()
        self.bits, self.all_positive, self.batch_init = quant_bits, all_postive, batch_init
        self.name, self.reduce_type, self.init_state = name, reduce_type, 0
        self.g = 1.0  # factor of the step's gradient, known from the first batch on
        self.Qn, self.Qp = (0, 2 ** quant_bits - 1) if all_postive else (-2 ** (quant_bits - 1), 2 ** (quant_bits - 1) - 1)

    def _learned(self, what, value, shape, dtype="float32"):
        made_name = unique_name.generate(f"{self.name or 'quant_dequant'}.{what}")
        made = self.create_parameter(shape, ParamAttr(name=made_name, initializer=Constant(value), trainable=True), dtype)
        made.stop_gradient = False
        return made

    def _agree(self, *parameters):
        from ... import distributed
        for one in parameters if self.reduce_type == "max" else ():
            distributed.all_reduce(one, op=distributed.ReduceOp.MAX)


class FakeQuantActLSQPlus(_Learned):
    """An activation rounded to multiples of a learned step, with a learned offset unless it is symmetric."""

    def __init__(self, quant_bits, all_postive=False, symmetric=False, batch_init=20, dtype="float32", name=None,
                 reduce_type=None):
        super().__init__(quant_bits, all_postive, batch_init, name, reduce_type)
        self.symmetric = symmetric
        self.s = self._learned("scale", 1.0, [])
        self.beta = None if symmetric else self._learned("beta", 0.0, [])

    def forward(self, activation):
        self._agree(self.s, *([] if self.symmetric else [self.beta]))
        if not activation.is_symbolic:
            self._see(activation)
        if self.symmetric:
            return LsqFunc.apply(activation, self.s, self.g, self.Qn, self.Qp)
        return LsqPlusActFunc.apply(activation, self.s, self.beta, self.g, self.Qn, self.Qp)

    def _see(self, x):
        if self.init_state == 0:
            self.g = 1.0 / math.sqrt(int(x.numel()) * self.Qp)
        if self.init_state < self.batch_init:
            self._start(x.detach(), first=self.init_state == 0)
        self.init_state += 1

    def _start(self, x, first):
        """The step that spreads x over all integers, then an average of such; the offset moves as in Paddle, from the step."""
        least, step = x.min(), (x.max() - x.min()) / (self.Qp - self.Qn)
        self.s.set_value((step if first else self.s * 0.9 + 0.1 * step).detach())
        if not self.symmetric:
            offset = least - self.s * self.Qn
            self.beta.set_value((offset if first else self.s * 0.9 + 0.1 * offset).detach())


class FakeQuantWeightLSQPlus(_Learned):
    """A weight rounded to multiples of a learned step, one or one a channel. As in Paddle, channels of a Linear's weight are
    told apart by their place in memory when it is rounded, not by its columns."""

    def __init__(self, quant_bits, all_postive=False, per_channel=False, batch_init=20, channel_num=None, quant_linear=False,
                 dtype="float32", name=None, reduce_type=None):
        super().__init__(quant_bits, all_postive, batch_init, name, reduce_type)
        self.per_channel, self.quant_linear = per_channel, quant_linear
        self.quant_axis, self.collect_axis = (1, 0) if quant_linear else (0, 1)
        self.s = self._learned("scale", 1.0, [channel_num], dtype)

    def forward(self, weight):
        self._agree(self.s)
        if not weight.is_symbolic:
            self._see(weight)
        return LsqFunc.apply(weight, self.s, self.g, self.Qn, self.Qp, self.per_channel, self.quant_axis)

    def _see(self, weight):
        if self.init_state == 0:
            self.g = 1.0 / math.sqrt(int(weight.numel()) * self.Qp)
        if self.init_state < self.batch_init:
            self._start(weight.detach(), first=self.init_state == 0)
        self.init_state = min(self.init_state, self.batch_init) + 1

    def _start(self, weight, first):
        """The larger end of mean ± 3 deviations, over all integers; later batches move it as Paddle does."""
        from ... import maximum
        rows, axis = (weight.reshape([weight.shape[0], -1]), self.collect_axis) if self.per_channel else (weight.reshape([-1]), 0)
        mean, deviation = rows.mean(axis), rows.std(axis)
        end = maximum((mean - 3 * deviation).abs(), (mean + 3 * deviation).abs()).reshape(self.s.shape)
        step = end / (2 ** self.bits - 1)
        self.s.set_value(step if first else (end if self.per_channel else self.s.detach()) * 0.9 + 0.1 * step)
