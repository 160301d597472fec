"""The recorded graph (grad_fn), what variables say of themselves, the region of a program on a device, tensor-parallel layers
of quantized operands, and modules that 2.6 has beside those of 2.1."""
import contextlib
import importlib
import io

import numpy as np
import paddle

from parity import array, case, fill, ints, rand, raised


def _chain(node):
    """The names along the first edges."""
    names = []
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0] if node.next_functions else None
    return names


@case("paddle.Tensor.grad_fn", grad=False)
def graph_behind_a_tensor():
    x, y = rand(2, 3), rand(2, 3)
    made = [x + y, x - y, x * y, x / y, paddle.matmul(x, y.T), x.tanh(), x.sum(), x.mean(), x.exp(), x.reshape([3, 2]), x.transpose([1, 0]), x[0],
            paddle.nn.functional.softmax(x), paddle.concat([x, y]), x**2, x.sqrt(), x.astype("float64"), x.max(), paddle.nn.functional.relu(x)]
    z = ((x * 2 + 1) * y).sum()
    return ([[m.grad_fn.name(), [n.name() for n in m.grad_fn.next_functions]] for m in made], _chain(z.grad_fn), _chain(x.grad_fn),
            z.detach().grad_fn, raised(lambda: setattr(z, "grad_fn", None)))


@case(*(f"paddle.static.Variable.{name}" for name in ("append", "attr", "attr_names", "is_parameter", "pop")), grad=False)
def variables_of_programs():
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            x = paddle.static.data("x", [2, 3])
            w = program.global_block().create_parameter(shape=[2], dtype="float32")
            before = list(x.attr_names), raised(lambda: x.attr("kind")), raised(lambda: x.append(x)), raised(lambda: x.pop())
            x._set_attr("kind", 3)
            items = paddle.tensor.create_array("float32")
            for n in range(4):
                items.append(x + n)
            bad = raised(lambda: items.append(3)), raised(lambda: items.pop("a"))
            taken = [items.pop(), items.pop(0)]
            left = [paddle.tensor.array_read(items, paddle.full([1], n, "int64")) for n in range(2)]
            found = paddle.static.Executor().run(program, feed={"x": np.ones([2, 3], "float32")},
                                                 fetch_list=[*taken, *left, paddle.tensor.array_length(items)])
        return before, list(x.attr_names), x.attr("kind"), x.is_parameter, w.is_parameter, bad, found
    finally:
        paddle.disable_static()


def _split(devices):
    """split_program_by_device of a chain of scales on these devices, with its numbers of operators and names."""
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup), paddle.utils.unique_name.guard():
        x = paddle.static.data("x", [2, 3])
        for device in devices:
            with paddle.static.device_guard(device):
                x = paddle.scale(x, 2.0)
    with contextlib.redirect_stdout(io.StringIO()):
        found = paddle.static.Executor(paddle.CPUPlace()).split_program_by_device(program)
    if found is None:
        return None
    first, last, sent, received, region = found
    return [first, last, len(sent), len(received), [op.type for op in region.global_block().ops]]


@case("paddle.static.Executor.split_program_by_device", grad=False)
def regions_of_devices():
    paddle.enable_static()
    try:
        return [_split(devices) for devices in (["cpu", "cpu"], ["cpu", "gpu", "gpu", "cpu"], ["cpu", "gpu", "cpu", "gpu", "cpu"], ["gpu", "gpu"],
                                                ["cpu", "gpu"], ["gpu", "cpu", "cpu"], [None, "gpu", None])]
    finally:
        paddle.disable_static()


@case(*(f"paddle.nn.quant.quant_layers.Quantized{kind}ParallelLinear{method}" for kind in ("Column", "Row") for method in ("", ".forward")))
def quantized_parallel_layers():
    from paddle.distributed import fleet
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 1, "pp_degree": 1}
    fleet.init(is_collective=True, strategy=strategy)
    layers, results = paddle.nn.quant.quant_layers, []
    for kind, options in (("Column", {"gather_output": True}), ("Row", {"input_is_parallel": True})):
        made = getattr(layers, f"Quantized{kind}ParallelLinear")
        for types in ({}, {"weight_quantize_type": "channel_wise_abs_max", "activation_quantize_type": "moving_average_abs_max"}):
            own = fill(getattr(fleet.meta_parallel, f"{kind}ParallelLinear")(4, 6, has_bias=True, **options))
            layer = made(own, **types)
            results += [layer(rand(3, 4)), layer.weight is own.weight]
        results.append([raised(lambda what=what: made(own, **{what: paddle.nn.ReLU}), AssertionError)
                        for what in ("weight_quant_layer", "act_quant_layer")])
    return results


@case("paddle.sparse.creation.sparse_coo_tensor", "paddle.sparse.creation.sparse_csr_tensor", grad=False)
def sparse_creation():
    creation = importlib.import_module("paddle.sparse.creation")
    coo = creation.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
    csr = creation.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], [2, 2])
    return coo.to_dense(), csr.to_dense(), creation.sparse_coo_tensor is paddle.sparse.sparse_coo_tensor


@case("paddle.text.viterbi_decode.ViterbiDecoder", "paddle.text.viterbi_decode.viterbi_decode", "paddle.text.viterbi_decode.ViterbiDecoder.forward",
      grad=False)
def viterbi_module():
    module = importlib.import_module("paddle.text.viterbi_decode")
    potentials, transitions, lengths = rand(2, 4, 3), rand(3, 3), ints(2, low=1, high=4)
    return module.viterbi_decode(potentials, transitions, lengths, False), module.ViterbiDecoder(transitions, False)(potentials, lengths)


@case("paddle.audio.datasets.ESC50.meta_info", "paddle.audio.datasets.TESS.meta_info", grad=False)
def rows_of_audio_sets():
    esc, tess = paddle.audio.datasets.ESC50.meta_info, paddle.audio.datasets.TESS.meta_info
    return esc._fields, tess._fields, esc.__name__, tess.__name__, tess("OAF", "back", "angry").emotion, array(1) is None
