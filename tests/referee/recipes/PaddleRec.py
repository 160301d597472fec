"""PaddleRec: recommenders of models/*/*/net.py with small tables."""
import importlib.util

import inputs


def load():
    pass


def layer(path, name, **more):
    spec = importlib.util.spec_from_file_location("net_" + path.replace("/", "_").replace("-", "_"), f"models/{path}/net.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)(**more)


def ranked(path, name, sparse=6, dense=4, listed=True, **more):
    """Rankers: `sparse` inputs of ids, one of numbers. `listed`: ids come as a list."""
    def make():
        import paddle

        class Ranker(paddle.nn.Layer):
            def __init__(self):
                super().__init__()
                self.net = layer(path, name, **more)

            def forward(self, ids, numbers):
                return self.net(paddle.split(ids, sparse, axis=1) if listed else ids, numbers)
        return Ranker(), [inputs.ids(4, sparse, below=50), inputs.floats(4, dense)]
    return make


def plain(path, name, shape, ids=False, **more):
    def make():
        return layer(path, name, **more), [inputs.ids(*shape, below=20) if ids else inputs.floats(*shape)]
    return make


TABLE = dict(sparse_feature_number=50, sparse_feature_dim=5, dense_feature_dim=4)
MODELS = {
    "DeepFM": ranked("rank/deepfm", "DeepFMLayer", sparse_num_field=6, layer_sizes=[8, 8], listed=False,
                     **{**TABLE, "sparse_feature_dim": 5}),
    "WideDeep": ranked("rank/wide_deep", "WideDeepLayer", num_field=6, layer_sizes=[8, 8], **TABLE),
    "xDeepFM": ranked("rank/xdeepfm", "xDeepFMLayer", sparse_num_field=6, layer_sizes_cin=[4, 4], layer_sizes_dnn=[8, 8],
                      listed=False, **TABLE),
    "FM": ranked("rank/fm", "FMLayer", sparse_num_field=6, listed=False, **TABLE),
    "DNN": ranked("rank/dnn", "DNNLayer", num_field=6, layer_sizes=[8, 8], **TABLE),
    "DCN_V2": ranked("rank/dcn_v2", "DCN_V2Layer", sparse_num_field=6, layer_sizes=[8, 8], cross_num=2, is_Stacked=True,
                     use_low_rank_mixture=False, low_rank=4, num_experts=2, listed=False, **TABLE),
    "GateDNN": ranked("rank/gatenet", "GateDNNLayer", num_field=6, layer_sizes=[8, 8], use_embedding_gate=True,
                      use_hidden_gate=True, **TABLE),
    "MMoE": plain("multitask/mmoe", "MMoELayer", (4, 10), feature_size=10, expert_num=3, expert_size=4, tower_size=4, gate_num=2),
    "PLE": plain("multitask/ple", "PLELayer", (4, 10), feature_size=10, task_num=2, exp_per_task=2, shared_num=1, expert_size=4,
                 tower_size=4, level_number=1),
    "ShareBottom": plain("multitask/share_bottom", "ShareBottomLayer", (4, 10), feature_size=10, task_num=2, bottom_size=6,
                         tower_size=4),
    "TextCNN": plain("contentunderstanding/textcnn", "TextCNNLayer", (3, 8), True, dict_dim=20, emb_dim=6, class_dim=2, cnn_dim=4,
                     hidden_size=5),
}
