"""paddle.nn.functional: layers' computations as functions without parameters of their own.

Functions that are exactly one op come from the op table; the modules here hold those that do more.
"""
from ... import _core
from ..._asks import named as _named

globals().update(_core.api("paddle.nn.functional"))

from .activation import (glu, gumbel_softmax, hardtanh_, leaky_relu_, log_softmax, prelu, rrelu, softmax, softmax_,
                         thresholded_relu_)
from .class_centers import class_center_sample, margin_cross_entropy
from .common import (alpha_dropout, bilinear, cosine_similarity, dropout, dropout2d, dropout3d,
                     fold, interpolate, label_smooth, linear, pad, unfold, upsample, zeropad2d)
from .conv import (conv1d, conv1d_transpose, conv2d, conv2d_transpose, conv3d,
                   conv3d_transpose)
from .distance import pairwise_distance
from .extension import gather_tree, sequence_mask
from .flash_attention import scaled_dot_product_attention
from .input import embedding, one_hot
from .loss import (binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy,
                   ctc_loss, dice_loss, gaussian_nll_loss, hsigmoid_loss, kl_div, l1_loss, log_loss, mse_loss,
                   nll_loss, npair_loss, poisson_nll_loss, sigmoid_focal_loss, smooth_l1_loss,
                   softmax_with_cross_entropy, square_error_cost)
from .margin_loss import (cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss,
                          multi_label_soft_margin_loss, multi_margin_loss, soft_margin_loss, triplet_margin_loss,
                          triplet_margin_with_distance_loss)
from .norm import (batch_norm, instance_norm, layer_norm, local_response_norm, normalize)
from .pooling import (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d,
                      adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d, avg_pool1d, avg_pool2d,
                      avg_pool3d, max_pool1d, max_pool2d, max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d)
from .sparse_attention import sparse_attention
from .transducer import rnnt_loss

_named(globals())
