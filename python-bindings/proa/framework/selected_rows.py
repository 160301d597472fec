"""Tensors that are SelectedRows: gradients of large tables, of which only some rows are given. As in Paddle, such a
Tensor's shape and elements are those of the given rows."""
from .. import _core


class SelectedRows:
    """What Tensor.get_selected_rows() returns: the rows' numbers, their values, and the table's height."""

    def __init__(self, tensor):
        self._tensor = tensor

    def rows(self):
        """The number of each given row."""
        return _core.rows_index(self._tensor).tolist()

    def height(self):
        """The number of the table's rows."""
        return _core.rows_height(self._tensor)

    def get_tensor(self):
        """The given rows, on the same memory."""
        return _core.rows_values(self._tensor)


def get_selected_rows(self):
    """The tensor as SelectedRows; None if it is dense."""
    return SelectedRows(self) if _core.is_rows(self) else None


def rows(self, *args, **kwargs):
    """The number of each given row of a tensor that is SelectedRows."""
    if not _core.is_rows(self):  # Paddle looks at the tensor before the arguments
        raise SystemError("(Fatal) Tensor.rows: the tensor is dense, and not SelectedRows")
    return _core.rows_index(self).tolist()


def gradient(self):
    """The gradient as a NumPy array, or None; of SelectedRows, the given rows and their numbers. A program's variable
    has none: AssertionError."""
    if self.is_symbolic:
        raise AssertionError("gradient: a program's variable keeps no gradient; fetch that of paddle.static.gradients")
    grad = self.grad
    if grad is None:
        return None
    if not _core.is_rows(grad):
        return grad.numpy()
    return grad.numpy(), _core.rows_index(grad).numpy()


def _get_tensor_from_selected_rows(self):
    return _core.rows_values(self)


def on_merged_rows(fn, tensor):
    """fn(tensor); of SelectedRows, fn of the merged rows' values, as SelectedRows."""
    if not _core.is_rows(tensor):
        return fn(tensor)
    merged = _core.rows_merge(tensor)
    return _core.rows_new(_core.rows_index(merged), fn(_core.rows_values(merged)), _core.rows_height(merged))


def is_selected_rows(self):
    """Whether the tensor is SelectedRows."""
    return _core.is_rows(self)


def is_dense(self):
    """Whether the tensor is dense."""
    return not _core.is_rows(self)


METHODS = {"is_selected_rows": is_selected_rows, "is_dense": is_dense, "get_selected_rows": get_selected_rows,
           "rows": rows, "gradient": gradient, "_get_tensor_from_selected_rows": _get_tensor_from_selected_rows}
