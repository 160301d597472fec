"""GradScaler: dynamic loss scaling, so that small float16 gradients do not underflow. One op unscales all gradients and
searches them for infinities; the scale and its counters follow Paddle's rule."""
import collections
import enum
import functools
import warnings

from .. import _core
from .auto_cast import state as amp_state
from .auto_cast import takes_effect


class OptimizerState(enum.Enum):
    INIT = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_states():
    return collections.defaultdict(lambda: {"state": OptimizerState.INIT})


class AmpScaler:
    """The scaler's base, with the defaults of older scripts; see GradScaler."""

    def __init__(self, enable=True, init_loss_scaling=2.0 ** 15, incr_ratio=2.0, decr_ratio=0.5,
                 incr_every_n_steps=1000, decr_every_n_nan_or_inf=1, use_dynamic_loss_scaling=True):
        if enable and not takes_effect("float16"):
            warnings.warn(f"{type(self).__name__}: loss scaling is for float16, which has no effect on a CPU; "
                          "the scaler does nothing")
            enable = False
        self._enable = enable
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling and enable
        if not enable:
            return
        if not incr_ratio > 1.0 or not decr_ratio < 1.0:
            raise AssertionError(f"{type(self).__name__}: incr_ratio must be above 1 and decr_ratio below, got "
                                 f"{incr_ratio} and {decr_ratio}")
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_count = self._decr_count = 0
        self._good = self._bad = None  # the counters, once they are on a device
        self._found_inf = _core.full([1], False, _core.bool)
        self._cache_founf_inf = None
        self._optimizer_states = _fresh_states()
        self.set_init_loss_scaling(init_loss_scaling)

    def scale(self, var):
        """var × the scale."""
        if self._enable and not isinstance(var, _core.Tensor):
            raise TypeError(f"scale: expected a Tensor, got {type(var).__name__}")
        if self._enable and amp_state.last != "float16" and self._use_dynamic_loss_scaling:
            self._enable = self._use_dynamic_loss_scaling = False
            warnings.warn(f"scale: dynamic loss scaling is of no use for {amp_state.last}; the scaler is off now")
        return var * self._scale if self._enable else var

    def minimize(self, optimizer, *args, **kwargs):
        """Unscales, steps with optimizer.minimize unless a gradient is infinite, and updates the scale."""
        if not self._enable:
            return optimizer.minimize(*args, **kwargs)
        if self._optimizer_states[id(optimizer)]["state"] is OptimizerState.INIT:
            self._unscale(optimizer)
        result = self._guarded(optimizer, optimizer.minimize, *args, **kwargs)
        if self._use_dynamic_loss_scaling:
            self._update()
        self._optimizer_states = _fresh_states()
        return (None, None) if result is None else result

    def _guarded(self, optimizer, call, *args, **kwargs):
        """The call, told (or left out for optimizers that cannot be told) whether a gradient is infinite."""
        if hasattr(optimizer, "_set_auxiliary_var"):
            optimizer._set_auxiliary_var('found_inf', self._found_inf)
            result = call(*args, **kwargs)
            found = optimizer._get_auxiliary_var('found_inf')
            self._cache_founf_inf = found if self._good is not None else bool(found)
            optimizer._set_auxiliary_var('found_inf', None)
            return result
        self._cache_founf_inf = bool(self._found_inf)
        return None if self._cache_founf_inf else call(*args, **kwargs)

    def _unscale(self, optimizer):
        if not self._enable:
            return
        of_optimizer = self._optimizer_states[id(optimizer)]
        if of_optimizer["state"] is OptimizerState.UNSCALED:
            raise RuntimeError("unscale_: it was called already for this optimizer since the last update()")
        if of_optimizer["state"] is OptimizerState.STEPPED:
            raise RuntimeError("unscale_: it must be called before step()")
        by_dtype, there = {}, None
        for g in _core.gather_grads(optimizer._all_parameters())[0]:
            if g is not None:
                by_dtype.setdefault(str(g.dtype), []).append(g)
                there = there or g.place
        recording = _core.set_recording(False)
        try:
            self._follow(there)
            flags = [_core.check_finite_and_unscale(grads, self._scale)[-1] for grads in by_dtype.values()]
            if self._good is None:
                self._found_inf = _core.full([1], any(map(bool, flags)), _core.bool)
            elif flags:
                self._found_inf = functools.reduce(_core.logical_or, flags)
        finally:
            _core.set_recording(recording)
        of_optimizer["state"] = OptimizerState.UNSCALED

    def _follow(self, place):
        """Beside gradients on a device the scale and its counters are there, too: no step waits for them."""
        if place is None or place.is_cpu_place() or self._good is not None and self._scale.place == place:
            return
        counts = self._counts()
        self._scale = self._scale.to(place)
        self._blank = _core.full([1], 0.0, _core.float32).to(place)
        self._good, self._bad = (_core.full([1], n, _core.int32).to(place) for n in counts)

    def _counts(self):
        if self._good is None:
            return self._incr_count, self._decr_count
        return int(self._good), int(self._bad)

    def _update(self):
        if not self._enable:
            return
        if self._good is not None:
            # the gradients may have gone by now: the op zeroes a tensor that nobody reads
            _core.update_loss_scaling([self._blank], self._cache_founf_inf, self._scale, self._good, self._bad, None,
                                      self._incr_every_n_steps, self._decr_every_n_nan_or_inf, self._incr_ratio,
                                      self._decr_ratio)
            return
        if self._cache_founf_inf:
            self._incr_count = 0
            self._decr_count += 1
            if self._decr_count == self._decr_every_n_nan_or_inf:
                scale = float(self._scale)
                print(f"Found inf or nan, current scale is: {scale}, decrease to: {scale}*{float(self._decr_ratio)}")
                self._scale = self._scale * self._decr_ratio
                self._decr_count = 0
        else:
            self._decr_count = 0
            self._incr_count += 1
            if self._incr_count == self._incr_every_n_steps:
                self._scale = self._scale * self._incr_ratio
                self._incr_count = 0

    def is_enable(self):
        return self._enable

    def is_use_dynamic_loss_scaling(self):
        return self._use_dynamic_loss_scaling

    def get_init_loss_scaling(self):
        return self._init_loss_scaling

    def set_init_loss_scaling(self, new_init_loss_scaling):
        self._init_loss_scaling = new_init_loss_scaling
        self._scale = _core.full([1], float(new_init_loss_scaling), _core.float32)

    def get_incr_ratio(self):
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio):
        if not new_incr_ratio > 1.0:
            raise AssertionError(f"set_incr_ratio: the ratio must be above 1, got {new_incr_ratio}")
        self._incr_ratio = new_incr_ratio

    def get_decr_ratio(self):
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio):
        if not new_decr_ratio < 1.0:
            raise AssertionError(f"set_decr_ratio: the ratio must be below 1, got {new_decr_ratio}")
        self._decr_ratio = new_decr_ratio

    def get_incr_every_n_steps(self):
        return self._incr_every_n_steps

    def set_incr_every_n_steps(self, new_incr_every_n_steps):
        self._incr_every_n_steps = new_incr_every_n_steps

    def get_decr_every_n_nan_or_inf(self):
        return self._decr_every_n_nan_or_inf

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf):
        self._decr_every_n_nan_or_inf = new_decr_every_n_nan_or_inf

    _kept = ("incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_count", "decr_count",
             "use_dynamic_loss_scaling")

    def state_dict(self):
        """The scale as an array and the numbers it follows; empty when disabled."""
        if not self._enable:
            return {}
        self._incr_count, self._decr_count = self._counts()
        return {"scale": self._scale.numpy(), **{key: getattr(self, "_" + key) for key in self._kept}}

    def load_state_dict(self, state_dict):
        """Goes on where state_dict() was taken."""
        if not self._enable:
            return
        if not state_dict:
            raise RuntimeError("load_state_dict: the state is empty; was it saved by a disabled GradScaler?")
        self.set_init_loss_scaling(state_dict["scale"][0])
        for key in self._kept:
            setattr(self, "_" + key, state_dict[key])
        self._good = self._bad = None


