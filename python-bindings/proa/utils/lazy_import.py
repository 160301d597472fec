"""try_import: imports an optional module, with a helpful error if it is missing."""
import importlib


def try_import(module_name, err_msg=None):
    """The module of that name; ImportError, with err_msg if given, when it is not installed."""
    try:
        return importlib.import_module(module_name)
    except ImportError as e:
        raise ImportError(err_msg or f"{module_name} is needed here and is not installed; pip install it") from e
