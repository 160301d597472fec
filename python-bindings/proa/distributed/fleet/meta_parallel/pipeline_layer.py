"""PipelineLayer: a model as a list of layers, split into pipeline stages; a process builds only its own stage."""
import re

from .... import _core
from ....nn.layer.layers import Layer
from ... import communication as _c
from ...group import get_rank, new_group
from ..utils.recompute import recompute


class LayerDesc:
    """A layer that is yet to be made: its class and arguments."""

    def __init__(self, layer_func, *inputs, **kwargs):
        if not (isinstance(layer_func, type) and issubclass(layer_func, Layer)):
            raise TypeError("The input(layer_func) should be a derived class of Layer.")
        self.layer_func, self.inputs, self.kwargs = layer_func, inputs, kwargs

    def build_layer(self):
        """Makes it."""
        return self.layer_func(*self.inputs, **self.kwargs)

    def __repr__(self):
        return f"{self.layer_func.__name__}({', '.join(map(repr, self.inputs))})"


class SharedLayerDesc(LayerDesc):
    """A layer that several stages have, with one weight: key says which belong together, forward_func(layer, x) how this one is
    used."""

    def __init__(self, key, layer_func, forward_func=None, shared_weight_attr="weight", *inputs, **kwargs):
        super().__init__(layer_func, *inputs, **kwargs)
        self.layer_name, self.forward_func, self.shared_weight_attr = key, forward_func, shared_weight_attr


def segments(descs, stages, method="uniform"):
    """Stage boundaries: stages + 1 numbers. "uniform": equal counts, the last stages have one more; "layer:Regex": equal
    counts of the layers whose class name matches; or the numbers themselves."""
    if isinstance(method, (list, tuple)):
        bounds = list(method)
        if len(bounds) != stages + 1 or bounds[0] != 0 or bounds[-1] != len(descs) or sorted(bounds) != bounds:
            raise ValueError(f"PipelineLayer: seg_method {bounds} must ascend from 0 to {len(descs)} in {stages + 1} numbers")
        return bounds
    if len(descs) < stages:
        raise AssertionError("layer number should be greater than number of segments")
    if method == "uniform":
        weights = [1] * len(descs)
    elif method.startswith("layer:"):
        name = re.compile(method.removeprefix("layer:"))
        kinds = [d.layer_func.__name__ if isinstance(d, LayerDesc) else getattr(d, "__name__", type(d).__name__) for d in descs]
        weights = [int(bool(name.search(kind))) for kind in kinds]
        if sum(weights) == 0 or sum(weights) % stages:
            raise AssertionError(f"number of layers ({sum(weights)}) should be divided by part number({stages})")
    else:
        raise ValueError(f"PipelineLayer: seg_method must be 'uniform', 'layer:Regex' or numbers, got {method!r}")
    each, more = divmod(sum(weights), stages)
    bounds, seen = [0], 0
    wanted = [each + (stage >= stages - more) for stage in range(stages)]
    for at, weight in enumerate(weights):
        seen += weight
        if weight and seen == wanted[len(bounds) - 1] and len(bounds) < stages:
            bounds.append(at + 1)
            seen = 0
    return [*bounds, len(descs)]


