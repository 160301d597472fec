"""PyLayer: a function with a user-defined backward, recorded as one node of the tape."""
from .. import _core
from .._errors import of_kind

__all__ = []


class PyLayerContext:
    """State that forward leaves for backward."""

    def __init__(self):
        self.container = ()
        self.non_differentiable = ()
        self.not_inplace_tensors = ()
        self.materialize_grads = True
        self._unpack, self._packed = None, ()  # saved_tensors_hooks' second, and which of container its first has packed
        self._saved_outputs = {}  # place in container → place among the outputs; set after forward

    def save_for_backward(self, *tensors):
        """Keeps tensors for backward; once, in forward."""
        hooks = _core.set_saved_hooks(None)
        _core.set_saved_hooks(hooks)
        self._unpack = hooks and hooks[1]
        self.container = tensors if hooks is None else tuple(
            hooks[0](t) if isinstance(t, _core.Tensor) else t for t in tensors)
        self._packed = tuple(hooks is not None and isinstance(t, _core.Tensor) for t in tensors)

    def saved_tensor(self):
        """The tensors given to save_for_backward."""
        if self._unpack is None:
            return self.container
        return tuple(self._unpack(t) if packed else t for t, packed in zip(self.container, self._packed))

    def mark_not_inplace(self, *args):
        """Inputs that forward returns without having changed them."""
        self.not_inplace_tensors = args

    def mark_non_differentiable(self, *args):
        """Outputs through which no gradient flows."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (the default) or None for outputs that nothing used."""
        if not isinstance(value, bool) and value is not None:
            raise of_kind(f"set_materialize_grads: value must be a bool, got {type(value).__name__}")
        self.materialize_grads = value


def _inputs(values, found):
    """The tensors among arguments, in order; those of lists and tuples, too."""
    for value in values:
        if isinstance(value, _core.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(v for v in value if isinstance(v, _core.Tensor))
    return found


def _place(tensor, among):
    return next((i for i, t in enumerate(among) if t is tensor), -1)


def _backward(cls, ctx, count, metas):
    """The function that the tape calls: gradients and kept outputs in, one gradient an input out."""
    def run(grads, outputs):
        if ctx._saved_outputs:
            saved = ctx.container
            ctx.container = tuple(outputs[ctx._saved_outputs[i]] if i in ctx._saved_outputs else t
                                  for i, t in enumerate(saved))
        if ctx.materialize_grads:
            grads = [_core.full(*metas[i]) if g is None else g for i, g in enumerate(grads)]
        try:
            made = cls.backward(ctx, *grads)
        finally:
            if ctx._saved_outputs:
                ctx.container = saved
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if len(made) < count or any(g is not None for g in made[count:]):
            raise ValueError(f"{cls.__name__}: backward must return one gradient for each of the {count} Tensors "
                             f"that forward got, got {len(made)}")
        return made[:count]
    return run


class PyLayer(PyLayerContext):
    """Subclasses define static forward(ctx, *args, **kwargs) and backward(ctx, *grads), which returns one gradient
    (or None) for each Tensor that forward got; apply() runs them.

    >>> import proa as paddle
    >>> class Double(paddle.autograd.PyLayer):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, dy):
    ...         return dy * 2
    >>> x = paddle.ones([1]); x.stop_gradient = False
    >>> Double.apply(x).backward(); x.grad.item()
    2.0
    """

    def __init__(self, *_, **__):  # Paddle's looks at no argument
        super().__init__()

    @staticmethod
    def forward(ctx, *args, **kwargs):
        raise NotImplementedError("PyLayer: a subclass must define forward")

    @staticmethod
    def backward(ctx, *args):
        raise NotImplementedError("PyLayer: a subclass must define backward")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward; its outputs lead back through backward."""
        ctx = PyLayerContext()
        recording = _core.set_recording(False)
        try:
            result = cls.forward(ctx, *args, **kwargs)
        finally:
            _core.set_recording(recording)
        many = isinstance(result, (list, tuple))
        items = list(result) if many else [result]
        at = [i for i, t in enumerate(items) if isinstance(t, _core.Tensor)]
        if not at:
            raise ValueError(f"{cls.__name__}: forward must return at least one Tensor, got {type(result).__name__}")
        inputs = _inputs(kwargs.values(), _inputs(args, []))
        if recording and any(not t.stop_gradient for t in inputs):
            outputs = [items[i] for i in at]
            fixed = [i for i, t in enumerate(outputs) if _place(t, ctx.non_differentiable) >= 0]
            places = {i: _place(t, outputs) for i, t in enumerate(ctx.container)}
            ctx._saved_outputs = {i: k for i, k in places.items() if k >= 0}
            if ctx._saved_outputs:  # the tape keeps these: an output that knew itself would never be freed
                ctx.container = tuple(None if i in ctx._saved_outputs else t for i, t in enumerate(ctx.container))
            ctx.non_differentiable = ()
            metas = [(t.shape, 0.0, t.dtype) for t in outputs]
            made = _core.py_layer(cls.__name__, inputs, outputs, _backward(cls, ctx, len(inputs), metas),
                                  bool(ctx._saved_outputs))
            for i in fixed:
                made[i].stop_gradient = True
            for i, t in zip(at, made):
                items[i] = t
        if not many:
            return items[0]
        return tuple(items) if isinstance(result, tuple) else items


def once_differentiable(backward):
    """Marks a PyLayer's backward whose own gradient is not recorded."""
    def wrapper(ctx, *args):
        recording = _core.set_recording(False)
        try:
            return backward(ctx, *args)
        finally:
            _core.set_recording(recording)
    return wrapper
