"""paddle.utils.run_check, which tests the installation, and require_version, which checks the Paddle version that a
script needs."""
import re

# the release of Paddle whose behavior Proa follows: what scripts mean when they ask for a version
FOLLOWS = "2.6.2"


def run_check():
    """Trains a small layer for a step on the CPU and says whether that worked."""
    from .. import _core, nn, optimizer
    net = nn.Linear(4, 2)
    x = _core.to_tensor([[1.0, 2.0, 3.0, 4.0]])
    sgd = optimizer.SGD(0.01, parameters=net.parameters())
    first = (net(x) ** 2).sum()
    first.backward()
    sgd.step()
    second = (net(x) ** 2).sum()
    if not float(second) < float(first):
        raise RuntimeError(f"run_check: a training step must lower the loss, got {float(first)} and then "
                           f"{float(second)}; Proa does not work on this machine")
    print(_core.build_info())
    print("Proa works well on the CPU.")


def _parts(text, what):
    if not isinstance(text, str):
        raise TypeError(f"require_version: {what} must be a str, got {type(text).__name__}")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", text):
        raise ValueError(f"require_version: {what} must look like '2.1.0', got {text!r}")
    numbers = [int(n) for n in text.split(".")]
    return numbers + [0] * (4 - len(numbers))


def require_version(min_version, max_version=None):
    """Exception unless the Paddle release whose behavior Proa follows lies in [min_version, max_version]."""
    lowest = _parts(min_version, "min_version")
    highest = _parts(max_version, "max_version") if max_version is not None else None
    own = _parts(FOLLOWS, "version")
    if own < lowest or (highest is not None and own > highest):
        wanted = f">= {min_version}" + (f" and <= {max_version}" if max_version is not None else "")
        raise Exception(f"require_version: Paddle {wanted} is asked for; Proa follows {FOLLOWS}")
