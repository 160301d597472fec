"""IrGraph: an editable description of a program for quantization passes, made from a Program and converted back to
one."""
from .. import _core
from ..framework.program_desc import ProgramDesc
from .program import Program

__all__ = ["Graph", "IrGraph"]


class Graph:
    """core.Graph: what an IrGraph is made of, a program's description (Program.desc)."""

    def __init__(self, desc):
        self.program = desc if isinstance(desc, Program) else desc._program


class IrGraph:
    """A program that quantization passes edit; to_program makes a Program of it."""

    def __init__(self, graph, for_test=False):
        self._program = graph.program
        self._for_test = for_test
        self._desc = ProgramDesc.parse(_core.encode(self._program._core, True))

    def is_test(self):
        """Whether the graph is for inference."""
        return self._for_test

    def all_sub_graphs(self):
        """The graphs of the blocks: passes edit the global one."""
        return [self]

    def clone(self):
        """A copy."""
        copy = object.__new__(IrGraph)
        copy._program, copy._for_test = self._program, self._for_test
        copy._desc = ProgramDesc.parse(self._desc.serialize())
        return copy

    def to_program(self):
        """The edited Program; values stay in the scope."""
        made = Program.parse_from_string(self._desc.serialize())
        made._seed, made.lr_scheduler = self._program._seed, self._program.lr_scheduler
        made.lr_var_name, made._optimizer = self._program.lr_var_name, self._program._optimizer
        return made

    @property
    def _block(self):
        return self._desc.main
