"""paddle.vision.ops: detection and deformable convolution, composed of public ops; files and JPEG as tensors."""
from .boxes import nms
from .deform import DeformConv2D, deform_conv2d
from .files import decode_jpeg, read_file
from .regions import RoIAlign, RoIPool, roi_align, roi_pool
from .yolo import yolo_box, yolo_loss

__all__ = ["DeformConv2D", "RoIAlign", "RoIPool", "decode_jpeg", "deform_conv2d", "nms", "read_file", "roi_align",
           "roi_pool", "yolo_box", "yolo_loss"]
