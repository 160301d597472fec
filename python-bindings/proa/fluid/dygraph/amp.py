"""fluid.dygraph.amp: amp_guard and AmpScaler, the 2.0 names of auto_cast and GradScaler."""
from ...amp import GradScaler as AmpScaler, auto_cast as amp_guard

__all__ = ["AmpScaler", "amp_guard"]
