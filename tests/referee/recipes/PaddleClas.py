"""PaddleClas: image classifiers of ppcls.arch.backbone, ten classes, small images."""
import inputs

ABSENT = "visualdl faiss paddleslim sklearn"


def load():
    import ppcls.arch.backbone  # noqa: F401


def classifier(name, size=64, **more):
    def make():
        from ppcls.arch import backbone
        return getattr(backbone, name)(class_num=10, **more), [inputs.image(size)]
    return make


MODELS = {name: classifier(name) for name in """
MobileNetV1_x0_25 MobileNetV3_small_x0_35 ResNet18 ResNet18_vd PPLCNet_x0_25 PPLCNetV2_base ESNet_x0_25 SE_ResNet18_vd
EfficientNetB0_small MobileNetV2_x0_25 ShuffleNetV2_x0_25 GhostNet_x0_5 SqueezeNet1_1 RegNetX_200MF DLA46_c RedNet26
HarDNet39_ds PVT_V2_B0 MobileViT_XXS RepVGG_A0
""".split()}
MODELS.update({name: classifier(name, 224) for name in "DeiT_tiny_patch16_224 LeViT_128S".split()})
