"""Bad calls of one Paddle: refusals.py MODULE prints {call: "ok", or "Type|Category" of what it raises} as JSON. Operands of all pairs
of dtypes; functions in the mode in which Paddle lacks them; lists of ints as tensors; shapes of too many dims; values of other kinds,
and those that look wrong and are taken."""
import importlib
import itertools
import json
import re
import sys

import numpy

paddle = importlib.import_module(sys.argv[1])
F = paddle.nn.functional

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
BINARY = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "mod", "floor_mod", "pow", "maximum", "minimum", "fmax",
          "fmin", "atan2", "heaviside", "kron", "isclose", "allclose", "equal_all", "equal", "not_equal", "less_than", "less_equal",
          "greater_than", "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
          "nextafter", "complex", "gcd", "lcm", "hypot", "add_", "subtract_", "multiply_", "divide_", "floor_divide_", "remainder_",
          "logical_and_", "equal_", "bitwise_or_"]
OTHERS = {
    "matmul": (paddle.matmul, [3, 3], [3, 3]), "mm": (paddle.mm, [3, 3], [3, 3]), "inner": (paddle.inner, [3, 3], [3, 3]),
    "outer": (paddle.outer, [3], [3]), "bmm": (paddle.bmm, [2, 3, 3], [2, 3, 3]), "mv": (paddle.mv, [3, 3], [3]),
    "dot": (paddle.dot, [3], [3]), "dist": (paddle.dist, [3], [3]), "cross": (paddle.cross, [2, 3], [2, 3]),
    "linear": (F.linear, [2, 3], [3, 3]), "conv1d": (F.conv1d, [1, 4, 6], [4, 4, 2]), "conv2d": (F.conv2d, [1, 4, 6, 6], [4, 4, 2, 2]),
    "conv3d": (F.conv3d, [1, 4, 6, 6, 6], [4, 4, 2, 2, 2]), "conv1d_transpose": (F.conv1d_transpose, [1, 4, 6], [4, 4, 2]),
    "conv2d_transpose": (F.conv2d_transpose, [1, 4, 6, 6], [4, 4, 2, 2]),
    "layer_norm": (lambda x, y: F.layer_norm(x, 4, weight=y, bias=y), [2, 4], [4]),
    "l1_loss": (F.l1_loss, [2, 3], [2, 3]), "smooth_l1_loss": (F.smooth_l1_loss, [2, 3], [2, 3]), "kl_div": (F.kl_div, [2, 3], [2, 3]),
    "binary_cross_entropy": (F.binary_cross_entropy, [2, 3], [2, 3]),
    "with_logits": (F.binary_cross_entropy_with_logits, [2, 3], [2, 3]),
    "where": (lambda x, y: paddle.where(paddle.ones([2, 3], "bool"), x, y), [2, 3], [2, 3]),
    "index_add": (lambda x, y: paddle.index_add(x, paddle.to_tensor([0, 1]), 0, y), [2, 3], [2, 3]),
    "scatter_nd_add": (lambda x, y: paddle.scatter_nd_add(x, paddle.to_tensor([[1]]), y), [3, 3], [1, 3]),
    "put_along_axis": (lambda x, y: paddle.put_along_axis(x, paddle.to_tensor([[0, 1, 0]]), y, 0), [2, 3], [1, 3]),
}
INTS = {name: lambda v, name=name: getattr(paddle, name)(paddle.ones([1, 2]), v)
        for name in ("expand", "broadcast_to", "reshape", "squeeze", "sum", "mean", "max", "min", "prod", "count_nonzero", "nansum",
                     "nanmean", "std", "var", "roll", "crop")}
INTS.update(zeros=paddle.zeros, ones=paddle.ones, full=lambda v: paddle.full(v, 1.0),
            strides=lambda v: paddle.strided_slice(paddle.ones([3]), [0], [0], [1], v),
            starts=lambda v: paddle.strided_slice(paddle.ones([3]), [0], v, [1], [1]))
