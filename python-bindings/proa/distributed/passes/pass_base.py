"""Passes: their base, their registry, and the manager that applies several."""


class PassContext:
    """State that passes share: attributes, and the passes that were applied."""

    def __init__(self):
        self._applied, self._attrs = [], {}

    def set_attr(self, key, value):
        """Sets an attribute."""
        self._attrs[key] = value

    def get_attr(self, key, default=None):
        """An attribute, or the default."""
        return self._attrs.get(key, default)

    @property
    def passes(self):
        """The passes that were applied, in order."""
        return self._applied


class PassType:
    """Kinds of passes; fusions come last."""

    UNKNOWN, COMM_OPT, CALC_OPT, PARALLEL_OPT, FUSION_OPT = range(5)


class PassBase:
    """A pass: subclasses define _apply_single_impl(main_program, startup_program, context), and say by _check_self and
    _check_conflict(other) whether it applies, also behind another pass."""

    _REGISTERED_PASSES = {}
    name = None

    def __init__(self):
        self._attrs = {}

    def set_attr(self, key, value):
        """Sets an attribute; returns the pass."""
        self._attrs[key] = value
        return self

    def get_attr(self, key, default=None):
        """An attribute, or the default."""
        return self._attrs.get(key, default)

    def _check_self(self):
        return True

    def _check_conflict(self, other_pass):
        return True

    def _type(self):
        return PassType.UNKNOWN

    def _follows(self, other):
        """Whether it may be applied behind another pass: once, and nothing but fusions behind a fusion."""
        ordered = other._type() != PassType.FUSION_OPT or self._type() == PassType.FUSION_OPT
        return type(other) is not type(self) and ordered and self._check_conflict(other)

    def apply(self, main_programs, startup_programs, context=None):
        """Applies it to pairs of programs, unless it conflicts with the context's passes; returns the context."""
        context = PassContext() if context is None else context
        if not isinstance(main_programs, list) or not isinstance(startup_programs, list) or len(main_programs) != len(startup_programs):
            raise TypeError(f"{self.name}.apply: main_programs and startup_programs must be lists of as many Programs")
        if self._check_self() and all(self._follows(p) for p in context.passes):
            self._apply_impl(main_programs, startup_programs, context)
            context._applied.append(self)
        return context

    def _apply_impl(self, main_programs, startup_programs, context):
        for main_program, startup_program in zip(main_programs, startup_programs):
            self._apply_single_impl(main_program, startup_program, context)

    def _apply_single_impl(self, main_program, startup_program, context):
        raise NotImplementedError(f"{type(self).__name__}: a pass must define _apply_single_impl")


def register_pass(name):
    """A decorator that makes a subclass of PassBase known to new_pass."""
    def impl(cls):
        if not (isinstance(cls, type) and issubclass(cls, PassBase)):
            raise TypeError(f"register_pass: {name!r} must be a subclass of PassBase, got {cls!r}")
        PassBase._REGISTERED_PASSES[name] = cls
        cls.name = name
        return cls
    return impl


def new_pass(name, pass_attrs=None):
    """The pass of that name, with attributes.

    >>> from proa.distributed.passes import PassManager, new_pass
    >>> PassManager([new_pass("fuse_gemm_epilogue")]).names
    ['fuse_gemm_epilogue']
    """
    cls = PassBase._REGISTERED_PASSES.get(name)
    if cls is None:
        raise ValueError(f"new_pass: there is no pass {name!r}; there are {sorted(PassBase._REGISTERED_PASSES)}")
    made = cls()
    for key, value in (pass_attrs or {}).items():
        made.set_attr(key, value)
    return made


class PassManager:
    """Applies passes one after the other, without those that conflict with earlier ones (auto_solve_conflict=False: as they are)."""

    def __init__(self, passes, context=None, auto_solve_conflict=True):
        self._context = PassContext() if context is None else context
        self._passes = self._solved(passes) if auto_solve_conflict else list(passes)

    def _solved(self, passes):
        kept = []
        for p in passes:
            if p._check_self() and all(p._follows(other) for other in [*self._context.passes, *kept]):
                kept.append(p)
        return kept

    def apply(self, main_programs, startup_programs):
        """Applies all to pairs of programs; returns the context."""
        for p in self._passes:
            self._context = p.apply(main_programs, startup_programs, self._context)
        return self._context

    @property
    def context(self):
        """The context that the passes share."""
        return self._context

    @property
    def names(self):
        """Names of the passes, in order."""
        return [p.name for p in self._passes]

    @property
    def passes(self):
        """The passes, in order."""
        return tuple(self._passes)
