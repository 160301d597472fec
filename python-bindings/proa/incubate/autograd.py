"""paddle.incubate.autograd: products with Jacobians, and Jacobians and Hessians of functions, evaluated row by row as
they are indexed."""
from .. import _core
from .._asks import asks
from ..autograd.backward_mode import grad as _grad
from ..autograd.functional import _leaves, _list, jvp, vjp

__all__ = ["Hessian", "Jacobian", "disable_prim", "enable_prim", "forward_grad", "grad", "jvp", "vjp"]

_prim = False


def enable_prim():
    """Paddle's switch to primitive ops: gradients are made of ops here in any case, so that it changes nothing."""
    global _prim
    _prim = True


def disable_prim():
    """The opposite of enable_prim."""
    global _prim
    _prim = False


def prim_enabled():
    """Whether enable_prim was called last."""
    return _prim


def _zeros(gradients, like):
    return [_core.full_like(x, 0) if g is None else g for g, x in zip(gradients, like)]


@asks("static")
def grad(outputs, inputs, grad_outputs=None):
    """Gradients of outputs, weighted by grad_outputs, by inputs, in programs and eagerly.

    >>> x = paddle.to_tensor([3.0], stop_gradient=False)
    >>> paddle.incubate.autograd.grad(x * x, x).tolist()
    [6.0]
    """
    ys, xs = _list(outputs), _list(inputs)
    weights = None if grad_outputs is None else _list(grad_outputs)
    if any(y.is_symbolic for y in ys):
        from ..static import gradients
        made = gradients(ys, xs, weights)
    else:
        made = _grad(ys, xs, weights, create_graph=True, allow_unused=True)
    made = _zeros(made, xs)
    return made if isinstance(inputs, (list, tuple)) else made[0]


@asks("static")
def forward_grad(outputs, inputs, grad_inputs=None):
    """The outputs' derivatives in the direction grad_inputs of inputs (ones by default): forward mode, by
    differentiating the backward pass.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.incubate.autograd.forward_grad(x * x, x).tolist()
    [2.0, 4.0]
    """
    ys, xs = _list(outputs), _list(inputs)
    along = [_core.full_like(x, 1) for x in xs] if grad_inputs is None else _list(grad_inputs)
    weights = [_core.full_like(y, 0) for y in ys]
    for w in weights:
        w.stop_gradient = False
    made = grad(grad(ys, xs, weights), weights, along)
    return made if isinstance(outputs, (list, tuple)) else made[0]


class Jacobian:
    """d func(xs) / d xs: a matrix [M, N] of flattened results and arguments, or [B, M, N] with is_batched; rows are
    evaluated when they are first indexed.

    >>> J = paddle.incubate.autograd.Jacobian(lambda x: x * x, paddle.to_tensor([1.0, 2.0]))
    >>> J[:].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    def __init__(self, func, xs, is_batched=False):
        self._xs = [_core.assign(x) if not x.stop_gradient else leaf for x, leaf in zip(_list(xs), _leaves(xs))]
        self._batched, self._rows = is_batched, {}
        self._ys = self._flat(_list(func(*self._xs)))
        width = self._flat(self._xs).shape[-1]
        self._shape = (self._xs[0].shape[0], self._ys.shape[1], width) if is_batched else (self._ys.shape[0], width)

    @property
    def shape(self):
        return self._shape

    def _flat(self, tensors):
        rows = [t.reshape([t.shape[0], -1] if self._batched else [-1]) for t in tensors]
        return rows[0] if len(rows) == 1 else _core.concat(rows, 1 if self._batched else 0)

    def _row(self, i):
        if i not in self._rows:
            one = self._ys[:, i] if self._batched else self._ys[i]
            made = _grad(one, self._xs, create_graph=True, allow_unused=True)
            self._rows[i] = self._flat(_zeros(made, self._xs))
        return self._rows[i]

    def __getitem__(self, indexes):
        indexes = list(indexes) if isinstance(indexes, (list, tuple)) else [indexes]
        if any(i is Ellipsis for i in indexes):
            raise IndexError("Jacobian: an ellipsis is not supported as an index")
        for i in indexes:
            if not isinstance(i, (int, slice)):
                raise TypeError(f"Jacobian: an index must be an int or a slice, got {type(i).__name__}")
        indexes += [slice(None)] * (len(self._shape) - len(indexes))
        axis = 1 if self._batched else 0
        which, count = indexes[axis], self._shape[axis]
        if isinstance(which, int):
            rest = indexes[:axis] + indexes[axis + 1:]
            return self._row(which + count if which < 0 else which)[tuple(rest)]
        part = _core.stack([self._row(i) for i in range(*which.indices(count))], axis)
        return part[tuple(indexes[:axis] + [slice(None)] + indexes[axis + 1:])]


class Hessian:
    """The second derivatives of a function with one result (or one a row, is_batched), as a Jacobian.

    >>> H = paddle.incubate.autograd.Hessian(lambda x: (x ** 3).sum(), paddle.to_tensor([1.0, 2.0]))
    >>> H[:].tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """

    def __init__(self, func, xs, is_batched=False):
        def first(*inner):
            jacobian = Jacobian(func, inner, is_batched)
            if jacobian.shape[-2] != 1:
                raise RuntimeError(f"Hessian: func must return one element{' a row' if is_batched else ''}, "
                                   f"got {jacobian.shape[-2]}")
            return jacobian[:, 0, :] if is_batched else jacobian[0, :]
        self.symbolic = Jacobian(first, xs, is_batched)

    @property
    def shape(self):
        return self.symbolic.shape

    def __getitem__(self, indexes):
        return self.symbolic[indexes]
