"""Meta-optimizers of static programs, which the strategy's switches wrap around an optimizer in Paddle's order: LARS or LAMB instead
of it, recompute, gradients that travel in float16, mixed precision, gradient merge, sharding or a pipeline, averages over the ranks. DGC
goes with recompute alone, LocalSGD with recompute and mixed precision."""
from ... import _core
from ...framework import mode, unique_name
from ...fluid.transpiler.collective import HALF_GRADIENT
from ..group import get_world_size
from .local_sgd import StaticLocalSGD
from .static_pipeline import StaticPipeline
from .static_sharding import ShardedReduce, StaticSharding
from .switches import check_optimizer, compressed, is_a, local_switch

_MISSING = ("tensor_parallel", "qat")


def _excluded(words):
    return lambda param: param.name.endswith(tuple(words))


def _lars(optimizer, configs):
    from ...fluid.optimizer import LarsMomentumOptimizer
    return LarsMomentumOptimizer(optimizer._learning_rate, optimizer._momentum, configs["lars_coeff"], configs["lars_weight_decay"],
                                 optimizer._parameter_list or None, optimizer.regularization, optimizer._grad_clip, optimizer._name,
                                 configs["exclude_from_weight_decay"], configs["epsilon"])


def _lamb(optimizer, configs):
    from ...optimizer import Lamb
    return Lamb(optimizer._learning_rate, configs["lamb_weight_decay"], optimizer._beta1, optimizer._beta2, optimizer._epsilon,
                optimizer._parameter_list or None, optimizer._grad_clip, _excluded(configs["exclude_from_weight_decay"]),
                name=optimizer._name)


def _amp(optimizer, configs):
    from ...static import amp
    lists = amp.AutoMixedPrecisionLists(configs["custom_white_list"] or None, configs["custom_black_list"] or None,
                                        configs["custom_black_varnames"] or None)
    names = ("init_loss_scaling", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_ratio", "decr_ratio",
             "use_dynamic_loss_scaling", "use_pure_fp16")
    guard = configs["use_pure_fp16"] and configs["use_fp16_guard"]  # O1 converts by its lists alone
    return amp.decorate(optimizer, lists, use_fp16_guard=guard, **{name: configs[name] for name in names})


def _recompute(optimizer, configs):
    from ...fluid.optimizer import RecomputeOptimizer
    wrapped = RecomputeOptimizer(optimizer)
    wrapped._set_checkpoints(list(configs["checkpoints"]))
    return wrapped


class HalfGradients:
    """Another optimizer, whose float32 gradients travel between ranks in float16: each is cast to <parameter>@GRAD@FP16, which
    average_over_ranks averages, and back."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """The inner optimizer's pairs, with gradients that were cast to float16 and back."""
        from ...static.variable import program_of
        pairs = self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)
        core, found = program_of(loss)._core, []
        with mode.opened(core, 1):
            for param, grad in pairs:
                if grad.dtype == _core.float32:
                    half = _core.cast(grad, _core.float16)
                    core.rename(half.name, param.name + HALF_GRADIENT)
                    grad = _core.cast(half, _core.float32)
                found.append((param, grad))
        return found

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """Adds backward, casts and the step to the program; returns (operators, [(parameter, gradient)])."""
        from ...static.program import default_startup_program, program_guard
        from ...static.variable import program_of
        with program_guard(program_of(loss), startup_program or default_startup_program()):
            pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
            return self._optimizer.apply_gradients(pairs), pairs


