"""PaddleVideo: backbones of clips and skeletons."""
import importlib

import inputs

ABSENT = "decord av lmdb visualdl pandas sklearn pims tqdm sentencepiece ftfy regex h5py"


def load():
    import paddlevideo.modeling  # noqa: F401


def net(module, name, *shapes, kind="backbones", **more):
    def make():
        found = getattr(importlib.import_module(f"paddlevideo.modeling.{kind}.{module}"), name)
        return found(**more), [inputs.floats(*shape) for shape in shapes], {"fixed": True}
    return make


MODELS = {
    "AGCN": net("agcn", "AGCN", (1, 2, 16, 25, 1)),
    "STGCN": net("stgcn", "STGCN", (1, 2, 16, 25, 1)),
    "CTRGCN": net("ctrgcn", "CTRGCN", (1, 3, 8, 25, 1), num_person=1, base_channel=8),
    "BMN": net("bmn", "BMN", (1, 8, 10), tscale=10, dscale=10, prop_boundary_ratio=0.5, num_sample=4, num_sample_perbin=3,
               feat_dim=8),
    "MSTCN": net("ms_tcn", "MSTCN", (1, 8, 20), num_stages=2, num_layers=3, num_f_maps=8, dim=8, num_classes=4),
    "ASRF": net("asrf", "ASRF", (1, 8, 20), in_channel=8, num_features=8, num_classes=4, num_stages=2, num_layers=3),
    "ResNetTSM": net("resnet_tsm", "ResNetTSM", (4, 3, 32, 32), depth=18, num_seg=4),
    "VisionTransformer": net("vit", "VisionTransformer", (1, 3, 2, 32, 32), img_size=32, embed_dim=32, depth=2, num_heads=4,
                             num_seg=2),
    "MoViNet": net("movinet", "MoViNet", (1, 3, 4, 32, 32), hidden_dim=64, num_classes=5),
}
