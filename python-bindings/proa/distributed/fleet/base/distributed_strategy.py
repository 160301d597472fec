"""DistributedStrategy: switches and settings of distributed training, read and written in Paddle's text format."""
from ....utils.flags import get_flags
from ....static.compiler import BuildStrategy, ExecutionStrategy
from .strategy_fields import MESSAGES, StrategyMessage

_HIDDEN = {"mode", "calc_comm_same_stream", "fuse_grad_size_in_TFLOPS"}
_OTHER_NAMES = {"with_coordinator": "is_with_coordinator"}
_FROM_FLAGS = ("cudnn_exhaustive_search", "conv_workspace_size_limit", "cudnn_batchnorm_spatial_persistent",
               "sync_nccl_allreduce")


def _switch(field):
    """A property of one value. A value of another type is refused in words, and the old one stays, as in Paddle."""
    kinds = {"bool": bool, "int32": int, "float": (int, float), "string": str}[field.type]

    def put(self, value):
        right = isinstance(value, kinds) and (field.type == "bool" or not isinstance(value, bool))
        if right:
            self._message.set(field.name, value)
        else:
            print(f"WARNING: {field.name} should have value of {field.type} type")

    return property(lambda self: self._message.get(field.name), put, doc=f"The switch {field.name} ({field.type}).")


def _configs(field):
    """A property that reads as a dict of all settings; setting it changes those that a dict names."""

    def put(self, values):
        self._message.get(field.name).update(values, field.name)

    return property(lambda self: self._message.get(field.name).as_dict(), put, doc=f"The settings {field.name}.")


def _outside(field, make):
    """A property that is an object of static mode: its attributes are the message's."""

    def get(self):
        made = make()
        for name, value in self._message.get(field.name).as_dict().items():
            if hasattr(made, name):
                setattr(made, name, value)
        return made

    def put(self, given):
        for name in MESSAGES[field.type]:
            value = getattr(given, name, None)
            if value is not None:
                self._message.get(field.name).set(name, value)

    return property(get, put, doc=f"{field.type}, as static mode has it.")


class DistributedStrategy:
    """Strategy of distributed training: switches (amp, recompute, …) and their settings (amp_configs, …).

    >>> from proa.distributed import fleet
    >>> strategy = fleet.DistributedStrategy()
    >>> strategy.amp = True
    >>> strategy.amp_configs = {"init_loss_scaling": 1024}
    >>> strategy.amp_configs["incr_every_n_steps"]
    1000
    """

    def __init__(self):
        object.__setattr__(self, "_message", StrategyMessage("DistributedStrategy"))
        object.__setattr__(self, "_order", ["dp", "pp", "sharding", "sep", "mp"])
        object.__setattr__(self, "sync_param_name", ["embedding", "layer_norm", ".b_"])
        object.__setattr__(self, "auto_plan", None)  # describes the job to the switch auto
        object.__setattr__(self, "auto_choice", None)  # what that weighed and chose
        for name in _FROM_FLAGS:
            key = f"FLAGS_{name}"
            try:
                value = get_flags([key])[key]
            except ValueError:
                continue
            if value is not None and self._message.fields[name].default != value:
                self._message.set(name, type(self._message.fields[name].default)(value))

    def __setattr__(self, name, value):
        if not hasattr(type(self), name) and name not in self.__dict__:
            raise TypeError(f"{name} is not a attribute of DistributedStrategy")
        object.__setattr__(self, name, value)

    @property
    def hybrid_configs(self):
        """Degrees of the axes of parallelism; dp_degree −1: what is left of the world."""
        return self._message.get("hybrid_configs").as_dict()

    @hybrid_configs.setter
    def hybrid_configs(self, values):
        values = dict(values)
        if "order" in values:
            object.__setattr__(self, "_order", list(values.pop("order")))
        self._message.get("hybrid_configs").update(values, "hybrid_configs")

    @property
    def hybrid_parallel_order(self):
        """The axes from the slowest to the fastest."""
        return self._order

    @property
    def strategy(self):
        """The message."""
        return self._message

    def save_to_prototxt(self, output):
        """Writes what was set, in protobuf's text format."""
        with open(output, "w") as f:
            f.write(self._message.to_text())

    def load_from_prototxt(self, pb_file):
        """Adds what a file sets."""
        with open(pb_file) as f:
            self._message.merge_text(f.read())

    def __repr__(self):
        rows = []
        for name, value in self._message.as_dict().items():
            if isinstance(value, dict):
                switch = name.removesuffix("_configs")
                if switch in self._message.fields and not self._message.get(switch):
                    continue
                rows.append(f"{name}:")
                rows += [f"  {key}: {setting}" for key, setting in value.items()]
            else:
                rows.append(f"{name}: {value}")
        return "DistributedStrategy\n" + "\n".join("  " + row for row in rows)


for _field in MESSAGES["DistributedStrategy"].values():
    if _field.name in _HIDDEN or _field.name == "hybrid_configs":
        continue
    if _field.type == "BuildStrategy":
        _made = _outside(_field, BuildStrategy)
    elif _field.type == "ExecutionStrategy":
        _made = _outside(_field, ExecutionStrategy)
    else:
        _made = _configs(_field) if _field.is_message else _switch(_field)
    setattr(DistributedStrategy, _OTHER_NAMES.get(_field.name, _field.name), _made)


def _set_a_sync(self, value, _put=DistributedStrategy.a_sync.fset):
    _put(self, value)
    if isinstance(value, bool):  # Paddle's way of saying: not by geo
        self.a_sync_configs = {"k_steps": 0}


DistributedStrategy.a_sync = DistributedStrategy.a_sync.setter(_set_a_sync)
