"""paddle.audio.datasets: sounds with a label each, from archives that are there already: nothing is fetched."""
from .esc50 import ESC50
from .tess import TESS

__all__ = ["ESC50", "TESS"]
