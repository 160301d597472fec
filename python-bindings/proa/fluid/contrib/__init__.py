"""fluid.contrib: the parts that Paddle 2.1 documents: mixed precision, quantization (slim), layers."""


def __getattr__(name):
    import importlib
    if name in ("layers", "mixed_precision", "slim"):
        return importlib.import_module(f".{name}", __name__)
    layers = importlib.import_module(".layers", __name__)
    if name in layers.__all__:
        return getattr(layers, name)
    raise AttributeError(f"module 'paddle.fluid.contrib' has no attribute {name!r}")
