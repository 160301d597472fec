"""paddle.dataset: helpers of Paddle 1's data sets (common.py); the data sets themselves are in paddle.vision and
paddle.text."""
from . import common
