"""paddle.incubate.asp: masks, pruned layers and programs, optimizers that keep what was pruned; incubate.autotune."""
import json
import os
import tempfile
import warnings

import numpy as np
import paddle
from paddle.incubate import asp

from parity import array, case, fill, raised

A = "paddle.incubate.asp."
ALGORITHMS = ("mask_1d", "mask_2d_greedy", "mask_2d_best")


@case(A + "calculate_density", grad=False)
def masks_of_arrays():
    algorithms = list(asp.MaskAlgo)
    shapes = [(8,), (8, 8), (6, 5), (2, 3, 8), (3, 3, 8, 5)]
    arrays = [array(*shape) for shape in shapes]
    made = [[asp.create_mask(a, func_name=f, n=n, m=m) for f in algorithms] for a in arrays for n, m in ((2, 4), (1, 2))]
    checks = [[asp.check_sparsity(a * mask, func_name=c, n=2, m=4) for mask in made[2 * i] for c in asp.CheckMethod]
              for i, a in enumerate(arrays)]
    return (made, checks, [asp.check_sparsity(a, func_name=c) for a in arrays for c in asp.CheckMethod],
            [asp.calculate_density(m) for row in made for m in row], asp.calculate_density(np.array([[0, 1, 3, 0], [1, 1, 0, 1]])),
            [asp.CheckMethod.get_checking_method(f).value for f in algorithms],
            [raised(lambda a=a: asp.create_mask(*a)) for a in ((arrays[0], "mask_1d"), (array(1, 1, 1, 1, 1),))],
            raised(lambda: asp.check_sparsity(arrays[0], "mask_1d")), raised(lambda: asp.check_sparsity(array(1, 1, 1, 1, 1))))


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(4, 8, 3, padding=1)
        self.narrow = paddle.nn.Conv2D(3, 4, 1)
        self.first, self.last = paddle.nn.Linear(8 * 16, 16), paddle.nn.Linear(16, 10)
        self.norm = paddle.nn.LayerNorm(16)

    def forward(self, x):
        x = self.conv(self.narrow(x)).flatten(1)
        return self.last(self.norm(paddle.tanh(self.first(x))))


