"""Bad calls of a few public callables, drawn by a seed, on real Paddle and on Proa: tests/referee/bad_calls.py, small."""
import pathlib
import subprocess
import sys

import pytest

import proa as paddle

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/referee"))
ORACLE = ROOT / ".venv-oracle/bin/python"


@pytest.mark.skipif(not ORACLE.exists(), reason="needs real Paddle")
def test_type_and_category_agree(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "tests/referee/bad_calls.py"), "--sample", "30", "--seed", "1",
                           "--jobs", "2", "--least", "70", "--out", str(tmp_path)], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " calls of " in done.stdout


def refusal(call):
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value), str(caught.value)


X = paddle.ones([2, 3])
F, D, sparse = paddle.nn.functional, paddle.distribution, paddle.sparse


@pytest.mark.parametrize("call, kind, lead", [
    (lambda: paddle.add(X, 5), ValueError, "(InvalidArgument) add: "),
    (lambda: paddle.add(X, y=paddle.ones([4, 5])), ValueError, "(InvalidArgument) add: "),
    (lambda: paddle.subtract(X, paddle.ones([2, 3], "bool")), RuntimeError, "(NotFound) subtract: y is bool"),
    (lambda: bool(X), AssertionError, "bool: only a tensor of one element"),
    (lambda: int(X), AssertionError, "int: only a tensor of one element"),
    (lambda: float(X), AssertionError, "float: only a tensor of one element"),
    (lambda: range(X.astype("int64")), AssertionError, "index: only a tensor of one element"),
    (lambda: paddle.abs(paddle.ones([2], "bool")), RuntimeError, "(NotFound) abs: "),
    (lambda: paddle.sum(X, axis=7), ValueError, "(InvalidArgument) sum: "),
    (lambda: paddle.nn.functional.softmax(X, axis="k"), ValueError, "(InvalidArgument) softmax: "),
    (lambda: paddle.nn.functional.softmax(X, axis=True), ValueError, "(InvalidArgument) softmax: "),
    (lambda: paddle.nn.functional.softmax(X, axis=1j), ValueError, "(InvalidArgument) softmax: "),
    (lambda: paddle.argmax(X, keepdim="yes"), ValueError, "(InvalidArgument) argmax: "),
    (lambda: paddle.gather(X, paddle.to_tensor([9])), IndexError, "(OutOfRange) gather: "),
    (lambda: paddle.zeros([10 ** 13]), MemoryError, "(ResourceExhausted) "),
    (lambda: paddle.sparse.nn.functional.relu(X), NotImplementedError, "(Unimplemented) relu: "),
    (lambda: paddle.sparse.nn.functional.relu(5), ValueError, "(InvalidArgument) relu: "),
    (lambda: paddle.abs_(5), ValueError, "(InvalidArgument) abs: "),
    (lambda: paddle.tril_(), TypeError, ""),
    (lambda: paddle.is_empty(5), ValueError, "(InvalidArgument) is_empty: "),
    (lambda: X.multiply_(5), AttributeError, "'int' object has no attribute 'shape'"),
    (lambda: paddle.abs(), TypeError, "abs: argument x is missing"),
    (lambda: paddle.add(5), TypeError, "add: argument y is missing"),
    (lambda: paddle.add(5, X, no_such=1), TypeError, "add: "),
    (lambda: paddle.heaviside(5, X, no_such=1), TypeError, "heaviside: "),  # the first call of it with a keyword
    # the last operand's dtype selects the kernel: none of it, or one that the first operand does not fit
    (lambda: paddle.subtract(paddle.ones([2, 3], "bool"), X), ValueError, "(InvalidArgument) subtract: x is bool, but y is"),
    (lambda: paddle.kron(X, paddle.ones([2], "bool")), RuntimeError, "(NotFound) kron: y is bool"),
    (lambda: paddle.mv(X, paddle.ones([3], "bool")), RuntimeError, "(NotFound) mv: "),
    (lambda: paddle.mv(paddle.ones([2, 3], "bool"), X[0]), ValueError, "(InvalidArgument) mv: x is bool, but vec is float32"),
    (lambda: paddle.nn.Linear(3, 2)(paddle.ones([2, 3], "uint8")), ValueError, "(InvalidArgument) linear: x is uint8, but"),
    (lambda: len(paddle.ones([])), AssertionError, "a tensor with no axes has no length"),
    (lambda: paddle.gather(X, X[0]), ValueError, "(InvalidArgument) gather: index is float32"),
    (lambda: paddle.masked_select(X, X), ValueError, "(InvalidArgument) masked_select: mask is float32"),
    (lambda: paddle.randint(0, 4, [2], "float32"), RuntimeError, "(NotFound) randint: dtype is float32"),
    (lambda: paddle.clip(X, 2.0, 1.0), ValueError, "(InvalidArgument) clip: max is 1; expected min, 2, or more"),
    (lambda: paddle.clip(X, max=float("nan")), ValueError, "(InvalidArgument) clip: max is nan"),
    (lambda: paddle.full_like(X, X), ValueError, "(InvalidArgument) full_like: fill_value is supplied by a tensor of shape [2, 3]"),
    (lambda: paddle.slice(X, [0], [5], [1]), ValueError, "(InvalidArgument) slice: starts 5 is beyond ends 1"),
    (lambda: X.equal_all(paddle.ones([1, 2, 3])), ValueError, "(InvalidArgument) equal_all: y has more dims than x"),
    (lambda: paddle.reshape(X, b"ab"), ValueError, ""),
    (lambda: X.backward(retain_graph=1), ValueError, "(InvalidArgument) backward: retain_graph: expected a bool, got int"),
    (lambda: X.item(9, 9, 9), ValueError, "(InvalidArgument) item: expected 1 or 2 indices, got 3"),
    (lambda: paddle.to_tensor(["a"]), ValueError, "(InvalidArgument) to_tensor: the data holds texts"),
    (lambda: paddle.to_tensor(["a"], dtype="float32"), TypeError, "to_tensor: the data holds texts"),
    (lambda: paddle.to_tensor(object()), TypeError, "to_tensor: the data is no array of numbers"),
    (lambda: paddle.to_tensor(1.0, place=1.5), ValueError, "to_tensor: "),
    (lambda: paddle.broadcast_shape([2.0], [2]), TypeError, "broadcast_shape: the entries of a shape must be ints"),
    (lambda: paddle.seed(-1), TypeError, "seed: "),
    (lambda: paddle.lerp(X, X, 1j), ValueError, "(InvalidArgument) lerp: "),
    (lambda: paddle.tensordot(X, X, (1, 2)), IndexError, "tensordot: "),
    (lambda: paddle.argmax(keepdim="yes"), TypeError, "argmax: argument x is missing"),  # before the kind of keepdim
    # ops that take one axis, against those that reduce axes
    (lambda: paddle.index_select(X, paddle.to_tensor([0]), axis=7), IndexError, "(OutOfRange) index_select: axis is 7"),
    (lambda: paddle.cummax(X, axis=-7), IndexError, "(OutOfRange) cummax: axis is -7"),
    (lambda: paddle.trace(X, axis1=7), IndexError, "(OutOfRange) trace: axis1 is 7"),
])
def test_what_is_raised(call, kind, lead):
    got, text = refusal(call)
    assert got is kind and text.startswith(lead), (got, text)


