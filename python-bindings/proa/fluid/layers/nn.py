"""fluid.layers.nn: layer functions that create their parameters (fc, embedding, …), and other operators of Paddle 1.x
on tensors and sequences."""
from ... import _core
from ...framework import mode
from ...framework.random import program_seed
from ...static import nn as static_nn
from ...static.host import py_func
from ..data_feeder import check_type, check_variable_and_dtype
from ..layer_helper import LayerHelper, one_op
from .tensor import gaussian_random, uniform_random

__all__ = ["add_position_encoding", "affine_channel", "autoincreased_step_counter", "batch_norm", "bilinear_tensor_product",
           "chunk_eval", "continuous_value_model", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "cos_sim",
           "crf_decoding", "ctc_greedy_decoder", "data_norm", "deformable_conv", "dropout", "embedding", "fc", "filter_by_instag",
           "fsp_matrix", "gaussian_random", "get_tensor_from_selected_rows", "group_norm", "hash", "im2sequence", "inplace_abn",
           "instance_norm", "l2_normalize", "label_smooth", "layer_norm", "linear_chain_crf", "lod_append", "lod_reset",
           "lrn", "matmul", "mean_iou", "merge_selected_rows", "mul", "one_hot", "py_func", "random_crop", "row_conv",
           "sequence_mask", "shuffle_channel", "similarity_focus", "space_to_depth", "spectral_norm", "temporal_shift", "unfold",
           "uniform_random"]

conv2d, conv3d, conv2d_transpose, conv3d_transpose = (static_nn.conv2d, static_nn.conv3d, static_nn.conv2d_transpose,
                                                      static_nn.conv3d_transpose)
batch_norm, layer_norm, group_norm, instance_norm = (static_nn.batch_norm, static_nn.layer_norm, static_nn.group_norm,
                                                     static_nn.instance_norm)
spectral_norm, row_conv, bilinear_tensor_product = (static_nn.spectral_norm, static_nn.row_conv,
                                                    static_nn.bilinear_tensor_product)
data_norm, crf_decoding = static_nn.data_norm, static_nn.crf_decoding


def deformable_conv(input, offset, mask, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None,
                    deformable_groups=None, im2col_step=None, param_attr=None, bias_attr=None, modulated=True, name=None):
    """Convolution whose sampling points offset moves and, if modulated, mask weights."""
    return static_nn.deform_conv2d(input, offset, mask if modulated else None, num_filters, filter_size, stride, padding, dilation,
                                   groups or 1, deformable_groups or 1, im2col_step or 1, param_attr, bias_attr, name)


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """1 at the places before each length of x, 0 behind."""
    from ...nn.functional import sequence_mask as mask
    return mask(x, maxlen, dtype)


def autoincreased_step_counter(counter_name=None, begin=1, step=1):
    """A counter that grows by step with every run."""
    from .tensor import autoincreased_step_counter as counter
    return counter(counter_name, begin, step)


def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
    """input · weight + bias over the axes from num_flatten_dims on; a list of inputs has a weight each, and is summed."""
    return static_nn.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """Rows of a new table at indices whose last dim is one."""
    helper = LayerHelper("embedding", param_attr=param_attr)
    table = helper.create_parameter(helper.param_attr, size, dtype)
    static_nn.common.mark_table(table, is_sparse, is_distributed)
    padding = -1 if padding_idx is None else padding_idx if padding_idx >= 0 else size[0] + padding_idx
    return one_op("lookup_table", {"W": table, "Ids": input}, {"is_sparse": is_sparse, "is_distributed": is_distributed,
                                                               "padding_idx": padding}, "Out", dtype=dtype)


def dropout(x, dropout_prob, is_test=None, seed=None, name=None, dropout_implementation="downgrade_in_infer"):
    """Elements set to zero at random while training."""
    seed = seed or program_seed() or None
    return one_op("dropout", {"X": x}, {"dropout_prob": float(dropout_prob), "is_test": bool(is_test),
                                        "fix_seed": seed is not None, "seed": seed or 0,
                                        "dropout_implementation": dropout_implementation}, "Out", "~Mask", name=name)


def matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0, name=None):
    """alpha · x @ y, of matrices or batches of them."""
    return one_op("matmul", {"X": x, "Y": y}, {"transpose_X": transpose_x, "transpose_Y": transpose_y,
                                               "alpha": float(alpha)}, "Out", name=name)


def mul(x, y, x_num_col_dims=1, y_num_col_dims=1, name=None):
    """The product of x and y as matrices."""
    return one_op("mul", {"X": x, "Y": y}, {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}, "Out",
                  name=name)


