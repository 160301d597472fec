"""paddle.seed, get_rng_state and set_rng_state: seed and state of this thread's generator, and the default programs'
random_seed. The CUDA functions get an empty list and set nothing."""
import sys

from .. import _core

__all__ = ["get_cuda_rng_state", "get_rng_state", "seed", "set_cuda_rng_state", "set_rng_state"]


def program_seed(startup=False):
    """The random_seed of the default program, which every random operator takes that is given no seed of its own, eagerly
    too; startup: of the default startup program. 0 draws from the generator."""
    module = sys.modules.get("proa.static.program")
    return 0 if module is None else (module._startup if startup else module._main)._seed


class GeneratorState(tuple):
    """A generator's state: its seed, and how far it has drawn. Files hold it as a plain tuple."""

    def current_seed(self):
        """The seed, whatever was drawn since."""
        return self[0]

    def __reduce__(self):
        return tuple, (tuple(self),)


class Generator:
    """The generator that every random function draws from."""

    def __init__(self):
        self._seed = 0

    def manual_seed(self, seed):
        _core.seed(seed & (2 ** 64 - 1))
        self._seed = seed
        return self

    def initial_seed(self):
        return self._seed

    def get_state(self):
        return GeneratorState(_core.get_rng_state())

    def set_state(self, state):
        _core.set_rng_state(state)


default_generator = Generator()


def seed(seed):
    """Seeds the generator, and returns it.

    >>> import proa as paddle
    >>> _ = paddle.seed(7)
    >>> first = paddle.rand([3])
    >>> _ = paddle.seed(7)
    >>> bool((paddle.rand([3]) == first).all())
    True
    """
    seed = int(seed)
    if not 0 <= seed < 2 ** 64:
        raise TypeError(f"seed: the seed must be an int of 64 bits without a sign, got {seed}")
    return default_generator.manual_seed(seed)


def _manual_program_seed(seed):
    """Gives the default programs a seed of their own."""
    from ..static.program import default_main_program, default_startup_program
    default_main_program().random_seed = default_startup_program().random_seed = seed


def _checked(device):
    if isinstance(device, bytes):
        raise TypeError(f"the name of a device is a str, got {device!r}")
    if not isinstance(device, (str, _core.Place, type(None))):
        raise AttributeError(f"the name of a device is a str, got {type(device).__name__}")
    if device is not None and not str(device).replace("Place(", "").startswith("cpu"):
        raise ValueError(f"the random state of {device!r} is not known: this build computes on the CPU")


def get_rng_state(device=None):
    """The generator's state, in a list with one entry a device."""
    _checked(device)
    return [default_generator.get_state()]


def set_rng_state(state_list, device=None):
    """Sets what get_rng_state returned."""
    _checked(device)
    if getattr(state_list, "is_symbolic", False):
        raise TypeError("set_rng_state: state_list must be a list of states, got a variable of the program")
    if len(state_list) != 1:
        raise ValueError(f"set_rng_state: state_list must hold 1 state for the CPU, got {len(state_list)}")
    default_generator.set_state(state_list[0])


def get_cuda_rng_state():
    """The states of the GPUs' generators: an empty list where there is no GPU."""
    return []


def set_cuda_rng_state(state_list):
    """Accepts what get_cuda_rng_state returned. States of GPUs that are not here are ignored, as in Paddle: a checkpoint
    from a machine with GPUs loads on one without."""