IMAGE = paddle.ones([1, 2, 4, 4])


@pytest.mark.parametrize("call, kind, lead", [
    (lambda: F.conv2d(X, IMAGE), ValueError, "conv2d: x must have 4 dims, got shape [2, 3]"),
    (lambda: F.conv2d(X, IMAGE, stride="two"), ValueError, "conv2d: x must have 4 dims"),
    (lambda: F.conv2d(7, IMAGE), AttributeError, "'int' object has no attribute 'shape': conv2d: argument x"),
    (lambda: F.conv2d_transpose(IMAGE, X), ValueError, "conv2d_transpose: weight must have 4 dims"),
    (lambda: F.conv2d(IMAGE, X), ValueError, "(InvalidArgument) conv2d: weight must have 4 dims"),
    (lambda: paddle.nn.Conv1D(2, 2, 1)(X), ValueError, "Conv1D: x must have 3 dims"),
    (lambda: paddle.nn.Conv2D(2, 2, 1)(X), ValueError, "(InvalidArgument) conv2d: x must have 4 dims"),
    (lambda: F.max_pool1d(X, 2), ValueError, "max_pool1d: x must have 3 dims"),
    (lambda: F.max_pool2d(X, 2), ValueError, "(InvalidArgument) max_pool2d: x must have 4 dims"),
    (lambda: F.adaptive_avg_pool2d(X, 2), ValueError, "adaptive_avg_pool2d: x must have 4 dims"),
    (lambda: sparse.nn.functional.conv3d(X, X), ValueError, "conv3d: x must have 5 dims"),
    (lambda: sparse.nn.functional.conv3d(7, X), AttributeError, "'int' object has no attribute 'shape': conv3d: "),
    (lambda: sparse.nn.functional.max_pool3d(X, 2), AssertionError, "max_pool3d: x must be a COO Tensor"),
    (lambda: sparse.coalesce(X), NotImplementedError, "(Unimplemented) coalesce: "),
    (lambda: sparse.add("a", X), AttributeError, "'str' object has no attribute 'dtype': add: argument x"),
    (lambda: paddle.outer(7, X), AttributeError, "'int' object has no attribute 'reshape': outer: argument x"),
    (lambda: paddle.einsum(7, X), AttributeError, "'int' object has no attribute 'replace': einsum: argument equation"),
    (lambda: paddle.cummax(int), AttributeError, "type object 'int' has no attribute 'flatten': cummax: argument x"),
    (lambda: paddle.fft.fft([1.0]), TypeError, "fft: x must be a Tensor, got list"),
    (lambda: D.Laplace("a", 1.0), TypeError, "Laplace: loc must be a number or a Tensor, got str"),
    (lambda: D.Laplace(0.0, 1.0).log_prob([X]), AttributeError, "'list' object has no attribute 'dtype': Laplace: "),
    (lambda: D.Geometric(0.5).pmf(1.5), TypeError, "Geometric.pmf: k must be an int or a Tensor"),
    (lambda: D.Cauchy(0.0, 1.0).kl_divergence(X), TypeError, "Cauchy.kl_divergence: other must be a Cauchy"),
    (lambda: D.Beta(1.0, 2.0).kl_divergence(X), NotImplementedError, "Beta.kl_divergence: "),
    (lambda: D.Normal(0.0, 1.0).sample([1.5]), ValueError, "(InvalidArgument) Normal.sample: shape"),
    (lambda: D.Normal(0.0, 1.0).sample(3), TypeError, "Normal.sample: shape"),
    (lambda: paddle.fft.fft2(7), AttributeError, "'int' object has no attribute 'ndim': fft2: argument x"),
    (lambda: sparse.sparse_coo_tensor(X, X), TypeError, "sparse_coo_tensor: indices must be integers, got float32"),
    (lambda: sparse.pca_lowrank(X), ValueError, "pca_lowrank: x must be a sparse Tensor"),
    (lambda: paddle.vision.ops.read_file(7), ValueError, "(InvalidArgument) read_file: filename"),
    (lambda: X.hypot_(7), TypeError, "hypot: y must be a Tensor"),
    (lambda: paddle.gcd_(X.numpy(), X), ValueError, "gcd_: x takes the result and must be a Tensor, got ndarray"),
    (lambda: paddle.roll(X, 1, axis=["a"]), TypeError, "roll: an entry of argument axis: '>' not supported"),
    (lambda: paddle.roll(X, 1, axis=[0, 2]), ValueError, "roll: axis must be an int in [-2, 2), got [0, 2]"),
    (lambda: paddle.trapezoid(X, axis=2), IndexError, "trapezoid: axis must be an int in [-2, 2), got 2"),
    (lambda: paddle.to_tensor(1.0, dtype=X.numpy()), ValueError, "The truth value of an array"),
    (lambda: paddle.metric.Recall().update(X, X), ValueError, "Recall: labels must be [N] or [N, 1], got shape (2, 3)"),
    (lambda: paddle.Model(paddle.nn.Linear(3, 2), inputs=["a"]), AttributeError, "'str' object has no attribute 'shape': Model: "),
    (lambda: paddle.addmm(X, X.astype("float16"), paddle.ones([3, 3])), RuntimeError, "(NotFound) addmm: x is float16"),
])
def test_what_python_reads_first(call, kind, lead):
    got, text = refusal(call)
    assert got is kind and text.startswith(lead), (got, text)


