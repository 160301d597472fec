"""paddle.nn: layers, and below it functional, initializer and utils."""
from . import functional, initializer, utils  # noqa: F401
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue  # noqa: F401
from .decode import BeamSearchDecoder, dynamic_decode  # noqa: F401
from .layer.activation import (CELU, ELU, GELU, GLU, SELU, Hardshrink, Hardsigmoid, Hardswish,  # noqa: F401
                               Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Maxout, Mish, PReLU, ReLU, ReLU6, RReLU,
                               Sigmoid, Silu, Softmax, Softmax2D, Softplus, Softshrink, Softsign, Swish, Tanh,
                               Tanhshrink, ThresholdedReLU)
from .layer.common import (AlphaDropout, Bilinear, CosineSimilarity, Dropout, Dropout2D, Dropout3D,  # noqa: F401
                           Embedding, Flatten, Fold, Identity, Linear, Pad1D, Pad2D, Pad3D, Unflatten, Unfold,
                           Upsample, UpsamplingBilinear2D, UpsamplingNearest2D, ZeroPad2D)
from .layer.container import LayerDict, LayerList, ParameterList, Sequential  # noqa: F401
from .layer.conv import (Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose)  # noqa: F401
from .layer.distance import PairwiseDistance  # noqa: F401
from .layer.layers import Layer  # noqa: F401
from .layer.loss import (BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, CTCLoss,  # noqa: F401
                         GaussianNLLLoss, HingeEmbeddingLoss, HSigmoidLoss, KLDivLoss, L1Loss, MarginRankingLoss,
                         MSELoss, MultiLabelSoftMarginLoss, MultiMarginLoss, NLLLoss, PoissonNLLLoss, SmoothL1Loss,
                         SoftMarginLoss, TripletMarginLoss, TripletMarginWithDistanceLoss)
from .layer.norm import (BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, GroupNorm, InstanceNorm1D,  # noqa: F401
                         InstanceNorm2D, InstanceNorm3D, LayerNorm, LocalResponseNorm, SpectralNorm, SyncBatchNorm)
from .layer.pooling import (AdaptiveAvgPool1D, AdaptiveAvgPool2D, AdaptiveAvgPool3D, AdaptiveMaxPool1D,  # noqa: F401
                            AdaptiveMaxPool2D, AdaptiveMaxPool3D, AvgPool1D, AvgPool2D, AvgPool3D, MaxPool1D,
                            MaxPool2D, MaxPool3D, MaxUnPool1D, MaxUnPool2D, MaxUnPool3D)
from .layer.rnn import (GRU, LSTM, RNN, BiRNN, GRUCell, LSTMCell, RNNCellBase, SimpleRNN,  # noqa: F401
                        SimpleRNNCell)
from .layer.transformer import (MultiHeadAttention, Transformer, TransformerDecoder,  # noqa: F401
                                TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer)
from .layer.vision import ChannelShuffle, PixelShuffle, PixelUnshuffle  # noqa: F401
