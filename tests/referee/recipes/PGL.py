"""PGL: graph convolutions over one small graph."""
import numpy as np

import inputs

ABSENT = "pgl.graph_kernel ogb visualdl networkx gensim redis"
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (1, 3), (5, 0), (2, 5)]


def load():
    import pgl  # noqa: F401


def conv(name, *args, width=8, **more):
    def make():
        import paddle
        import pgl

        class Convolution(paddle.nn.Layer):
            def __init__(self):
                super().__init__()
                self.conv = getattr(pgl.nn, name)(*args, **more)
                self.graph = pgl.Graph(num_nodes=6, edges=np.array(EDGES)).tensor()

            def forward(self, feature):
                return self.conv(self.graph, feature)
        return Convolution(), [inputs.floats(6, width)], {"fixed": True}
    return make


MODELS = {
    "GCNConv": conv("GCNConv", 8, 4), "GATConv": conv("GATConv", 8, 4, feat_drop=0.0, attn_drop=0.0, num_heads=2),
    "GraphSageConv": conv("GraphSageConv", 8, 4), "GINConv": conv("GINConv", 8, 4), "APPNP": conv("APPNP", k_hop=3),
    "GCNII": conv("GCNII", 8, k_hop=3, dropout=0.0), "SGCConv": conv("SGCConv", 8, 4, cached=False),
    "TransformerConv": conv("TransformerConv", 8, 4, num_heads=2, feat_drop=0.0, attn_drop=0.0),
    "NGCFConv": conv("NGCFConv", 8, 4), "LightGCNConv": conv("LightGCNConv"),
    "SSGCConv": conv("SSGCConv", 8, 4, k_hop=3, cached=False),
}
