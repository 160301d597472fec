"""Quantization of saved models by samples (PostTrainingQuantization), and of weights alone (WeightQuantization)."""
import os
import shutil

from ...quantization.program.adaround import learned_integers
from ...quantization.program.model import Model, batches
from ...quantization.program.rewrite import Rewriter, integers, weight_scale
from ...quantization.program.slots import ACTIVATIONS, ALL, WEIGHTED, channel_axis, operands, results, skipped
from ...quantization.program.thresholds import Search, cal_kl_threshold, percentile_threshold, power_of_two_threshold

__all__ = ["PostTrainingQuantization", "PostTrainingQuantizationProgram", "WeightQuantization"]

_ALGORITHMS = ("KL", "hist", "avg", "mse", "emd", "abs_max", "min_max", "ptf")
_BINS = 2048


def _one_of(who, name, value, allowed):
    if value not in allowed:
        raise AssertionError(f"{who}: {name} must be one of {', '.join(map(str, allowed))}, got {value!r}")
    return value


class _Statistics:
    """Statistics of a variable's values, as an algorithm needs them."""

    def __init__(self, algo, bits, symmetric):
        self.low, self.high, self.means = float("inf"), -float("inf"), []
        self.search = Search(algo, bits, symmetric) if algo in ("mse", "emd") else None
        self.hist = self.edges = self.last = None

    @property
    def most(self):
        return max(abs(self.low), abs(self.high))

    def see_range(self, x):
        self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))

    def see_bins(self, x):
        """Counts magnitudes between the least and the largest magnitude of the range's ends."""
        import numpy as np
        if self.hist is None:
            low = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
            self.edges = np.histogram_bin_edges([], _BINS, (low, max(self.most, low + 1e-30)))
            self.hist = np.zeros(_BINS)
        self.hist += np.histogram(np.abs(x), self.edges)[0]

    def see(self, x, algo, bits):
        import numpy as np
        self.see_range(x)
        if algo == "avg":
            rows = np.abs(x.reshape(x.shape[0] if x.ndim else 1, -1))
            self.means.append(float(rows.max(1).mean()))
        elif algo == "ptf":
            self.last = power_of_two_threshold(x, bits)
        elif self.search is not None:
            self.search.see(x)

    def threshold(self, algo, bits, share):
        import numpy as np
        if algo == "avg":
            return float(np.mean(self.means))
        if algo == "ptf":
            return self.last
        if self.search is not None:
            return self.search.threshold
        if algo in ("KL", "hist") and self.hist is not None and self.hist.sum() > 0:
            width = float(self.edges[1] - self.edges[0])
            return float(cal_kl_threshold(self.hist, width, bits) if algo == "KL" else
                         percentile_threshold(self.hist, width, share))
        return self.most


