"""PairwiseDistance: the p-norm of differences of rows, as a layer."""
from .. import functional as F
from .stored import stored


class PairwiseDistance(stored(__name__, "PairwiseDistance", F.pairwise_distance, "p", "epsilon", "keepdim", prefix="")):
    """The p-norm of x - y + epsilon along the last axis."""

    def extra_repr(self):
        text = f"p={self.p}"
        if self.epsilon != 1e-6:
            text += f", epsilon={self.epsilon}"
        if self.keepdim is not False:
            text += f", keepdim={self.keepdim}"
        return text if self.name is None else f"{text}, name={self.name}"
