"""PaddleGAN: generators and discriminators with few channels."""
import importlib

import inputs

ABSENT = "visualdl librosa numba skimage moviepy imageio dlib face_alignment sklearn pandas paddlehub natsort lmdb"


def load():
    import ppgan.models.discriminators
    import ppgan.models.generators  # noqa: F401


def net(kind, module, name, size, *args, channels=3, batch=1, **more):
    def make():
        found = getattr(importlib.import_module(f"ppgan.models.{kind}.{module}"), name)
        shapes = size if isinstance(size, list) else [(batch, channels, size, size)]
        return found(*args, **more), [inputs.floats(*shape) for shape in shapes], {"fixed": True}
    return make


MODELS = {
    "ResnetGenerator": net("generators", "resnet", "ResnetGenerator", 16, 3, 3, ngf=4, n_blocks=2),
    "UnetGenerator": net("generators", "unet", "UnetGenerator", 32, 3, 3, 5, ngf=4),
    "DCGenerator": net("generators", "dcgenerator", "DCGenerator", 1, 8, 8, 3, ngf=4, channels=8, batch=2),
    "MobileResnetGenerator": net("generators", "mobile_resnet", "MobileResnetGenerator", 16, 3, 3, ngf=4, n_blocks=1),
    "RRDBNet": net("generators", "rrdb_net", "RRDBNet", 8, 3, 3, 8, 1, gc=4),
    "RCAN": net("generators", "rcan", "RCAN", 8, 2, 2, 1, n_feats=16),
    "DRNGenerator": net("generators", "drn", "DRNGenerator", 8, [2, 4], n_blocks=1, n_feats=16),
    "LESRCNN": net("generators", "lesrcnn", "LESRCNNGenerator", 8),
    "PAN": net("generators", "pan", "PAN", 8, 3, 3, 8, 4, 1),
    "PReNet": net("generators", "prenet", "PReNet", 12, recurrent_iter=2, use_GPU=False),
    "MPRNet": net("generators", "mpr", "MPRNet", 16, n_feat=8, scale_unetfeats=4, scale_orsnetfeats=4, num_cab=1),
    "AnimeGeneratorLite": net("generators", "generater_animegan", "AnimeGeneratorLite", 16),
    "UGATITGenerator": net("generators", "resnet_ugatit", "ResnetUGATITGenerator", 16, 3, 3, ngf=4, n_blocks=1, img_size=16,
                           light=True),
    "EDVR": net("generators", "edvr", "EDVRNet", [(1, 3, 3, 16, 16)], nf=8, nframes=3, groups=2, front_RBs=1, back_RBs=1),
    "NLayerDiscriminator": net("discriminators", "nlayers", "NLayerDiscriminator", 32, 3, ndf=4),
    "UGATITDiscriminator": net("discriminators", "discriminator_ugatit", "UGATITDiscriminator", 64, 3, ndf=4),
    "AnimeDiscriminator": net("discriminators", "discriminator_animegan", "AnimeDiscriminator", 16, channel=8, nblocks=2),
    "DCDiscriminator": net("discriminators", "dcdiscriminator", "DCDiscriminator", 64, 3, ndf=4, norm_type="batch", batch=2),
    "StyleGANv2Discriminator": net("discriminators", "discriminator_styleganv2", "StyleGANv2Discriminator", 16, 16, batch=4),
}
