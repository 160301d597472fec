"""paddle.linalg: re-exports the linear algebra functions of paddle.tensor."""
from .tensor import *
from . import tensor as _tensor
from . import _core

globals().update(_core.api("paddle.linalg"))
inv = getattr(_tensor, "inverse", None)

__all__ = ["cholesky", "norm", "cond", "cov", "corrcoef", "inv", "eig", "eigvals", "multi_dot", "matrix_rank", "svd",
           "qr", "householder_product", "pca_lowrank", "lu", "lu_unpack", "matrix_power", "det", "slogdet", "eigh",
           "eigvalsh", "pinv", "solve", "cholesky_solve", "triangular_solve", "lstsq"]
__all__ = [n for n in __all__ if globals().get(n) is not None]