@pytest.mark.parametrize("call, kind, lead", [
    (lambda: paddle.flatten(7), ValueError, "flatten: argument x must be of type Tensor"),
    (lambda: X.flatten(start_axis=7), ValueError, "flatten: start_axis must be an int in [-2, 2), got 7"),
    (lambda: paddle.addmm(X, 7, X), AttributeError, "'int' object has no attribute 'shape': addmm: argument x"),
    (lambda: paddle.addmm(X, X, X), ValueError, "addmm: x has shape [2, 3] and y [2, 3]; dims 1 and 0"),
    (lambda: paddle.bincount(X), TypeError, "bincount: x must be of dtype int32, int64"),
    (lambda: paddle.dot(X, X[0]), RuntimeError, "(PreconditionNotMet) dot: x and y must have the same shape"),
    (lambda: paddle.diagonal(X[0]), IndexError, "(OutOfRange) diagonal: x must have 2 dims or more"),
    (lambda: F.channel_shuffle(IMAGE, 0), ValueError, "channel_shuffle: groups must be above 0"),
    (lambda: F.grid_sample(IMAGE, IMAGE, "cubic"), ValueError, "grid_sample: mode must be 'bilinear' or 'nearest'"),
    (lambda: paddle.flatten(no_such=7), TypeError, "flatten: argument no_such is unknown"),  # before all rules
    (lambda: paddle.flatten(), TypeError, "flatten: argument x is missing"),
    (lambda: paddle.add_n([]), ValueError, "(InvalidArgument) add_n: inputs must have at least one entry"),
    (lambda: paddle.add_n(no_such=7), TypeError, ""),
    (lambda: paddle.mode(X, axis=None), ValueError, "(InvalidArgument) mode: argument axis: expected an int"),
    (lambda: paddle.squeeze(X, True), ValueError, "(InvalidArgument) "),
    (lambda: F.scaled_dot_product_attention(X, 7, X), IndexError, "scaled_dot_product_attention: query has shape [2, 3], and no"),
    (lambda: F.conv3d(X, X, data_format=X), AssertionError, "bool: only a tensor of one element"),  # compared with a text
    (lambda: F.conv3d(X, X, data_format=X.numpy()), ValueError, "The truth value of an array"),
    (lambda: paddle.nn.Conv2D(4, 4, 2, padding_mode=[]), TypeError, "__init__: argument padding_mode: unhashable"),
    (lambda: paddle.optimizer.lr.PolynomialDecay(0.1, "a"), TypeError, "__init__: argument decay_steps: '>' not"),
    (lambda: F.log_loss(X, paddle.ones([2, 3], "int8")), RuntimeError, "(NotFound) log_loss: label must be of dtype float32"),
    (lambda: F.embedding(paddle.ones([2]), X), NotImplementedError, "(Unimplemented) embedding: x must be of dtype int32"),
    (lambda: X.multiply_(X.numpy()), ValueError, "(InvalidArgument) multiply_: argument y: expected a Tensor"),
    # in place the operands' shapes are compared before anything else
    (lambda: X[0].add_(X), ValueError, "add_: x has shape [3], and x with y [2, 3]; in place the two must be equal"),
    (lambda: X[0].less_than_(X), ValueError, "less_than_: x has shape [3], and x with y [2, 3]"),
    (lambda: X.bitwise_and_(paddle.ones([4, 3])), ValueError, "(InvalidArgument) bitwise_and_: x has shape [2, 3], y [4, 3]"),
    (lambda: X.hypot_(paddle.ones([0, 3])), ValueError, "(InvalidArgument) add: y has shape [0, 3]"),
    (lambda: paddle.ones([0, 3]).hypot_(X), ValueError, "hypot_: x has shape [0, 3], and x with y [2, 3]"),
    (lambda: paddle.ones([2]).equal_(1.5), AttributeError, "'float' object has no attribute 'shape'"),
    (lambda: X.pow_(X), TypeError, "pow_: y must be a number, got Tensor; use pow"),
    (lambda: X.pow_("2"), TypeError, "pow_: argument y must be of type number, got str"),
    (lambda: paddle.addmm(X, paddle.ones([3, 3]), paddle.ones([3, 3])), ValueError, "addmm: input has shape [2, 3] and x [3, 3]"),
    (lambda: paddle.split(X, 2, axis=-7), AssertionError, "split: axis must be -2 or more, got -7"),
    (lambda: paddle.randn([2], dtype=b"f4"), ValueError, "standard_normal: dtype: expected a dtype"),
    (lambda: paddle.empty_like(X, dtype=[]), TypeError, "empty_like: argument dtype must be of type dtype, got list"),
    (lambda: paddle.masked_select(X, paddle.ones([4], "bool")), RuntimeError, "(PreconditionNotMet) masked_select: x has shape"),
    (lambda: paddle.cumprod(X), ValueError, "(InvalidArgument) cumprod: argument dim is missing"),
    (lambda: X.rows(7, no_such=7), SystemError, "(Fatal) Tensor.rows: the tensor is dense"),
    (lambda: paddle.empty("a"), AttributeError, "empty: argument shape must be of type list or tuple"),
])
def test_what_paddle_asks_first(call, kind, lead):
    got, text = refusal(call)
    assert got is kind and text.startswith(lead), (got, text)


