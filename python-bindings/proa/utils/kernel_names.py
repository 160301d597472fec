"""Paddle's names of kernels by the operators' types of its files."""

_NAMES = dict(entry.split("=") for entry in """
arg_max=argmax arg_min=argmin bicubic_interp_v2=bicubic_interp bilinear_interp_v2=bilinear_interp
bilinear_tensor_product=bilinear brelu=hardtanh crop_tensor=crop deformable_conv_v1=deformable_conv determinant=det
diag_v2=diag elementwise_add=add elementwise_div=divide elementwise_floordiv=floor_divide elementwise_fmax=fmax
elementwise_fmin=fmin elementwise_heaviside=heaviside elementwise_max=maximum elementwise_min=minimum
elementwise_mod=remainder elementwise_mul=multiply elementwise_sub=subtract expand_as_v2=expand_as expand_v2=expand
feed=feed_dense_tensor fill_any=fill fill_any_like=full_like fill_constant=full
fill_constant_batch_size_like=full_batch_size_like flatten_contiguous_range=flatten gaussian_random=gaussian
generate_proposals_v2=generate_proposals graph_reindex=reindex_graph graph_send_recv=send_u_recv
graph_send_ue_recv=send_ue_recv graph_send_uv=send_uv grid_sampler=grid_sample hard_shrink=hardshrink
hard_sigmoid=hardsigmoid hard_swish=hardswish hierarchical_sigmoid=hsigmoid_loss isfinite_v2=isfinite isinf_v2=isinf
isnan_v2=isnan linear_interp_v2=linear_interp lookup_table_v2=embedding matmul_v2=matmul mean=mean_all
mul=matmul_with_flatten nearest_interp_v2=nearest_interp one_hot_v2=one_hot range=arange reduce_all=all reduce_amax=amax
reduce_amin=amin reduce_any=any reduce_max=max reduce_mean=mean reduce_min=min reduce_prod=prod reduce_sum=sum
reshape2=reshape save_combine=save_combine_tensor size=numel slogdeterminant=slogdet
softmax_with_cross_entropy=cross_entropy_with_softmax squeeze2=squeeze sum=add_n top_k_v2=topk transfer_dtype=cast
transpose2=transpose trilinear_interp_v2=trilinear_interp uniform_random=uniform uniform_random_inplace=uniform_inplace
unsqueeze2=unsqueeze where_index=nonzero yolov3_loss=yolo_loss
""".split())
# Forms of before 2.0, for which there are no kernels of this kind, and neither for their gradients.
_DEPRECATED = frozenset("""
bicubic_interp bilinear_interp crop expand fill generate_proposals isinf isnan linear_interp matmul nearest_interp reshape
top_k trilinear_interp
""".split())
_GRADIENTS = {"_grad_grad": "_double_grad", "_triple_grad": "_triple_grad", "_grad": "_grad"}
_OWN = ("batch_norm_grad_grad", "conv2d_grad_grad")  # kernels that are called as the operators


def _get_phi_kernel_name(op_type):
    """The kernel's name of an operator's type; the type itself where they are called alike or it is unknown.

    >>> _get_phi_kernel_name("elementwise_add_grad")
    'add_grad'
    """
    if not isinstance(op_type, str):
        raise TypeError(f"_get_phi_kernel_name: expected an operator's type, got {type(op_type).__name__}")
    for old, new in _GRADIENTS.items():
        if op_type.endswith(old) and op_type not in _OWN:
            base = op_type.removesuffix(old)
            return "deprecated" if base in _DEPRECATED else _NAMES.get(base, base) + new
    return "deprecated" if op_type in _DEPRECATED else _NAMES.get(op_type, op_type)


def gradient_node(op_type):
    """Paddle's name of the node that an operator leaves for its gradient.

    >>> gradient_node("elementwise_add")
    'AddGradNode'
    """
    words = _get_phi_kernel_name(op_type).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "GradNode"
