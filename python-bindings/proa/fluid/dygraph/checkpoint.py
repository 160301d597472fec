"""fluid.dygraph.checkpoint: save_dygraph and load_dygraph, which save and load state dicts."""
import os

from ...framework.io import load, save

__all__ = ["load_dygraph", "save_dygraph"]


def save_dygraph(state_dict, model_path):
    """Writes <model_path>.pdparams, or .pdopt if the state is an optimizer's."""
    if not state_dict:
        raise AssertionError("state_dict is empty, no need to save")
    if not os.path.basename(model_path):
        raise AssertionError("The input model_path MUST be format of dirname/filename, but received filename is empty string.")
    tensors = all(getattr(value, "is_leaf", False) and hasattr(value, "trainable") or hasattr(value, "numpy")
                  for value in state_dict.values())
    optimizer = any(key in ("LR_Scheduler", "master_weights", "global_step") or "_moment" in key or "_velocity" in key or
                    "_beta" in key and "_pow_acc" in key for key in state_dict)
    save(state_dict, model_path + (".pdopt" if optimizer or not tensors else ".pdparams"))


def load_dygraph(model_path, **configs):
    """(the layers' state, the optimizer's) of <model_path>.pdparams and .pdopt; None for a file that is not there."""
    for ending in (".pdparams", ".pdopt"):
        if model_path.endswith(ending):
            model_path = model_path[:-len(ending)]
    found = [load(model_path + ending, return_numpy=True) if os.path.exists(model_path + ending) else None
             for ending in (".pdparams", ".pdopt")]
    if found == [None, None]:
        if os.path.exists(model_path) or os.path.exists(model_path + ".pdmodel"):
            return load(model_path, return_numpy=True), None
        raise RuntimeError(f"Parameter file({model_path}.pdparams) not exists")
    return tuple(found)
