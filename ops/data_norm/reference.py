"""NumPy references of data_norm."""
import numpy as np


def data_norm(x, batch_size, batch_sum, batch_square_sum, epsilon=1e-4):
    means, scales = batch_sum / batch_size, np.sqrt(batch_size / batch_square_sum)
    return (x - means) * scales, means, scales


def data_norm_grad(x, means, scales, d_y, epsilon=1e-4):
    size = np.full_like(means, len(x))
    return d_y * scales, size, x.sum(0), ((x - means) ** 2).sum(0) + size * epsilon
