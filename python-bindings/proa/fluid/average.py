"""fluid.average: WeightedAverage, a running weighted mean of numbers."""
import numpy

__all__ = ["WeightedAverage"]


class WeightedAverage:
    """The mean of values with weights."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Forgets all values."""
        self.numerator = self.denominator = None

    def add(self, value, weight):
        """One more value."""
        if not isinstance(value, (int, float, numpy.ndarray, numpy.generic)):
            raise ValueError("The 'value' must be a number(int, float) or a numpy ndarray.")
        if not isinstance(weight, (int, float)):
            raise ValueError("The 'weight' must be a number(int, float).")
        self.numerator = (0 if self.numerator is None else self.numerator) + value * weight
        self.denominator = (0 if self.denominator is None else self.denominator) + weight

    def eval(self):
        """The mean."""
        if not self.denominator:
            raise ValueError("There is no data to be averaged in WeightedAverage.")
        return self.numerator / self.denominator
