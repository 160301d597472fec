"""Errors in ulp of the vector formulas of elementwise ops, at every CPU level, and the C library's special cases."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

BUILD = pathlib.Path(os.environ.get("PROA_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 89.0, -89.0, 1e7, -1e7, 3e38, -3e38, 1e-45, -1e-45, INF, -INF, NAN]
# Op, NumPy's function, the largest error in ulp, and the ends of positive arguments.
FLOAT = [("sinh", np.sinh, 3, 1e-40, 95), ("cosh", np.cosh, 3, 1e-40, 95), ("tan", np.tan, 4, 1e-40, 1e7),
         ("atan", np.arctan, 2, 1e-40, 3e38), ("asin", np.arcsin, 3, 1e-40, 1), ("acos", np.arccos, 2, 1e-40, 1),
         ("log2", np.log2, 1, 1e-44, 3e38), ("log10", np.log10, 1, 1e-44, 3e38)]
DOUBLE = [("exp", np.exp, 1, 1e-300, 745), ("log", np.log, 1, 1e-320, 1e308), ("tanh", np.tanh, 3, 1e-310, 30),
          ("sin", np.sin, 1, 1e-310, 1e7), ("cos", np.cos, 1, 1e-310, 1e7), ("tan", np.tan, 3, 1e-310, 1e7)]


def spread(least, most, n, dtype):
    """Random numbers of either sign, even in their logarithms and near 1."""
    rng = np.random.RandomState(n)
    wide = np.exp(rng.uniform(np.log(least), np.log(most), n)) * rng.choice([-1, 1], n)
    return np.concatenate([wide, rng.uniform(-3, 3, n), SPECIAL]).astype(dtype)


def errors(got, expected):
    """The distance from `expected`, of a wider dtype, in ulp; infinite where one of them is NaN, or signs of zeros differ."""
    kind = got.dtype.type
    with np.errstate(all="ignore"):
        rounded = expected.astype(kind)
        unit = np.maximum(np.spacing(np.abs(rounded)), np.finfo(kind).smallest_subnormal)
        far = np.abs(got.astype(expected.dtype) - expected) / unit.astype(expected.dtype)
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | np.isnan(got) & np.isnan(rounded)
    return np.where(same, 0, np.where(np.isfinite(got) & np.isfinite(rounded) & (got != rounded), far, INF))


def check(name, got, expected, limit, *operands):
    worst = errors(got, expected)
    k = int(worst.argmax())
    assert worst[k] <= limit, f"{name}{tuple(x[k] for x in operands)}: {got[k]}, not {expected[k]}: {worst[k]} ulp"


def examine():
    """Asserts that every op is as accurate as its table says, in this process."""
    from scipy import special

    import proa as paddle

    def run(name, *operands):
        return getattr(paddle, name)(*map(paddle.to_tensor, operands)).numpy()

    np.seterr(all="ignore")
    for cases, dtype, wider in (FLOAT, "float32", "float64"), (DOUBLE, "float64", "longdouble"):
        for name, function, limit, least, most in cases:
            x = spread(least, most, 30000, dtype)
            check(name, run(name, x), function(x.astype(wider)), limit, x)
    x = np.concatenate([spread(1e-40, 1, 30000, "float32"), 1 - spread(1e-7, 0.1, 3000, "float32") ** 2])
    check("erfinv", run("erfinv", x), np.copysign(special.erfinv(x.astype("float64")), x), 4, x)
    x = spread(1e-44, 1e36, 30000, "float32")
    check("lgamma", run("lgamma", x), special.gammaln(np.where(x == -INF, INF, x.astype("float64"))), 2, x)
    y, x = (a.ravel() for a in np.meshgrid(np.float32(SPECIAL), np.float32(SPECIAL)))
    y, x = (np.concatenate([a, spread(1e-44, 3e38, n, "float32")]) for a, n in ((y, 30000), (x, 30000)))
    x = np.concatenate([x[:-10000], np.random.RandomState(0).permutation(x[-10000:])])
    check("atan2", run("atan2", y, x), np.arctan2(y.astype("float64"), x.astype("float64")), 2, y, x)
    expected = np.fmod(y, x)
    expected = np.where((expected != 0) & ((expected < 0) != (x < 0)), expected + x, expected)
    check("remainder", run("remainder", y, x), expected, 0, y, x)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_accuracy(level):
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False,
                          env={**os.environ, "FLAGS_cpu_level": str(level), "PYTHONPATH": str(BUILD / "python")})
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    examine()