@pytest.mark.parametrize("call, kind, lead", [
    (lambda: paddle.nn.Linear(3, 1.5), ValueError, "(InvalidArgument) the shape of a parameter must be ints"),
    (lambda: paddle.nn.Linear(0, 3), AssertionError, "every dimension of a parameter must be larger than 0"),
    (lambda: paddle.nn.Layer(name_scope=7), TypeError, "Layer: name_scope must be a string"),
    (lambda: F.linear(X, 7), ValueError, "(InvalidArgument) linear: weight and bias must be Tensors"),
    (lambda: paddle.linalg.multi_dot(X), ValueError, "(InvalidArgument) multi_dot: x must be a list or tuple"),
    (lambda: paddle.broadcast_tensors([X, paddle.ones([7])]), ValueError, "(InvalidArgument) broadcast_tensors: "),
    (lambda: F.log_loss(X, X), ValueError, "(InvalidArgument) log_loss: input and label must be [N, 1]"),
    (lambda: F.leaky_relu_(7), ValueError, "(InvalidArgument) leaky_relu_: x must be a Tensor"),
    (lambda: D.Normal(0.0, 1.0).sample([2], seed="a"), ValueError, "(InvalidArgument) Normal.sample: seed must be an int"),
    (lambda: D.Normal(0.0, 1.0).kl_divergence(X), ValueError, "(InvalidArgument) kl_divergence: argument other"),
    (lambda: sparse.nn.Conv3D(4, 4, 2, groups=2), AssertionError, "Conv3D: groups must be 1"),
])
def test_what_layers_and_compositions_refuse(call, kind, lead):
    got, text = refusal(call)
    assert got is kind and text.startswith(lead), (got, text)


