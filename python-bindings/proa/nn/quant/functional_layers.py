"""Functions (add, reshape, …) as layers, so that quantizers can be attached to their inputs and outputs."""
from ... import tensor as functions
from ..layer.layers import Layer

__all__ = ["FloatFunctionalLayer", "add", "concat", "divide", "flatten", "matmul", "multiply", "reshape", "subtract", "transpose"]


class FloatFunctionalLayer(Layer):
    """The base of layers that call one function."""


class add(FloatFunctionalLayer):
    """x + y."""

    def forward(self, x, y, name=None):
        return functions.add(x, y, name)


class subtract(FloatFunctionalLayer):
    """x − y."""

    def forward(self, x, y, name=None):
        return functions.subtract(x, y, name)


class multiply(FloatFunctionalLayer):
    """x · y."""

    def forward(self, x, y, name=None):
        return functions.multiply(x, y, name)


class divide(FloatFunctionalLayer):
    """x / y."""

    def forward(self, x, y, name=None):
        return functions.divide(x, y, name)


class reshape(FloatFunctionalLayer):
    """paddle.reshape."""

    def forward(self, x, shape, name=None):
        return functions.reshape(x, shape, name)


class transpose(FloatFunctionalLayer):
    """paddle.transpose."""

    def forward(self, x, perm, name=None):
        return functions.transpose(x, perm, name)


class concat(FloatFunctionalLayer):
    """paddle.concat."""

    def forward(self, x, axis=0, name=None):
        return functions.concat(x, axis, name)


class flatten(FloatFunctionalLayer):
    """paddle.flatten."""

    def forward(self, x, start_axis=0, stop_axis=-1, name=None):
        return functions.flatten(x, start_axis, stop_axis, name)


class matmul(FloatFunctionalLayer):
    """paddle.matmul."""

    def forward(self, x, y, transpose_x=False, transpose_y=False, name=None):
        return functions.matmul(x, y, transpose_x, transpose_y, name)