LONG = [1] * 11
SHAPES = {"reshape": lambda: paddle.reshape(paddle.ones([1]), LONG), "ones": lambda: paddle.ones(LONG), "randn": lambda: paddle.randn(LONG),
          "uniform": lambda: paddle.uniform(LONG), "as_strided": lambda: paddle.as_strided(paddle.ones([1]), LONG, LONG),
          "transpose": lambda: paddle.transpose(paddle.ones([1]), LONG), "expand": lambda: paddle.expand(paddle.ones([1]), LONG),
          "Laplace": lambda: paddle.distribution.Laplace(0.0, 1.0).sample(LONG),
          "Bernoulli": lambda: paddle.distribution.Bernoulli(0.5).sample(LONG),
          "Cauchy": lambda: paddle.distribution.Cauchy(0.0, 1.0).sample(LONG)}
IN_PROGRAMS = {
    "moveaxis": lambda x: paddle.moveaxis(x, x, [0, 1]), "destination": lambda x: paddle.moveaxis(x, [0, 1], x),
    "set_rng_state": lambda x: paddle.set_rng_state(x), "stack": lambda x: paddle.stack([1, 2]), "text": lambda x: paddle.stack("a"),
    "meshgrid": lambda x: paddle.meshgrid(x, None), "linear": lambda x: F.linear(1.5, x), "arange": lambda x: paddle.arange(end=1 + 2j),
    "reverse bools": lambda x: paddle.static.nn.sequence_reverse(x > 0),
    "as_strided": lambda x: paddle.as_strided(x, [2, 2], [1]), "cauchy_": lambda x: paddle.cauchy_(x, loc="a"),
    "geometric_": lambda x: paddle.geometric_(x, {}), "normal_": lambda x: paddle.normal_(x, mean=[]), "tolist": lambda x: paddle.tolist(x),
    "list": lambda x: paddle.tolist([x]), "unfold": lambda x: paddle.unfold(x, 9, 2, 1), "size": lambda x: paddle.unfold(x, 0, -2, 1),
    "view": lambda x: paddle.view(x, "no such"), "view_as": lambda x: paddle.view_as(x, 5), "grad": lambda x: paddle.grad(x, 7),
    "gcd_": lambda x: paddle.gcd_(x, x), "gcd_ of a text": lambda x: paddle.gcd_("a", x),
    "pow_ of a list": lambda x: paddle.pow_([], x), "pow_ to a text": lambda x: paddle.pow_(x, "a"),
    "logical_and_ of None": lambda x: paddle.logical_and_(x, None), "logical_xor of None": lambda x: paddle.logical_xor(x, None),
    "empty_like of a dtype": lambda x: paddle.empty_like(x, dtype=x), "logaddexp": lambda x: paddle.logaddexp(x, "a"),
    "minus a text": lambda x: x - "a",
    "accuracy": lambda x: paddle.static.accuracy(x, paddle.cast(x, "int64")[:, :1], total=[x]),
    "sequence_concat": lambda x: paddle.static.nn.sequence_concat([x, x > 0]),
    "index_put accumulate": lambda x: paddle.index_put(x, x, x, accumulate="a"),
    "sparse_attention": lambda x: F.sparse_attention(x, x, x, paddle.cast(x, "int32"), paddle.cast(x, "int32")),
    "pow of a dict": lambda x: paddle.pow({}, x),
    "topk of a list": lambda x: paddle.topk([], 1),
    "take of a list": lambda x: paddle.take(["a"], paddle.cast(x, "int64")),
    "logaddexp of bytes": lambda x: paddle.logaddexp(x, paddle.cast(x, "uint8")),
    "nan_to_num of bytes": lambda x: paddle.nan_to_num(paddle.cast(x, "uint8")),
    "randperm of -1": lambda x: paddle.randperm(-1), "rot90 of a dict": lambda x: paddle.rot90(x, axes={}),
    "strided_slice by floats": lambda x: paddle.strided_slice(x, [0], [0], [1], x),
    "full of an array": lambda x: paddle.full([2], 1.0, dtype=ARRAY),
    "slice from a number": lambda x: paddle.slice(x, [0], 1.5, [1]), "stack along 97": lambda x: paddle.stack(x, axis=97),
    "matmul of ints": lambda x: paddle.matmul(paddle.cast(x, "int64"), x), "tile by -97": lambda x: paddle.tile(x, [-97, -97]),
    "diagonal of an axis": lambda x: paddle.diagonal(x, axis2=97), "diagonal of a variable": lambda x: paddle.diagonal(x, axis2=x),
    "full of floats": lambda x: paddle.full(x, 1.0), "rand of floats": lambda x: paddle.rand(x),
    "nll_loss of floats": lambda x: F.nll_loss(x, x[:, 0]),
    "solve by complex numbers": lambda x: paddle.linalg.solve(x, paddle.cast(x, "complex64")),
    "multi_margin_loss by bytes": lambda x: F.multi_margin_loss(x, paddle.cast(x[:, 0], "int64"), weight=paddle.cast(x, "int8")),
    "multi_margin_loss by a list": lambda x: F.multi_margin_loss(x, paddle.cast(x[:, 0], "int64"), weight=[]),
    "gcd_ of two shapes": lambda x: paddle.gcd_(x, paddle.ones([4, 5])),
    "index_fill by a matrix": lambda x: paddle.index_fill(x, x[0], 0, x),
    "embedding of floats": lambda x: F.embedding(x, paddle.cast(x, "int64")),
    "embedding of no rows": lambda x: F.embedding(paddle.cast(x, "int64"), paddle.ones([0, 2], "int64"))}
