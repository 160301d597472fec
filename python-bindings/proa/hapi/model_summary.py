"""paddle.summary: the table of a network's layers with their shapes and parameters."""
import numbers

from .. import _core


def _is_shape(value):
    return all(n is None or isinstance(n, numbers.Number) for n in value)


def _sizes(value):
    """input_size as a tuple (one input) or a list of them (several); InputSpecs by their shapes."""
    if isinstance(value, int):
        return _one_shape([value])
    if isinstance(value, bytes):
        raise TypeError("summary: input_size must be a shape, or a list of shapes or InputSpecs, got bytes")
    if hasattr(value, "shape"):
        return _one_shape(value.shape)
    if isinstance(value, tuple) and _is_shape(value):
        return _one_shape(value)
    return [_sizes(v) for v in value]


def _one_shape(shape):
    shape, open_dims = list(shape), 0
    for i, n in enumerate(shape):
        if n is None or n == -1:
            open_dims, shape[i] = open_dims + 1, 1
            if open_dims > 1:
                raise ValueError(f"summary: only the batch size may be None or -1 in input_size, got {list(shape)}")
        elif n <= 0:
            raise ValueError(f"summary: the dims of input_size must be positive, got {n}")
    return tuple(shape)


def _shapes(value):
    if isinstance(value, (list, tuple)):
        return [_shapes(v) for v in value]
    return list(value.shape) if hasattr(value, "shape") else []


def _inputs(sizes, dtypes):
    if isinstance(sizes, tuple):
        dtype = (dtypes[0] if dtypes else None) if isinstance(dtypes, (list, tuple)) else dtypes
        return [_core.to_tensor(_random(sizes)).astype("float32" if dtype is None else dtype)]
    if not isinstance(dtypes, (list, tuple)):
        dtypes = [dtypes] * len(sizes)
    return [_inputs(s, d)[0] if isinstance(s, tuple) else _inputs(s, d) for s, d in zip(sizes, dtypes)]


def _random(shape):
    import numpy as np
    return np.random.default_rng(0).random(shape, "float32")


def _numel(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def _elements(shape):
    return sum(_elements(s) for s in shape) if shape and isinstance(shape[0], list) else _numel(shape)


class _Rows:
    """Gathers a row a layer while the network runs."""

    def __init__(self, net):
        from ..nn import LayerList, Sequential
        from ..nn.layer.rnn import RNNBase
        self.rows, self.hooks = {}, []
        leaf = not net.sublayers()
        for layer in net.sublayers(include_self=True):
            container = isinstance(layer, (Sequential, LayerList)) or (layer is net and not leaf)
            if not container or isinstance(layer, RNNBase):
                self.hooks.append(layer.register_forward_post_hook(self.add))

    def add(self, layer, inputs, output):
        tail = layer.full_name().rpartition("_")[2]
        number = int(tail) if tail.isdigit() else len(self.rows)
        params = [(p, _numel(p.shape)) for p in layer._parameters.values() if p is not None]
        self.rows[f"{type(layer).__name__}-{number + 1}"] = (
            _shapes(inputs), _shapes(output), sum(n for _, n in params),
            sum(n for p, n in params if getattr(p, "trainable", True) and not p.stop_gradient))


def _table(rows, sizes):
    cells = [(name, str(i), str(o), f"{n:,}") for name, (i, o, n, _) in rows.items()]
    wide = [max([least] + [len(c[k] if k < 3 else c[k].replace(",", "")) for c in cells])
            for k, least in enumerate((15, 20, 20, 15))]
    width = max(75, sum(wide) + 5)
    line = "-" * width

    def row(cell):
        return " ".join(f"{c:^{w}}" for c, w in zip(cell, wide))

    total = sum(r[2] for r in rows.values())
    trainable = sum(r[3] for r in rows.values())
    flat = [sizes] if isinstance(sizes, tuple) else sizes
    mega = 4.0 / 1024 ** 2
    taken = [sum(_count(s) for s in flat) * mega, 2.0 * sum(_elements(r[1]) for r in rows.values()) * mega,
             total * mega]
    text = [line, row(("Layer (type)", "Input Shape", "Output Shape", "Param #")), "=" * width]
    text += [row(c) for c in cells]
    text += ["=" * width, f"Total params: {total:,}", f"Trainable params: {trainable:,}",
             f"Non-trainable params: {total - trainable:,}", line, f"Input size (MB): {taken[0]:0.2f}",
             f"Forward/backward pass size (MB): {taken[1]:0.2f}", f"Params size (MB): {taken[2]:0.2f}",
             f"Estimated Total Size (MB): {sum(taken):0.2f}", line, ""]
    return "\n".join(text), {"total_params": total, "trainable_params": trainable}


def _count(size):
    return _numel(size) if isinstance(size, tuple) else sum(_count(s) for s in size)


def _size_of(value):
    if isinstance(value, dict):
        return [tuple(v.shape) for v in value.values()]
    if isinstance(value, (list, tuple)):
        return [tuple(v.shape) for v in value]
    if isinstance(value, _core.Tensor):
        return tuple(value.shape)
    raise ValueError(f"summary: input must be a Tensor, or a list, tuple or dict of them, got {type(value).__name__}")


def summary(net, input_size=None, dtypes=None, input=None):
    """Prints a row a layer and returns {'total_params', 'trainable_params'}.

    input_size: a shape, or a list of shapes or InputSpecs; or give input, the tensors themselves.
    """
    if input_size is None and input is None:
        raise ValueError("summary: give input_size or input")
    size = _size_of(input) if input_size is None else input_size
    if isinstance(input_size, list) and not all(isinstance(s, (tuple, int)) or hasattr(s, "shape")
                                                for s in input_size):
        raise AssertionError(f"summary: a list input_size holds tuples or InputSpecs, got {input_size!r}")
    training = not _core.is_capturing() and net.training
    sizes, was = _sizes(size), _core.set_recording(False)
    rows = _Rows(net)
    try:
        net.eval()
        net(input) if input is not None else net(*_inputs(sizes, dtypes))
    finally:
        _core.set_recording(was)
        for hook in rows.hooks:
            hook.remove()
        if training:
            net.train()
    text, counts = _table(rows.rows, sizes)
    print(text)
    return counts
