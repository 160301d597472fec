"""paddle.vision.ops: detection, regions and deformable convolution; files and JPEG as tensors."""
from .boxes import box_coder, nms, prior_box
from .deform import DeformConv2D, deform_conv2d
from .files import decode_jpeg, read_file
from .proposals import distribute_fpn_proposals, generate_proposals, matrix_nms
from .regions import PSRoIPool, RoIAlign, RoIPool, psroi_pool, roi_align, roi_pool
from .yolo import yolo_box, yolo_loss

__all__ = ["DeformConv2D", "PSRoIPool", "RoIAlign", "RoIPool", "box_coder", "decode_jpeg", "deform_conv2d",
           "distribute_fpn_proposals", "generate_proposals", "matrix_nms", "nms", "prior_box", "psroi_pool", "read_file", "roi_align",
           "roi_pool", "yolo_box", "yolo_loss"]
