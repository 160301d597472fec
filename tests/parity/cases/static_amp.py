"""Mixed precision in programs. Real Paddle has bfloat16 products on processors with AVX-512 alone."""
import numpy as np
import paddle
import paddle.static as static
from parity import array, case


def trained(decorate, steps=5):
    a, b = (paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(array(*s).astype("float32")))
            for s in ((5, 8), (8, 1)))
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x, y = static.data("x", [None, 5]), static.data("y", [None, 1])
            loss = ((static.nn.fc(static.nn.fc(x, 8, weight_attr=a, activation="relu"), 1, weight_attr=b) - y) ** 2).mean()
            opt = decorate(paddle.optimizer.SGD(0.01))
            opt.minimize(loss)
            exe = static.Executor(paddle.CPUPlace())
            exe.run(startup)
            feed = {"x": array(6, 5).astype("float32"), "y": array(6, 1).astype("float32")}
            return [float(np.asarray(exe.run(main, feed, [loss])[0], "float32")) for _ in range(steps)]
    finally:
        paddle.disable_static()


@case("paddle.static.amp.bf16.decorate_bf16", "paddle.static.amp.bf16.AutoMixedPrecisionListsBF16",
      tol=0.03)  # bfloat16, rounded at other places
def in_bfloat16():
    with open("/proc/cpuinfo") as info:
        products = None if " avx512bw" in info.read() else {"mul", "matmul", "matmul_v2"}
    lists = static.amp.bf16.AutoMixedPrecisionListsBF16(custom_fp32_list=products)
    return trained(lambda opt: static.amp.bf16.decorate_bf16(opt, amp_lists=lists))


@case("paddle.static.amp.CustomOpLists", "paddle.static.amp.bf16.convert_float_to_uint16")
def lists_and_bits():
    try:
        static.amp.CustomOpLists(custom_white_list={"softmax"}, custom_black_list={"softmax"})
        overlap = "nothing"
    except ValueError:
        overlap = "ValueError"
    return overlap, np.asarray(static.amp.bf16.convert_float_to_uint16(np.array([1.0, 0.1, -3.3], "float32")))