class PipelineLayer(Layer):
    """Layers, LayerDescs and functions, of which this process has its stage's. With recompute_interval n > 0 groups of n are
    recomputed in backward. With num_virtual_pipeline_stages v a stage has v chunks: every stages-th part of stages · v."""

    def __init__(self, layers, num_stages=None, topology=None, loss_fn=None, seg_method="uniform", recompute_interval=0,
                 recompute_ctx=None, num_virtual_pipeline_stages=None):
        super().__init__()
        if num_stages is None and topology is None:
            raise ValueError("should provide num_stages or topology")
        self._chunks = 1 if num_virtual_pipeline_stages is None else num_virtual_pipeline_stages
        if not isinstance(self._chunks, int) or self._chunks < 1:
            raise ValueError(f"PipelineLayer: num_virtual_pipeline_stages must be a positive int, got {num_virtual_pipeline_stages!r}")
        self._topo = topology if topology is not None else _default_topology(num_stages)
        self._num_stages = self._topo.get_dim("pipe")
        if num_stages is not None and num_stages != self._num_stages:
            raise AssertionError(f"PipelineLayer: num_stages is {num_stages}, the topology has {self._num_stages}")
        self.layers, self._loss_fn, self._interval = list(layers), loss_fn, recompute_interval
        self.global_rank = get_rank()
        self._stage_id = self._topo.get_coord(self.global_rank).pipe
        self.segment_parts = segments(self.layers, self._num_stages * self._chunks, seg_method)
        self.shared_layers = {}
        parts = range(self._stage_id, self._num_stages * self._chunks, self._num_stages)
        self._functions = [self._build(self.segment_parts[part], self.segment_parts[part + 1]) for part in parts]
        self.run_function = [function for chunk in self._functions for function in chunk]
        self._shared_groups = self._share()

    def _build(self, begin, end):
        """The functions of a part."""
        functions = []
        for index in range(begin, end):
            item = self.layers[index]
            if isinstance(item, SharedLayerDesc):
                if item.layer_name not in self.shared_layers:
                    self.shared_layers[item.layer_name] = item.build_layer()
                    self.add_sublayer(str(index), self.shared_layers[item.layer_name])
                layer = self.shared_layers[item.layer_name]
                functions.append(_using(item.forward_func, layer) if item.forward_func else layer)
                continue
            made = item.build_layer() if isinstance(item, LayerDesc) else item
            if isinstance(made, Layer):
                self.add_sublayer(str(index), made)
            elif not callable(made):
                raise TypeError(f"PipelineLayer: layer {index} must be a Layer, a LayerDesc or a function, got {made!r}")
            functions.append(made)
        return functions

    def get_stage_from_index(self, layer_idx):
        """The stage that has a layer."""
        parts = len(self.segment_parts) - 1
        return next(p for p in range(parts) if layer_idx < self.segment_parts[p + 1]) % self._num_stages

    def get_num_virtual_stages(self):
        """Chunks of a stage."""
        return self._chunks

    def _share(self):
        """Groups of the stages that share a weight: {key: (group, weight's name)}; weights become those of the first."""
        stages, names = {}, {}
        for index, item in enumerate(self.layers):
            if isinstance(item, SharedLayerDesc):
                stages.setdefault(item.layer_name, set()).add(self.get_stage_from_index(index))
                names[item.layer_name] = item.shared_weight_attr
        groups = {}
        for key, among in stages.items():
            if len(among) < 2:
                continue
            for along in self._topo.get_comm_list("pipe"):
                ranks = [along[stage] for stage in sorted(among)]
                group = new_group(ranks)
                if self.global_rank in ranks:
                    weight = getattr(self.shared_layers[key], names[key])
                    weight.is_firstly_shared = self.global_rank == ranks[0]
                    _c.broadcast(weight.detach(), ranks[0], group)
                    groups[key] = (group, names[key])
        return groups

    def allreduce_shared_weight_gradients(self):
        """Sums the gradients of weights over the stages that share them."""
        for key, (group, name) in self._shared_groups.items():
            weight = getattr(self.shared_layers[key], name)
            if weight.grad is None:
                weight.grad = _core.full_like(weight, 0.0)
            _c.all_reduce(weight.grad, group=group)

    def forward(self, input, chunk_id=None):
        """A chunk's layers; chunk_id may be None where there is one."""
        if chunk_id is None and self._chunks > 1:
            raise ValueError(f"PipelineLayer: chunk_id must say which of the {self._chunks} chunks of this stage runs")
        functions = self._functions[chunk_id or 0]
        if not self._interval or not self.training:
            return _run(functions, input)
        for begin in range(0, len(functions), self._interval):
            part = functions[begin:begin + self._interval]
            given = input if isinstance(input, tuple) else (input,)
            input = recompute(_part(part), *given)
        return input


def _run(functions, input):
    for function in functions:
        input = function(input)
    return input


def _part(functions):
    def run(*inputs):
        return _run(functions, inputs if len(inputs) > 1 else inputs[0])
    run.parameters = lambda: [p for f in functions if hasattr(f, "parameters") for p in f.parameters()]
    return run


def _using(forward_func, layer):
    def use(input):
        return forward_func(layer, input)
    use.parameters = layer.parameters
    return use


def _default_topology(stages):
    """fleet's topology if it has as many stages; else the ranks one behind the other in stages."""
    from ...group import get_world_size
    from ..base.topology import CommunicateTopology
    from ..fleet import fleet
    if fleet._topology is not None and "pipe" in fleet._topology.get_hybrid_group_names() and fleet._topology.get_dim("pipe") == stages:
        return fleet._topology
    world = get_world_size()
    if world % stages:
        raise AssertionError(f"PipelineLayer: {world} processes do not divide into {stages} stages")
    return CommunicateTopology(["data", "pipe", "model"], [world // stages, stages, 1])
