"""PaddleViT: vision transformers and mixers with two layers each."""
import importlib
import sys

import inputs

ABSENT = "yacs visualdl"


def load():
    import paddle.nn  # noqa: F401


def net(folder, module, name, size=32, **more):
    def make():
        sys.path.insert(0, f"image_classification/{folder}")
        found = getattr(importlib.import_module(module), name)
        return found(num_classes=10, **more), [inputs.image(size)]
    return make


MODELS = {
    "MlpMixer": net("MLP-Mixer", "mlp_mixer", "MlpMixer", image_size=32, patch_size=8, num_mixer_layers=2, embed_dim=16),
    "ResMlp": net("ResMLP", "resmlp", "ResMlp", image_size=32, patch_size=8, num_mixer_layers=2, embed_dim=16),
    "gMLP": net("gMLP", "gmlp", "GatedMlp", image_size=32, patch_size=8, num_mixer_layers=2, embed_dim=16),
    "ConvMixer": net("ConvMixer", "convmixer", "ConvMixer", dim=16, depth=2, kernel_size=3, patch_size=4),
    "ConvNeXt": net("ConvNeXt", "convnext", "ConvNeXt", depths=[1, 1, 1, 1], dims=[8, 16, 16, 32]),
    "CaiT": net("CaiT", "cait", "Cait", image_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2),
    "PiT": net("PiT", "pit", "PoolingTransformer", image_size=32, patch_size=8, stride=4, base_dims=[8, 8, 8], depth=[1, 1, 1],
               heads=[1, 2, 4], mlp_ratio=2),
    "PoolFormer": net("PoolFormer", "poolformer", "PoolFormer", layers=[1, 1, 1, 1], embed_dims=[8, 8, 16, 16],
                      mlp_ratios=[2, 2, 2, 2], downsamples=[True] * 4),
    "ViT": net("ViT", "vit", "VisionTransformer", image_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2),
    "DeiT": net("DeiT", "deit", "VisionTransformer", image_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2),
    "Swin": net("SwinTransformer", "swin", "SwinTransformer", image_size=32, patch_size=4, embed_dim=8, depths=[1, 2],
                num_heads=[1, 2], window_size=4),
    "XCiT": net("XCiT", "xcit", "XCiT", img_size=32, patch_size=8, embed_dim=16, depth=1, num_heads=2, eta=1.0,
                cls_attn_layers=1),
}
