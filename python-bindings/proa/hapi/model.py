"""paddle.Model: fit, evaluate and predict, the training and evaluation loops for a network."""
import inspect
import os
import warnings

from .. import _core
from .._errors import need_attribute
from ..io import DataLoader, Dataset, DistributedBatchSampler
from ..io.batch_sampler import rank_and_size
from ..metric import Metric
from ..static.input import InputSpec
from .callbacks import EarlyStopping, config_callbacks

_AMP_LISTS = ("custom_white_list", "custom_black_list", "custom_black_varnames")
_AMP_SCALER = ("init_loss_scaling", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf",
               "use_dynamic_loss_scaling")


def _list(value):
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tensor(value):
    if isinstance(value, _core.Tensor):
        return value
    if not isinstance(value, (list, tuple)) and not hasattr(value, "__array__"):
        raise TypeError(f"Model: a batch must hold Tensors, arrays or lists, got {type(value).__name__}")
    return _core.to_tensor(value)


def _batch(inputs, labels):
    """The fields of a batch as Tensors."""
    inputs, labels = _list(inputs), _list(labels)
    for value in inputs:
        if not isinstance(value, (list, tuple)):
            need_attribute("Model", "shape", "a Tensor, an array or a list", inputs=value)
    return [_tensor(x) for x in inputs], [_tensor(y) for y in labels]


def _numpy(value):
    return value.detach().numpy() if isinstance(value, _core.Tensor) else value


def _flat(value):
    """The leaves of nested lists, tuples and dicts (by sorted key)."""
    if isinstance(value, dict):
        value = [value[k] for k in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in _flat(v)]
    return [value]


def _all_gather(x):
    """The x of all processes, concatenated along dim 0."""
    if rank_and_size()[1] == 1:
        return x
    from .. import distributed
    gathered = []
    distributed.all_gather(gathered, x)
    return _core.concat(gathered, 0)


def _without_recording(fn):
    import functools

    @functools.wraps(fn)
    def call(*args, **kwargs):
        was = _core.set_recording(False)
        try:
            return fn(*args, **kwargs)
        finally:
            _core.set_recording(was)
    return call


