"""Optimizer: parameters in groups, accumulators under Paddle's names, and the step. A step gathers what has
gradients into batches of one dtype, rate and kind of decay, and hands each to one multi-tensor op; the batches are
kept from step to step while nothing about the parameters changes."""
import weakref

from .. import _core
from .._errors import need_attribute
from ..framework import mode, unique_name
from ..regularizer import L2Decay
from .kind import Kind
from .lr import LRScheduler
from .table import KINDS

_HALF = (_core.float16, _core.bfloat16)
# Methods that a user's subclass may write anew and Paddle calls in every step. Steps of many parameters at once
# pass them by, so a class that has one of its own takes the way on which it is called.
_STEPS = ("_append_optimize_op", "_apply_optimize", "_create_accumulators", "_create_global_learning_rate",
          "_create_optimization_pass", "_create_param_lr", "_create_regularization_of_grad", "_finish_update",
          "append_regularization_ops")
_HERE = __name__.partition(".")[0] + "."


def _is_own(cls, name):
    """Whether cls has the method from a class that is not Proa's."""
    return not next(base for base in cls.__mro__ if name in base.__dict__).__module__.startswith(_HERE)


def whole_of(param):
    """The parameter that a user's function is asked about: of a slice of a divided one, the whole."""
    return getattr(param, "_whole", param)


class _Batch:
    """Parameters that one op call updates. `at`: their places among the step's; states: one list a slot."""

    def __init__(self, rate, extra, dtype):
        self.rate, self.extra, self.dtype = rate, extra, dtype
        self.at, self.params, self.masters, self.states = [], [], [], []


def _apply_kind(self, batch, grads, rate):
    """Updates a batch by the kind's op."""
    kind, states = self._kind, batch.states
    kind.op(batch.params, grads, rate, *[states[i] for i in kind.order], batch.masters, self._skip, *self._numbers(batch))


