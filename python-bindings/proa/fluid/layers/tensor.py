"""Functions of fluid.layers that create, cast, join, assign and fill tensors."""
import numpy

from ... import _core
from ...framework.dtype import dtype_name, to_dtype
from ...framework.parameter import create_parameter as _create_parameter
from ...static.variable import create_global_var
from ...tensor.array import TensorArray, tensor_array_to_tensor
from ..layer_helper import LayerHelper, one_op

__all__ = ["argmax", "argmin", "argsort", "assign", "autoincreased_step_counter", "cast", "concat", "create_global_var",
           "create_parameter", "create_tensor", "diag", "eye", "fill_constant", "fill_constant_batch_size_like",
           "gaussian_random", "gaussian_random_batch_size_like", "has_inf", "has_nan", "isfinite", "linspace", "ones",
           "ones_like", "range", "reverse", "sampling_id", "tensor_array_to_tensor", "topk", "triu", "uniform_random",
           "uniform_random_batch_size_like", "unique", "unique_with_counts", "where", "zeros", "zeros_like"]


def _number(dtype):
    """A dtype as attributes spell it. By Paddle's own names alone: operators refuse NumPy's others."""
    found = to_dtype(dtype)
    if isinstance(dtype, str) and dtype_name(dtype) != dtype_name(found):
        raise TypeError(f"dtype must name a data type such as 'float32', got {dtype!r}")
    return found.value


def create_tensor(dtype, name=None, persistable=False):
    """A variable that an operator makes later."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter that belongs to no layer."""
    return _create_parameter(shape, dtype, name, attr, is_bias, default_initializer)


def cast(x, dtype):
    """x in another dtype."""
    return _core.cast(x, to_dtype(dtype))


def concat(input, axis=0, name=None):
    """Tensors joined along an axis."""
    if isinstance(input, TensorArray):
        return tensor_array_to_tensor(input, axis)[0]
    inputs = {"X": input}
    if isinstance(axis, _core.Tensor):
        inputs["AxisTensor"] = axis
    return one_op("concat", inputs, {"axis": 0 if isinstance(axis, _core.Tensor) else axis}, "Out", name=name)


def assign(input, output=None):
    """A copy of a tensor, or of an array, which `output` takes if it is given."""
    helper = LayerHelper("assign")
    if not isinstance(input, _core.Tensor):
        made = _core.assign(_core.to_tensor(numpy.asarray(input)))
        if output is None:
            return made
        input = made
    output = helper.create_variable_for_type_inference(input.dtype) if output is None else output
    helper.append_op("assign", {"X": [input]}, {"Out": [output]})
    return output


def _shape_inputs(shape):
    """(inputs, attribute) of a shape that is a tensor, or a list of numbers and tensors."""
    if isinstance(shape, _core.Tensor):
        return {"ShapeTensor": shape}, []
    shape = list(shape)
    if any(isinstance(n, _core.Tensor) for n in shape):
        tensors = [n if isinstance(n, _core.Tensor) else _core.full([1], n, _core.int32) for n in shape]
        return {"ShapeTensorList": tensors}, [-1 if isinstance(n, _core.Tensor) else int(n) for n in shape]
    return {}, [int(n) for n in shape]


def fill_constant(shape, dtype, value, force_cpu=False, out=None, name=None):
    """A tensor of one value."""
    inputs, dims = _shape_inputs(shape)
    attrs = {"dtype": _number(dtype), "shape": dims, "force_cpu": force_cpu}
    if isinstance(value, _core.Tensor):
        inputs["ValueTensor"] = value
    else:
        attrs["value"] = float(value)
        attrs["str_value"] = str(int(value)) if "int" in dtype_name(to_dtype(dtype)) else str(float(value))
    helper = LayerHelper("fill_constant", name=name)
    out = helper.create_variable_for_type_inference(dtype, stop_gradient=True) if out is None else out
    helper.append_op("fill_constant", {k: v if isinstance(v, list) else [v] for k, v in inputs.items()}, {"Out": [out]},
                     attrs, stop_gradient=True)
    out.stop_gradient = True
    return out


def zeros(shape, dtype, force_cpu=False, name=None):
    """A tensor of zeros."""
    return fill_constant(shape, dtype, 0.0, force_cpu, name=name)


def ones(shape, dtype, force_cpu=False):
    """A tensor of ones."""
    return fill_constant(shape, dtype, 1.0, force_cpu)


def _like(x, value, out):
    helper = LayerHelper("fill_any_like")
    out = helper.create_variable_for_type_inference(x.dtype) if out is None else out
    helper.append_op("fill_any_like", {"X": [x]}, {"Out": [out]}, {"value": value, "dtype": -1})
    out.stop_gradient = True
    return out


def zeros_like(x, out=None):
    """Zeros of the shape and dtype of x."""
    return _like(x, 0.0, out)


def ones_like(x, out=None):
    """Ones of the shape and dtype of x."""
    return _like(x, 1.0, out)


def fill_constant_batch_size_like(input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, force_cpu=False):
    """A tensor of one value, one of whose dims is a dim of input."""
    attrs = {"shape": list(shape), "dtype": _number(dtype), "value": float(value), "input_dim_idx": input_dim_idx,
             "output_dim_idx": output_dim_idx, "force_cpu": force_cpu}
    return one_op("fill_constant_batch_size_like", {"Input": input}, attrs, "Out", dtype=dtype)


def uniform_random(shape, dtype="float32", min=-1.0, max=1.0, seed=0, name=None):
    """Uniform numbers in [min, max)."""
    inputs, dims = _shape_inputs(shape)
    return one_op("uniform_random", inputs, {"shape": dims, "dtype": _number(dtype), "min": float(min), "max": float(max),
                                             "seed": seed}, "Out", dtype=dtype, name=name)