class GradientMerge:
    """Another optimizer, of which every k-th run of the program makes a step, with the sum (avg: the average) of k runs'
    gradients. Sums are persistable variables <parameter>@GRAD@GradientMerge."""

    def __init__(self, optimizer, base, k_steps, avg):
        self._optimizer, self._base, self._k_steps, self._avg = optimizer, base, k_steps, avg

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """Adds backward, sums and the step to the program; returns (operators, [(parameter, gradient)])."""
        from ...static.program import default_startup_program, program_guard
        from ...static.variable import program_of
        with program_guard(program_of(loss), startup_program or default_startup_program()):
            pairs = self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set)
            return self.apply_gradients(pairs), pairs

    def apply_gradients(self, pairs):
        """The sums, and the step, which but for every k-th run changes nothing."""
        from ...static.variable import make_persistable, program_of
        core, sums = program_of(pairs[0][0])._core, []
        with mode.opened(core, 2):
            step = make_persistable(unique_name.generate("gradient_merge_step"), [1], _core.int32, 0)
            now = _core.remainder(_core.scale(step, 1.0, 1.0), _core.full([1], self._k_steps, _core.int32))
            _core.assign_to(now, step)
            waits = _core.not_equal(now, _core.full([1], 0, _core.int32))
            for param, grad in pairs:
                total = make_persistable(f"{param.name}@GRAD@GradientMerge", param.shape, grad.dtype, 0.0)
                sums.append((total, _core.add(total, grad)))
            merged = [(param, _core.scale(summed, 1.0 / self._k_steps if self._avg else 1.0))
                      for (param, _), (_, summed) in zip(pairs, sums)]
        self._base._set_auxiliary_var("found_inf", waits)
        try:
            operators = self._optimizer.apply_gradients(merged)
        finally:
            self._base._set_auxiliary_var("found_inf", None)
        with mode.opened(core, 2):
            for total, summed in sums:
                _core.assign_to(_core.multiply(summed, _core.cast(waits, summed.dtype)), total)
        return operators


def transformed(optimizer, strategy):
    """An optimizer with the meta-optimizers of the strategy's switches around it."""
    message, alone, scaled = strategy._message, get_world_size() < 2, None
    missing = [name for name in _MISSING if message.get(name)]
    if missing:
        raise NotImplementedError(f"fleet.minimize: {', '.join(missing)} of the strategy do not transform static programs; switch "
                                  "them off, or train eagerly")
    switch = None if alone else local_switch("fleet.minimize", strategy)
    if switch is not None:
        check_optimizer("fleet.minimize", switch, optimizer)
    if switch == "dgc":
        optimizer = compressed(optimizer, strategy.dgc_configs)
    elif message.get("lars") and is_a(optimizer, "Momentum") and not is_a(optimizer, "LarsMomentum"):
        optimizer = _lars(optimizer, strategy.lars_configs)
    elif message.get("lamb") and is_a(optimizer, "Adam"):
        optimizer = _lamb(optimizer, strategy.lamb_configs)
    base = optimizer
    if message.get("recompute") and strategy.recompute_configs["checkpoints"]:
        optimizer = _recompute(optimizer, strategy.recompute_configs)
    if message.get("fp16_allreduce") and not alone:
        optimizer = HalfGradients(optimizer)
    if message.get("amp"):
        optimizer = scaled = _amp(optimizer, strategy.amp_configs)
    merge = strategy.gradient_merge_configs
    if message.get("gradient_merge") and merge["k_steps"] > 1:
        optimizer = GradientMerge(optimizer, base, merge["k_steps"], merge["avg"])
    if switch in ("localsgd", "adaptive_localsgd"):
        optimizer = StaticLocalSGD(optimizer, base, strategy)
    if message.get("pipeline"):
        optimizer = StaticPipeline(optimizer, base, scaled, strategy)
    elif message.get("sharding") and not alone:
        optimizer = StaticSharding(optimizer, base, scaled, strategy.sharding_configs)
    return optimizer


def average_over_ranks(optimizer, program, startup, strategy):
    """Gradients of the program become averages over the ranks, unless the strategy has other means; its startup program gives all
    rank 0's parameters. A pipeline has done both."""
    if isinstance(optimizer, StaticPipeline):
        return
    from ...fluid.transpiler.collective import Collective, GradAllReduce
    from ..group import ParallelEnv
    env, most = ParallelEnv(), strategy._message.get("fuse_grad_size_in_MB")
    if local_switch("fleet.minimize", strategy) is not None:
        made = Collective()
    elif isinstance(optimizer, StaticSharding):
        made = ShardedReduce(optimizer, most)
    else:
        made = GradAllReduce(fuse_grad_size_in_MB=most)
    made.transpile(startup, program, env.rank, env.trainer_endpoints, env.current_endpoint)