@pytest.mark.parametrize("call", [lambda: X + [], lambda: [] + X, lambda: None - X, lambda: X > None, lambda: X @ {}, lambda: X ** "a"])
def test_operators_refuse_builtin_values(call):
    got, text = refusal(call)
    assert got is ValueError and text.startswith("(InvalidArgument) "), (got, text)


def test_operators_leave_classes_their_own():
    class Right:
        def __radd__(self, other):
            return "radd"

        def __lt__(self, other):
            return "lt"
    assert X + Right() == "radd" and (X > Right()) == "lt"
    assert refusal(lambda: X - Right())[0] is ValueError and (X == []) is False


def test_attributes_of_programs_are_no_variables():
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [2, 3])
            for given, kind in ((x, ValueError), ([x], ValueError), ("a", TypeError)):
                got, text = refusal(lambda: paddle.static.nn.sequence_softmax(x, use_cudnn=given))
                assert got is kind and text.startswith("(InvalidArgument) " if kind is ValueError else "sequence_softmax: ")
    finally:
        paddle.disable_static()


def test_what_paddle_takes():
    assert list(range(paddle.to_tensor([3.7]))) == [0, 1, 2]
    assert paddle.mean(X, keepdim=None).shape == [] and paddle.stack([X, X], axis=None).shape == [2, 2, 3]
    small = paddle.topk(paddle.to_tensor([1.0, 3.0, 2.0]), 1, largest=None)[0]
    assert small.item() == 1.0  # None is False
    mask = paddle.to_tensor([0, 2, 0], dtype="int8")
    assert paddle.masked_fill(paddle.ones([3]), mask, 7.0).tolist() == [1.0, 7.0, 1.0]
    assert paddle.std(X, unbiased=[]).item() == 0.0
    assert paddle.combinations(paddle.ones([1]), 97).shape == [0, 97]
    assert X.equal(1).all() and not X.equal(2.5).any() and paddle.equal(y=True, x=X).all()
    assert paddle.equal(paddle.to_tensor([1, 2]), 1.5).tolist() == [True, False]  # in x's dtype
    assert X.cast(None).dtype == paddle.float64
    assert paddle.index_fill(X, paddle.to_tensor([0]), 0, [[7]]).tolist() == [[7.0] * 3, [1.0] * 3]
    assert paddle.polar(X.astype("float16"), X).dtype == paddle.complex64
    assert X.cdist(paddle.to_tensor([[1, 1, 2]])).tolist() == [[1.0], [1.0]]
    assert paddle.kron(X, paddle.to_tensor([1 + 2j], dtype="complex64")).tolist() == [[1 + 2j] * 3] * 2
    values = paddle.to_tensor([1.5, 3.0, 5.5])
    for dtype in ("int32", "int64", "float64"):
        assert paddle.bucketize(values, paddle.to_tensor([1, 3, 5], dtype=dtype)).tolist() == [1, 1, 3]
    assert paddle.incubate.segment_sum(X, paddle.to_tensor([[0], [0]])).tolist() == [[2.0] * 3]  # a column of ids
    assert D.Laplace(0.0, 1.0).cdf(paddle.to_tensor([False])).tolist() == [0.5]
    assert paddle.unflatten(paddle.ones([6]), 0, paddle.to_tensor([2.0, 3.5])).shape == [2, 3]
    far = paddle.ones([2]).cauchy_(paddle.to_tensor([1e6, -1e6]), 0.001)
    assert far[0] > 9e5 and far[1] < -9e5


