"""Buffers for many tensors: parameters, or their gradients, become slices of one tensor, so that one operation treats all."""
from .....autograd import no_grad
from .....tensor.creation import zeros


class InternalStorage:
    """A flat buffer of `size` elements. device: accepted; the buffer is on the current one."""

    def __init__(self, size, dtype, device, convert_cpu=False):
        self.buffer = zeros([int(size)], dtype)
        self._dtype, self._device = dtype, device
        self._params, self._fill = [], 0

    def warp_buffer(self):
        """The buffer as a tensor of its own, on the same memory."""
        return self.buffer.detach()

    def _next_slice(self, param, align, what):
        """The next elements of the buffer, as many as param has; align elements after them stay free."""
        end = self._fill + param.size
        if param.dtype != self.buffer.dtype:
            raise AssertionError(f"{what}: {param.name} is {param.dtype}, the buffer {self.buffer.dtype}; they must agree")
        if end + align > self.buffer.size:
            raise AssertionError(f"{what}: {param.name} and {align} elements more end at {end + align}; the buffer has {self.buffer.size}")
        part = self.buffer._slice(self._fill, end)
        self._fill = end + align
        return part

    def to(self, device, dtype=None, keep_alignment=True):
        """Changes the dtype of the buffer. keep_alignment=False leaves its tensors in their old memory."""
        self._device, self.buffer = device, self.buffer.astype(dtype or self.buffer.dtype)
        self._dtype = self.buffer.dtype
        if keep_alignment:
            self._place_all()

    def _place_all(self):
        """Makes the tensors slices of the buffer again, from its beginning."""
        self._fill = 0
        for param in self._params:
            self._place(param)

    def _check_in(self, param, what):
        if any(param is other for other in self._params):
            raise AssertionError(f"{what}: {param.name} was added before")


class ParamStorage(InternalStorage):
    """Parameters as slices of one buffer."""

    def __init__(self, size, dtype, device):
        super().__init__(size, dtype, device)
        self.param2align = None

    @no_grad()
    def add_rank_params(self, trainable_params, param2align, convert_gpu=True):
        """Moves parameters into the buffer, from its beginning. param2align: name of a parameter → free elements after it."""
        for param in trainable_params:
            self._check_in(param, "add_rank_params")
        self.param2align, self._fill = param2align, 0
        for param in trainable_params:
            part = self._next_slice(param, param2align[param.name], "add_rank_params")
            part.set_value(param.detach().reshape([-1]))
            part._share_buffer_to(param)
            self._params.append(param)

    def _place(self, param):
        end = self._fill + param.size
        self.buffer._slice(self._fill, end)._share_buffer_to(param)
        self._fill = end + self.param2align[param.name]


class GradStorage(InternalStorage):
    """Gradients as slices of one buffer: a backward adds to them there. destination: the rank that has the sum in the end; kept for
    the caller, as are params_checked_in and sent."""

    def __init__(self, size, dtype, device, destination, parm2align, convert_cpu=False):
        super().__init__(size, dtype, device, convert_cpu)
        self.destination, self._parm2align = destination, parm2align
        self._max_size, self._released = int(size), False
        self.params_checked_in, self.sent = 0, False

    def reset_checked_in(self):
        """Counts arrived gradients from zero."""
        self.params_checked_in, self.sent = 0, False

    @property
    def all_checked_in(self):
        """Whether as many gradients have arrived as there are parameters."""
        return len(self._params) == self.params_checked_in

    def can_add_grad_view(self, param, align):
        """Whether there is space for a parameter's gradient, which is not here yet."""
        return self._fill + param.size + align <= self._max_size and not any(param is other for other in self._params)

    def add_grad(self, param, align):
        """Makes the gradient of param the next slice of the buffer, with the gradient's value if there is one."""
        self._check_in(param, "add_grad")
        self._bind(param, align)
        self._params.append(param)

    @no_grad()
    def _bind(self, param, align):
        part, before = self._next_slice(param, align, "add_grad"), param.grad
        if before is not None:
            part.set_value(before.detach().reshape([-1]))
        param._copy_gradient_from(part.reshape(param.shape))

    def manumal_relase(self):
        """Drops the buffer and the gradients until rebuild(). (Paddle spells it so.)"""
        if not self._released:
            for param in self._params:
                param.clear_gradient(False)
            self.buffer, self._fill, self.params_checked_in, self._released = None, 0, 0, True

    def rebuild(self):
        """A new buffer of zeros for the same gradients, after manumal_relase()."""
        if self._released:
            self.buffer, self._released = zeros([self._max_size], self._dtype), False
            self._place_all()

    def _place(self, param):
        self._bind(param, self._parm2align[param.name])

    def to(self, device, dtype=None, keep_alignment=True):
        """As of InternalStorage; parameters must have the dtype, too."""
        self.rebuild()
        super().to(device, dtype, keep_alignment)
