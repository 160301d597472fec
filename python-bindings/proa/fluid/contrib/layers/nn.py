"""fluid.contrib.layers: layers of ranking and of text matching."""
from .... import _core
from ....static.variable import Variable
from ...data_feeder import check_type, check_variable_and_dtype
from ...initializer import Constant
from ...layer_helper import LayerHelper, one_op
from ...layers.tensor import _number

__all__ = ["fused_elemwise_activation", "fused_embedding_seq_pool", "match_matrix_tensor", "multiclass_nms2", "partial_concat", "partial_sum", "tdm_child",
           "tdm_sampler", "tree_conv", "var_conv_2d"]


def fused_elemwise_activation(x, y, functor_list, axis=-1, scale=0.0, save_intermediate_out=True):
    """f(x ∘ y) or x ∘ f(y), by the order of two functors."""
    functors = functor_list.split(",") if isinstance(functor_list, str) else functor_list
    if not isinstance(functors, list) or len(functors) != 2:
        raise ValueError("functor_list should be a list of str, and the length should be 2.")
    return one_op("fused_elemwise_activation", {"X": x, "Y": y},
                  {"axis": axis, "scale": float(scale), "save_intermediate_out": save_intermediate_out,
                   "functor_list": functors}, "Out", "~IntermediateOut")


