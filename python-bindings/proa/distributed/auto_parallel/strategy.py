"""Strategy: what paddle.distributed.to_static is to do beside a plain step."""
import copy

_DEFAULTS = {
    "sharding": {"enable": False, "stage": 1, "degree": 8, "enable_overlap": False, "param_comm_stream_num": 1,
                 "grad_comm_stream_num": 1, "param_bucket_size_numel": 1, "grad_bucket_size_numel": 1,
                 "enable_hierarchical_comm": False, "partition_algor": "greedy_even", "enable_tuning": False, "tuning_range": []},
    "gradient_merge": {"enable": False, "k_steps": 1, "avg": True},
    "pipeline": {"enable": False, "schedule_mode": "1F1B", "micro_batch_size": 1, "accumulate_steps": 1, "generation_batch_size": 1,
                 "enable_send_recv_overlap": False, "job_schedule_profiler_start": -1, "job_schedule_profiler_stop": -1},
    "fused_passes": {"enable": False, "gemm_epilogue": False, "dropout_add": False},
}


class BaseConfig:
    """Settings as attributes."""

    def __init__(self, category, config=None):
        if config is not None and not isinstance(config, dict):
            raise ValueError(f"Strategy: {category} must be a dict of settings, got {type(config).__name__}")
        unknown = set(config or ()) - set(_DEFAULTS[category])
        if unknown:
            raise ValueError(f"Strategy: {category} has no setting {sorted(unknown)}; there are {sorted(_DEFAULTS[category])}")
        self._category = category
        self.from_dict({**copy.deepcopy(_DEFAULTS[category]), **(config or {})})

    def from_dict(self, config):
        """Takes over settings."""
        for key in _DEFAULTS[self._category]:
            if key in config:
                setattr(self, key, config[key])

    def to_dict(self):
        """All settings."""
        return {key: getattr(self, key) for key in _DEFAULTS[self._category]}

    def get(self, key, default=None):
        """A setting, or the default where there is none of that name."""
        return self.to_dict().get(key, default)

    def __repr__(self):
        return "{" + "".join(f'"{k}":"{v}",' for k, v in self.to_dict().items()) + "}"


class Strategy:
    """Settings of a DistModel: sharding, gradient_merge, pipeline and fused_passes, each with `enable`.

    >>> import proa as paddle
    >>> strategy = paddle.distributed.Strategy({"gradient_merge": {"enable": True, "k_steps": 2}})
    >>> strategy.gradient_merge.k_steps, strategy.sharding.enable
    (2, False)
    """

    def __init__(self, config=None):
        if config is not None and not isinstance(config, dict):
            raise ValueError(f"Strategy: config must be a dict, got {config!r}")
        unknown = set(config or ()) - set(_DEFAULTS)
        if unknown:
            raise ValueError(f"Strategy: config has {sorted(unknown)}; there are {sorted(_DEFAULTS)}")
        self._parts = {name: BaseConfig(name, (config or {}).get(name)) for name in _DEFAULTS}

    sharding = property(lambda self: self._parts["sharding"], doc="Optimizer states divided among processes: enable, stage, degree.")
    gradient_merge = property(lambda self: self._parts["gradient_merge"], doc="A step every k_steps calls; avg: by their mean gradient.")
    pipeline = property(lambda self: self._parts["pipeline"], doc="Stages: enable, schedule_mode, micro_batch_size, accumulate_steps.")
    fused_passes = property(lambda self: self._parts["fused_passes"], doc="Fusions of programs: enable, gemm_epilogue, dropout_add.")

    def to_dict(self):
        """All settings, by part."""
        return {name: part.to_dict() for name, part in self._parts.items()}

    def __repr__(self):
        return repr(self.to_dict())
