"""Tensor-parallel layers of quantized operands on two ranks, against what one process computes of the parts."""
from _job import passes

SCRIPT = """
import proa.nn as nn, proa.nn.functional as F
from proa.distributed import fleet
from proa.distributed.fleet.meta_parallel import ColumnParallelLinear, RowParallelLinear
from proa.nn.quant.quant_layers import QuantizedColumnParallelLinear, QuantizedLinear, QuantizedRowParallelLinear
strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 2, "pp_degree": 1}
fleet.init(is_collective=True, strategy=strategy)
rank = fleet.get_hybrid_communicate_group().get_model_parallel_rank()
rng = np.random.RandomState(0)
x, w, b = (rng.uniform(-1, 1, s).astype("float32") for s in ((3, 8), (8, 6), (6,)))
kinds = {"weight_quantize_type": "channel_wise_abs_max"}

def whole(rows=slice(None)):
    layer = nn.Linear(w[rows].shape[0], 6, bias_attr=False)
    layer.weight.set_value(w[rows])
    return QuantizedLinear(layer, **kinds)

own = ColumnParallelLinear(8, 6, has_bias=True, gather_output=True)
own.weight.set_value(np.split(w, 2, 1)[rank])
own.bias.set_value(np.split(b, 2)[rank])
data = paddle.to_tensor(x, stop_gradient=False)
out = QuantizedColumnParallelLinear(own, **kinds)(data)
same = paddle.to_tensor(x, stop_gradient=False)
want = whole()(same) + paddle.to_tensor(b)
np.testing.assert_allclose(out.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
out.sum().backward(); want.sum().backward()
np.testing.assert_allclose(data.grad.numpy(), same.grad.numpy(), rtol=1e-5, atol=1e-6)

for parallel in (True, False):
    own = RowParallelLinear(8, 6, has_bias=True, input_is_parallel=parallel)
    own.weight.set_value(np.split(w, 2, 0)[rank])
    own.bias.set_value(b)
    out = QuantizedRowParallelLinear(own, **kinds)(paddle.to_tensor(np.split(x, 2, 1)[rank] if parallel else x))
    parts = [whole(rows)(paddle.to_tensor(x[:, rows])).numpy() for rows in (slice(0, 4), slice(4, 8))]
    np.testing.assert_allclose(out.numpy(), sum(parts) + b, rtol=1e-5, atol=1e-6)
"""


def test_two_ranks(tmp_path):
    passes(tmp_path, 2, SCRIPT)