def fused_embedding_seq_pool(input, size, is_sparse=False, padding_idx=None, combiner="sum", param_attr=None, dtype="float32"):
    """The sums of the rows of a table of this size that each sequence of ids [rows, ids a row] names."""
    if combiner != "sum":
        raise ValueError(f"fused_embedding_seq_pool: combiner must be 'sum', got {combiner!r}")
    helper = LayerHelper("fused_embedding_seq_pool", param_attr=param_attr)
    table = helper.create_parameter(helper.param_attr, list(size), dtype)
    padding_idx = -1 if padding_idx is None else padding_idx + (size[0] if padding_idx < 0 else 0)
    return one_op("fused_embedding_seq_pool", {"Ids": input, "W": table},
                  {"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding_idx}, "Out", dtype=table.dtype)


def partial_concat(input, start_index=0, length=-1):
    """The same columns of several inputs, side by side."""
    return _of_columns("partial_concat", input, start_index, length)


def partial_sum(input, start_index=0, length=-1):
    """The sum of the same columns of several inputs."""
    return _of_columns("partial_sum", input, start_index, length)


def _of_columns(op, input, start_index, length):
    input = list(input) if isinstance(input, (list, tuple)) else [input]
    for i, one in enumerate(input):
        check_variable_and_dtype(one, f"input[{i}]", ["float16", "float32", "float64", "int32", "int64"], op)
    return one_op(op, {"X": input}, {"start_index": start_index, "length": length}, "Out")


def match_matrix_tensor(x, y, channel_num, act=None, param_attr=None, dtype="float32", name=None):
    """(x · W · yᵀ of each pair of sequences and of each channel, x · W)."""
    check_variable_and_dtype(x, "x", ["float32", "float64"], "match_matrix_tensor")
    check_variable_and_dtype(y, "y", ["float32", "float64"], "match_matrix_tensor")
    if len(x.shape) != 2 or len(y.shape) != 2:
        raise AssertionError("Input X and Y should be 2D Tensor")
    helper = LayerHelper("match_matrix_tensor", param_attr=param_attr, act=act, name=name)
    weight = helper.create_parameter(helper.param_attr, [x.shape[-1], channel_num, y.shape[-1]], dtype)
    out, between = one_op("match_matrix_tensor", {"X": x, "Y": y, "W": weight}, {"dim_t": channel_num}, "Out", "Tmp")
    return helper.append_activation(out), between


def var_conv_2d(input, row, col, input_channel, output_channel, filter_size, stride=1, param_attr=None, act=None,
                dtype="float32", name=None):
    """The convolution of images whose sizes are the lengths of the sequences of row and col."""
    filter_size, stride = ([one, one] if isinstance(one, int) else list(one) for one in (filter_size, stride))
    helper = LayerHelper("var_conv_2d", param_attr=param_attr, act=act, name=name)
    shape = [int(output_channel), int(input_channel) * filter_size[0] * filter_size[1]]
    weight = helper.create_parameter(helper.param_attr, shape, dtype)
    out = one_op("var_conv_2d", {"X": input, "ROW": row, "COLUMN": col, "W": weight},
                 {"InputChannel": input_channel, "OutputChannel": output_channel, "StrideH": stride[0], "StrideW": stride[1],
                  "KernelH": filter_size[0], "KernelW": filter_size[1]}, "Out", "~Col")
    return helper.append_activation(out)


def tree_conv(nodes_vector, edge_set, output_size, num_filters=1, max_depth=2, act="tanh", param_attr=None, bias_attr=None,
              name=None):
    """A convolution over the nodes of trees, [N, nodes, output_size, num_filters]."""
    check_type(nodes_vector, "nodes_vector", Variable, "tree_conv")
    check_type(edge_set, "edge_set", Variable, "tree_conv")
    helper = LayerHelper("tree_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    weight = helper.create_parameter(helper.param_attr, [nodes_vector.shape[2], 3, output_size, num_filters], nodes_vector.dtype)
    out = one_op("tree_conv", {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": weight}, {"max_depth": max_depth},
                 "Out")
    if helper.bias_attr:
        out = _core.add(out, helper.create_parameter(helper.bias_attr, [num_filters], nodes_vector.dtype, is_bias=True))
    return helper.append_activation(out)


def multiclass_nms2(bboxes, scores, score_threshold, nms_top_k, keep_top_k, nms_threshold=0.3, normalized=True, nms_eta=1.0,
                    background_label=0, return_index=False, name=None):
    """The boxes that remain, and with return_index which they were."""
    out, index = one_op("multiclass_nms2", {"BBoxes": bboxes, "Scores": scores},
                        {"background_label": background_label, "score_threshold": float(score_threshold),
                         "nms_top_k": nms_top_k, "nms_threshold": float(nms_threshold), "keep_top_k": keep_top_k,
                         "nms_eta": float(nms_eta), "normalized": normalized}, "Out", "Index", name=name)
    return (out, index) if return_index else out


def _fixed(helper, attr, shape, dtype):
    """A parameter that is not trained."""
    made = helper.create_parameter(attr, shape, dtype, default_initializer=Constant(0))
    made.stop_gradient = True
    return made


def tdm_child(x, node_nums, child_nums, param_attr=None, dtype="int32"):
    """(children of nodes of a tree, whether they are leaves); the tree is a parameter [node_nums, 3 + child_nums]."""
    check_variable_and_dtype(x, "x", ["int32", "int64"], "fluid.layers.tdm_child")
    helper = LayerHelper("tdm_child", param_attr=param_attr)
    tree = _fixed(helper, helper.param_attr, [node_nums, 3 + child_nums], dtype)
    return one_op("tdm_child", {"X": x, "TreeInfo": tree}, {"child_nums": child_nums, "dtype": _number(dtype)}, "Child", "LeafMask",
                  dtype=dtype)


def tdm_sampler(x, neg_samples_num_list, layer_node_num_list, leaf_node_num, tree_travel_attr=None, tree_layer_attr=None,
                output_positive=True, output_list=True, seed=0, tree_dtype="int32", dtype="int32"):
    """(nodes of each layer of a tree for items, their labels, masks): lists of one a layer, or with output_list False one."""
    check_variable_and_dtype(x, "x", ["int32", "int64"], "tdm_sampler")
    if len(neg_samples_num_list) != len(layer_node_num_list):
        raise ValueError("The shape of negative samples list must match the shape of layers. But received len of "
                         f"neg_samples_num_list: {len(neg_samples_num_list)}, and len of layer_node_num_list: "
                         f"{len(layer_node_num_list)}, please check your input.")
    for i, (count, nodes) in enumerate(zip(neg_samples_num_list, layer_node_num_list)):
        if count >= nodes:
            raise ValueError("The number of negative samples must be less than the number of nodes in the layer "
                             f"{i}, But received negative nums {count}, and num of node at layer {i} is {nodes}, please check "
                             "your input.")
    helper = LayerHelper("tdm_sampler")
    begins = [sum(layer_node_num_list[:i]) for i in range(len(layer_node_num_list) + 1)]
    travel = _fixed(helper, tree_travel_attr, [leaf_node_num, len(layer_node_num_list)], tree_dtype)
    layer = _fixed(helper, tree_layer_attr, [begins[-1], 1], tree_dtype)
    found = one_op("tdm_sampler", {"X": x, "Travel": travel, "Layer": layer},
                   {"neg_samples_num_list": list(neg_samples_num_list), "layer_offset_lod": begins,
                    "output_positive": output_positive, "seed": seed, "dtype": _number(dtype)}, "Out", "Labels", "Mask", dtype=dtype)
    if not output_list:
        return found
    counts = [count + bool(output_positive) for count in neg_samples_num_list]
    ends = [sum(counts[:i]) for i in range(len(counts) + 1)]
    return tuple([_core.unsqueeze(one[:, a:b], [2]) for a, b in zip(ends, ends[1:])] for one in found)
