"""Tools for saved programs: reading, writing, lists of what is in one, a trial run, a drawing."""
import os
import shutil
import subprocess
import warnings

__all__ = ["check_pruned_program_vars", "check_saved_vars_try_dump", "graphviz", "load_program", "parse_program", "program_type_trans",
           "save_program"]


def _binary(who, is_text):
    if is_text:
        raise NotImplementedError(f"{who}: programs as text (is_text=True) are not read or written; str(program) shows one, and its binary form "
                                  "is Paddle's")


def load_program(model_filename, is_text=False):
    """The Program of a file that save_program, or Paddle, wrote."""
    from ....static import Program
    _binary("load_program", is_text)
    with open(model_filename, "rb") as f:
        return Program.parse_from_string(f.read())


def save_program(program, model_filename="__model__", is_text=False):
    """Writes a Program in Paddle's binary form."""
    _binary("save_program", is_text)
    with open(model_filename, "wb") as f:
        f.write(program.desc.serialize_to_string())


def program_type_trans(prog_dir, prog_fn, is_text):
    """Paddle writes a binary program as text here, or the other way round: NotImplementedError."""
    _binary("program_type_trans", True)


def _persistable(program):
    return [var for var in program.list_vars() if var.persistable]


def check_pruned_program_vars(train_prog, pruned_prog):
    """Whether the persistable variables of a pruned program have the shapes and dtypes that they have in the one it was made of; each
    that has not is warned of."""
    fits = True
    for var in _persistable(pruned_prog):
        if var.name in ("feed", "fetch"):
            continue
        whole = next((v for v in train_prog.list_vars() if v.name == var.name), None)
        if whole is None:
            warnings.warn(f"check_pruned_program_vars: the program that was pruned has no {var.name!r}")
        elif tuple(whole.shape) != tuple(var.shape) or whole.dtype != var.dtype:
            warnings.warn(f"check_pruned_program_vars: {var.name!r} is {var.dtype}{list(var.shape)}, and was {whole.dtype}{list(whole.shape)}")
            fits = False
    return fits


def _drawn(block):
    """The block as a graph in the language of Graphviz: boxes of operators, ellipses of variables."""
    lines, seen = ["digraph G {"], {}

    def variable(name):
        if name not in seen:
            seen[name] = f"var_{len(seen)}"
            lines.append(f'  {seen[name]} [label="{name}", shape=ellipse];')
        return seen[name]

    for at, op in enumerate(block.ops):
        lines.append(f'  op_{at} [label="{op.type}", shape=box];')
        lines.extend(f"  {variable(name)} -> op_{at};" for name in op.input_arg_names)
        lines.extend(f"  op_{at} -> {variable(name)};" for name in op.output_arg_names)
    return "\n".join([*lines, "}"]) + "\n"


def graphviz(block, output_dir="", filename="debug"):
    """Draws a block's operators and variables into FILENAME.dot and, where Graphviz is installed, FILENAME.pdf."""
    path = os.path.join(output_dir, filename)
    with open(path + ".dot", "w", encoding="utf-8") as f:
        f.write(_drawn(block))
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tpdf", path + ".dot", "-o", path + ".pdf"], check=False, capture_output=True)


def parse_program(program, output_dir):
    """Writes what a program has, a line each: vars_persistable.log, vars_all.log and ops.log."""
    def described(var):
        return {"name": var.name, "shape": str(tuple(var.shape)), "lod_level": int(var.lod_level), "dtype": str(var.dtype)}

    lists = {
        "vars_persistable.log": ("persistable vars:", [{**described(v), "type": str(v.type)} for v in _persistable(program)]),
        "vars_all.log": ("all vars:", [described(v) for v in program.list_vars()]),
        "ops.log": ("ops:", [{"type": op.type, "input_arg_names": str(op.input_arg_names), "output_arg_names": str(op.output_arg_names)}
                             for op in program.global_block().ops]),
    }
    for name, (title, entries) in lists.items():
        with open(os.path.join(output_dir, name), "w", encoding="utf-8") as f:
            f.write("\n".join([title, *map(str, entries)]) + "\n")


def check_saved_vars_try_dump(dump_dir, dump_prog_fn, is_text_dump_program, feed_config, fetch_config, batch_size=1, save_filename=None):
    """Loads a saved model and runs it: the values of what is fetched. feed_config has the lists feeded_vars_names, feeded_vars_dims and
    feeded_vars_types (random numbers are fed, or those of feeded_vars_filelist, a text file each), fetch_config fetch_vars_names."""
    import numpy as np

    from ....static import Executor, load_inference_model
    _binary("check_saved_vars_try_dump", is_text_dump_program)
    executor, feeds = Executor(), {}
    program, names, fetched = load_inference_model(dump_dir, executor, model_filename=dump_prog_fn, params_filename=save_filename)
    files = list(getattr(feed_config, "feeded_vars_filelist", None) or [])
    kinds = zip(feed_config.feeded_vars_names, feed_config.feeded_vars_dims, feed_config.feeded_vars_types, strict=True)
    for at, (name, dims, kind) in enumerate(kinds):
        if name not in names:
            raise ValueError(f"check_saved_vars_try_dump: the model is not fed {name!r}; it is fed {names}")
        dims = tuple(dims) if isinstance(dims, (list, tuple)) else (dims,)
        wanted = tuple(program.global_block().var(name).shape)[1:]
        if dims != wanted:
            raise RuntimeError(f"check_saved_vars_try_dump: {name!r} has shape {wanted} behind the batch in the program, {dims} in feed_config")
        shape = (batch_size, *dims)
        values = np.loadtxt(files[at]).reshape(-1)[:int(np.prod(shape))] if files else np.random.random(shape)
        feeds[name] = np.asarray(values).reshape(shape).astype(np.dtype(kind))
    if fetch_config.fetch_vars_names is not None:
        fetched = [program.global_block().var(name) for name in fetch_config.fetch_vars_names]
    return executor.run(program, feeds, fetched)
