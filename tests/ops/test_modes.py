"""Every op of the table in three modes, and every dtype of its samples: eagerly, under to_static and in static mode the
same bits, with optimizing passes 1e-5 of the range; gradients, and inputs that are written to, too. What does not hold yet
is a line of skips.txt (mode "modes") with its reason."""
import matrix
import modes
import runner
from proa import _core
from test_ops import TABLE, each, verdict


def prepared(case):
    """(function of the case's tensors, the tensors, which of them want gradients)"""
    given = runner.tensors(case)
    flat, wants = [], []
    takes = {f["name"] for f in matrix.tensor_fields(case.op) if "NO_GRAD" not in f["flags"]}
    differentiable = case.op["vjp"] not in (None, "none", "refused") and case.sample.get("gradient", True)
    for name, value in given.items():
        for t in value if isinstance(value, list) else [value]:
            if isinstance(t, _core.Tensor):
                if differentiable and name in takes and modes.floating(t):
                    wants.append(len(flat))
                flat.append(t)

    def function(*tensors):
        left = iter(tensors)
        mine = {k: [next(left) if isinstance(t, _core.Tensor) else t for t in v] if isinstance(v, list)
                else next(left) if isinstance(v, _core.Tensor) else v for k, v in given.items() if v is not None}
        result = getattr(_core, case.op["name"])(**mine, **case.attrs)
        return runner.outputs(case, mine, result)
    return function, flat, wants


@each([op for op in TABLE if op["samples"]])
def test_op(op, record_property):
    problems, tried = [], 0
    for case in map(runner.resolve, matrix.cases(op)):
        function, inputs, wants = prepared(case)
        problems += [f"{case.id}: {p}" for p in modes.compare(function, inputs, wants)]
        tried += 1
    record_property("in three modes", tried)
    verdict(op, "modes", problems, tried)
