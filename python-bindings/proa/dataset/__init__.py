"""paddle.dataset: the tools of Paddle 1's data sets; the sets themselves are in paddle.vision and paddle.text."""
from . import common
