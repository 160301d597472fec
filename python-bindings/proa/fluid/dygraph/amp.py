"""fluid.dygraph.amp: mixed precision."""
from ...amp import GradScaler as AmpScaler, auto_cast as amp_guard

__all__ = ["AmpScaler", "amp_guard"]
