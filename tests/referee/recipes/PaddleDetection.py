"""PaddleDetection: whole detectors from configurations that are made small, with their post-processing."""
import inputs

ABSENT = "openpyxl paddle.distributed.fleet pycocotools lap motmetrics visualdl paddleslim numba lapx sklearn xtcocotools terminaltables Cython pandas"


def load():
    import ppdet.modeling  # noqa: F401


def detector(config, *more, size=64, whole=True, loss=False):
    """A detector of configs/; `more` are items (section, name, value) that replace its own."""
    def make():
        import numpy as np
        import paddle
        from ppdet.core.workspace import create, load_config
        given = load_config(f"configs/{config}.yml")
        for section, name, value in more:
            given[section][name] = value
        given.pretrain_weights = None

        class Detector(paddle.nn.Layer):
            def __init__(self):
                super().__init__()
                self.net = create(given.architecture)

            def forward(self, image, im_shape, scale_factor):
                features = {"image": image, "im_shape": im_shape, "scale_factor": scale_factor}
                if self.training:  # losses need annotations: the features train
                    parts = self.net.backbone(features)
                    return self.net.neck(parts) if getattr(self.net, "neck", None) is not None else parts
                return self.net(features)
        shape = np.array([[size, size]], "float32")
        return Detector(), [inputs.image(size, 1), shape, np.ones((1, 2), "float32")], {"fixed": True}
    return make


MODELS = {
    "YOLOv3": detector("yolov3/yolov3_mobilenet_v1_270e_coco"),
    "PPYOLO_tiny": detector("ppyolo/ppyolo_tiny_650e_coco"),
    "PPYOLOE_s": detector("ppyoloe/ppyoloe_crn_s_300e_coco"),
    "PicoDet": detector("picodet/picodet_xs_320_coco_lcnet"),
    "SSD": detector("ssd/ssd_mobilenet_v1_300_120e_voc", size=300),
    "FCOS": detector("fcos/fcos_r50_fpn_1x_coco", ("ResNet", "depth", 18)),
    "TTFNet": detector("ttfnet/pafnet_lite_mobilenet_v3_20e_coco"),
    "FasterRCNN": detector("faster_rcnn/faster_rcnn_r50_fpn_1x_coco", ("ResNet", "depth", 18), ("ResNet", "norm_type", "bn")),
    "SOLOv2": detector("solov2/solov2_r50_fpn_1x_coco", ("ResNet", "depth", 18)),
    "BlazeFace": detector("face_detection/blazeface_1000e", size=128),
    "YOLOX_nano": detector("yolox/yolox_nano_300e_coco"),
}
