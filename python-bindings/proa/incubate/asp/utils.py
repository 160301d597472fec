"""Masks of n:m sparsity over NumPy arrays: how they are made and checked, in rows of m and in blocks of m by m."""
import enum
import functools
import itertools

import numpy as np

__all__ = []


class MaskAlgo(enum.Enum):
    """The algorithms that make masks."""
    MASK_1D = "get_mask_1d"
    MASK_2D_GREEDY = "get_mask_2d_greedy"
    MASK_2D_BEST = "get_mask_2d_best"


class CheckMethod(enum.Enum):
    """The checks of masks."""
    CHECK_1D = "check_mask_1d"
    CHECK_2D = "check_mask_2d"

    @staticmethod
    def get_checking_method(mask_algo):
        """The check of what an algorithm makes."""
        if not isinstance(mask_algo, MaskAlgo):
            raise AssertionError(f"get_checking_method: mask_algo must be a MaskAlgo, got {type(mask_algo).__name__}")
        return CheckMethod.CHECK_1D if mask_algo is MaskAlgo.MASK_1D else CheckMethod.CHECK_2D


def calculate_density(x):
    """The part of an array's elements that is not zero.

    >>> calculate_density(np.array([[0, 1, 3, 0], [1, 1, 0, 1]]))
    0.625
    """
    return float(np.count_nonzero(x)) / x.size


def _padded(mat, rows, columns):
    """A matrix with zeros added, so that its sizes are multiples of `rows` and `columns`."""
    if mat.ndim != 2:
        raise AssertionError(f"asp: mat must be a matrix, got an array of shape {mat.shape}")
    return np.pad(mat, ((0, -mat.shape[0] % rows), (0, -mat.shape[1] % columns)))


def _blocks(mat, m):
    """The m by m blocks of a matrix, padded: [blocks, m, m], and the padded shape."""
    padded = _padded(mat, m, m)
    rows, columns = padded.shape
    cut = padded.reshape(rows // m, m, columns // m, m).transpose(0, 2, 1, 3)
    return cut.reshape(-1, m, m), padded.shape


def _joined(blocks, shape, m, wanted):
    """The matrix of these blocks, without its padding."""
    cut = blocks.reshape(shape[0] // m, shape[1] // m, m, m).transpose(0, 2, 1, 3)
    return cut.reshape(shape)[:wanted[0], :wanted[1]]


def check_mask_1d(mat, n, m):
    """Whether each m neighbors of a row have at least n zeros."""
    mat = mat.reshape(1, -1) if mat.ndim <= 1 else mat
    groups = _padded(mat, 1, m).reshape(-1, m)
    return bool(np.all(np.count_nonzero(groups, axis=1) <= m - n))


def get_mask_1d(mat, n, m):
    """Ones but for the n smallest magnitudes of each m neighbors of a row."""
    padded = _padded(mat, 1, m)
    groups = padded.reshape(-1, m)
    mask = np.ones_like(groups)
    np.put_along_axis(mask, np.argsort(np.absolute(groups), axis=1)[:, :n], 0, axis=1)
    return mask.reshape(padded.shape)[:, :mat.shape[1]].astype(mat.dtype)


def check_mask_2d(mat, n, m):
    """Whether each block of m by m has at least n zeros in every row, or in every column."""
    kept = _blocks(mat, m)[0] != 0
    over = [np.any(kept.sum(axis=axis) > m - n, axis=1) for axis in (2, 1)]
    return not np.any(over[0] & over[1])


def get_mask_2d_greedy(mat, n, m):
    """Keeps magnitudes of each block of m by m from the largest on, at most n a row and n a column."""
    blocks, shape = _blocks(mat, m)
    count = len(blocks)
    order = np.argsort(np.absolute(blocks.reshape(count, m * m)).astype(float), axis=1)[:, ::-1]
    mask = np.zeros((count, m, m))
    rows, columns, every = np.zeros((count, m), int), np.zeros((count, m), int), np.arange(count)
    for at in order.T:
        row, column = at // m, at % m
        free = (rows[every, row] < n) & (columns[every, column] < n)
        mask[every, row, column] += free
        rows[every, row] += free
        columns[every, column] += free
    return _joined(mask, shape, m, mat.shape)


@functools.lru_cache
def _compute_valid_2d_patterns(n, m):
    """The masks of m by m with n ones a row and at most n a column."""
    rows = [[i in ones for i in range(m)] for ones in itertools.combinations(range(m), n)]
    patterns = np.array(list(itertools.product(rows, repeat=m)), dtype=float)
    return patterns[np.all(patterns.sum(axis=1) <= n, axis=1)]


def get_mask_2d_best(mat, n, m):
    """For each block of m by m the mask with n ones a row and a column that keeps the largest sum. As in Paddle, elements
    count with their sign."""
    patterns = _compute_valid_2d_patterns(n, m)
    blocks, shape = _blocks(mat, m)
    sums = blocks.reshape(-1, m * m) @ patterns.reshape(-1, m * m).T
    return _joined(patterns[np.argmax(sums, axis=1)], shape, m, mat.shape)


_FUNCTIONS = {f.__name__: f for f in (check_mask_1d, check_mask_2d, get_mask_1d, get_mask_2d_best, get_mask_2d_greedy)}


def _as_matrix(who, tensor):
    """An array as a matrix, whose last axis is the one that is pruned, and a function that gives an array like the matrix
    the array's shape. Of a filter [height, width, in, out], the inputs are pruned."""
    shape, values = tensor.shape, tensor.astype(float)
    if not 1 <= len(shape) <= 4:
        raise ValueError(f"{who}: tensor must have 1 to 4 dims, got shape {shape}")
    if len(shape) < 4:
        return values.reshape(-1, shape[-1]), lambda mat: mat.reshape(shape)
    swapped = values.transpose(0, 1, 3, 2)
    return swapped.reshape(-1, shape[2]), lambda mat: mat.reshape(swapped.shape).transpose(0, 1, 3, 2)


def create_mask(tensor, func_name=MaskAlgo.MASK_1D, n=2, m=4):
    """The mask of an array of 1 to 4 dims."""
    if not isinstance(func_name, MaskAlgo):
        raise AssertionError(f"create_mask: func_name must be a MaskAlgo, got {type(func_name).__name__}")
    mat, shaped = _as_matrix("create_mask", tensor)
    return shaped(_FUNCTIONS[func_name.value](mat, n=n, m=m)).astype(tensor.dtype)


def check_sparsity(tensor, func_name=CheckMethod.CHECK_1D, n=2, m=4):
    """Whether an array of 1 to 4 dims is sparse in the pattern."""
    if not isinstance(func_name, CheckMethod):
        raise AssertionError(f"check_sparsity: func_name must be a CheckMethod, got {type(func_name).__name__}")
    return _FUNCTIONS[func_name.value](_as_matrix("check_sparsity", tensor)[0], n=n, m=m)
