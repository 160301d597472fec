"""fluid.layers: reshaping, slicing, gathering, scattering and padding, with the signatures of Paddle 1.x."""
from ... import _core
from ...tensor.array import TensorArray, tensor_array_to_tensor
from ..layer_helper import one_op

__all__ = ["crop", "crop_tensor", "expand", "expand_as", "flatten", "gather", "gather_nd", "gather_tree", "multiplex", "pad",
           "pad2d", "pad_constant_like", "rank", "reshape", "scatter", "scatter_nd", "scatter_nd_add", "shape", "shard_index",
           "size", "slice", "split", "squeeze", "stack", "strided_slice", "transpose", "unbind", "unsqueeze", "unstack"]


def _given(name, value, tensor_slot, list_slot, inputs, attrs):
    """An attribute that may be a tensor, or a list with tensors in it."""
    if isinstance(value, _core.Tensor):
        inputs[tensor_slot] = value
    elif isinstance(value, (list, tuple)) and any(isinstance(n, _core.Tensor) for n in value):
        inputs[list_slot] = [n if isinstance(n, _core.Tensor) else _core.full([1], n, _core.int32) for n in value]
        attrs[name] = [-1 if isinstance(n, _core.Tensor) else int(n) for n in value]
    else:
        attrs[name] = [int(n) for n in value] if isinstance(value, (list, tuple)) else int(value)


def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
    """x in another shape; one -1 is found out, 0 keeps a dim."""
    inputs, attrs = {"X": x}, {}
    _given("shape", actual_shape if actual_shape is not None else shape, "Shape", "ShapeTensor", inputs, attrs)
    return one_op("reshape2", inputs, attrs, "Out", "~XShape", act=act, name=name)


def squeeze(input, axes, name=None):
    """Without dims of one."""
    return one_op("squeeze2", {"X": input}, {"axes": list(axes)}, "Out", "~XShape", name=name)


def unsqueeze(input, axes, name=None):
    """With new dims of one."""
    inputs, attrs = {"X": input}, {}
    axes = [axes] if isinstance(axes, int) else axes
    _given("axes", axes, "AxesTensor", "AxesTensorList", inputs, attrs)
    return one_op("unsqueeze2", inputs, attrs, "Out", "~XShape", name=name)


def transpose(x, perm, name=None):
    """Axes in another order."""
    return one_op("transpose2", {"X": x}, {"axis": list(perm)}, "Out", "~XShape", name=name)


def flatten(x, axis=1, name=None):
    """A matrix: the dims before axis, and those from it on."""
    return one_op("flatten2", {"X": x}, {"axis": axis}, "Out", "~XShape", name=name)


def split(input, num_or_sections, dim=-1, name=None):
    """Parts along a dim: so many equal ones, or of these sizes."""
    from ... import split as parts
    return parts(input, num_or_sections, dim)


def stack(x, axis=0, name=None):
    """Tensors along a new axis."""
    if isinstance(x, TensorArray):
        return tensor_array_to_tensor(x, axis, use_stack=True)[0]
    return one_op("stack", {"X": x}, {"axis": axis}, "Y", name=name)


def unstack(x, axis=0, num=None):
    """The slices along an axis."""
    from ... import unstack as parts
    return parts(x, axis, num)


def unbind(input, axis=0):
    """The slices along an axis."""
    from ... import unbind as parts
    return parts(input, axis)


def slice(input, axes, starts, ends):
    """A range along each of some axes."""
    inputs, attrs = {"Input": input}, {"axes": list(axes)}
    _given("starts", starts, "StartsTensor", "StartsTensorList", inputs, attrs)
    _given("ends", ends, "EndsTensor", "EndsTensorList", inputs, attrs)
    infer = [1] * len(axes)
    for name in ("starts", "ends"):
        value = attrs.get(name)
        infer = [-1] * len(axes) if value is None else [-1 if n == -1 and f"{name.capitalize()}TensorList" in inputs else i
                                                         for n, i in zip(value, infer)]
    return one_op("slice", inputs, {**attrs, "infer_flags": infer}, "Out")


def strided_slice(input, axes, starts, ends, strides):
    """A range with steps along each of some axes."""
    inputs, attrs = {"Input": input}, {"axes": list(axes)}
    for name, value in (("starts", starts), ("ends", ends), ("strides", strides)):
        _given(name, value, f"{name.capitalize()}Tensor", f"{name.capitalize()}TensorList", inputs, attrs)
    return one_op("strided_slice", inputs, attrs, "Out")