EAGER = {"grad": lambda x: paddle.incubate.autograd.grad(x, 7), "forward_grad": lambda x: paddle.incubate.autograd.forward_grad(x, "a")}

ONES_IN_PLACE = ["abs_", "acos_", "atan_", "cos_", "erf_", "expm1_", "log10_", "log1p_", "log2_", "neg_", "sin_", "tan_", "trunc_"]
OF_ANYTHING = {"neg_ of a bool": lambda: paddle.neg_(True), "neg_ of a text": lambda: paddle.neg_("a"),
               "einsum of bytes": lambda: paddle.einsum(b"i"), "view of None": lambda: paddle.view(None, paddle.ones([2])),
               "view as a dict": lambda: paddle.view(paddle.ones([2]), {}), "arange to a complex": lambda: paddle.arange(end=1 + 2j),
               "is_same_shape of None": lambda: paddle.ones([2]).is_same_shape(None, 7),
               "reconstruct_from_ of None": lambda: paddle.ones([2]).reconstruct_from_(None, 7)}
ARRAY = numpy.ones([2, 3], "float32")


def ones(*shape):
    return paddle.ones(list(shape))


def layer():
    return paddle.nn.Linear(3, 3)


OF_ANYTHING.update({
    "gcd_ of an array": lambda: paddle.gcd_(ARRAY, ones(2, 3)), "logical_or_ of an array": lambda: paddle.logical_or_(ARRAY, ones(2, 3)),
    "hypot_ of an array": lambda: paddle.hypot_(ARRAY, ones(2, 3)), "cummin of an array": lambda: paddle.cummin(ARRAY),
    "square_ of a text": lambda: paddle.square_("a"), "trapezoid of an axis": lambda: paddle.trapezoid(ones(2, 3), axis=7),
    "cumulative_trapezoid of an axis": lambda: paddle.cumulative_trapezoid(ones(2, 3), axis=97),
    "cumulative_trapezoid of an array": lambda: paddle.cumulative_trapezoid(ones(2, 3), axis=ARRAY),
    "roll of texts": lambda: paddle.roll(ones(2, 3), 1, axis=["a"]), "roll of an axis": lambda: paddle.roll(ones(2, 3), 1, axis=[9]),
    "tensordot of a tensor": lambda: paddle.tensordot(ones(2, 3), ones(2, 3), axes=[ones(2, 3)]),
    "where of a text": lambda: paddle.where(ones(2) > 0, x="a"), "set_grad_enabled of a tensor": lambda: paddle.set_grad_enabled(ones(2)),
    "cov of an array": lambda: paddle.linalg.cov(ones(2, 3), ddof=ARRAY),
    "broadcast_shape of a number": lambda: paddle.broadcast_shape(ones(2, 1).astype("int64"), ones().astype("int64")),
    "psroi_pool of a text": lambda: paddle.vision.ops.psroi_pool(ones(2, 3), ones(2, 3), ones(2, 3), "a text"),
    "dtype of an array": lambda: paddle.to_tensor(1.0, dtype=ARRAY), "dtype of a tensor": lambda: paddle.to_tensor(1.0, dtype=ones(2)),
    "affine_grid of bytes": lambda: F.affine_grid(ones(2, 3).astype("int8"), ones(2, 3)),
    "sparse_coo_tensor at a place": lambda: paddle.sparse.sparse_coo_tensor(ones(2, 3), ones(2, 3), place=7),
    "sparse_csr_tensor at a place": lambda: paddle.sparse.sparse_csr_tensor(ones(2), ones(2), ones(2), [2, 2], place=7),
    "ctc_loss of a text": lambda: F.ctc_loss(ones(2, 1, 3), paddle.ones([1, 1], "int32"), paddle.full([1], 2, "int64"),
                                             paddle.ones([1], "int64"), reduction="a"),
    "nll_loss of complex numbers": lambda: F.nll_loss(ones(2, 3), ones(2, 3).astype("complex64")),
    "multi_margin_loss to a text": lambda: F.multi_margin_loss(ones(2, 3), paddle.ones([2], "int64"), p="a"),
    "increment of many": lambda: paddle.increment(ones(2, 3).astype("bfloat16")),
    "increment of float32": lambda: paddle.increment(ones(2, 3)),
    "addmm of a float16 y": lambda: paddle.addmm(ones(2, 3), ones(2, 3), ones(3, 3).astype("float16")),
    "addmm of a float16 x": lambda: paddle.addmm(ones(2, 3), ones(2, 3).astype("float16"), ones(3, 3)),
    "addmm of a float64 input": lambda: paddle.addmm(ones(2, 3).astype("float64"), ones(2, 3), ones(3, 3)),
    "to_static by a tensor": lambda: paddle.jit.to_static(build_strategy=ones(2)),
    "summary of a tensor": lambda: paddle.summary(ones(2), 0),
    "summary of a text as dtype": lambda: paddle.summary(layer(), (2, 3), dtypes=""), "summary of -1": lambda: paddle.summary(layer(), -1),
    "Model of texts": lambda: paddle.Model(layer(), inputs=["a"]), "Model of an array": lambda: paddle.Model(layer(), inputs=ARRAY),
    "Model.eval_batch": lambda: paddle.Model(layer()).eval_batch("a"),
    "Model.predict_batch": lambda: paddle.Model(layer()).predict_batch("a"),
    "EarlyStopping of a mode": lambda: paddle.callbacks.EarlyStopping(mode=ones(2)),
    "EarlyStopping of monitors": lambda: paddle.callbacks.EarlyStopping(monitor=[ones(2)]),
    "EarlyStopping of logs": lambda: paddle.callbacks.EarlyStopping().on_eval_end(ones(2, 3)),
    "Precision of wide rows": lambda: paddle.metric.Precision().update(ARRAY, ARRAY[:, :1]),
    "Precision of wide labels": lambda: paddle.metric.Precision().update(ARRAY[:, :1], ARRAY),
    "Recall of wide labels": lambda: paddle.metric.Recall().update(ARRAY[:, :1], ARRAY),
    "Recall of few rows": lambda: paddle.metric.Recall().update(ARRAY[:1, :1], ARRAY[:, :1]),
    "Auc of wide labels": lambda: paddle.metric.Auc().update(ARRAY, ARRAY),
    "full of bytes": lambda: paddle.full([2], b"a"), "full of many": lambda: paddle.full([2], ones(2, 3)),
    "empty of an array": lambda: paddle.empty([2], ARRAY),
    "randint below -1": lambda: paddle.randint(high=-1), "Tensor.unfold of 7": lambda: ones(2, 3).unfold(0, 7, 1),
    "strided_slice of an array": lambda: paddle.strided_slice(ARRAY, [0], [0], [1], ones(2)),
    "polygamma of a tensor": lambda: paddle.polygamma(ones(2, 3), ones(2, 3)),
    "cumsum of an axis": lambda: paddle.cumsum(ones(2, 3), axis=-97), "roll of 97": lambda: paddle.roll(ones(2, 3), 1, axis=97),
    "take_along_axis of an array": lambda: paddle.take_along_axis(ones(2, 3), ARRAY, 0),
    "cond of an array": lambda: paddle.linalg.cond(ARRAY),
    "npair_loss of an array": lambda: F.npair_loss(ARRAY, ones(2, 3), ones(2)), "avg_pool1d of 0": lambda: F.avg_pool1d(ones(2, 3, 3), 0),
    "max_pool1d of 0": lambda: F.max_pool1d(ones(2, 3, 3), 0), "tile by a matrix": lambda: paddle.tile(ones(2, 3), ones(2, 3)),
    "MultiHeadAttention of 97": lambda: paddle.nn.MultiHeadAttention(97, 8),
    "weight_norm of 7": lambda: paddle.nn.utils.weight_norm(layer(), dim=7),
    "clip_grad_norm_ by a function": lambda: paddle.nn.utils.clip_grad_norm_(layer().parameters(), 1.0, norm_type=layer),
    "jvp of a number": lambda: paddle.incubate.autograd.jvp(layer(), 1.5),
    "vjp of texts": lambda: paddle.incubate.autograd.vjp(layer(), ["a"]),
    "vjp by a function": lambda: paddle.incubate.autograd.vjp(layer(), ones(2, 3), layer),
    "increment of a dict": lambda: paddle.increment({}),
    "Model of a text": lambda: paddle.Model(layer(), inputs="a"),
    "Auc of one number a row": lambda: paddle.metric.Auc().update(ARRAY[0], ARRAY),
    "Normal of a complex number": lambda: paddle.distribution.Normal(0.0, 1.0).log_prob(1 + 2j)})