def test_constructor():
    import numpy as np
    place = paddle.CPUPlace()
    t = paddle.Tensor(value=np.arange(3.0), place=place, persistable=True, zero_copy=False, name="named", stop_gradient=False)
    assert t.tolist() == [0.0, 1.0, 2.0] and t.persistable and t.name == "named" and not t.stop_gradient
    assert paddle.Tensor(np.ones(2), place, "other").name == "other"
    assert paddle.Tensor(X, persistable=True).shape == [2, 3] and not X.persistable
    assert paddle.Tensor(dims=[2, 5], dtype="int64", name="empty").shape == [2, 5]


@pytest.mark.parametrize("args, given, kind, lead", [
    ((X,), {"no_such": 1}, RuntimeError, "(PreconditionNotMet) Tensor: the arguments are value, place"),
    ((X,) * 6, {}, ValueError, "(InvalidArgument) Tensor: expected at most 5"),
    ((X,) * 7, {}, SystemError, "(Fatal) Tensor: expected at most 5"),
    ((X, X), {}, ValueError, "(InvalidArgument) Tensor: place must be a place such as CPUPlace(), got Tensor"),
    ((), {"place": paddle.CPUPlace()}, ValueError, "(InvalidArgument) Tensor: value is missing"),
    ((X,), {"name": 3}, ValueError, "(InvalidArgument) Tensor: name must be a str"),
])
def test_constructor_refuses(args, given, kind, lead):
    got, text = refusal(lambda: paddle.Tensor(*args, **given))
    assert got is kind and text.startswith(lead), (got, text)