def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype="float32", name=None):
    """Normal numbers."""
    inputs, dims = _shape_inputs(shape)
    return one_op("gaussian_random", inputs, {"shape": dims, "dtype": _number(dtype), "mean": float(mean),
                                              "std": float(std), "seed": seed}, "Out", dtype=dtype, name=name)


def uniform_random_batch_size_like(input, shape, dtype="float32", input_dim_idx=0, output_dim_idx=0, min=-1.0, max=1.0,
                                   seed=0):
    """Uniform numbers; one dim is a dim of input."""
    attrs = {"shape": list(shape), "dtype": _number(dtype), "min": float(min), "max": float(max), "seed": seed,
             "input_dim_idx": input_dim_idx, "output_dim_idx": output_dim_idx}
    return one_op("uniform_random_batch_size_like", {"Input": input}, attrs, "Out", dtype=dtype)


def gaussian_random_batch_size_like(input, shape, input_dim_idx=0, output_dim_idx=0, mean=0.0, std=1.0, seed=0,
                                    dtype="float32"):
    """Normal numbers; one dim is a dim of input."""
    attrs = {"shape": list(shape), "dtype": _number(dtype), "mean": float(mean), "std": float(std), "seed": seed,
             "input_dim_idx": input_dim_idx, "output_dim_idx": output_dim_idx}
    return one_op("gaussian_random_batch_size_like", {"Input": input}, attrs, "Out", dtype=dtype)


def sampling_id(x, min=0.0, max=1.0, seed=0, dtype="float32"):
    """An index drawn from each row of probabilities."""
    return one_op("sampling_id", {"X": x}, {"min": float(min), "max": float(max), "seed": seed}, "Out", dtype=dtype)


def argmax(x, axis=0):
    """Indices of the largest elements along an axis."""
    return one_op("arg_max", {"X": x}, {"axis": axis}, "Out", dtype="int64")


def argmin(x, axis=0):
    """Indices of the smallest elements along an axis."""
    return one_op("arg_min", {"X": x}, {"axis": axis}, "Out", dtype="int64")


def argsort(input, axis=-1, descending=False, name=None):
    """(sorted, indices)."""
    return one_op("argsort", {"X": input}, {"axis": axis, "descending": descending}, "Out", "Indices", name=name)


def topk(input, k, name=None):
    """(the k largest of the last axis, their indices)."""
    inputs = {"X": input, "K": k} if isinstance(k, _core.Tensor) else {"X": input}
    return one_op("top_k", inputs, {} if "K" in inputs else {"k": int(k)}, "Out", "Indices", name=name)


def reverse(x, axis):
    """x with some axes turned round."""
    return one_op("reverse", {"X": x}, {"axis": [axis] if isinstance(axis, int) else list(axis)}, "Out")


def has_inf(x):
    """Whether an element is infinite."""
    return _core.any(_core.isinf(x)).reshape([1])


def has_nan(x):
    """Whether an element is NaN."""
    return _core.any(_core.isnan(x)).reshape([1])


def isfinite(x):
    """Whether all elements are finite."""
    return _core.all(_core.isfinite(x)).reshape([1])


def range(start, end, step, dtype, name=None):
    """start, start + step, … below end."""
    from ... import arange
    return arange(start, end, step, dtype)


def linspace(start, stop, num, dtype=None, name=None):
    """num numbers from start to stop."""
    from ... import linspace as spaced
    return spaced(start, stop, num, dtype or "float32")


def diag(diagonal):
    """A matrix with this diagonal."""
    from ... import diag as made
    return made(_core.to_tensor(diagonal) if not isinstance(diagonal, _core.Tensor) else diagonal)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """Ones on the diagonal; batch_shape repeats the matrix."""
    from ... import eye as made, tile
    out = made(num_rows, num_columns, dtype)
    if batch_shape:
        out = tile(out.reshape([1] * len(batch_shape) + list(out.shape)), [*batch_shape, 1, 1])
    out.stop_gradient = True
    return out


def triu(input, diagonal=0, name=None):
    """The upper triangle."""
    return _core.triu(input, diagonal)


def where(condition):
    """The indices of all true elements, a row each."""
    return one_op("where_index", {"Condition": condition}, {}, "Out", dtype="int64")


def unique(x, dtype="int32"):
    """(the different elements in the order in which they come, where each element of x is among them)."""
    return unique_with_counts(x, dtype)[:2]


def unique_with_counts(x, dtype="int32"):
    """(the different elements in the order in which they come, where each element of x is among them, how often each
    occurs)."""
    from ... import unique as found
    values, first, index, counts = found(x, return_index=True, return_inverse=True, return_counts=True, dtype=dtype)
    order = _core.argsort(first)
    return (_core.gather(values, order), _core.gather(_core.cast(_core.argsort(order), dtype), index),
            _core.gather(counts, order))


def autoincreased_step_counter(counter_name=None, begin=1, step=1):
    """A counter that grows by step with every run."""
    from ..initializer import Constant
    helper = LayerHelper("global_step_counter")
    name = counter_name or "@STEP_COUNTER@"
    counter, is_new = helper.create_or_get_global_variable(name, dtype="int64", shape=[1])
    if is_new:
        helper.set_variable_initializer(counter, Constant(begin - 1))
        helper.main_program.global_block()._prepend_op(type="increment", inputs={"X": [counter]},
                                                       outputs={"Out": [counter]}, attrs={"step": float(step)})
        counter.stop_gradient = True
    return counter


