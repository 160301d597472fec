"""PaddleSeg: segmentation models over small backbones, four classes."""
import inputs

ABSENT = "visualdl filelock sklearn paddleslim prettytable"


def load():
    import paddleseg.models  # noqa: F401


def over(name, backbone="ResNet18_vd", size=64, **more):
    def make():
        from paddleseg import models
        under = getattr(models.backbones, backbone)() if backbone else None
        given = dict(more) if under is None else dict(more, backbone=under)
        return getattr(models, name)(num_classes=4, **given), [inputs.image(size)]
    return make


MODELS = {
    "UNet": over("UNet", None, 32), "FastSCNN": over("FastSCNN", None, 64), "ENet": over("ENet", None, 64),
    "ESPNetV1": over("ESPNetV1", None, 64), "DDRNet_23": over("DDRNet_23", None, 64), "BiSeNetV1": over("BiseNetV1"),
    "PortraitNet": over("PortraitNet", "MobileNetV2_x0_25", 64), "PPLiteSeg": over("PPLiteSeg", "STDC1"),
    "PPHumanSegLite": over("PPHumanSegLite", None, 64), "SegNet": over("SegNet", None, 32),
    "DeepLabV3P": over("DeepLabV3P", backbone_indices=(0, 3), aspp_ratios=(1, 2, 3, 4), aspp_out_channels=16),
    "PSPNet": over("PSPNet", pp_out_channels=16, backbone_indices=(2, 3)),
    "GCNet": over("GCNet", gc_channels=32, ratio=0.25, backbone_indices=(2, 3)),
    "FCN": over("FCN", "HRNet_W18_Small_V1", 32, backbone_indices=(-1,)),
    "SFNet": over("SFNet", backbone_indices=[0, 1, 2, 3]),
    "SegFormer": over("SegFormer", "MixVisionTransformer_B0", 64, embedding_dim=16),
    "STDCSeg": over("STDCSeg", "STDC1", 64), "U2Netp": over("U2Netp", None, 32), "AttentionUNet": over("AttentionUNet", None, 32),
}