TAKEN = {
    "bools by Laplace": lambda: paddle.distribution.Laplace(0.0, 1.0).cdf(ones(2) > 0),
    "bools by Gumbel": lambda: paddle.distribution.Gumbel(0.0, 1.0).log_prob(ones(2) > 0),
    "a column of segments": lambda: paddle.incubate.segment_sum(ones(2, 3), paddle.zeros([2, 1], "int64")),
    "a shape of floats": lambda: paddle.unflatten(ones(6), 0, paddle.to_tensor([2.0, 3.0])),
    "labels without a hit": lambda: paddle.metric.Precision().update(numpy.zeros([2, 1]), ARRAY),
    "rows without a hit": lambda: paddle.metric.Recall().update(ARRAY, numpy.zeros([2, 1])),
    "a step that is whole": lambda: paddle.cumulative_trapezoid(ones(2, 3), dx=2),
    "a whole side": lambda: paddle.hypot(ones(2, 3), ones(2, 3).astype("int64")),
    "no rows": lambda: paddle.metric.Accuracy().update(ones(0, 3)),
    "no labels": lambda: paddle.metric.Auc().update(ARRAY, numpy.zeros([0])),
    "axes that are None": lambda: paddle.unsqueeze(ones(2, 3), None), "a shape that is None": lambda: paddle.zeros(None),
    "a negative deviation": lambda: paddle.normal(0.0, -1.0, [2]), "int8 as indices": lambda: ones(2, 3).take_along_axis(
        paddle.zeros([2, 3], "int8"), 0),
    "categories in halves": lambda: paddle.distribution.Categorical(ones(2, 3)).probs(paddle.zeros([2, 3], "float16")),
    "a diagonal of int64": lambda: paddle.diagonal_scatter(ones(2, 3), paddle.ones([2], "int64")),
    **{f"a negative padding, {d} dims": lambda d=d, kind=kind: getattr(F, f"{kind}_pool{d}d")(ones(1, 1, *[6] * d), 2, padding=-1)
       for d in (1, 2, 3) for kind in ("max", "avg")},
    **{f"in place {name} float32 and {dtype}": lambda name=name, dtype=dtype: getattr(ones(2, 3), name)(tensor([2, 3], dtype))
       for name, dtypes in {"add_": ["int32", "float64"], "multiply_": ["bool", "int64"], "divide_": ["int32", "float64"],
                            "remainder_": ["int64", "float64"]}.items() for dtype in dtypes}}
