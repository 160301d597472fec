"""fluid.param_attr: attributes of parameters."""
from ..framework.param_attr import ParamAttr, WeightNormParamAttr

__all__ = ["ParamAttr", "WeightNormParamAttr"]