def shape(input):
    """The shape as an int32 tensor."""
    return one_op("shape", {"Input": input}, {}, "Out", dtype="int32")


def rank(input):
    """The number of dims."""
    return _core.full([1], len(input.shape), _core.int32)


def size(input):
    """The number of elements."""
    return one_op("size", {"Input": input}, {}, "Out", dtype="int64")


def expand(x, expand_times, name=None):
    """x so many times along each dim."""
    inputs, attrs = {"X": x}, {}
    _given("expand_times", expand_times, "ExpandTimes", "expand_times_tensor", inputs, attrs)
    return one_op("expand", inputs, attrs, "Out", name=name)


def expand_as(x, target_tensor, name=None):
    """x repeated to the shape of another tensor."""
    return one_op("expand_as", {"X": x, "target_tensor": target_tensor}, {}, "Out", name=name)


def gather(input, index, overwrite=True):
    """Rows at indices."""
    return one_op("gather", {"X": input, "Index": index}, {"overwrite": overwrite}, "Out")


def gather_nd(input, index, name=None):
    """Slices at tuples of indices."""
    return one_op("gather_nd", {"X": input, "Index": index}, {}, "Out", name=name)


def gather_tree(ids, parents):
    """The whole sequences of a beam search."""
    return one_op("gather_tree", {"Ids": ids, "Parents": parents}, {}, "Out")


def scatter(input, index, updates, name=None, overwrite=True):
    """input with rows replaced, or added to."""
    return one_op("scatter", {"X": input, "Ids": index, "Updates": updates}, {"overwrite": overwrite}, "Out", name=name)


def scatter_nd_add(ref, index, updates, name=None):
    """ref with slices added at tuples of indices."""
    return one_op("scatter_nd_add", {"X": ref, "Index": index, "Updates": updates}, {}, "Out", name=name)


def scatter_nd(index, updates, shape, name=None):
    """Zeros with slices added at tuples of indices."""
    from ... import scatter_nd as made
    return made(index, updates, shape)


def multiplex(inputs, index, name=None):
    """Row i of the tensor that index[i] names."""
    return one_op("multiplex", {"X": inputs, "Ids": index}, {}, "Out", name=name)


def pad(x, paddings, pad_value=0.0, name=None):
    """x with a border: before and behind in each dim."""
    return one_op("pad", {"X": x}, {"paddings": list(paddings), "pad_value": float(pad_value)}, "Out", name=name)


def pad2d(input, paddings=(0, 0, 0, 0), mode="constant", pad_value=0.0, data_format="NCHW", name=None):
    """Images with a border: top, bottom, left, right."""
    inputs, attrs = {"X": input}, {"mode": mode, "pad_value": float(pad_value), "data_format": data_format}
    if isinstance(paddings, _core.Tensor):
        inputs["Paddings"] = paddings
    else:
        attrs["paddings"] = list(paddings)
    return one_op("pad2d", inputs, attrs, "Out", name=name)


def pad_constant_like(x, y, pad_value=0.0, name=None):
    """y padded to the shape of x."""
    return one_op("pad_constant_like", {"X": x, "Y": y}, {"pad_value": float(pad_value)}, "Out", name=name)


def crop(x, shape=None, offsets=None, name=None):
    """A box of x: of a shape, or of another tensor's."""
    inputs, attrs = {"X": x}, {}
    if isinstance(shape, _core.Tensor):
        inputs["Y"] = shape
    else:
        attrs["shape"] = list(shape)
    if isinstance(offsets, _core.Tensor):
        inputs["Offsets"] = offsets
    else:
        attrs["offsets"] = [0] * len(x.shape) if offsets is None else list(offsets)
    return one_op("crop", inputs, attrs, "Out", name=name)


def crop_tensor(x, shape=None, offsets=None, name=None):
    """A box of x."""
    from ... import crop as box
    return box(x, shape, offsets)


def shard_index(input, index_num, nshards, shard_id, ignore_value=-1):
    """Indices counted within a shard, those of other shards ignore_value."""
    return one_op("shard_index", {"X": input}, {"index_num": index_num, "nshards": nshards, "shard_id": shard_id,
                                                "ignore_value": ignore_value}, "Out")


