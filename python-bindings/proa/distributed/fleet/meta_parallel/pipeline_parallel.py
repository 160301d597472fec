"""PipelineParallel: trains a PipelineLayer by a schedule of micro-batches."""
from .... import _core
from ....amp.auto_cast import suspended
from ....autograd import backward
from ....nn import SyncBatchNorm
from ... import communication as _c
from .p2p import Neighbors
from .pipeline_schedule import steps_of
from .wrappers import MetaParallelBase


def _tensors(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _as_input(tensors):
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _check(layers, hcg):
    """Refuses layers that were built for another topology, or that would wait for ranks of other stages."""
    has, needs = (layers._num_stages, layers._stage_id), (hcg.get_pipe_parallel_world_size(), hcg.get_stage_id())
    if has != needs:
        raise ValueError(f"PipelineParallel: the PipelineLayer has {has[0]} stages, and this rank was given stage {has[1]}; fleet's topology "
                         f"(pp_degree) has {needs[0]}, and this rank is of stage {needs[1]}; give PipelineLayer topology=hcg.topology()")
    if needs[0] > 1 and any(isinstance(layer, SyncBatchNorm) for layer in layers.sublayers(include_self=True)):
        raise ValueError("PipelineParallel: SyncBatchNorm (sync_batch_norm), whose statistics are over all ranks, does not go with stages "
                         "(pp_degree), which run at different times; use BatchNorm or GroupNorm")


class PipelineParallel(MetaParallelBase):
    """A PipelineLayer on the hybrid groups; pipeline_configs of the strategy say micro_batch_size, accumulate_steps and the
    schedule."""

    def __init__(self, layers, hcg, strategy):
        from .pipeline_layer import PipelineLayer
        if not isinstance(layers, PipelineLayer):
            raise TypeError("The Layer should be a derived class of PipelineLayer.")
        super().__init__(layers, hcg, strategy)
        configs = strategy.pipeline_configs
        self.micro_batch_size, self.accumulate_steps = configs["micro_batch_size"], configs["accumulate_steps"]
        self.num_stages, self.stage_id = layers._num_stages, hcg.get_stage_id()
        _check(layers, hcg)
        self._chunks = layers.get_num_virtual_stages()
        self.steps = steps_of("PipelineParallel", configs["schedule_mode"], self.stage_id, self.num_stages, self.accumulate_steps, self._chunks)
        self._neighbors = Neighbors(hcg)
        self.total_loss = None

    is_first = property(lambda self: self.stage_id == 0)
    is_last = property(lambda self: self.stage_id == self.num_stages - 1)

    def is_pipeline_first_stage(self):
        """Whether this stage takes the inputs."""
        return self.is_first

    def is_pipeline_last_stage(self):
        """Whether this stage has the loss."""
        return self.is_last

    def _begins(self, chunk):
        """Whether a chunk is the model's first part."""
        return self.is_first and chunk == 0

    def _ends(self, chunk):
        """Whether a chunk is the model's last part."""
        return self.is_last and chunk == self._chunks - 1

    # ---- a batch ----

    def _micro(self, batch, index):
        """Rows of a micro-batch."""
        begin = index * self.micro_batch_size
        return _as_input([tensor[begin:begin + self.micro_batch_size] for tensor in _tensors(batch)])

    def _check(self, data):
        """Checks that this stage's part of a batch has the number of rows that the settings say."""
        n = self.micro_batch_size * self.accumulate_steps
        for batch in [*([data[0]] if self.is_first else []), *([data[1]] if self.is_last else [])]:
            for tensor in _tensors(batch):
                if tensor.shape[0] != n:
                    raise AssertionError(f"Batch size needs to be divisible by micro_batch_size: got {tensor.shape[0]} rows, "
                                         f"expected micro_batch_size {self.micro_batch_size} · accumulate_steps "
                                         f"{self.accumulate_steps} = {n}")

    def _run_chunk(self, data, index, chunk):
        """(what came from the stage before, or None; the chunk's output)."""
        given = None if self._begins(chunk) else self._neighbors.recv_forward()
        inputs = _tensors(self._micro(data[0], index)) if given is None else given
        return given, self._layers(_as_input(inputs), chunk_id=chunk)

    def _forward_step(self, data, index, chunk):
        """(inputs, outputs) of a micro-batch; of the last part the output is its loss over accumulate_steps."""
        given, output = self._run_chunk(data, index, chunk)
        if not self._ends(chunk):
            self._neighbors.send_forward(_tensors(output))
            return given, _tensors(output)
        if self._layers._loss_fn is None:
            raise AssertionError("loss function should exist to compute loss")
        loss = self._layers._loss_fn(output, self._micro(data[1], index))
        if not isinstance(loss, _core.Tensor):
            raise AssertionError("Currently, loss_fn should obtain Paddle.Tensor dtype")
        part = loss / self.accumulate_steps
        self.total_loss = part.detach() if self.total_loss is None else self.total_loss + part.detach()
        return given, [part]

    def _backward_step(self, inputs, outputs, scaler, chunk):
        if self._ends(chunk):
            backward([scaler.scale(outputs[0]) if scaler else outputs[0]], [None])
        else:
            grads, wanted = self._neighbors.recv_backward(), [out for out in outputs if not out.stop_gradient]
            if wanted:  # else nothing up to this stage is trained
                backward(wanted, grads)
        if inputs is not None:
            wanted = [t for t in inputs if not t.stop_gradient]
            self._neighbors.send_backward([_core.full_like(t, 0.0) if t.grad is None else t.grad for t in wanted])

    def forward_backward_pipeline(self, data, scaler=None):
        """Runs the schedule; returns the mean loss, on every stage."""
        self._check(data)
        if scaler is not None and scaler.is_enable():
            scaler.scale(_core.full([1], 0.0, _core.float32))  # a precision that turns it off does so on all stages
        self.total_loss, waiting = None, {}
        for kind, index, chunk in self.steps:
            if kind == "F":
                waiting[index, chunk] = self._forward_step(data, index, chunk)
            else:
                self._backward_step(*waiting.pop((index, chunk)), scaler, chunk)
        self._neighbors.finish()
        self._layers.allreduce_shared_weight_gradients()
        return self._loss_for_all()

    def _loss_for_all(self):
        """The loss on every stage, in float64 if the last stage has it so, else in float32."""
        told = _core.full([2], 0.0, _core.float64)  # the loss, and whether it is float64
        if self.is_last:
            is_double = _core.full([1], float(self.total_loss.dtype == _core.float64), _core.float64)
            told = _core.concat([_core.cast(self.total_loss.reshape([1]), _core.float64), is_double], 0)
        group = self._hcg.get_pipe_parallel_group()
        if group.nranks > 1:
            _c.broadcast(told, group.ranks[-1], group)
        return _core.cast(told[0], _core.float64 if float(told[1]) else _core.float32)

    def train_batch(self, data, optimizer, lr_scheduler=None, scaler=None):
        """A step on [inputs, labels] of micro_batch_size · accumulate_steps rows; returns the mean loss."""
        if not self._layers.training:
            self._layers.train()
        loss = self.forward_backward_pipeline(data, scaler)
        recording = _core.set_recording(False)
        try:
            with suspended():
                if scaler is not None:
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    optimizer.step()
        finally:
            _core.set_recording(recording)
        optimizer.clear_grad()
        if lr_scheduler is not None:
            lr_scheduler.step()
        return loss

    def eval_batch(self, data, compute_loss=False):
        """Runs a batch without gradients: the mean loss on every stage, or on the last stage the outputs."""
        self._layers.eval()
        self._check(data if compute_loss or not self.is_last else [data[0], ()])
        recording, outputs = _core.set_recording(False), []
        self.total_loss = None
        try:
            for index, chunk in [at for kind, *at in self.steps if kind == "F"]:
                output = self._run_chunk(data, index, chunk)[1]
                if not self._ends(chunk):
                    self._neighbors.send_forward(_tensors(output))
                elif compute_loss:
                    part = self._layers._loss_fn(output, self._micro(data[1], index)) / self.accumulate_steps
                    self.total_loss = part if self.total_loss is None else self.total_loss + part
                else:
                    outputs.append(output)
            self._neighbors.finish()
            return self._loss_for_all() if compute_loss else outputs
        finally:
            _core.set_recording(recording)
