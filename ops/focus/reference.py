"""NumPy reference of similarity_focus. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields,
tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns."""
import numpy as np


def similarity_focus(x, axis, indexes):
    out = np.zeros_like(x)
    for image, mask in zip(np.moveaxis(x, axis, 1), np.moveaxis(out, axis, 1)):
        for channel in image[list(indexes)]:
            left = channel.astype("float64")
            for _ in range(min(left.shape)):
                row, column = np.unravel_index(np.argmax(left), left.shape)
                mask[:, row, column] = 1
                left[row], left[:, column] = -np.inf, -np.inf
    return out