class GradScaler(AmpScaler):
    """scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update(): a step with infinite gradients is left
    out and lowers the scale, incr_every_n_steps good ones raise it."""

    def __init__(self, enable=True, init_loss_scaling=2.0 ** 16, incr_ratio=2.0, decr_ratio=0.5,
                 incr_every_n_steps=2000, decr_every_n_nan_or_inf=1, use_dynamic_loss_scaling=True):
        super().__init__(enable, init_loss_scaling, incr_ratio, decr_ratio, incr_every_n_steps,
                         decr_every_n_nan_or_inf, use_dynamic_loss_scaling)

    def step(self, optimizer):
        """Unscales if that was not done, and steps unless a gradient is infinite."""
        if not self._enable:
            return optimizer.step()
        of_optimizer = self._optimizer_states[id(optimizer)]
        if of_optimizer["state"] is OptimizerState.STEPPED:
            raise RuntimeError("step: it was called already since the last update()")
        if of_optimizer["state"] is OptimizerState.INIT:
            self._unscale(optimizer)
        self._guarded(optimizer, optimizer.step)
        of_optimizer["state"] = OptimizerState.STEPPED
        if not self._use_dynamic_loss_scaling:
            self._optimizer_states = _fresh_states()

    def update(self):
        """Raises or lowers the scale after step()."""
        if self._enable and self._use_dynamic_loss_scaling:
            self._update()
            self._optimizer_states = _fresh_states()

    def unscale_(self, optimizer):
        """Divides the optimizer's gradients by the scale, for clipping them before step()."""
        self._unscale(optimizer)