@pytest.mark.parametrize("call, kind, lead", [
    (lambda x: paddle.expand(x, [0, 0]), AssertionError, "expand: every entry of shape must be > 0 or -1, got [0, 0]"),
    (lambda x: paddle.ones([-7, 2]), ValueError, "ones: every entry of shape must be >= 0"),
    (lambda x: paddle.put_along_axis(x, paddle.zeros([2], "int64"), x, 0), ValueError, "put_along_axis: arr and indices must"),
    (lambda x: paddle.lcm(x, paddle.ones([4, 5])), ValueError, "(InvalidArgument) lcm: x has shape [2, 3], y [4, 5]"),
    (lambda x: paddle.scatter(x, paddle.zeros([2], "int64"), x, overwrite=1.5), TypeError, "scatter: argument overwrite must be of type bool"),
    (lambda x: paddle.multiplex(x, paddle.zeros([2], "int64")), TypeError, "multiplex: argument inputs must be of type list"),
    (lambda x: paddle.triu(x, None), TypeError, "triu: argument diagonal"),
    (lambda x: paddle.to_tensor(None), RuntimeError, "to_tensor: expected numbers"),
    (lambda x: paddle.cumprod(x), TypeError, "cumprod: argument dim is missing"),
    # what Paddle's run refuses
    (lambda x: paddle.erf(x.astype("int64")), NotImplementedError, "(Unimplemented) erf: x is int64, of which Paddle's CPU has no"),
    (lambda x: F.sequence_mask(x.astype("uint8")), NotImplementedError, "(Unimplemented) sequence_mask: x is uint8"),
    (lambda x: paddle.static.nn.sequence_reverse(x), RuntimeError, "(NotFound) sequence_reverse: x carries no sequences"),
    (lambda x: paddle.reshape(x, x), RuntimeError, "reshape: shape must be a list of ints, or a tensor of dtype int32 or int64"),
    (lambda x: paddle.split(x, [x, x]), RuntimeError, "split: num_or_sections must be a list of ints"),
    (lambda x: paddle.hypot(x, x > 0), NotImplementedError, "(Unimplemented) hypot: y is bool, of which Paddle's CPU has no"),
    (lambda x: F.embedding(paddle.ones([0], "int64"), paddle.ones([2, 1], "int64")), NotImplementedError,
     "(Unimplemented) embedding: weight is int64"),
    (lambda x: F.batch_norm(x, x, x), ValueError, "batch_norm: running_mean must have 1 dims, got shape [2, 3]"),
    (lambda x: paddle.index_fill_(x, x.astype("complex64"), 0, 1.0), ValueError, "(InvalidArgument) index_fill: index must be int32"),
    (lambda x: paddle.index_put(x, x, x[0]), ValueError, "(InvalidArgument) index_put: indices must be integer tensors or bool masks"),
    (lambda x: paddle.nanmedian(paddle.ones([0, 3])), ValueError, "(InvalidArgument) nanmedian: x must have at least one element"),
    (lambda x: paddle.static.nn.data_norm(x.astype("bfloat16")), ValueError, "(InvalidArgument) data_norm: input must be float32"),
    (lambda x: paddle.static.nn.sequence_expand(x, x > 0), ValueError, "(InvalidArgument) sequence_expand: y carries no sequences"),
    (lambda x: paddle.gcd_(x.astype("int8"), x), ValueError, "gcd_: Paddle has it in eager calls alone"),
    (lambda x: paddle.view_as(x, 5), AssertionError, "view_as: Paddle has it in eager calls alone, and in a program this call fails: "),
])
def test_what_programs_refuse(call, kind, lead):
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            got, text = refusal(lambda: call(paddle.static.data("x", [2, 3])))
    finally:
        paddle.disable_static()
    assert got is kind and text.startswith(lead), (got, text)


def test_what_programs_take():
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [2, 3])
            fetched = [paddle.concat(x), paddle.chunk(x, True)[0], paddle.multigammaln(x + 3, paddle.to_tensor([2]))]
            got = paddle.static.Executor().run(main, feed={"x": X.numpy()}, fetch_list=fetched)
    finally:
        paddle.disable_static()
    assert got[0].tolist() == got[1].tolist() == X.tolist()
    assert abs(got[2] - paddle.multigammaln(X + 3, 2).numpy()).max() < 1e-5


def test_what_distributions_take():
    halves = D.Bernoulli([0.5, 0.25])
    assert halves.cdf(paddle.to_tensor(0.0)).tolist() == [0.5, 0.75] and halves.probs.dtype == paddle.float32
    assert D.Laplace(1.0, 1.0).icdf(0.5).item() == 1.0
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.autograd.jacobian(x * 2.0, x)[:].tolist() == [[0.0, 0.0], [0.0, 0.0]]  # x has stop_gradient set


def test_functions_that_ask_are_functions():
    import inspect
    import pickle
    import types
    assert isinstance(paddle.lerp, types.FunctionType) and pickle.loads(pickle.dumps(paddle.lerp)) is paddle.lerp
    assert str(inspect.signature(paddle.lerp)) == "(x, y, weight, name=None)" and paddle.lerp.__doc__
    assert paddle.lerp(X, X, 0.5).shape == X.lerp(X, 0.5).shape == [2, 3]


def test_all_rules_can_be_read():
    from proa import _asks, _core
    for name in ("paddle", "paddle.nn.functional", "paddle.linalg", "Tensor"):
        for function in _core.api(name).values():
            for word in (function.__asks__ or "").split():
                assert _asks._read(word)
    with pytest.raises(SystemError, match="cannot read"):
        _asks.answer("x??", "f", {"x": 7}, ValueError())


