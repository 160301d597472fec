"""paddle.distributed.io: saving and loading of a program's persistable variables, also those of parameter servers."""
from ..fluid import io as _io
from ..fluid.io import is_persistable

__all__ = ["is_persistable", "load_inference_model_distributed", "load_persistables", "save_persistables"]


def _fleet_with_servers():
    """fleet, where this process is a worker of parameter servers; else None."""
    import sys
    module = sys.modules.get(f"{__package__}.fleet.fleet")
    fleet = getattr(module, "fleet", None)
    return fleet if getattr(fleet, "_ps", None) is not None else None


def save_persistables(executor, dirname, main_program=None, filename=None):
    """Writes all persistable variables of a program: a file each in a folder, or one for all."""
    fleet = _fleet_with_servers()
    if fleet is not None:
        fleet.save_persistables(executor, dirname, main_program)
        return
    _io.save_persistables(executor, dirname, main_program, filename)


def load_persistables(executor, dirname, main_program=None, filename=None):
    """Reads what save_persistables wrote into the scope."""
    fleet = _fleet_with_servers()
    if fleet is not None:
        fleet.load_model(dirname)
        return
    _io.load_persistables(executor, dirname, main_program, filename)


def load_inference_model_distributed(dirname, executor, model_filename=None, params_filename=None):
    """[program, names of the variables to feed, variables to fetch] of a saved inference model; tables of parameter servers are read
    whole."""
    return _io.load_inference_model(dirname, executor, model_filename, params_filename)
