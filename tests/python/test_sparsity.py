"""paddle.incubate.asp and autotune beyond what real Paddle does: pruned weights that learn, and the number of workers."""
import time

import numpy as np
import pytest

import proa as paddle
from proa.incubate import asp, autotune
from proa.io import autotune as workers


def test_pruned_weights_go_on_learning():
    paddle.seed(1)
    net = paddle.nn.Linear(8, 8)
    optimizer = asp.decorate(paddle.optimizer.SGD(0.1, parameters=net.parameters()))
    asp.prune_model(net)
    seen = [net.weight.numpy()]
    for _ in range(3):
        net(paddle.ones([2, 8])).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        seen.append(net.weight.numpy())
    for before, after in zip(seen, seen[1:]):
        np.testing.assert_allclose(after, np.where(before == 0, 0, before - 0.2), rtol=1e-5, atol=1e-6)
    assert asp.calculate_density(seen[-1]) == 0.5 and not net.weight.stop_gradient


def test_too_few_inputs_are_said():
    net = paddle.nn.Linear(3, 8)
    before = net.weight.numpy()
    with pytest.warns(UserWarning, match=r"of shape \(3, 8\) is not pruned"):
        asp.prune_model(net, with_mask=False)
    np.testing.assert_array_equal(net.weight.numpy(), before)


def test_masks_of_dead_programs_are_forgotten():
    import gc
    from proa.incubate.asp import ASPHelper
    program = paddle.static.Program()
    asp.set_excluded_layers(["fc"], program)
    assert program in ASPHelper._infos
    del program
    gc.collect()
    assert all(p is paddle.static.default_main_program() for p in ASPHelper._infos)


class Slow(paddle.io.Dataset):
    def __getitem__(self, i):
        time.sleep(0.01)
        return np.float32([i])

    def __len__(self):
        return 12


def test_number_of_workers(monkeypatch):
    monkeypatch.setattr(workers.os, "cpu_count", lambda: 8)
    autotune.set_config({"dataloader": {"enable": True, "tuning_steps": 6}})
    try:
        slow = paddle.io.DataLoader(Slow(), batch_size=2)
        quick = paddle.io.DataLoader(paddle.io.TensorDataset([paddle.arange(12)]), batch_size=2, num_workers=2)
        own = paddle.io.DataLoader(Slow(), batch_sampler=[[0], [1]], num_workers=1)
    finally:
        autotune.set_config({"dataloader": {"enable": False}})
    assert slow.num_workers > 0 and slow.use_shared_memory
    assert quick.num_workers == 0 and not quick.use_shared_memory
    assert own.num_workers == 1
    assert paddle.io.DataLoader(Slow(), num_workers=1).num_workers == 1
    assert [b.shape for b in slow] == [[2, 1]] * 6
