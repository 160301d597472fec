"""Bytes that recompute, pipeline stages and sharded ranks hold, counted by the allocator, against the formulas."""
import math

import pytest

import proa as paddle
from proa import _core
from proa.distributed.fleet.utils import recompute
from _job import passes

# An activation fills a block of the allocator, and products' packed operands, whose size is the instruction set's choice, are
# small beside it.
WIDTH, ROWS = 252, 4096


def chain(count):
    return [paddle.nn.Sequential(paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Tanh()) for _ in range(count)]


def segment(layers):
    def run(x):
        for layer in layers:
            x = layer(x)
        return x

    run.parameters = lambda: [p for layer in layers for p in layer.parameters()]
    return run


def test_recompute_holds_what_the_square_root_bound_says():
    """n layers in √n segments: √n checkpoints, and in backward the √n activations of one segment."""
    count = 144
    layers, each, x = chain(count), math.isqrt(count), paddle.ones([ROWS, WIDTH])
    for layer in layers:
        for p in layer.parameters():
            p.grad = paddle.zeros_like(p)
    before = _core.live_bytes()
    kept = layers[0](x)
    activation = _core.live_bytes() - before
    assert activation >= kept.size * 4
    del kept
    _core.peak_bytes(True)
    y = x
    for begin in range(0, count, each):
        y = recompute(segment(layers[begin:begin + each]), y)
    checkpoints = _core.live_bytes() - before
    y.sum().backward()
    peak = _core.peak_bytes(False) - before
    assert abs(checkpoints / (each * activation) - 1) < 0.05
    assert abs(peak / (2 * each * activation) - 1) < 0.1, (peak, 2 * each * activation)


STAGES = """
from proa import _core, nn
from proa.distributed import fleet
from proa.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
width, rows, micro = 252, 1024, MICRO

class Part(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[l for _ in range(4) for l in (nn.Linear(width, width), nn.Tanh())])
    def forward(self, x):
        return self.layers(x)

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"pp_degree": size}
strategy.pipeline_configs = {"accumulate_steps": micro, "micro_batch_size": rows, "schedule_mode": SCHEDULE}
fleet.init(is_collective=True, strategy=strategy)
hcg = fleet.get_hybrid_communicate_group()
layers = PipelineLayer([LayerDesc(Part) for _ in range(size)], topology=hcg.topology(), loss_fn=lambda out, y: (out * y).mean())
model, opt = fleet.distributed_model(layers), fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=layers.parameters()))
data = [paddle.ones([rows * micro, width]), paddle.ones([rows * micro, width])]
model.train_batch(data, opt)
before = _core.live_bytes()
given = paddle.ones([rows, width])
kept = layers(given)
activation = _core.live_bytes() - before - (0 if rank else given.size * 4)  # the first stage's input is a view of the batch
del kept, given
held, forward = [], model._forward_step

def counted(*args):
    result = forward(*args)
    while model._neighbors._under_way:
        model._neighbors._under_way.pop()[0].wait()
    held.append(_core.live_bytes() - before)
    return result

model._forward_step = counted
model.train_batch(data, opt)
want = {"1F1B": min(size - rank, micro), "F-then-B": micro}[SCHEDULE]
assert abs(max(held) / (want * activation) - 1) < 0.02, (rank, held, want, activation)
print("ok", rank, max(held), want * activation)
"""


@pytest.mark.parametrize("ranks, micro, schedule", [(4, 6, "1F1B"), (2, 4, "F-then-B")])
def test_stages_hold_what_their_schedule_says(tmp_path, ranks, micro, schedule):
    """1F1B: `stages − stage` micro-batches' activations at most; F-then-B: all micro-batches'."""
    body = STAGES.replace("MICRO", str(micro)).replace("SCHEDULE", repr(schedule))
    assert passes(tmp_path, ranks, body, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == ranks
