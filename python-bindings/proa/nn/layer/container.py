"""Layers that hold layers or parameters: Sequential, LayerList, LayerDict, ParameterList."""
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from ... import _core
from .layers import Layer, Parameter

__all__ = ["LayerDict", "LayerList", "ParameterList", "Sequential"]


class Sequential(Layer):
    """Layers applied one after the other: Sequential(layer, …) or Sequential((name, layer), …).

    >>> import proa as paddle
    >>> paddle.nn.Sequential(paddle.nn.Linear(4, 2), paddle.nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=2, dtype=float32)
      (1): ReLU()
    )
    """

    def __init__(self, *layers):
        super().__init__()
        if layers and isinstance(layers[0], (list, tuple)):
            for name, layer in layers:
                self.add_sublayer(name, layer)
        else:
            for i, layer in enumerate(layers):
                self.add_sublayer(str(i), layer)

    def __getitem__(self, name):
        if isinstance(name, str):
            return self._sub_layers[name]
        layers = list(self._sub_layers.values())
        if isinstance(name, slice):
            return type(self)(*layers[name])
        if not -len(layers) <= name < len(layers):
            raise IndexError(f"index {name} is out of range: this Sequential has {len(layers)} layers")
        return layers[name]

    def __setitem__(self, name, layer):
        if not isinstance(layer, Layer):
            raise TypeError(f"Sequential: item {name!r} must be a Layer, got {type(layer).__name__}")
        setattr(self, str(name), layer)

    def __delitem__(self, name):
        del self._sub_layers[str(name)]

    def __len__(self):
        return len(self._sub_layers)

    def forward(self, input):
        for layer in self._sub_layers.values():
            input = layer(input)
        return input


class LayerList(Layer):
    """A list of layers.

    >>> import proa as paddle
    >>> layers = paddle.nn.LayerList(paddle.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), len(layers.parameters())
    (3, 6)
    """

    def __init__(self, sublayers=None):
        super().__init__()
        for i, layer in enumerate(() if sublayers is None else sublayers):
            self.add_sublayer(str(i), layer)

    def _get_abs_idx(self, index):
        if isinstance(index, int):
            if not -len(self) <= index < len(self):
                raise IndexError(f"index {index} is out of range: it must be in [{-len(self)}, {len(self)})")
            if index < 0:
                index += len(self)
        return str(index)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._sub_layers.values())[idx])
        return self._sub_layers[self._get_abs_idx(idx)]

    def __setitem__(self, idx, sublayer):
        setattr(self, self._get_abs_idx(idx), sublayer)

    def __delitem__(self, idx):
        layers = list(self._sub_layers.values())
        del layers[idx if isinstance(idx, slice) else int(self._get_abs_idx(idx))]
        self._sub_layers = OrderedDict((str(i), layer) for i, layer in enumerate(layers))

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())

    def append(self, sublayer):
        """Adds a layer at the end."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def insert(self, index, sublayer):
        """Puts a layer before the one at index."""
        if not isinstance(index, int) or not -len(self) <= index < len(self):
            raise IndexError(f"LayerList.insert: index must be an int in [{-len(self)}, {len(self)}), got {index!r}")
        layers = list(self._sub_layers.values())
        layers.insert(index, sublayer)
        self._sub_layers = OrderedDict((str(i), layer) for i, layer in enumerate(layers))

    def extend(self, sublayers):
        """Adds layers at the end."""
        for i, layer in enumerate(sublayers, len(self)):
            self.add_sublayer(str(i), layer)
        return self


class LayerDict(Layer):
    """A dict of layers, in the order they were added.

    >>> import proa as paddle
    >>> layers = paddle.nn.LayerDict({"fc": paddle.nn.Linear(2, 2), "act": paddle.nn.ReLU()})
    >>> list(layers.keys())
    ['fc', 'act']
    """

    def __init__(self, sublayers=None):
        super().__init__()
        if sublayers is not None:
            self.update(sublayers)

    def __getitem__(self, key):
        return self._sub_layers[key]

    def __setitem__(self, key, sublayer):
        self.add_sublayer(key, sublayer)

    def __delitem__(self, key):
        del self._sub_layers[key]

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers)

    def __contains__(self, key):
        return key in self._sub_layers

    def clear(self):
        """Takes every layer out."""
        self._sub_layers.clear()

    def pop(self, key):
        """Takes the layer of that key out and returns it."""
        layer = self[key]
        del self[key]
        return layer

    def keys(self):
        """The keys."""
        return self._sub_layers.keys()

    def items(self):
        """The (key, layer) pairs."""
        return self._sub_layers.items()

    def values(self):
        """The layers."""
        return self._sub_layers.values()

    def update(self, sublayers):
        """Adds the layers of a mapping, or of an iterable of (key, layer)."""
        if not isinstance(sublayers, Iterable) or isinstance(sublayers, _core.Tensor):
            raise AssertionError(f"LayerDict.update: sublayers must hold (key, layer) pairs, got {type(sublayers).__name__}")
        pairs = sublayers.items() if isinstance(sublayers, (Mapping, LayerDict)) else sublayers
        for i, pair in enumerate(pairs):
            if len(pair) != 2:
                raise ValueError(f"LayerDict.update: entry {i} must be a (key, layer) pair, its length is {len(pair)}")
            self.add_sublayer(*pair)


class ParameterList(Layer):
    """A list of parameters.

    >>> import proa as paddle
    >>> params = paddle.nn.ParameterList([paddle.create_parameter([2, 2], "float32") for _ in range(3)])
    >>> len(params)
    3
    """

    def __init__(self, parameters=None):
        super().__init__()
        for i, parameter in enumerate(() if parameters is None else parameters):
            if not isinstance(parameter, Parameter):
                raise AssertionError(f"ParameterList: item {i} must be a Parameter, got {type(parameter).__name__}")
            self.add_parameter(str(i), parameter)

    def __getitem__(self, idx):
        return self._parameters[str(idx)]

    def __setitem__(self, idx, param):
        if not isinstance(param, Parameter):
            raise TypeError(f"ParameterList: item {idx} must be a Parameter, got {type(param).__name__}")
        setattr(self, str(idx), param)

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def append(self, parameter):
        """Adds a parameter at the end."""
        self.add_parameter(str(len(self)), parameter)
        return self