def one_hot(input, depth, allow_out_of_range=False):
    """A vector of depth with a one at the index, for each index of a last dim of one."""
    inputs = {"X": input, "depth_tensor": depth} if isinstance(depth, _core.Tensor) else {"X": input}
    attrs = {"allow_out_of_range": allow_out_of_range}
    if "depth_tensor" not in inputs:
        attrs["depth"] = depth
    return one_op("one_hot", inputs, attrs, "Out", dtype="float32")


def l2_normalize(x, axis, epsilon=1e-12, name=None):
    """x over its L2 norm along an axis."""
    return one_op("norm", {"X": x}, {"axis": 1 if axis is None else axis, "epsilon": epsilon}, "Out", "~Norm", name=name)


def cos_sim(X, Y):
    """The cosine between rows."""
    return one_op("cos_sim", {"X": X, "Y": Y}, {}, "Out", "~XNorm", "~YNorm")


def lrn(input, n=5, k=1.0, alpha=1e-4, beta=0.75, name=None, data_format="NCHW"):
    """Local response normalization over n channels."""
    return one_op("lrn", {"X": input}, {"n": n, "k": k, "alpha": alpha, "beta": beta, "data_format": data_format}, "Out",
                  "~MidOut", name=name)


def label_smooth(label, prior_dist=None, epsilon=0.1, dtype="float32", name=None):
    """(1 − epsilon) · label + epsilon · prior."""
    return one_op("label_smooth", {"X": label, "PriorDist": prior_dist}, {"epsilon": float(epsilon)}, "Out", name=name)


def lod_reset(x, y=None, target_lod=None):
    """x with the sequences of y, or those of target_lod."""
    check_variable_and_dtype(x, "x", ["float32", "float64", "int32", "int64"], "lod_reset")
    if y is None and target_lod is None:
        raise ValueError("y and target_lod should not be both none.")
    if y is not None:
        check_type(y, "y", _core.Tensor, "lod_reset")
    return one_op("lod_reset", {"X": x, "Y": y}, {"target_lod": list(target_lod or [])}, "Out")


def lod_append(x, level):
    """x with one more level of sequences."""
    inputs = {"X": x, "Y": level} if isinstance(level, _core.Tensor) else {"X": x}
    return one_op("lod_reset", inputs, {"append": True, "target_lod": [] if "Y" in inputs else list(level)}, "Out")


def linear_chain_crf(input, label, param_attr=None, length=None):
    """The negated log likelihood of a linear chain."""
    helper = LayerHelper("linear_chain_crf", param_attr=param_attr)
    size = input.shape[2] if length is not None else input.shape[1]
    transition = helper.create_parameter(helper.param_attr, [size + 2, size], input.dtype)
    return one_op("linear_chain_crf", {"Emission": input, "Transition": transition, "Label": label, "Length": length}, {},
                  "LogLikelihood", "~Alpha", "~EmissionExps", "~TransitionExps")


def chunk_eval(input, label, chunk_scheme, num_chunk_types, excluded_chunk_types=None, seq_length=None):
    """(precision, recall, F1, chunks found, chunks in the labels, chunks that agree)."""
    if mode.by_name():
        check_variable_and_dtype(input, "input", ["int64"], "chunk_eval")
        check_variable_and_dtype(label, "label", ["int64"], "chunk_eval")
    return one_op("chunk_eval", {"Inference": input, "Label": label, "SeqLength": seq_length},
                  {"num_chunk_types": num_chunk_types, "chunk_scheme": chunk_scheme,
                   "excluded_chunk_types": list(excluded_chunk_types or [])}, "Precision", "Recall", "F1-Score",
                  "NumInferChunks", "NumLabelChunks", "NumCorrectChunks", dtype="float32")


def ctc_greedy_decoder(input, blank, input_length=None, padding_value=0, name=None):
    """The best label of each step without repetitions and blanks; with lengths also how many there are."""
    from .tensor import topk
    _, best = topk(input, 1)
    if input_length is None:
        return one_op("ctc_align", {"Input": best}, {"merge_repeated": True, "blank": blank}, "Output", name=name)
    best = _core.squeeze(best, [2])
    return one_op("ctc_align", {"Input": best, "InputLength": input_length},
                  {"merge_repeated": True, "blank": blank, "padding_value": padding_value}, "Output", "OutputLength",
                  name=name)


def mean_iou(input, label, num_classes):
    """(mean intersection over union, wrong and right pixels of each class)."""
    return one_op("mean_iou", {"Predictions": input, "Labels": label}, {"num_classes": num_classes}, "OutMeanIou", "OutWrong",
                  "OutCorrect", dtype="float32")


def affine_channel(x, scale=None, bias=None, data_layout="NCHW", name=None, act=None):
    """scale · x + bias, of each channel."""
    return one_op("affine_channel", {"X": x, "Scale": scale, "Bias": bias}, {"data_layout": data_layout}, "Out", act=act,
                  name=name)