class Model:
    """A network with what its training needs. inputs and labels: InputSpecs; needed where a batch's fields
    cannot be told apart by forward's arguments."""

    def __init__(self, network, inputs=None, labels=None):
        self.mode = "train"
        self.network = network
        self.stop_training = False
        self._loss = self._optimizer = self._scaler = None
        if inputs and isinstance(inputs, (list, tuple)):
            for spec in inputs:
                need_attribute("Model", "shape", "an InputSpec", inputs=spec)
        self._inputs = self._specs(inputs, is_input=True)
        self._labels = self._specs(labels)
        self._shapes_known = inputs is not None
        self._amp_level, self._amp_lists, self._amp_scaler = "O0", {}, {}

    def __getattr__(self, name):
        if name == "_metrics":
            raise AttributeError("Model: call prepare() before fit, evaluate and predict")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _specs(self, specs, is_input=False):
        names = [n for n in inspect.getfullargspec(self.network.forward).args if n != "self"]
        if specs is None:
            return [InputSpec([None], name=n) for n in names] if is_input else None
        specs = [specs[n] for n in names] if isinstance(specs, dict) else _list(specs)
        for i, spec in enumerate(specs):
            if not isinstance(spec, InputSpec):
                raise AssertionError(f"Model: input {i} must be an InputSpec, got {type(spec).__name__}")
            if spec.name is None:
                raise ValueError(f"Model: InputSpec {i} needs a name: {spec}")
        return specs

    def _learn_inputs(self, inputs):
        if self._shapes_known:
            return
        names = [n for n in inspect.getfullargspec(self.network.forward).args if n != "self"]
        self._inputs = [InputSpec(list(x.shape), x.dtype, n) for n, x in zip(names, inputs)]
        self._shapes_known = True

    # ---- one batch ----

    def train_batch(self, inputs, labels=None, update=True):
        """One step; update=False only gathers gradients. Returns the losses, with metrics ([losses], [metrics])."""
        if not self._optimizer:
            raise AssertionError("Model.train_batch: call prepare(optimizer, loss) first")
        self.network.train()
        self.mode = "train"
        inputs, labels = _batch(inputs, labels)
        self._learn_inputs(inputs)
        outputs = self._forward_amp(inputs)
        losses = _list(self._loss(*outputs, *labels))
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        if self._amp_level != "O0":
            total = self._scaler.scale(total)
        total.backward()
        if update:
            if self._amp_level != "O0":
                self._scaler.minimize(self._optimizer, total)
            else:
                self._optimizer.step()
            self.network.clear_gradients()
        metrics = self._update_metrics(outputs, labels)
        losses = [_numpy(loss) for loss in losses]
        return (losses, metrics) if metrics else losses

    def _forward_amp(self, inputs):
        if self._amp_level == "O0":
            return _list(self.network(*inputs))
        from .. import amp
        if self._scaler is None:
            self._scaler = amp.GradScaler(**self._amp_scaler)
        with amp.auto_cast(enable=True, level=self._amp_level, **self._amp_lists):
            return _list(self.network(*inputs))

    def _update_metrics(self, outputs, labels):
        return [m.update(*[_numpy(v) for v in _list(m.compute(*outputs, *labels))]) for m in self._metrics]

    @_without_recording
    def eval_batch(self, inputs, labels=None):
        """Losses and metrics of one batch, as train_batch's."""
        self.network.eval()
        self.mode = "eval"
        inputs, labels = _batch(inputs, labels)
        self._learn_inputs(inputs)
        outputs = _list(self.network(*inputs))
        losses = [_numpy(v) for v in _list(self._loss(*outputs, *labels))] if self._loss else None
        metrics = self._update_metrics(outputs, labels)
        if self._loss and metrics:
            return losses, metrics
        return losses if self._loss else metrics

    @_without_recording
    def predict_batch(self, inputs):
        """The network's outputs for one batch, as arrays."""
        self.network.eval()
        self.mode = "test"
        inputs = [_tensor(x) for x in _list(inputs)]
        self._learn_inputs(inputs)
        return [_numpy(o) for o in _list(self.network(*inputs))]

    # ---- setting up, saving, loading ----

    def prepare(self, optimizer=None, loss=None, metrics=None, amp_configs=None):
        """Sets the optimizer, the loss, the metrics, and mixed precision: a level "O0", "O1", "O2" or a dict."""
        if loss is not None and not callable(loss):
            raise TypeError(f"Model.prepare: loss must be a Layer or a callable, got {type(loss).__name__}")
        if amp_configs and not isinstance(amp_configs, str):
            need_attribute("Model.prepare", "keys", "a level or a dict", amp_configs=amp_configs)
        for m in _list(metrics):
            if not isinstance(m, Metric):
                raise AssertionError(f"Model.prepare: each metric must be a paddle.metric.Metric, got {m!r}")
        self._optimizer, self._loss, self._metrics = optimizer, loss, _list(metrics)
        self._prepare_amp({"level": amp_configs} if isinstance(amp_configs, str) else dict(amp_configs or {}),
                          bool(amp_configs))

    def _prepare_amp(self, configs, wanted):
        level = configs.pop("level", "O1") if wanted else "O0"
        if level not in ("O0", "O1", "O2"):
            raise ValueError(f"Model.prepare: the level in amp_configs must be O0, O1 or O2, got {level!r}")
        if "use_fp16_guard" in configs:
            raise ValueError("Model.prepare: use_fp16_guard in amp_configs is for static programs")
        unknown = set(configs) - set(_AMP_LISTS) - set(_AMP_SCALER)
        if unknown and level != "O0":
            raise ValueError(f"Model.prepare: amp_configs has unknown keys {sorted(unknown)}")
        self._amp_level, self._scaler = level, None
        self._amp_lists = {k: v for k, v in configs.items() if k in _AMP_LISTS}
        self._amp_scaler = {k: v for k, v in configs.items() if k in _AMP_SCALER}

    def parameters(self, *args, **kwargs):
        """The network's parameters."""
        return self.network.parameters()

    def save(self, path, training=True):
        """Saves path.pdparams and path.pdopt; training=False saves the network for inference."""
        if rank_and_size()[0] != 0:
            return
        if not training:
            self._save_inference(path)
            return
        from ..framework.io import save
        save(self.network.state_dict(), path + ".pdparams")
        state = self._optimizer.state_dict() if self._optimizer is not None else None
        if state:
            save(state, path + ".pdopt")
        if self._scaler is not None and self._scaler.state_dict():
            save(self._scaler.state_dict(), path + ".pdscaler")

    def _save_inference(self, path):
        if not self._shapes_known:
            raise RuntimeError("Model.save: saving for inference needs the inputs' shapes: give inputs to Model, or "
                               "run a batch first")
        from ..jit import save
        save(self.network, path, input_spec=self._inputs)

    def load(self, path, skip_mismatch=False, reset_optimizer=False):
        """Loads what save wrote. skip_mismatch: parameters that are absent or of another shape are left alone."""
        from ..framework.io import load
        root, ext = os.path.splitext(path)
        if ext not in ("", ".pdparams", ".pdopt", ".pdmodel"):
            raise AssertionError(f"Model.load: path must be a prefix or end in .pdparams, .pdopt or .pdmodel, "
                                 f"got {path!r}")
        if not os.path.exists(root + ".pdparams"):
            raise AssertionError(f"Model.load: {root}.pdparams does not exist")
        state, matched = load(root + ".pdparams", return_numpy=True), []
        for key, param in self.network.state_dict().items():
            value, problem = state.get(key), None
            if value is None:
                problem = f"{key} is not in {root}.pdparams"
            elif list(value.shape) != list(param.shape):
                problem = f"{key} has shape {list(value.shape)} in the file, {list(param.shape)} in the network"
            if problem is None:
                matched.append((param, value))
            elif skip_mismatch:
                warnings.warn(f"Model.load: {problem}; it is skipped", stacklevel=2)
                reset_optimizer = True
            else:
                raise ValueError(f"Model.load: {problem}")
        for param, value in matched:
            param.set_value(value)
        if self._scaler is not None and os.path.exists(root + ".pdscaler"):
            self._scaler.load_state_dict(load(root + ".pdscaler"))
        if self._optimizer is not None and not reset_optimizer and os.path.exists(root + ".pdopt"):
            self._optimizer.set_state_dict(load(root + ".pdopt"))

    def summary(self, input_size=None, dtype=None):
        """Prints the layers with shapes and parameters; returns the counts."""
        from .model_summary import summary
        if input_size is None and not self._inputs:
            raise AssertionError("Model.summary: give input_size, or inputs to Model")
        return summary(self.network, self._inputs if input_size is None else input_size, dtypes=dtype)

    # ---- loops ----

    @staticmethod
    def _loader(data, batch_size, num_workers, shuffle=False, drop_last=False):
        if not isinstance(data, Dataset):
            return data
        sampler = DistributedBatchSampler(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
        return DataLoader(data, batch_sampler=sampler, num_workers=num_workers, return_list=True)

    @staticmethod
    def _steps(loader):
        try:
            return len(loader)
        except Exception:       # a generator, or an IterableDataset's loader
            return None

    def _metrics_name(self):
        return (["loss"] if self._loss else []) + [n for m in self._metrics for n in _list(m.name())]

    def fit(self, train_data=None, eval_data=None, batch_size=1, epochs=1, eval_freq=1, log_freq=10, save_dir=None,
            save_freq=1, verbose=2, drop_last=False, shuffle=True, num_workers=0, callbacks=None,
            accumulate_grad_batches=1, num_iters=None):
        """Trains; evaluates on eval_data every eval_freq epochs. Data: a Dataset, or an iterable of batches.
        batch_size: one number, or a pair for training and evaluation."""
        if train_data is None:
            raise AssertionError("Model.fit: train_data must be given")
        sizes = list(batch_size) if isinstance(batch_size, (tuple, list)) else [batch_size, batch_size]
        if len(sizes) != 2:
            raise AssertionError(f"Model.fit: batch_size must be a number or a pair, got {batch_size!r}")
        train = self._loader(train_data, sizes[0], num_workers, shuffle, drop_last)
        held_out = self._loader(eval_data, sizes[1], num_workers)
        self._accumulate, self._left = accumulate_grad_batches, num_iters
        steps = self._steps(train)
        if num_iters is not None and steps is not None:
            if num_iters <= 0:
                raise AssertionError(f"Model.fit: num_iters must be positive, got {num_iters}")
            epochs, steps = num_iters // steps + 1, min(num_iters, steps)
        calls = config_callbacks(callbacks, model=self, epochs=epochs, steps=steps, log_freq=log_freq,
                                 save_freq=save_freq, save_dir=save_dir, verbose=verbose,
                                 metrics=self._metrics_name())
        if held_out is None and any(isinstance(c, EarlyStopping) for c in calls):
            warnings.warn("Model.fit: EarlyStopping needs eval_data", stacklevel=2)
        logs = {}
        calls.on_begin("train")
        for epoch in range(epochs):
            calls.on_epoch_begin(epoch)
            logs = self._run(train, calls, "train")
            calls.on_epoch_end(epoch, logs)
            if held_out is not None and epoch % eval_freq == 0:
                calls.on_begin("eval", {"steps": self._steps(held_out), "metrics": self._metrics_name()})
                calls.on_end("eval", self._run(held_out, calls, "eval"))
            if self.stop_training:
                break
        calls.on_end("train", logs)

    def evaluate(self, eval_data, batch_size=1, log_freq=10, verbose=2, num_workers=0, callbacks=None,
                 num_iters=None):
        """Loss and metrics over the data, as a dict."""
        loader = self._loader(eval_data, batch_size, num_workers)
        calls = config_callbacks(callbacks, model=self, log_freq=log_freq, verbose=verbose,
                                 metrics=self._metrics_name())
        steps = self._steps(loader)
        if num_iters is not None and steps is not None:
            if num_iters <= 0:
                raise AssertionError(f"Model.evaluate: num_iters must be positive, got {num_iters}")
            steps = num_iters = min(num_iters, steps)
        self._left = num_iters
        calls.on_begin("eval", {"steps": steps, "metrics": self._metrics_name()})
        logs = self._run(loader, calls, "eval")
        calls.on_end("eval", logs)
        return {name: logs[name] for name in self._metrics_name()}

    def predict(self, test_data, batch_size=1, num_workers=0, stack_outputs=False, verbose=1, callbacks=None):
        """The outputs over the data: a list an output, of a batch's array each; stack_outputs: one array each."""
        loader = self._loader(test_data, batch_size, num_workers)
        calls = config_callbacks(callbacks, model=self, verbose=verbose)
        self._left = None
        calls.on_begin("predict", {"steps": self._steps(loader)})
        outputs = []
        logs = self._run(loader, calls, "predict", outputs)
        outputs = list(zip(*outputs))
        if stack_outputs:
            import numpy as np
            outputs = [np.vstack(o) for o in outputs]
        calls.on_end("predict", logs)
        return outputs

    def _run(self, loader, calls, mode, outputs=None):
        """One pass over the data. Returns the last batch's logs."""
        logs, count, steps = {}, len(self._inputs), self._steps(loader)
        for step, data in enumerate(loader):
            data = _flat(data)
            samples = data[0].shape[0]
            calls.on_batch_begin(mode, step, logs)
            if mode == "predict":
                outputs.append(self.predict_batch(data[:count]))
            else:
                self._one(mode, data[:count], data[count:], step, steps, logs)
            logs["step"] = step
            logs["batch_size"] = samples * (rank_and_size()[1] if mode == "train" else 1)
            calls.on_batch_end(mode, step, logs)
            if self._left is not None:
                self._left -= 1
                if self._left <= 0:
                    self.stop_training, self._left = True, None
                    break
        for m in self._metrics:
            m.reset()
        return logs

    def _one(self, mode, inputs, labels, step, steps, logs):
        if mode == "train":
            out = self.train_batch(inputs, labels, (step + 1) % self._accumulate == 0 or step + 1 == steps)
        else:
            out = self.eval_batch(inputs, labels)
        values = []
        if self._loss:
            values.append([float(v) for v in (out[0] if self._metrics else out)])
        for m in self._metrics:
            values += _list(m.accumulate())
        logs.update(zip(self._metrics_name(), values))
