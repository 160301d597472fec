"""The counting ops in real Paddle."""
from paddle import bincount, histogram  # noqa: F401
