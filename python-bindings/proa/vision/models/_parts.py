"""Shared parts of the image models: convolution with normalization, channel rounding, the refusal to download."""
from ... import nn


def pretrained_refused(pretrained, name):
    """Proa downloads nothing: a request for trained weights is an error that says how to load them."""
    if pretrained:
        raise ValueError(f"{name}: pretrained=True needs a download, which Proa does not do; get the .pdparams "
                         "file that Paddle publishes for this model and call "
                         "net.set_state_dict(paddle.load('weights.pdparams'))")


def rounded(channels, divisor=8, least=None):
    """The multiple of divisor nearest to channels, never more than a tenth below it."""
    value = max(least or divisor, int(channels + divisor / 2) // divisor * divisor)
    return value + divisor if value < 0.9 * channels else value


class ConvNormActivation(nn.Sequential):
    """A convolution (its padding keeps the size at stride 1), a normalization, an activation."""

    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1,
                 norm_layer=nn.BatchNorm2D, activation_layer=nn.ReLU, dilation=1, bias=None):
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        if bias is None:
            bias = norm_layer is None
        parts = [nn.Conv2D(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation,
                           groups=groups, bias_attr=None if bias else False)]
        if norm_layer is not None:
            parts.append(norm_layer(out_channels))
        if activation_layer is not None:
            parts.append(activation_layer())
        super().__init__(*parts)
