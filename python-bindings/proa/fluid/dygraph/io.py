"""fluid.dygraph.io: file name suffixes of exported models."""
from ...jit import TranslatedLayer

INFER_MODEL_SUFFIX, INFER_PARAMS_SUFFIX, INFER_PARAMS_INFO_SUFFIX = ".pdmodel", ".pdiparams", ".pdiparams.info"
VARIABLE_FILENAME, LOADED_VAR_SUFFIX = "__variables__", "load"
