"""Gathers the optimizer states that ranks hold in parts into one state dict, and divides one again, so that a
checkpoint can be loaded with any number of ranks."""
from ... import _core
from ..objects import all_gather_object


def joined(state, group):
    """The union of the ranks' states, which hold different accumulators, on all ranks. All ranks call it."""
    if group.nranks < 2:
        return state
    parts, whole, masters = [], {}, {}
    all_gather_object(parts, state, group=group)
    for part in parts:
        masters.update(part.pop("master_weights", {}))
        whole.update(part)
    for key, value in whole.items():
        if isinstance(value, _core.Tensor):
            value.name = key
    return {**whole, "master_weights": masters} if masters else whole


def owner_of(key, names):
    """The parameter whose name an accumulator's name begins with; None: none of these."""
    found = [name for name in names if key.startswith(name + "_")]
    return max(found, key=len) if found else None


def only_of(state, names):
    """A state without the accumulators and master weights of other parameters."""
    kept = {key: value for key, value in state.items() if key == "LR_Scheduler" or owner_of(key, names) is not None}
    if "master_weights" in state:
        kept["master_weights"] = {key: value for key, value in state["master_weights"].items() if key in names}
    return kept
