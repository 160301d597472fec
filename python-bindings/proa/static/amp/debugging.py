"""paddle.static.amp.debugging: a program's operators by dtype."""
from ...framework.dtype import dtype_name
from ..program import default_main_program

_READERS = ("create_py_reader", "read", "create_double_buffer_reader")
_BY_X = ("cast", "batch_norm", "instance_norm", "layer_norm")  # of several dtypes, of which X's counts
_FLOATING = ("float16", "bfloat16", "float32", "float64")


def _dtype(block, names):
    """The dtype's name of a slot's first variable, which an outer block may have; None: there is none."""
    while names and block is not None:
        if block.has_var(names[0]):
            return dtype_name(block.var(names[0]).dtype)
        block = block.program.block(block.parent_idx) if block.parent_idx >= 0 else None
    return None


def _of(block, op):
    """The dtype that an operator computes in: its first input's, or its first output's if there is none; a floating one before
    others."""
    if op.type in _READERS:
        return None
    if op.type.removesuffix("_grad") in _BY_X:
        return _dtype(block, op.input("X"))
    if "Param" in op.input_names:
        return _dtype(block, op.input("Param"))
    inputs = [d for d in (_dtype(block, op.input(name)) for name in op.input_names) if d is not None]
    outputs = [d for d in (_dtype(block, op.output(name)) for name in op.output_names) if d is not None]
    return next((d for d in inputs if d in _FLOATING), (inputs or outputs or [None])[0])


def _counts(block):
    from ...amp.debugging import _COLUMNS, _OTHER
    found = {}
    for op in block.ops:
        found.setdefault(op.type, [0, 0, 0, 0])[_COLUMNS.get(_of(block, op), _OTHER)] += 1
    return found


def _merged(counts):
    """The counts of all blocks together."""
    found = {}
    for one in counts:
        for op, calls in one.items():
            found[op] = [a + b for a, b in zip(found.get(op, (0, 0, 0, 0)), calls)]
    return found


def collect_operator_stats(program=None, print_subblocks=False):
    """Prints how many operators of a program (None: the main program) compute in which dtype; print_subblocks: of each block,
    too."""
    from ...amp.debugging import _print_operator_stats
    program = program or default_main_program()
    counts = [_counts(block) for block in program.blocks]
    if print_subblocks and len(counts) > 1:
        for number, one in enumerate(counts):
            print(f"<{f' op list of block {number} ':-^120}>")
            _print_operator_stats(one)
    print(f"<{' op list of all blocks ':-^120}>")
    _print_operator_stats(_merged(counts))