MOVED = {"sort": paddle.sort, "argsort": paddle.argsort, "kthvalue": lambda x: paddle.kthvalue(x, 1), "mode": paddle.mode,
         "topk": lambda x: paddle.topk(x, 1), "tile": lambda x: paddle.tile(x, [2]), "flip": lambda x: paddle.flip(x, 0),
         "roll": lambda x: paddle.roll(x, 1), "rot90": paddle.rot90, "reverse": lambda x: paddle.reverse(x, 0), "trace": paddle.trace,
         "diag_embed": paddle.diag_embed, "tril": paddle.tril, "unstack": paddle.unstack, "nonzero": paddle.nonzero,
         "median": paddle.median, "cumsum": paddle.cumsum, "take": lambda x: paddle.take(x, paddle.zeros([1], "int64")),
         "index_select": lambda x: paddle.index_select(x, paddle.zeros([1], "int64")), "max": paddle.max, "amin": paddle.amin,
         "argmin": paddle.argmin, "log": paddle.log, "sqrt": paddle.sqrt, "square": paddle.square, "is_empty": paddle.is_empty,
         "logical_not": paddle.logical_not, "unique_consecutive": paddle.unique_consecutive, "fft": paddle.fft.fft,
         "irfft": paddle.fft.irfft, "split": lambda x: paddle.split(x, 2), "add_n": lambda x: paddle.add_n([x, x]),
         "expand_as": lambda x: paddle.expand_as(x, ones(2, 3)), "ifftshift": paddle.fft.ifftshift}