class PostTrainingQuantization:
    """Quantizes a saved model by what its variables are on samples.

    `algo` says how a threshold follows from samples: the largest magnitude (abs_max), the least divergence (KL), a share of
    all values (hist), the average over batches (avg), the least error (mse, emd), powers of two (ptf); min_max notes ranges
    alone. Samples come from data_loader, batch_generator or sample_generator. All arguments but the first can be given by
    name, in the order of any version.
    """

    def __init__(self, executor, model_dir=None, model_filename=None, params_filename=None, batch_generator=None,
                 sample_generator=None, data_loader=None, batch_size=10, batch_nums=None, scope=None, algo="KL",
                 hist_percent=0.99999, quantizable_op_type=("conv2d", "depthwise_conv2d", "mul"), round_type="round",
                 learning_rate=0.001, is_full_quantize=False, bias_correction=False, activation_bits=8, weight_bits=8,
                 activation_quantize_type="range_abs_max", weight_quantize_type="channel_wise_abs_max", onnx_format=False,
                 freeze_model=True, optimize_model=False, is_use_cache_file=False, skip_tensor_list=None,
                 same_scale_tensor_list=None, cache_dir=None, scale_dict=None, return_graph=False, deploy_backend=None):
        who = "PostTrainingQuantization"
        self._model = None if model_dir is None else Model.load(model_dir, model_filename, params_filename)
        self._batches = batches(data_loader, batch_generator, sample_generator, batch_size)
        self._batch_nums, self._executor, self._scope = batch_nums, executor, scope
        self._algo = _one_of(who, "algo", algo, _ALGORITHMS)
        _one_of(who, "activation_quantize_type", activation_quantize_type,
                ("range_abs_max", "moving_average_abs_max", "abs_max"))
        _one_of(who, "weight_quantize_type", weight_quantize_type, ("abs_max", "channel_wise_abs_max"))
        self._round_type, self._rate = _one_of(who, "round_type", round_type, ("round", "adaround")), learning_rate
        types = list(ALL) if is_full_quantize else list(quantizable_op_type)
        for one in types:
            _one_of(who, "quantizable_op_type", one, ALL)
        self._weighted = [t for t in types if t in WEIGHTED]
        self._activations = [t for t in types if t in ACTIVATIONS and t not in WEIGHTED]
        self._activation_bits, self._weight_bits, self._share = activation_bits, weight_bits, hist_percent
        self._activation_type, self._weight_type = activation_quantize_type, weight_quantize_type
        self._bias_correction, self._onnx_format = bias_correction, onnx_format
        self._optimize = optimize_model
        self._skip_tensors, self._together = set(skip_tensor_list or ()), same_scale_tensor_list or ()
        self._given_scales = scale_dict
        self._program = self._feed_list = self._fetch_list = None

    # ---- thresholds

    def _skips(self, op):
        return skipped(op) or any(n in self._skip_tensors for n in op.input_names)

    def _watched(self):
        """Names of the activations around the operators that are quantized."""
        block, names = self._model.desc.main, {}
        for op in block.ops:
            if op.type in self._weighted or op.type in self._activations:
                for name in [*operands(op), *(n for _, _, n in results(op))]:
                    var = block.vars.get(name)
                    if var is not None and not var.persistable and var.dtype in (None, "float32", "float64"):
                        names[name] = True
        return list(names)

    def _each_batch(self, run):
        for i, feed in enumerate(self._batches()):
            if self._batch_nums and i >= self._batch_nums:
                return
            yield run(feed)

    def _thresholds(self):
        """name → (threshold, least, largest)."""
        names = self._watched()
        if not names:
            return {}
        seen = {n: _Statistics(self._algo, self._activation_bits, self._onnx_format) for n in names}
        run = self._model.runner(names)
        binned = self._algo in ("KL", "hist")
        for values in self._each_batch(run):
            for name, x in values.items():
                if x.size:
                    seen[name].see(x, self._algo, self._activation_bits)
        for values in self._each_batch(run) if binned else ():
            for name, x in values.items():
                if x.size:
                    seen[name].see_bins(x)
        found = {n: s for n, s in seen.items() if s.high >= s.low}
        if not found:
            raise ValueError("PostTrainingQuantization: there are no samples")
        return {n: (s.threshold(self._algo, self._activation_bits, self._share), s.low, s.high) for n, s in found.items()}

    def _shared(self, scales):
        """Variables of a list get the largest scale of it; `name#*#2` counts a multiple."""
        for group in self._together:
            parts = [(name, op, float(factor or 1)) for name, op, factor in
                     ((*item.split("#"), "", "")[:3] for item in group)]
            parts = [(n, f if op != "/" else 1 / f) for n, op, f in parts if n in scales]
            if parts:
                most = max(scales[n] * f for n, f in parts)
                for name, factor in parts:
                    scales[name] = most / factor

    # ---- the whole

    def quantize(self):
        """Runs the samples and quantizes the model; returns the program."""
        if self._optimize:
            raise NotImplementedError("PostTrainingQuantization: optimize_model is not supported: export the model with its "
                                      "normalization folded (fuse=True of ImperativePTQ), or leave it out")
        found = self._thresholds()
        block = self._model.desc.main
        if self._algo == "min_max":
            self._note_ranges(found)
        else:
            scales = {n: f[0] for n, f in found.items()}
            self._shared(scales)
            scales.update(self._given_scales or {})
            self._note_outputs(scales)
            Rewriter(block, self._model.arrays, self._activation_bits, self._weight_bits, self._onnx_format,
                     self._weight_type == "channel_wise_abs_max", self._activation_type,
                     self._bias_correction, self._rounding()).run(scales, self._weighted, self._activations, self._skips)
        self._model.clean()
        self._program, self._feed_list, self._fetch_list = self._model.program()
        return self._program

    def _rounding(self):
        """The function that rounds a weight for its operator. adaround learns from what the float model computes."""
        if self._round_type == "round":
            return integers
        reads = {}
        for op in self._model.desc.main.ops:
            if op.type in self._weighted:
                for name in operands(op):
                    if name not in self._model.arrays:
                        reads[id(op)] = name
        run = self._model.runner(list(dict.fromkeys(reads.values())))
        seen = list(self._each_batch(run))

        def learned(weight, scale, axis, bits, even, op):
            batches_of = [values[reads[id(op)]] for values in seen]
            return learned_integers(op, weight, scale, axis, bits, batches_of, self._rate, even)
        return learned

    def _note_ranges(self, found):
        for op in self._model.desc.main.ops:
            if op.type in self._weighted or op.type in self._activations:
                for name in operands(op):
                    if name in found:
                        op.set_attr(name + ".min", found[name][1])
                        op.set_attr(name + ".max", found[name][2])
                        op.set_attr("with_quant_attr", True)

    def _note_outputs(self, scales):
        for op in self._model.desc.main.ops:
            if self._onnx_format or op.type not in self._weighted + self._activations:
                continue
            for slot, index, name in results(op):
                if name in scales:
                    op.set_attr("out_threshold", float(scales[name]))
                    op.set_attr(f"{slot}{index}_threshold", float(scales[name]))
                    op.set_attr("quantization_type", "post_" + self._algo.lower())
                    op.set_attr("bit_length", self._weight_bits)
                    op.set_attr("with_quant_attr", True)

    def save_quantized_model(self, save_model_path, model_filename=None, params_filename=None):
        """Writes the model into a folder: model.pdmodel and model.pdiparams, or what the names say."""
        if self._program is None:
            raise RuntimeError("save_quantized_model: call quantize() first")
        stem = os.path.splitext(model_filename)[0] if (model_filename or "").endswith(".pdmodel") else model_filename
        self._model.save(os.path.join(save_model_path, stem or "model"))


