"""paddle.inference: loads a saved model of Paddle or Proa and runs it: Config has the settings, Predictor runs, handles
carry inputs and outputs. Over proa/inference.h (_core.InferenceConfig and InferencePredictor)."""
from .config import Config, PassBuilder
from .hardware import XpuConfig
from ..utils.kernel_names import _get_phi_kernel_name
from .kinds import (DataType, PlaceType, PrecisionType, get_num_bytes_of_data_type,
                    get_trt_compile_version, get_trt_runtime_version, get_version)
from .mixed_precision import convert_to_mixed_precision
from .predictor import Predictor, PredictorPool, Tensor, create_predictor

__all__ = ["Config", "DataType", "PlaceType", "PrecisionType", "Tensor", "Predictor", "create_predictor", "get_version",
           "convert_to_mixed_precision", "get_trt_compile_version", "get_trt_runtime_version", "get_num_bytes_of_data_type", "PredictorPool",
           "XpuConfig"]
