"""The softmax family in real Paddle."""
import paddle


def softmax(x, axis=-1):
    return paddle.nn.functional.softmax(x, axis=axis)


def log_softmax(x, axis=-1):
    return paddle.nn.functional.log_softmax(x, axis=axis)