OF_IMAGES = {"pixel_shuffle": lambda x: F.pixel_shuffle(x, 2), "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
             "channel_shuffle": lambda x: F.channel_shuffle(x, 2), "unfold": lambda x: F.unfold(x, 2), "pad": paddle.nn.Pad2D(1),
             "temporal_shift": lambda x: F.temporal_shift(x, 1, 0.2)}
OF_NOTHING = ["sum", "prod", "mean", "logsumexp", "any", "all", "std", "var", "nansum", "norm"]
WIDE = [1] * 7
REFUSED = {
    **{f"{name} of no elements": lambda name=name: getattr(paddle, name)(ones(0, 3)) for name in OF_NOTHING},
    "outer of no elements": lambda: paddle.outer(ones(0, 3), ones(2)), "dist of no elements": lambda: paddle.dist(ones(0), ones(0)),
    "svd of no rows": lambda: paddle.linalg.svd(ones(0, 3)), "lu of no rows": lambda: paddle.linalg.lu(ones(0, 3)),
    "inv of no rows": lambda: paddle.linalg.inv(ones(0, 0)), "a diagonal outside": lambda: paddle.diag(ones(2, 3), 7),
    "squeeze of 7 dims": lambda: ones(*WIDE).squeeze(0), "unsqueeze of 7 dims": lambda: ones(*WIDE).unsqueeze(0),
    "expand to 7 dims": lambda: ones(1).expand(WIDE), "tile of 7 dims": lambda: ones(*WIDE).tile([1]),
    "broadcast_tensors of 7 dims": lambda: paddle.broadcast_tensors([ones(*WIDE), ones(*WIDE)]),
    "Linear of float64": lambda: layer()(tensor([2, 3], "float64")),
    "Bilinear of float64": lambda: paddle.nn.Bilinear(3, 3, 2)(tensor([2, 3], "float64"), tensor([2, 3], "float64")),
    "SpectralNorm of float64": lambda: paddle.nn.SpectralNorm([3, 3])(tensor([3, 3], "float64")),
    "MultiHeadAttention of float64": lambda: paddle.nn.MultiHeadAttention(4, 2)(tensor([2, 3, 4], "float64")),
    "Conv2D of a bool": lambda: paddle.nn.Conv2D(4, 4, True), "embedding by int8": lambda: F.embedding(tensor([2], "int8"), ones(3, 2)),
    "isclose to a whole number": lambda: paddle.isclose(ones(2), ones(2), rtol=2), "nanmean of int32": lambda: paddle.nanmean(
        tensor([2], "int32")),
    "logical_or of a complex y": lambda: paddle.logical_or(ones(2), tensor([2], "complex64")),
    "texts as a vocabulary": lambda: ones(2).set_vocab(None), "numbers as texts": lambda: ones(2).set_string_list(None),
    "a vocabulary of numbers": lambda: ones(2).get_map_tensor(),
    **{f"no draws of {name}": lambda name=name: getattr(paddle.distribution, name)(0.0, 1.0).sample([0, 0])
       for name in ("Laplace", "Gumbel", "Cauchy", "Normal", "Uniform")},
    "no draws of Bernoulli": lambda: paddle.distribution.Bernoulli(0.5).sample([0]),
    "no draws of Beta": lambda: paddle.distribution.Beta(0.5, 0.5).sample([0]),
    "Categorical of nothing": lambda: paddle.distribution.Categorical(ones(0, 3)),
    "Normal on no elements": lambda: paddle.nn.initializer.Normal()(ones(0, 3))}