def add_position_encoding(input, alpha, beta, name=None):
    """alpha · input + beta · waves of the position."""
    return one_op("add_position_encoding", {"X": input}, {"alpha": float(alpha), "beta": float(beta)}, "Out", name=name)


def fsp_matrix(x, y):
    """The products of all pairs of channels, summed over the image."""
    return one_op("fsp", {"X": x, "Y": y}, {}, "Out")


def hash(input, hash_size, num_hash=1, name=None):
    """Hashes of rows of numbers."""
    check_variable_and_dtype(input, "input", ["int32", "int64"], "hash")
    check_type(hash_size, "hash_size", int, "hash")
    check_type(num_hash, "num_hash", int, "hash")
    return one_op("hash", {"X": input}, {"num_hash": num_hash, "mod_by": hash_size}, "Out", name=name)


def similarity_focus(input, axis, indexes, name=None):
    """A mask of the largest of each row and column of some channels."""
    check_variable_and_dtype(input, "input", ["float32", "float64"], "similarity_focus")
    check_type(axis, "axis", int, "similarity_focus")
    check_type(indexes, "indexes", list, "similarity_focus")
    return one_op("similarity_focus", {"X": input}, {"axis": axis, "indexes": list(indexes)}, "Out", name=name)


def space_to_depth(x, blocksize, name=None):
    """Blocks of pixels become channels."""
    return one_op("space_to_depth", {"X": x}, {"blocksize": blocksize}, "Out", name=name)


def shuffle_channel(x, group, name=None):
    """Channels of groups in turn."""
    return one_op("shuffle_channel", {"X": x}, {"group": group}, "Out", name=name)


def temporal_shift(x, seg_num, shift_ratio=0.25, name=None, data_format="NCHW"):
    """Some channels moved to the frame before, some to the one behind."""
    return one_op("temporal_shift", {"X": x}, {"seg_num": seg_num, "shift_ratio": shift_ratio, "data_format": data_format},
                  "Out", name=name)


def im2sequence(input, filter_size=1, stride=1, padding=0, input_image_size=None, out_stride=1, name=None):
    """The patches of images as sequences."""
    def pair(value):
        return [value, value] if isinstance(value, int) else list(value)
    padding = pair(padding)
    return one_op("im2sequence", {"X": input, "Y": input_image_size},
                  {"kernels": pair(filter_size), "strides": pair(stride),
                   "paddings": padding * 2 if len(padding) == 2 else padding, "out_stride": pair(out_stride)}, "Out", name=name)


def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """The patches of images as columns."""
    from ...nn.functional import unfold as patches
    return patches(x, kernel_sizes, strides, paddings, dilations)


def random_crop(x, shape, seed=None):
    """A box at a random place."""
    seed = _core.full([1], seed or 0, _core.int64)
    return one_op("random_crop", {"X": x, "Seed": seed}, {"shape": list(shape)}, "Out", "~SeedOut")


def continuous_value_model(input, cvm, use_cvm=True):
    """Show and click taken as logarithms, or left out."""
    return one_op("cvm", {"X": input, "CVM": cvm}, {"use_cvm": use_cvm}, "Y")


def filter_by_instag(ins, ins_tag, filter_tag, is_lod, out_val_if_empty=0):
    """The instances with one of the tags."""
    return one_op("filter_by_instag", {"Ins": ins, "Ins_tag": ins_tag, "Filter_tag": filter_tag},
                  {"is_lod": is_lod, "out_val_if_empty": out_val_if_empty}, "Out", "LossWeight", "~IndexMap")


def inplace_abn(input, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
                data_layout="NCHW", name=None, moving_mean_name=None, moving_variance_name=None,
                do_model_average_for_mean_and_var=True, use_global_stats=False, act_alpha=1.0):
    """Batch norm and an activation that can be undone."""
    if act not in (None, "identity", "leaky_relu", "elu"):
        raise ValueError("inplace_abn only support act as None, 'identity', 'leaky_relu', 'elu' now")
    out = batch_norm(input, None, is_test, momentum, epsilon, param_attr, bias_attr, data_layout, name=name)
    if act in (None, "identity"):
        return out
    return one_op(act, {"X": out}, {"alpha": float(act_alpha)}, "Out")


def get_tensor_from_selected_rows(x, name=None):
    """The given rows of SelectedRows as a dense tensor."""
    return one_op("get_tensor_from_selected_rows", {"X": x}, {}, "Out", name=name)


def merge_selected_rows(x, name=None):
    """SelectedRows with every row once."""
    return one_op("merge_selected_rows", {"X": x}, {}, "Out", name=name)
