"""to_static: training, evaluation and prediction of a layer on a mesh behind one call."""
from ... import _core
from .dist_tensor import DistTensor
from .dispatch import is_dist
from .optimizer import _ShardOptimizer, shard_optimizer
from .placement_type import Replicate, Shard
from .strategy import Strategy

_MODES = ("train", "eval", "predict")


def _sharded(optimizer):
    """The optimizer with states divided along axis 0 where a parameter is Replicate over a dimension of the mesh."""
    def divide(name, param, state):
        placements, size = list(state._placements), state.shape[0] if state.shape else 0
        for at, p in enumerate(placements):
            n = state._mesh.shape[at]
            if p.is_replicated() and n > 1 and size % n == 0 and size and not any(q.is_shard(0) for q in placements):
                placements[at] = Shard(0)
                break
        return state._placed(placements)
    return shard_optimizer(getattr(optimizer, "_inner_opt", optimizer), divide)


def _array(tensor):
    """A result's elements; None where this process has none."""
    return None if is_dist(tensor) and not tensor._is_initialized() else tensor.detach().numpy()


class DistModel:
    """The result of to_static: in the mode train a call is a step and returns its loss, in eval it returns the loss, in predict the
    outputs as a dict, out0, out1, …. The forward pass is captured where that is possible, else it runs eagerly."""

    def __init__(self, layer, loader=None, loss=None, optimizer=None, strategy=None, metrics=None):
        if strategy is not None and not isinstance(strategy, Strategy):
            raise TypeError(f"to_static: strategy must be a paddle.distributed.Strategy, got {type(strategy).__name__}")
        strategy = strategy or Strategy()
        if strategy.pipeline.enable:
            raise NotImplementedError("to_static: strategy.pipeline is not done by it; train stages with fleet's PipelineLayer")
        if strategy.sharding.enable and optimizer is not None:
            optimizer = _sharded(optimizer)
        elif getattr(optimizer, "_on_mesh", None) and not isinstance(optimizer, _ShardOptimizer):
            optimizer = shard_optimizer(optimizer)
        self.network, self._loss, self._optimizer, self._strategy = layer, loss, optimizer, strategy
        self.dist_loader, self._calls, self._captured, self._states = loader, 0, {}, {}
        self._mode = "predict" if loss is None else "eval" if optimizer is None else "train"
        meshes = {p._mesh for p in layer.parameters() if is_dist(p)}
        self._one_mesh = len(meshes) < 2 and all(m.coordinates() is not None for m in meshes)
        self._layer_mode()

    def _layer_mode(self):
        self.network.train() if self._mode == "train" else self.network.eval()

    def _to(self, mode, needed, what):
        if any(value is None for value in needed):
            raise RuntimeError(f"DistModel.{mode}: the model was made without {what}")
        self._mode = mode
        self._layer_mode()

    def train(self):
        """Calls are steps from now on."""
        self._to("train", (self._loss, self._optimizer), "loss and optimizer")

    def eval(self):
        """Calls return the loss from now on."""
        self._to("eval", (self._loss,), "loss")

    def predict(self):
        """Calls return the outputs from now on."""
        self._to("predict", (), "")

    # ---- calls ----

    def __call__(self, *args):
        args = [a if isinstance(a, _core.Tensor) else _core.to_tensor(a) for a in args]
        if self._mode == "train":
            return self._step(args)
        recording = _core.set_recording(False)
        try:
            found = self._run(args)
        finally:
            _core.set_recording(recording)
        return _array(found[0]) if self._mode == "eval" else {f"out{i}": _array(v) for i, v in enumerate(found)}

    def _step(self, args):
        merge = self._strategy.gradient_merge
        loss, = self._run(args)
        loss.backward()
        self._calls += 1
        if not merge.enable or self._calls % merge.k_steps == 0:
            if merge.enable and merge.avg and merge.k_steps > 1:
                self._scale_gradients(1.0 / merge.k_steps)
            self._optimizer.step()
            self._optimizer.clear_grad()
        return _array(loss)

    def _scale_gradients(self, by):
        for p in self.network.parameters():
            local = p._local if is_dist(p) else p
            if local is not None and local.grad is not None:
                local.grad = local.grad * by

    def _run(self, args):
        """Plain tensors: the loss, or in predict the outputs."""
        plain = self._one_mesh and not any(is_dist(a) for a in args)
        key = self._mode
        if plain and key not in self._captured:
            self._captured[key] = self._capture()
        captured = self._captured.get(key) if plain else None
        if captured is not None:
            try:
                return captured(*args)
            except Exception as e:  # what does not capture runs as it is: the same calls, and an error that is the user's comes again
                self._captured[key], self._reason = None, e
        return self._forward(*args)

    def _capture(self):
        from ...jit import to_static as capture
        mode = self._mode

        def forward(*args):
            return self._forward(*args)
        forward.__name__ = f"dist_{mode}"
        return capture(forward)

    def _forward(self, *args):
        if self._mode == "predict":
            outs = self.network(*args)
        else:
            *inputs, label = args
            outs = self._loss(self.network(*inputs), label)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        return [o._placed([Replicate()] * o._mesh.ndim)._local_value() if is_dist(o) and o._is_initialized() else o for o in outs]

    # ---- states and programs ----

    def state_dict(self, mode="all"):
        """Parameters and buffers ("param"), optimizer states ("opt"), or both ("all")."""
        if mode not in ("all", "param", "opt"):
            raise ValueError(f"DistModel.state_dict: mode must be 'all', 'param' or 'opt', got {mode!r}")
        made = {}
        if mode != "opt":
            made.update({t.name: t for t in self.network.state_dict().values()})
        if mode != "param" and self._optimizer is not None:
            states = self._optimizer.state_dict()
            made.update({k: v for k, v in states.items() if isinstance(v, _core.Tensor)})
        return made

    def set_state_dict(self, state_dict):
        """Takes over what state_dict gave, here or on another mesh."""
        own, states = self.state_dict("param"), {}
        for key, value in state_dict.items():
            if key in own:
                own[key].set_value(value._whole() if isinstance(value, DistTensor) else value)
            else:
                states[key] = value
        if states and self._optimizer is not None:
            self._optimizer.set_state_dict(states)

    def dist_main_program(self, mode=None):
        """The captured program of this process for a mode; RuntimeError before its first call, or where calls run eagerly."""
        mode = mode or self._mode
        if mode not in _MODES:
            raise ValueError(f"DistModel: mode must be one of {_MODES}, got {mode!r}")
        captured = self._captured.get(mode)
        reason = getattr(self, "_reason", None) or "call the model first"
        if captured is not None:
            try:
                return captured.main_program
            except ValueError as e:
                reason = e
        raise RuntimeError(f"DistModel.dist_main_program: there is no program of mode {mode!r}: {reason}")

    serial_main_program = dist_main_program


def to_static(layer, loader=None, loss=None, optimizer=None, strategy=None):
    """A DistModel of a layer on a mesh, and the loader. All processes hand it the same batches; those that are on the mesh already
    may be divided.

    >>> import proa as paddle
    >>> import proa.distributed as dist
    >>> net = dist.shard_layer(paddle.nn.Linear(2, 1), dist.ProcessMesh([0]))
    >>> opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    >>> model, _ = dist.to_static(net, None, paddle.nn.MSELoss(), opt)
    >>> model(paddle.ones([4, 2]), paddle.ones([4, 1])).shape
    ()
    """
    model = DistModel(layer, loader, loss, optimizer, strategy)
    return model, model.dist_loader
