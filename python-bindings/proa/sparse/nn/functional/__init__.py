"""paddle.sparse.nn.functional: activations, softmax, convolution and pooling of sparse tensors, and attention."""
from .activation import leaky_relu, relu, relu6, softmax
from .attention import attention
from .conv import conv2d, conv3d, max_pool3d, subm_conv2d, subm_conv3d

__all__ = ["attention", "conv2d", "conv3d", "leaky_relu", "max_pool3d", "relu", "relu6", "softmax", "subm_conv2d",
           "subm_conv3d"]