class PostTrainingQuantizationProgram(PostTrainingQuantization):
    """PostTrainingQuantization of a Program with what is fed and fetched."""

    def __init__(self, executor, program, feed_list=None, fetch_list=None, scope=None, **options):
        from ..io import normalize_program
        if feed_list is None or fetch_list is None:
            raise AssertionError("PostTrainingQuantizationProgram: feed_list and fetch_list must be given")
        super().__init__(executor, scope=scope, **options)
        find = program.global_block().var
        feeds = [find(v) if isinstance(v, str) else v for v in feed_list]
        fetches = [find(v) if isinstance(v, str) else v for v in fetch_list]
        self._model = Model.of(normalize_program(program, feeds, fetches), scope)


class WeightQuantization:
    """Keeps weights of a saved model as integers: smaller files, for Paddle Lite."""

    _supported_quantizable_op_type = ["conv2d", "depthwise_conv2d", "mul"]
    _supported_weight_quantize_type = ["channel_wise_abs_max", "abs_max"]

    def __init__(self, model_dir, model_filename=None, params_filename=None):
        self._model_dir, self._model_filename, self._params_filename = model_dir, model_filename, params_filename

    def quantize_weight_to_int(self, save_model_dir, save_model_filename=None, save_params_filename=None,
                               quantizable_op_type=("conv2d", "mul"), weight_bits=8,
                               weight_quantize_type="channel_wise_abs_max", generate_test_model=False, threshold_rate=0.0):
        """Writes save_model_dir/quantized_model with integers of 8 or 16 bits in the weights of those operators; with
        generate_test_model also test_model, whose weights are the numbers that they stand for."""
        who = "quantize_weight_to_int"
        for one in quantizable_op_type:
            _one_of(who, "quantizable_op_type", one, self._supported_quantizable_op_type)
        _one_of(who, "weight_bits", weight_bits, (8, 16))
        _one_of(who, "weight_quantize_type", weight_quantize_type, self._supported_weight_quantize_type)
        channels = weight_quantize_type == "channel_wise_abs_max"
        name = (save_model_filename or "model").removesuffix(".pdmodel")
        for folder, as_floats in (("quantized_model", False), ("test_model", True))[:1 + bool(generate_test_model)]:
            model = Model.load(self._model_dir, self._model_filename, self._params_filename)
            self._quantize(model, quantizable_op_type, weight_bits, channels, threshold_rate, as_floats)
            model.save(os.path.join(save_model_dir, folder, name))

    @staticmethod
    def _quantize(model, types, bits, channels, rate, as_floats):
        import numpy as np
        n, done = 2 ** (bits - 1) - 1, {}
        for block in model.desc.blocks:
            for op in block.ops:
                for name in op.input_names if op.type in types else ():
                    if name not in model.arrays:
                        continue
                    if name not in done:
                        weight, axis = model.arrays[name], channel_axis(op) if channels else None
                        scale = weight_scale(weight, axis)
                        if not channels and rate > 1e-10:
                            hist, edges = np.histogram(np.abs(weight), 5000, (0, float(scale[0])))
                            reached = np.cumsum(hist) / hist.sum() >= 1 - rate
                            scale = np.array([(np.argmax(reached) + 1) * (edges[1] - edges[0])], np.float32)
                        kept = integers(weight, scale, axis, bits).astype(f"int{bits}")
                        around = scale.reshape([-1 if d == axis else 1 for d in range(weight.ndim)])
                        model.arrays[name] = (kept * (around / n)).astype("float32") if as_floats else kept
                        block.vars[name] = block.vars[name].retyped(model.arrays[name].dtype.name)
                        done[name] = [float(s) / n for s in scale]
                    kind = "channel_wise_abs_max" if channels else "abs_max"
                    op.set_attr("quantization_type", "post_weight_" + kind)
                    op.set_attr("quantize_weight_bits", bits)
                    op.set_attr(name + "_quant_scale", done[name])
                    op.set_attr("with_quant_attr", True)

    def convert_weight_to_fp16(self, save_model_dir):
        """Writes the model with its float32 parameters as float16. The program stays as it is."""
        model = Model.load(self._model_dir, self._model_filename, self._params_filename)
        from ..params import combined
        from ... import _core
        from ...framework.tensor_file import write_tensor
        arrays = {n: a.astype("float16") if a.dtype == "float32" else a for n, a in model.arrays.items()}
        os.makedirs(save_model_dir, exist_ok=True)
        source = self._model_filename or "__model__"
        shutil.copyfile(os.path.join(self._model_dir, source), os.path.join(save_model_dir, source))
        if self._params_filename is not None:
            with _core.FileWriter(os.path.join(save_model_dir, self._params_filename)) as f:
                f.write(combined(arrays))
            return
        for name, array in arrays.items():
            with _core.FileWriter(os.path.join(save_model_dir, name)) as f:
                write_tensor(array, f)