WITHOUT_ARGUMENTS = ["clone", "contiguous", "data_ptr", "detach", "detach_", "element_size", "get_selected_rows", "get_strides", "get_tensor",
                     "is_contiguous", "is_dense", "is_dist", "is_selected_rows", "is_sparse", "is_sparse_coo", "is_sparse_csr", "numpy",
                     "retain_grads", "to_sparse_csr", "clear_gradient"]


def outcome(call, *args):
    try:
        call(*args)
        return "ok"
    except Exception as error:
        found = re.search(r"\((InvalidArgument|NotFound|OutOfRange|PreconditionNotMet|Unimplemented|ResourceExhausted)\)|"
                          r"\b(InvalidArgument)Error:", str(error))
        return f"{type(error).__name__}|{(found[1] or found[2]) if found else ''}"


def tensor(shape, dtype):
    return paddle.ones(shape).astype(dtype)


said = {}
for name, (x, y) in itertools.product(BINARY, itertools.product(DTYPES, DTYPES)):
    said[f"{name}({x}, {y})"] = outcome(getattr(paddle.Tensor if name.endswith("_") else paddle, name), tensor([2, 3], x),
                                        tensor([2, 3], y))
for (name, (call, a, b)), (x, y) in itertools.product(OTHERS.items(), itertools.product(DTYPES, DTYPES)):
    said[f"{name}({x}, {y})"] = outcome(call, tensor(a, x), tensor(b, y))
for (name, call), dtype in itertools.product(INTS.items(), ["int8", "float16", "float32", "float64", "bool"]):
    said[f"{name}(ints of {dtype})"] = outcome(call, tensor([1], dtype))
for name, call in SHAPES.items():
    said[f"{name}({len(LONG)} dims)"] = outcome(call)
for name, call in EAGER.items():
    said[f"eager {name}"] = outcome(call, paddle.ones([2]))
for name, dtype in itertools.product(ONES_IN_PLACE, ["int32", "int64", "float32", "complex64"]):
    said[f"in place {name}({dtype})"] = outcome(getattr(paddle, name), tensor([2], dtype))
for name, call in OF_ANYTHING.items():
    said[f"of {name}"] = outcome(call)
for name, call in TAKEN.items():
    said[f"taken: {name}"] = outcome(call)
for name, call in REFUSED.items():
    said[f"refused: {name}"] = outcome(call)
for (name, call), dtype in itertools.product([*MOVED.items(), *OF_IMAGES.items()], ["bool", "uint8", "int8", "int16", "complex64"]):
    said[f"kernel {name}({dtype})"] = outcome(call, tensor([1, 4, 4, 4] if name in OF_IMAGES else [2, 3], dtype))
for name in WITHOUT_ARGUMENTS:
    said[f"surplus {name}"] = outcome(lambda: getattr(paddle.ones([2, 3]), name)(None, 7, no_such=1))
said["surplus PyLayer"] = outcome(lambda: paddle.autograd.PyLayer(None, no_such=1))
said["surplus to_static"] = outcome(lambda: paddle.jit.to_static(lambda x: x, no_such=1))
paddle.enable_static()
for name, call in IN_PROGRAMS.items():
    with paddle.static.program_guard(paddle.static.Program()):
        said[f"program {name}"] = outcome(call, paddle.static.data("x", [2, 3]))
print(json.dumps(said))
