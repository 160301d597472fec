"""AMP on a CPU in float16: no effect in Paddle, and so here."""
import warnings

import paddle
from parity import case, rand


@case("paddle.amp.auto_cast", "paddle.amp.GradScaler", "paddle.amp.GradScaler.scale", "paddle.amp.GradScaler.step",
      "paddle.amp.GradScaler.update", "paddle.amp.GradScaler.is_enable", "paddle.amp.GradScaler.state_dict",
      "paddle.amp.GradScaler.minimize", "paddle.amp.GradScaler.unscale_", "paddle.amp.GradScaler.load_state_dict",
      grad=False)
def no_effect():
    warnings.simplefilter("ignore")
    x = rand(3, 3)
    o = paddle.optimizer.SGD(0.1, parameters=[x])
    scaler = paddle.amp.GradScaler(init_loss_scaling=1024)
    with paddle.amp.auto_cast(custom_white_list={"elementwise_add"}, custom_black_list={"matmul_v2"}):
        y = paddle.matmul(x, x) + x
    scaled = scaler.scale(y.sum())
    scaled.backward()
    scaler.unscale_(o)
    scaler.step(o)
    scaler.update()
    scaler.load_state_dict({})
    return [y, scaled, x, scaler.is_enable(), scaler.state_dict()]


@case("paddle.amp.decorate", "paddle.amp.is_float16_supported", grad=False)
def decorate():
    net = paddle.nn.Linear(2, 2)
    o = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    made = paddle.amp.decorate(net, o, level="O2")
    return [made[0] is net, made[1] is o, net.weight.dtype == paddle.float32, paddle.amp.is_float16_supported()]
