"""PaddleHelix: blocks of sequences and molecules."""
import importlib

import inputs

ABSENT = "pgl.graph_kernel rdkit sklearn networkx ogb visualdl pandas"
PATHS = [".", "../PGL"]


def load():
    import pahelix.networks  # noqa: F401


def net(module, name, *shapes, **more):
    def make():
        found = getattr(importlib.import_module(f"pahelix.networks.{module}"), name)
        return found(**more), [inputs.floats(*shape) for shape in shapes], {"fixed": True}
    return make


MODELS = {
    "MLP": net("basic_block", "MLP", (4, 6), layer_num=2, in_size=6, hidden_size=8, out_size=3, act="relu", dropout_rate=0.0),
    "RBF": net("basic_block", "RBF", (5,), centers=[0.0, 0.5, 1.0], gamma=2.0),
}
