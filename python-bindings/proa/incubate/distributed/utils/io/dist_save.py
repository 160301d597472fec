"""save: states of which sharding gives each rank a part, as one file on some ranks."""
from ..... import _core
from .....framework.io import save as _save
from .save_for_auto import save_for_auto_inference


def _gathered(state, group):
    """The entries of all ranks' states, by name; nested dicts of tensors likewise."""
    from .....distributed.objects import all_gather_object
    plain = {k: v for k, v in state.items() if isinstance(v, _core.Tensor)}
    found, whole = [], dict(state)
    all_gather_object(found, [[k, v] for k, v in plain.items()], group)
    for entries in found:
        for key, value in entries:
            whole.setdefault(key, value)
    if isinstance(state.get("master_weights"), dict):
        whole["master_weights"] = _gathered(state["master_weights"], group)
    return whole


def _agree(state, group):
    from .....distributed.objects import all_gather_object
    found = []
    all_gather_object(found, list(state), group)
    return all(keys == found[0] for keys in found)


def save(state_dict, path, **configs):
    """paddle.save; with gather_to=ranks, state_type="opt" the parts that optimizers of a sharding group have become one file on those
    ranks. All ranks call it. With state_type="params" parameters, which each rank has whole, are written."""
    from .....distributed import fleet, get_rank, get_world_size
    gather_to, kind = configs.pop("gather_to", None), configs.pop("state_type", None)
    configs.pop("max_grouped_size", None)  # tensors travel one by one
    if gather_to is None or get_world_size() < 2:
        return _save(state_dict, path, **configs)
    if kind not in ("params", "opt"):
        raise ValueError(f"save: state_type must be 'params' or 'opt' where gather_to is given, got {kind!r}")
    topology = fleet.get_hybrid_communicate_group()
    if topology.get_model_parallel_world_size() > 1 or topology.get_pipe_parallel_world_size() > 1:
        raise NotImplementedError("save: gather_to goes with data parallelism and sharding; with mp_degree or pp_degree save each rank's "
                                  "own state")
    ranks = [gather_to] if isinstance(gather_to, int) else list(gather_to)
    if kind == "params":
        for group in (topology.get_data_parallel_group(), topology.get_sharding_parallel_group()):
            if group.nranks > 1 and not _agree(state_dict, group):
                raise ValueError("save: the ranks' parameters have different names; with level 'p_g_os' use save_group_sharded_model")
    elif topology.get_sharding_parallel_group().nranks > 1 and not _agree(state_dict, topology.get_sharding_parallel_group()):
        state_dict = _gathered(state_dict, topology.get_sharding_parallel_group())
    if get_rank() in ranks or kind == "params":
        _save(state_dict, path, **configs)
    return None


__all__ = ["save", "save_for_auto_inference"]
