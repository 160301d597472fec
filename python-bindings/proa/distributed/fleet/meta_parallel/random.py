"""Named random states for model parallelism: some are equal on all ranks of a model, others (for dropout)
differ."""
import contextlib

from .... import _core
from ....framework import seed as set_seed

MODEL_PARALLEL_RNG = "model_parallel_rng"


class RNGStatesTracker:
    """Named states of the random generator, each of which goes on where it was left."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Forgets all."""
        self.states_, self.seeds_ = {}, set()

    def add(self, name, seed):
        """A new state that begins at a seed."""
        if seed in self.seeds_:
            raise ValueError(f"seed {seed} already exists")
        if name in self.states_:
            raise ValueError(f"state {name} already exists")
        self.seeds_.add(seed)
        before = _core.get_rng_state()
        set_seed(seed)
        self.states_[name] = _core.get_rng_state()
        _core.set_rng_state(before)

    def get_states_tracker(self):
        """All states by name."""
        return dict(self.states_)

    def set_states_tracker(self, states):
        """Sets all states."""
        self.states_ = dict(states)

    @contextlib.contextmanager
    def rng_state(self, name=MODEL_PARALLEL_RNG):
        """Inside, random numbers are the named state's."""
        if name not in self.states_:
            raise ValueError(f"state {name} does not exist")
        before = _core.get_rng_state()
        _core.set_rng_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = _core.get_rng_state()
            _core.set_rng_state(before)


_tracker = RNGStatesTracker()


def get_rng_state_tracker():
    """The tracker of this process."""
    return _tracker


def model_parallel_random_seed(seed=None):
    """Seeds the generator alike on all ranks of a model, and the tracker's model_parallel_rng differently on each."""
    import random

    from ..fleet import fleet
    hcg = fleet.get_hybrid_communicate_group()
    place = hcg.get_model_parallel_rank() * hcg._size("pipe") + hcg.get_stage_id()
    common = seed if seed else _agreed(random.randint(0, 100000), hcg)
    _tracker.reset()
    _tracker.add(MODEL_PARALLEL_RNG, common + 1 + place)
    set_seed(common)


def _agreed(number, hcg):
    """The number of the first rank of the model."""
    from ... import communication as _c
    group = hcg.get_check_parallel_group()
    if group.nranks < 2:
        return number
    tensor = _core.to_tensor([number])
    _c.broadcast(tensor, group.ranks[0], group)
    return int(tensor)
