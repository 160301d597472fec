"""paddle.flops: multiply-adds of a network's layers, counted while it runs once."""
import warnings

from .. import _core


def _numel(tensor):
    n = 1
    for d in tensor.shape:
        n *= d
    return n


def _conv(m, x, y):
    kernel = 1
    for n in m.weight.shape[2:]:
        kernel *= n
    m.total_ops += abs(int(_numel(y) * (x[0].shape[1] / m._groups * kernel + (m.bias is not None))))


def _norm(m, x, y):
    m.total_ops += 2 * _numel(x[0])


def _leaky(m, x, y):
    m.total_ops += _numel(x[0])


def _linear(m, x, y):
    m.total_ops += m.weight.shape[0] * _numel(y)


def _pool(m, x, y):
    m.total_ops += _numel(y)


def _adaptive(m, x, y):
    kernel = 1
    for a, b in zip(x[0].shape[2:], y.shape[2:]):
        kernel *= a // b
    m.total_ops += (kernel + 1) * _numel(y)


def _nothing(m, x, y):
    pass


def _counters():
    from .. import nn
    table = {_conv: ("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"),
             _norm: ("BatchNorm2D", "BatchNorm"), _nothing: ("ReLU", "ReLU6", "Dropout"), _leaky: ("LeakyReLU",),
             _linear: ("Linear",), _pool: ("AvgPool1D", "AvgPool2D", "AvgPool3D"),
             _adaptive: ("AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D")}
    return {getattr(nn, name): fn for fn, names in table.items() for name in names if hasattr(nn, name)}


def _print_table(rows):
    rows = [[str(c) for c in r] for r in [["Layer Name", "Input Shape", "Output Shape", "Params", "Flops"], *rows]]
    wide = [max(len(r[k]) for r in rows) for k in range(5)]
    shelf = "+" + "+".join("-" * (w + 2) for w in wide) + "+"
    lines = ["|" + "|".join(c.center(w + 2) for c, w in zip(r, wide)) + "|" for r in rows]
    print("\n".join([shelf, lines[0], shelf, *lines[1:], shelf]))


def flops(net, input_size, custom_ops=None, print_detail=False):
    """The number of multiply-adds of one forward pass. custom_ops: Layer class → f(layer, inputs, output), which
    adds to layer.total_ops."""
    from ..nn import Layer
    if not isinstance(net, Layer):
        warnings.warn("flops: net must be a paddle.nn.Layer", stacklevel=2)
        return -1
    counters, custom, said, hooks = _counters(), custom_ops or {}, set(), []
    leaves = [(n, m) for n, m in net.named_sublayers(include_self=not net.sublayers()) if not list(m.children())]
    shapes = {}

    def note(m, x, y):
        shapes[id(m)] = list(x[0].shape), list((y[0] if isinstance(y, (list, tuple)) else y).shape)

    for _, m in leaves:
        kind = type(m)
        m.total_ops = 0
        count = custom.get(kind) or counters.get(kind)
        if kind not in said:
            said.add(kind)
            print(f"Customize Function has been applied to {kind}" if kind in custom else
                  f"{kind}'s flops has been counted" if count else
                  f"Cannot find suitable count function for {kind}. Treat it as zero FLOPs.")
        if count:
            hooks.append(m.register_forward_post_hook(count))
        hooks.append(m.register_forward_post_hook(note))
    training, was = net.training, _core.set_recording(False)
    try:
        from .model_summary import _random
        net.eval()
        net(_core.to_tensor(_random(tuple(input_size))))
    finally:
        _core.set_recording(was)
        for hook in hooks:
            hook.remove()
        if training:
            net.train()
    rows = [[m.full_name(), *shapes[id(m)], sum(_numel(p) for p in m.parameters()), int(m.total_ops)]
            for _, m in leaves if id(m) in shapes]
    for _, m in leaves:
        del m.total_ops
    if print_detail:
        _print_table(rows)
    total, params = sum(r[4] for r in rows), sum(r[3] for r in rows)
    print(f"Total Flops: {total}     Total Params: {params}")
    return total
