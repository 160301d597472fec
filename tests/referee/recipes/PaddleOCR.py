"""PaddleOCR: detectors and recognizers."""
import inputs

ABSENT = """visualdl lmdb rapidfuzz skimage imgaug pyclipper shapely Polygon lanms albumentations attrdict openpyxl docx premailer
paddlenlp sklearn pandas numba cython"""


def load():
    import ppocr.modeling.architectures  # noqa: F401


def network(kind, height, width, **parts):
    def make():
        from ppocr.modeling.architectures import build_model
        config = dict(model_type=kind, algorithm="any", **{name: dict(value) if value else None for name, value in parts.items()})
        return build_model(config), [inputs.image(height, 2, width=width)]
    return make


def detector(backbone, **head):
    return network("det", 64, 64, Transform=None, Backbone=backbone, Neck=dict(name="DBFPN", out_channels=16),
                   Head=dict(name="DBHead", k=50))


SMALL = dict(name="MobileNetV3", scale=0.35, model_name="small")
ENCODED = dict(name="SequenceEncoder", encoder_type="rnn", hidden_size=8)
MODELS = {
    "DB_MobileNetV3": detector(SMALL), "DB_ResNet_vd": detector(dict(name="ResNet_vd", layers=18)),
    "EAST": network("det", 64, 64, Transform=None, Backbone=SMALL, Neck=dict(name="EASTFPN", model_name="small"),
                    Head=dict(name="EASTHead", model_name="small")),
    "PSE": network("det", 64, 64, Transform=None, Backbone=dict(name="ResNet_vd", layers=18), Neck=dict(name="FPN", out_channels=16),
                   Head=dict(name="PSEHead", hidden_dim=16, out_channels=7)),
    "CRNN": network("rec", 32, 64, Transform=None, Backbone=dict(SMALL, small_stride=[1, 2, 2, 2]), Neck=ENCODED,
                    Head=dict(name="CTCHead", out_channels=12)),
    "RARE": network("rec", 32, 64, Transform=None, Backbone=dict(SMALL, small_stride=[1, 2, 2, 2]), Neck=ENCODED,
                    Head=dict(name="CTCHead", mid_channels=8, out_channels=12)),
    "Rosetta": network("rec", 32, 64, Transform=None, Backbone=SMALL, Neck=dict(name="SequenceEncoder", encoder_type="reshape"),
                       Head=dict(name="CTCHead", out_channels=12)),
    "StarNet": network("rec", 32, 64, Transform=dict(name="TPS", num_fiducial=20, loc_lr=0.1, model_name="small"), Backbone=SMALL,
                       Neck=ENCODED, Head=dict(name="CTCHead", out_channels=12)),
    "SVTR": network("rec", 32, 64, Transform=None,
                    Backbone=dict(name="SVTRNet", img_size=[32, 64], out_char_num=16, out_channels=24, patch_merging="Conv",
                                  embed_dim=[8, 16, 24], depth=[1, 1, 1], num_heads=[1, 2, 3], mixer=["Local", "Local", "Global"],
                                  local_mixer=[[3, 5], [3, 5], [3, 5]], last_stage=True, prenorm=False),
                    Neck=dict(name="SequenceEncoder", encoder_type="reshape"), Head=dict(name="CTCHead", out_channels=12)),
    "PPOCRv3": network("rec", 32, 64, Transform=None,
                       Backbone=dict(name="MobileNetV1Enhance", scale=0.25, last_conv_stride=[1, 2], last_pool_type="avg"),
                       Neck=ENCODED, Head=dict(name="CTCHead", out_channels=12)),
    "PPOCRv4": network("rec", 32, 64, Transform=None, Backbone=dict(name="PPLCNetV3", scale=0.25), Neck=ENCODED,
                       Head=dict(name="CTCHead", out_channels=12)),
    "Direction": network("cls", 32, 64, Transform=None, Backbone=SMALL, Neck=None, Head=dict(name="ClsHead", class_dim=2)),
}