def _trained(net, optimizer, steps=2):
    for _ in range(steps):
        loss = (net(paddle.to_tensor(array(2, 3, 4, 4).astype("float32"))) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        for p in net.parameters():
            p.stop_gradient = False  # Paddle 2.6.2's masks leave True there, so that pruned weights stop learning


@case(A + "decorate", A + "prune_model", A + "set_excluded_layers", A + "reset_excluded_layers", grad=False)
def eager_training():
    results = []
    for algorithm in ALGORITHMS:
        net = fill(Net())
        asp.reset_excluded_layers()
        asp.set_excluded_layers([net.last.weight.name])
        optimizer = asp.decorate(paddle.optimizer.Momentum(0.1, parameters=net.parameters()))
        masks = asp.prune_model(net, mask_algo=algorithm)
        mine = [masks.get(p.name) for p in net.parameters()]
        _trained(net, optimizer)
        state = optimizer.state_dict()
        kept = [state[p.name + ".asp_mask"] for p in net.parameters() if p.name + ".asp_mask" in state]
        results.append(([p.numpy() for p in net.parameters()], mine, kept, [asp.calculate_density(p.numpy()) for p in net.parameters()]))
        optimizer.set_state_dict(state)
        partial = {k: v for k, v in state.items() if not k.endswith(".asp_mask")}
        results.append(raised(lambda: optimizer.set_state_dict(partial), AssertionError))
        asp.reset_excluded_layers()
        bare = asp.prune_model(fill(net), n=1, m=2, mask_algo=algorithm, with_mask=False)
        results.append([bare.get(p.name) for p in net.parameters()])
    return results, [raised(f) for f in (lambda: asp.prune_model(3), lambda: asp.prune_model(Net(), mask_algo="none"),
                                         lambda: asp.prune_model(Net()))]


@case(A + "decorate", A + "prune_model", grad=False)
def programs():
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x = paddle.static.data("x", [None, 8])
            hidden = paddle.static.nn.fc(x, 16, activation="tanh")
            loss = (paddle.static.nn.fc(hidden, 4) ** 2).mean()
            asp.set_excluded_layers(["fc_1"], main)
            optimizer = asp.decorate(paddle.optimizer.SGD(0.1))
            made = optimizer.minimize(loss, startup)
        executor = paddle.static.Executor()
        executor.run(startup)
        scope = paddle.static.global_scope()
        names = ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
        for name in names:
            tensor = scope.find_var(name).get_tensor()
            tensor.set(array(*np.array(tensor).shape).astype("float32"), paddle.CPUPlace())
        masks = asp.prune_model(main, mask_algo="mask_2d_greedy")
        losses = [executor.run(main, feed={"x": array(3, 8).astype("float32")}, fetch_list=[loss]) for _ in range(3)]
        weights = [np.array(scope.find_var(n).get_tensor()) for n in names]
        ops = [op.type for op in main.global_block().ops]
        ops = ops[len(ops) - ops[::-1].index("sgd")]
        asp.reset_excluded_layers(main)
        again = raised(lambda: asp.prune_model(main), AssertionError)
        return (masks, losses, weights, ops, len(made), sorted(p.name for p in main.all_parameters()),
                np.array(scope.find_var("fc_0.w_0.asp_mask").get_tensor()), again)
    finally:
        paddle.disable_static()


class Scaled(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([4, 4])


@case(A + "add_supported_layer", A + "prune_model", grad=False)
def layers_of_ones_own():
    def halves(weight, m, n, algorithm, name):
        seen.append((m, n, algorithm.value, name.rpartition(".")[2]))
        mask = np.zeros_like(weight)
        mask[:2] = 1
        return weight * mask, mask
    seen, net = [], fill(Scaled())
    before = asp.prune_model(net, with_mask=False)
    asp.add_supported_layer(Scaled, halves)
    named = paddle.nn.Linear(4, 4)
    asp.add_supported_layer(named.weight.name, halves)
    asp.add_supported_layer(paddle.nn.Embedding(4, 4))
    table = fill(paddle.nn.Embedding(4, 4))
    for layer in (net, named, table):
        asp.prune_model(layer, with_mask=False)
    return (net.weight.name in before, seen, net.weight, asp.calculate_density(named.weight.numpy()), table.weight,
            raised(lambda: asp.add_supported_layer(3), TypeError))


@case("paddle.incubate.autotune.set_config", grad=False)
def tuning():
    def warned(config):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            paddle.incubate.autotune.set_config(config)
        return len(seen) > 0
    good = {"kernel": {"enable": True, "tuning_range": [1, 5]}, "layout": {"enable": False}, "dataloader": {"enable": True, "tuning_steps": 4}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(good, file)
        answers = [warned(c) for c in (good, path, {"kernel": {"enable": 1}}, {"kernel": {"tuning_range": 3}}, {"layout": {"enable": 0}},
                                       {"dataloader": {"enable": 1}}, {"dataloader": {"tuning_steps": "a"}}, {}, path + ".none")]
    on = []
    for enable in (True, False):
        paddle.incubate.autotune.set_config({"kernel": {"enable": enable}, "dataloader": {"enable": enable, "tuning_steps": 3}})
        on.append(bool(paddle.get_flags("FLAGS_use_autotune")["FLAGS_use_autotune"]))
        data = paddle.io.TensorDataset([paddle.arange(12).reshape([6, 2])])
        on.append([batch[0] for batch in paddle.io.DataLoader(data, batch_size=4)])
    return answers, on, raised(lambda: paddle.incubate.autotune.set_config({"kernel": {"tuning_range": [1]}}), AssertionError)