class Optimizer:
    """Base of the optimizers. Proa's own name their kind, which says what they keep and which op they call; one of a user's may define
    _create_accumulators(block, parameters) and _append_optimize_op(block, param_and_grad) instead, as in Paddle."""

    _kind = Kind(None, (), (), ())
    _options = ()  # names of the options that a parameter group may set
    _rate_kinds = (float, LRScheduler)
    _own = frozenset()  # of _STEPS, those that the class has from a user
    _decays_rows = True  # whether weight decay goes with gradients that are SelectedRows

    def __init_subclass__(cls, **options):
        kind = options.pop("kind", None)  # of KINDS: what Proa's own keep and which op they call
        super().__init_subclass__(**options)
        if kind is not None:
            cls.type, cls._kind = kind, KINDS[kind]
            cls._apply = _apply_kind
            for slot in cls._kind.slots:
                setattr(cls, f"_{slot.state.lstrip('_')}_acc_str", slot.state)
        cls._own = frozenset(name for name in _STEPS if _is_own(cls, name))

    def __init__(self, learning_rate, parameters=None, weight_decay=None, grad_clip=None, name=None):
        who = type(self).__name__
        if isinstance(parameters, (_core.Tensor, dict)):
            raise TypeError(f"{who}: parameters must be a list of Tensors or a list of dicts (groups), got "
                            f"{type(parameters).__name__}")
        if parameters is None and not mode.building():
            raise AttributeError(f"{who}: parameters must be given, such as model.parameters()")
        if not isinstance(learning_rate, self._rate_kinds):
            raise TypeError(f"{who}: learning_rate must be a float or an LRScheduler, got "
                            f"{type(learning_rate).__name__}")
        if grad_clip is not None and not callable(grad_clip):
            raise TypeError(f"{who}: grad_clip must be one of paddle.nn.ClipGradBy…, got {type(grad_clip).__name__}")
        self._name = name
        self._on_mesh = []  # those of the parameters that are on a mesh of processes, whose parts are updated
        self._parameter_list = [] if parameters is None else self._updated(parameters)
        if self._parameter_list and not isinstance(self._parameter_list[0], dict):
            need_attribute(who, "dtype", "a list of Tensors", parameters=self._parameter_list[0])
        self.regularization = L2Decay(weight_decay) if isinstance(weight_decay, float) else weight_decay
        self._grad_clip = grad_clip
        self._learning_rate = learning_rate
        self._accumulators = {}
        self._accumulators_holder = {}
        self._opti_name_list = []
        self._master_weights = {}
        self._multi_precision = getattr(self, "_multi_precision", False)
        self._auxiliary_vars = {}
        self._skip = None  # of this step: a bool on a device, which its kernels read
        self._plans = {}
        self._rates = {}
        self._rate_vars = weakref.WeakKeyDictionary()  # the learning rate's variable in each program
        self._default_dict = dict(self._group_defaults(), weight_decay=self.regularization, grad_clip=grad_clip)
        self._param_groups = self._parameter_list
        if self._parameter_list and isinstance(self._parameter_list[0], dict):
            self._param_groups = []
            for group in self._parameter_list:
                self._add_param_group(group.copy())
        if self._on_mesh:
            from ..distributed.auto_parallel.optimizer import take_norms_of_whole
            take_norms_of_whole(self)

    # ---- for subclasses ----

    def _group_defaults(self):
        """The optimizer's own value of every option that a group may set."""
        return {name: getattr(self, "_" + name) for name in self._options}

    def _slots(self, param):
        """(name, dtype or None for the parameter's, fill value, shape or None) of each accumulator."""
        wide = _core.float32 if param.dtype in _HALF else param.dtype
        return tuple((slot.state, wide if slot.wide else None, self._start(slot.start), [1] if slot.single else None)
                     for slot in self._kind.slots)

    def _start(self, start):
        """The first value of an accumulator."""
        if start == "zero":
            return 0.0
        if start == "initial_value":
            return self._initial_accumulator_value
        beta = getattr(self, "_" + start)  # Paddle starts the powers of betas that are tensors at the defaults
        return {"beta1": 0.9, "beta2": 0.999}[start] if isinstance(beta, _core.Tensor) else beta

    def _numbers(self, batch):
        """Arguments of the kind's op behind the lists, in its order."""
        return [convert(getattr(self, "_" + name)) for name, convert in self._kind.numbers]

    def _extra(self, param):
        """A further value that must agree within a batch; handed to _apply."""
        return None

    _apply = None  # (batch, grads, rate): updates a batch

    # ---- groups ----

    def _add_param_group(self, group):
        params = group.get('params')
        if params is None:
            raise AssertionError(f"{type(self).__name__}: a parameter group must have 'params', got {list(group)}")
        if isinstance(params, set):
            raise TypeError(f"{type(self).__name__}: params of a group must be a list, got a set, which has no order")
        group['params'] = self._updated([params] if isinstance(params, _core.Tensor) else params)
        for key, value in self._default_dict.items():
            group.setdefault(key, value)
        seen = {id(p) for other in self._param_groups for p in other['params']}
        if any(id(p) in seen for p in group['params']):
            raise ValueError(f"{type(self).__name__}: some parameters are in more than one group")
        self._describe_params(group)
        self._param_groups.append(group)

    def _updated(self, parameters):
        """The tensors to update: of parameters on a mesh of processes, this process's parts."""
        parameters = list(parameters)
        if all(getattr(p, "_mesh", None) is None for p in parameters):
            return parameters
        from ..distributed.auto_parallel.dist_tensor import trained
        self._on_mesh += [p for p in parameters if getattr(p, "_mesh", None) is not None]
        return trained(parameters)

    def _describe_params(self, group):
        decay = group['weight_decay']
        decay = L2Decay(decay) if isinstance(decay, float) else decay
        for param in group['params']:
            param.regularizer = decay
            self._set_param_rate(param, group)

    @staticmethod
    def _set_param_rate(param, group):
        if getattr(param, 'optimize_attr', None) is None:
            param.optimize_attr = {}
        param.optimize_attr['learning_rate'] = group.get('learning_rate', 1.0)

    def _groups(self):
        """(parameters, options) of each group; options is None without groups."""
        if self._param_groups and isinstance(self._param_groups[0], dict):
            return [(group['params'], group) for group in self._param_groups]
        return [(self._param_groups, None)]

    def _all_parameters(self):
        return [p for params, _ in self._groups() for p in params]

    # ---- the learning rate ----

    def get_lr(self):
        """The current learning rate, a float."""
        return self._rate()

    def _rate(self):
        return self._learning_rate if isinstance(self._learning_rate, float) else self._learning_rate()

    def set_lr(self, value):
        """Sets the learning rate of an optimizer that has no scheduler."""
        if not isinstance(value, (int, float)):
            raise TypeError(f"set_lr: value must be a number, got {type(value).__name__}")
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError("set_lr: the learning rate comes from a scheduler; use set_lr_scheduler")
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler):
        """Takes the learning rate from scheduler from now on."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(f"set_lr_scheduler: scheduler must be an LRScheduler, got {type(scheduler).__name__}")
        self._learning_rate = scheduler

    def _rate_tensor(self, factor, dtype):
        """A one-element tensor of the rate times a parameter's own factor; kept while the number stays."""
        if mode.building():
            from . import program
            return program.rate(self, factor, dtype)
        rate = self._rate()  # not get_lr(): a step does not ask a subclass
        kept = self._rates.get((factor, dtype))
        if kept is None or kept[0] != rate:
            wide = _core.float64 if dtype == _core.float64 else _core.float32
            tensor = _core.full([1], float(rate), wide)
            if factor != 1.0:
                tensor = _core.scale(tensor, float(factor))
            kept = self._rates[(factor, dtype)] = (rate, tensor)
        return kept[1]

    def _create_param_lr(self, param_and_grad):
        param = param_and_grad[0]
        factor = (getattr(param, 'optimize_attr', None) or {}).get('learning_rate', 1.0)
        return self._rate_tensor(factor, param.dtype)

    def _create_global_learning_rate(self):
        self._global_learning_rate()

    def _global_learning_rate(self):
        return self._rate_tensor(1.0, _core.float32)

    # ---- accumulators ----

    def _is_dtype_fp16_or_bf16(self, dtype):
        return dtype in _HALF

    def _create_master_weight(self, param):
        master = self._master_weights.get(param.name)
        if master is None and mode.building():
            from . import program
            master = self._master_weights[param.name] = program.master_weight(param)
        elif master is None:
            master = _core.cast(param, _core.float32)
            master.name = unique_name.generate(param.name + "_fp32_master")
            self._master_weights[param.name] = master
        return master

    def _full_name(self, name):
        return name if self._name is None else f"{self._name}_{name}"

    def _add_accumulator(self, name, param, dtype=None, fill_value=0.0, shape=None, type=None, device=None):
        of_name = self._accumulators.setdefault(self._full_name(name), {})
        if param.name in of_name:
            return of_name[param.name]
        full_name = unique_name.generate(f"{param.name}_{self._full_name(name)}")
        shape, dtype = param.shape if shape is None else shape, dtype or param.dtype
        if mode.building():
            from . import program
            state = program.accumulator(self, full_name, shape, dtype, fill_value)
        else:
            state = _core.full(shape, float(fill_value), dtype)
            state.name = full_name
        if self._accumulators_holder:
            if full_name not in self._accumulators_holder:
                raise AssertionError(f"set_state_dict: the state has no '{full_name}'")
            state.set_value(self._accumulators_holder.pop(full_name))
        self._opti_name_list.append(full_name)
        of_name[param.name] = state
        return state

    def _get_accumulator(self, name, param):
        try:
            return self._accumulators[self._full_name(name)][param.name]
        except KeyError:
            raise Exception(f"{self.__class__.__name__}: there is no accumulator {name} of {param.name}") from None

    def _get_accumulator_master(self, name, param):
        half = self._multi_precision and param.dtype in _HALF
        return self._get_accumulator(name, self._master_weights[param.name] if half else param)

    def _create_accumulators(self, block, parameters):
        for param in parameters:
            if self._multi_precision and param.dtype in _HALF:
                param = self._create_master_weight(param)
            for name, dtype, fill, shape in self._slots(param):
                self._add_accumulator(name, param, dtype, fill, shape)

    # ---- state ----

    def state_dict(self):
        """Accumulators by name, master_weights and LR_Scheduler; empty before the first step."""
        state = {t.name: t for of_name in self._accumulators.values() for t in of_name.values()}
        if self._master_weights:
            state["master_weights"] = self._master_weights
        if isinstance(self._learning_rate, LRScheduler):
            state["LR_Scheduler"] = self._learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict):
        """Takes over what state_dict() gave; accumulators not made yet take their values when they are."""
        state = dict(state_dict)
        if isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(state["LR_Scheduler"])
        state.pop("LR_Scheduler", None)
        masters = state.pop("master_weights", None)
        if masters is not None:
            self._master_weights = {}
            for param_name, value in masters.items():
                master = self._master_weights[param_name] = _core.to_tensor(value)
                master.name = getattr(value, "name", None) or f"{param_name}_fp32_master_0"
        self._plans.clear()
        self._accumulators_holder = state
        for of_name in self._accumulators.values():
            for tensor in of_name.values():
                if tensor.name not in state:
                    raise AssertionError(f"set_state_dict: the state has no '{tensor.name}'")
                value = state[tensor.name]
                if list(value.shape) != tensor.shape:
                    raise AssertionError(f"set_state_dict: '{tensor.name}' must have shape {tensor.shape}, got "
                                         f"{list(value.shape)}")
                tensor.set_value(value)

    set_dict = set_state_dict

    def get_opti_var_name_list(self):
        """The names of all accumulators."""
        return self._opti_name_list

    # ---- the step ----

    def _set_auxiliary_var(self, key, value):
        self._auxiliary_vars[key] = value

    def _get_auxiliary_var(self, key):
        return self._auxiliary_vars.get(key)

    def _create_regularization_of_grad(self, param, grad, regularization=None):
        own = getattr(param, 'regularizer', None)
        decay = regularization if own is None else own
        if grad is None or decay is None:
            return grad
        if param.dtype != grad.dtype:
            half = self._multi_precision and param.dtype in _HALF and param.name in self._master_weights
            param = self._master_weights[param.name] if half else _core.cast(param, grad.dtype)
        if _core.is_rows(grad):
            if not self._decays_rows:
                raise RuntimeError(f"{type(self).__name__}: weight_decay does not go with sparse gradients; set it to "
                                   "None, or make the gradients dense (sparse=False)")
            return _core.rows_add(decay(param, grad, None), grad)
        return _core.add(grad, decay(param, grad, None))

    def append_regularization_ops(self, parameters_and_grads, regularization=None):
        """The pairs with weight decay added to the gradients."""
        return [(p, self._create_regularization_of_grad(p, g, regularization)) for p, g in parameters_and_grads]

    def _decays(self, params):
        return self.regularization is not None or any(getattr(p, 'regularizer', None) is not None for p in params)

    def _signature(self, params):
        """The key of the batches, beside the set of parameters with gradients."""
        return [((getattr(p, 'optimize_attr', None) or {}).get('learning_rate', 1.0), p.dtype,
                 getattr(p, 'regularizer', None)) for p in params]

    def _plan(self, index, params):
        """The batches of these parameters: the ones of the last step if they are still right."""
        key, signature = [id(p) for p in params], self._signature(params)
        kept = self._plans.get(index)
        if kept and kept[0] == key and kept[1] == signature and kept[2] == self._multi_precision:
            return kept[3]
        self._create_accumulators(None, params)
        batches = {}
        for at, (param, (rate, dtype, _)) in enumerate(zip(params, signature)):
            extra = self._extra(param)
            batch = batches.get((rate, dtype, extra))
            if batch is None:
                batch = batches[(rate, dtype, extra)] = _Batch(rate, extra, dtype)
            batch.at.append(at)
            batch.params.append(param)
            owner = param
            if self._multi_precision and dtype in _HALF:
                owner = self._master_weights[param.name]
                batch.masters.append(owner)
            states = [self._get_accumulator_master(slot[0], param) for slot in self._slots(owner)]
            batch.states = batch.states or [[] for _ in states]
            for of_slot, state in zip(batch.states, states):
                of_slot.append(state)
        made = list(batches.values())
        self._plans[index] = (key, signature, self._multi_precision, made)
        return made

    def _update_param_group(self, parameters):
        """Takes over a group's options; returns its 'params'."""
        for name in self._options:
            setattr(self, "_" + name, parameters.get(name, self._default_dict[name]))
        return parameters.get("params")

    def _update(self, index, params, grads, options):
        """Clips, decays and applies one group's gradients."""
        clip = self._grad_clip if options is None else options['grad_clip']
        if clip is not None and (params or getattr(clip, "over_ranks", False)):  # ranks without gradients join in
            pairs = [(p, g) for p, g in clip(list(zip(params, grads))) if g is not None]
            params, grads = [p for p, _ in pairs], [g for _, g in pairs]
        if options is not None:
            self._update_param_group(options)
        own, batches = self._own, None
        one_by_one = self._apply is None or not own.isdisjoint(("_append_optimize_op", "_create_param_lr"))
        if one_by_one or "_create_accumulators" in own:
            self._create_accumulators(None, params)
        if not one_by_one:
            batches = self._plan(index, params)
        if "append_regularization_ops" in own or "_create_regularization_of_grad" in own or self._decays(params):
            pairs = self.append_regularization_ops(list(zip(params, grads)), self.regularization)
            params, grads = [p for p, _ in pairs], [g for _, g in pairs]
        found = self._auxiliary_vars.get('found_inf')
        self._skip = None
        if isinstance(found, _core.Tensor) and (found.is_symbolic or not one_by_one and not found.place.is_cpu_place()):
            if one_by_one or self._kind.op is None:
                raise NotImplementedError(f"{type(self).__name__}: its steps cannot be left out in a program; use one of "
                                          "paddle.optimizer")
            self._skip, found = found, None
        if found is not None:
            self._auxiliary_vars['found_inf'] = found = bool(found)
        if found:
            return
        if "_create_optimization_pass" in own:
            self._create_optimization_pass(self._as_given(params, grads, options), param_group_idx=index)
        else:
            self._run_batches(params, grads, batches)

    @staticmethod
    def _as_given(params, grads, options):
        """The pairs as Paddle hands them on: a list, or the group's options with them as 'params'."""
        pairs = list(zip(params, grads))
        return pairs if options is None else {**options, "params": pairs}

    def _run_batches(self, params, grads, batches):
        """Updates the parameters: by one op a batch, or one by one if there are no batches."""
        if "_create_global_learning_rate" in self._own:
            self._create_global_learning_rate()
        if batches is None:
            for pair in zip(params, grads):
                self._append_optimize_op(None, pair)
        else:
            for batch in batches:
                chosen = grads if len(batch.at) == len(grads) else [grads[i] for i in batch.at]
                self._apply(batch, chosen, self._rate_tensor(batch.rate, batch.dtype))
        if "_finish_update" in self._own:
            self._finish_update(None, list(zip(params, grads)))

    def _create_optimization_pass(self, parameters_and_grads, param_group_idx=0):
        """Updates the parameters of (parameter, gradient) pairs, or of a group's dict with them as 'params'."""
        pairs = parameters_and_grads
        if isinstance(pairs, dict):
            pairs = self._update_param_group(pairs)
        self._create_accumulators(None, [p for p, _ in pairs])
        self._run_batches([p for p, _ in pairs], [g for _, g in pairs], None)

    def _apply_optimize(self, loss, startup_program, params_grads, param_group_idx=0):
        """Clips, decays and updates (parameter, gradient) pairs, or a group's dict with them as 'params'."""
        options = params_grads if isinstance(params_grads, dict) else None
        pairs = params_grads if options is None else options["params"]
        self._update(param_group_idx, [p for p, _ in pairs], [g for _, g in pairs], options)

    def _append_optimize_op(self, block, param_and_grad):
        """Updates one parameter: for subclasses to write, or to change."""
        if self._apply is None:
            raise NotImplementedError(f"{type(self).__name__}: an optimizer must define _append_optimize_op")
        if isinstance(param_and_grad, dict):
            param_and_grad = self._update_param_group(param_and_grad)
        param, grad = param_and_grad
        batch, = self._plan(("one", id(param)), [param])
        self._apply(batch, [grad], self._create_param_lr(param_and_grad))

    def _finish_update(self, block, parameters_and_grads):
        """Called after every step, for subclasses."""

    def _step(self):
        recording = _core.set_recording(False)
        try:
            for index, (params, options) in enumerate(self._groups()):
                grads, count = _core.gather_grads(params)
                if count < len(params):
                    at = [i for i, g in enumerate(grads) if g is not None]
                    params, grads = [params[i] for i in at], [grads[i] for i in at]
                self._optimize(index, params, grads, options)
        finally:
            _core.set_recording(recording)

    def _optimize(self, index, params, grads, options):
        if "_apply_optimize" in self._own:
            self._apply_optimize(None, None, self._as_given(params, grads, options), param_group_idx=index)
        else:
            self._update(index, params, grads, options)

    def step(self):
        """Updates the parameters that have gradients."""
        self._step()

    def clear_grad(self, set_to_zero=True):
        """Makes the gradients of all parameters zeros, or drops them."""
        for params, _ in self._groups():
            _core.clear_grads(params, set_to_zero)

    def clear_gradients(self, set_to_zero=True):
        """clear_grad under its other name."""
        self.clear_grad(set_to_zero)

    def backward(self, loss, startup_program=None, parameters=None, no_grad_set=None, callbacks=None):
        """The (parameter, gradient) pairs that there are; loss.backward() makes them."""
        if mode.building():
            from . import program
            return program.backward(self, loss, startup_program, parameters, no_grad_set, callbacks)
        params = list(parameters) if parameters else self._all_parameters()
        grads, _ = _core.gather_grads(params)
        return [(p, g) for p, g in zip(params, grads) if g is not None]

    def apply_gradients(self, params_grads):
        """One step with these (parameter, gradient) pairs."""
        if mode.building():
            from . import program
            return program.apply_gradients(self, params_grads)
        recording = _core.set_recording(False)
        try:
            pairs = sorted(params_grads, key=lambda pair: pair[0].name)
            self._update('apply', [p for p, _ in pairs], [g for _, g in pairs], None)
        finally:
            _core.set_recording(recording)
        return []

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """A step with the gradients that loss.backward() made; returns ([], (parameter, gradient) pairs)."""
        if not isinstance(loss, _core.Tensor):
            raise AssertionError(f"minimize: loss must be a Tensor, got {type(loss).__name__}")
        if mode.building():
            from . import program
            return program.minimize(self, loss, startup_program, parameters, no_grad_set)
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        if parameters:
            recording = _core.set_recording(False)
            try:
                self._optimize(0, [p for p, _ in pairs], [g for _, g in pairs], None)
            finally:
                _core.set_recording(recording)
        else:
            self._step()
        return [], pairs
