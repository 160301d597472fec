"""Tables of parameter servers, as a program's parameters, its startup program and its optimizer ask for them."""
import math
import zlib

from .... import _core

SGD, ADAM, ADAGRAD, SUM = range(4)
_RULES = {"SGD": SGD, "SGDOptimizer": SGD, "Adam": ADAM, "AdamOptimizer": ADAM, "Adagrad": ADAGRAD, "AdagradOptimizer": ADAGRAD}
ALWAYS, COUNT, PROBABILITY = range(3)
CONSTANT, UNIFORM, GAUSSIAN, TRUNCATED = range(4)


class Table:
    """A table's number, name and shape, and its options as servers take them."""

    def __init__(self, number, name, width, options, rows=None, grows=False, params=()):
        self.number, self.name, self.width, self.options = number, name, width, options
        self.rows, self.grows = rows, grows  # of sparse ones: rows of the parameter; whether they come into being when they are read
        self.params = list(params)  # of a dense one: (name, shape), one behind the other

    @property
    def dense(self):
        return self.rows is None


def mode_of(strategy):
    """"sync", "async" or "geo", and the steps between two exchanges of geo."""
    steps = strategy.a_sync_configs["k_steps"]
    if steps == 0:
        return ("async" if strategy.a_sync else "sync"), 0
    if strategy.a_sync and steps > 0:
        return "geo", steps
    raise ValueError("k_steps must be invalid value, please check: set strategy.a_sync to False (sync) or True (async), and after True "
                     f"a_sync_configs = {{'k_steps': k}} with k > 0 for GEO; a_sync is {strategy.a_sync}, k_steps {steps}")


def rule_of(optimizer):
    """(rule, beta1, beta2, epsilon) by which servers update values; an error for what they cannot do."""
    kind = type(optimizer).__name__
    rule = _RULES.get(kind)
    if rule is None:
        raise NotImplementedError(f"fleet.minimize: servers update parameters by SGD, Adam or Adagrad, got {kind}; take one of these, "
                                  "or GEO (a_sync_configs' k_steps > 0), where workers step")
    if optimizer._grad_clip is not None or getattr(optimizer, "regularization", None) is not None:
        raise NotImplementedError(f"fleet.minimize: {kind}'s grad_clip and weight_decay do not go with updates on servers; leave them out, "
                                  "or take GEO (a_sync_configs' k_steps > 0)")
    if rule == ADAM:
        betas = [b if isinstance(b, float) else None for b in (optimizer._beta1, optimizer._beta2)]
        if None in betas:
            raise NotImplementedError("fleet.minimize: Adam's beta1 and beta2 must be numbers, for servers to use them")
        return (rule, *betas, float(optimizer._epsilon))
    if rule == ADAGRAD:
        if getattr(optimizer, "_initial_accumulator_value", 0.0):
            raise NotImplementedError("fleet.minimize: Adagrad's initial_accumulator_value must be 0 on servers")
        return rule, 0.0, 0.0, float(optimizer._epsilon)
    return rule, 0.0, 0.0, 0.0


def options(name, dense, width, rule, entry=(ALWAYS, 0.0), start=(CONSTANT, 0.0, 0.0), seed=0):
    """The tuple that _core takes."""
    return (name, dense, width, *rule, *entry, *start, seed)


def entry_of(param):
    """(kind, number) of a table's entry."""
    entry = param.table_kind["entry"]
    if entry is None:
        return ALWAYS, 0.0
    kind, *numbers = entry._to_attr().split(":")
    if kind == "count_filter_entry":
        return COUNT, float(numbers[0])
    if kind == "probability_entry":
        return PROBABILITY, float(numbers[0])
    raise NotImplementedError(f"fleet.minimize: {kind} of {param.name!r}: entries are CountFilterEntry and ProbabilityEntry")


def start_of(startup, name):
    """((distribution, a, b), seed) that the startup program gives a parameter's rows; None if it is another."""
    made = [op for op in startup.global_block().ops if name in op.output_arg_names]
    if len(made) != 1:
        return None
    op = made[0]
    seed = op._attrs.get("seed") or zlib.crc32(name.encode())
    if op.type == "fill_constant":
        return (CONSTANT, float(op._attrs.get("str_value") or op.attr("value")), 0.0), seed
    if op.type == "uniform_random":
        return (UNIFORM, float(op.attr("min")), float(op.attr("max"))), seed
    kind = {"gaussian_random": GAUSSIAN, "truncated_gaussian_random": TRUNCATED}.get(op.type)
    return None if kind is None else ((kind, float(op.attr("mean")), float(op.attr("std"))), seed)


def sparse_parameters(program):
    """The parameters that are tables: of static.nn.sparse_embedding, and of embedding(is_sparse=True)."""
    return [p for p in program.all_parameters() if getattr(p, "table_kind", None)]


def check_dtype(param):
    """An error unless the parameter is float32: servers keep nothing else."""
    if param.dtype != _core.float32:
        raise NotImplementedError(f"fleet.minimize: servers keep float32, {param.name!r} is {param.dtype}; make it float32")
    if (param.optimize_attr or {}).get("learning_rate", 1.0) != 1.0 or param.regularizer is not None:
        raise NotImplementedError(f"fleet.minimize: {param.name!r} has a learning rate or regularizer of its own, which servers do not "
                                  "know; leave it out of its ParamAttr")


def sparse_tables(program, startup, mode, rule):
    """A Table for each sparse parameter, numbered from 0."""
    tables = []
    for number, param in enumerate(sparse_parameters(program)):
        check_dtype(param)
        rows, width = param.shape
        grows = param.table_kind["grows"] and mode != "geo"
        entry = entry_of(param)
        if mode == "geo" and entry[0] != ALWAYS:
            raise NotImplementedError(f"fleet.minimize: the entry of {param.name!r} does not go with GEO, whose tables are the workers' "
                                      "own; leave it out, or train in sync or async mode")
        start = start_of(startup, param.name) if grows else ((CONSTANT, 0.0, 0.0), 0)
        if start is None:
            raise NotImplementedError(f"fleet.minimize: rows of {param.name!r} come into being on servers, which draw them from Constant, "
                                      "Uniform, Normal or TruncatedNormal; give the sparse_embedding one of these initializers")
        tables.append(Table(number, param.name, width, options(param.name, False, width, rule, entry, *start), rows, grows))
    return tables


def dense_table(number, params, rule):
    """One Table for all dense parameters, joined into a vector."""
    for param in params:
        check_dtype(param)
    width = sum(math.prod(p.shape) for p in params)
    return Table(number, "dense", width, options("dense", True, width, rule), params=[(p.name, list(p.shape)) for p in params])
