"""fluid.nets: compositions of layers (convolution with pooling, attention, …)."""
from . import layers

__all__ = ["glu", "img_conv_group", "scaled_dot_product_attention", "sequence_conv_pool", "simple_img_conv_pool"]


def simple_img_conv_pool(input, num_filters, filter_size, pool_size, pool_stride, pool_padding=0, pool_type="max",
                         global_pooling=False, conv_stride=1, conv_padding=0, conv_dilation=1, conv_groups=1,
                         param_attr=None, bias_attr=None, act=None, use_cudnn=True):
    """A convolution and a pooling."""
    out = layers.conv2d(input, num_filters, filter_size, conv_stride, conv_padding, conv_dilation, conv_groups,
                        param_attr, bias_attr, act=act)
    return layers.pool2d(out, pool_size, pool_type, pool_stride, pool_padding, global_pooling)


def img_conv_group(input, conv_num_filter, pool_size, conv_padding=1, conv_filter_size=3, conv_act=None, param_attr=None,
                   conv_with_batchnorm=False, conv_batchnorm_drop_rate=0.0, pool_stride=1, pool_type="max",
                   use_cudnn=True):
    """Convolutions, each with a batch norm and a dropout if wanted, and a pooling."""
    count = len(conv_num_filter)

    def each(value):
        return list(value) if isinstance(value, (list, tuple)) else [value] * count
    padding, size, norms = each(conv_padding), each(conv_filter_size), each(conv_with_batchnorm)
    attrs, rates = each(param_attr), each(conv_batchnorm_drop_rate)
    out = input
    for i in range(count):
        act = None if norms[i] else conv_act
        out = layers.conv2d(out, conv_num_filter[i], size[i], padding=padding[i], param_attr=attrs[i], act=act)
        if norms[i]:
            out = layers.batch_norm(out, act=conv_act)
            if abs(rates[i]) > 1e-5:
                out = layers.dropout(out, rates[i])
    return layers.pool2d(out, pool_size, pool_type, pool_stride)


def sequence_conv_pool(input, num_filters, filter_size, param_attr=None, act="sigmoid", pool_type="max", bias_attr=None):
    """A convolution and a pooling over sequences."""
    out = layers.sequence_conv(input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(out, pool_type)


def glu(input, dim=-1):
    """The first half of dim times the sigmoid of the second."""
    a, b = layers.split(input, 2, dim)
    return layers.elementwise_mul(a, layers.sigmoid(b))


def scaled_dot_product_attention(queries, keys, values, num_heads=1, dropout_rate=0.0):
    """Attention of [batch, length, width] queries over keys and values, in heads."""
    if not len(queries.shape) == len(keys.shape) == len(values.shape) == 3:
        raise ValueError("Inputs queries, keys and values should all be 3-D tensors.")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError("The hidden size of queries and keys should be the same.")
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError("The max sequence length in value batch and in key batch should be the same.")
    if keys.shape[-1] % num_heads or values.shape[-1] % num_heads:
        raise ValueError(f"The hidden sizes of keys and values must be divisible by the number of heads, {num_heads}")

    def split(x, width):
        if num_heads == 1:
            return x
        x = layers.fc(x, width, num_flatten_dims=2, bias_attr=False)
        return layers.transpose(layers.reshape(x, [0, 0, num_heads, width // num_heads]), [0, 2, 1, 3])
    q, k, v = split(queries, queries.shape[-1]), split(keys, keys.shape[-1]), split(values, values.shape[-1])
    q = layers.scale(q, scale=(keys.shape[-1] // num_heads) ** -0.5)
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True))
    if dropout_rate:
        weights = layers.dropout(weights, dropout_rate, is_test=False)
    context = layers.matmul(weights, v)
    if num_heads == 1:
        return context
    context = layers.transpose(context, [0, 2, 1, 3])
    return layers.reshape(context, [0, 0, context.shape[2] * context.shape[3]])
