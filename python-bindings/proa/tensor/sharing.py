"""Tensor methods for memory that several tensors share: slices of one buffer as parameters and as gradients."""
from .. import _core


def _share_buffer_to(self, dst_tensor):
    """dst_tensor keeps its shape; its elements and dtype are self's from then on, in the same memory."""
    _core.share_buffer(self, dst_tensor)


def _is_shared_buffer_with(self, dst_tensor):
    """Whether the two tensors are in one block of memory."""
    return _core.is_shared(self, dst_tensor)


def _slice(self, begin, end):
    """Rows [begin, end), in the memory of self, without history."""
    return self.detach()[int(begin):int(end)]


def _numel(self):
    return self.size


def _copy_gradient_from(self, src):
    """Gradients of self are added in the memory of src from then on."""
    _core.bind_grad(self, src)


METHODS = {"_share_buffer_to": _share_buffer_to, "_is_shared_buffer_with": _is_shared_buffer_with, "_slice": _slice,
           "_numel": _numel, "_copy_gradient_from": _copy_gradient_from}
