"""fluid.contrib.slim: quantization as 2.0 and 2.1 name it."""
from . import quantization
