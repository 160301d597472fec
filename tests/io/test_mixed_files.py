"""convert_to_mixed_precision: models in float32 become models partly in half precision, which answer nearly the same."""
import numpy as np
import pytest

import proa as paddle
from proa import inference, nn
from proa.framework.program_desc import ProgramDesc
from proa.static import InputSpec


class Net(nn.Layer):
    """Convolutions with normalization and a residual, attention-like products, a head."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2D(1, 8, 3, padding=1), nn.BatchNorm2D(8), nn.Conv2D(8, 8, 3, padding=1)
        self.scale, self.out = nn.LayerNorm(64), nn.Linear(64, 5)

    def forward(self, x):
        y = nn.functional.relu(self.norm(self.first(x)))
        y = nn.functional.relu(self.second(y) + y)
        y = self.scale(paddle.flatten(y, 2))
        y = paddle.matmul(nn.functional.softmax(paddle.matmul(y, y, transpose_y=True) * 0.1), y)
        return self.out(y.mean(1))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    paddle.seed(2)
    net = Net()
    net.eval()
    paddle.jit.save(net, str(folder / "m"), input_spec=[InputSpec([None, 1, 8, 8], "float32", "x")])
    x = np.random.RandomState(0).rand(4, 1, 8, 8).astype("float32")
    return folder, x, net(paddle.to_tensor(x)).numpy()


def convert(folder, precision, **options):
    inference.convert_to_mixed_precision(str(folder / "m.pdmodel"), str(folder / "m.pdiparams"), str(folder / "h.pdmodel"),
                                         str(folder / "h.pdiparams"), precision, inference.PlaceType.CPU, **options)
    return ProgramDesc.parse((folder / "h.pdmodel").read_bytes())


def run(folder, x):
    predictor = inference.create_predictor(inference.Config(str(folder / "h.pdmodel"), str(folder / "h.pdiparams")))
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


@pytest.mark.parametrize("precision, dtype, away", [(inference.PrecisionType.Half, "float16", 0.005),
                                                    (inference.PrecisionType.Bfloat16, "uint16", 0.04)])
def test_answers_nearly_the_same(saved, precision, dtype, away):
    folder, x, want = saved
    desc = convert(folder, precision)
    weights = {n: desc.main.vars[n].dtype for op in desc.main.ops if op.type in ("conv2d", "matmul_v2") for n in op.input_names}
    assert set(weights.values()) == {dtype}
    assert (folder / "h.pdiparams").stat().st_size < 0.7 * (folder / "m.pdiparams").stat().st_size
    have = run(folder, x)
    assert have.dtype == np.float32 and 0 < np.abs(have - want).max() <= away * np.abs(want).max()


def test_lists_and_edges(saved):
    folder, x, want = saved
    desc = convert(folder, inference.PrecisionType.Half, black_list={"conv2d"})
    filters = [desc.main.vars[op.input("Filter")[0]].dtype for op in desc.main.ops if op.type == "conv2d"]
    assert filters == ["float32", "float32"] and np.abs(run(folder, x) - want).max() <= 0.005 * np.abs(want).max()
    convert(folder, inference.PrecisionType.Half, keep_io_types=False)
    assert run(folder, x.astype("float16")).dtype == np.float16
    with pytest.raises(ValueError, match="mixed_precision must be"):
        convert(folder, inference.PrecisionType.Float32)
