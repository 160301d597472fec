"""Assignment of a part of a tensor to another part of it: the value is what it was before."""
import numpy as np
import pytest

import proa as paddle


@pytest.mark.parametrize("shape", [(10,), (3_000_000,), (300_000, 10)])
def test_parts_that_overlap(shape):
    a = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    x = paddle.to_tensor(a)
    x[1:] = x[:-1]
    want = a.copy()
    want[1:] = a[:-1]
    assert np.array_equal(x.numpy(), want)
