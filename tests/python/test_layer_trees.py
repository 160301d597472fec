"""Layers may be shared, but none may contain itself."""
import pytest

import proa as paddle

nn = paddle.nn


def test_cycles_are_refused_and_change_nothing():
    inner, other = nn.Sequential(nn.Linear(2, 2)), nn.LayerList()
    outer = nn.Sequential(inner)
    other.append(outer)
    for name, add in (("attribute", lambda: setattr(inner, "attribute", outer)),
                      ("x", lambda: inner.add_sublayer("x", inner)), ("0", lambda: inner.__setitem__(0, other)),
                      ("1", lambda: nn.LayerList.append(outer, other))):
        with pytest.raises(ValueError, match=f"sublayer '{name}' contains this layer"):
            add()
    assert len(other.parameters()) == 2 and len(inner.sublayers()) == 1


def test_shared_layers_are_one():
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.Sequential(shared), shared)
    net.again = shared
    assert len(net.parameters()) == 2
    assert set(net.state_dict()) == {f"{at}.{name}" for at in ("0", "1.0", "2", "again") for name in ("weight", "bias")}
    net(paddle.ones([1, 2])).sum().backward()
    assert shared.weight.grad is not None
