"""fluid.contrib: what 2.1 documents of it."""
from ...static import amp as mixed_precision
