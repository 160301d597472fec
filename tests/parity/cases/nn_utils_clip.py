"""nn.utils and the gradient clips."""
import paddle
from paddle import nn

from parity import case, fill, rand

U = "paddle.nn.utils."


def pairs():
    params = [paddle.create_parameter([2, 3], "float32") for _ in range(3)]
    params[1].need_clip = False
    grads = [rand(2, 3, grad=False), rand(2, 3, grad=False), None]
    return list(zip(params, grads))


@case("paddle.nn.ClipGradByValue", "paddle.nn.ClipGradByNorm", "paddle.nn.ClipGradByGlobalNorm", grad=False)
def clips():
    result = []
    for clip in (nn.ClipGradByValue(0.5), nn.ClipGradByValue(1.0, -0.25), nn.ClipGradByNorm(1.0),
                 nn.ClipGradByNorm(100.0), nn.ClipGradByGlobalNorm(1.0), nn.ClipGradByGlobalNorm(100.0),
                 nn.ClipGradByGlobalNorm(1.0, auto_skip_clip=True)):
        result.append([str(clip), [g for _, g in clip(pairs()) if g is not None]])
    return result


@case(U + "weight_norm", U + "remove_weight_norm", tol=1e-4)  # epsilons stand at other places
def weight_norm():
    x, result = rand(2, 4), []
    for dim in (0, 1, None):
        net = nn.utils.weight_norm(fill(nn.Linear(4, 3)), dim=dim)
        result.append([net(x), sorted(n for n, _ in net.named_parameters()), net.weight_g.shape])
        nn.utils.remove_weight_norm(net)
        result.append([net(x), sorted(n for n, _ in net.named_parameters())])
    return result


@case(U + "spectral_norm", tol=1e-4)  # after many iterations the singular value is the same
def spectral_norm():
    net = nn.utils.spectral_norm(fill(nn.Linear(4, 3)), n_power_iterations=200)
    return net(rand(2, 4)), sorted(net.state_dict())


@case(U + "parameters_to_vector", U + "vector_to_parameters", grad=False)
def vectors():
    net = fill(nn.Linear(3, 2))
    vec = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(vec * 2, net.parameters())
    return vec, vec.stop_gradient, net.weight, net.bias


@case(U + "clip_grad_norm_", U + "clip_grad_value_", grad=False)
def clip_grads():
    result, x = [], rand(4, 3, grad=False)
    for kind in (2.0, 1, float("inf")):
        net = fill(nn.Linear(3, 2))
        (net(x) ** 2).sum().backward()
        total = nn.utils.clip_grad_norm_(net.parameters(), 0.5, kind)
        result.append([total, net.weight.grad, net.bias.grad])
        nn.utils.clip_grad_value_(net.parameters(), 0.1)
        result.append(net.weight.grad)
    return result
