"""fluid.param_attr: ParamAttr and WeightNormParamAttr, re-exported from paddle."""
from ..framework.param_attr import ParamAttr, WeightNormParamAttr

__all__ = ["ParamAttr", "WeightNormParamAttr"]
