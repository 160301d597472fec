"""paddle.nn.layer: the layers, which paddle.nn names, too."""
from .activation import (CELU, ELU, GELU, GLU, SELU, Hardshrink, Hardsigmoid, Hardswish,  # noqa: F401
                         Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Maxout, Mish, PReLU, ReLU, ReLU6, RReLU,
                         Sigmoid, Silu, Softmax, Softmax2D, Softplus, Softshrink, Softsign, Swish, Tanh,
                         Tanhshrink, ThresholdedReLU)
from .common import (AlphaDropout, Bilinear, CosineSimilarity, Dropout, Dropout2D, Dropout3D,  # noqa: F401
                     Embedding, Flatten, Fold, Identity, Linear, Pad1D, Pad2D, Pad3D, Unflatten, Unfold,
                     Upsample, UpsamplingBilinear2D, UpsamplingNearest2D, ZeroPad2D)
from .container import LayerDict, LayerList, ParameterList, Sequential  # noqa: F401
from .conv import (Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose)  # noqa: F401
from .distance import PairwiseDistance  # noqa: F401
from .layers import Layer  # noqa: F401
from .loss import (BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, CTCLoss, RNNTLoss,  # noqa: F401
                   GaussianNLLLoss, HingeEmbeddingLoss, HSigmoidLoss, KLDivLoss, L1Loss, MarginRankingLoss,
                   MSELoss, MultiLabelSoftMarginLoss, MultiMarginLoss, NLLLoss, PoissonNLLLoss, SmoothL1Loss,
                   SoftMarginLoss, TripletMarginLoss, TripletMarginWithDistanceLoss)
from .norm import (BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, GroupNorm, InstanceNorm1D,  # noqa: F401
                   InstanceNorm2D, InstanceNorm3D, LayerNorm, LocalResponseNorm, SpectralNorm, SyncBatchNorm)
from .pooling import (AdaptiveAvgPool1D, AdaptiveAvgPool2D, AdaptiveAvgPool3D, AdaptiveMaxPool1D,  # noqa: F401
                      AdaptiveMaxPool2D, AdaptiveMaxPool3D, AvgPool1D, AvgPool2D, AvgPool3D, MaxPool1D,
                      MaxPool2D, MaxPool3D, MaxUnPool1D, MaxUnPool2D, MaxUnPool3D)
from .rnn import (GRU, LSTM, RNN, BiRNN, GRUCell, LSTMCell, RNNCellBase, SimpleRNN,  # noqa: F401
                  SimpleRNNCell)
from .transformer import (MultiHeadAttention, Transformer, TransformerDecoder,  # noqa: F401
                          TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer)
from .vision import ChannelShuffle, PixelShuffle, PixelUnshuffle  # noqa: F401

__all__ = [name for name in globals() if name[0].isupper()]
