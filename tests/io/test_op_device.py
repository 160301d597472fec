"""device_guard's op_device: of operators and of their gradients, in Proa's programs and files as in real Paddle's."""
import json

import proa as paddle
import oracle

BUILD = """
def build(paddle):
    # ([(type, op_device)] of forward operators, op_device of those of gradients, the program)
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [None, 4])
        with paddle.static.device_guard("gpu:0"):
            hidden = paddle.tanh(paddle.static.nn.fc(x, 3))
            with paddle.static.device_guard("cpu"):
                hidden = paddle.exp(hidden)
            hidden = paddle.abs(hidden)
        with paddle.static.device_guard("gpu:1"):
            with paddle.static.device_guard(None):
                hidden = paddle.sin(hidden)
            loss = paddle.mean(paddle.static.nn.fc(hidden, 2))
        paddle.static.append_backward(loss)
    return main

def devices(program):
    ops = program.global_block().ops
    device = lambda op: op.attr("op_device") if op.has_attr("op_device") else ""
    forward = [(op.type, device(op)) for op in ops if op.attr("op_role") in (0, 256)]
    return forward, sorted({device(op) for op in ops if op.attr("op_role") & 1})
"""
THEIRS = BUILD + """
import json, sys
import paddle
paddle.enable_static()
ours = paddle.static.Program.parse_from_string(open(sys.argv[1], "rb").read())
theirs = build(paddle)
open(sys.argv[2], "wb").write(theirs.desc.serialize_to_string())
json.dump([devices(ours), devices(theirs)], open(sys.argv[3], "w"))
"""


def as_lists(found):
    return json.loads(json.dumps(found))


def test_devices_are_those_of_real_paddle(tmp_path):
    space = {}
    exec(BUILD, space)
    paddle.enable_static()
    try:
        main = space["build"](paddle)
        files = [tmp_path / name for name in ("ours", "theirs", "found")]
        files[0].write_bytes(main.desc.serialize_to_string())
        oracle.ask("-c", THEIRS, *files)
        ours_there, theirs = json.loads(files[2].read_text())
        ours = as_lists(space["devices"](main))
        theirs_here = as_lists(space["devices"](paddle.static.Program.parse_from_string(files[1].read_bytes())))
        copied = as_lists(space["devices"](main.clone()))
    finally:
        paddle.disable_static()
    theirs[0] = [["matmul_v2" if kind == "mul" else kind, device] for kind, device in theirs[0]]  # how fc is spelled
    assert ours[0] == theirs[0] and {"gpu:0", "gpu:1", "cpu", ""} == {device for _, device in ours[0]}
    assert ours_there == ours == copied
    assert [d for _, d in theirs_here[0]] == [d for _, d in theirs[0]] and set(theirs_here[1]) == set(theirs[1])
    assert {"gpu:0", "gpu:1", "cpu"} <= set(ours[1]) and {"gpu:0", "gpu:1", "cpu"} <= set(theirs[1])
