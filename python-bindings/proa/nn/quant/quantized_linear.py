"""Weights of linear layers as integers: quantized ahead, dequantized where they are used."""
__all__ = ["llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]

_ALGORITHMS = ("weight_only_int8", "weight_only_int4", "llm.int8")


def _algorithm(who, algo):
    if algo not in _ALGORITHMS:
        raise ValueError(f"{who}: algo must be one of {', '.join(_ALGORITHMS)}, got {algo!r}")
    if algo == "weight_only_int4":
        raise NotImplementedError(f"{who}: weights of 4 bits are not supported: use weight_only_int8")


def weight_quantize(x, algo="weight_only_int8", arch=None):
    """Integers [out, in] of a weight [in, out], and a float32 step for each column.

    >>> import proa as paddle
    >>> w = paddle.to_tensor([[127.0, 1.0], [-64.0, 2.0]])
    >>> q, step = paddle.nn.quant.weight_quantize(w)
    >>> q.tolist(), step.shape
    ([[127, -64], [64, 127]], [2])
    """
    from ... import clip
    _algorithm("weight_quantize", algo)
    wide = x.cast("float32")
    step = wide.abs().max(0) / 127.0
    q = clip((wide / step.clip(min=1e-30)).round(), -127, 127)
    return q.transpose([1, 0]).cast("int8"), step


def weight_dequantize(x, scale, algo="weight_only_int8", out_dtype="float16"):
    """The weight [in, out] that weight_quantize's integers and steps stand for."""
    _algorithm("weight_dequantize", algo)
    return (x.cast("float32").transpose([1, 0]) * scale.cast("float32")).cast(out_dtype)


def weight_only_linear(x, weight, bias=None, weight_scale=None, weight_dtype="int8", arch=None):
    """x · weight + bias with a weight of weight_quantize's."""
    from .. import functional as F
    if weight_dtype != "int8":
        raise NotImplementedError(f"weight_only_linear: weight_dtype must be 'int8', got {weight_dtype!r}")
    return F.linear(x, weight_dequantize(weight, weight_scale, out_dtype=x.dtype), bias)


def llm_int8_linear(x, weight, bias=None, weight_scale=None, threshold=6.0):
    """x · weight + bias with a weight of weight_quantize's; here columns beyond the threshold need no path of their own."""
    return weight_only_linear(x, weight, bias, weight_scale)
