"""An op of the table is without a gradient rule only where Paddle 2.6.2 has no gradient either."""
import pathlib

import pytest

import matrix
import oracle
from conftest import BUILD, NEEDS_PADDLE

HERE = pathlib.Path(__file__).resolve().parent
TABLE = matrix.load_table(BUILD)
LIST = (HERE / "paddle_gradients.txt").read_text()
HAS_GRADIENT = {name: answer == "yes" for name, answer in
                (line.split() for line in LIST.splitlines() if not line.startswith("#"))}
# Written under another op's type, whose gradient that other op carries.
CARRIED = {"argsort": "sort"}
# Optimizing passes make these of ops whose gradients have been taken.
FUSED = dict.fromkeys(("conv2d_fused", "linear_fused", "linear_gelu", "linear_gelu_grad", "linear_weight_grad",
                       "fused_elementwise", "conv2d_pooled", "conv2d_pooled_grad_input",
                       "conv2d_pooled_grad_filter", "inverted_residual", "matmul_swapped",
                       "gelu_dropout", "gelu_dropout_grad"))
# A predictor's pass makes these, on integers.
INTEGERS = dict.fromkeys(("quantize_int8", "conv2d_int8", "conv2d_transpose_int8", "linear_int8", "matmul_int8",
                          "max_pool2d_int8", "avg_pool2d_int8", "add_int8", "affine_int8", "rnn_int8",
                          "embedding_int8"))
# Ops that Paddle's program format has no type for, by the type that they stand for, or why none is needed.
STANDS_FOR = {"scaled_dot_product_attention_grad": "flash_attn_grad", "global_squared_norm": None,
              "clip_by_global_norm": None,  # None: gradient clipping, which Paddle does where nothing is recorded
              "loop_grad": "while_grad", "array_create": None,  # an empty list: Paddle makes it by no op
              # a parameter server's: Paddle's forms name variables of scopes, where ours carry tables' numbers
              "distributed_lookup_table": "distributed_lookup_table", "distributed_push_sparse": "distributed_push_sparse",
              "ps_send": "send", "ps_send_barrier": "send_barrier", "ps_recv": None,
              "prroi_pool_grad": None, "sample_logits_grad": None,  # of operators that 2.1 was the last to have
              **FUSED, **INTEGERS}


def without_rule():
    return [op for op in TABLE if op["vjp"] in (None, "none", "refused")]


@pytest.mark.parametrize("op", without_rule(), ids=lambda op: op["name"])
def test_paddle_has_no_gradient_either(op):
    name = op["name"]
    assert op["vjp"], f"{name} says nothing of a gradient: write vjp: <rule>, none or refused"
    if name in CARRIED:
        carrier = next(o for o in TABLE if o["name"] == CARRIED[name])
        assert carrier["vjp"] not in (None, "none", "refused") and set(op["wires"]) & set(carrier["wires"])
        return
    if name in STANDS_FOR:
        assert not [w for w in op["wires"] if w in HAS_GRADIENT], f"Paddle does have {op['wires']}: drop the excuse"
        types = [STANDS_FOR[name]] if STANDS_FOR[name] else []
    else:
        types = [w for w in op["wires"] if w in HAS_GRADIENT]
        assert types, f"{name}: Paddle knows no type of {op['wires']}; say in STANDS_FOR why there is no gradient"
    wrong = [t for t in types if HAS_GRADIENT[t]]
    assert not wrong, f"{name} has vjp: {op['vjp']}, but Paddle has a gradient of {wrong}"


def test_refused_ops_are_gradients():
    """`refused` raises on backward, which only an op that a rule calls may do: others pass nothing back silently."""
    assert [op["name"] for op in TABLE if op["vjp"] == "refused" and not op["name"].endswith("_grad")
            and op["name"] not in FUSED] == []
    assert [op["name"] for op in TABLE if op["vjp"] == "none" and op["name"].endswith("_grad")] == []


@NEEDS_PADDLE
def test_the_list_is_paddles():
    assert oracle.ask(HERE / "list_gradients.py") == LIST, "write paddle_gradients.txt anew with list_gradients.py"
