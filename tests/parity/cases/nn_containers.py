"""Sequential, LayerList, LayerDict, ParameterList."""
import paddle
from paddle import nn

from parity import case, fill, rand, raised


@case("paddle.nn.Sequential")
def sequential():
    net = fill(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    return net(rand(2, 3)), net[0:2](rand(2, 3)), len(net), repr(net), net[-1] is net[2], raised(lambda: net[3])


@case("paddle.nn.Sequential")
def sequential_named():
    net = fill(nn.Sequential(("a", nn.Linear(3, 4)), ("b", nn.ReLU())))
    net["b"] = nn.Sigmoid()
    return net(rand(2, 3)), list(net.state_dict()), type(net["b"]).__name__, repr(net)


@case("paddle.nn.LayerList", "paddle.nn.LayerList.append", "paddle.nn.LayerList.extend",
      "paddle.nn.LayerList.insert", grad=False)
def layer_list():
    layers = nn.LayerList([nn.Linear(i + 1, 2) for i in range(3)])
    layers.append(nn.Linear(9, 2))
    layers.insert(1, nn.ReLU())
    layers.extend([nn.Linear(8, 2)])
    del layers[0]
    layers[-1] = nn.Tanh()
    return repr(layers), len(layers), len(layers[1:3]), list(layers.state_dict()), raised(lambda: layers[9])


@case("paddle.nn.LayerDict", "paddle.nn.LayerDict.clear", "paddle.nn.LayerDict.items", "paddle.nn.LayerDict.keys",
      "paddle.nn.LayerDict.pop", "paddle.nn.LayerDict.update", "paddle.nn.LayerDict.values", grad=False)
def layer_dict():
    layers = nn.LayerDict({"a": nn.Linear(1, 2), "b": nn.ReLU()})
    layers.update([("c", nn.Linear(3, 2)), ["b", nn.Tanh()]])
    layers["d"] = nn.Linear(4, 2)
    popped = layers.pop("a")
    result = [list(layers.keys()), [type(v).__name__ for v in layers.values()], [k for k, _ in layers.items()],
              repr(popped), len(layers), "c" in layers, list(layers), raised(lambda: layers["zz"])]
    layers.clear()
    return result, len(layers)


@case("paddle.nn.ParameterList", "paddle.nn.ParameterList.append")
def parameter_list():
    params = nn.ParameterList([paddle.create_parameter([3, 3], "float32") for _ in range(2)])
    params.append(paddle.create_parameter([3, 2], "float32"))
    fill(params)
    x = rand(2, 3)
    for p in params:
        x = paddle.matmul(x, p)
    return x, len(params), list(params.state_dict()), params[0]
