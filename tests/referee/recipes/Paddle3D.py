"""Paddle3D: encoders, backbones and necks of point clouds."""
import importlib

import inputs

ABSENT = "numba nuscenes pyquaternion shapely skimage visualdl rarfile h5py filelock sklearn pycocotools motmetrics addict"


def load():
    import paddle3d  # noqa: F401


def net(module, name, *shapes, **more):
    def make():
        found = getattr(importlib.import_module(f"paddle3d.models.{module}"), name)
        return found(**more), [inputs.floats(*shape) for shape in shapes], {"fixed": True}
    return make


def neck():
    import paddle
    found = importlib.import_module("paddle3d.models.necks.second_fpn").SecondFPN

    class Neck(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.neck = found([4, 8, 16], [8, 8, 8], [1, 2, 4])

        def forward(self, a, b, c):
            return self.neck([a, b, c])
    return Neck(), [inputs.floats(1, 4, 16, 16), inputs.floats(1, 8, 8, 8), inputs.floats(1, 16, 4, 4)], {"fixed": True}


MODELS = {
    "SecondBackbone": net("backbones.second_backbone", "SecondBackbone", (1, 4, 16, 16), in_channels=4, out_channels=[4, 8],
                          layer_nums=[1, 1], downsample_strides=[1, 2]),
    "SecondFPN": neck,
    "PFNLayer": net("voxel_encoders.pillar_encoder", "PFNLayer", (6, 20, 5), in_channels=5, out_channels=8, last_layer=True),
    "PAConv": net("classification.paconv", "PAConv", (1, 3, 64)),
    "DLA34": net("backbones.dla", "DLA34", (1, 3, 32, 32)),
}
