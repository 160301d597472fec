"""Steps of hybrid parallelism by hand, for training loops that do not use fleet.distributed_model: equal parameters over an axis
of the topology, and averaged gradients."""
from ...communication import broadcast
from ...group import group_of
from ...parallel import sync_params_buffers
from ...sharding.exchange import agree_on_gradients, average


def fused_allreduce_gradients_with_group(parameter_list, group, bucket_size=128 << 20, scale=None):
    """The sum of gradients over a group's ranks times scale (None: one over the number of ranks, the mean), small gradients in one
    message. bucket_size: accepted; a message has at most 8 MB."""
    group, params = group_of(group, "fused_allreduce_gradients"), list(parameter_list)
    agree_on_gradients(params, [group])
    average(params, group)
    factor = 1.0 if scale is None else scale * group.nranks
    for param in params if factor != 1.0 else ():
        if param.grad is not None:
            param.grad = param.grad * factor


def fused_allreduce_gradients(parameter_list, hcg):
    """Gradients over the ranks that see other data: the mean over hcg's data axis, the sum over its sep axis, whose ranks have
    parts of the same sequences. hcg None: the mean over the whole job."""
    if hcg is None:
        return fused_allreduce_gradients_with_group(parameter_list, None)
    data, sep = hcg.get_data_parallel_world_size(), hcg.get_sep_parallel_world_size()
    if data < 2 and sep < 2:
        raise AssertionError("fused_allreduce_gradients: the data and sep axes have one rank each: there is nothing to exchange")
    group = hcg.get_data_parallel_group()
    if sep > 1:
        group = hcg.get_dp_sep_parallel_group() if data > 1 else hcg.get_sep_parallel_group()
    return fused_allreduce_gradients_with_group(parameter_list, group, scale=1.0 / data)


def sharding_reduce_gradients(parameter_list, hcg):
    """Averages gradients over hcg's sharding axis; every rank has the averages."""
    fused_allreduce_gradients_with_group(parameter_list, hcg.get_sharding_parallel_group())


def broadcast_mp_parameters(model, hcg):
    """Gives the ranks of the model axis the first one's parameters, but for those that they divide."""
    sync_params_buffers(model, hcg.get_model_parallel_group(), hcg.get_model_parallel_group_src_rank(), is_model_parallel=True)


def broadcast_dp_parameters(model, hcg):
    """Gives the ranks of the data axis the first one's parameters."""
    _all_equal(model, hcg.get_data_parallel_group(), hcg.get_data_parallel_group_src_rank())


def broadcast_sharding_parameters(model, hcg):
    """Gives the ranks of the sharding axis the first one's parameters."""
    _all_equal(model, hcg.get_sharding_parallel_group(), hcg.get_sharding_parallel_group_src_rank())


def broadcast_sep_parameters(model, hcg):
    """Gives the ranks of the sep axis the first one's parameters."""
    _all_equal(model, hcg.get_sep_parallel_group(), hcg.get_sep_parallel_group_src_rank())


def _all_equal(model, group, src):
    """For axes other than the model's, along which divided parameters are alike, too."""
    if group.nranks > 1:
        for tensor in [*model.parameters(), *model.buffers()]:
            if not getattr(tensor, "no_sync", False):
                broadcast(tensor.detach(), src, group)


def obtain_optimizer_parameters_list(optimizer):
    """An optimizer's parameters, of its groups one after the other."""
    listed = optimizer._parameter_list
    if listed and isinstance(listed[0], dict):
        return [param for group in listed for param in group["params"]]
    return list(listed)


def unwrap_optimizer(optimizer, optimizer_instances=()):
    """The optimizer inside wrappers of these classes."""
    while isinstance(optimizer, optimizer_instances):
        optimizer = optimizer._inner_opt
    return optimizer