def test_reasons_of_differences():
    from bad_calls_reasons import LIMIT, MISTAKE, UNDEFINED, explanation

    def reason(row):
        return explanation(row)[1]

    row = ["paddle.acos", "dynamic", "dtype", "x", "[]", "differ"]
    lacks = "(NotFound) The kernel with key (CPU, Undefined(AnyLayout), float16) of kernel `acos` is not registered"
    assert "CPU lacks" in reason([*row, "RuntimeError|NotFound", "ok", lacks, "", ""])
    assert "by accident" in reason([*row, "AttributeError|", "TypeError|", "'int' object has no attribute 'dtype'", "", ""])
    assert reason([*row, "AttributeError|", "ok", "'int' object has no attribute 'dtype'", "", ""]) is None
    built = ["paddle.acos", "static", "rank", "x", "[]", "differ"]
    run = "ValueError|InvalidArgument"
    assert "when it is run" in reason([*built, run, "TypeError|", "", "", run])
    assert reason([*built, "ok", run, "", "", "ok"]) is None and reason([*row, "ValueError|", "TypeError|", "a", "b", ""]) is None
    pool = ["paddle.nn.functional.max_pool1d", "dynamic", "range", "padding", "[]", "differ", "ok", run, ""]
    assert "begin inside x" in reason([*pool, "(InvalidArgument) max_pool1d: padding must not be negative, got -1", ""])
    value = ["paddle.distribution.Normal.log_prob", "dynamic", "type", "value", "[2]", "differ", "AttributeError|", "ok"]
    assert "takes a number" in reason([*value, "'int' object has no attribute 'dtype'", "", ""])
    assert reason([*value, "'list' object has no attribute 'dtype'", "", ""]) is None
    kept = ["paddle.static.InputSpec", "static", "type", "dtype", "[]", "differ", "ok", "TypeError|", "", "", ""]
    assert "keeps the argument" in reason(kept) and reason([*kept[:3], "shape", *kept[4:]]) is None
    assert explanation([*row, "RuntimeError|NotFound", "ok", lacks, "", ""])[0] == LIMIT and explanation(kept)[0] == MISTAKE
    strided = ["paddle.as_strided", "dynamic", "rank", "stride", "[]", "differ", "ok", run, "", "", ""]
    assert explanation(strided)[0] == UNDEFINED and explanation([*kept[:3], "shape", *kept[4:]]) == (MISTAKE, None)


def test_programs_check_types_in_python():
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [2, 3], "bool")
            assert refusal(lambda: paddle.abs(x))[0] is TypeError
            assert refusal(lambda: paddle.add(x, 5))[0] is TypeError
            y = paddle.static.data("y", [2, 3], "float32")
            for call in (lambda: paddle.masked_select(y, y), lambda: paddle.gather(y, y),
                         lambda: paddle.less_than(x.astype("complex64"), y), lambda: paddle.randint(0, 4, [2], "float32")):
                assert refusal(call)[0] is TypeError
            got, text = refusal(lambda: paddle.subtract(x, y))  # whose kernel the run looks for
            assert got is NotImplementedError and text.startswith("(Unimplemented) subtract: x is bool, of which Paddle's CPU has no")
            lod, load = paddle.static.nn, paddle.static.load_inference_model
            for call, kind, lead in ((lambda: lod.conv2d(y, 2, y), ValueError, "conv2d: input must have 4 dims"),
                                     (lambda: lod.sequence_slice(y, y, y), TypeError, "sequence_slice: offset must be"),
                                     (lambda: lod.sequence_pool(y, y), AttributeError, "'Tensor' object has no attribute"),
                                     (lambda: lod.sequence_pool(y, "max"), ValueError, "(InvalidArgument) sequence_pool"),
                                     (lambda: load(y, None), ValueError, "load_inference_model: path_prefix must be"),
                                     (lambda: paddle.rank(7), TypeError, "rank: input must be a Tensor")):
                got, text = refusal(call)
                assert got is kind and text.startswith(lead), (got, text)
            # what the run alone knows is no attribute
            kind, text = refusal(lambda: F.leaky_relu(y, y))
            assert kind is ValueError and text.startswith("(InvalidArgument) leaky_relu: "), (kind, text)
    finally:
        paddle.disable_static()
