"""A saved model as a description and arrays: read, run with any variable fetched, written."""
import os

from ... import _core
from ...framework.program_desc import ProgramDesc
from ...framework.tensor_file import persistable_names
from ...static.params import combined, split

__all__ = ["Model", "batches"]


class Model:
    """A program's description, and its parameters by name."""

    def __init__(self, desc, arrays):
        self.desc, self.arrays = desc, arrays

    @classmethod
    def load(cls, model_dir, model_filename=None, params_filename=None):
        """From a folder and file names, or from a prefix."""
        from ...static.io import _model_bytes
        data, params = _model_bytes(model_dir, model_filename, params_filename)
        return cls.parse(data, params or b"")

    @classmethod
    def parse(cls, data, params):
        names = persistable_names(data)
        arrays = split(params, names) if names else {}
        return cls(ProgramDesc.parse(data), {name: array.copy() for name, array in arrays.items()})

    @classmethod
    def of(cls, program, scope=None):
        """Of a Program; values are the scope's."""
        from ...static.params import array_of, value_of
        from ...framework.io import _to_array
        data = _core.encode(program._core, True)
        arrays = {}
        for name in persistable_names(data):
            value = array_of(program, name) if scope is None else _to_array(value_of(program, name, scope))
            arrays[name] = value.copy()
        return cls(ProgramDesc.parse(data), arrays)

    def clean(self):
        """Forgets variables and arrays that no operator names."""
        used = {n for block in self.desc.blocks for op in block.ops for n in op.input_names + op.output_names}
        for block in self.desc.blocks:
            for name in [n for n in block.vars if n not in used]:
                del block.vars[name]
        kept = set(self.desc.persistables())
        self.arrays = {n: a for n, a in self.arrays.items() if n in kept}

    def bytes(self):
        """(program, parameters) as files hold them."""
        return self.desc.serialize(), combined({n: self.arrays[n] for n in self.desc.persistables()})

    def save(self, prefix, params=None):
        """Writes prefix.pdmodel and prefix.pdiparams; `params`: both files' whole paths are prefix and params."""
        program, values = self.bytes()
        model = prefix + ".pdmodel" if params is None else prefix
        os.makedirs(os.path.dirname(model) or ".", exist_ok=True)
        for path, content in ((model, program), (params or prefix + ".pdiparams", values)):
            with _core.FileWriter(path) as f:
                f.write(content)

    def program(self):
        """[Program, names of what is fed, variables to fetch], with values in the global scope."""
        from ...static.io import load_inference_model
        program, params = self.bytes()
        return load_inference_model(None, None, model_filename=program, params_filename=params)

    def runner(self, names):
        """A function of a feed that returns the arrays of `names`."""
        from ...static.executor import Executor
        from ...static.places import cpu_places
        from ...static.scope import Scope, scope_guard
        scope = Scope()
        with scope_guard(scope):
            program, feeds, _ = self.program()
        fetched = [program.global_block().var(n) for n in names]
        executor = Executor(cpu_places(1)[0])

        def run(feed):
            if not isinstance(feed, dict):
                feed = feed if isinstance(feed, (list, tuple)) else [feed]
                feed = feed[0] if len(feed) == 1 and isinstance(feed[0], dict) else dict(zip(feeds, feed))
            return dict(zip(names, executor.run(program, feed=feed, fetch_list=fetched, scope=scope)))
        return run


def batches(data_loader=None, batch_generator=None, sample_generator=None, batch_size=10):
    """A function that iterates over feeds: a loader's, a generator's of batches, or one's of samples, put together."""
    import numpy as np
    if data_loader is not None:
        return data_loader if callable(data_loader) else lambda: iter(data_loader)
    if batch_generator is not None:
        return batch_generator
    if sample_generator is None:
        raise ValueError("quantization needs samples: give data_loader, batch_generator or sample_generator")

    def grouped():
        group = []
        for sample in sample_generator():
            group.append(sample if isinstance(sample, (list, tuple)) else [sample])
            if len(group) == batch_size:
                yield [np.stack([np.asarray(s) for s in part]) for part in zip(*group)]
                group = []
    return grouped
