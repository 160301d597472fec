"""paddle.onnx: layers as ONNX models, for ONNX Runtime and other engines."""
from .export import export

__all__ = ["export"]
