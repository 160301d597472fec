"""save_for_auto_inference: each rank's parameters, and how they are divided, for inference on meshes."""
import os
import pickle

from .....framework.io import save


def save_for_auto_inference(path_prefix, dist_model, cvt2cpu=False):
    """Writes PREFIX_distR.pdparams, rank R's parameters by name, and PREFIX_distR.pdattr, a pickled dict of how each is divided:
    process_shape [data, model], process_group, dims_mapping. A prefix that ends in a slash is a folder, with the prefix
    saved_parameters in it. With level "p_g_os" parameters are gathered first."""
    from .....distributed import fleet, get_rank, get_world_size
    folder, name = os.path.split(os.path.abspath(path_prefix))
    if str(path_prefix).endswith(os.path.sep):
        folder, name = os.path.abspath(path_prefix), "saved_parameters"
    os.makedirs(folder, exist_ok=True)
    grid, ranks, degree = [1], [0], 1
    if get_world_size() > 1:
        topology = fleet.get_hybrid_communicate_group()
        if topology.get_pipe_parallel_world_size() > 1:
            raise NotImplementedError("save_for_auto_inference: not with pp_degree; a stage has other parameters than the others")
        degree = topology.get_model_parallel_world_size()
        grid, ranks = [get_world_size() // degree, degree], list(range(get_world_size()))
    if hasattr(dist_model, "get_all_parameters"):
        dist_model.get_all_parameters(cvt2cpu)
    state = {tensor.name: tensor for tensor in dist_model.state_dict().values()}
    attrs = {}
    for key, tensor in state.items():
        axis = getattr(tensor, "split_axis", None) if degree > 1 else None
        attrs[key] = {"process_shape": grid, "process_group": ranks, "dims_mapping": [1 if i == axis else -1 for i in range(tensor.ndim)]}
    stem = os.path.join(folder, f"{name}_dist{get_rank()}")
    save(state, stem + ".pdparams")
    with open(stem + ".pdattr", "wb") as f:
        pickle.dump(attrs, f)


__all__ = ["save_for_auto_inference"]
